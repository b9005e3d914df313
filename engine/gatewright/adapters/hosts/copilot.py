"""GitHub Copilot CLI: hooks in files of their own, measured with 1.0.102.

An answer that is no JSON lets the call run, and so does a hook that is too slow; the command in the file prints a
denial if it fails.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from gatewright.adapters.hosts import (
    NO_GATE,
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
    text_or,
)
from gatewright.adapters.hosts.entry import Elements, JsonHooks, is_among, report_line, shell_line, table_at
from gatewright.base.jsonvalue import JsonValue

_KINDS = {"preToolUse": EventKind.BEFORE, "postToolUse": EventKind.AFTER, "sessionEnd": EventKind.END}
_IN_PROJECT = ".github/hooks/gatewright.json"
_DENIAL = json.dumps({"permissionDecision": "deny", "permissionDecisionReason": NO_GATE})


def _elements(hook: Hook) -> Elements:
    strict, report = shell_line(hook, _DENIAL), report_line(hook)
    return {
        event: {"type": "command", "bash": strict if kind is EventKind.BEFORE else report, "timeoutSec": TIMEOUT_S}
        for event, kind in _KINDS.items()
    }


class Copilot(Host):
    """Copilot CLI: it takes changed arguments, and lets a call run when its hook fails or is too slow."""

    host_id = "copilot"
    title = "Copilot CLI"
    prefix = "copilot"
    programs = ("copilot",)
    shells = MappingProxyType({"bash": "command", "powershell": "command"})
    gives_ids = False
    kinds = MappingProxyType(_KINDS)
    enforcement = Enforcement(
        asks=False,
        changes=frozenset({"bash", "powershell"}),
        fails_closed=False,
        open_ways=("hooks of a project are skipped without a word where its person has not trusted the folder",),
    )
    entry = JsonHooks(_elements, {"version": 1})

    def moment(self, message: Mapping[str, JsonValue]) -> str:
        """Return the name of the moment, which a message in camelCase does not say."""
        if name := text_or(message, "hook_event_name", "hookEventName"):
            return name[:1].lower() + name[1:]
        if "toolResult" in message:
            return "postToolUse"
        return "preToolUse" if "toolName" in message else "sessionEnd" if "reason" in message else ""

    def reply(self, event: HostEvent, answer: HostAnswer) -> Reply:
        """Spell an answer to a hook."""
        if event.kind is not EventKind.BEFORE:
            return Reply("{}")
        answer = effective(self, event, answer)
        said: dict[str, JsonValue] = {"permissionDecision": str(answer.verdict)}
        if answer.reason:
            said["permissionDecisionReason"] = answer.reason
        if answer.arguments is not None:
            said["modifiedArgs"] = dict(answer.arguments)
        return Reply(json.dumps(said))

    def folder(self, around: Around) -> Path:
        """Return the folder of the user's settings."""
        return around.folder("COPILOT_HOME", ".copilot")

    def file(self, scope: HostScope, around: Around) -> Path | None:
        """Return our file in the folder of hooks of that scope; there is none for a machine."""
        if scope is HostScope.USER:
            return self.folder(around) / "hooks" / "gatewright.json"
        return None if scope is HostScope.MANAGED else next(iter(around.within(_IN_PROJECT)), None)

    def other_files(self, around: Around) -> tuple[Path, ...]:
        """List the file with the folders that its person trusts."""
        return (self.folder(around) / "config.json",)

    def trusts(self, project: Path, around: Around) -> bool:
        """Tell whether its configuration trusts the folder or one above it."""
        held = table_at(self.folder(around) / "config.json")
        return is_among(project, held.get("trusted_folders", held.get("trustedFolders")))

    def is_trusted(self, path: Path, text: str, around: Around) -> bool | None:  # noqa: ARG002 - the folder counts
        """Tell whether the folder of the project is trusted; the user's own hooks need no trust."""
        return self.trusts(path.parents[2], around) if path in around.within(_IN_PROJECT) else None


HOST = Copilot()
