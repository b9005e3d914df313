"""A list of notes in words that wrap: a click or Enter chooses one, Ctrl+C copies it."""

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QListView, QWidget


class NoteList(QListView):
    """Rows as high as their words; what is copied is the text for assistive technology, else the one shown."""

    chosen = Signal(QModelIndex)
    """A click, or Enter."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.clicked.connect(self.chosen)
        self.activated.connect(self.chosen)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Words wrap otherwise in another width, so the rows get other heights; Qt looks at the height alone."""
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.scheduleDelayedItemsLayout()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Ctrl+C copies the current note in full."""
        if event.matches(QKeySequence.StandardKey.Copy) and self.currentIndex().isValid():
            index = self.currentIndex()
            words = index.data(Qt.ItemDataRole.AccessibleTextRole) or index.data()
            QGuiApplication.clipboard().setText(str(words))
        else:
            super().keyPressEvent(event)
