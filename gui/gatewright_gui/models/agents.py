"""The agents of a policy as a list; a name can be edited, which asks a verb. It does not know rights."""

from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from gatewright.policy.document import Agent

Index = QModelIndex | QPersistentModelIndex
AGENT_ID = Qt.ItemDataRole.UserRole + 1
DESCRIPTION = Qt.ItemDataRole.UserRole + 2


class AgentListModel(QAbstractListModel):
    """One row per agent, in the order of the file. `rename` gets the old and the new name."""

    def __init__(self, rename: Callable[[str, str], bool], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rename = rename
        self._agents: tuple[Agent, ...] = ()

    def set_agents(self, agents: Sequence[Agent]) -> None:
        """Show these; rows that stay are only refreshed, so that what is selected stays selected."""
        new = tuple(agents)
        old_ids, new_ids = [a.agent_id for a in self._agents], [a.agent_id for a in new]
        if len(old_ids) == len(new_ids):
            self._replace(new)
        elif len(new_ids) == len(old_ids) + 1:
            self._insert(new, _first_difference(new_ids, old_ids))
        elif len(new_ids) == len(old_ids) - 1:
            self._remove(new, _first_difference(old_ids, new_ids))
        else:
            self.beginResetModel()
            self._agents = new
            self.endResetModel()

    def row_of(self, agent_id: str | None) -> int:
        """The row of an agent, -1 when it is not there."""
        return next((row for row, agent in enumerate(self._agents) if agent.agent_id == agent_id), -1)

    def agent_at(self, row: int) -> Agent | None:
        """The agent of a row."""
        return self._agents[row] if 0 <= row < len(self._agents) else None

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """How many agents."""
        return 0 if parent.isValid() else len(self._agents)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Name, description, tooltip."""
        agent = self.agent_at(index.row()) if index.isValid() else None
        if agent is None:
            return None
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.EditRole:
                return agent.agent_id
            case Qt.ItemDataRole.ToolTipRole:
                return agent.description or agent.agent_id
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{agent.agent_id}, {agent.description}" if agent.description else agent.agent_id
            case _ if role == AGENT_ID:
                return agent.agent_id
            case _ if role == DESCRIPTION:
                return agent.description
            case _:
                return None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:  # noqa: N802
        """Rename by the verb."""
        agent = self.agent_at(index.row()) if index.isValid() else None
        if agent is None or role != Qt.ItemDataRole.EditRole:
            return False
        return self._rename(agent.agent_id, str(value).strip())

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Names can be edited."""
        flags = super().flags(index)
        return flags | Qt.ItemFlag.ItemIsEditable | Qt.ItemFlag.ItemNeverHasChildren if index.isValid() else flags

    def _replace(self, new: tuple[Agent, ...]) -> None:
        changed = [row for row, agent in enumerate(new) if agent != self._agents[row]]
        self._agents = new
        if changed:
            self.dataChanged.emit(self.index(changed[0]), self.index(changed[-1]))

    def _insert(self, new: tuple[Agent, ...], row: int) -> None:
        self.beginInsertRows(QModelIndex(), row, row)
        self._agents = new
        self.endInsertRows()

    def _remove(self, new: tuple[Agent, ...], row: int) -> None:
        self.beginRemoveRows(QModelIndex(), row, row)
        self._agents = new
        self.endRemoveRows()


def _first_difference(longer: list[str], shorter: list[str]) -> int:
    return next((row for row, name in enumerate(shorter) if longer[row] != name), len(shorter))
