"""Keeps Python's garbage collector in the thread of the window, in doses too small to notice.

Left alone, a collection starts in whichever thread allocates next; a worker that destroys a timer or a widget which
happens to be garbage takes the process down. And a collection of everything takes seconds beside a large policy: so
what has lasted is put aside and looked through again only while the window is not the one that is used.

What there is is counted, never listed: `gc.get_objects` takes hold of tuples that another thread is still building,
which then fails with a SystemError.
"""

import gc

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtGui import QGuiApplication

INTERVAL_MS = 1000
DOSE = 20_000
"""Objects that are looked through at once, some milliseconds; what comes faster than that is put aside unseen."""


class Collector(QObject):
    """From now on collections run here only; `stop` gives them back to Python."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._timer = QTimer(self, interval=INTERVAL_MS)
        self._timer.timeout.connect(self.tick)
        gc.disable()
        gc.freeze()  # what start-up made stays; looking through it again would only cost time
        self._seen: int | None = None
        self._lasting = 0
        """About how many objects outlasted a collection and are not put aside yet."""
        self._timer.start()

    def tick(self) -> None:
        """A dose where the window is used; everything, once, where it is not and much came since the last time."""
        if self._seen is None:
            self._seen = gc.get_freeze_count()  # it counts one by one: not while the window comes up
        self.collect()
        is_used = QGuiApplication.applicationState() == Qt.ApplicationState.ApplicationActive
        if not is_used and gc.get_freeze_count() > self._seen + DOSE:
            self.sweep()

    def collect(self) -> None:
        """Look through what came since the last time, unless nearly nothing did, or a whole workspace."""
        new = gc.get_count()[0]
        if new <= gc.get_threshold()[0]:
            return
        if new <= DOSE:
            self._lasting += max(0, new - gc.collect())
        if new > DOSE or self._lasting > DOSE:
            self._put_aside()

    def sweep(self) -> None:
        """Look through everything, also what was put aside: a second for some millions of objects."""
        gc.unfreeze()
        gc.collect()
        self._put_aside()
        self._seen = gc.get_freeze_count()

    def _put_aside(self) -> None:
        gc.freeze()
        self._lasting = 0

    def stop(self) -> None:
        """Python collects again when and where it likes."""
        self._timer.stop()
        gc.unfreeze()
        gc.enable()
