"""A thin line that says something is under way, with its name and a way to stop it."""

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QStyle, QWidget
from shiboken6 import isValid

from gatewright_gui.qt.language import tr
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget.elided_label import ElidedLabel

_LINE = 2
_TICK_MS = 40
DELAY_MS = 500


class ProgressStrip(QWidget):
    """Shows itself when work takes longer than half a second. Moves only where the system lets things move."""

    cancel_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        tokens = current_look().tokens
        self._fraction: float | None = None
        self._phase = 0.0
        self._label = ElidedLabel(role="muted")
        self.cancel_button = QPushButton(tr("Cancel"))
        self.cancel_button.setProperty("kind", "link")
        self.cancel_button.clicked.connect(self.cancel_requested)
        row = QHBoxLayout(self)
        row.setContentsMargins(tokens.space_2, _LINE + 1, tokens.space_2, 1)
        row.addWidget(self._label, 1)
        row.addWidget(self.cancel_button)
        self._appear = QTimer(self, singleShot=True, interval=DELAY_MS)
        self._appear.timeout.connect(self.show)
        self._motion = QTimer(self, interval=_TICK_MS)
        self._motion.timeout.connect(self._move)
        current_look().changed.connect(self.update)
        self.hide()

    def start(self, text: str, *, at_once: bool = False, can_cancel: bool = True) -> None:
        """Work began."""
        self._fraction = None
        self._label.set_text(text)
        self.setAccessibleName(text)
        self.cancel_button.setVisible(can_cancel)
        if at_once:
            self.show()
        elif self.isHidden():
            self._appear.start()

    def set_progress(self, fraction: float | None, text: str | None = None) -> None:
        """Set how much is done, 0 to 1; None when nobody knows."""
        self._fraction = None if fraction is None else min(max(fraction, 0.0), 1.0)
        if text is not None:
            self._label.set_text(text)
        self.update()

    def stop(self) -> None:
        """Work ended; it may be told so after its window is gone."""
        if not isValid(self):
            return
        self._appear.stop()
        self.hide()

    def showEvent(self, event: object) -> None:  # noqa: N802
        """Start moving, where motion is on."""
        del event
        if self.style().styleHint(QStyle.StyleHint.SH_Widget_Animation_Duration, None, self) > 0:
            self._motion.start()

    def hideEvent(self, event: object) -> None:  # noqa: N802
        """Stop moving."""
        del event
        self._motion.stop()

    def _move(self) -> None:
        self._phase = (self._phase + 0.02) % 1.0
        if self._fraction is None:
            self.update(0, 0, self.width(), _LINE)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """A line along the top: as long as what is done, or a piece of it that wanders."""
        del event
        palette = current_look().palette
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(palette.background))
        painter.fillRect(0, 0, self.width(), _LINE, QColor(palette.border))
        width = self.width()
        if self._fraction is not None:
            start, length = 0, round(width * self._fraction)
        else:
            length = width // 4
            start = round(self._phase * (width + length)) - length
        painter.fillRect(start, 0, length, _LINE, QColor(palette.accent.fg))
