"""The plain fields of a policy: one table of sections and rows, read from the policy and put into it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, cast

from gatewright.workspace.api import (
    TIER_DEFAULTS,
    AgentEndpoint,
    BlueskyEndpoint,
    DiscordEndpoint,
    Field,
    Key,
    Policy,
    SafetyTier,
    SearchEngine,
    SearchProvider,
    ShellBackend,
    Verdict,
    duration_words,
    frozen,
    key_at,
    parse_duration_words,
)
from gatewright_gui.qt.language import mark, tr

Kind = Literal["text", "words", "agents", "commands", "flag", "choice", "number", "duration", "search", "groups"]
_VERDICTS = ((mark("allow"), Verdict.ALLOW), (mark("ask first"), Verdict.ASK), (mark("deny"), Verdict.DENY))
_SWITCHES = ((mark("on"), Verdict.ALLOW), (mark("ask first"), Verdict.ASK), (mark("off"), Verdict.DENY))
_USUAL = {
    Verdict.ALLOW: mark("on (default)"),
    Verdict.ASK: mark("ask first (default)"),
    Verdict.DENY: mark("off (default)"),
}

_EFFECTS = {
    Verdict.ALLOW: mark("They run without asking."),
    Verdict.ASK: mark("You are asked before each."),
    Verdict.DENY: mark("They are refused."),
}


@frozen
class Setting:
    """One row. ``path``: from the policy to the value, by the names of fields or the keys of a map.

    ``choices``: words and values; ``effects``: what each of them does. The table of the file says the rest; ``own``: a
    kind that no type of it says.
    """

    path: tuple[str, ...]
    label: str
    hint: str
    own: Kind | None = None
    choices: tuple[tuple[str, object], ...] = ()
    effects: tuple[str, ...] = ()

    @property
    def key(self) -> Key:
        """Its key in the file."""
        return key_at(self.path)

    @property
    def kind(self) -> Kind:
        """The kind of field that shows it."""
        if self.choices:
            return "choice"
        return self.own or _KINDS.get(str(self.key.shape.get("type")), "duration")

    @property
    def usual(self) -> object:
        """The value that an empty field stands for."""
        return self.key.usual

    @property
    def empty_words(self) -> str:
        """The words for what an empty field stands for: the hint to its first semicolon."""
        return tr(self.hint).partition("; ")[0]

    @property
    def help_words(self) -> str:
        """The rest of the hint, and the default of a field that shows its value though it is the default."""
        if isinstance(self.usual, int) and self.kind in {"number", "duration"}:
            usual = _SHOWN.get(self.kind, str)(self.usual)
            return tr("{unit} (default: {usual})", unit=tr(self.hint), usual=usual) if self.kind == "number" else ""
        return tr(self.hint).partition("; ")[2]

    @property
    def is_required(self) -> bool:
        """True where the part of the policy that holds it is nothing without it."""
        return self.key.is_needed

    @property
    def needed(self) -> str:
        """The words to say where it is not there."""
        return tr("{setting} is needed", setting=tr(self.label))

    @property
    def field(self) -> Field:
        """The field of the policy that it belongs to."""
        return cast("Field", self.path[0])

    def value_in(self, policy: Policy) -> object:
        """Its value; None where what it belongs to is not there."""
        value: Any = policy
        for key in self.path:
            value = cast("Mapping[str, object]", value).get(key) if isinstance(value, Mapping) else getattr(value, key)
            if value is None:
                return None
        return value

    def effect_in(self, policy: Policy) -> str:
        """The effect of its value now, where it is a choice."""
        values, now = [value for _, value in self.choices], self.value_in(policy)
        return self.effects[values.index(now)] if self.effects and now in values else ""

    def put_into(self, policy: Policy, value: object) -> Policy:
        """The policy with another value. Raises AttributeError or TypeError where what it belongs to is not there."""
        return cast("Policy", _put(policy, self.path, value))

    def text_in(self, policy: Policy) -> str:
        """Its value as one types it."""
        value = self.value_in(policy)
        return "" if value is None else _SHOWN.get(self.kind, str)(value)

    def read(self, text: str) -> object:
        """The value that was typed. Raises ValueError."""
        return _READ.get(self.kind, str)(text.strip()) if text.strip() else self.usual


@frozen
class Section:
    """Rows under a heading. ``made_of``: the class of what is there or not as a whole, at ``path``."""

    key: str
    title: str
    about: str
    settings: tuple[Setting, ...]
    path: tuple[str, ...] = ()
    made_of: Callable[..., object] | None = None

    @property
    def switch(self) -> Setting:
        """The whole of it as one value; None: it is not there."""
        return Setting(self.path, self.title, self.about)

    def build(self, values: Mapping[Setting, object]) -> object:
        """The whole of these values. Raises ValueError naming what is needed and is not there."""
        for setting, value in values.items():
            if setting.is_required and not value:
                raise ValueError(setting.needed)
        return (self.made_of or dict)(**{setting.path[-1]: value for setting, value in values.items()})


def _put(holder: Any, path: tuple[str, ...], value: object) -> object:
    key, *rest = path
    if isinstance(holder, Mapping):
        held = cast("Mapping[str, object]", holder)
        return {**held, key: value} if value is not None else {name: held[name] for name in held if name != key}
    return replace(holder, **{key: _put(getattr(holder, key), tuple(rest), value) if rest else value})


def _split(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for part in text.split(",") if (word := part.strip())))


def _number(text: str) -> int:
    plain = text.replace(",", "").replace("_", "")
    if not plain.isdecimal():
        raise ValueError(tr("`{text}` is no whole number", text=text))
    return int(plain)


def _search(text: str) -> tuple[SearchProvider, ...]:
    """Engines in their order, such as `searxng https://host, google KEY_VARIABLE ENGINE_VARIABLE, duckduckgo`."""
    return tuple(_provider(part.split()) for part in text.split(",") if part.strip())


def _provider(words: list[str]) -> SearchProvider:
    names = [str(engine) for engine in SearchEngine]
    if words[0].lower() not in names:
        raise ValueError(tr("`{word}` is none of {names}", word=words[0], names=", ".join(names)))
    engine, rest = SearchEngine(words[0].lower()), words[1:]
    url = rest.pop(0) if rest and "://" in rest[0] else None
    if len(rest) not in ({2} if engine is SearchEngine.GOOGLE else {0}):
        wanted = {"google": "google KEY_VARIABLE ENGINE_VARIABLE", "searxng": "searxng https://host"}
        raise ValueError(tr("this is written `{example}`", example=wanted.get(words[0].lower(), words[0])))
    return SearchProvider(engine, url, *rest)


def _search_text(providers: object) -> str:
    rows = cast("tuple[SearchProvider, ...]", providers)
    return ", ".join(" ".join(filter(None, (str(r.engine), r.url, r.api_key_env, r.engine_id_env))) for r in rows)


def _groups(text: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for part in filter(str.strip, text.split(";")):
        name, colon, agents = part.partition(":")
        if not colon or not _split(agents):
            raise ValueError(tr("groups are written `desk: archivist, researcher; night: operator`"))
        found[name.strip()] = _split(agents)
    return found


def _groups_text(groups: object) -> str:
    held = cast("Mapping[str, tuple[str, ...]]", groups)
    return "; ".join(f"{name}: {', '.join(agents)}" for name, agents in held.items())


def _join(words: object) -> str:
    return ", ".join(cast("tuple[str, ...]", words))


_READ: dict[Kind, Callable[[str], object]] = {
    "words": _split, "agents": _split, "commands": _split, "number": _number, "duration": parse_duration_words,
    "search": _search, "groups": _groups,
}  # fmt: skip
_SHOWN: dict[Kind, Callable[[Any], str]] = {
    "words": _join, "agents": _join, "commands": _join, "number": "{:,}".format, "duration": duration_words,
    "search": _search_text, "groups": _groups_text,
}  # fmt: skip
_KINDS: dict[str, Kind] = {"string": "text", "array": "words", "boolean": "flag", "integer": "number"}


def _tier(key: str, label: str) -> Setting:
    usual = TIER_DEFAULTS[SafetyTier(key)]
    return Setting(
        ("defaults", "approvals", key),
        label,
        mark("what an agent without a rule of its own gets"),
        choices=((_USUAL[usual], None), *_SWITCHES),
        effects=(_EFFECTS[usual], *(_EFFECTS[verdict] for _, verdict in _VERDICTS)),
    )


COMMANDS = (
    "cat", "cargo build", "cargo test", "docker compose", "find", "gh pr list", "gh pr view", "git add", "git branch",
    "git commit", "git diff", "git log", "git push", "git push --force", "git reset --hard", "git show", "git status",
    "go test", "grep", "head", "ls", "make", "npm install", "npm publish", "npm run build", "npm run lint",
    "npm run test:*", "npm test", "pnpm install", "pytest", "python -m pytest", "rg", "rm", "rm -rf", "sudo", "tail",
    "uv run pytest", "wc", "yarn test",
)  # fmt: skip
"""Commands that fields complete, by their first words."""


def _of(*path: str) -> Callable[..., Setting]:
    def setting(key: str, label: str, hint: str, own: Kind | None = None, **more: Any) -> Setting:
        return Setting((*path, key), label, hint, own, **more)

    return setting


_defaults, _roots, _shell, _web = _of("defaults"), _of("roots"), _of("shell"), _of("web")
_discord, _bluesky = _of("endpoints", "discord"), _of("endpoints", "bluesky")
SECTIONS = (
    Section("workspace", mark("Workspace"), mark("What it is called, and what no tool of any kind touches."), (
        Setting(("name",), mark("Name"), mark("the name of its folder")),
        Setting(("description",), mark("Description"), mark("what it is for")),
        Setting(("closed",), mark("Closed places"), mark("none; such as ~/.ssh, docs/private: no tool touches them")),
    )),
    Section("defaults", mark("Defaults"), mark("What holds where an agent, a tool or a rule says nothing else."), (
        Setting(("default",), mark("Calls that no rule covers"), mark("what they get"), choices=_VERDICTS,
                effects=(mark("They go on; levels of files and what asks first hold."),
                         mark("You are asked before each."), mark("They are refused."))),
        _defaults("unlisted_tools", mark("Agents without a list of tools"), mark("what they get of all tools"),
                  choices=((mark("every tool"), Verdict.ALLOW), (mark("no tool"), Verdict.DENY)),
                  effects=(mark("They may use every tool."), mark("They can use nothing until you list it."))),
        _defaults("new_tools", mark("New tools for such agents"), mark("tools that come in later"),
                  choices=((mark("off until you turn them on"), "hold"), (mark("on at once"), "allow")),
                  effects=(mark("Nothing new works by itself."), mark("Agents can use them before you looked."))),
        _tier("read_only", mark("Calls that only read")),
        _tier("side_effecting", mark("Calls that change something")),
        _tier("privileged", mark("Calls marked privileged")),
        _defaults("max_output_bytes", mark("Longest result"), mark("bytes")),
        _defaults("timeout_s", mark("Time limit of a call"), mark("each tool's own")),
        _defaults("check_formats", mark("Check formats"), mark("a date, an address or a link must be one")),
    )),
    Section("roots", mark("Folders for file tools"),
            mark("Agents know them as shared, tmp and vault."), (
        _roots("shared", mark("To read and write"), mark("no such folder")),
        _roots("tmp", mark("For temporary files"), mark("no such folder")),
        _roots("vault", mark("Only to copy from"), mark("no such folder")),
    )),
    Section("shell", mark("Shell commands"), mark("What agents may start with the tool shell_exec."), (
        _shell("backend", mark("Commands"), mark("who runs them"), choices=(
            (mark("are not run"), ShellBackend.DISABLED), (mark("run by themselves"), ShellBackend.HOST),
            (mark("run in one shell for each session"), ShellBackend.SESSION),
        ), effects=(
            mark("No agent can run a command."), mark("Each starts afresh in its folder."),
            mark("Folder and variables stay from command to command."),
        )),
        _shell("allow", mark("Allowed commands"), mark("none; such as ls, git status, npm run test:*, *"), "commands"),
        _shell("ask", mark("Commands that ask first"), mark("none; such as git push; beats what is allowed"),
               "commands"),
        _shell("deny", mark("Denied commands"), mark("none; such as rm, git push --force; beats all others"),
               "commands"),
        _shell("allow_substitution", mark("Allow commands within commands"), mark("$(...) and `...`")),
    )),
    Section("web", mark("Web"), mark("What the web tools may reach, and who is asked to search."), (
        _web("allow_private", mark("Allow private addresses"), mark("this machine and local networks")),
        _web("search", mark("Search engines, in order"), mark("duckduckgo"), "search"),
    )),
    Section("questions", mark("Questions"), mark("How long a call waits for an answer, and who answers by a link."), (
        Setting(("questions", "wait_s"), mark("Wait at most"), mark("7 d")),
        Setting(("questions", "remind_s"), mark("Remind after"), mark("1 d")),
        Setting(("questions", "answer_by"), mark("Who answers by a link"),
                mark("nobody; such as mailto:ann@example.org, slack:OPS_WEBHOOK"), "words"),
        Setting(("questions", "link_base"), mark("Links begin with"), mark("no links; such as https://gate.example.org/a")),
    )),
    Section("messages", mark("Messages"), mark("Where send_message may send to."), (
        Setting(("endpoints", "user"), mark("To the user"), mark("the program that runs the agents shows them"),
                "flag"),
        Setting(("endpoints", "groups"), mark("Groups of agents"), mark("none; such as desk: archivist, clerk"),
                "groups"),
    )),
    Section("agent", mark("Messages to agents"), mark("Into the inbox of another agent."), (
        Setting(("endpoints", "agent", "agents"), mark("Agents"), mark("all agents"), "agents"),
    ), ("endpoints", "agent"), AgentEndpoint),
    Section("discord", mark("Messages on Discord"), mark("To channels, by a bot. It connects once it is trusted."), (
        _discord("token_env", mark("Token"), mark("the environment variable with the bot's token")),
        _discord("channels", mark("Channels"), mark("all that Discord lets it; ids separated by commas")),
    ), ("endpoints", "discord"), DiscordEndpoint),
    Section("bluesky", mark("Messages on Bluesky"),
            mark("Public posts that mention an account. It connects once it is trusted."), (
        _bluesky("handle", mark("Account"), mark("such as desk.example.com")),
        _bluesky("password_env", mark("Password"), mark("the environment variable with the app password")),
        _bluesky("handles", mark("To accounts"), mark("any; handles separated by commas")),
    ), ("endpoints", "bluesky"), BlueskyEndpoint),
)  # fmt: skip
"""In the order in which they are shown."""
