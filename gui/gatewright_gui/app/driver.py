"""A mouse and a keyboard for a window: events go to its native window at a place, as those of a person do."""

from collections.abc import Callable, Collection
from typing import TypeVar

from PySide6.QtCore import QEvent, QEventLoop, QModelIndex, QPersistentModelIndex, QPoint, Qt, QTimer
from PySide6.QtGui import QCursor, QGuiApplication, QImage, QPainter
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractItemView, QApplication, QComboBox, QTreeView, QWidget

from gatewright_gui.app.patience import Patience

W = TypeVar("W", bound=QWidget)
Index = QModelIndex | QPersistentModelIndex
PLAIN, CTRL = Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ControlModifier
_BEAT_MS = 5
_MOVES = 20
"""How often the mouse follows what moves."""
_NESTED = 20
"""More than layouts and splitters stand in each other; each asks the one around it for room."""
_NO_POINTER = frozenset({"offscreen", "minimal"})
"""Platforms whose pointer is nobody's, so that it may be moved."""


class DriveError(Exception):
    """A control is not there, is covered or switched off, or what was waited for did not come."""


class Driver:
    """Drives one window and what opens over it. It lets events run, so it is not for use inside an asyncio task.

    `under_way` names what the window is still at; after each click and key that is waited for.
    """

    def __init__(self, window: QWidget, under_way: Callable[[], Collection[str]] = tuple) -> None:
        self._window, self._under_way = window, under_way
        self._beat = QTimer(interval=_BEAT_MS)  # so that waiting for events ends even where none comes

    # waiting and finding

    def until(self, holds: Callable[[], object], what: str) -> None:
        """Let events run until something holds and nothing is under way. Raises DriveError when that is in vain."""
        patience = Patience()
        self._beat.start()
        try:
            while self._under_way() or not holds():
                if patience.is_over:
                    raise DriveError(f"waited in vain for {what}: {patience.vain} ({', '.join(self._under_way())})")
                QApplication.processEvents(
                    QEventLoop.ProcessEventsFlag.AllEvents | QEventLoop.ProcessEventsFlag.WaitForMoreEvents
                )
        finally:
            self._beat.stop()

    def settle(self) -> None:
        """Wait until nothing is under way."""
        self.until(lambda: True, "the window to come to rest")

    def popups(self) -> list[QWidget]:
        """The dialogs, lists and menus that are open over the window."""
        return [top for top in QApplication.topLevelWidgets() if top is not self._window and top.isVisible()]

    def find(self, name: str, kind: type[W]) -> W:
        """The widget of an object name, in the window or over it: one that can be seen if any. Raises DriveError."""
        found = [one for root in (self._window, *self.popups()) for one in root.findChildren(kind, name)]
        if not found:
            raise DriveError(f"there is no `{name}` in the window")
        return next((one for one in found if one.isVisible()), found[0])

    def has(self, name: str) -> bool:
        """Tell whether a widget of this name can be seen now."""
        roots = (self._window, *self.popups())
        return any(one.isVisible() for root in roots for one in root.findChildren(QWidget, name))

    # the mouse

    def click(self, target: QWidget | str) -> None:
        """Move to the middle of a widget and click. Raises DriveError when it cannot be hit."""
        widget = self.find(target, QWidget) if isinstance(target, str) else target
        self.click_at(widget, lambda: widget.rect().center())

    def click_cell(self, view: QAbstractItemView, index: Index, at: QPoint | None = None) -> None:
        """Bring a cell into view and click it: in its middle, or at a point counted from its top left corner."""
        kept = QPersistentModelIndex(index)

        def place() -> QPoint:
            if not kept.isValid():
                raise DriveError(f"there is no such row in `{view.objectName()}`")
            cell, room = kept.model().index(kept.row(), kept.column(), kept.parent()), view.viewport().rect()
            if not room.contains(view.visualRect(cell)):
                view.scrollTo(cell)
            rect = view.visualRect(cell).intersected(room)
            if rect.isEmpty():
                raise DriveError(f"the row cannot be seen in `{view.objectName()}`")
            return rect.center() if at is None else rect.topLeft() + at

        self.click_at(view.viewport(), place)

    def open_branch(self, view: QTreeView, index: QModelIndex) -> None:
        """Click the small arrow before a row that can be opened."""
        if view.model().hasChildren(index) and not view.isExpanded(index):
            self.click_cell(view, index, QPoint(-view.indentation() // 2, view.visualRect(index).height() // 2))

    def click_at(self, widget: QWidget, at: Callable[[], QPoint]) -> None:
        """Follow what moves while the mouse comes to it; between the last look and the click nothing else happens."""
        self._activate()
        top, name, pointed = widget.window(), widget.objectName() or type(widget).__name__, None
        for _ in range(_MOVES):
            lay_out()
            if not widget.isVisible() or not widget.isEnabled():
                raise DriveError(f"`{name}` {'is switched off' if widget.isVisible() else 'cannot be seen'}")
            place = widget.mapTo(top, at())
            hit = top.childAt(place) or top
            if hit is not widget and not widget.isAncestorOf(hit):
                raise DriveError(f"`{name}` is covered by `{hit.objectName() or type(hit).__name__}`")
            if place == pointed:
                QTest.mouseClick(top.windowHandle(), Qt.MouseButton.LeftButton, PLAIN, place)
                return self.settle()
            if QGuiApplication.platformName() in _NO_POINTER:
                QCursor.setPos(top.mapToGlobal(place))
            QTest.mouseMove(top.windowHandle(), place)
            pointed = place
        raise DriveError(f"`{name}` does not hold still")

    # the keyboard

    def key(self, key: Qt.Key, modifiers: Qt.KeyboardModifier = PLAIN) -> None:
        """Press and release a key; it goes where the keyboard is."""
        self._activate()
        top = self._keyboard()
        QTest.keyClick(top.windowHandle(), key, modifiers)
        self.settle()

    def type_over(self, text: str, field: QWidget | str | None = None) -> None:
        """Choose all of a field, else of the one that has the keyboard, and type over it."""
        if field is not None:
            self.click(field)
        self.key(Qt.Key.Key_A, CTRL)
        for letter in text:
            top = self._keyboard()
            QTest.keyClick(top.windowHandle(), ord(letter))
        self.settle()

    def choose_in(self, combo: QComboBox, row: int) -> None:
        """Open a list by a click and go to a row by keyboard. Raises DriveError when there is no such row."""
        if not 0 <= row < combo.count():
            raise DriveError(f"`{combo.objectName()}` does not offer that")
        if combo.currentIndex() != row:
            self.click(combo)
            self.until(combo.view().isVisible, f"the list of `{combo.objectName()}`")
            flags = (combo.model().index(at, 0).flags() for at in range(row))
            above = sum(bool(one & Qt.ItemFlag.ItemIsEnabled) for one in flags)  # the keys pass over headings
            for key in (Qt.Key.Key_Home, *(above * [Qt.Key.Key_Down]), Qt.Key.Key_Return):
                self.key(key)
            self.until(lambda: not combo.view().isVisible(), f"the list of `{combo.objectName()}` to close")

    def _activate(self) -> None:
        """Give the window back the keyboard that a list took; no window ever is active where nobody manages them."""
        if not self._window.isActiveWindow() and not self.popups():
            self._window.activateWindow()
            QApplication.processEvents()

    def _keyboard(self) -> QWidget:
        """The widget with the keyboard; its native window is of use only while the caller holds on to the widget."""
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
        image.setDevicePixelRatio(1.0)
        fit, fine = Qt.AspectRatioMode.IgnoreAspectRatio, Qt.TransformationMode.SmoothTransformation
        return image if (image.width(), image.height()) == (width, height) else image.scaled(width, height, fit, fine)


def lay_out() -> None:
    """Make the layouts that were asked for, and those that they ask for in turn, as far as the window."""
    for _ in range(_NESTED):
        QApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest.value)
