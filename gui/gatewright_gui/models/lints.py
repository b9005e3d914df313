"""What a provider's spelling changes, as a list: how bad, where, why, what to do. It does not know how to get there."""

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from gatewright_gui.session.lints import LintRow

Index = QModelIndex | QPersistentModelIndex
LINT = Qt.ItemDataRole.UserRole + 1


class LintModel(QAbstractListModel):
    """In the order in which they are given."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: tuple[LintRow, ...] = ()

    @property
    def rows(self) -> tuple[LintRow, ...]:
        """What is shown."""
        return self._rows

    def set_rows(self, rows: Sequence[LintRow]) -> None:
        """Show these; rows that only moved to other lines of the text stay chosen."""
        new = tuple(rows)
        if len(new) == len(self._rows) and all(map(_reads_the_same, new, self._rows)):
            self._rows = new
            return
        self.beginResetModel()
        self._rows = new
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """How many."""
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """The lint in words, with what to do in the tooltip, and as a value under `LINT`."""
        if not index.isValid() or index.row() >= len(self._rows):
            return None
        row = self._rows[index.row()]
        if role == LINT:
            return row
        if role == Qt.ItemDataRole.DisplayRole:
            return f"{row.level}, {where_words(row)}: {said(row)}"
        if role in {Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole}:
            return whole_words(row)
        return None


def whole_words(row: LintRow) -> str:
    """All of a lint: level, place, reason, what to do."""
    return f"{row.level}, {where_words(row)}: {said(row)}\n{to_do_words(row)}"


def to_do_words(row: LintRow) -> str:
    """What the operator can do, without code marks."""
    return f"What to do: {row.to_do}".replace("`", "")


def where_words(row: LintRow) -> str:
    """The tool and the place in its schema."""
    return f"{row.tool or 'all tools'} {row.pointer}".rstrip()


def said(row: LintRow) -> str:
    """The reason and what to do, without code marks."""
    return f"{row.reason}; {row.advice}".replace("`", "") if row.advice else row.reason.replace("`", "")


def _reads_the_same(one: LintRow, other: LintRow) -> bool:
    words = (one.level, one.tool, one.pointer, one.reason, one.advice)
    return words == (other.level, other.tool, other.pointer, other.reason, other.advice)
