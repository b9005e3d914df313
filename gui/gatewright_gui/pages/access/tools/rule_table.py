"""A small table of rules that is edited in place: its rows, its view, its editors."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeVar, cast

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QRect, Qt, Signal
from PySide6.QtGui import QIcon, QKeyEvent, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QHeaderView,
    QLineEdit,
    QStyleOptionViewItem,
    QWidget,
)

from gatewright.workspace.api import Address
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import named
from gatewright_gui.qt.look import Role
from gatewright_gui.qt.plaintext import LONGEST_LINE, label_text
from gatewright_gui.qt.table_model import Index, RowModel
from gatewright_gui.qt.widget.item_view import TableView, tint
from gatewright_gui.qt.widget.text_field import NumberField, ValueDelegate, ValueField

LINK = Qt.ItemDataRole.UserRole + 1
"""Words that lead to a line, in the last column; empty where nothing does."""
_PAD = 10
_SHARE = 0.66
"""Of the width, for all columns but the one that is stretched."""


class RuleRow(Protocol):
    """The properties of a row that the table needs."""

    @property
    def key(self) -> Hashable:
        """The part of the row that stays the same over an edit."""
        ...

    @property
    def address(self) -> Address | None:
        """The place where it stands; None: nowhere in the file."""
        ...

    @property
    def is_own(self) -> bool:
        """Tell whether it can be removed here."""
        ...


R = TypeVar("R", bound=RuleRow)


class RuleRows(RowModel[R], Generic[R]):
    """Rows that stand in the policy file, one of them at most a draft that is not written yet.

    Rows keep their identity over an edit. A subclass names the columns, where the rows stand is the last of them.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._draft: R | None = None
        self._lines: Mapping[Address, int] = {}
        self._file = ""

    def editor_value(self, row: R, column: int) -> object:
        """The value that an editor of the cell begins with."""
        raise NotImplementedError

    def can_edit(self, row: R, column: int) -> bool:
        """Tell whether the cell can be edited in place."""
        raise NotImplementedError

    def edit_cell(self, row: R, column: int, value: Any) -> bool:
        """Ask a verb for what was typed or chosen in a cell that can be edited; False: refused, or nothing new."""
        raise NotImplementedError

    def place_of(self, draft: R, rows: Sequence[R]) -> int:
        """Before which of the rows a new one belongs."""
        raise NotImplementedError

    def key(self, row: R, /) -> Hashable:
        """The part of the row that stays the same over an edit."""
        return row.key

    def link(self, row: R) -> str:
        """The words that lead to a row's line; empty while it is not known."""
        line = self._lines.get(row.address) if row.address is not None else None
        return "" if line is None else tr("line {line}", line=line)

    @property
    def addresses(self) -> tuple[Address, ...]:
        """The places whose lines are wanted."""
        return tuple(dict.fromkeys(row.address for row in self.rows if row.address is not None))

    def set_lines(self, lines: Mapping[Address, int], file: str = "") -> None:
        """Set where the places stand now, and in which file."""
        self._lines, self._file = lines, file
        self.tell_changed()

    def row_of(self, address: Address) -> int | None:
        """The row that stands at a place."""
        return next((at for at, row in enumerate(self.rows) if row.address == address), None)

    def line_at(self, row: int) -> int | None:
        """The line at which a row stands, once it is known."""
        held = self.row_at(row)
        return self._lines.get(held.address) if held is not None and held.address is not None else None

    # rows

    def set_rows(self, rows: Iterable[R]) -> None:
        """Show these, and the row that is being made: what is alike at both ends stays, with selection and editors."""
        new = list(rows)
        if self._draft is not None:
            new.insert(self.place_of(self._draft, new), self._draft)
        before, after = [row.key for row in self.rows], [row.key for row in new]
        shorter = min(len(before), len(after))
        head = next((i for i in range(shorter) if before[i] != after[i]), shorter)
        room = shorter - head
        tail = next((i for i in range(room) if before[-1 - i] != after[-1 - i]), room)
        if len(before) - head - tail:
            self._splice(head, len(before) - head - tail, ())
        if len(after) - head - tail:
            self._splice(head, 0, new[head : len(after) - tail])
        self.refresh_rows(new, stay=True)

    def begin_draft(self, draft: R) -> int:
        """A new row that is being made, instead of any other."""
        self.drop_draft()
        self._draft, at = draft, self.place_of(draft, self.rows)
        self._splice(at, 0, [draft])
        return at

    def change_draft(self, draft: R) -> None:
        """The new row says something else, and is not written yet."""
        rows = [draft if row is self._draft else row for row in self.rows]
        self._draft = draft
        self.refresh_rows(rows, stay=True)

    def drop_draft(self) -> None:
        """Forget a new row that was not written."""
        if self._draft is not None:
            at = self.rows.index(self._draft)
            self._draft = None
            self._splice(at, 1, ())

    def write(self, row: R, ask: Callable[[], bool]) -> bool:
        """Write a row; a draft becomes the row that was written, where that stands in the list."""
        if row != self._draft:
            return ask()
        draft, self._draft = self._draft, None
        if ask():
            return True
        self._draft = draft
        return False

    def _splice(self, at: int, gone: int, new: Sequence[R]) -> None:
        """Take rows away, or put rows in."""
        if gone:
            self.beginRemoveRows(QModelIndex(), at, at + gone - 1)
        else:
            self.beginInsertRows(QModelIndex(), at, at + len(new) - 1)
        self.rows = (*self.rows[:at], *new, *self.rows[at + gone :])
        (self.endRemoveRows if gone else self.endInsertRows)()

    # Qt

    def cell(self, row: R, column: int, role: int, /) -> Any:
        """Texts, and what delegates draw and edit from."""
        link = self.link(row) if column == len(self.headers) - 1 else ""
        match role:
            case Qt.ItemDataRole.EditRole:
                return self.editor_value(row, column)
            case Qt.ItemDataRole.ToolTipRole if link:
                text = self.text(row, column)
                return tr("{line} of {file}. Click: go there", line=text, file=self._file)
            case Qt.ItemDataRole.ToolTipRole if column == len(self.headers) - 1:
                return self.text(row, column) or None
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{tr(self.headers[column])}: {self.text(row, column) or tr('none')}"
            case _ if role == LINK:
                return link
            case _:
                return super().cell(row, column, role)

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Some cells can be edited."""
        row, flags = self.row_at(index.row()), super().flags(index)
        return flags | Qt.ItemFlag.ItemIsEditable if row is not None and self.can_edit(row, index.column()) else flags

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:  # noqa: N802
        """Ask for another value of a cell that can be edited."""
        row = self.row_at(index.row()) if role == Qt.ItemDataRole.EditRole else None
        return row is not None and self.can_edit(row, index.column()) and self.edit_cell(row, index.column(), value)


class RuleTable(TableView):
    """Enter edits, Del removes, Ins adds, a click on a link goes to its line.

    One column gets the room that the others leave over; `bounds`: least and most width of those, in pixels.
    """

    add_requested = Signal()
    remove_requested = Signal()
    edit_requested = Signal()
    line_clicked = Signal(object)
    """Row: int."""

    def __init__(self, name: str, bounds: Mapping[int, tuple[int, int]], parent: QWidget | None = None) -> None:
        super().__init__(name, parent)
        self._bounds = bounds
        named(self.horizontalHeader(), kind="inset")  # as far in as the words of the cells
        triggers = QAbstractItemView.EditTrigger
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(triggers.DoubleClicked | triggers.SelectedClicked)

    def settle(self, stretched: int) -> None:
        """Once there is a model: the column that gets the rest."""
        header = self.horizontalHeader()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(stretched, QHeaderView.ResizeMode.Stretch)
        self.fit()

    def fit(self) -> None:
        """Give each column the width of its contents, less where the table is narrow; for tables of few rows.

        The last one, which says where a row stands, is shown once one does.
        """
        model = self.model()
        last = model.columnCount() - 1
        self.setColumnHidden(last, not any(model.index(row, last).data() for row in range(model.rowCount())))
        wide = {column: self._column_width(column) for column in self._bounds}
        over = sum(wide.values()) - int(self.viewport().width() * _SHARE)
        spare = sum(width - self._bounds[column][0] for column, width in wide.items())
        for column, width in wide.items():
            least = self._bounds[column][0]
            cut = (width - least) * min(over, spare) // spare if over > 0 and spare else 0
            self.setColumnWidth(column, width - cut)

    def show_row(self, row: int | None, column: int) -> None:
        """Make a row the current one and bring the keys to it; None: leave all as it is."""
        if row is not None:
            self.setCurrentIndex(self.model().index(row, column))
            self.scrollTo(self.currentIndex())
            self.setFocus()

    def keep_keys(self) -> None:
        """Once an editor is gone: take the keys back, unless one has gone elsewhere with them."""
        held = self.window().focusWidget()
        if not held or self.isAncestorOf(held):
            self.setFocus()

    def _column_width(self, column: int) -> int:
        least, most = self._bounds[column]
        shown = max(self.sizeHintForColumn(column), self.horizontalHeader().sectionSizeHint(column)) + _PAD
        return min(max(shown, least), most)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Another width, other shares."""
        super().resizeEvent(event)
        self.fit()

    def edit(self, *asked: Any) -> Any:
        """Open an editor at once, also right after a click that would open one a little later."""
        if len(asked) == 1:
            asked = (asked[0], QAbstractItemView.EditTrigger.DoubleClicked, None)
        return cast("bool | None", super().edit(*asked))

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """The keys of the list; Enter in an editor that leaves it to others belongs to the editor all the same."""
        if self.state() == QAbstractItemView.State.EditingState:
            super().keyPressEvent(event)
            return
        match event.key():
            case Qt.Key.Key_Insert:
                self.add_requested.emit()
            case Qt.Key.Key_Delete | Qt.Key.Key_Backspace:
                self.remove_requested.emit()
            case Qt.Key.Key_Return | Qt.Key.Key_Enter | Qt.Key.Key_F2:
                self.edit_requested.emit()
            case _:
                super().keyPressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """A click on a link goes to the line."""
        super().mouseReleaseEvent(event)
        index = self.indexAt(event.position().toPoint())
        is_last = index.isValid() and index.column() == self.model().columnCount() - 1
        if event.button() == Qt.MouseButton.LeftButton and is_last:
            self.line_clicked.emit(index.row())


class RuleDelegate(ValueDelegate):
    """Texts in the colour of their role, and editors that begin with what can be typed. A subclass makes them."""

    def role_of(self, index: Index) -> Role:
        """The colour of the words of a cell."""
        raise NotImplementedError

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        """The colour."""
        super().initStyleOption(option, index)
        tint(option, self.role_of(index))

    def choice_field(
        self, parent: QWidget, name: str, spoken: str, choices: Iterable[tuple[str, object, QIcon | None]]
    ) -> QComboBox:
        """A list of words, values and pictures; a choice is handed over at once."""
        field = named(QComboBox(parent), name, spoken=spoken)
        for text, value, icon in choices:
            field.addItem(icon or QIcon(), label_text(text, LONGEST_LINE, keep=""), value)
        field.activated.connect(partial(self._hand_over, field))
        return field

    def _hand_over(self, field: QComboBox, _index: int) -> None:
        self.commitData.emit(field)
        self.closeEditor.emit(field, self.EndEditHint.NoHint)

    def setEditorData(self, editor: QWidget, index: Index) -> None:  # noqa: N802
        """Set what stands there, as it can be typed or chosen."""
        value = index.data(Qt.ItemDataRole.EditRole)
        if isinstance(editor, NumberField):
            editor.setValue(int(value))
            editor.selectAll()
        elif isinstance(editor, QComboBox):
            values = [editor.itemData(at) for at in range(editor.count())]
            editor.setCurrentIndex(values.index(value) if value in values else 0)
        elif isinstance(editor, QLineEdit):
            editor.setText(str(value))

    def setModelData(self, editor: QWidget, model: QAbstractItemModel, index: Index) -> None:  # noqa: N802
        """Hand over what can be taken."""
        where = model.index(index.row(), index.column())
        if isinstance(editor, NumberField):
            editor.interpretText()
            model.setData(where, str(editor.value()))
        elif isinstance(editor, QComboBox):
            model.setData(where, editor.currentData())
        elif isinstance(editor, ValueField) and not editor.refused:
            model.setData(where, editor.text())

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        """Over the cell, never too narrow to type in."""
        del index
        rect: QRect = getattr(option, "rect")  # noqa: B009
        rect.setWidth(max(rect.width(), min(editor.sizeHint().width(), 160)))
        editor.setGeometry(rect)
