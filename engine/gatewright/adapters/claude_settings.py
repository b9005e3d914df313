"""Turns the permission rules of Claude Code (`.claude/settings.json`) into a policy that is at most as open.

Leaving out a rule opens something, unless the rule allowed something. So a setting is ignored only if it surely forbids
nothing, and a forbidding pattern only if it surely concerns files outside. In Claude Code, deny comes before ask before
allow; a path without a rule is free to read and asks before a change. Here the first matching pattern decides, so the
strictest rules come first. A rule without an exact equivalent becomes stricter, or is left out with a note.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gatewright.base.errors import WorkspaceError, near_miss, shown
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import members, read_json
from gatewright.policy.callrule import AllowedOperations
from gatewright.policy.capability import Exec, NetRead
from gatewright.policy.document import (
    Agent,
    Defaults,
    PermissionRule,
    Policy,
    Roots,
    ShellBackend,
    ShellSettings,
    Source,
)
from gatewright.policy.glob import PermissionRules, check_pattern
from gatewright.policy.rule import ToolRule
from gatewright.policy.verdict import EVERY_HOST, Permission, Verdict, check_host_pattern, host_matches

_PERMISSIONS = frozenset(
    {"allow", "ask", "deny", "defaultMode", "additionalDirectories", "disableBypassPermissionsMode"}
)
_LIMITING = ("permissions", "hooks", "sandbox", "disabledMcpjsonServers", "deny", "ask", "allow", "defaultMode")
_LIMITING_WORDS = re.compile(
    r"den(?:y|ied)|disallow|block|restrict|forbid|exclude|ignore|sandbox|hook|perm|managed|disabledmcp|allowedmcp"
)
_FREE = frozenset(
    {
        "$schema", "model", "env", "apiKeyHelper", "cleanupPeriodDays", "includeCoAuthoredBy", "attribution",
        "statusLine", "outputStyle", "enableAllProjectMcpServers", "enabledMcpjsonServers", "enabledPlugins",
        "alwaysThinkingEnabled", "disableAllHooks", "skipDangerousModePermissionPrompt",
    }
)  # fmt: skip
"""Settings that forbid nothing."""
_FREE_HOOKS = frozenset(
    {
        "PostToolUse", "PostToolUseFailure", "Notification", "Stop", "SubagentStart", "SubagentStop", "SessionStart",
        "SessionEnd", "PreCompact",
    }
)  # fmt: skip
"""Events whose hooks cannot forbid a call."""
_DOTS = frozenset({".", ".."})
_WILD = re.compile(r"[*?\[\\]")


def untold_limits(text: str) -> Iterator[str]:
    """Yield each setting of a file that may forbid something and is no rule that can be taken over.

    Raises WorkspaceError for a text that is not JSON.
    """
    read_json(text)
    top = members(text)
    inside = members(text, ("permissions",))
    for each, where in ((top, ""), (inside, "permissions.")):
        keys = [member.key for member in each]
        for member in each:
            line = text.count("\n", 0, member.start) + 1
            name = f"{shown(where + member.key)} (line {line})"
            if keys.count(member.key) > 1:
                yield f"{name} stands twice"
            elif where and member.key not in _PERMISSIONS:
                yield f"{name} is an unknown key"
            elif not where and member.key == "hooks":
                yield from _hooks(text, name)
            elif not where and member.key != "permissions" and _may_limit(member.key):
                value = text[member.value : member.end].strip()
                if value not in {"[]", "{}", "null"}:
                    yield f"{name} may forbid something"


def _hooks(text: str, name: str) -> Iterator[str]:
    """Yield the hooks that may forbid a call."""
    for member in members(text, ("hooks",)):
        if member.key not in _FREE_HOOKS and text[member.value : member.end].strip() not in {"[]", "{}"}:
            yield f"{name}: {shown(member.key)} may forbid something"


def _may_limit(key: str) -> bool:
    if key in _FREE:
        return False
    return near_miss(key, _LIMITING) is not None or _LIMITING_WORDS.search(key.casefold()) is not None


def unsure_place(said: str, *, project: Sequence[str], home: str, real: Callable[[str], str]) -> str | None:
    """Explain why a forbidding pattern may concern more of the project than the policy can express; None if it does
    not.

    ``project``: its folder in each known spelling; ``real``: resolves the links of a path.
    """
    if said == "~" or (said.startswith("~") and not said.startswith("~/")):
        return "it names a home folder by itself"
    if said.startswith("~/"):
        said = f"/{home}{said[1:]}"
    if not said.startswith("//"):
        return None
    steps = [step for step in said.split("/") if step]
    if not _DOTS.isdisjoint(steps):
        return "it has a `.` or `..` within"
    plain = next((index for index, step in enumerate(steps) if _WILD.search(step)), len(steps))
    begins = "/" + "/".join(steps[:plain])
    led = real(begins)
    spellings = {"/".join(["", *steps]), "/".join([led.rstrip("/"), *steps[plain:]])}
    folders = {"/" + folder.strip("/") for folder in project} | {real("/" + folder.strip("/")) for folder in project}
    closes_all = steps[-1:] in (["*"], ["**"])
    if (
        plain < len(steps)
        and not closes_all
        and any(_matches(pattern, folder) for pattern in spellings for folder in folders)
    ):
        return "it matches the project's folder, or one above it"
    first = "/" + project[0].strip("/")
    if not _may_match(begins, {first}) and (_may_match(begins, folders) or _may_match(led, folders)):
        return "it names the project's folder by another way"
    return None


def _matches(pattern: str, folder: str) -> bool:
    """Tell whether a pattern from the root matches a folder, or one above it."""
    if check_pattern(pattern) is not None:
        return True
    rules = PermissionRules([PermissionRule(pattern, Permission.NONE)], Permission.ADMIN)
    return rules.level(folder.strip("/") + "/") is Permission.NONE


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _may_match(begins: str, folders: set[str]) -> bool:
    """Tell whether a pattern with that beginning may match something in one of the folders."""
    return any(_is_within(begins, folder) or _is_within(folder, begins) for folder in folders)


SOURCE_ID = "project"
_RULE = re.compile(r"([A-Za-z_][\w-]*)(?:\((.*)\))?", re.DOTALL)
_FROM_THERE = re.compile(r"\w+\(/(?!/)")
_PROGRAM = re.compile(r"([A-Za-z0-9_.+-]+)(?::| )\*")
_NAME = re.compile(r"[A-Za-z0-9_.+-]+(?=[ :]|$)")
_EDITING = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
_LISTING = frozenset({"Glob", "Grep", "LS"})
_READING = ("read", "list", "status", "diff", "load", "reload")
_CHANGING = ("append", "create", "insert", "replace", "save")
_UNANSWERED = {"plan": "that mode changes nothing", "dontAsk": "that mode denies what no rule allows"}
"""Modes that ask nobody."""


class _Permissions(BaseModel):
    model_config = ConfigDict(strict=True)

    allow: list[str] = []
    ask: list[str] = []
    deny: list[str] = []
    default_mode: str = Field("default", alias="defaultMode")
    more_folders: list[str] = Field([], alias="additionalDirectories")


class _Settings(BaseModel):
    model_config = ConfigDict(strict=True)

    permissions: _Permissions | None = None


@frozen
class Migrated:
    """A policy, and a sentence for each part of the original that the policy lacks."""

    policy: Policy
    notes: tuple[str, ...]


@frozen
class _Rule:
    verdict: Verdict
    tool: str
    scope: str | None
    text: str


def read_claude_settings(
    texts: Iterable[str],
    *,
    agent_id: str,
    project: str,
    home: str,
    elsewhere: Iterable[str] = (),
    spellings: Iterable[str] = (),
    real: Callable[[str], str] = str,
) -> Migrated:
    """Read settings files as the policy of one agent on the files of ``project``, an absolute path.

    ``elsewhere``: settings outside the project, where `/` starts at another folder. ``~/`` in a pattern means ``home``.
    ``spellings``: other names of the project's folder; ``real``: resolves the links of a path. Raises WorkspaceError
    for any other file, for settings without rules, and for a rule that forbids more than a policy can express.
    """
    try:
        settings = [[_Settings.model_validate(read_json(text)) for text in some] for some in (texts, elsewhere)]
    except ValidationError:
        raise WorkspaceError("its `permissions` are not as Claude Code writes them") from None
    mine, others = [[one.permissions for one in some if one.permissions is not None] for some in settings]
    read = [*mine, *others]
    if not read:
        raise WorkspaceError("there are no `permissions` as Claude Code writes them")
    notes: list[str] = []
    foreign = dict.fromkeys(word for one in others for word in one.allow if _FROM_THERE.match(word.strip()))
    notes += [f"{shown(word)} (allow) is about another folder than the project's" for word in foreign]
    rules: list[_Rule] = []
    is_whole = True
    for verdict, words in (
        (Verdict.DENY, [word for one in read for word in one.deny]),
        (Verdict.ASK, [word for one in read for word in one.ask]),
        (Verdict.ALLOW, [word for one in mine for word in one.allow]),
        (Verdict.ALLOW, [word for one in others for word in one.allow if word not in foreign]),
    ):
        for text in dict.fromkeys(words):
            found = _RULE.fullmatch(text.strip())
            if found is not None:
                rules.append(_Rule(verdict, found[1], found[2] or None, text))
                continue
            left = "it allows nothing here" if verdict is Verdict.ALLOW else "so every file is closed"
            notes.append(f"{shown(text)} ({verdict}) is no rule that can be read: {left}")
            is_whole = is_whole and verdict is Verdict.ALLOW
    _refuse_unsure(rules, (project, *spellings), home, real)
    modes = {one.default_mode for one in read}
    files = _Files(project, home, modes, notes)
    patterns = files.rules(rules)
    hosts = _hosts(rules, notes)
    if hosts and not is_whole:
        unread = next(note for note in notes if note.endswith("so every file is closed"))
        raise WorkspaceError(f"{unread.partition(':')[0]}, and may be about hosts that another rule allows")
    shell = _shell(rules, notes) if is_whole and "plan" not in modes else ShellSettings()
    _tell_others(rules, notes)
    notes += [f"the folder {shown(one)} is not added: make it a source" for each in read for one in each.more_folders]
    operations = [*_READING, *_CHANGING]
    if any(rule.tool in _LISTING and rule.verdict is not Verdict.ALLOW for rule in rules):
        operations.remove("list")
    agent = Agent(
        agent_id,
        description="From the settings of Claude Code",
        tools=("file", *(("web_fetch",) if hosts else ()), *(("shell_exec",) if shell.allow else ())),
        sources=(SOURCE_ID,),
        tool_rules=(ToolRule("file", AllowedOperations(frozenset(operations))),),
        capabilities=(*((NetRead(hosts),) if hosts else ()), *((Exec(),) if shell.allow else ())),
    )
    return Migrated(
        Policy(
            defaults=Defaults(unlisted_tools=Verdict.DENY),
            agents={agent_id: agent},
            sources=(Source(SOURCE_ID, ".", *((files.default, patterns) if is_whole else (Permission.NONE, ()))),),
            roots=Roots(shared=".") if shell.allow else Roots(),
            shell=shell,
        ),
        tuple(notes),
    )


def _refuse_unsure(rules: Sequence[_Rule], project: Sequence[str], home: str, real: Callable[[str], str]) -> None:
    """Raise WorkspaceError if the policy might open something that a rule forbids."""
    for rule in rules:
        if rule.verdict is not Verdict.ALLOW and rule.tool in {"Read", *_EDITING} and rule.scope:
            why = unsure_place(rule.scope, project=project, home=home, real=real)
            if why is not None:
                raise WorkspaceError(f"{shown(rule.text)} ({rule.verdict}) cannot be taken over: {why}")


class _Files:
    """The rules about files, as levels."""

    def __init__(self, project: str, home: str, modes: set[str], notes: list[str]) -> None:
        self._project = [part for part in project.split("/") if part]
        self._home, self._notes = home.rstrip("/"), notes
        mode = next((one for one in _UNANSWERED if one in modes), None)
        self._asking = Permission.PARTNER if mode is None else Permission.READ_ONLY
        self._allowing = Permission.READ_ONLY if mode == "plan" else Permission.READ_WRITE
        if mode is not None:
            notes.append(f"`defaultMode` is `{mode}`: {_UNANSWERED[mode]}, and so it is here")
        others = sorted(modes - {"default", *_UNANSWERED})
        notes += [f"`defaultMode` {shown(one)} is not taken over: what no rule allows asks first" for one in others]

    @property
    def default(self) -> Permission:
        """The level of a file without a rule."""
        return self._asking

    def rules(self, rules: Sequence[_Rule]) -> tuple[PermissionRule, ...]:
        """Return the levels by pattern, the strictest first."""
        found: dict[Permission, dict[str, str]] = {
            level: {} for level in (Permission.NONE, Permission.READ_ONLY, self._asking, self._allowing)
        }
        for rule in rules:
            level = self._level(rule)
            if level is not None and (pattern := self._pattern(rule)) is not None:
                found[level].setdefault(pattern, rule.text)
        return tuple(
            PermissionRule(pattern, level, f"{text}"[:200])
            for level, patterns in found.items()
            for pattern, text in patterns.items()
        )

    def _level(self, rule: _Rule) -> Permission | None:
        match rule.tool, rule.verdict:
            case "Read", Verdict.DENY:
                return Permission.NONE
            case "Read", Verdict.ASK:
                self._notes.append(f"{shown(rule.text)} (ask): no level asks before reading, so it is closed")
                return Permission.NONE
            case "Edit", Verdict.ALLOW:
                return self._allowing
            case tool, Verdict.DENY if tool in _EDITING:
                return Permission.READ_ONLY
            case tool, Verdict.ASK if tool in _EDITING:
                return self._asking
            case tool, Verdict.ALLOW if tool in _EDITING:
                self._notes.append(f"{shown(rule.text)} (allow) asks first here: only `Edit` allows changes of a file")
            case _:
                pass
        return None

    def _pattern(self, rule: _Rule) -> str | None:
        """Return the pattern below the project that forbids at least as much, or allows at most as much, as the
        original.
        """
        said = rule.scope or "**"
        forbids = rule.verdict is not Verdict.ALLOW
        pattern = self._place(said, forbids=forbids)
        if pattern is not None and check_pattern(pattern) is None:
            return pattern
        if not forbids:
            self._notes.append(f"{shown(rule.text)} (allow) cannot be said below the project: it asks first here")
            return None
        if pattern is None:
            self._notes.append(f"{shown(rule.text)} ({rule.verdict}) is about files outside, which are closed anyway")
            return None
        self._notes.append(f"{shown(rule.text)} ({rule.verdict}) cannot be said here, so it closes every file")
        return "**"

    def _place(self, said: str, *, forbids: bool) -> str | None:
        """Return the pattern below the project; None if it matches nothing there."""
        if said.startswith("~/"):
            said = f"/{self._home}{said[1:]}"
        if said.startswith("./"):
            return said[2:] if forbids else f"/{said[2:]}"
        if not said.startswith("//"):
            return said
        steps = [step for step in said.split("/") if step]
        for index, step in enumerate(steps[: len(self._project)]):
            if re.search(r"[*?\[\\]", step) or step in {".", ".."}:
                return steps[-1] if forbids else None
            if step != self._project[index]:
                return None
        inside = steps[len(self._project) :]
        return f"/{'/'.join(inside)}{'/' * said.endswith('/')}" if inside else "**"


def _hosts(rules: Sequence[_Rule], notes: list[str]) -> tuple[str, ...]:
    """Collect the hosts whose pages the agent may fetch."""
    mine = [rule for rule in rules if rule.tool == "WebFetch"]
    limits = [rule for rule in mine if rule.verdict is not Verdict.ALLOW]
    found: list[str] = []
    for rule in mine:
        if rule.verdict is not Verdict.ALLOW:
            continue
        host = (rule.scope or f"domain:{EVERY_HOST}").partition("domain:")[2]
        is_exact = host == EVERY_HOST or ("*" not in host and ":" not in host)
        if not is_exact or check_host_pattern(host) or any(_may_meet(limit.scope, host) for limit in limits):
            notes.append(f"{shown(rule.text)} (allow) is not taken over: name the hosts in `NetRead`")
        elif host not in found:
            found.append(host)
    return tuple(found)


def _may_meet(scope: str | None, host: str) -> bool:
    """Tell whether a forbidding rule may concern a host that another rule allows."""
    limit = (scope or "").partition("domain:")[2]
    if not limit or host == EVERY_HOST or check_host_pattern(limit) or "*" in limit.removeprefix("*."):
        return True
    return host_matches(f"*.{limit.removeprefix('*.')}", host, 443)


def _shell(rules: Sequence[_Rule], notes: list[str]) -> ShellSettings:
    """Collect the programs that are allowed with any arguments, without those that a forbidding or asking rule
    concerns.
    """
    mine = [rule for rule in rules if rule.tool == "Bash"]
    limits = [rule for rule in mine if rule.verdict is not Verdict.ALLOW]
    closed = [found[0] if (found := _NAME.match(rule.scope or "")) else "" for rule in limits]  # "": every program
    for rule, name in zip(limits, closed, strict=True):
        if rule.verdict is Verdict.ASK or rule.scope not in {f"{name}:*", f"{name} *"}:
            what = f"`{name}` is denied whatever its arguments are" if name else "no command is allowed"
            notes.append(f"{shown(rule.text)} ({rule.verdict}) cannot be said here, so {what}")
    allowed: list[str] = []
    for rule in mine:
        if rule.verdict is not Verdict.ALLOW:
            continue
        found = _PROGRAM.fullmatch(rule.scope or "")
        name = found[1] if found else "*" if rule.scope in {None, "*"} else ""
        if not name:
            why = "a program is allowed here with any arguments or not at all"
        elif name == "*" and limits:
            why = "name the programs in `[workspace] shell`, as others are denied"
        elif any(name.startswith(one) for one in closed):
            why = "another rule is about that program"
        else:
            allowed.append(name)
            continue
        notes.append(f"{shown(rule.text)} (allow) is not taken over: {why}")
    denied = dict.fromkeys(name for name in closed if name)
    return (
        ShellSettings(ShellBackend.HOST, tuple(dict.fromkeys(allowed)), tuple(denied)) if allowed else ShellSettings()
    )


def _tell_others(rules: Sequence[_Rule], notes: list[str]) -> None:
    """Note the rules about tools that are off here."""
    for rule in rules:
        if rule.tool in {"Read", "WebFetch", "Bash", *_EDITING, *_LISTING}:
            continue
        if rule.tool.startswith("mcp__"):
            why = "its server is not known here: `gatewright catalog import`, then tick its tools"
        else:
            why = f"no tool here is called `{rule.tool}`"
        notes.append(f"{shown(rule.text)} ({rule.verdict}): {why}")
