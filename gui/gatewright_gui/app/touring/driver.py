"""A mouse and a keyboard for a window: events go to the native window at a position, as those of a person do.

It finds widgets by object name and waits for conditions with a deadline. It knows no page and calls no slot.
"""

import time
from collections.abc import Callable
from typing import TypeVar, overload

from PySide6.QtCore import QEvent, QEventLoop, QModelIndex, QPersistentModelIndex, QPoint, QRect, Qt, QTimer
from PySide6.QtGui import QCursor, QGuiApplication, QImage, QPainter, QWindow
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractItemView, QApplication, QTreeView, QWidget

W = TypeVar("W", bound=QWidget)
Index = QModelIndex | QPersistentModelIndex
PATIENCE_S = 12.0
ACTIVATE_S = 1.0
_BEAT_MS = 5
_MOVES = 20
"""How often the mouse follows what moves."""
_NESTED = 20
"""More than layouts and splitters stand in each other; each asks the one around it for room."""
_NO_POINTER = frozenset({"offscreen", "minimal"})
"""Platforms whose pointer is nobody's, so that it may be moved."""
_LEFT = Qt.MouseButton.LeftButton
PLAIN = Qt.KeyboardModifier.NoModifier
CTRL = Qt.KeyboardModifier.ControlModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier
ALT = Qt.KeyboardModifier.AltModifier
CTRL_SHIFT = CTRL | Qt.KeyboardModifier.ShiftModifier


class DriveError(Exception):
    """A control is not there, is covered or switched off, or what was waited for did not come."""


class Driver:
    """Drives one window and what pops up over it. Not for use inside an asyncio task, since it lets events run."""

    def __init__(self, window: QWidget) -> None:
        self._window = window
        self._beat = QTimer(interval=_BEAT_MS)  # so that waiting for events ends even where none comes

    # waiting

    def until(self, holds: Callable[[], bool], what: str, seconds: float = PATIENCE_S) -> None:
        """Let events run until something holds. Raises DriveError after the deadline."""
        end = time.monotonic() + seconds
        self._beat.start()
        try:
            while not holds():
                if time.monotonic() > end:
                    raise DriveError(f"waited {seconds:.0f} s in vain: {what}")
                QApplication.processEvents(
                    QEventLoop.ProcessEventsFlag.AllEvents | QEventLoop.ProcessEventsFlag.WaitForMoreEvents
                )
        finally:
            self._beat.stop()

    def holds_soon(self, holds: Callable[[], bool], seconds: float = PATIENCE_S) -> bool:
        """Like `until`, for what is checked: whether it came in time."""
        try:
            self.until(holds, "", seconds)
        except DriveError:
            return False
        return True

    # finding

    @overload
    def find(self, name: str) -> QWidget: ...
    @overload
    def find(self, name: str, kind: type[W]) -> W: ...
    def find(self, name: str, kind: type[QWidget] = QWidget) -> QWidget:
        """The widget of an object name, in the window or in what is open over it. Raises DriveError."""
        for root in (self._window, *self.popups()):
            if root.objectName() == name and isinstance(root, kind):
                return root
            found = root.findChild(kind, name)
            if found is not None:
                return found
        raise DriveError(f"there is no `{name}` in the window")

    def has(self, name: str) -> bool:
        """Whether a widget of this name can be seen now."""
        return any(found.isVisible() for found in self._window.findChildren(QWidget, name))

    def popups(self) -> list[QWidget]:
        """The dialogs, lists and menus that are open over the window."""
        return [top for top in QApplication.topLevelWidgets() if top is not self._window and top.isVisible()]

    # the mouse

    def click(
        self,
        target: QWidget | str,
        at: QPoint | None = None,
        modifiers: Qt.KeyboardModifier = PLAIN,
        button: Qt.MouseButton = _LEFT,
    ) -> None:
        """Move to a widget (its middle, or a point of it) and click. Raises DriveError when it cannot be hit."""
        widget = self.find(target) if isinstance(target, str) else target
        self._click(widget, lambda: widget.rect().center() if at is None else at, modifiers, button)

    def click_cell(
        self, view: QAbstractItemView, index: Index, at: QPoint | None = None, modifiers: Qt.KeyboardModifier = PLAIN
    ) -> None:
        """Bring a cell into view and click it: in its middle, or at a point counted from its top left corner."""
        kept = QPersistentModelIndex(index)

        def place() -> QPoint:
            cell = self.cell(view, kept)
            return cell.center() if at is None else cell.topLeft() + at

        self._click(view.viewport(), place, modifiers)

    def _click(
        self,
        widget: QWidget,
        at: Callable[[], QPoint],
        modifiers: Qt.KeyboardModifier,
        button: Qt.MouseButton = _LEFT,
    ) -> None:
        """Follow what moves while the mouse comes to it; between the last look and the click nothing else happens."""
        self._activate()
        pointed: tuple[QWidget, QPoint] | None = None
        for _ in range(_MOVES):
            top, place = self._aim(widget, at)
            where = _native(top)
            if (top, place) == pointed:
                QTest.mouseClick(where, button, modifiers, place)
                return
            if QGuiApplication.platformName() in _NO_POINTER:
                QCursor.setPos(top.mapToGlobal(place))
            QTest.mouseMove(where, place)
            pointed = top, place
        raise DriveError(f"`{_name(widget)}` does not hold still")

    def cell(self, view: QAbstractItemView, index: Index) -> QRect:
        """Where a cell is in the view, brought into it if need be. Raises DriveError when it is not there."""
        if not index.isValid():
            raise DriveError(f"there is no such row in `{view.objectName()}`")
        plain = index.model().index(index.row(), index.column(), index.parent())
        if not view.viewport().rect().contains(view.visualRect(plain)):
            view.scrollTo(plain)
        cell = view.visualRect(plain).intersected(view.viewport().rect())
        if cell.isEmpty():
            raise DriveError(f"the row cannot be seen in `{view.objectName()}`")
        return cell

    def click_branch(self, view: QTreeView, index: QModelIndex) -> None:
        """Click the small arrow before a row."""
        kept = QPersistentModelIndex(index)

        def place() -> QPoint:
            cell = self.cell(view, kept)
            return QPoint(cell.left() - view.indentation() // 2, cell.center().y())

        self._click(view.viewport(), place, PLAIN)

    def _aim(self, widget: QWidget, at: Callable[[], QPoint]) -> tuple[QWidget, QPoint]:
        """The window of a widget, and the point of it that is to be hit, as it is once everything is laid out."""
        top, name = widget.window(), _name(widget)
        lay_out()
        if not widget.isVisible():
            raise DriveError(f"`{name}` cannot be seen")
        if not widget.isEnabled():
            raise DriveError(f"`{name}` is switched off")
        place = widget.mapTo(top, at())
        hit = top.childAt(place) or top
        if hit is not widget and not widget.isAncestorOf(hit):
            raise DriveError(f"`{name}` is covered by `{hit.objectName() or type(hit).__name__}`")
        return top, place

    # the keyboard

    def key(self, key: Qt.Key, modifiers: Qt.KeyboardModifier = PLAIN) -> None:
        """Press and release a key; it goes where the keyboard is."""
        self._activate()
        top = self._keyboard()
        QTest.keyClick(_native(top), key, modifiers)

    def type(self, text: str) -> None:
        """Type a text where the keyboard is."""
        for letter in text:
            top = self._keyboard()
            QTest.keyClick(_native(top), ord(letter))

    def replace_text(self, field: QWidget | str, text: str) -> None:
        """Click into a field, choose all of it and type over it."""
        self.click(field)
        self.key(Qt.Key.Key_A, CTRL)
        if text:
            self.type(text)
        else:
            self.key(Qt.Key.Key_Backspace)

    def _activate(self) -> None:
        """Give the window back the keyboard that a list took, where no window manager does."""
        if not self._window.isActiveWindow() and not self.popups():
            self._window.activateWindow()
            self.holds_soon(self._window.isActiveWindow, ACTIVATE_S)

    def _keyboard(self) -> QWidget:
        return QApplication.activePopupWidget() or QApplication.activeModalWidget() or self._window

    # pictures

    def picture(self, width: int, height: int) -> QImage:
        """The window as it looks now, with what is open over it."""
        QApplication.processEvents()
        lay_out()
        image = self._window.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
        painter = QPainter(image)
        for popup in self.popups():
            painter.drawPixmap(popup.mapToGlobal(QPoint()) - self._window.mapToGlobal(QPoint()), popup.grab())
        painter.end()
        if (image.width(), image.height()) == (width, height):
            return image
        image.setDevicePixelRatio(1.0)
        return image.scaled(
            width, height, Qt.AspectRatioMode.IgnoreAspectRatio, Qt.TransformationMode.SmoothTransformation
        )


def _name(widget: QWidget) -> str:
    parent = widget.parentWidget()
    return widget.objectName() or (parent.objectName() if parent else "") or type(widget).__name__


def lay_out() -> None:
    """Make the layouts that were asked for, and those that they ask for in turn, as far as the window."""
    for _ in range(_NESTED):
        QApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest.value)


def _native(top: QWidget) -> QWindow:
    """The window of the platform; of use only while the caller holds on to the widget."""
    if not top.isVisible():
        raise DriveError(f"`{top.objectName() or type(top).__name__}` is not on the screen")
    return top.windowHandle()
