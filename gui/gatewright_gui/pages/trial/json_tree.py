"""A result as a tree of JSON: search, open and close, the chosen value whole, copies of it."""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

from PySide6.QtCore import QModelIndex, QObject, QPoint, QSize, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QStyleOptionViewItem,
    QWidget,
)

from gatewright_gui.pages.trial.json_tree_model import (
    KEY,
    KIND,
    VALUE,
    JsonTreeModel,
    is_small,
    whole_text,
)
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import column_of, named, row_of, stretch
from gatewright_gui.qt.look import Role, current_look
from gatewright_gui.qt.menu import add_action, popup_menu
from gatewright_gui.qt.table_model import Index
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget import CodeView, SearchField, TreeView
from gatewright_gui.qt.widget.button import icon_button
from gatewright_gui.qt.widget.item_view import Delegate, tint
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.calls import cut

SLICE_S = 0.008


class Slices(QObject):
    """One piece of work at a time: an iterator that is drawn from; `told` is called after every slice."""

    def __init__(self, told: Callable[[], object] = lambda: None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._told = told
        self._work: Iterator[object] | None = None
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._go_on)

    @property
    def is_running(self) -> bool:
        """Tell whether there is work left."""
        return self._work is not None

    def start(self, work: Iterator[object]) -> None:
        """Begin; what was under way is dropped."""
        self._work = work
        self._timer.start()

    def stop(self) -> None:
        """Drop what is left."""
        self._work = None
        self._timer.stop()

    def _go_on(self) -> None:
        until = time.perf_counter() + SLICE_S
        work = self._work
        while work is not None and time.perf_counter() < until:
            if next(work, self) is self:
                self.stop()
                break
        self._told()


MAX_HITS = 1_000
"""Places that a search finds at most."""
MAX_OPENED = 1_000
"""Rows that are opened at most by one press."""
_ROW = 20
_COLOURS: dict[str, Role] = {"number": "accent", "boolean": "accent", "null": "disabled"}


class _Delegate(Delegate):
    """Keys stand back, numbers and constants stand out."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        super().initStyleOption(option, index)
        item: Any = option
        item.font = current_look().mono_font
        kind = str(index.data(KIND))
        if index.column() == VALUE:
            if kind in {"object", "array"}:
                tint(option, "muted")
            elif kind in _COLOURS:
                tint(option, _COLOURS[kind])

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        """Low rows: many are to be seen."""
        return QSize(super().sizeHint(option, index).width(), _ROW)


class JsonTreeView(QWidget):
    """Enter in the field goes to the next place, Shift+Enter to the one before; Ctrl+C copies the chosen value."""

    def __init__(self, tasks: TaskOwner, parent: QWidget | None = None, *, name: str = "console.tree") -> None:
        super().__init__(parent)
        self._tasks = tasks
        self.model = JsonTreeModel(self)
        self.tree = named(TreeView(tr("Result as a tree")), name)
        self.tree.setModel(self.model)
        self.tree.setItemDelegate(_Delegate(self.tree))
        self.tree.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.tree.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.tree.customContextMenuRequested.connect(self._open_menu)
        self.tree.selectionModel().currentChanged.connect(self._show_current)
        self.tree.installEventFilter(self)
        self.search = named(SearchField(tr("Search keys and values")), f"{name}.search")
        self.search.search_changed.connect(self._search)
        self.search.results_requested.connect(self.tree.setFocus)
        self.search.leave_requested.connect(self.tree.setFocus)
        self.search.installEventFilter(self)
        self._count = named(Label(), kind="small")
        self.open_button = icon_button(
            "chevrons-up-down", tr("Open all below the chosen row"), f"{name}.open", self.open_below
        )
        self.close_button = icon_button(
            "chevrons-down-up", tr("Close all below the chosen row"), f"{name}.close", self.close_below
        )
        self.copy_value_button = icon_button(
            "copy", tr("Copy the chosen value (Ctrl+C)"), f"{name}.copyvalue", self.copy_value
        )
        self.copy_path_button = icon_button(
            "link", tr("Copy the path of the chosen value (Ctrl+Shift+C)"), f"{name}.copypath", self.copy_path
        )
        self.path = named(Label(), f"{name}.path", kind="small")
        self.whole = named(CodeView(tr("The chosen value")), f"{name}.value")
        self.whole.set_wrapping(True)
        self.whole.hide()
        self._hits: list[tuple[int, ...]] = []
        self._at = -1
        self._looking = Slices(self._tell_hits, self)
        self._opening = Slices(parent=self)
        self._lay_out()

    def set_value(self, value: object, root: str = "") -> None:
        """Show another value under that name, open as far as it is short."""
        self._stop()
        self.search.clear()
        self.model.set_value(value, root or tr("result"))
        self._open_first()
        self.tree.setCurrentIndex(self.model.index(0, 0))

    def clear(self) -> None:
        """Show nothing."""
        self._stop()
        self.model.clear()
        self.whole.hide()
        self.path.clear()

    # opening

    def open_below(self) -> None:
        """Open what is below the chosen row, so much of it as a window can serve."""
        self._opening.start(self._open_below(self._current()))

    def _open_below(self, first: QModelIndex) -> Iterator[None]:
        left = MAX_OPENED
        stack = [first]
        while stack and left > 0:
            index = stack.pop()
            rows = self.model.rowCount(index)
            self.tree.expand(index)
            left -= rows
            inner = [self._at_row(index, row) for row in range(rows)]
            stack += [one for one in reversed(inner) if self.model.rowCount(one)]
            yield

    def close_below(self) -> None:
        """Close the chosen row and what is below it."""
        self._opening.stop()
        index = self._current()
        if index == self.model.index(0, 0):
            self.tree.collapseAll()
            self.tree.expand(index)
        else:
            self.tree.collapse(index)

    def _open_first(self) -> None:
        """The first levels, while they are no longer than a page or two."""
        left, level = 60, [self.model.index(0, 0)]
        while level and left > 0:
            deeper: list[QModelIndex] = []
            for index in level:
                rows = self.model.rowCount(index)
                if rows > left:
                    continue
                left -= rows
                self.tree.expand(index)
                deeper += [self._at_row(index, row) for row in range(rows)]
            level = [index for index in deeper if self.model.rowCount(index)]
        first = self.model.index(0, 0)
        if not self.tree.isExpanded(first):
            self.tree.expand(first)

    def _at_row(self, index: QModelIndex, row: int) -> QModelIndex:
        return self.model.index(row, 0, index)

    def _current(self) -> QModelIndex:
        index = self.tree.currentIndex()
        return index.siblingAtColumn(0) if index.isValid() else self.model.index(0, 0)

    # copying

    def copy_value(self) -> None:
        """Put the chosen value on the clipboard: a text as it is, else JSON."""
        value = self.model.part_at(self._current())
        if is_small(value):
            QGuiApplication.clipboard().setText(whole_text(value))
        else:
            self._tasks.start(self._copy_aside(value), f"{self.tree.objectName()}.copy", replace=True)

    async def _copy_aside(self, value: Any) -> None:
        """Write out what is large beside the window."""
        QGuiApplication.clipboard().setText(await asyncio.to_thread(whole_text, value))

    def copy_path(self) -> None:
        """Put the place of the chosen value on the clipboard."""
        QGuiApplication.clipboard().setText(self.model.path_at(self._current()))

    def _open_menu(self, at: QPoint) -> None:
        menu = popup_menu(self)
        add_action(menu, tr("Copy value"), self.copy_value)
        add_action(menu, tr("Copy path"), self.copy_path)
        add_action(menu, tr("Open all below"), self.open_below)
        add_action(menu, tr("Close all below"), self.close_below)
        menu.popup(self.tree.viewport().mapToGlobal(at))

    # searching

    def focus_search(self) -> None:
        """Bring the keys to the field."""
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    @property
    def hits(self) -> int:
        """The number of places found so far."""
        return len(self._hits)

    @property
    def is_searching(self) -> bool:
        """Tell whether the search is still under way."""
        return self._looking.is_running

    @property
    def is_opening(self) -> bool:
        """Tell whether rows are still being opened."""
        return self._opening.is_running

    def step(self, by: int) -> None:
        """Go to another place that was found."""
        if self._hits:
            self._at = (self._at + by) % len(self._hits)
            self._show_hit()

    def _search(self, text: str) -> None:
        self._stop()
        self._hits.clear()
        self._at = -1
        self._count.clear()
        if text:
            self._looking.start(self._look_for(text))

    def _stop(self) -> None:
        self._looking.stop()
        self._opening.stop()

    def _look_for(self, text: str) -> Iterator[None]:
        for positions in self.model.find(text):
            if positions is not None:
                self._hits.append(positions)
            if len(self._hits) >= MAX_HITS:
                return
            yield

    def _tell_hits(self) -> None:
        """A slice of the search is done."""
        if self._hits and self._at < 0:
            self._at = 0
            self._show_hit()
        self._tell_count()

    def _show_hit(self) -> None:
        index = self.model.index_of(self._hits[self._at])
        self.tree.setCurrentIndex(index)
        self.tree.scrollTo(index)
        self._tell_count()

    def _tell_count(self) -> None:
        more = "+" if self.is_searching or len(self._hits) >= MAX_HITS else ""
        if self._hits:
            self._count.setText(tr("{count:,} of {all:,}", count=self._at + 1, all=len(self._hits)) + more)
        else:
            self._count.setText("..." if self.is_searching else tr("not found"))

    # the chosen value

    def _show_current(self, current: QModelIndex, _before: QModelIndex) -> None:
        index = current.siblingAtColumn(0)
        path = self.model.path_at(index) if index.isValid() else ""
        self.path.setText(path if path != "$" else "")  # the whole has no place of its own
        text = self.model.text_at(index) if index.isValid() and self.model.is_text(index) else ""
        is_long = len(text) > 60 or "\n" in text
        self.whole.setVisible(is_long)
        if is_long:
            self.whole.set_plain(cut(text))

    def eventFilter(self, watched: object, event: object) -> bool:  # noqa: N802
        """Enter searches on; Ctrl+C and Ctrl+Shift+C copy."""
        if isinstance(event, QKeyEvent) and event.type() == QKeyEvent.Type.KeyPress:
            shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            if watched is self.search and event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
                self.step(-1 if shift else 1)
                return True
            if watched is self.tree and event.matches(QKeySequence.StandardKey.Copy):
                self.copy_value()
                return True
            control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
            if watched is self.tree and control and shift and event.key() == Qt.Key.Key_C:
                self.copy_path()
                return True
        return super().eventFilter(watched, event)  # pyright: ignore[reportArgumentType]

    # the parts

    def _lay_out(self) -> None:
        buttons = (self.open_button, self.close_button, self.copy_value_button, self.copy_path_button)
        bar = row_of(stretch(self.search), self._count, *buttons, space=1, margins=(2, 0, 1, 1))
        self.tree.setColumnWidth(KEY, 220)
        self.whole.setMaximumHeight(110)
        space = current_look().tokens.space_2
        self.path.setContentsMargins(space, 1, space, 1)
        self.path.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        column_of(bar, stretch(self.tree), self.path, self.whole, into=self)
