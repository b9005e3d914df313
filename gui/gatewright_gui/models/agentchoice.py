"""Agents to be chosen from, with a box each. It does not know what they are chosen for."""

from collections.abc import Iterable, Sequence
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal

from gatewright.policy.document import Agent

Index = QModelIndex | QPersistentModelIndex


class AgentChoiceModel(QAbstractListModel):
    """A filter leaves agents out of the list and their boxes as they are."""

    chosen_changed = Signal()

    def __init__(self, agents: Sequence[Agent], chosen: Iterable[str], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._agents = tuple(agents)
        self._chosen = set(chosen) & {agent.agent_id for agent in self._agents}
        self._shown = list(self._agents)

    @property
    def chosen(self) -> tuple[str, ...]:
        """The ids whose box is ticked, in the order of the file."""
        return tuple(agent.agent_id for agent in self._agents if agent.agent_id in self._chosen)

    @property
    def every(self) -> int:
        """How many there are to choose from."""
        return len(self._agents)

    @property
    def are_all_shown_chosen(self) -> bool:
        """Whether no box in the list is empty."""
        return all(agent.agent_id in self._chosen for agent in self._shown)

    def set_filter(self, text: str) -> None:
        """Only agents whose name or description has every word."""
        words = text.casefold().split()
        self.beginResetModel()
        self._shown = [
            agent
            for agent in self._agents
            if all(word in f"{agent.agent_id} {agent.description}".casefold() for word in words)
        ]
        self.endResetModel()

    def choose_shown(self, *, on: bool) -> None:
        """Tick or untick all that the filter leaves."""
        names = {agent.agent_id for agent in self._shown}
        self._set(self._chosen | names if on else self._chosen - names)

    def _set(self, chosen: set[str]) -> None:
        if chosen == self._chosen:
            return
        self._chosen = chosen
        if self._shown:
            self.dataChanged.emit(self.index(0), self.index(len(self._shown) - 1))
        self.chosen_changed.emit()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """How many agents the filter leaves."""
        return 0 if parent.isValid() else len(self._shown)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Name, description, box."""
        if not index.isValid():
            return None
        agent = self._shown[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return agent.agent_id
            case Qt.ItemDataRole.ToolTipRole:
                return agent.description or agent.agent_id
            case Qt.ItemDataRole.CheckStateRole:
                return Qt.CheckState.Checked if agent.agent_id in self._chosen else Qt.CheckState.Unchecked
            case _:
                return None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:  # noqa: N802
        """Tick or untick one."""
        if not index.isValid() or role != Qt.ItemDataRole.CheckStateRole:
            return False
        one = {self._shown[index.row()].agent_id}
        self._set(self._chosen | one if Qt.CheckState(value) == Qt.CheckState.Checked else self._chosen - one)
        return True

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Every row has a box."""
        flags = super().flags(index)
        return flags | Qt.ItemFlag.ItemIsUserCheckable | Qt.ItemFlag.ItemNeverHasChildren if index.isValid() else flags
