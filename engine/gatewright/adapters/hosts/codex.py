"""Codex CLI: hooks in its `config.toml`, measured with 0.171.0.

Only a denial with a reason blocks; any other trouble, an answer that it does not know included, lets the call run. So
an allowed call gets no answer, and the command in the file turns each failure of its own into exit code 2.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import cast

from gatewright.adapters.hosts import (
    CLIENT_FILE,
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
from gatewright.adapters.hosts.entry import Groups, TomlHooks, is_among, read_toml, report_line, shell_line
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
        projects = _table(self._configuration(around), "projects")
        return is_among(project, [name for name, one in projects.items() if one == _TRUSTED])

    def is_trusted(self, path: Path, text: str, around: Around) -> bool | None:
        """Tell whether the user's configuration holds a review of our entry as it is; a managed entry needs none."""
        if path == self.file(HostScope.MANAGED, around):
            return None
        if path in around.within(_IN_PROJECT) and not self.trusts(path.parents[1], around):
            return False
        try:
            value = read_toml(text)
        except WorkspaceError:
            return False
        state = _table(_table(self._configuration(around), "hooks"), "state")
        groups = cast("Groups", _table(value, "hooks").get("PreToolUse", []))
        return any(
            held.get("enabled") is not False and held.get("trusted_hash") == _reviewed(group, hook)
            for at, group in enumerate(groups)
            for number, hook in enumerate(cast("Groups", group.get("hooks", [])))
            if CLIENT_FILE in str(hook.get("command"))
            for place in {path, path.parent.resolve() / path.name}
            if (held := _table(state, f"{place}:pre_tool_use:{at}:{number}"))
        )

    def _configuration(self, around: Around) -> dict[str, JsonValue]:
        """Read the user's configuration; empty if it cannot be read."""
        try:
            return read_toml((self.folder(around) / "config.toml").read_text("utf-8"))
        except (OSError, UnicodeDecodeError, WorkspaceError):
            return {}


def _table(value: Mapping[str, JsonValue], key: str) -> Mapping[str, JsonValue]:
    held = value.get(key)
    return held if isinstance(held, dict) else {}


def _reviewed(group: Mapping[str, JsonValue], hook: Mapping[str, JsonValue]) -> str:
    """Return the digest by which Codex knows that a person has reviewed a hook in just these words."""
    said: dict[str, JsonValue] = {"event_name": "pre_tool_use", "hooks": [{"async": False, **hook}]}
    said |= {"matcher": group["matcher"]} if "matcher" in group else {}
    text = json.dumps(said, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


HOST = Codex()
