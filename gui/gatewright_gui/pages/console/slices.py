"""Long work in the window's thread, done in slices between which the window is served. It does not know the work."""

import time
from collections.abc import Callable, Iterator

from PySide6.QtCore import QObject, QTimer

SLICE_S = 0.008


class Slices(QObject):
    """One piece of work at a time: an iterator that is drawn from; `told` is called after every slice."""

    def __init__(self, told: Callable[[], object] = lambda: None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._told = told
        self._work: Iterator[object] | None = None
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._go_on)

    @property
    def is_running(self) -> bool:
        """Whether there is work left."""
        return self._work is not None

    def start(self, work: Iterator[object]) -> None:
        """Begin; what was under way is dropped."""
        self._work = work
        self._timer.start()

    def stop(self) -> None:
        """Drop what is left."""
        self._work = None
        self._timer.stop()

    def _go_on(self) -> None:
        until = time.perf_counter() + SLICE_S
        work = self._work
        while work is not None and time.perf_counter() < until:
            if next(work, self) is self:
                self.stop()
                break
        self._told()
