"""The drawing of what processes see: the tree of their places, how many files in all, what is far too much of it."""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from functools import partial
from typing import cast

from PySide6.QtCore import QModelIndex, QRect, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QHeaderView, QStyleOptionViewItem, QWidget
from shiboken6 import isValid

from gatewright.workspace.api import GatewrightError
from gatewright_gui.pages.access.files.level import (
    LevelMark,
    draw_chip,
    draw_ground,
    draw_words,
    is_marked,
    is_selected,
    rect_of,
)
from gatewright_gui.pages.servers.room_tree import FILES, KIND, MARK, NAME, PLACE, SEES, RoomTreeModel
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.layout import column_of, named, row_of, stretch
from gatewright_gui.qt.look import Role, current_look, role_colour
from gatewright_gui.qt.table_model import Index
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget.item_view import Delegate, TreeView
from gatewright_gui.qt.widget.label import IconLabel, Label
from gatewright_gui.qt.widget.message_bar import FootBars, ProgressStrip
from gatewright_gui.session.confinement import Room, RoomPlace
from gatewright_gui.session.courtesy import beside, painting
from gatewright_gui.session.room_picture import PlaceCount, ViewCount, count_files, list_folder

_ICONS = {"room": "plug", "place": "folder-open", "folder": "folder", "file": "file-text", "note": "info"}
_ICON, _PAD = 16, 7
TELL_S = 0.1
"""The time after which it is told again how far the counting is."""
OPEN_AT_ONCE = 3
"""So many places are opened when they are first shown."""
_EDGE = 24
"""So much of the window stays to be seen above and below a dialog."""


def fitting_height(parent: QWidget | None, height: int) -> int:
    """The height of a dialog that would be this high, where the window has room for it."""
    return height if parent is None else min(height, parent.window().height() - _EDGE)


class RoomDelegate(Delegate):
    """Icon and name in the colour of what is seen, the word as a chip."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """One cell."""
        cell, mark = rect_of(option), cast("LevelMark | None", index.data(MARK))
        if is_marked(option):
            draw_ground(painter, option)
        if index.column() == NAME:
            role: Role = mark.role if mark is not None else "muted"
            kind = str(index.data(KIND))
            role = "text" if kind == "room" else role
            icon = QRect(cell.left() + _PAD, cell.top() + (cell.height() - _ICON) // 2, _ICON, _ICON)
            current_look().icon(_ICONS[kind], role).paint(painter, icon)
            room = cell.adjusted(2 * _PAD + _ICON - 1, 0, -_PAD, 0)
            elide = Qt.TextElideMode.ElideMiddle if kind == "place" else Qt.TextElideMode.ElideRight
            draw_words(painter, room, str(index.data()), role_colour(role), mode=elide)
        elif index.column() == SEES and mark is not None:
            draw_chip(painter, cell, mark.word, mark.icon, mark.role, outlined=is_selected(option))
        elif index.column() == FILES:
            draw_words(painter, cell.adjusted(_PAD, 0, -_PAD, 0), str(index.data() or ""), role_colour("muted"))


class _Tree(TreeView):
    """Return opens and closes; Delete asks to remove the place of the row."""

    remove_requested = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        index = self.currentIndex().siblingAtColumn(NAME)
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and self.model().hasChildren(index):
            self.setExpanded(index, not self.isExpanded(index))
        elif event.key() == Qt.Key.Key_Delete:
            self.remove_requested.emit()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Paint; what counts in threads holds still meanwhile."""
        with painting():
            super().paintEvent(event)


class RoomBrowser(QWidget):
    """Shows rooms, reads and counts for them. `name` begins the names of what is in it and of its tasks."""

    place_chosen = Signal()
    remove_requested = Signal()
    """The place of the current row is to go."""

    def __init__(self, tasks: TaskOwner, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tasks, self._name = tasks, name
        self.model = RoomTreeModel(self)
        self.tree = named(_Tree(tr("Places with what is seen of them")), f"{name}.tree")
        self.tree.setModel(self.model)
        self.tree.setItemDelegate(RoomDelegate(self.tree))
        self.tree.header().setStretchLastSection(False)
        self.tree.header().setSectionResizeMode(NAME, QHeaderView.ResizeMode.Stretch)
        self.tree.setColumnWidth(SEES, 104)
        self.tree.setColumnWidth(FILES, 168)
        self.strip = ProgressStrip()
        self.summary = named(Label(), f"{name}.summary", kind="muted")
        self._warning_icon = IconLabel("triangle-alert", "ask")
        self.warning = named(Label(wraps=True), f"{name}.warning")
        self._seen: frozenset[tuple[str, str]] = frozenset()
        warning = row_of(self._warning_icon, stretch(self.warning), space=2)
        summary = row_of(stretch(self.summary), margins=(2, 0))
        column_of(stretch(self.tree), summary, warning, into=self, space=1)
        FootBars(self.tree, self.strip)
        self.model.folder_wanted.connect(self._read)
        self.model.rowsInserted.connect(self._span)
        self.model.recoloured.connect(self._tell)
        self.tree.selectionModel().currentChanged.connect(self._choose)
        self.tree.remove_requested.connect(self.remove_requested)
        self.strip.cancel_requested.connect(self.stop_count)
        self._tell()

    @property
    def place(self) -> tuple[int, RoomPlace] | None:
        """The place that the current row is or lies in, with the number of its room."""
        found = self.tree.currentIndex().data(PLACE)
        return cast("tuple[int, RoomPlace]", found) if found is not None else None

    @property
    def room(self) -> int:
        """The number of the room that the current row belongs to; the first one without a row."""
        return self.model.address(self.tree.currentIndex())[1]

    def refresh(self) -> None:
        """Look at the disk anew; what was open stays open."""
        self.model.forget()
        self._show(self.model.rooms)

    def set_rooms(self, rooms: Sequence[Room]) -> None:
        """Show these; what was open stays open, and what is new is counted."""
        if tuple(rooms) != self.model.rooms:
            self._show(rooms)

    def _show(self, rooms: Sequence[Room]) -> None:
        opened = {key for key, index in self.model.open_paths().items() if self.tree.isExpanded(index)}
        chosen = self.place
        self.model.set_rooms(rooms)
        keys = frozenset((room.name, place.path) for room in self.model.rooms for place in room.places)
        is_new = bool(keys - self._seen) and len(keys) <= OPEN_AT_ONCE
        self._open(QModelIndex(), opened, keys - self._seen if is_new else frozenset())
        self._seen = keys
        if chosen is not None and chosen[0] < len(self.model.rooms):
            self.choose(self.model.rooms[chosen[0]].name, chosen[1].written)
        if not self.tree.currentIndex().isValid() and keys:
            first = next(room for room in self.model.rooms if room.places)
            self.choose(first.name, first.places[0].written)
        self.model.drop_counts()
        self.count()

    def choose(self, room: str, written: str) -> None:
        """Go to the row of a place."""
        index = self.model.place_index(room, written)
        if index.isValid():
            self.tree.setCurrentIndex(index)
            self.tree.scrollTo(index)

    def count(self) -> None:
        """Count all files anew."""
        self.strip.start(tr("Counting files"))
        self._tasks.start(self._count(self.model.rooms), f"{self._name}.count", replace=True)

    def stop_count(self) -> None:
        """Give the count up."""
        self._tasks.cancel(f"{self._name}.count")
        self.strip.stop()
        self.summary.setText(tr("Counting was stopped."))

    def end(self) -> None:
        """Nobody looks any more."""
        self._tasks.cancel(f"{self._name}.count")
        self._tasks.cancel(f"{self._name}.read")

    def _choose(self, _now: QModelIndex, _before: QModelIndex) -> None:
        self.place_chosen.emit()

    def _open(self, parent: QModelIndex, opened: set[tuple[int, str]], fresh: frozenset[tuple[str, str]]) -> None:
        rows = self.model.rowCount(parent)
        if rows:
            self._span(parent, 0, rows - 1)
        for row in range(rows):
            index = self.model.index(row, NAME, parent)
            kind, number, path = self.model.address(index)
            is_new = kind == "place" and (self.model.rooms[number].name, path) in fresh
            if kind == "room" or is_new or (number, path) in opened:
                self.tree.expand(index)
                if kind != "note":
                    self._open(index, opened, fresh)

    def _span(self, parent: QModelIndex, _first: int, last: int) -> None:
        """Words that stand for no file have the whole row; they come last."""
        if self.model.address(self.model.index(last, NAME, parent))[0] == "note":
            self.tree.setFirstColumnSpanned(last, parent, True)

    def _read(self, path: str) -> None:
        self._tasks.start(self._read_folder(path), f"{self._name}.read")

    async def _read_folder(self, path: str) -> None:
        try:
            found = await beside(partial(list_folder, path))
        except GatewrightError as error:
            found = str(error)
        if isValid(self):
            self.model.set_listing(path, found)

    async def _count(self, rooms: Sequence[Room]) -> None:
        loop = asyncio.get_running_loop()
        told_s = 0.0

        def tell(seen: int) -> None:
            nonlocal told_s
            if time.monotonic() - told_s >= TELL_S:
                told_s = time.monotonic()
                with contextlib.suppress(RuntimeError):  # the window is gone
                    loop.call_soon_threadsafe(self._show_seen, seen)

        for room in rooms:
            for place in room.places:
                try:
                    found = await beside(
                        lambda stop, room=room, place=place: count_files(room.views, place.path, stop, tell)
                    )
                except GatewrightError:
                    found = PlaceCount({place.path: ViewCount()}, fault=tr("not there"))
                if not isValid(self):
                    return
                self.model.set_count(room, place, found)
        self.strip.stop()
        self._tell()

    def _show_seen(self, seen: int) -> None:
        if isValid(self):
            self.strip.set_progress(None, tr("Counting files: {count} seen", count=f"{seen:,}"))

    def _tell(self) -> None:
        """Tell how many files there are in all, and which place is far too much."""
        self.tree.viewport().update()
        total = self.model.total
        words = ""
        if total is not None and total.files:
            words = tr(
                "{files}: {read} to read, {write} to change, {hidden} hidden",
                files=counted(total.files, "file", "files"),
                read=f"{total.read:,}",
                write=f"{total.write:,}",
                hidden=f"{total.hidden:,}",
            )
            if self.model.is_truncated:
                words = tr("more than {words}", words=words)
        self.summary.setText(words)
        warnings = [place.warning for room in self.model.rooms for place in room.places if place.warning]
        self.warning.setText("\n".join(warnings))
        self.warning.setVisible(bool(warnings))
        self._warning_icon.setVisible(bool(warnings))
