"""A table of rows that stand somewhere in the policy file, one of them at most new and not written yet.

It does not know what its rows or columns say.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from gatewright.base.problem import Address

Index = QModelIndex | QPersistentModelIndex


class PlacedRow(Protocol):
    """What the table needs of a row."""

    @property
    def key(self) -> Hashable:
        """What stays the same of the row over an edit."""
        ...

    @property
    def address(self) -> Address | None:
        """Where it stands; None: nowhere in the file."""
        ...


R = TypeVar("R", bound=PlacedRow)


class PlacedRows(QAbstractTableModel, Generic[R]):
    """Rows keep their identity over an edit. A subclass names the columns and says what the cells show."""

    headers: ClassVar[tuple[str, ...]] = ()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[R] = []
        self._draft: R | None = None
        self._lines: Mapping[Address, int] = {}
        self._file = ""

    @property
    def rows(self) -> tuple[R, ...]:
        """What is shown."""
        return tuple(self._rows)

    @property
    def addresses(self) -> tuple[Address, ...]:
        """The places whose lines are wanted."""
        return tuple(dict.fromkeys(row.address for row in self._rows if row.address is not None))

    def set_lines(self, lines: Mapping[Address, int], file: str = "") -> None:
        """Where the places stand now, and in which file."""
        self._lines, self._file = lines, file
        self.replace_rows(0, self._rows)

    def row_at(self, row: int) -> R | None:
        """What a row shows."""
        return self._rows[row] if 0 <= row < len(self._rows) else None

    def row_of(self, address: Address) -> int | None:
        """The row that stands at a place."""
        return next((at for at, row in enumerate(self._rows) if row.address == address), None)

    def line_at(self, row: int) -> int | None:
        """The line at which a row stands, once it is known."""
        held = self.row_at(row)
        return self._lines.get(held.address) if held is not None and held.address is not None else None

    def drop_draft(self) -> None:
        """Forget a new row that was not written."""
        if self._draft is not None:
            at = self._rows.index(self._draft)
            self._draft = None
            self.remove_rows(at, 1)

    def _take(self, new: Sequence[R]) -> None:
        """Keep what is alike at both ends and change the middle, so that selection and open editors stay."""
        before, after = [row.key for row in self._rows], [row.key for row in new]
        shorter = min(len(before), len(after))
        head = next((i for i in range(shorter) if before[i] != after[i]), shorter)
        room = shorter - head
        tail = next((i for i in range(room) if before[-1 - i] != after[-1 - i]), room)
        if len(before) - head - tail:
            self.remove_rows(head, len(before) - head - tail)
        if len(after) - head - tail:
            self.insert_rows(head, new[head : len(after) - tail])
        self.replace_rows(0, new)

    def _begin_draft(self, at: int, draft: R) -> None:
        self._draft = draft
        self.insert_rows(at, [draft])

    # rows

    def insert_rows(self, at: int, rows: Sequence[R]) -> None:
        """Put rows in."""
        self.beginInsertRows(QModelIndex(), at, at + len(rows) - 1)
        self._rows[at:at] = rows
        self.endInsertRows()

    def remove_rows(self, at: int, count: int) -> None:
        """Take rows out."""
        self.beginRemoveRows(QModelIndex(), at, at + count - 1)
        del self._rows[at : at + count]
        self.endRemoveRows()

    def replace_rows(self, at: int, rows: Sequence[R]) -> None:
        """Put rows in the place of as many."""
        self._rows[at : at + len(rows)] = rows
        if rows:
            self.dataChanged.emit(self.index(at, 0), self.index(at + len(rows) - 1, len(self.headers) - 1))

    # Qt

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """How many rows."""
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """As many as have a name."""
        return 0 if parent.isValid() else len(self.headers)

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Names of the columns."""
        shown = orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole
        return self.headers[section] if shown else None
