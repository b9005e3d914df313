"""What is known of two calls, side by side, as rows. It compares nothing by itself."""

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from gatewright_gui.session.comparison import Pair

Index = QModelIndex | QPersistentModelIndex
NAME, FIRST, SECOND = range(3)
DIFFERS = Qt.ItemDataRole.UserRole + 1
"""Whether the two are not alike."""
VERDICT = Qt.ItemDataRole.UserRole + 2
"""The verdict that a cell tells, empty where it tells none."""


class PairModel(QAbstractTableModel):
    """One row for each thing that is known of both."""

    def __init__(self, heads: tuple[str, str, str], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._heads = heads
        self._pairs: tuple[Pair, ...] = ()

    def set_pairs(self, heads: tuple[str, str, str], pairs: Sequence[Pair]) -> None:
        """Show these."""
        self.beginResetModel()
        self._heads, self._pairs = heads, tuple(pairs)
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """How many things."""
        return 0 if parent.isValid() else len(self._pairs)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """Name, first, second."""
        return 0 if parent.isValid() else len(self._heads)

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """What is compared, the two calls."""
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return self._heads[section]
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Texts, and what the delegate draws from."""
        if not index.isValid():
            return None
        pair = self._pairs[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return " ".join(_text(pair, index.column()).split())
            case Qt.ItemDataRole.ToolTipRole:
                return _text(pair, index.column())
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{_text(pair, index.column())}, {'different' if pair.differs else 'the same'}"
            case _ if role == DIFFERS:
                return pair.differs
            case _ if role == VERDICT:
                return pair.verdicts[index.column() - 1] if index.column() != NAME else ""
            case _:
                return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Rows can be chosen."""
        flags = super().flags(index)
        return flags | Qt.ItemFlag.ItemNeverHasChildren if index.isValid() else flags


def _text(pair: Pair, column: int) -> str:
    return (pair.name, pair.first, pair.second)[column]
