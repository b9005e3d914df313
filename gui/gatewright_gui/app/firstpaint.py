"""Tells when a window has been painted for the first time from now on. What is done then is nobody's business here."""

from PySide6.QtCore import QEvent, QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

PATIENCE_MS = 500
"""A window that nobody sees (it lies on another desktop) is not painted; what waits for it does not wait for ever."""


class FirstPaint(QObject):
    """Of one window; says `painted` once, in a later turn of the event loop than the painting."""

    painted = Signal()

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._patience = QTimer(self, singleShot=True, interval=PATIENCE_MS)
        self._patience.timeout.connect(self._tell)
        self._patience.start()
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """Of a window all is painted with this one event."""
        if event.type() == QEvent.Type.UpdateRequest:
            watched.removeEventFilter(self)
            self._patience.start(0)
        return super().eventFilter(watched, event)

    def _tell(self) -> None:
        self.painted.emit()
        self.deleteLater()
