"""A table whose rows have no children, under columns that have names; as a rule each row shows one value."""

from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from gatewright_gui.qt.language import tr

Index = QModelIndex | QPersistentModelIndex
R = TypeVar("R")
ROW = Qt.ItemDataRole.UserRole
"""The row as a value."""
Run = tuple[int, int]
MOST_MOVES = 64
"""More runs of rows are not moved one by one: the table begins anew."""
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class FlatModel(QAbstractTableModel):
    """A subclass names the columns, counts its rows and says what the cells show."""

    headers: tuple[str, ...] = ("",)
    """In English; of texts in the code, `mark`ed ones. A list has one column, whose name nobody sees."""
    header_tips: tuple[str, ...] = ()
    """Of every column, in English."""
    numeric: frozenset[int] = frozenset()
    """Columns that stand at the right, so that their numbers line up."""

    def count(self) -> int:
        """The number of rows."""
        raise NotImplementedError

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """The number of rows; none below a row."""
        return 0 if parent.isValid() else self.count()

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """The number of columns that have a name."""
        return 0 if parent.isValid() else len(self.headers)

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Names of the columns, in the language of the app."""
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(self.headers):
            return None
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return tr(self.headers[section])
            case Qt.ItemDataRole.ToolTipRole if self.header_tips:
                return tr(self.header_tips[section])
            case Qt.ItemDataRole.TextAlignmentRole if section in self.numeric:
                return int(RIGHT)
            case _:
                return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Rows can be chosen, and have nothing below them."""
        flags = super().flags(index)
        return flags | Qt.ItemFlag.ItemNeverHasChildren if index.isValid() else flags

    def tell_changed(self) -> None:
        """Any cell may say something else; the rows are the same."""
        if count := self.count():
            self.dataChanged.emit(self.index(0, 0), self.index(count - 1, len(self.headers) - 1))


class RowModel(FlatModel, Generic[R]):
    """A table of values, one a row. A subclass says what the cells show, and what stays of a row that changes."""

    def __init__(self, parent: QObject | None = None, rows: Iterable[R] = ()) -> None:
        super().__init__(parent)
        self.rows: Sequence[R] = tuple(rows)

    def key(self, row: R, /) -> object:
        """The key that makes a row the one that was there before, whatever it says now."""
        return row

    def text(self, row: R, column: int, /) -> str:
        """The text of a cell."""
        raise NotImplementedError

    def tip(self, _row: R, _column: int, /) -> str:
        """The tooltip of a cell; none where it is empty."""
        return ""

    def spoken(self, _row: R, _column: int, /) -> str:
        """The words that a screen reader says in the place of the text."""
        return ""

    def cell(self, row: R, column: int, role: int, /) -> Any:
        """The value of a row in a column, in one of Qt's roles or in its own."""
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self.text(row, column)
            case Qt.ItemDataRole.ToolTipRole:
                return self.tip(row, column) or None
            case Qt.ItemDataRole.AccessibleTextRole:
                return self.spoken(row, column) or None
            case _:
                return None

    def set_rows(self, rows: Iterable[R]) -> None:
        """Show these. Rows that are still there in their order stay, and with them what is chosen."""
        new = tuple(rows)
        before, after = [*map(self.key, self.rows)], [*map(self.key, new)]
        stay = before == after
        if not stay and (moves := _moves(before, after)) is not None:
            gone, come = moves
            for first, last in reversed(gone):
                self.beginRemoveRows(QModelIndex(), first, last)
                self.rows = (*self.rows[:first], *self.rows[last + 1 :])
                self.endRemoveRows()
            for first, last in come:
                self.beginInsertRows(QModelIndex(), first, last)
                self.rows = (*self.rows[:first], *new[first : last + 1], *self.rows[first:])
                self.endInsertRows()
            stay = True
        self.refresh_rows(new, stay=stay)

    def refresh_rows(self, rows: Sequence[R], *, stay: bool) -> None:
        """Show these; where they `stay`, each is the row that stood in its place."""
        if stay:
            self.rows = rows
            self.tell_changed()
        else:
            self.beginResetModel()
            self.rows = rows
            self.endResetModel()

    def row_at(self, at: int) -> R | None:
        """The value of a row, if there is one."""
        return self.rows[at] if 0 <= at < len(self.rows) else None

    def find(self, key: object) -> int:
        """The number of the row of a key; -1 where it is not shown."""
        return next((at for at, row in enumerate(self.rows) if self.key(row) == key), -1)

    def count(self) -> int:
        """The number of rows."""
        return len(self.rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """The value that the subclass gives of the row, and the row itself under `ROW`."""
        row = self.row_at(index.row())
        if row is None or role == ROW:
            return row
        if role == Qt.ItemDataRole.TextAlignmentRole and index.column() in self.numeric:
            return int(RIGHT)
        return self.cell(row, index.column(), role)


def _moves(before: Sequence[Any], after: Sequence[Any]) -> tuple[list[Run], list[Run]] | None:
    """Tell which rows go and which come; None where too much changes, or the rest changes its order."""
    numbers = dict[object, int]()  # a key may take long to hash
    try:
        old, new = ([numbers.setdefault(key, len(numbers)) for key in keys] for keys in (before, after))
    except TypeError:  # one that has no hash
        return None
    was, now = set(old), set(new)
    if len(was) < len(old) or len(now) < len(new):
        return None
    gone = _runs(at for at, key in enumerate(old) if key not in now)
    come = _runs(at for at, key in enumerate(new) if key not in was)
    is_ordered = [key for key in old if key in now] == [key for key in new if key in was]
    is_small = len(gone) + len(come) <= MOST_MOVES and bool(was & now or not was)
    return (gone, come) if is_ordered and is_small else None


def _runs(numbers: Iterable[int]) -> list[Run]:
    """Gather neighbours: the first and the last of each run."""
    runs = list[Run]()
    for number in numbers:
        begins_at = runs.pop()[0] if runs and runs[-1][1] == number - 1 else number
        runs.append((begins_at, number))
    return runs


class OrderedModel(RowModel[R]):
    """The rows of an `OrderedTable`: dragged, dropped between rows, read aloud with the names of their columns."""

    def spoken(self, row: R, column: int) -> str:
        """With the name of the column."""
        return f"{tr(self.headers[column])}: {self.text(row, column) or tr('none')}"

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Rows are dragged, and dropped between rows."""
        if not index.isValid():
            return Qt.ItemFlag.ItemIsDropEnabled
        return super().flags(index) | Qt.ItemFlag.ItemIsDragEnabled

    def supportedDropActions(self) -> Qt.DropAction:  # noqa: N802
        """Rows are moved."""
        return Qt.DropAction.MoveAction
