"""The operations that are privileged or delete, and are on without asking, as rows of a table."""

from typing import Any

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, Qt

from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.table_model import FlatModel
from gatewright_gui.session.rights_picture import Risk

Index = QModelIndex | QPersistentModelIndex
RISK = Qt.ItemDataRole.UserRole + 1
_NAMED = 20
"""Agents that the tooltip names."""


class RiskModel(FlatModel):
    """One row per operation, the riskiest first."""

    headers = (mark("Operation"), mark("Why"), mark("Agents"))

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._risks: tuple[Risk, ...] = ()

    def set_risks(self, risks: tuple[Risk, ...]) -> None:
        """Show these."""
        if risks != self._risks:
            self.beginResetModel()
            self._risks = risks
            self.endResetModel()

    def count(self) -> int:
        """How many operations."""
        return len(self._risks)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Cells, and the risk of a row."""
        if not index.isValid() or index.row() >= len(self._risks):
            return None
        risk = self._risks[index.row()]
        op = f"{risk.tool}.{risk.operation}" if risk.operation else risk.tool
        why = tr("privileged") if risk.is_privileged else tr("deletes")
        named = ", ".join(risk.agents[:_NAMED])
        more = len(risk.agents) - _NAMED
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return (op, why, f"{len(risk.agents):,}: {', '.join(risk.agents[:3])}")[index.column()]
            case Qt.ItemDataRole.ToolTipRole:
                agents = tr("{names} and {count:,} more", names=named, count=more) if more > 0 else named
                told = tr("{operation}, {why}, is on without asking for {agents}", operation=op, why=why, agents=agents)
                return told + "\n" + tr("Enter or a click shows it")
            case Qt.ItemDataRole.AccessibleTextRole if index.column() == 0:
                agents = counted(len(risk.agents), "agent", "agents")
                return tr("{operation}, {why}, on without asking for {agents}", operation=op, why=why, agents=agents)
            case _:
                return risk if role == RISK else None
