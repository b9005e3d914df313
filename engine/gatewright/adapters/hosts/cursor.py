"""Cursor: hooks in its `hooks.json`, by its documentation of 3.x.

One hook before every tool decides; it can allow and deny, and a question it ignores. Messages of the older hooks for
commands, servers and files are read too, which can ask.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from gatewright.adapters.hosts import (
    TIMEOUT_S,
    Around,
    Enforcement,
    EventKind,
    Hook,
    Host,
    HostAnswer,
    HostEvent,
    HostScope,
    Reply,
    effective,
    text_in,
    text_or,
)
from gatewright.adapters.hosts.entry import Elements, JsonHooks, report_line, shell_line
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.verdict import Verdict

_BEFORE = "preToolUse"
_KINDS = {
    _BEFORE: EventKind.BEFORE,
    "beforeShellExecution": EventKind.BEFORE,
    "beforeMCPExecution": EventKind.BEFORE,
    "beforeReadFile": EventKind.BEFORE,
    "postToolUse": EventKind.AFTER,
    "postToolUseFailure": EventKind.FAILED,
    "sessionEnd": EventKind.END,
}
_OWN_EVENTS = (_BEFORE, "postToolUse", "postToolUseFailure", "sessionEnd")


def _elements(hook: Hook) -> Elements:
    strict: JsonValue = {"command": shell_line(hook), "timeout": TIMEOUT_S, "failClosed": True}
    report: JsonValue = {"command": report_line(hook), "timeout": TIMEOUT_S}
    return {event: strict if event == _BEFORE else report for event in _OWN_EVENTS}


class Cursor(Host):
    """Cursor: it takes changed arguments, and blocks a call whose hook fails where its entry says so."""

    host_id = "cursor"
    title = "Cursor"
    prefix = "cursor"
    programs = ("cursor", "cursor-agent")
    shells = MappingProxyType({"Shell": "command"})
    gives_ids = False
    kinds = MappingProxyType(_KINDS)
    enforcement = Enforcement(
        asks=False,
        changes=frozenset({"Shell"}),
        fails_closed=True,
        is_tried=False,
        open_ways=("a version without the hook `preToolUse` asks nobody",),
    )
    entry = JsonHooks(_elements, {"version": 1})

    def read(self, message: Mapping[str, JsonValue]) -> HostEvent:
        """Read a message of a hook; the first folder of its workspace stands for a missing one."""
        roots = message.get("workspace_roots")
        given = {"cwd": roots[0]} if isinstance(roots, list) and roots and not text_or(message, "cwd") else {}
        return super().read({**message, **given})

    def called(self, name: str, message: Mapping[str, JsonValue]) -> tuple[str, dict[str, JsonValue]]:
        """Return tool and arguments, which older hooks give by other names. Raises ValueError."""
        if name == "beforeShellExecution":
            return "Shell", {"command": text_in(message, "command")}
        if name == "beforeReadFile":
            return "Read", {"file_path": text_in(message, "file_path", "filePath")}
        return super().called(name, message)

    def reply(self, event: HostEvent, answer: HostAnswer) -> Reply:
        """Spell an answer to a hook, never an empty one."""
        if event.kind is not EventKind.BEFORE:
            return Reply("{}")
        answer = effective(self, event, answer)
        if answer.arguments is not None and event.name != _BEFORE:
            answer = HostAnswer(Verdict.DENY, f"Cursor takes no changed command from `{event.name}`")
        said: dict[str, JsonValue] = {"permission": str(answer.verdict)}
        if answer.reason:
            said |= {"user_message": answer.reason, "agent_message": answer.reason}
        if answer.arguments is not None:
            said["updated_input"] = dict(answer.arguments)
        return Reply(json.dumps(said))

    def folder(self, around: Around) -> Path:
        """Return the folder of the user's settings."""
        return around.home / ".cursor"

    def file(self, scope: HostScope, around: Around) -> Path | None:
        """Return the hooks of that scope."""
        if scope is HostScope.MANAGED:
            return around.shared("etc/cursor/hooks.json", "Library/Application Support/Cursor/hooks.json")
        if scope is HostScope.USER:
            return self.folder(around) / "hooks.json"
        return next(iter(around.within(".cursor/hooks.json")), None)


HOST = Cursor()
