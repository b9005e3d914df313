"""A hand on the real mouse and keyboard of the private display, and eyes that wait. It knows no page."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

from PySide6.QtCore import QModelIndex, QPoint
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QAbstractItemView, QApplication, QMenu, QWidget

from gatewright_gui.window.main_window import MainWindow
from tests.support.xvfb import Display

W = TypeVar("W", bound=QWidget)
SECONDS = 15.0
_BEAT = 0.01
WAITING = frozenset({"console.call", "close", "declare", "agents.rights", "export"})
"""Tasks that wait for a person."""
BESIDE = frozenset({"upkeep.check", "agents.counts", "preview.tokens", "preview.providers"})
"""Tasks that no person waits for."""


async def until(holds: Callable[[], bool], what: str, seconds: float = SECONDS) -> None:
    """Let the window live until something holds; it fails after a deadline."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"waited {seconds:.0f} s in vain for: {what}"
        await asyncio.sleep(_BEAT)


class Hand:
    """Moves, clicks and types as a person does: through the X server, wherever the keyboard is."""

    def __init__(self, display: Display, window: MainWindow) -> None:
        self._display = display
        self.window = window

    def find(self, name: str, kind: type[W]) -> W:
        """A control by its object name, in the window or what is open over it."""
        for root in [self.window, *QApplication.topLevelWidgets()]:
            found = root.findChild(kind, name)
            if found is not None:
                return found
        raise AssertionError(f"there is no `{name}`")

    async def click(self, widget: QWidget, at: QPoint | None = None) -> None:
        """Move the mouse to a widget and click."""
        await until(widget.isVisible, f"`{widget.objectName()}` to be seen")
        place = widget.mapToGlobal(widget.rect().center() if at is None else at)
        await self._send("mousemove", "--sync", str(place.x()), str(place.y()))
        await self._send("click", "1")
        await self.rest()

    async def click_cell(self, view: QAbstractItemView, index: QModelIndex, at: QPoint | None = None) -> None:
        """Click a cell; `at` counts from its top left corner."""
        assert index.isValid()
        view.scrollTo(index)
        cell = view.visualRect(index)
        await self.click(view.viewport(), cell.center() if at is None else cell.topLeft() + at)

    async def choose(self, name: str) -> None:
        """Click a row of the menu that is open."""
        await until(lambda: isinstance(QApplication.activePopupWidget(), QMenu), f"a menu with `{name}`")
        menu = QApplication.activePopupWidget()
        assert isinstance(menu, QMenu)
        action = next(row for row in menu.actions() if name in {row.objectName(), row.text().replace("&", "")})
        assert action.isEnabled(), f"`{name}` cannot be chosen"
        await self.click(menu, menu.actionGeometry(action).center())

    async def drag(self, view: QAbstractItemView, index: QModelIndex, to: QPoint) -> None:
        """Drag a row to a place in the viewport, in steps as a hand does."""
        await self._point(view.viewport(), view.visualRect(index).center())
        await self._send("mousedown", "1")
        for part in (0.2, 0.5, 0.8, 1.0):
            start = view.visualRect(index).center()
            await self._point(view.viewport(), start + (to - start) * part)
        await self._send("mouseup", "1")
        await self.rest()

    async def _point(self, widget: QWidget, at: QPoint) -> None:
        place = widget.mapToGlobal(at)
        await self._send("mousemove", "--sync", str(place.x()), str(place.y()))
        await asyncio.sleep(_BEAT)

    async def key(self, *keys: str) -> None:
        """Press keys one after the other, in the words of xdotool: `ctrl+z`, `Return`."""
        for key in keys:
            await self._send("key", "--clearmodifiers", key)
            await self.rest()

    async def type(self, text: str, *, pause_ms: int = 4) -> None:
        """Type a text; nobody types without a pause between two keys."""
        await self._send("type", "--delay", str(pause_ms), text)
        await self.rest()

    async def focus_by(self, key: str, wanted: QWidget, presses: int = 40) -> None:
        """Press a key until the keyboard is in a widget."""
        for _ in range(presses):
            focus = QApplication.focusWidget()
            if focus is wanted or (focus is not None and wanted.isAncestorOf(focus)):
                return
            await self.key(key)
        raise AssertionError(f"`{wanted.objectName()}` is not reached by {key}")

    async def rest(self) -> None:
        """Let what was sent arrive and what it began come to an end, but for what waits for an answer."""
        await asyncio.sleep(_BEAT * 3)
        await until(lambda: (WAITING | BESIDE).issuperset(self.window.tasks.names), "the window to come to rest")

    async def _send(self, *words: str) -> None:
        if QApplication.activeWindow() is None and QApplication.activePopupWidget() is None:
            self.window.activateWindow()  # there is no window manager that would
            await until(self.window.isActiveWindow, "the window to get the keyboard")
        await asyncio.to_thread(self._display.xdotool, *words)


def screen() -> QImage:
    """What the display shows now."""
    return QGuiApplication.primaryScreen().grabWindow(0).toImage()
