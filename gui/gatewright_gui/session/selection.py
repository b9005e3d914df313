"""What is chosen in the app now: an agent, a tool, an operation."""

from PySide6.QtCore import QObject, Signal


class Selection(QObject):
    """Shared by the pages: the tree chooses, preview, console and breadcrumb follow."""

    agent_changed = Signal(object)
    """The agent's id, or None."""
    tool_changed = Signal(object)
    """The tool's name, or None."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._agent_id: str | None = None
        self._tool: str | None = None
        self._operation: str | None = None

    @property
    def agent_id(self) -> str | None:
        """The chosen agent."""
        return self._agent_id

    @property
    def tool(self) -> str | None:
        """The tool of the current row."""
        return self._tool

    @property
    def operation(self) -> str | None:
        """The operation of the current row; None on a tool's own row."""
        return self._operation

    def choose_agent(self, agent_id: str | None) -> None:
        """Another agent; the tool stays chosen."""
        if agent_id != self._agent_id:
            self._agent_id = agent_id
            self.agent_changed.emit(agent_id)

    def choose_tool(self, tool: str | None, operation: str | None = None) -> None:
        """Another tool or operation."""
        if (tool, operation) != (self._tool, self._operation):
            self._tool, self._operation = tool, operation
            self.tool_changed.emit(tool)
