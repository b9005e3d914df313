"""What the page asks of the count of a source's files: how many each rule decides, what fits a filter, what a pattern
that is being typed would do. Answers that come late are dropped here.

It draws nothing and counts nothing: threads do.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal
from shiboken6 import isValid

from gatewright.base.errors import GatewrightError
from gatewright.policy.document import PermissionRule, Source
from gatewright.policy.glob import check_pattern
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.census import Census, Counted
from gatewright_gui.session.filefilter import NO_FILTER, Fitting, TreeFilter
from gatewright_gui.session.files import SourceFolder

COUNT, FIT, TRY = "files.count", "files.fit", "files.trypattern"
TYPED_MS = 120
SOON_MS = 400
_REST = 4
"""A walk is followed by a rest of so many times its length, however much happens on the disk."""


class Counting(QObject):
    """For one source at a time."""

    began = Signal()
    told = Signal(object)
    """Entries that were seen so far: int."""
    counted = Signal(object)
    """Counted."""
    failed = Signal(object)
    """Why there is no count: str."""
    fitted = Signal(object)
    """Fitting, or None where all is shown."""
    tried = Signal(object, object)
    """Row, PatternCount or None while it is counted; row None: nothing is tried any more."""

    def __init__(self, tasks: TaskOwner, folder: SourceFolder, parent: QObject) -> None:
        super().__init__(parent)
        self._tasks = tasks
        self._census = Census(folder)
        self._turn = 0
        self._is_counting = False
        self._filter = NO_FILTER
        self._fit_turn = 0
        self._trial: tuple[Source, int, str] | None = None
        self._wait_ms = SOON_MS
        self._soon: Callable[[], None] | None = None
        self._later = QTimer(self, singleShot=True)
        self._later.timeout.connect(self._count_now)
        self._typed = QTimer(self, singleShot=True, interval=TYPED_MS)
        self._typed.timeout.connect(self._try_now)

    @property
    def has_count(self) -> bool:
        """Whether something was counted."""
        return self._census.decided is not None

    @property
    def is_under_way(self) -> bool:
        """Whether it is being counted, or will be in a moment."""
        return self._is_counting or self._later.isActive()

    def start_over(self) -> None:
        """Another source."""
        self.cancel()
        self._soon = None
        self._filter = NO_FILTER
        self._tasks.cancel(FIT)
        self.end_trial()
        self._census.start_over()

    # counting

    def count(self, source: Source, *, afresh: bool) -> None:
        """Count; `afresh` walks the disk again."""
        self._later.stop()
        self._turn += 1
        self._is_counting = True
        self.began.emit()
        self._start(self._count(source.source_id, self._turn, afresh=afresh), COUNT)

    def count_soon(self, source: Callable[[], Source | None]) -> None:
        """Walk the disk again in a moment: what happens until then goes with it."""

        def again() -> None:
            found = source()
            if found is not None:
                self.count(found, afresh=True)

        self._soon = again
        if not self._later.isActive():
            self._later.start(self._wait_ms)

    def cancel(self) -> None:
        """Give the count up."""
        self._later.stop()
        self._turn += 1
        self._is_counting = False
        self._tasks.cancel(COUNT)

    def _count_now(self) -> None:
        if self._soon is not None:
            self._soon()

    async def _count(self, source_id: str, turn: int, *, afresh: bool) -> None:
        def tell(seen: int) -> None:
            if isValid(self) and turn == self._turn:
                self.told.emit(seen)

        try:
            counted = await self._census.count(source_id, tell, afresh=afresh)
        except GatewrightError as error:
            if isValid(self) and turn == self._turn:
                self._is_counting = False
                self.failed.emit(str(error))
            return
        if isValid(self) and turn == self._turn:
            self._is_counting = False
            self._rest_after(counted)
            self.counted.emit(counted)

    def _rest_after(self, counted: Counted) -> None:
        self._wait_ms = max(SOON_MS, round(counted.took_s * 1000 * _REST))

    # filtering

    def fit(self, source: Source, wanted: TreeFilter) -> None:
        """Find what fits; with nothing wanted all is shown at once."""
        self._filter = wanted
        self._fit_turn += 1
        if not wanted.is_on:
            self._tasks.cancel(FIT)
            self.fitted.emit(None)
        elif self.has_count:
            self._start(self._fit(source, wanted, self._fit_turn), FIT)

    async def _fit(self, source: Source, wanted: TreeFilter, turn: int) -> None:
        fitting: Fitting | None = await self._census.fit(source, wanted)
        if isValid(self) and turn == self._fit_turn and fitting is not None:
            self.fitted.emit(fitting)

    # a pattern that is typed

    def try_pattern(self, source: Source, row: int, pattern: str) -> None:
        """Count, once the typing rests, what a pattern would decide in that row."""
        self._trial = (source, row, pattern)
        self._typed.start()
        self.tried.emit(row, None)

    def end_trial(self) -> None:
        """Nothing is typed any more."""
        if self._trial is not None:
            self._trial = None
            self._typed.stop()
            self._tasks.cancel(TRY)
            self.tried.emit(None, None)

    def _try_now(self) -> None:
        if self._trial is None or not self.has_count:
            return
        source, row, pattern = self._trial
        if check_pattern(pattern) is None:
            self._start(self._try(self._trial, _with(source, row, pattern), row), TRY)

    async def _try(self, trial: tuple[Source, int, str], rules: tuple[PermissionRule, ...], row: int) -> None:
        count = await self._census.try_rule(rules, row)
        if isValid(self) and trial == self._trial and count is not None:
            self.tried.emit(row, count)

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._tasks.start(work, name, replace=True)


class Insertion(int):
    """A row before which a new rule is being written."""


def _with(source: Source, row: int, pattern: str) -> tuple[PermissionRule, ...]:
    """The rules with another pattern in a row; behind the last one, or for a row that is new, with one more rule."""
    rules = source.permission_rules
    rule = PermissionRule(pattern, source.default_permission)
    rest = rules[row:] if isinstance(row, Insertion) else rules[row + 1 :]
    return (*rules[:row], rule, *rest)
