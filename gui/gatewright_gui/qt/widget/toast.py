"""A short note at the lower right edge of a window that goes away by itself; what matters belongs into a `MessageBar`.

It is no higher than a status line, so that it lies over nothing one can operate.
"""

from PySide6.QtCore import QEvent, QObject, QTimer, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from gatewright_gui.qt.look import Role, current_look
from gatewright_gui.qt.widget.elided_label import ElidedLabel
from gatewright_gui.qt.widget.icon_label import IconLabel

STAY_MS = 5000


class Toast(QWidget):
    """One per window, over its lower edge and the `bars` there; a new note takes the place of the old one."""

    action_requested = Signal()

    def __init__(self, window: QWidget, bars: QWidget | None = None) -> None:
        super().__init__(window)
        self._bars = bars
        tokens = current_look().tokens
        self._icon = IconLabel("info", "accent")
        self._text = ElidedLabel()
        self.action_button = QPushButton()
        self.action_button.setProperty("kind", "link")
        self.action_button.clicked.connect(self.action_requested)
        self.action_button.clicked.connect(self.hide)
        row = QHBoxLayout(self)
        row.setContentsMargins(tokens.space_3, 0, tokens.space_3, 0)
        row.setSpacing(tokens.space_2)
        for part in (self._icon, self._text, self.action_button):
            row.addWidget(part)
        self._timer = QTimer(self, singleShot=True, interval=STAY_MS)
        self._timer.timeout.connect(self.hide)
        window.installEventFilter(self)
        self.hide()

    @property
    def text(self) -> str:
        """The text that it says."""
        return self._text.text

    def show_note(self, text: str, *, icon: str = "info", role: Role = "accent", action: str | None = None) -> None:
        """Say something for a few seconds; the mouse over it keeps it."""
        self._icon.set_icon(icon, role)
        self._text.set_text(text)
        self.action_button.setText(action or "")
        self.action_button.setVisible(action is not None)
        self.setAccessibleName(text)
        self._place()
        self.show()
        self.raise_()
        self._timer.start()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """Stay at the foot of the window when its size changes."""
        if event.type() == QEvent.Type.Resize:
            self._place()
        return super().eventFilter(watched, event)

    def enterEvent(self, event: QEvent) -> None:  # noqa: N802
        """Stay while the mouse is here."""
        del event
        self._timer.stop()

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802
        """Go away after the usual time."""
        del event
        self._timer.start()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """A raised ground with a frame."""
        del event
        look = current_look()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QColor(look.palette.border_strong))
        painter.setBrush(QColor(look.palette.raised))
        painter.drawRoundedRect(self.rect().adjusted(0, 0, -1, -1), look.tokens.radius, look.tokens.radius)

    def _place(self) -> None:
        window = self.parentWidget()
        if window is not None:
            tokens = current_look().tokens
            width = min(self.sizeHint().width(), window.width() * 2 // 3)
            self.resize(width, tokens.row_height - 2)
            below = self._bars.height() if self._bars is not None else 0
            self.move(window.width() - width - tokens.space_2, window.height() - below - self.height() - 1)
