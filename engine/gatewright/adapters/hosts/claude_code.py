"""Claude Code: hooks in its settings, measured with 2.1.332."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import time
from collections.abc import Mapping, Sequence
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
    text_or,
)
from gatewright.adapters.hosts.entry import Elements, JsonHooks, table_of
from gatewright.base.errors import JsonRefused
from gatewright.base.jsonvalue import JsonValue, parse_object
from gatewright.policy.verdict import Verdict

_IN_SKILL = "PreSkillShellCommand"
_KINDS = {
    "PreToolUse": EventKind.BEFORE,
    _IN_SKILL: EventKind.BEFORE,
    "PostToolUse": EventKind.AFTER,
    "PostToolUseFailure": EventKind.FAILED,
    "SessionEnd": EventKind.END,
}
_REPORTS = ("PostToolUse", "PostToolUseFailure")
_ATTENDED = frozenset({"", "default", "acceptEdits", "plan"})
"""The modes in which a person answers; in another one, also of a later version, nobody may, or a model does."""
_FORMS = ("json", "stream-json")
"""The forms of its output that name a deferred call."""
_MOST_TRANSCRIPT = 16 << 20
"""The last bytes of a transcript in which a call is looked for."""
_WHOLE_S, _LOOK_S = 3.0, 0.02
"""The longest wait for the rest of an answer, and the time between two looks at its transcript."""


def _elements(hook: Hook) -> Elements:
    """Return an element for each event; only the ones before a call block when the hook fails."""
    strict: JsonValue = {**_run(hook), "onFailure": "block"}
    report: JsonValue = _run(hook.report)
    return {
        "PreToolUse": {"matcher": "*", "hooks": [strict]},
        _IN_SKILL: {"hooks": [strict]},
        **{event: {"matcher": "*", "hooks": [report]} for event in _REPORTS},
        "SessionEnd": {"hooks": [report]},
    }


def _run(hook: Hook) -> dict[str, JsonValue]:
    args: list[JsonValue] = [*hook.command[1:]]
    return {"type": "command", "command": hook.command[0], "args": args, "timeout": TIMEOUT_S}


class ClaudeCode(Host):
    """Claude Code: it asks its person, takes changed arguments, and blocks a call whose hook fails."""

    host_id = "claude-code"
    title = "Claude Code"
    prefix = "claude"
    programs = ("claude",)
    shells = MappingProxyType({"Bash": "command", "PowerShell": "command"})
    starters = MappingProxyType({"Agent": "subagent_type", "Task": "subagent_type"})
    usual_kind = "general-purpose"
    kinds = MappingProxyType(_KINDS)
    enforcement = Enforcement(
        asks=True,
        changes=frozenset({"Bash", "PowerShell"}),
        fails_closed=True,
        open_ways=(
            "`claude --bare` skips every hook that is not managed",
            "`disableAllHooks` in any of its settings switches hooks off; a managed hook stays",
            "a file that a person names with `@` in a prompt is read without a hook",
        ),
    )
    entry = JsonHooks(_elements, {}, ("disableAllHooks", "allowManagedHooksOnly"))

    def needs_id(self, name: str) -> bool:
        """Tell whether the moment is about a call; a command in a text of a skill is none, and has no id."""
        return name != _IN_SKILL

    def is_attended(self, name: str, message: Mapping[str, JsonValue]) -> bool:
        """Tell whether it would put a question to a person: not in a skill, nor in modes that may not."""
        return name != _IN_SKILL and text_or(message, "permission_mode", "permissionMode") in _ATTENDED

    def is_headless(self, words: Sequence[str]) -> bool:
        """Tell whether it was started with `-p`."""
        return not {"-p", "--print"}.isdisjoint(_options(words))

    async def can_defer(self, event: HostEvent, words: Sequence[str]) -> bool:
        """Tell whether it was started with `-p` to print JSON, and its model itself makes this one call alone.

        It forgets a call that is deferred beside others, and runs one while it talks to a person. As text it prints
        nothing of it.
        """
        if event.name != "PreToolUse" or event.child or not event.transcript or not self.is_headless(words):
            return False
        forms = " ".join(_options(words)).replace("=", " ").partition("--output-format ")[2]
        return forms.startswith(_FORMS) and await _is_alone(Path(event.transcript), event.call_id)

    def reply(self, event: HostEvent, answer: HostAnswer) -> Reply:
        """Spell an answer to a hook."""
        if event.kind is not EventKind.BEFORE:
            return Reply()
        defers = answer.defers
        answer = effective(self, event, answer)
        decision = "defer" if defers and answer.verdict is Verdict.ASK else str(answer.verdict)
        said: dict[str, JsonValue] = {"hookEventName": event.name, "permissionDecision": decision}
        if answer.reason:
            said["permissionDecisionReason"] = answer.reason
        if answer.arguments is not None and answer.verdict is not Verdict.DENY:
            said["updatedInput"] = dict(answer.arguments)
        return Reply(json.dumps({"hookSpecificOutput": said}))

    def folder(self, around: Around) -> Path:
        """Return the folder of the user's settings."""
        return around.folder("CLAUDE_CONFIG_DIR", ".claude")

    def file(self, scope: HostScope, around: Around) -> Path | None:
        """Return the settings of that scope."""
        if scope is HostScope.MANAGED:
            return around.shared(
                "etc/claude-code/managed-settings.json",
                "Library/Application Support/ClaudeCode/managed-settings.json",
            )
        if scope is HostScope.USER:
            return self.folder(around) / "settings.json"
        return next(iter(around.within(".claude/settings.local.json")), None)

    def other_files(self, around: Around) -> tuple[Path, ...]:
        """List the settings that all who work on a project share: an entry there names paths of one machine."""
        return around.within(".claude/settings.json")

    def switched_off(self, text: str, scope: HostScope | None) -> str:
        """Name the setting that switches hooks off."""
        settings = table_of(text)
        if settings.get("disableAllHooks") is True:
            return "`disableAllHooks` is on: no hook runs"
        if scope is HostScope.MANAGED and settings.get("allowManagedHooksOnly") is True:
            return "`allowManagedHooksOnly` is on: only managed hooks run"
        return ""


def _options(words: Sequence[str]) -> Sequence[str]:
    return words[: words.index("--")] if "--" in words else words


async def _is_alone(transcript: Path, call_id: str) -> bool:
    """Tell whether the answer that makes a call is whole and makes no other.

    The host calls the hook as soon as it has read the call, while the answer may still come in, and writes the answer
    down a moment after the last of it. What it does not show in time counts as incomplete.
    """
    end, known = time.monotonic() + _WHOLE_S, None
    while time.monotonic() < end:
        mark = await asyncio.to_thread(_mark, transcript)
        if mark != known and (calls := await asyncio.to_thread(_beside, transcript, call_id)):
            return calls == {call_id}
        known = mark
        await asyncio.sleep(_LOOK_S)
    return False


def _mark(path: Path) -> tuple[int, int] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_size, facts.st_mtime_ns


def _beside(transcript: Path, call_id: str) -> set[str]:
    """Return the ids of all calls in the whole answer that has this one; empty if a transcript does not show it."""
    found: dict[str, set[str]] = {}
    for line in _last_lines(transcript):
        if b'"tool_use"' in line:
            try:
                message = parse_object(line).get("message")
            except JsonRefused:
                continue
            content = message.get("content") if isinstance(message, dict) else None
            if isinstance(message, dict) and isinstance(content, list) and message.get("stop_reason") == "tool_use":
                ids = {text_or(one, "id") for one in content if isinstance(one, dict) and one.get("type") == "tool_use"}
                found.setdefault(text_or(message, "id"), set()).update(ids)
    return next((ids for ids in found.values() if call_id in ids), set[str]())


def _last_lines(path: Path) -> list[bytes]:
    """Return the last lines of a file; none unless the last one is whole."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return []
    with os.fdopen(number, "rb") as file:
        facts = os.fstat(number)
        if not stat.S_ISREG(facts.st_mode):
            return []
        file.seek(max(0, facts.st_size - _MOST_TRANSCRIPT))
        said = file.read(_MOST_TRANSCRIPT)
    return said.splitlines() if said.endswith(b"\n") else []


HOST = ClaudeCode()
