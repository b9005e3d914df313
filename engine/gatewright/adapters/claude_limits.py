"""What limits in the settings of Claude Code and cannot be said in a policy: whoever imports them is told, and stops.

A rule that is left out opens something unless it allowed something. So a setting is passed over only where it is known
to forbid nothing, and a pattern that forbids only where it is sure to be about files outside.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from gatewright.adapters.json_text import members, read_json
from gatewright.base.problem import near_miss, shown
from gatewright.policy.document import PermissionRule
from gatewright.policy.glob import PermissionRules, check_pattern
from gatewright.policy.verdict import Permission

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
"""Moments at which a hook can forbid no call."""
_DOTS = frozenset({".", ".."})
_WILD = re.compile(r"[*?\[\\]")


def untold_limits(text: str) -> Iterator[str]:
    """Each setting of one file that may forbid something and stands outside of the rules that can be taken over.

    Raises WorkspaceError for a text that is no JSON.
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
                yield f"{name} is no key that is known"
            elif not where and member.key == "hooks":
                yield from _hooks(text, name)
            elif not where and member.key != "permissions" and _may_limit(member.key):
                value = text[member.value : member.end].strip()
                if value not in {"[]", "{}", "null"}:
                    yield f"{name} may forbid something"


def _hooks(text: str, name: str) -> Iterator[str]:
    """A hook may forbid a call before it is made."""
    for member in members(text, ("hooks",)):
        if member.key not in _FREE_HOOKS and text[member.value : member.end].strip() not in {"[]", "{}"}:
            yield f"{name}: {shown(member.key)} may forbid something"


def _may_limit(key: str) -> bool:
    if key in _FREE:
        return False
    return near_miss(key, _LIMITING) is not None or _LIMITING_WORDS.search(key.casefold()) is not None


def unsure_place(said: str, *, project: Sequence[str], home: str, real: Callable[[str], str]) -> str | None:
    """Why a pattern that forbids may be about more of the project than can be said; None for one that is not.

    ``project``: its folder in each spelling that is known; ``real``: a path with its links resolved.
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
    if not _may_meet(begins, {first}) and (_may_meet(begins, folders) or _may_meet(led, folders)):
        return "it names the project's folder by another way"
    return None


def _matches(pattern: str, folder: str) -> bool:
    """Whether a pattern from the root matches a folder, or one above it."""
    if check_pattern(pattern) is not None:
        return True
    rules = PermissionRules([PermissionRule(pattern, Permission.NONE)], Permission.ADMIN)
    return rules.level(folder.strip("/") + "/") is Permission.NONE


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _may_meet(begins: str, folders: set[str]) -> bool:
    """Whether a pattern with that beginning may be about something in one of the folders."""
    return any(_is_within(begins, folder) or _is_within(folder, begins) for folder in folders)
