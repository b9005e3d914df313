"""The audit log of the open workspace: read beside the window, followed while others write it, proved, written out."""

import asyncio
import time
from array import array
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from itertools import islice
from pathlib import Path
from typing import Any, TextIO, TypeVar

from PySide6.QtCore import QObject, Signal
from shiboken6 import isValid

from gatewright.workspace.api import (
    AuditChoices,
    AuditFilter,
    AuditIndex,
    AuditReport,
    AuditRow,
    CallCount,
    Comparison,
    GatewrightError,
    LoggedCall,
    Workspace,
    frozen,
)
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.derive import Deriver
from gatewright_gui.session.document import Document

T = TypeVar("T")
__all__ = ["AuditChoices", "AuditFilter", "AuditReport", "AuditRow", "AuditTrail", "Found", "LoggedCall", "Timeline"]

FIRST_ROWS = 9_000
"""So many rows, the newest, are read before anything is shown."""
SUMMARY_S = 2.0
"""Times and names are counted anew no more often than this while others write."""
STRETCHES_S = (1, 5, 15, 60, 300, 900, 3_600, 10_800, 21_600, 86_400, 604_800, 2_592_000, 31_536_000)
MOST_STRETCHES = 120
SHORTEST_S = 60
"""The timeline shows no less, so that a few calls are narrow bars and not one wide one."""
ROWS_AT_ONCE = 500
NOTHING = 1 << 62
"""In place of a number from which on calls are others than before: none is."""
_READ, _FIND, _LOOK = "audit.read", "audit.find", "audit.look"


@frozen
class Timeline:
    """The number of calls by time: ``counts`` says it of stretches of ``stretch_s`` seconds from ``begin_s`` on."""

    begin_s: float = 0.0
    stretch_s: int = 60
    stretches: int = 0
    counts: tuple[CallCount, ...] = ()


@frozen
class Found:
    """The filter's finds: the numbers of the calls, newest first, of which those from ``changed`` on may be others
    than before. ``read`` and ``rows``: how much of the log is read so far. ``others``: those of them that are rows of
    no call.
    """

    numbers: "array[int]"
    changed: int
    read: int
    rows: int
    others: "array[int]" = field(default_factory=lambda: array("q"))

    @property
    def is_whole(self) -> bool:
        """Tell whether all of the log is read."""
        return self.read >= self.rows


NOTHING_FOUND = Found(array("q"), 0, 0, 0)


class AuditTrail(QObject):
    """Reads the newest calls first and goes on to the oldest; `look` takes in what was written since."""

    found = Signal(object)
    """Found."""
    counted = Signal(object)
    """Timeline, of the calls that were found just before."""
    named = Signal(object)
    """AuditChoices: what the log names."""
    failed = Signal(object)
    """Why the log cannot be read, with its place: str."""
    began = Signal()
    """Another log: nothing of it is read yet."""

    def __init__(self, document: Document, tasks: TaskOwner, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._document, self._tasks = document, tasks
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="gatewright-audit-page")
        self._index: AuditIndex | None = None
        self._wanted, self._period = AuditFilter(), (None, None)
        self._found, self._counted_s, self._counts_late = NOTHING_FOUND, 0.0, False
        self._changed = NOTHING
        """From which call on there was a change that nobody has been told yet."""
        document.closed.connect(self._open)
        document.opened.connect(self._open)
        self._open()

    @property
    def now(self) -> Found:
        """The calls that were found last."""
        return self._found

    def set_filter(self, wanted: AuditFilter, period: tuple[float | None, float | None] = (None, None)) -> None:
        """Find other calls; ``period``: from when to when the timeline counts, None: as far as the log goes."""
        self._wanted, self._period = wanted, period
        if self._index is not None:
            self._start(self._find(0, NOTHING, count=True), _FIND)

    def look(self) -> None:
        """Take in what was written since, unless that is under way."""
        under_way = {_READ, _LOOK, _FIND}.intersection(self._tasks.names)
        if self._index is not None and not under_way:
            self._start(self._look(), _LOOK)

    async def calls(self, numbers: Iterable[int]) -> tuple[LoggedCall, ...]:
        """The calls with these numbers."""
        wanted = tuple(numbers)
        return await self._run(lambda index: index.calls(wanted)) or ()

    async def parent_of(self, call: LoggedCall) -> LoggedCall | None:
        """The call that this one is a step of; None where there is none, or it is not read yet."""
        return await self.call(call.within)

    async def call(self, call_id: str) -> LoggedCall | None:
        """The call with that id; None where it is not read yet."""

        def find(index: AuditIndex) -> LoggedCall | None:
            number = index.number_of(call_id) if call_id else None
            return next(iter(index.calls((number,))), None) if number is not None else None

        return await self._run(find)

    async def today(self) -> tuple[dict[str, int], int]:
        """The uses of each standing answer today, by its id, and how many calls asked with nobody to answer."""
        midnight_s = time.mktime((*time.localtime()[:3], 0, 0, 0, 0, 0, -1))
        unreached = AuditFilter(since_s=midnight_s, state="unreached")
        return await self._run(lambda index: (index.grants(midnight_s), len(index.numbers(unreached)))) or ({}, 0)

    async def rows_of(self, call: LoggedCall) -> tuple[AuditRow, ...]:
        """The rows of one call."""
        return await self._run(lambda index: index.rows_of(call)) or ()

    async def rows(self, wanted: AuditFilter) -> Iterator[AuditRow]:
        """Every row of the calls that fit, oldest first, to be gone through `in_thread`."""
        return await self._run(lambda index: index.rows(wanted)) or iter(())

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Do work in the thread of the log."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def end(self) -> None:
        """Let go of the log and end the thread."""
        self._leave()
        self._thread.shutdown(wait=True)

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._tasks.start(work, name, replace=True)

    def _open(self) -> None:
        self._leave()
        self._found, self._counts_late = NOTHING_FOUND, False
        self.began.emit()
        if self._document.is_open:
            self._index = AuditIndex(self._document.workspace.state_folder)
            self._start(self._read(), _READ)

    def _leave(self) -> None:
        for name in (_READ, _FIND, _LOOK):
            self._tasks.cancel(name)
        index, self._index = self._index, None
        if index is not None:
            self._thread.submit(index.close)

    async def _run(self, work: Callable[[AuditIndex], T]) -> T | None:
        """Ask the index in its thread; None when the log is another one meanwhile, or cannot be read, which is told."""
        index = self._index
        if index is None:
            return None
        try:
            answer = await self.in_thread(lambda: work(index))
        except (GatewrightError, ValueError) as error:
            if isValid(self) and index is self._index:
                self.failed.emit(str(error))
            return None
        return answer if isValid(self) and index is self._index else None

    async def _read(self) -> None:
        more, piece = await self._run(lambda index: index.read_older(FIRST_ROWS)), 0
        await self._find(0, 0, count=True, name=True)
        while more:
            more, piece = await self._run(AuditIndex.read_older), piece + 1
            if not more or piece & (piece - 1) == 0:  # ever less often: each time everything is gone through again
                await self._find(0, NOTHING, count=True, name=True)

    async def _look(self) -> None:
        changed = await self._run(AuditIndex.read_newer)
        if changed == 0:
            self._start(self._read(), _READ)
            return
        is_time = time.monotonic() - self._counted_s > SUMMARY_S
        if changed is not None or (self._counts_late and is_time):
            self._counts_late = not is_time
            await self._find(changed or NOTHING, changed or NOTHING, count=is_time, name=is_time)

    async def _find(self, begin: int, changed: int, *, count: bool = False, name: bool = False) -> None:
        """Find the calls from ``begin`` on anew, count them, and take up names. What came too late is dropped."""
        wanted, period, before = self._wanted, self._period, self._found
        self._changed = min(self._changed, changed)
        found = await self._run(lambda index: _find(index, wanted, before, begin, changed))
        if found is None or wanted is not self._wanted:
            return
        found = replace(found, changed=self._changed)
        self._found, self._changed = found, NOTHING
        self.found.emit(found)
        timeline = await self._run(lambda index: _timeline(index, wanted, period)) if count else None
        if timeline is not None and wanted is self._wanted:
            self._counted_s = time.monotonic()
            self.counted.emit(timeline)
        choices = await self._run(AuditIndex.choices) if name else None
        if choices is not None:
            self.named.emit(choices)


def _find(index: AuditIndex, wanted: AuditFilter, before: Found, begin: int, changed: int) -> Found:
    numbers, others = index.split(wanted, begin=begin)
    if begin:
        numbers.extend(before.numbers[first_below(before.numbers, begin) :])
        others.extend(before.others[first_below(before.others, begin) :])
    return Found(numbers, changed, *index.read_rows, others)


def first_below(numbers: "array[int]", bound: int) -> int:
    """The place where the numbers, which fall, are below the bound."""
    low, high = 0, len(numbers)
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] >= bound:
            low = middle + 1
        else:
            high = middle
    return low


def _timeline(index: AuditIndex, wanted: AuditFilter, period: tuple[float | None, float | None]) -> Timeline:
    span = index.span()
    if span is None:
        return Timeline()
    begin_s, end_s = (known if chosen is None else chosen for chosen, known in zip(period, span, strict=True))
    end_s = max(end_s, begin_s + SHORTEST_S)
    long = end_s - begin_s
    stretch_s = next((one for one in STRETCHES_S if long / one < MOST_STRETCHES - 1), STRETCHES_S[-1])
    offset_s = time.localtime(begin_s).tm_gmtoff
    begin_s -= (begin_s + offset_s) % stretch_s
    stretches = min(int((end_s - begin_s) // stretch_s) + 1, MOST_STRETCHES)
    fits = replace(wanted, since_s=period[0], until_s=period[1])
    counts = tuple(one for one in index.counts(fits, begin_s, stretch_s) if one.stretch < stretches)
    return Timeline(begin_s, stretch_s, stretches, counts)


# proving and writing out


async def prove(document: Document, deriver: Deriver, progress: Callable[[int], None]) -> AuditReport | None:
    """Go through the whole chain in the worker process; an edit of the policy meanwhile has it begin anew.

    None where nothing is open any more.
    """
    report: AuditReport | None = None
    while report is None and document.is_open:
        report = await deriver.derive_in_pieces(check_chain, progress)
    return report


def check_chain(workspace: Workspace) -> Generator[int, None, AuditReport]:
    """Verify the log of the workspace, for the worker process; says the number of the row that was reached."""
    return (yield from workspace.audit.verify_in_pieces())


async def write_out(trail: AuditTrail, wanted: AuditFilter, path: Path, progress: Callable[[int], None]) -> int:
    """Write the rows of the calls that fit as JSON Lines; how many. Raises OSError; what was begun is gone then."""
    rows, fresh, count = await trail.rows(wanted), path.with_name(f".{path.name}.part"), 0

    def write_page(file: TextIO) -> int:
        page = [f"{row.to_line()}\n" for row in islice(rows, ROWS_AT_ONCE)]
        file.writelines(page)
        return len(page)

    try:
        with await asyncio.to_thread(fresh.open, "w", encoding="utf-8") as file:
            while written := await trail.in_thread(lambda: write_page(file)):
                count += written
                progress(count)
        await asyncio.to_thread(fresh.replace, path)
    finally:
        fresh.unlink(missing_ok=True)
    return count


def compare(state: Path) -> Comparison:
    """Compare all calls of the log in a state folder. It takes time: call it in a thread."""
    index = AuditIndex(state)
    try:
        while index.read_older():
            pass
        return index.compare(AuditFilter())
    finally:
        index.close()
