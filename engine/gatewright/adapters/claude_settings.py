"""Turns the permission rules of Claude Code (`.claude/settings.json`) into a policy that is at most as open.

In Claude Code, deny comes before ask before allow; a path without a rule is free to read and asks before a change. What
limits a call outside of the rules (hooks, the sandbox, servers) becomes stricter here, and a note names it. Settings
whose meaning is unsure, such as a repeated key, are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gatewright.adapters.host_rules import EVERYTHING, Draft, Migrated, Places, read_command
from gatewright.base.errors import WorkspaceError, near_miss, shown
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, members, read_json
from gatewright.base.pattern import compile_linear
from gatewright.policy.verdict import EVERY_HOST, Permission, Verdict

_PERMISSIONS = frozenset(
    {
        "allow", "ask", "deny", "defaultMode", "additionalDirectories", "disableBypassPermissionsMode",
        "disableAutoMode", "skipDangerousModePermissionPrompt",
    }
)  # fmt: skip
_LIMITING = ("permissions", "deny", "ask", "allow", "defaultMode", "hooks", "sandbox", "disabledMcpjsonServers")
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
_SERVERS = frozenset(
    {"disabledMcpjsonServers", "deniedMcpServers", "allowedMcpServers", "allowManagedMcpServersOnly", "disabledPlugins"}
)
"""Settings about servers, whose tools are off here anyway."""
_FREE_HOOKS = frozenset(
    {
        "PostToolUse", "PostToolUseFailure", "Notification", "Stop", "SubagentStart", "SubagentStop", "SessionStart",
        "SessionEnd", "PreCompact", "PostCompact", "UserPromptSubmit", "TaskCompleted", "InstructionsLoaded",
    }
)  # fmt: skip
"""Events whose hooks cannot forbid a call."""
_RULE = re.compile(r"([A-Za-z_][\w-]*)(?:\((.*)\))?", re.DOTALL)
_FROM_THERE = re.compile(r"\w+\(/(?!/)")
_EDITING = ("Edit", "Write", "MultiEdit", "NotebookEdit")
_LISTING = ("Glob", "Grep", "LS")
_OURS = {
    **dict.fromkeys(("Read", "NotebookRead"), ("file.read", "file.load")),
    **dict.fromkeys(_LISTING, ("file.list",)),
    **dict.fromkeys(_EDITING, ("file.append", "file.create", "file.insert", "file.replace", "file.save")),
    "Bash": ("shell_exec",),
    "WebFetch": ("web_fetch",),
}
"""Our operations that do what a tool of Claude Code does."""
_SEEN_THROUGH = frozenset({"nice", "nohup", "stdbuf", "time", "timeout"})
_UNANSWERED = {"plan": "that mode changes nothing", "dontAsk": "that mode denies what no rule allows"}
"""Modes that ask nobody."""


class _Permissions(BaseModel):
    model_config = ConfigDict(strict=True)

    allow: list[str] = []
    ask: list[str] = []
    deny: list[str] = []
    default_mode: str = Field("default", alias="defaultMode")
    more_folders: list[str] = Field([], alias="additionalDirectories")


class _HookGroup(BaseModel):
    matcher: str = ""


class _Files(BaseModel):
    model_config = ConfigDict(strict=True)

    deny_read: list[str] = Field(default_factory=list[str], validation_alias="denyRead")
    deny_write: list[str] = Field(default_factory=list[str], validation_alias="denyWrite")


class _Network(BaseModel):
    model_config = ConfigDict(strict=True)

    allowed: list[str] | None = Field(default=None, validation_alias="allowedDomains")
    denied: list[str] = Field(default_factory=list[str], validation_alias="deniedDomains")


class _Sandbox(BaseModel):
    model_config = ConfigDict(strict=True)

    filesystem: _Files = _Files()
    network: _Network = _Network()


class _Settings(BaseModel):
    model_config = ConfigDict(strict=True)

    permissions: _Permissions | None = None
    hooks: dict[str, list[_HookGroup]] = {}
    sandbox: _Sandbox | None = None


@frozen
class _Rule:
    verdict: Verdict
    tool: str
    scope: str
    text: str


def unsure_settings(text: str) -> Iterator[str]:
    """Yield each setting of a file that may forbid something in a way that nobody can know.

    Raises WorkspaceError for a text that is not JSON.
    """
    read_json(text)
    for each, where in ((members(text), ""), (members(text, ("permissions",)), "permissions.")):
        keys = [member.key for member in each]
        for member in each:
            name = f"{shown(where + member.key)} (line {text.count(chr(10), 0, member.start) + 1})"
            if keys.count(member.key) > 1:
                yield f"{name} stands twice"
            elif where and member.key not in _PERMISSIONS:
                yield f"{name} is an unknown key"
            elif not where and _may_limit(member.key, text[member.value : member.end].strip()):
                yield f"{name} may forbid something"


def _may_limit(key: str, value: str) -> bool:
    if value in {"[]", "{}", "null"} or key in _FREE or key in _SERVERS or key in {"permissions", "hooks", "sandbox"}:
        return False
    return near_miss(key, _LIMITING) is not None or _LIMITING_WORDS.search(key.casefold()) is not None


def read_claude_settings(
    texts: Iterable[str], *, agent_id: str, places: Places, elsewhere: Iterable[str] = ()
) -> Migrated:
    """Read settings files as the policy of one agent on the files of a project.

    ``elsewhere``: settings outside the project, where `/` starts at another folder. Raises WorkspaceError for any other
    file, and for settings without rules.
    """
    try:
        raw = [[read_json(text) for text in some] for some in (texts, elsewhere)]
        settings = [[_Settings.model_validate(one) for one in some] for some in raw]
    except ValidationError:
        raise WorkspaceError("its `permissions` are not as Claude Code writes them") from None
    mine, others = [[one.permissions for one in some if one.permissions is not None] for some in settings]
    read, every = [*mine, *others], [one for some in settings for one in some]
    if not read and not any(one.hooks or one.sandbox for one in every):
        raise WorkspaceError("there are no `permissions` as Claude Code writes them")
    draft = Draft(agent_id, "Claude Code", places)
    draft.sees_through = _SEEN_THROUGH
    draft.asks_alone = any(word.strip().startswith("Bash") for one in read for word in one.allow)
    foreign = dict.fromkeys(word for one in others for word in one.allow if _FROM_THERE.match(word.strip()))
    for word in foreign:
        draft.lose(word, Verdict.ALLOW, "is about another folder than the project's")
    _add_modes(draft, {one.default_mode for one in read})
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
                scope = (found[2] or "").strip()
                _add_rule(draft, _Rule(verdict, found[1], "" if scope == "*" else scope, text))
                continue
            is_open = verdict is Verdict.ALLOW
            left = "it allows nothing here" if is_open else "so every file, command and host is closed"
            draft.lose(text, verdict, f"is no rule that can be read: {left}")
            is_whole = is_whole and is_open
    for one, held in zip(every, (one for some in raw for one in some), strict=True):
        _add_limits(draft, one, held)
    draft.notes += [
        f"the folder {shown(one)} is not added: make it a source" for each in read for one in each.more_folders
    ]
    if not is_whole:
        draft.close_all()
    return draft.finish()


def _add_modes(draft: Draft, modes: set[str]) -> None:
    """Take the modes: what a call without a rule gets."""
    mode = next((one for one in _UNANSWERED if one in modes), None)
    if mode is not None:
        draft.default, draft.others = Permission.READ_ONLY, Verdict.DENY
        draft.notes.append(f"`defaultMode` is `{mode}`: {_UNANSWERED[mode]}, and so it is here")
    if mode == "plan":
        draft.allowing, draft.runs = Permission.READ_ONLY, False
    for one in sorted(modes - {"default", *_UNANSWERED}):
        draft.notes.append(f"`defaultMode` {shown(one)} is not taken over: what no rule allows asks first")


def _add_rule(draft: Draft, rule: _Rule) -> None:
    verdict, scope, text = rule.verdict, rule.scope, rule.text
    if rule.tool in {"Read", "NotebookRead"}:
        draft.read(verdict, _place(scope, verdict), text)
    elif rule.tool in _EDITING:
        if verdict is Verdict.ALLOW and rule.tool != "Edit":
            draft.lose(text, verdict, "asks first here: only `Edit` allows changes of a file")
        else:
            draft.change(verdict, _place(scope, verdict), text)
    elif rule.tool in _LISTING:
        draft.lists = draft.lists and verdict is Verdict.ALLOW
    elif rule.tool == "WebFetch":
        name, _, host = (scope or f"domain:{EVERY_HOST}").partition(":")
        known = name.strip() == "domain" and host.strip()
        draft.fetch(verdict, host.strip() if known else "" if verdict is Verdict.ALLOW else EVERY_HOST, text)
    elif rule.tool == "Bash":
        draft.run(verdict, read_command(scope), text)
    elif rule.tool.startswith("mcp__"):
        draft.lose(text, verdict, "is off here: its server is not known, `gatewright catalog import` adds it")
    else:
        draft.lose(text, verdict, f"concerns nothing here: no tool is called {shown(rule.tool)}")


def _place(scope: str, verdict: Verdict) -> str:
    """Return the pattern of a rule in the words of `Places`."""
    if not scope:
        return EVERYTHING
    if scope.startswith("//"):
        return scope[1:]
    if scope.startswith("/"):
        return f".{scope}"
    is_open = verdict is Verdict.ALLOW
    return scope if is_open else scope.removeprefix("./")  # from whatever folder the agent works in


def _add_limits(draft: Draft, settings: _Settings, raw: JsonValue) -> None:
    """Take what limits outside of the rules, as strict or stricter, and name it."""
    for event, groups in settings.hooks.items():
        if groups and event not in _FREE_HOOKS:
            matchers = {group.matcher if event == "PreToolUse" else "" for group in groups}
            tools = [tool for tool in _OURS if any(_matches(matcher, tool) for matcher in matchers)]
            draft.asks.update(name for tool in tools for name in _OURS[tool])
            about = ", ".join(sorted(f"`{one}`" if one else "every tool" for one in matchers))
            left = "those calls ask first here" if tools else "those tools are off here"
            draft.notes.append(f"the hook {shown(event)} may forbid calls of {about}, and does not run here: {left}")
    if settings.sandbox is not None:
        _add_sandbox(draft, settings.sandbox)
    for key in sorted(_SERVERS):
        if isinstance(raw, dict) and raw.get(key):
            draft.notes.append(f"`{key}`: the tools of servers are off here until `gatewright catalog import`")


def _matches(matcher: str, tool: str) -> bool:
    """Tell whether a hook is about a tool; one that cannot be read is about each."""
    if matcher in {"", "*"}:
        return True
    try:
        return compile_linear(matcher).search(tool) is not None
    except ValueError:
        return True


def _add_sandbox(draft: Draft, sandbox: _Sandbox) -> None:
    for verdict_of, said in ((draft.read, sandbox.filesystem.deny_read), (draft.change, sandbox.filesystem.deny_write)):
        for path in said:
            where = [path[1:]] if path.startswith("//") else [path, f".{path}"] if path.startswith("/") else [path]
            for one in where:
                verdict_of(Verdict.DENY, one, f"sandbox: {path}")
    for host in sandbox.network.denied:
        draft.fetch(Verdict.DENY, host, f"sandbox: {host}")
    if sandbox.network.allowed is not None:
        draft.only_hosts(sandbox.network.allowed)
    draft.notes.append("`sandbox`: commands run in a room here, which holds the project alone; its other keys are lost")
