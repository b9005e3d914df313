"""Worker processes that outlive their window, for tests, which open hundreds of windows. It checks nothing."""

from gatewright_gui.session.worker_process import WorkerProcess


class KeptWorker(WorkerProcess):
    """Closing it gives it back."""

    def __init__(self, free: list["KeptWorker"]) -> None:
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
        """Really."""
        super().close()


class KeptWorkers:
    """One is enough where one window is closed before the next is opened."""

    def __init__(self) -> None:
        self._free: list[KeptWorker] = []

    def take(self) -> KeptWorker:
        """One that nobody has any more, or a new one."""
        while self._free:
            worker = self._free.pop()
            if worker.is_running:
                return worker
            worker.end()
        return KeptWorker(self._free)

    def end(self) -> None:
        for worker in self._free:
            worker.end()
        self._free.clear()
