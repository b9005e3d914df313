"""Wishes to go somewhere in the window: a page, a line of the policy, a tool of an agent. It knows no page."""

from PySide6.QtCore import QObject, Signal


class Navigator(QObject):
    """Pages ask here; the window listens and goes."""

    page_requested = Signal(object)
    """Key of a page: str."""
    line_requested = Signal(object)
    """Line of the policy file, from 1: the TOML page shows it."""
    tool_requested = Signal(object, object, object)
    """Agent id, tool, operation or None: the Agents page shows that row."""
    export_requested = Signal()
    """Let a folder be chosen and export into it."""

    def go_to_page(self, key: str) -> None:
        """Show a page."""
        self.page_requested.emit(key)

    def go_to_line(self, line: int) -> None:
        """Show a line of the policy."""
        self.line_requested.emit(line)

    def go_to_tool(self, agent_id: str, tool: str, operation: str | None = None) -> None:
        """Show a row of the tree of tools."""
        self.tool_requested.emit(agent_id, tool, operation)
