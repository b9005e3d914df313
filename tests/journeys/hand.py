"""A hand on the real mouse and keyboard of the private display, and eyes that wait."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, QPoint, Qt
from PySide6.QtGui import QCursor, QGuiApplication, QImage, QKeyEvent, QWindow
from PySide6.QtWidgets import QAbstractItemView, QApplication, QMenu, QWidget
from shiboken6 import isValid

from gatewright_gui.app.driver import lay_out
from gatewright_gui.pages.page import TabbedPage
from gatewright_gui.window.main_window import MainWindow
from tests.support.patience import until
from tests.support.xvfb import Display

W = TypeVar("W", bound=QWidget)
_MOVES = 20
"""The number of times that the mouse follows a moving widget."""
_HEARD = QEvent.Type.MouseButtonPress, QEvent.Type.MouseButtonRelease, QEvent.Type.KeyPress, QEvent.Type.Shortcut
_MODIFIERS = {Qt.Key.Key_Control, Qt.Key.Key_Shift, Qt.Key.Key_Alt, Qt.Key.Key_Meta}
WAITING = frozenset(
    {
        "open",
        "save",
        "console.call",
        "close",
        "declare",
        "agents.rights",
        "publish",
        "servers",
        "memory.dialog",
        "files.sources",
        "activity.mend",
        "activity.export",
    }
)
"""Tasks that wait for a person."""
BESIDE = frozenset({"upkeep.check", "agents.counts", "preview.tokens", "preview.providers"})
"""Tasks that no person waits for."""


class Hand:
    """Moves, clicks and types as a person does: through the X server, at the keyboard's focus."""

    def __init__(self, display: Display, window: MainWindow) -> None:
        self._display = display
        self.window = window

    def find(self, name: str, kind: type[W]) -> W:
        """Find a control by its object name, in the window or in a popup or dialog over it."""
        for root in [self.window, *QApplication.topLevelWidgets()]:
            found = root.findChild(kind, name)
            if found is not None:
                return found
        raise AssertionError(f"there is no `{name}`")

    async def see(self, name: str, kind: type[W]) -> W:
        """Wait for a control that is just opening, and return it."""
        found: list[W] = []

        def is_seen() -> bool:
            tops = QApplication.topLevelWidgets()
            found[:] = [one for top in tops for one in top.findChildren(kind, name) if one.isVisible()]
            return bool(found)

        await until(is_seen, f"`{name}` to come up")
        return found[0]

    async def click(self, widget: QWidget, at: QPoint | None = None) -> None:
        """Move the mouse to a widget and click."""
        await self._click(widget, lambda: widget.rect().center() if at is None else at)

    async def click_cell(self, view: QAbstractItemView, index: QModelIndex, at: QPoint | None = None) -> None:
        """Click a cell; `at` counts from its top left corner."""
        kept = QPersistentModelIndex(index)

        def place() -> QPoint:
            assert kept.isValid(), "the row is gone"
            plain = kept.model().index(kept.row(), kept.column(), kept.parent())
            if not view.viewport().rect().contains(view.visualRect(plain)):
                view.scrollTo(plain)
            cell = view.visualRect(plain)
            return cell.center() if at is None else cell.topLeft() + at

        await self._click(view.viewport(), place)

    async def _click(self, widget: QWidget, at: Callable[[], QPoint]) -> None:
        """Follow a moving widget with the mouse and click it; fail if the click meets another widget."""
        await until(widget.isVisible, f"`{widget.objectName()}` to be seen")
        pointed: QPoint | None = None
        for _ in range(_MOVES):
            lay_out()
            place = at()
            if widget.mapToGlobal(place) == pointed:
                break
            pointed = widget.mapToGlobal(place)
            await self._send("mousemove", "--sync", str(pointed.x()), str(pointed.y()))
        else:
            raise AssertionError(f"`{widget.objectName()}` does not hold still")
        hit = widget.childAt(place) or widget
        with _Watch(hit, QEvent.Type.MouseButtonPress) as pressed:
            await self._send("click", "1", heard=2)
        assert pressed.count, f"the click missed `{widget.objectName() or type(widget).__name__}`"
        await self.rest()

    async def choose(self, name: str) -> None:
        """Click a row of the open menu."""
        await until(lambda: isinstance(QApplication.activePopupWidget(), QMenu), f"a menu with `{name}`")
        menu = QApplication.activePopupWidget()
        assert isinstance(menu, QMenu)
        action = next(
            row for row in menu.actions() if name in {row.objectName(), row.text().replace("&", "").partition("\t")[0]}
        )
        assert action.isEnabled(), f"`{name}` cannot be chosen"
        await self.click(menu, menu.actionGeometry(action).center())

    async def drag(self, view: QAbstractItemView, index: QModelIndex, to: QPoint) -> None:
        """Drag a row to a place in the viewport, in small steps like a hand."""
        lay_out()
        start = view.visualRect(index).center()
        await self._point(view.viewport(), start)
        await self._send("mousedown", "1", heard=1)
        for part in (0.2, 0.5, 0.8, 1.0):
            await self._point(view.viewport(), start + (to - start) * part)
        await self._send("mouseup", "1", heard=1)
        await self.rest()

    async def _point(self, widget: QWidget, at: QPoint) -> None:
        """Move, and go on once the window has seen it: moves that it had no time for are one move to it."""
        place = widget.mapToGlobal(at)
        if QCursor.pos() == place:
            return
        with _Watch(QApplication.instance(), QEvent.Type.MouseMove) as seen:
            await self._send("mousemove", "--sync", str(place.x()), str(place.y()))
            await until(lambda: seen.count > 0, "the window to see the mouse move")

    async def key(self, *keys: str) -> None:
        """Press keys one after the other, by their names in xdotool: `ctrl+z`, `Return`."""
        for key in keys:
            await self._send("key", "--clearmodifiers", key, heard=1)
            await self.rest()

    async def go_to(self, page: str) -> None:
        """Press the keys of a place, and click the tab of a page in it."""
        shelf = self.window.shelf
        keys = self.window.actions_by_key[f"page.{shelf.place_of(page)}"].shortcut().toString().lower()
        await self.key(keys)
        place = shelf.place(page)
        if isinstance(place, TabbedPage) and place.current_key != page:
            await self.click(place.bar, place.bar.tabRect(list(place.rows).index(page)).center())

    async def type(self, text: str, *, pause_ms: int = 4) -> None:
        """Type a text, with a pause between two keys as a person makes it."""
        await self._send("type", "--delay", str(pause_ms), text, heard=len(text))
        await self.rest()

    async def focus_by(self, key: str, wanted: QWidget, presses: int = 40) -> None:
        """Press a key until a widget has the focus."""
        for _ in range(presses):
            focus = QApplication.focusWidget()
            if focus is wanted or (focus is not None and wanted.isAncestorOf(focus)):
                return
            await self.key(key)
        raise AssertionError(f"`{wanted.objectName()}` is not reached by {key}")

    async def rest(self) -> None:
        """Wait until all tasks have ended, except those that wait for an answer."""
        await until(lambda: (WAITING | BESIDE).issuperset(self.window.tasks.names), "the window to come to rest")

    async def _send(self, *words: str, heard: int = 0) -> None:
        """Move, click or type; `heard`: how many keys, and presses and releases of a button, the window has to get."""
        if QApplication.activeWindow() is None and QApplication.activePopupWidget() is None:
            self.window.activateWindow()  # there is no window manager that would
            await until(self.window.isActiveWindow, "the window to get the keyboard")
        with _Watch(QApplication.instance(), *_HEARD) as watch:
            await asyncio.to_thread(self._display.xdotool, *words)
            await until(lambda: watch.count >= heard, f"the window to hear `{' '.join(words)}`")


class _Watch(QObject):
    """Counts what comes to a widget while it is watched; of the application: to its windows and shortcuts."""

    def __init__(self, watched: QObject | None, *kinds: QEvent.Type) -> None:
        super().__init__()
        assert watched is not None
        self._watched, self._kinds = watched, kinds
        self.count = 0

    def __enter__(self) -> "_Watch":
        self._watched.installEventFilter(self)
        return self

    def __exit__(self, *_: object) -> None:
        if isValid(self._watched):
            self._watched.removeEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        # a key that is a shortcut goes to its owner in place of the window
        is_wanted = watched is self._watched or isinstance(watched, QWindow) or event.type() == QEvent.Type.Shortcut
        is_modifier = isinstance(event, QKeyEvent) and event.key() in _MODIFIERS
        if event.type() in self._kinds and is_wanted and not is_modifier:
            self.count += 1
        return False


def screen() -> QImage:
    """Return a picture of the display."""
    return QGuiApplication.primaryScreen().grabWindow(0).toImage()
