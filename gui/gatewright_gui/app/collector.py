"""Keeps Python's garbage collector in the thread of the window. It does not know what is collected.

Left alone, a collection starts in whichever thread allocates next; a worker that destroys a timer or a widget which
happens to be garbage takes the process down.
"""

import gc

from PySide6.QtCore import QObject, QTimer

INTERVAL_MS = 1000


class Collector(QObject):
    """From now on collections run here only, when their generation is due; `stop` gives them back to Python."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._timer = QTimer(self, interval=INTERVAL_MS)
        self._timer.timeout.connect(self.collect)
        gc.disable()
        gc.freeze()  # what start-up made stays; looking through it again would only cost time
        self._timer.start()

    def collect(self) -> None:
        """Collect the oldest generation that is due."""
        due = [
            n for n, (count, most) in enumerate(zip(gc.get_count(), gc.get_threshold(), strict=True)) if count > most
        ]
        if due:
            gc.collect(due[-1])

    def stop(self) -> None:
        """Python collects again when and where it likes."""
        self._timer.stop()
        gc.unfreeze()
        gc.enable()
