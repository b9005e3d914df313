"""The real folder of a source as a coloured tree, or why it cannot be shown."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import cast

from PySide6.QtCore import QItemSelectionModel, QModelIndex, QPoint, QRect, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QHeaderView, QMenu, QStackedWidget, QStyleOptionViewItem, QWidget

from gatewright.workspace.api import Permission
from gatewright_gui.pages.access.files import folder_tree
from gatewright_gui.pages.access.files.file_filter import NO_FILTER
from gatewright_gui.pages.access.files.filter_bar import FilterBar
from gatewright_gui.pages.access.files.folder_tree import FolderRow, FolderTreeModel
from gatewright_gui.pages.access.files.level import (
    LEVELS,
    draw_chip,
    draw_ground,
    draw_words,
    is_marked,
    is_selected,
    rect_of,
)
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, named, stretch
from gatewright_gui.qt.look import Role, current_look, role_colour
from gatewright_gui.qt.menu import add_action, popup_menu
from gatewright_gui.qt.plaintext import button_text
from gatewright_gui.qt.table_model import Index
from gatewright_gui.qt.widget import (
    ElidedLabel,
    EmptyState,
    IconButton,
    MessageBar,
    ProgressStrip,
    SectionHeader,
    TreeView,
)
from gatewright_gui.qt.widget.item_view import Delegate
from gatewright_gui.qt.widget.message_bar import FootBars
from gatewright_gui.session.courtesy import painting
from gatewright_gui.session.verdict import permission_words

_ICON = 16
_TREE_PAD = 7
"""From the edge of a cell to its words."""
_KIND_ICONS = {"folder": "folder", "file": "file-text", "note": "info"}


class FolderDelegate(Delegate):
    """Draws entries of the folder: icon and name in the colour of the level, its word as a chip."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Names with their icon, levels as chips."""
        cell, column = rect_of(option), index.column()
        row = cast("FolderRow", index.data(folder_tree.SHOWN))
        if is_marked(option):
            draw_ground(painter, option)
        mark = row.mark
        if column == folder_tree.NAME:
            role: Role = mark.role if mark is not None else "muted"
            self._draw_named(painter, cell, _KIND_ICONS[row.kind], role, row.name, _ICON)
        elif mark is None:
            return
        elif column == folder_tree.LEVEL:
            draw_chip(painter, cell, mark.word, mark.icon, mark.role, outlined=is_selected(option))
        elif column == folder_tree.RULE:
            draw_words(painter, cell.adjusted(_TREE_PAD, 0, -_TREE_PAD, 0), row.rule_word, role_colour("muted"))
        elif row.state:
            role = row.state_role or "accent"
            size = current_look().tokens.small_icon_size
            self._draw_named(painter, cell, row.state_icon or "clock", role, row.state, size)

    @staticmethod
    def _draw_named(painter: QPainter, cell: QRect, icon: str, role: Role, words: str, size: int) -> None:
        """An icon and words behind it."""
        place = QRect(cell.left() + _TREE_PAD, cell.top() + (cell.height() - size) // 2, size, size)
        current_look().icon(icon, role).paint(painter, place)
        room = cell.adjusted(2 * _TREE_PAD + size - 1, 0, -_TREE_PAD, 0)
        draw_words(painter, room, words, role_colour(role))


Given = Callable[[str], Permission | None]
"""The level that a path has now; None where no rule can give it another."""
_NO_FILES = (mark("The folder is empty"), mark("Files that are put into it appear here"))


class _Tree(TreeView):
    """Return opens and closes folders; of a file it leads to its rule."""

    def __init__(self, model: FolderTreeModel, parent: QWidget) -> None:
        super().__init__(tr("Folder with levels"), parent)
        self.setObjectName("files.tree")
        self.setModel(model)
        self.setItemDelegate(FolderDelegate(self))
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.header().setStretchLastSection(False)
        self.header().setSectionResizeMode(folder_tree.NAME, QHeaderView.ResizeMode.Stretch)
        self.setColumnWidth(folder_tree.LEVEL, 114)
        self.setColumnWidth(folder_tree.RULE, max(88, self.header().sectionSizeHint(folder_tree.RULE)))
        self.setColumnWidth(folder_tree.STATE, 126)
        self.setColumnHidden(folder_tree.STATE, True)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Return on a folder."""
        index = self.currentIndex()
        is_return = event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and not event.modifiers()
        if is_return and index.isValid() and index.data(folder_tree.KIND) == "folder":
            row = index.siblingAtColumn(folder_tree.NAME)
            self.setExpanded(row, not self.isExpanded(row))
            return
        super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Paint while what counts in threads holds still."""
        with painting():
            super().paintEvent(event)


class FolderPanel(QWidget):
    """Tree and header; a folder that cannot be read is said in their place."""

    refresh_requested = Signal()
    read_cancelled = Signal()
    path_chosen = Signal(object)
    """Path from the base of the row that was chosen, a folder's ends with `/`: str."""

    rule_asked = Signal(object)
    """The row that decides this path is to be gone to: str."""
    help_requested = Signal()
    """The levels are to be explained."""

    who_asked = Signal(object)
    """It is to be said who can touch this path: str."""
    level_asked = Signal(object, object)
    """A path is to have a level of its own: str, Permission."""

    def __init__(self, model: FolderTreeModel, given: Given, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self.given = given
        self._stack = QStackedWidget(self)
        self.tree = _Tree(model, self._stack)
        self.bar = FilterBar()
        self.help_button = named(IconButton("circle-help", tr("What the levels mean (Shift+F1)")), "files.help")
        self.use_bar = named(MessageBar(), "files.use")
        self.strip = ProgressStrip()
        self.empty = named(EmptyState("folder-open", *map(tr, _NO_FILES), parent=self._stack), "files.empty")
        self._stack.addWidget(self.tree)
        self._stack.addWidget(self.empty)
        self._path = ElidedLabel(path=True, mono=True, role="muted")
        self.refresh_button = named(IconButton("refresh-cw", tr("Read the folder again (F5)")), "files.refresh")
        self.refresh_button.setShortcut("F5")
        self._lay_out()
        self._connect()

    def show_path(self, path: str) -> None:
        """Say which folder it is."""
        self._path.set_text(path)

    def show_tree(self) -> None:
        """The folder was read."""
        if self._model.is_empty and self.bar.filter.is_on:
            self.empty.set_state("search", tr("No file fits"), tr("The filter leaves nothing"), action=tr("Show all"))
        elif self._model.is_empty:
            self.empty.set_state("folder-open", *map(tr, _NO_FILES), action=tr("Read again"))
        self._stack.setCurrentWidget(self.empty if self._model.is_empty else self.tree)
        self.strip.stop()

    def show_reading(self) -> None:
        """The folder is being read."""
        self._stack.setCurrentWidget(self.tree)
        self.strip.start(tr("Reading the folder"))

    def set_note(self, text: str, tip: str = "") -> None:
        """Set what is to be known of the whole folder."""
        self._header.set_note(text)
        self._header.setToolTip(tip)

    def show_failure(self, message: str) -> None:
        """The folder cannot be shown."""
        self.empty.set_state("folder-lock", tr("The folder cannot be shown"), message, action=tr("Try again"))
        self._stack.setCurrentWidget(self.empty)
        self.strip.stop()

    def select(self, relative: str) -> bool:
        """Choose a path that was read; False when it was not."""
        index = self._model.reveal(relative)
        if index.isValid():
            self.tree.setCurrentIndex(index)
            self.tree.scrollTo(index)
        return index.isValid()

    def show_choice(self, relative: str | None) -> None:
        """Draw as chosen what is spoken of, which need not be in the folder; the current row stays where it is."""
        index = self._model.reveal(relative) if relative else QModelIndex()
        if index.isValid():
            flag = QItemSelectionModel.SelectionFlag
            self.tree.selectionModel().select(index, flag.ClearAndSelect | flag.Rows)
        else:
            self.tree.clearSelection()

    def _act(self) -> None:
        """Do what the empty place offers."""
        if self.bar.filter.is_on and self._model.is_empty:
            self.bar.set_filter(NO_FILTER)
        else:
            self.refresh_requested.emit()

    def _open_row(self, index: QModelIndex) -> None:
        """Return or a double click: a note leads on, a file to its rule."""
        if not self._turn_page(index) and index.data(folder_tree.KIND) == "file":
            self.rule_asked.emit(index.data(folder_tree.RELATIVE))

    def _take_path(self, current: QModelIndex, _before: QModelIndex) -> None:
        if self._model.is_changing:
            return
        path = current.data(folder_tree.RELATIVE) if current.isValid() else None
        if path is not None:
            self.path_chosen.emit(path)

    def _take_row(self, index: QModelIndex) -> None:
        """The current row counts too: after a path was typed it is meant again."""
        if not self._turn_page(index):
            self._take_path(index, index)

    def _turn_page(self, index: QModelIndex) -> bool:
        """A note of a large folder leads to its next or earlier entries."""
        first = self._model.turn_page(index)
        if first.isValid():
            self.tree.setCurrentIndex(first)
            self.tree.scrollTo(first)
        return first.isValid()

    def _open_menu(self, at: QPoint) -> None:
        under = self.tree.indexAt(at)
        path = (under if under.isValid() else self.tree.currentIndex()).data(folder_tree.RELATIVE)
        if path:
            self.make_menu(str(path), self.given(str(path))).popup(self.tree.viewport().mapToGlobal(at))

    def make_menu(self, path: str, now: Permission | None) -> QMenu:
        """The way to the rule, and the levels that a path can have; `now` None: no rule gives it one."""
        menu = popup_menu(self)
        add_action(menu, tr("Go to the rule that decides it"), partial(self.rule_asked.emit, path))
        is_folder = path.endswith("/")
        who = tr("Who can touch this folder?") if is_folder else tr("Who can touch this file?")
        add_action(menu, f"{who}\tF4", partial(self.who_asked.emit, path))
        menu.addSeparator()
        if now is None:
            add_action(menu, tr("No rule of this source can give it a level"), None)
            return menu
        name = button_text(path)
        title = tr("Level of what is in {folder}", folder=name) if is_folder else tr("Level of {file}", file=name)
        add_action(menu, title, None)
        for level, look in LEVELS.items():
            ask = partial(self.level_asked.emit, path, level)
            add_action(menu, f"{permission_words(level)}\t{look.meaning}", ask, ticked=level is now)
        return menu

    def _connect(self) -> None:
        model, tree = self._model, self.tree
        model.recoloured.connect(self._redraw)
        model.modelReset.connect(lambda: tree.setColumnHidden(folder_tree.STATE, True))
        tree.selectionModel().currentChanged.connect(self._take_path)
        tree.clicked.connect(self._take_row)
        tree.activated.connect(self._open_row)
        tree.customContextMenuRequested.connect(self._open_menu)
        self.bar.leave_requested.connect(tree.setFocus)
        self.help_button.clicked.connect(self.help_requested)
        self.strip.cancel_requested.connect(self.read_cancelled)
        self.empty.action_requested.connect(self._act)
        self.refresh_button.clicked.connect(self.refresh_requested)

    def _redraw(self) -> None:
        """The column of states comes when there is something to say in it, and stays: nothing jumps to and fro."""
        if self._model.has_states:
            self.tree.setColumnHidden(folder_tree.STATE, False)
        self.tree.viewport().update()

    def _lay_out(self) -> None:
        header = self._header = SectionHeader(tr("Folder"))
        header.add_control(self.help_button)
        header.add_control(self.refresh_button)
        path = column_of(self._path, margins=(2, 0, 2, 1))
        column_of(header, path, self.bar, stretch(self._stack), into=self)
        FootBars(self._stack, self.strip, self.use_bar, views=(self.tree,))
        for before, after in pairwise((self.help_button, self.refresh_button, *self.bar.stops, self.tree)):
            QWidget.setTabOrder(before, after)
