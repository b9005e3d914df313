"""Gemini CLI: hooks in its settings, measured with 0.61.0.

It blocks on a JSON denial or exit code 2 alone, so the command in the file turns each failure of its own into that. A
question of a hook hung where nobody sits, so it becomes a denial.
"""

from __future__ import annotations

import json
import os
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
    text_or,
)
from gatewright.adapters.hosts.entry import Elements, JsonHooks, is_among, report_line, shell_line, table_at, table_of
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.verdict import Verdict

_KINDS = {"BeforeTool": EventKind.BEFORE, "AfterTool": EventKind.AFTER, "SessionEnd": EventKind.END}
_IN_PROJECT = ".gemini/settings.json"
_NAME = "gatewright"


def _elements(hook: Hook) -> Elements:
    strict, report = shell_line(hook), report_line(hook)
    return {
        "BeforeTool": {"matcher": "*", "hooks": [_run(strict)]},
        "AfterTool": {"matcher": "*", "hooks": [_run(report)]},
        "SessionEnd": {"hooks": [_run(report)]},
    }


def _run(command: str) -> JsonValue:
    return {"type": "command", "name": _NAME, "command": command, "timeout": TIMEOUT_S * 1000}


class GeminiCli(Host):
    """Gemini CLI: it takes changed arguments, and lets a call run when its hook is too slow."""

    host_id = "gemini-cli"
    title = "Gemini CLI"
    prefix = "gemini"
    programs = ("gemini",)
    shells = MappingProxyType({"run_shell_command": "command"})
    gives_ids = False
    kinds = MappingProxyType(_KINDS)
    enforcement = Enforcement(
        asks=False,
        changes=frozenset({"run_shell_command"}),
        fails_closed=False,
        open_ways=(
            "hooks of a project are skipped without a word where its person has not trusted the folder",
            "its settings can switch hooks off, all of them or by name",
        ),
    )
    entry = JsonHooks(_elements, {}, ("hooksConfig",))

    def called(self, name: str, message: Mapping[str, JsonValue]) -> tuple[str, dict[str, JsonValue]]:
        """Return tool and arguments.

        Raises ValueError, also for a missing relative path to edit, since it then edits another file that ends with it.
        """
        tool, arguments = super().called(name, message)
        path = arguments.get("file_path")
        if tool == "replace" and self.kinds[name] is EventKind.BEFORE and isinstance(path, str):
            here = Path(text_or(message, "cwd", "directory"))
            if not (path.startswith("/") or os.path.exists(here / path)):  # noqa: PTH110 - it raises nothing
                raise ValueError("`file_path` of `replace` is relative and does not exist; give an absolute one")
        return tool, arguments

    def reply(self, event: HostEvent, answer: HostAnswer) -> Reply:
        """Spell an answer to a hook."""
        if event.kind is not EventKind.BEFORE:
            return Reply("{}")
        answer = effective(self, event, answer)
        if answer.verdict is Verdict.DENY:
            return Reply(json.dumps({"decision": "deny", "reason": answer.reason}))
        said: dict[str, JsonValue] = {"decision": "allow"}
        if answer.arguments is not None:
            said["hookSpecificOutput"] = {"hookEventName": event.name, "tool_input": dict(answer.arguments)}
        return Reply(json.dumps(said))

    def folder(self, around: Around) -> Path:
        """Return the folder of the user's settings."""
        named = around.environment.get("GEMINI_CLI_HOME")
        return (Path(named) if named else around.home) / ".gemini"

    def file(self, scope: HostScope, around: Around) -> Path | None:
        """Return the settings of that scope."""
        if scope is HostScope.MANAGED:
            named = around.environment.get("GEMINI_CLI_SYSTEM_SETTINGS_PATH")
            usual = around.shared("etc/gemini-cli/settings.json", "Library/Application Support/GeminiCli/settings.json")
            return Path(named) if named else usual
        if scope is HostScope.USER:
            return self.folder(around) / "settings.json"
        return next(iter(around.within(_IN_PROJECT)), None)

    def switched_off(self, text: str, scope: HostScope | None) -> str:  # noqa: ARG002 - the same in all
        """Name the setting that switches hooks off."""
        settings = table_of(text)
        for key, inner in (("hooksConfig", "enabled"), ("hooks", "enabled"), ("tools", "enableHooks")):
            held = settings.get(key)
            if isinstance(held, dict) and held.get(inner) is False:
                return f"`{key}.{inner}` is false: no hook runs"
        for key in ("hooksConfig", "hooks"):
            held = settings.get(key)
            names = held.get("disabled") if isinstance(held, dict) else None
            if isinstance(names, list) and any(isinstance(one, str) and _NAME in one for one in names):
                return f"`{key}.disabled` names ours: it does not run"
        return ""

    def other_files(self, around: Around) -> tuple[Path, ...]:
        """List the file with the folders that its person trusts."""
        return (self.folder(around) / "trustedFolders.json",)

    def trusts(self, project: Path, around: Around) -> bool:
        """Tell whether its list of folders trusts this one or one above it."""
        held = table_at(self.folder(around) / "trustedFolders.json")
        return is_among(project, [name for name, word in held.items() if word != "DO_NOT_TRUST"])

    def is_trusted(self, path: Path, text: str, around: Around) -> bool | None:  # noqa: ARG002 - the folder counts
        """Tell whether the folder of the project is trusted; other hooks need no trust."""
        return self.trusts(path.parents[1], around) if path in around.within(_IN_PROJECT) else None


HOST = GeminiCli()
