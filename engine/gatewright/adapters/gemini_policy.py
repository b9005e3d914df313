"""Turns what limits Gemini CLI (`settings.json`, policies in TOML) into a policy that is at most as open.

There the rule of the highest priority counts. Here the strictest one does of those that stand above the first rule for
all calls of a tool, so that the order of the others cannot matter.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gatewright.adapters.host_rules import EVERYTHING, Command, Draft, Migrated, Places, Tail, read_command
from gatewright.base.errors import WorkspaceError, shown
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, read_json
from gatewright.policy.verdict import EVERY_HOST, Verdict

_DECISIONS = {"allow": Verdict.ALLOW, "ask_user": Verdict.ASK, "deny": Verdict.DENY}
_STRICTNESS = (Verdict.ALLOW, Verdict.ASK, Verdict.DENY)
_SHELL = "run_shell_command"
_READING, _CHANGING = ("read_file", "read_many_files"), ("write_file", "replace")
_LISTING = ("list_directory", "glob", "grep_search")
_TOOLS = (*_READING, *_CHANGING, *_LISTING, "web_fetch", _SHELL)
_NAMES = {
    "ShellTool": _SHELL, "ReadFileTool": "read_file", "WriteFileTool": "write_file", "EditTool": "replace",
    "edit": "replace", "ls": "list_directory", "LSTool": "list_directory", "GlobTool": "glob",
    "search_file_content": "grep_search", "GrepTool": "grep_search", "ReadManyFilesTool": "read_many_files",
    "WebFetchTool": "web_fetch",
}  # fmt: skip
"""Older names of its tools."""
_DEFAULTS = dict.fromkeys((*_READING, *_LISTING), Verdict.ALLOW)
_CALL = re.compile(r"([A-Za-z_]\w*)(?:\((.*)\))?", re.DOTALL)
_PART = re.compile(r'("file_path":"(?:\.\*|\[\^"\]\*)?)?(?:\.\*)?((?:\\[.\-]|[A-Za-z0-9_-])+)(?:\.\*|"|\$)?')
"""A pattern of arguments that is a text alone, perhaps behind the name of the argument."""
_OTHER_TEXTS = '{"file_path":"","start_line":1,"end_line":1,"include":[],"exclude":[],"recursive":true,"false":null}'
_LIMITS = ("exclude", "confirmationRequired", "allowed")
_OLDER = {"excludeTools": "exclude", "allowedTools": "allowed", "coreTools": "core"}


class _Rule(BaseModel):
    model_config = ConfigDict(extra="allow", hide_input_in_errors=True)

    decision: str
    priority: float = 0
    tool: str | list[str] | None = Field(None, alias="toolName")
    server: str | None = Field(None, alias="mcpName")
    args: str | None = Field(None, alias="argsPattern")
    prefix: str | list[str] | None = Field(None, alias="commandPrefix")
    regex: str | None = Field(None, alias="commandRegex")
    modes: list[str] | None = None


@frozen
class _Said:
    """A rule about one tool. ``command``, ``part``: the calls that it is about; neither: all.

    ``is_always``: it counts in every state of the host. ``is_clear``: the calls are known.
    """

    tool: str
    verdict: Verdict
    priority: float
    text: str
    command: Command | None = None
    part: str = ""
    is_always: bool = True
    is_clear: bool = True

    @property
    def is_all(self) -> bool:
        """True if it is about every call of the tool."""
        return self.is_clear and self.command is None and not self.part


def read_gemini_policy(settings: Iterable[str], policies: Iterable[str], *, agent_id: str, places: Places) -> Migrated:
    """Read settings and files of rules as the policy of one agent. Raises WorkspaceError."""
    draft = Draft(agent_id, "Gemini CLI", places)
    sources: list[list[_Said]] = []
    core: list[str] | None = None
    for text in settings:
        held = read_json(text)
        if not isinstance(held, dict):
            raise WorkspaceError("they are no settings of Gemini CLI")
        said, mine = _settings(held, draft)
        sources.append(said)
        core = mine if core is None or mine is None else [one for one in mine if one in core]
    sources += [list(_policy(text, draft)) for text in policies]
    _Judge(draft, places, sources, core).judge()
    return draft.finish()


def _settings(held: Mapping[str, JsonValue], draft: Draft) -> tuple[list[_Said], list[str] | None]:
    """Return what settings say, and the tools that exist at all; None for all. Raises WorkspaceError."""
    tools = held.get("tools", {})
    lists: dict[str, JsonValue] = dict(tools) if isinstance(tools, dict) else {}
    lists |= {_OLDER[key]: value for key, value in held.items() if key in _OLDER}
    found: list[_Said] = []
    for key in (*_LIMITS, "core"):
        if key in lists and not _is_texts(lists[key]):
            raise WorkspaceError(f"`tools.{key}` is not as Gemini CLI writes it")
    verdicts = (Verdict.DENY, Verdict.ASK, Verdict.ALLOW)
    for key, verdict, priority in zip(_LIMITS, verdicts, (3, 2, 1), strict=True):
        for text in cast("list[str]", lists.get(key, [])):
            call = _CALL.fullmatch(text.strip())
            if call is None:
                draft.lose(text, verdict, "is no rule that can be read")
                if verdict is not Verdict.ALLOW:
                    draft.close_all()
                continue
            name = _NAMES.get(call[1], call[1])
            command = None if call[2] is None else _prefix(call[2])
            found += [_Said(tool, verdict, priority, text, command) for tool in _tools(name, None)]
            if not any(_tools(name, None)):
                draft.lose(text, verdict, f"concerns nothing here: no tool is called {shown(call[1])}")
    if held.get("hooks"):
        draft.asks |= {"file", "shell_exec", "web_fetch"}
        draft.notes.append("`hooks` may forbid calls, and do not run here: every call asks first")
    for key in ("mcp", "mcpServers", "policyPaths", "adminPolicyPaths", "excludeMCPServers", "allowMCPServers"):
        if held.get(key):
            draft.notes.append(f"`{key}` is not taken over here")
    return found, cast("list[str] | None", lists.get("core"))


def _is_texts(value: JsonValue) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _prefix(text: str) -> Command:
    """Return the commands that begin with a text, at the end of a word."""
    return read_command(f"{text.removesuffix('*').removesuffix(':').rstrip()} *")


def _tools(name: str | None, server: str | None) -> Iterator[str]:
    """Yield our side of a tool's name, which may hold `*`."""
    if server not in {None, "*"} or (name or "").startswith("mcp_"):
        return
    pattern = re.escape(_NAMES.get(name or "*", name or "*")).replace(r"\*", ".*")
    yield from (tool for tool in _TOOLS if re.fullmatch(pattern, tool))


def _policy(text: str, draft: Draft) -> Iterator[_Said]:
    """Yield what a file of rules says. Raises WorkspaceError."""
    try:
        rows: Any = tomllib.loads(text).get("rule", [])
        rules = [_Rule.model_validate(row) for row in rows]
    except tomllib.TOMLDecodeError as error:
        raise WorkspaceError(f"it is not TOML: {error}") from None
    except (ValidationError, TypeError):
        raise WorkspaceError("a `[[rule]]` is not as Gemini CLI writes it") from None
    for rule in rules:
        if rule.decision not in _DECISIONS:
            raise WorkspaceError(f"{shown(rule.decision)} is no decision of Gemini CLI")
        yield from _of_rule(rule, draft)


def _of_rule(rule: _Rule, draft: Draft) -> Iterator[_Said]:
    verdict = _DECISIONS[rule.decision]
    names = rule.tool if isinstance(rule.tool, list) else [rule.tool]
    prefixes = rule.prefix if isinstance(rule.prefix, list) else [rule.prefix] if rule.prefix is not None else []
    others = (rule.model_extra or {}).keys() & {"subagent", "toolAnnotations", "interactive"}
    is_always = not others and (rule.modes is None or "default" in rule.modes)
    text = ", ".join(str(one) for one in (*names, *prefixes, rule.regex, rule.args, rule.server) if one)
    tools = dict.fromkeys(tool for name in names for tool in _tools(name, rule.server))
    if not tools:
        draft.lose(text, verdict, "concerns nothing here: the tools of servers are off")
    for tool in tools:
        base = _Said(tool, verdict, rule.priority, text, is_always=is_always)
        if tool == _SHELL and prefixes:
            yield from (replace(base, command=_prefix(one)) for one in prefixes)
        elif tool == _SHELL and rule.regex is not None:
            literal = re.match(r"[A-Za-z0-9_ -]*(?![*+?{|])", rule.regex)
            begins = "" if literal is None or "|" in rule.regex else literal[0]
            yield replace(base, command=Command(_whole_words(begins), Tail.UNCLEAR, begins))
        elif rule.args is not None:
            part = _PART.fullmatch(rule.args)
            is_clear = part is not None and (part[1] is not None or tool in _READING)
            yield replace(base, part=re.sub(r"\\(.)", r"\1", part[2]) if part and is_clear else "", is_clear=is_clear)
        elif not prefixes and rule.regex is None:
            yield base


def _whole_words(text: str) -> tuple[str, ...]:
    """Return the words of the beginning of a command that are surely whole."""
    return tuple(text.rpartition(" ")[0].split())


class _Judge:
    """Takes the rules tool by tool."""

    def __init__(
        self, draft: Draft, places: Places, sources: Sequence[Sequence[_Said]], core: Sequence[str] | None
    ) -> None:
        self._draft, self._places, self._sources, self._core = draft, places, sources, core

    def judge(self) -> None:
        """Add every tool to the draft."""
        draft = self._draft
        reading, changing = self._files(_READING, draft.read), self._files(_CHANGING, draft.change)
        if reading is Verdict.DENY:
            draft.read(reading, EVERYTHING, "reading")
        elif reading is Verdict.ASK:
            draft.asks |= {"file.read", "file.load"}
        if changing is not Verdict.ASK:
            draft.change(changing, EVERYTHING, "writing")
        for tool in _LISTING:
            rest, some = self._said(tool)
            draft.lists = draft.lists and rest is Verdict.ALLOW and all(one.verdict is Verdict.ALLOW for one in some)
        rest, some = self._said("web_fetch")
        limits = [one.verdict for one in some if one.verdict is not Verdict.ALLOW]
        draft.fetch(max((rest, *limits), key=_STRICTNESS.index), EVERY_HOST, "web_fetch")
        self._commands()

    def _said(self, tool: str) -> tuple[Verdict, list[_Said]]:
        """Return the verdict on a call without a rule of its own, and the rules about some calls that count."""
        rests: list[Verdict | None] = []
        alive_of: list[list[_Said]] = []
        for source in self._sources:
            mine = [one for one in source if one.tool == tool and (one.is_always or one.verdict is not Verdict.ALLOW)]
            floor = max((one.priority for one in mine if one.is_all and one.is_always), default=float("-inf"))
            alive = [one for one in mine if one.priority >= floor]
            rests.append(max((one.verdict for one in alive if one.is_all), key=_STRICTNESS.index, default=None))
            alive_of.append([one for one in alive if not one.is_all])
        names = None if self._core is None else {_CALL.sub(r"\1", one.strip()) for one in self._core}
        if names is not None and tool not in {_NAMES.get(name, name) for name in names}:
            rests.append(Verdict.DENY)
        some: list[_Said] = []
        for at, alive in enumerate(alive_of):
            is_free = all(rest in {None, Verdict.ALLOW} for rest in (*rests[:at], *rests[at + 1 :]))
            for one in alive:
                if is_free or one.verdict is not Verdict.ALLOW:
                    some.append(one)
                else:
                    self._draft.lose(
                        one.text, one.verdict, "is not taken over: another file says otherwise of all calls"
                    )
        known = [rest for rest in rests if rest is not None]
        return max(known or [_DEFAULTS.get(tool, Verdict.ASK)], key=_STRICTNESS.index), some

    def _files(self, tools: Iterable[str], take: Callable[[Verdict, str, str], None]) -> Verdict:
        """Take the rules about some files; return the verdict on the others."""
        found: list[Verdict] = []
        for tool in tools:
            rest, some = self._said(tool)
            found.append(rest)
            for one in some:
                if one.verdict is Verdict.ALLOW:
                    self._draft.lose(one.text, one.verdict, "is not taken over: name the files in the levels")
                elif not one.is_clear:
                    found.append(one.verdict)
                    self._draft.lose(one.text, one.verdict, "holds for every file")
                else:
                    is_wide = one.part in _OTHER_TEXTS or any(one.part in folder for folder in self._places.project)
                    take(one.verdict, EVERYTHING if is_wide else f"*{one.part}*", one.text)
        return max(found, key=_STRICTNESS.index)

    def _commands(self) -> None:
        draft = self._draft
        rest, some = self._said(_SHELL)
        only = [_prefix(call[2]) for one in self._core or () if (call := _CALL.fullmatch(one.strip())) and call[2]]
        only = [] if any(_NAMES.get(one.strip(), one.strip()) == _SHELL for one in self._core or ()) else only
        for one in some:
            if one.command is None:
                draft.run(one.verdict, Command(tail=Tail.UNCLEAR), one.text)
            elif one.verdict is not Verdict.ALLOW:
                draft.run(one.verdict, one.command, one.text)
            elif only and not any(one.command.words[: len(each.words)] == each.words for each in only):
                draft.lose(one.text, one.verdict, "is not taken over: `tools.core` has other commands")
            else:
                draft.run(one.verdict, one.command, one.text)
        if only:
            draft.others = Verdict.DENY
            for each in only:
                draft.run(Verdict.ASK, each, "tools.core")
        elif rest is Verdict.ALLOW:
            draft.run(rest, Command(), _SHELL)
        elif any(one.tool == _SHELL for source in self._sources for one in source):
            draft.others, draft.asks_alone = rest, True
