"""The bar across the Console that says, loudly, that runs are real. It turns nothing on."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QWidget

from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget.icon_label import IconLabel
from gatewright_gui.qt.widget.label import Label

TITLE = "LIVE MODE"


class LiveBar(QWidget):
    """Hidden until `show_live`; solid in the colour of a refusal, with words and a way out."""

    leave_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        tokens = current_look().tokens
        self.setObjectName("console.livebar")
        self._icon = IconLabel("triangle-alert", "on_accent", parent=self)
        self._title = Label(TITLE)
        self._title.setProperty("kind", "live")
        self._words = Label()
        self._words.setProperty("kind", "live-words")
        self._words.setWordWrap(True)
        self._words.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.leave_button = QPushButton("Leave live mode")
        self.leave_button.setObjectName("console.leavelive")
        self.leave_button.setAccessibleName("Leave live mode")
        self.leave_button.setToolTip("Runs happen in a disposable copy again (Ctrl+Shift+L)")
        self.leave_button.setAutoDefault(False)
        self.leave_button.clicked.connect(self.leave_requested)
        row = QHBoxLayout(self)
        row.setContentsMargins(tokens.space_3, tokens.space_1, tokens.space_2, tokens.space_1)
        row.setSpacing(tokens.space_2)
        row.addWidget(self._icon)
        row.addWidget(self._title)
        row.addWidget(self._words, 1)
        row.addWidget(self.leave_button)
        self.setMinimumHeight(tokens.control_height + tokens.space_3)
        current_look().changed.connect(self.update)
        self.hide()

    def show_live(self, name: str) -> None:
        """Runs are real, in the workspace of that name."""
        words = f"Runs change the real files and blocks of {name}, and its audit log keeps them."
        self._words.setText(words)
        self.setAccessibleName(f"{TITLE}: {words}")
        self.show()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """A solid ground."""
        del event
        QPainter(self).fillRect(self.rect(), QColor(current_look().palette.verdict.deny.fg))
