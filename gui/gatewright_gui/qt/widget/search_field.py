"""A field to search or filter with: icon, clear button, and keys that lead out of it."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QLineEdit, QWidget

from gatewright_gui.qt.language import tr
from gatewright_gui.qt.look import tie_icon


class SearchField(QLineEdit):
    """Emits `search_changed` at every change. Escape clears, and in an empty field asks to leave it.

    Where what is searched goes with the field, `leaves_at_once` makes the first Escape leave.
    """

    search_changed = Signal(object)
    """The text, without the spaces around it: str."""
    leave_requested = Signal()
    """Escape, in an empty field or one that is left at once."""
    results_requested = Signal()
    """Down: the focus wants to go to the results."""

    def __init__(self, placeholder: str = "Filter", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.leaves_at_once = False
        self.setPlaceholderText(placeholder)
        self.setAccessibleName(placeholder)
        glass = QAction(placeholder, self)
        tie_icon(glass, "search", "muted")
        self.addAction(glass, QLineEdit.ActionPosition.LeadingPosition)
        self._clear = QAction(tr("Clear"), self)
        tie_icon(self._clear, "x", "muted")
        self._clear.triggered.connect(self.clear)
        self.addAction(self._clear, QLineEdit.ActionPosition.TrailingPosition)
        self._clear.setVisible(False)
        self.textChanged.connect(self._changed)

    def _changed(self, text: str) -> None:
        self._clear.setVisible(bool(text))
        self.search_changed.emit(text.strip())

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Escape and Down are ours; the rest is typing."""
        if event.key() == Qt.Key.Key_Escape and self.text() and not self.leaves_at_once:
            self.clear()
        elif event.key() == Qt.Key.Key_Escape:
            self.leave_requested.emit()
        elif event.key() == Qt.Key.Key_Down:
            self.results_requested.emit()
        else:
            super().keyPressEvent(event)
