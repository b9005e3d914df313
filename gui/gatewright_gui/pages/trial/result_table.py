"""A result that lists equal objects as a table: a row for each, a column for every key that most of them have."""

import json
from collections import Counter
from typing import Any, cast

from PySide6.QtCore import QModelIndex, QSize, Qt
from PySide6.QtWidgets import QStyleOptionViewItem, QWidget

from gatewright.workspace.api import frozen
from gatewright_gui.pages.trial.json_tree_model import whole_text
from gatewright_gui.pages.trial.table import table_of
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, named, stretch
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.table_model import Index, RowModel
from gatewright_gui.qt.widget import CodeView, EmptyState
from gatewright_gui.qt.widget.item_view import Delegate
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.calls import cut

MAX_COLUMNS = 16
MAX_ASIDE = 200
"""Characters that a value beside the list may have; a longer one is what the result is about, not the list."""
_SAMPLED = 50
_CELL_CHARS = 300
_LONG = 60
_WIDE = 40
_WIDEST = 420
_NUMBERS = {int, float, type(None)}
_UNITS = {
    "bytes": mark("bytes"),
    "chars": mark("characters"),
    "tokens": mark("tokens"),
    "ms": "ms",
    "s": "s",
    "us": "\u00b5s",
}


@frozen
class ListedRows:
    """The objects of a list with the keys that are its columns; `words` is what the result says beside the list."""

    rows: tuple[dict[str, Any], ...]
    columns: tuple[str, ...]
    words: str


def rows_of_list(value: object) -> ListedRows | None:
    """The one list of objects that a result holds: itself, under `data`, or beside short values; None if there is none.

    An empty list counts only under `data`.
    """
    said = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    held: Any = said.get("data", value)
    beside: dict[str, Any] = {}
    if isinstance(held, dict):
        inner = cast("dict[str, Any]", held)
        lists = [key for key, one in inner.items() if _lists_objects(one)]
        if len(lists) != 1:
            return None
        held, beside = inner[lists[0]], {key: one for key, one in inner.items() if key != lists[0]}
    if not _lists_objects(held) or not (held or "data" in said):
        return None
    if any(len(_line(one)) > MAX_ASIDE for one in beside.values()):
        return None
    rows = tuple(cast("list[dict[str, Any]]", held))
    counts = Counter(key for row in rows for key in row)
    shared = [key for key in counts if counts[key] * 2 > len(rows)][:MAX_COLUMNS]
    columns = tuple(  # what is to be read comes first
        sorted(shared, key=lambda key: not any(len(_line(row.get(key))) > _WIDE for row in rows[:_SAMPLED]))
    )
    if rows and not columns:
        return None
    return ListedRows(rows, columns, _words(said.get("message"), beside, [key for key in counts if key not in columns]))


def _lists_objects(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in cast("list[object]", value))


def _words(message: object, beside: dict[str, Any], left: list[str]) -> str:
    parts = [message] if isinstance(message, str) and message else []
    parts += [f"{key}: {_cell(key, one)}" for key, one in beside.items() if key != "message"]
    if left:
        parts.append(tr("only in the tree: {names}", names=", ".join(left[:MAX_COLUMNS])))
    return "; ".join(parts)


def _line(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text[: 4 * _CELL_CHARS].split())


def _cell(key: str, value: object) -> str:
    """A value on one line; a number with the unit that its key ends in, `size_bytes`."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return tr("yes") if value else tr("no")
    if not isinstance(value, int | float):
        return _line(value)[:_CELL_CHARS]
    if unit := _UNITS.get(key.rpartition("_")[2]):
        return f"{value:,} {tr(unit)}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


class ResultTableModel(RowModel[dict[str, Any]]):
    """Numbers stand at the right, so that they line up."""

    headers = ()

    def set_listed(self, listed: ListedRows) -> None:
        """Show other rows."""
        self.beginResetModel()
        self.rows, self.headers = listed.rows, listed.columns
        first = listed.rows[:_SAMPLED]
        are_numbers = (all(type(row.get(key)) in _NUMBERS for row in first) for key in listed.columns)
        self.numeric = frozenset(column for column, is_numeric in enumerate(are_numbers) if is_numeric)
        self.endResetModel()

    def whole_at(self, index: Index) -> str:
        """The value of a cell, whole: a text as it is, else JSON."""
        return _whole(self.rows[index.row()], self.headers[index.column()])

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """The keys as they are: they are the tool's words."""
        heading = super().headerData(section, orientation, role)
        return self.headers[section] if heading is not None and role == Qt.ItemDataRole.DisplayRole else heading

    def cell(self, row: dict[str, Any], column: int, role: int) -> Any:
        """The value on one line, whole in the tooltip."""
        key = self.headers[column]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return _cell(key, row[key]) if key in row else ""
            case Qt.ItemDataRole.ToolTipRole:
                return _whole(row, key)
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{key}: {_cell(key, row.get(key))}"
            case _:
                return None


def _whole(row: dict[str, Any], key: str) -> str:
    return whole_text(row[key]) if key in row else ""


class _Delegate(Delegate):
    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        super().initStyleOption(option, index)
        item: Any = option
        item.textElideMode = Qt.TextElideMode.ElideRight


class ResultTableView(QWidget):
    """The sentence of the result above its rows; below them the chosen value where it is long."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = ResultTableModel(self)
        self.words = named(Label(wraps=True), "console.table.words", kind="small")
        self.words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        space = current_look().tokens.space_2
        self.words.setContentsMargins(space, 1, space, 1)
        self.table = table_of(self.model, _Delegate, tr("Result as a table"), "console.table")
        self.table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.table.selectionModel().currentChanged.connect(self._choose)
        self.empty = EmptyState("list", tr("The list is empty"), tr("The call returned no rows."))
        self.whole = named(CodeView(tr("The chosen value")), "console.table.value")
        self.whole.set_wrapping(True)
        self.whole.setMaximumHeight(110)
        column_of(self.words, stretch(self.table), stretch(self.empty), self.whole, into=self)

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """Lower than its parts: a result must not push its neighbours aside."""
        return QSize(super().minimumSizeHint().width(), self.words.minimumSizeHint().height())

    def set_listed(self, listed: ListedRows) -> None:
        """Show the rows of another result."""
        self.model.set_listed(listed)
        self.words.setText(listed.words)
        self.words.setVisible(bool(listed.words))
        self.table.setVisible(bool(listed.rows))
        self.empty.setVisible(not listed.rows)
        self.whole.hide()
        self.table.horizontalHeader().setResizeContentsPrecision(_SAMPLED)
        for column in range(len(listed.columns)):
            self.table.resizeColumnToContents(column)
            self.table.setColumnWidth(column, min(self.table.columnWidth(column), _WIDEST))

    def _choose(self, current: QModelIndex, _before: QModelIndex) -> None:
        text = self.model.whole_at(current) if current.isValid() else ""
        is_long = len(text) > _LONG or "\n" in text
        self.whole.setVisible(is_long)
        if is_long:
            self.whole.set_plain(cut(text))
