"""The calls of today and the rights used in thirty days, followed in the audit log while somebody looks."""

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from datetime import datetime, timedelta

from PySide6.QtCore import QObject, QTimer, Signal
from shiboken6 import isValid

from gatewright.workspace.api import AuditFilter, AuditIndex, GatewrightError, ToolCalls, frozen
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.audit import Timeline
from gatewright_gui.session.document import Document
from gatewright_gui.session.effects import Used

__all__ = ["DAYS", "RecentCalls", "RecentCallsWatch", "ToolCalls"]

LOOK_MS = 2_000
DAYS, STRETCH_S = 30, 1_800


@frozen
class RecentCalls:
    """``today``: by half hours since midnight; ``used``: the rights used in ``DAYS`` days; ``tools``: the last calls.

    ``since_s``: the first moment that the log tells of since then, in seconds since 1970; None without any call.
    """

    today: Timeline = field(default_factory=Timeline)
    used: Used = frozenset()
    since_s: float | None = None
    tools: tuple[ToolCalls, ...] = ()

    @property
    def verdicts(self) -> Counter[str]:
        """The number of calls today, by verdict."""
        counts: Counter[str] = Counter()
        for one in self.today.counts:
            counts[one.verdict] += one.count
        return counts


class RecentCallsWatch(QObject):
    """Follows the open workspace; ``is_looked_at`` tells whether anybody wants to know."""

    counted = Signal(object)
    """RecentCalls, if something is new."""

    def __init__(
        self,
        document: Document,
        tasks: TaskOwner,
        task: str,
        is_looked_at: Callable[[], bool],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._document, self._tasks, self._task, self._is_looked_at = document, tasks, task, is_looked_at
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="gatewright-recent-calls")
        self._index: AuditIndex | None = None
        self._midnight_s = 0.0
        self._timer = QTimer(self, interval=LOOK_MS)
        self._timer.timeout.connect(self.look)
        self._timer.start()
        document.closed.connect(self._open)
        document.opened.connect(self._open)
        self._open()

    def look(self) -> None:
        """Take in what was written since, unless that is under way."""
        is_idle = self._task not in self._tasks.names
        if self._index is not None and is_idle and self._is_looked_at():
            self._tasks.start(self._look(self._index), self._task)

    def end(self) -> None:
        """Let go of the log and end the thread."""
        self._timer.stop()
        self._leave()
        self._thread.shutdown(wait=True)

    def _open(self) -> None:
        self._leave()
        self.counted.emit(RecentCalls())
        if self._document.is_open:
            self._index = AuditIndex(self._document.workspace.state_folder)
            self.look()

    def _leave(self) -> None:
        self._tasks.cancel(self._task)
        index, self._index, self._midnight_s = self._index, None, 0.0
        if index is not None:
            self._thread.submit(index.close)

    async def _look(self, index: AuditIndex) -> None:
        midnight = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
        is_first = midnight.timestamp() != self._midnight_s
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(self._thread, _read, index, midnight, is_first)
        except GatewrightError:
            return  # the page Audit says why the log cannot be read
        if found is not None and isValid(self) and index is self._index:
            self._midnight_s = midnight.timestamp()
            self.counted.emit(found)


def _read(index: AuditIndex, midnight: datetime, is_first: bool) -> RecentCalls | None:
    """Return the recent calls; None if nothing was written since the last time."""
    if index.read_newer() is None and not is_first:
        return None
    begin_s, since_s = midnight.timestamp(), (midnight - timedelta(days=DAYS)).timestamp()
    used, tools = index.used(since_s), index.by_tool(since_s, begin_s)
    counts = index.counts(AuditFilter(since_s=begin_s), begin_s, STRETCH_S)
    end_s = (midnight + timedelta(days=1)).timestamp()  # a day has 23 or 25 hours twice a year
    span = index.span()
    first_s = None if span is None else max(span[0], since_s)
    return RecentCalls(Timeline(begin_s, STRETCH_S, round((end_s - begin_s) / STRETCH_S), counts), used, first_s, tools)
