"""What is chosen in the app now: an agent, a tool, an operation; and which groups of tools are closed."""

from collections.abc import Iterable

from PySide6.QtCore import QObject, Signal

from gatewright_gui.qt.language import tr


class Selection(QObject):
    """Shared by the pages: the tree chooses, preview, console and breadcrumb follow."""

    agent_changed = Signal(object)
    """The agent's id, or None."""
    tool_changed = Signal(object)
    """The tool's name, or None."""
    everyone_changed = Signal(object)
    """bool: whether what is shown is about all agents."""
    cell_changed = Signal(object)
    """bool: whether the cell of one agent is chosen in what is about all."""
    groups_folded = Signal()
    """Groups of tools were closed or opened."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._agent_id: str | None = None
        self._is_everyone = self._has_cell = False
        self._tool: str | None = None
        self._operation: str | None = None
        self._closed_groups: frozenset[str] = frozenset()

    @property
    def agent_id(self) -> str | None:
        """The chosen agent."""
        return self._agent_id

    @property
    def is_everyone(self) -> bool:
        """Tell whether what is shown is about all agents; one of them stays chosen."""
        return self._is_everyone

    def show_everyone(self, *, on: bool) -> None:
        """Show what is about all agents, or about the chosen one."""
        if on != self._is_everyone:
            self._is_everyone = on
            self.everyone_changed.emit(on)

    @property
    def is_nobody(self) -> bool:
        """Tell whether all agents are shown, and no cell of one of them is chosen."""
        return self._is_everyone and not self._has_cell

    def choose_cell(self, *, on: bool) -> None:
        """Note that a cell of the chosen agent is chosen in what is about all, or none."""
        if on != self._has_cell:
            self._has_cell = on
            self.cell_changed.emit(on)

    @property
    def trail(self) -> tuple[str | None, ...]:
        """Agent, tool and operation, the agent last where all are shown."""
        if not self._is_everyone:
            return self._agent_id, self._tool, self._operation
        return (tr("Everyone"), *((self._tool, self._operation, self._agent_id) if self._has_cell else ()))

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

    @property
    def closed_groups(self) -> frozenset[str]:
        """The origins of the tools that are not shown below the row of their group."""
        return self._closed_groups

    def fold_group(self, origin: str, *, closed: bool) -> None:
        """Close or open a group."""
        self.close_groups(self._closed_groups | {origin} if closed else self._closed_groups - {origin})

    def close_groups(self, origins: Iterable[str]) -> None:
        """Close these groups and open all others."""
        closed = frozenset(origins)
        if closed != self._closed_groups:
            self._closed_groups = closed
            self.groups_folded.emit()
