"""A frame around the whole window while runs are real, whatever page one is on."""

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from gatewright_gui.qt.language import tr
from gatewright_gui.qt.look import current_look
from gatewright_gui.session.live import LiveMode

WIDTH = 3


class LiveFrame(QWidget):
    """Lies over `body`, as large as it is, and lets every click through."""

    def __init__(self, body: QWidget, live: LiveMode) -> None:
        super().__init__(body)
        self._body = body
        self.setObjectName("window.liveframe")
        self.setAccessibleName(tr("Live mode is on"))
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        body.installEventFilter(self)
        current_look().changed.connect(self.update)
        live.changed.connect(self._follow)
        self._follow(live.is_on)

    def _follow(self, is_on: object) -> None:
        self.setVisible(bool(is_on))
        if is_on:
            self.setGeometry(self._body.rect())
            self.raise_()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """Stay as large as the window."""
        if event.type() == QEvent.Type.Resize:
            self.setGeometry(self._body.rect())
        return super().eventFilter(watched, event)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Four lines."""
        del event
        painter = QPainter(self)
        colour = QColor(current_look().palette.verdict.deny.fg)
        right, bottom = self.width() - WIDTH, self.height() - WIDTH
        painter.fillRect(0, 0, self.width(), WIDTH, colour)
        painter.fillRect(0, bottom, self.width(), WIDTH, colour)
        painter.fillRect(0, 0, WIDTH, self.height(), colour)
        painter.fillRect(right, 0, WIDTH, self.height(), colour)
