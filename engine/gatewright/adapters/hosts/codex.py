"""Codex CLI: hooks in its `config.toml`, measured with 0.171.0.

Only a denial with a reason blocks; any other trouble, an answer that it does not know included, lets the call run. So
an allowed call gets no answer, and the command in the file turns each failure of its own into exit code 2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import cast

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
)
from gatewright.adapters.hosts.entry import Groups, TomlHooks, is_among, own_groups, read_toml, report_line, shell_line
from gatewright.base.errors import WorkspaceError
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.verdict import Verdict

_IN_PROJECT = ".codex/config.toml"
_TRUSTED: JsonValue = {"trust_level": "trusted"}
_KINDS = {
    "PreToolUse": EventKind.BEFORE,
    "PostToolUse": EventKind.AFTER,
    "SessionEnd": EventKind.END,
}


def _groups(hook: Hook) -> dict[str, Groups]:
    strict, report = shell_line(hook), report_line(hook)
    commands = {event: strict if kind is EventKind.BEFORE else report for event, kind in _KINDS.items()}
    return {
        event: [{"matcher": "*", "hooks": [{"type": "command", "command": command, "timeout": TIMEOUT_S}]}]
        for event, command in commands.items()
    }


class Codex(Host):
    """Codex CLI: it takes changed arguments, asks nobody for a hook, and lets a call run when its hook fails."""

    host_id = "codex"
    title = "Codex"
    prefix = "codex"
    programs = ("codex",)
    shells = MappingProxyType({"Bash": "command"})
    kinds = MappingProxyType(_KINDS)
    enforcement = Enforcement(
        asks=False,
        changes=frozenset({"Bash"}),
        fails_closed=False,
        needs_trust=True,
        open_ways=(
            "a hook that nobody has reviewed with `/hooks`, or that has changed since, is skipped without a word",
            "a web search that the provider of the model carries out passes no hook",
        ),
    )
    entry = TomlHooks(_groups, ("features", "allow_managed_hooks_only"))

    def reply(self, event: HostEvent, answer: HostAnswer) -> Reply:
        """Spell an answer to a hook: nothing for what may run as it is."""
        if event.kind is not EventKind.BEFORE:
            return Reply()
        answer = effective(self, event, answer)
        if answer.verdict is Verdict.ALLOW and answer.arguments is None:
            return Reply()
        said: dict[str, JsonValue] = {"hookEventName": event.name, "permissionDecision": str(answer.verdict)}
        if answer.verdict is Verdict.DENY:
            said["permissionDecisionReason"] = answer.reason
        elif answer.arguments is not None:
            said["updatedInput"] = dict(answer.arguments)
        return Reply(json.dumps({"hookSpecificOutput": said}))

    def folder(self, around: Around) -> Path:
        """Return the folder of the user's settings."""
        return around.folder("CODEX_HOME", ".codex")

    def file(self, scope: HostScope, around: Around) -> Path | None:
        """Return the configuration of that scope; the requirements of the machine are the managed one."""
        if scope is HostScope.MANAGED:
            return around.shared("etc/codex/requirements.toml", "etc/codex/requirements.toml")
        if scope is HostScope.USER:
            return self.folder(around) / "config.toml"
        return next(iter(around.within(_IN_PROJECT)), None)

    def other_files(self, around: Around) -> tuple[Path, ...]:
        """List the files that hold hooks alone."""
        return (self.folder(around) / "hooks.json", *around.within(".codex/hooks.json"))

    def switched_off(self, text: str, scope: HostScope | None) -> str:
        """Name the setting that switches hooks off."""
        try:
            value = read_toml(text)
        except WorkspaceError:
            return ""
        features = value.get("features")
        if isinstance(features, dict) and False in (features.get("hooks"), features.get("codex_hooks")):
            return "`hooks` of `[features]` is false: no hook runs"
        if scope is HostScope.MANAGED and value.get("allow_managed_hooks_only") is True:
            return "`allow_managed_hooks_only` is on: only managed hooks run"
        return ""

    def trusts(self, project: Path, around: Around) -> bool:
        """Tell whether the user's configuration trusts the folder or one above it."""
        projects = self._configuration(around).get("projects")
        held = projects.items() if isinstance(projects, dict) else ()
        return is_among(project, [name for name, one in held if one == _TRUSTED])

    def is_trusted(self, path: Path, text: str, around: Around) -> bool | None:
        """Tell whether the user's configuration holds a review of our entry; a managed entry needs none."""
        if path == self.file(HostScope.MANAGED, around):
            return None
        if path in around.within(_IN_PROJECT) and not self.trusts(path.parents[1], around):
            return False
        try:
            value = read_toml(text)
        except WorkspaceError:
            return False
        groups, ours = cast("Mapping[str, Groups]", value.get("hooks", {})), own_groups(value, "PreToolUse")
        state = cast("dict[str, JsonValue]", self._configuration(around).get("hooks", {})).get("state")
        at = next((number for number, group in enumerate(groups.get("PreToolUse", [])) if group in ours), None)
        held = state.get(f"file:{path}:pre_tool_use:{at}:0") if isinstance(state, dict) else None
        return isinstance(held, dict) and bool(held.get("trusted_hash")) and held.get("enabled") is not False

    def _configuration(self, around: Around) -> dict[str, JsonValue]:
        """Read the user's configuration; empty if it cannot be read."""
        try:
            return read_toml((self.folder(around) / "config.toml").read_text("utf-8"))
        except (OSError, UnicodeDecodeError, WorkspaceError):
            return {}


HOST = Codex()
