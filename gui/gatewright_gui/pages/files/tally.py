"""The counts of the Files page: beside each rule, in the legend, for a pattern that is typed; anew when they are old.

It counts nothing itself and draws nothing.
"""

from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from gatewright.policy.document import Source
from gatewright_gui.pages.files.counting import Counting
from gatewright_gui.pages.files.filterbar import FilterBar
from gatewright_gui.pages.files.rules import RulesPanel
from gatewright_gui.pages.files.shown import Shown
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.census import Counted
from gatewright_gui.session.document import Document
from gatewright_gui.session.folderlevels import FolderLevels


class Tally(QObject):
    """Of the source that is shown."""

    below_changed = Signal()
    """Which levels the files of folders have may be otherwise now."""

    def __init__(
        self, document: Document, tasks: TaskOwner, shown: Shown, rules: RulesPanel, bar: FilterBar, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._document, self._shown, self._rules, self._bar = document, shown, rules, bar
        self._question: object = None
        self._counted: Counted | None = None
        self._is_due = False
        self.counting = Counting(tasks, shown.folder, self)
        self._connect()

    def start_over(self) -> None:
        """Another source, which is counted once its folder can be seen."""
        self._question, self._counted = None, None
        self._is_due = self._shown.source is not None
        self.counting.start_over()
        self._rules.strip.stop()
        self.show_levels()

    def begin(self) -> None:
        """The folder can be seen: what takes long may begin."""
        if self._is_due:
            self.count(afresh=True)

    def count(self, *, afresh: bool) -> None:
        """Count; `afresh` walks the disk again."""
        source = self._shown.source
        if source is None:
            return
        question = self._question_of(source)
        if question != self._question:
            self._rules.set_hits(None)
            self._counted = None
        self._question, self._is_due = question, False
        self.counting.count(source, afresh=afresh)

    def rules_changed(self, source: Source) -> None:
        """Count again where other rules can match other files."""
        self.show_levels()
        wanted = self._bar.filter
        if self._question == self._question_of(source) or self._is_due:
            if wanted.levels:
                self.counting.fit(source, wanted)
            return
        self.count(afresh=False)
        if wanted.rule is not None:
            self._bar.set_filter(replace(wanted, rule=None))  # that row may be another rule now

    def cancel(self) -> None:
        """Give the count up, by the operator's word."""
        self.put_off()
        self._is_due = False
        self._rules.show_not_counted("counting stopped", "F5 counts again")

    def put_off(self) -> None:
        """Nobody looks: what is being counted is counted another time."""
        self._is_due = self._is_due or self.counting.is_under_way
        self.counting.cancel()
        self._rules.strip.stop()

    def fail(self, why: str) -> None:
        """There are no counts."""
        self._question, self._counted = None, None
        self.counting.cancel()
        self._rules.strip.stop()
        self._rules.show_not_counted("not counted", why)
        self.show_levels()

    def show_levels(self) -> None:
        """The legend: the levels that the rules give, and how many files have each."""
        source, counted = self._shown.source, self._counted
        if source is None:
            return
        counts = None
        if counted is not None:
            counts = counted.decided.level_counts(source.permission_rules, source.default_permission)
        more = counted is not None and counted.hits.truncated
        self._bar.set_levels(tuple(source.levels), counts, more=more)

    def _question_of(self, source: Source) -> object:
        """What the counts depend on: of a source that is alone levels and comments do not matter."""
        patterns = tuple(rule.pattern for rule in source.permission_rules)
        others = self._document.policy.sources
        return source.base_path, patterns, others if len(others) > 1 else None

    def _began(self) -> None:
        self._rules.strip.start("Counting the files of each rule")

    def _told(self, count: int) -> None:
        self._rules.strip.set_progress(None, f"Counting the files of each rule: {count:,} seen")

    def _take(self, counted: Counted) -> None:
        self._counted = counted
        self._rules.strip.stop()
        self._rules.set_hits(counted.hits)
        self._shown.tree_model.set_below(FolderLevels(counted.decided, self._current))
        self.below_changed.emit()
        self.show_levels()
        source, wanted = self._shown.source, self._bar.filter
        if source is not None and wanted.is_on:
            self.counting.fit(source, wanted)

    def _current(self) -> Source | None:
        return self._shown.source

    def _try(self, row: int, text: str) -> None:
        source = self._shown.source
        if source is not None:
            self.counting.try_pattern(source, row, text)

    def _connect(self) -> None:
        counting, rules = self.counting, self._rules
        counting.began.connect(self._began)
        counting.told.connect(self._told)
        counting.counted.connect(self._take)
        counting.failed.connect(self.fail)
        counting.tried.connect(rules.show_trial)
        rules.count_cancelled.connect(self.cancel)
        rules.pattern_typed.connect(self._try)
        rules.typing_ended.connect(counting.end_trial)
