"""How many calls each agent made today, followed in the audit log while somebody looks."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from PySide6.QtCore import QObject, QTimer, Signal
from shiboken6 import isValid

from gatewright.workspace.api import AuditIndex, GatewrightError
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.document import Document

LOOK_MS = 2_000
TASK = "overview.calls"
Tally = Mapping[str, Mapping[str, int]]
"""Agent -> verdict -> how many calls."""


class CallsToday(QObject):
    """Of the open workspace; ``is_looked_at`` says whether anybody wants to know."""

    counted = Signal(object)
    """Tally: what is new."""

    def __init__(
        self, document: Document, tasks: TaskOwner, is_looked_at: Callable[[], bool], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._document, self._tasks, self._is_looked_at = document, tasks, is_looked_at
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="gatewright-calls-today")
        self._index: AuditIndex | None = None
        self._since_s = 0.0
        self._timer = QTimer(self, interval=LOOK_MS)
        self._timer.timeout.connect(self.look)
        self._timer.start()
        document.closed.connect(self._open)
        document.opened.connect(self._open)
        self._open()

    def look(self) -> None:
        """Take in what was written since, unless that is under way."""
        is_idle = TASK not in self._tasks.names and not self._tasks.closed
        if self._index is not None and is_idle and self._is_looked_at():
            self._tasks.start(self._look(self._index), TASK)

    def end(self) -> None:
        """Let go of the log and end the thread."""
        self._timer.stop()
        self._leave()
        self._thread.shutdown(wait=True)

    def _open(self) -> None:
        self._leave()
        self.counted.emit({})
        if self._document.is_open:
            self._index = AuditIndex(self._document.workspace.audit.path.parent)
            self.look()

    def _leave(self) -> None:
        self._tasks.cancel(TASK)
        index, self._index, self._since_s = self._index, None, 0.0
        if index is not None:
            self._thread.submit(index.close)

    async def _look(self, index: AuditIndex) -> None:
        midnight_s = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
        is_first = midnight_s != self._since_s
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(  # None where nothing was written since the last time
                self._thread, lambda: index.tally(midnight_s) if index.read_newer() is not None or is_first else None
            )
        except GatewrightError:
            return  # the page Audit says why the log cannot be read
        if found is not None and isValid(self) and index is self._index:
            self._since_s = midnight_s
            self.counted.emit(found)
