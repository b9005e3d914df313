"""The label of the house: what it shows is plain text, whoever wrote it."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget

from gatewright_gui.qt.plaintext import label_text


class Label(QLabel):
    """Qt's own guesses whether a text is HTML, and then loads what that names."""

    def __init__(
        self, text: str = "", parent: QWidget | None = None, *, wraps: bool = False, buddy: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(wraps)
        if buddy is not None:
            self.setBuddy(buddy)
        if text:
            self.setText(text)

    def setText(self, text: str) -> None:  # noqa: N802
        """Show `text`, without what cannot be seen and not endlessly long."""
        super().setText(label_text(text))
