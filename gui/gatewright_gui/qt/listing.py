"""A listing: rows under columns that are data, a field that narrows them, what can be done with the chosen ones.

    rules = Listing(ListingModel(COLUMNS), "policy.rules", tr("Rules"), EmptyState("list", tr("No rules"), ""), verbs)
    bar = row_of(stretch(rules.search_field("policy.search")), rules.button("policy.remove"))
    column_of(bar, stretch(rules), into=page)
    rules.show_rows(policy.rules)

One delegate paints every column. The page gives the search field and the buttons their places.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from PySide6.QtCore import QItemSelectionModel, QModelIndex, QPoint, QRect, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QKeySequence, QPainter, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QStackedWidget, QStyleOptionViewItem, QWidget

from gatewright_gui.qt.language import key_names, tr
from gatewright_gui.qt.layout import named
from gatewright_gui.qt.look import Role, current_look, role_colour, role_hex, tie_icon
from gatewright_gui.qt.menu import add_action, popup_menu
from gatewright_gui.qt.plaintext import LEFT, button_text, label_text, line_text, tip_text
from gatewright_gui.qt.prose import paint_prose
from gatewright_gui.qt.table_model import ROW, Index, RowModel
from gatewright_gui.qt.widget.button import WordButton
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.item_view import Delegate, TableView, paint_ground, put_icon, tint
from gatewright_gui.qt.widget.text_field import SearchField

R = TypeVar("R")
REST = -1
"""The width of a column that takes what the others leave."""
_LONGEST_WORDS = 60
_FEW = 8
"""So many rows are found again one by one."""
_MARK, _GAP, _PAD = 16, 4, 8
_LEAST_MORE = 60
"""Pixels that words behind those of a cell need."""


@dataclass(frozen=True, slots=True)
class Column(Generic[R]):
    """The words that the cells of a column say of a row, and their look."""

    head: str
    """In English, `mark`ed."""
    text: Callable[[R], str]
    width: int = 0
    """Pixels; 0: as wide as its words; `REST`."""
    marks: Callable[[R], Sequence[tuple[str, Role]]] = lambda _: ()
    """Icons before the words; of several only prose shows more than the last. Without a name: their room."""
    role: Callable[[R], Role | None] = lambda _: None
    """The colour of the words, chosen or not."""
    tip: Callable[[R], str] | None = None
    """None: the row in whole."""
    spoken: Callable[[R], str] | None = None
    """What a screen reader says; None: the row in whole."""
    is_number: bool = False
    is_prose: bool = False
    """What stands in backticks is shown as code."""
    is_cut_within: bool = False
    """Words that are too long lose their middle, not their end."""
    least_room: int = 0
    """Pixels of the listing from which on there is room for the column."""


@dataclass(frozen=True, slots=True)
class Verb:
    """An act that can be done now with what is chosen: by a button, in the menu of the rows, by keys in them."""

    name: str
    """Of the button."""
    words: str
    """Without words only the keys are left."""
    act: Callable[[], object]
    tip: str = ""
    keys: str = ""
    """`Enter` stands for a double click too."""
    menu: str = ""
    """Words for the menu, where they say more than those of the button."""
    can: bool = True


class ListingModel(RowModel[R]):
    """Rows under columns, of which those are shown that have every word that is sought."""

    def __init__(self, columns: Sequence[Column[R]], whole: Callable[[R], str] | None = None) -> None:
        super().__init__()
        self.columns, self._whole = columns, whole
        self.headers = tuple(column.head for column in columns)
        self.numeric = frozenset(at for at, column in enumerate(columns) if column.is_number)
        self.every: tuple[R, ...] = ()
        """However they are narrowed."""
        self._sought: tuple[str, ...] = ()

    def whole(self, row: R) -> str:
        """All that a row says: the search looks there."""
        cells = (column.text(row) for column in self.columns)
        return ", ".join(filter(None, cells)) if self._whole is None else self._whole(row)

    def show_rows(self, rows: Iterable[R]) -> None:
        """Show these, as far as they fit."""
        self.every = tuple(rows)
        fitting = [row for row in self.every if self._fits(row)] if self._sought else self.every
        self.set_rows(self.arrange(fitting))

    def search(self, text: object) -> None:
        """Show only rows in which all of these words are."""
        self._sought = tuple(str(text).casefold().split())
        self.show_rows(self.every)

    def arrange(self, rows: Sequence[R]) -> Iterable[R]:
        """Put the rows that fit in their order, with headings perhaps."""
        return rows

    def key_at(self, at: int) -> object:
        """The key of a row; None where there is none."""
        row = self.row_at(at)
        return None if row is None else self.key(row)

    def _fits(self, row: R) -> bool:
        whole = self.whole(row).casefold()
        return all(word in whole for word in self._sought)

    def text(self, row: R, column: int) -> str:
        """Cells."""
        return self.columns[column].text(row)

    def more(self, row: R, column: int) -> str:
        """Words behind those of a cell, as far as there is room for them."""
        del row, column
        return ""

    def tip(self, row: R, column: int) -> str:
        """The words of the column, else all of the row."""
        return (self.columns[column].tip or self.whole)(row)

    def spoken(self, row: R, column: int) -> str:
        """The words of the column, else all of the row."""
        return (self.columns[column].spoken or self.whole)(row)


class ColumnDelegate(Delegate):
    """Icons and colours of cells, as their columns say."""

    def __init__(self, columns: Sequence[Column[Any]], parent: QWidget) -> None:
        super().__init__(parent)
        self._columns = columns

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        """Icon and colour."""
        super().initStyleOption(option, index)
        row, column, item = index.data(ROW), self._columns[index.column()], cast(Any, option)
        if column.is_cut_within:
            item.textElideMode = Qt.TextElideMode.ElideMiddle
        if row is None:
            return
        for icon, role in column.marks(row)[-1:]:
            put_icon(option, icon, role)
        if (role := column.role(row)) is not None:
            tint(option, role)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Prose by hand, all else as the style does."""
        row, column = index.data(ROW), self._columns[index.column()]
        if row is None or not column.is_prose:
            super().paint(painter, option, index)
            if row is not None:
                model = cast("ListingModel[Any]", index.model())
                self._paint_more(painter, option, index, model.more(row, index.column()))
            return
        look, rect = current_look(), QRect(getattr(option, "rect"))  # noqa: B009
        paint_ground(painter, option)
        painter.save()
        left, marks = rect.left() + _PAD, column.marks(row)
        for icon, role in marks:
            if icon:
                top = rect.top() + (rect.height() - _MARK) // 2
                look.icon(icon, role).paint(painter, QRect(left, top, _MARK, _MARK))
            left += _MARK + _GAP
        left += _GAP if marks else 0
        painter.setPen(QColor(role_hex(look.palette, column.role(row) or "text")))
        paint_prose(painter, QRect(left, rect.top(), rect.right() - left - _GAP, rect.height()), column.text(row))
        painter.restore()

    def _paint_more(self, painter: QPainter, option: QStyleOptionViewItem, index: Index, words: str) -> None:
        rect = QRect(getattr(option, "rect"))  # noqa: B009
        rect.setLeft(rect.left() + self.sizeHint(option, index).width())
        rect.setRight(rect.right() - _GAP)
        if words and rect.width() >= _LEAST_MORE:
            painter.save()
            painter.setPen(role_colour("muted"))
            painter.drawText(rect, LEFT, line_text(painter.fontMetrics(), words, rect.width()))
            painter.restore()


class _View(TableView):
    """Gives the keys of verbs to them."""

    act: Callable[[str], bool]

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Enter comes as what is activated."""
        keys = QKeySequence(event.keyCombination()).toString().replace("Num+", "").replace("Return", "Enter")
        if keys == "Enter" or not self.act(keys):
            super().keyPressEvent(event)


class Listing(QStackedWidget, Generic[R]):
    """The rows; where there are none, `empty`. What is chosen stays chosen while it is there.

    `verbs`: what can be done now, in the order of the menu. `is_many`: several rows can be chosen at once. `chooses`:
    some row is always the current one.
    """

    chosen_changed = Signal()
    """Other rows are chosen, or those that are say something else."""
    search: SearchField
    """Once `search_field` has made it."""

    def __init__(
        self,
        model: ListingModel[R],
        name: str,
        spoken: str,
        empty: EmptyState,
        verbs: Callable[[], Iterable[Verb]] = tuple,
        *,
        is_many: bool = False,
        chooses: bool = False,
    ) -> None:
        super().__init__()
        self.model, self.empty, self._verbs, self._is_many, self._chooses = model, empty, verbs, is_many, chooses
        self._kept: tuple[int, set[object]] = 0, set()
        self._buttons: dict[str, WordButton] = {}
        self.view = view = named(_View(spoken), name)
        view.act = self._act
        view.setModel(model)
        view.setItemDelegate(ColumnDelegate(model.columns, view))
        mode = QAbstractItemView.SelectionMode
        view.setSelectionMode(mode.ExtendedSelection if is_many else mode.SingleSelection)
        view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        view.customContextMenuRequested.connect(self._open_menu)
        view.activated.connect(self._activate)
        view.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header = view.horizontalHeader()
        header.setStretchLastSection(False)
        modes = {0: QHeaderView.ResizeMode.ResizeToContents, REST: QHeaderView.ResizeMode.Stretch}
        for at, column in enumerate(model.columns):
            header.setSectionResizeMode(at, modes.get(column.width, QHeaderView.ResizeMode.Interactive))
            if column.width > 0:
                view.setColumnWidth(at, column.width)
        self._columns = model.columns
        self._unknown = EmptyState("", "", "")
        self._unknown.set_unknown()
        for part in (empty, view, self._unknown):
            self.addWidget(part)
        model.modelAboutToBeReset.connect(self._keep)
        model.modelReset.connect(self._restore)
        selection = view.selectionModel()
        (selection.selectionChanged if is_many else selection.currentChanged).connect(self._tell_chosen)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Leave out columns for which there is no room."""
        super().resizeEvent(event)
        for at, column in enumerate(self._columns):
            if column.least_room:
                self.view.setColumnHidden(at, self.width() < column.least_room)

    @property
    def current(self) -> R | None:
        """The current row."""
        return self.model.row_at(self.view.currentIndex().row())

    @property
    def chosen(self) -> tuple[R, ...]:
        """The chosen rows."""
        rows = (self.model.row_at(index.row()) for index in self.view.selectionModel().selectedRows())
        return tuple(row for row in rows if row is not None)

    def search_field(self, name: str, words: str = "") -> SearchField:
        """Make the field that narrows the rows."""
        field = self.search = named(SearchField(words or tr("Filter")), name)
        field.search_changed.connect(self._narrow)
        field.results_requested.connect(self.view.setFocus)
        field.leave_requested.connect(self.view.setFocus)
        return field

    def button(self, name: str, icon: str = "") -> WordButton:
        """Make the button of a verb; it is hidden while the verb is not offered."""
        button = self._buttons[name] = named(WordButton(), name)
        button.setAutoDefault(False)
        if icon:
            tie_icon(button, icon)
        button.clicked.connect(lambda _=False: self._press(name))
        button.hide()
        return button

    def show_rows(self, rows: Iterable[R], *, is_known: bool = True) -> None:
        """Show these. Without any: that there is none, or that it is not known yet."""
        self.model.show_rows(rows)
        self.show_view(bool(self.model.every), is_known=is_known)

    def show_view(self, is_there: bool, *, is_known: bool = True) -> None:
        """Show the rows, or what is said instead of them."""
        self.setCurrentWidget(self.view if is_there else self.empty if is_known else self._unknown)
        if self._chooses and not self.view.currentIndex().isValid():
            self.choose(min(self._kept[0], self.model.count() - 1))
        self._tell_chosen()

    def choose(self, row: int) -> None:
        """Make a row the current one; in the place of one that cannot be chosen, the next that can."""
        if row < 0:
            return
        rows = (*range(row, self.model.count()), *range(row - 1, -1, -1))
        indexes = (self.model.index(at, 0) for at in rows)
        can = Qt.ItemFlag.ItemIsSelectable
        if (index := next((one for one in indexes if self.model.flags(one) & can), None)) is not None:
            self.view.setCurrentIndex(index)

    def tell(self) -> None:
        """Bring the buttons up to date with what can be done now."""
        offered = {verb.name: verb for verb in self._verbs() if verb.words}
        for name, button in self._buttons.items():
            verb = offered.get(name)
            button.setVisible(verb is not None)
            if verb is not None:
                button.setText(button_text(label_text(verb.words, _LONGEST_WORDS)))
                button.setToolTip(tip_text(verb.tip))
                button.setEnabled(verb.can)

    def _tell_chosen(self, *_what: object) -> None:
        self.chosen_changed.emit()
        self.tell()

    def _narrow(self, text: object) -> None:
        self.model.search(text)
        self.show_view(bool(self.model.every))

    def _keep(self) -> None:
        rows = {index.row() for index in self.view.selectionModel().selectedRows()}
        self._kept = max(self.view.currentIndex().row(), 0), set(map(self.model.key_at, rows))

    def _restore(self) -> None:
        _, kept = self._kept
        if self._is_many and kept:
            how = QItemSelectionModel.SelectionFlag.Select | QItemSelectionModel.SelectionFlag.Rows
            rows = map(self.model.find, kept) if len(kept) <= _FEW else range(self.model.count())
            for row in rows:
                if row >= 0 and self.model.key_at(row) in kept:
                    self.view.selectionModel().select(self.model.index(row, 0), how)
        elif kept:
            self.choose(self.model.find(*kept))

    def _press(self, name: str) -> None:
        for verb in self._verbs():
            if verb.name == name and verb.can:
                verb.act()
                return

    def _act(self, keys: str) -> bool:
        """Do what the keys stand for now; tell whether they stand for something."""
        verb = next((verb for verb in self._verbs() if keys and verb.keys == keys), None)
        if verb is not None and verb.can:
            verb.act()
        return verb is not None

    def _activate(self, _index: QModelIndex) -> None:
        self._act("Enter")

    def _open_menu(self, at: QPoint) -> None:
        verbs = [verb for verb in self._verbs() if verb.words]
        if not verbs or not self.view.indexAt(at).isValid():
            return
        menu = popup_menu(self)
        for verb in verbs:
            words = button_text(label_text(verb.menu or verb.words, _LONGEST_WORDS))
            keys = f"\t{key_names(verb.keys)}" if verb.keys else ""
            add_action(menu, f"{words}{keys}", verb.act, can=verb.can)
        menu.popup(self.view.viewport().mapToGlobal(at))
