"""Worker processes that outlive their window, for tests that open hundreds of windows; it checks nothing."""

import os

from gatewright_gui.qt.language import VARIABLE
from gatewright_gui.session.worker_process import WorkerProcess


class KeptWorker(WorkerProcess):
    """A worker process that is returned, not ended, when its window closes it. It speaks the language of its start."""

    def __init__(self, free: list["KeptWorker"]) -> None:
        self.language = os.environ.get(VARIABLE)
        super().__init__()
        self._free = free

    def close(self) -> None:
        self.answered.disconnect()
        self.ended.disconnect()
        if self.is_running:
            self._free.append(self)
        else:
            self.end()

    def end(self) -> None:
        """End the process."""
        super().close()


class KeptWorkers:
    """The kept processes; one is enough if each window is closed before the next opens."""

    def __init__(self) -> None:
        self._free: list[KeptWorker] = []

    def take(self) -> KeptWorker:
        """Return an unused process that speaks the language of now, or start a new one."""
        while self._free:
            worker = self._free.pop()
            if worker.is_running and worker.language == os.environ.get(VARIABLE):
                return worker
            worker.end()
        return KeptWorker(self._free)

    def end(self) -> None:
        for worker in self._free:
            worker.end()
        self._free.clear()
