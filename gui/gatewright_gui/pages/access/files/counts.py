"""How many files each rule decides, what a filter leaves, what a pattern that is being typed would do.

The count runs in a thread and is kept: other rules, filters and patterns are asked of it without the disk. An answer
that comes late, for another source or an older question, is dropped.
"""

import asyncio
import contextlib
import time
from collections.abc import Coroutine
from dataclasses import replace
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal
from shiboken6 import isValid

from gatewright.workspace.api import (
    GatewrightError,
    PermissionRule,
    PermissionRules,
    Shadow,
    Source,
    check_pattern,
    find_shadows,
)
from gatewright_gui.pages.access.files.file_filter import TreeFilter, fitting
from gatewright_gui.pages.access.files.filter_bar import FilterBar
from gatewright_gui.pages.access.files.folder_levels import FolderLevels
from gatewright_gui.pages.access.files.rule_model import Insertion
from gatewright_gui.pages.access.files.rules_panel import RulesPanel
from gatewright_gui.pages.access.files.shown_source import ShownSource
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session import file_index
from gatewright_gui.session.courtesy import Stop
from gatewright_gui.session.document import Document
from gatewright_gui.session.file_index import DEFAULT, ELSEWHERE, PROTECTED, Decided, FileIndex, Tried
from gatewright_gui.session.files import Hits

MAX_COUNTED = 1_000_000
"""Files that are counted before counting gives up."""
TELL_S = 0.1
"""How often it is told how far the counting is."""
COUNT, FIT, TRY = "files.count", "files.fit", "files.trypattern"
TYPED_MS = 120
SOON_MS = 400
_REST = 4
"""A walk is followed by a rest of so many times its length, however much happens on the disk."""


class FileCounts(QObject):
    """Of the source that is shown: beside each rule, in the legend, for a filter, for a pattern that is typed."""

    below_changed = Signal()
    """Which levels the files of folders have may be otherwise now."""
    fitted = Signal(object)
    """Fitting, or None where all is shown."""

    def __init__(
        self,
        document: Document,
        tasks: TaskOwner,
        shown: ShownSource,
        rules: RulesPanel,
        bar: FilterBar,
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._document, self._tasks, self._shown, self._rules, self._bar = document, tasks, shown, rules, bar
        self._index: tuple[str, object, FileIndex] | None = None
        """Source, the folder that it was opened on, its files."""
        self._decided: Decided | None = None
        """What the last count found; `_is_new` while it answers for the patterns that the source has now."""
        self._is_new = False
        self._question: object = None
        self._is_due = self._is_counting = False
        self._turn = self._fit_turn = 0
        self._trial: tuple[Source, Source, int] | None = None
        """The source as it is, as it would be with what is typed, and the row of that."""
        self._tried: Tried | None = None
        self._wait_ms = SOON_MS
        self._later = QTimer(self, singleShot=True)
        self._later.timeout.connect(partial(self.count, afresh=True))
        self._typed = QTimer(self, singleShot=True, interval=TYPED_MS)
        self._typed.timeout.connect(self._try_now)
        rules.count_cancelled.connect(self.cancel)
        rules.pattern_typed.connect(self._try_soon)
        rules.typing_ended.connect(self._end_trial)

    def start_over(self) -> None:
        """Another source, which is counted once its folder can be seen."""
        self._stop()
        self._tasks.cancel(FIT)
        self._end_trial()
        self._index = self._decided = self._question = None
        self._is_new, self._is_due = False, self._shown.source is not None
        self.show_levels()

    def begin(self) -> None:
        """The folder can be seen: what takes long may begin."""
        if self._is_due:
            self.count(afresh=True)

    def rules_changed(self, source: Source) -> None:
        """Count again where other rules can match other files."""
        self.show_levels()
        wanted = self._bar.filter
        if self._question == self._question_of(source) or self._is_due:
            if wanted.levels:
                self.fit(wanted)
            return
        self.count(afresh=False)
        if wanted.rule is not None:
            self._bar.set_filter(replace(wanted, rule=None))  # that row may be another rule now

    def cancel(self) -> None:
        """Give the count up, by the operator's word."""
        self._stop()
        self._is_due = False
        self._rules.show_not_counted(tr("counting stopped"), tr("F5 counts again"))

    def put_off(self) -> None:
        """Nobody looks: what is being counted is counted another time."""
        self._is_due = self._is_due or self._is_counting or self._later.isActive()
        self._stop()

    def fail(self, why: str) -> None:
        """There are no counts."""
        self._question, self._is_new = None, False
        self._stop()
        self._rules.show_not_counted(tr("not counted"), why)
        self.show_levels()

    def show_levels(self) -> None:
        """The legend: the levels that the rules give, and how many files have each."""
        source, decided = self._shown.source, self._decided if self._is_new else None
        if self._tried is not None:
            source, decided = self._tried.source, self._tried.decided
        if source is not None:
            rules, default = source.permission_rules, source.default_permission
            counts = decided.level_counts(rules, default) if decided is not None else None
            self._bar.set_levels(tuple(source.levels), counts, more=decided is not None and decided.index.truncated)

    # counting

    def count(self, *, afresh: bool) -> None:
        """Count; `afresh` walks the disk again."""
        source = self._shown.source
        if source is None:
            return
        question = self._question_of(source)
        if question != self._question:
            self._rules.set_hits(None)
            self._is_new = False
        self._question, self._is_due = question, False
        self._later.stop()
        self._turn += 1
        self._is_counting = True
        self._rules.strip.start(tr("Counting the files of each rule"))
        self._start(self._count(source.source_id, self._turn, afresh=afresh), COUNT)

    def count_soon(self) -> None:
        """Walk the disk again in a moment: what happens until then goes with it."""
        if not self._later.isActive():
            self._later.start(self._wait_ms)

    def _question_of(self, source: Source) -> object:
        """The facts that the counts depend on: of a source that is alone levels and comments do not matter."""
        others = self._document.policy.file_sources
        return source.base_path, _patterns(source), others if len(others) > 1 else None

    def _stop(self) -> None:
        self._later.stop()
        self._turn += 1
        self._is_counting = False
        self._tasks.cancel(COUNT)
        self._rules.strip.stop()

    def _is_wanted(self, turn: int) -> bool:
        return isValid(self) and turn == self._turn

    def _tell(self, turn: int, seen: int) -> None:
        if self._is_wanted(turn):
            self._rules.strip.set_progress(None, tr("Counting the files of each rule: {count:,} seen", count=seen))

    async def _count(self, source_id: str, turn: int, *, afresh: bool) -> None:
        try:
            source, overlay = self._shown.folder.running(source_id)
            known, loop = self._index, asyncio.get_running_loop()
            kept = known[2] if known and known[:2] == (source_id, source.folder) and not afresh else None

            def work(stop: Stop) -> tuple[Decided, Hits, float]:
                began = told = time.monotonic()

                def progress(seen: int) -> None:
                    nonlocal told
                    if time.monotonic() - told >= TELL_S:
                        told = time.monotonic()
                        with contextlib.suppress(RuntimeError):  # the window is gone
                            loop.call_soon_threadsafe(self._tell, turn, seen)

                shadows = find_shadows(source.rules.rules)
                index = kept or file_index.walk(source, stop, progress, limit=MAX_COUNTED)
                took = 0.0 if kept else time.monotonic() - began
                rules = PermissionRules(source.rules.rules, source.rules.default)
                decided = file_index.decide(index, overlay, rules, stop)
                return decided, _hits(decided, len(source.rules.rules), shadows), took

            decided, hits, took_s = await self._shown.folder.counting(work)
        except GatewrightError as error:
            if self._is_wanted(turn):
                self.fail(str(error))
            return
        if self._is_wanted(turn):
            self._index, self._decided = (source_id, source.folder, decided.index), decided
            self._wait_ms = max(SOON_MS, round(took_s * 1000 * _REST))
            self._is_counting, self._is_new = False, True
            self._show(decided, hits)

    def _show(self, decided: Decided, hits: Hits) -> None:
        self._rules.strip.stop()
        self._rules.set_hits(hits)
        self._shown.tree_model.set_below(FolderLevels(decided, lambda: self._shown.source))
        self.below_changed.emit()
        self.show_levels()
        if self._bar.filter.is_on:
            self.fit(self._bar.filter)

    # filtering

    def fit(self, wanted: TreeFilter) -> None:
        """Find what fits, once there is a count; with nothing wanted all is shown at once."""
        source, decided = self._shown.source, self._decided
        self._fit_turn += 1
        if not wanted.is_on:
            self._tasks.cancel(FIT)
            self.fitted.emit(None)
        elif source is not None and decided is not None:
            self._start(self._fit(source, decided, wanted, self._fit_turn), FIT)

    async def _fit(self, source: Source, decided: Decided, wanted: TreeFilter, turn: int) -> None:
        rules, default = source.permission_rules, source.default_permission
        found = await self._shown.folder.asking(lambda stop: fitting(decided, wanted, rules, default, stop))
        if isValid(self) and turn == self._fit_turn:
            self.fitted.emit(found)

    # a pattern that is typed

    def _try_soon(self, row: int, pattern: str) -> None:
        """Count, once the typing rests, what a pattern would decide in that row."""
        source, before = self._shown.source, self._trial
        if source is None:
            return
        rules, new = source.permission_rules, PermissionRule(pattern, self._rules.written_level)
        if isinstance(row, Insertion) or row >= len(rules):
            rules = (*rules[:row], new, *rules[row:])
        else:
            rules = (*rules[:row], replace(rules[row], pattern=pattern), *rules[row + 1 :])
        tried = replace(source, permission_rules=rules)
        self._trial = (source, tried, row)
        self._typed.start()
        if before is None or _patterns(before[1]) != _patterns(tried):
            self._rules.show_trial(row, None)
        if check_pattern(pattern) is not None:
            self._show_tried(None)

    def _end_trial(self) -> None:
        if self._trial is not None:
            self._trial = None
            self._typed.stop()
            self._tasks.cancel(TRY)
            self._rules.show_trial(None, None)
            self._show_tried(None)

    def _show_tried(self, tried: Tried | None) -> None:
        """Colour the folder, and count its levels, as the rule that is typed would have them."""
        if tried is not self._tried:
            self._tried = tried
            below = FolderLevels(tried.decided, lambda: tried.source) if tried is not None else None
            self._shown.show_tried(tried.rules if tried is not None else None, below)
            self.show_levels()

    def _try_now(self) -> None:
        if self._trial is None or self._decided is None:
            return
        _source, tried, row = self._trial
        if check_pattern(tried.permission_rules[row].pattern) is None:
            self._start(self._try(self._trial, self._decided), TRY)

    async def _try(self, trial: tuple[Source, Source, int], decided: Decided) -> None:
        source, would_be, row = trial
        tried = await self._shown.folder.asking(
            lambda stop: file_index.try_pattern(decided, would_be, row, source, stop)
        )
        if isValid(self) and trial is self._trial:
            self._rules.show_trial(row, tried.count)
            self._show_tried(tried)

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._tasks.start(work, name, replace=True)


def _hits(decided: Decided, rules: int, shadows: tuple[Shadow, ...]) -> Hits:
    counts, index = decided.counts, decided.index
    return Hits(
        tuple(counts.get(at, 0) for at in range(rules)),
        counts.get(DEFAULT, 0),
        index.files,
        index.truncated,
        index.unreadable,
        shadows,
        counts.get(PROTECTED, 0),
        sum(count for code, count in counts.items() if code <= ELSEWHERE),
    )


def _patterns(source: Source) -> tuple[str, ...]:
    return tuple(rule.pattern for rule in source.permission_rules)
