"""VS Code: hooks of its agents in files of their own, by its documentation; the answers are those of Claude Code."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

from gatewright.adapters.hosts import (
    TIMEOUT_S,
    Around,
    Enforcement,
    EventKind,
    Hook,
    HostScope,
)
from gatewright.adapters.hosts.claude_code import ClaudeCode
from gatewright.adapters.hosts.entry import Elements, JsonHooks, report_line, shell_line

_KINDS = {"PreToolUse": EventKind.BEFORE, "PostToolUse": EventKind.AFTER}


def _elements(hook: Hook) -> Elements:
    strict, report = shell_line(hook), report_line(hook)
    return {
        event: {
            "type": "command",
            "command": strict if kind is EventKind.BEFORE else report,
            "timeout": TIMEOUT_S,
        }
        for event, kind in _KINDS.items()
    }


class VsCode(ClaudeCode):
    """VS Code: it asks its person, takes changed arguments, and lets a call run when its hook is too slow."""

    host_id = "vscode"
    title = "VS Code"
    prefix = "vscode"
    programs = ("code", "code-insiders", "codium")
    shells = MappingProxyType({"run_in_terminal": "command", "runInTerminal": "command"})
    kinds = MappingProxyType(_KINDS)
    enforcement = Enforcement(
        asks=True,
        changes=frozenset({"run_in_terminal", "runInTerminal"}),
        fails_closed=False,
        is_tried=False,
        open_ways=(
            "the setting `chat.hookFilesLocations` can leave our file out, and an administrator can switch hooks off",
        ),
    )
    entry = JsonHooks(_elements, {})

    def folder(self, around: Around) -> Path:
        """Return the folder of the user's settings."""
        if around.platform == "darwin":
            return around.home / "Library/Application Support/Code/User"
        return around.folder("XDG_CONFIG_HOME", ".config") / "Code" / "User"

    def file(self, scope: HostScope, around: Around) -> Path | None:
        """Return our file in the folder of hooks of that scope; there is none for a machine."""
        if scope is HostScope.USER:
            return around.home / ".copilot/hooks/gatewright-vscode.json"
        name = ".github/hooks/gatewright-vscode.json"
        return None if scope is HostScope.MANAGED else next(iter(around.within(name)), None)

    def other_files(self, around: Around) -> tuple[Path, ...]:
        """List the settings."""
        return (self.folder(around) / "settings.json", *around.within(".vscode/settings.json"))

    def switched_off(self, text: str, scope: HostScope | None) -> str:  # noqa: ARG002 - none of its files tells surely
        """Return nothing: what its settings say of hooks is not known well enough."""
        return ""


HOST = VsCode()
