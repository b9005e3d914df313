"""Lets the Tab key take what is chosen in a list of completions, as Return does. It completes nothing itself."""

from PySide6.QtCore import QEvent, QModelIndex, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QListView


class TabTakes(QObject):
    """Made for the list of a completer, after that has it. Where nothing is chosen Tab takes the first."""

    def __init__(self, popup: QListView) -> None:
        super().__init__(popup)
        self._popup = popup
        popup.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """Tab becomes Return."""
        is_tab = isinstance(event, QKeyEvent) and event.type() is QEvent.Type.KeyPress and event.key() == Qt.Key.Key_Tab
        if not is_tab:
            return super().eventFilter(watched, event)
        if not self._popup.currentIndex().isValid():
            self._popup.setCurrentIndex(self._popup.model().index(0, 0, QModelIndex()))
        pressed = QKeyEvent(QEvent.Type.KeyPress, Qt.Key.Key_Return, Qt.KeyboardModifier.NoModifier)
        QApplication.sendEvent(self._popup, pressed)
        return True
