"""The Files page put together: a source's levels, its folder, and what decides a path.

It does not decide levels and reads no disk: the session does, and late answers are dropped. Over 400 lines, because
every signal of the parts ends in a short method here.
"""

from collections.abc import Coroutine
from dataclasses import replace
from functools import partial
from typing import Any, cast

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QWidget
from shiboken6 import isValid

from gatewright.base.errors import GatewrightError
from gatewright.policy.document import Source
from gatewright.policy.edit import ChangeSet
from gatewright.policy.permission import Permission
from gatewright_gui.models.foldertree import FolderTreeModel
from gatewright_gui.pages.files import sourcing
from gatewright_gui.pages.files.blocks import Blocks
from gatewright_gui.pages.files.counting import Counting
from gatewright_gui.pages.files.decided import DecidedPanel
from gatewright_gui.pages.files.folder import FolderPanel
from gatewright_gui.pages.files.levelhelp import LevelHelp
from gatewright_gui.pages.files.listing import Listing
from gatewright_gui.pages.files.rules import RulesPanel
from gatewright_gui.pages.page import Page, PageContext
from gatewright_gui.qt.widget import EmptyState, Splitter
from gatewright_gui.session.census import Counted
from gatewright_gui.session.filefilter import DEFAULT, NO_FILTER, Fitting, TreeFilter
from gatewright_gui.session.files import PathLevel, SourceFolder, inside, pattern_of
from gatewright_gui.session.filestate import FileStanding, OutsideChanges, Standings
from gatewright_gui.session.folderfollow import FolderFollow, FolderNews
from gatewright_gui.session.verbs import sources

NEWS_MS = 8_000
"""How long it is said of a path that it just changed."""
CAME, CHANGED = "new just now", "changed just now"
_COMPLETE = "files.complete"
_SOURCES = "files.sources"


class FilesPage(Page):
    """One source at a time."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self._context = context
        self._folder = SourceFolder(context.document)
        self._source_id: str | None = None
        self._is_stale = True
        self._is_behind = False
        self._patterns: object = None
        self._path: str | None = None
        self._is_counting_due = False
        self._base_path: str | None = None
        self._counted: Counted | None = None
        self._picks_first = False
        self._news: dict[str, str] = {}
        self.follow = FolderFollow(context.document)
        self.tree_model = FolderTreeModel(self._level, self)
        self.rules = RulesPanel(context.document)
        self.folder = FolderPanel(self.tree_model, self._may_give)
        self.decided = DecidedPanel()
        self.counting = Counting(context.tasks, self._folder, self)
        self.listing = Listing(context.tasks, self._folder, self.tree_model, self.folder)
        self.blocks = Blocks(self, context, self._folder)
        self._old_news = QTimer(self, singleShot=True, interval=NEWS_MS)
        self._old_news.timeout.connect(self._forget_news)
        self._lay_out()
        self._connect()

    # the window's side

    def page_shown(self) -> None:
        """Bring up to date what was put off while the page was hidden."""
        if self._is_stale:
            self._open()
        elif self._is_behind:
            self._refresh()
        else:
            self._look_at_blocks()

    def main_view(self) -> QWidget | None:
        """Where the keys were when one left the page, else the rules."""
        last = cast("QWidget | None", self.focusWidget())
        if last is not None and last.isVisibleTo(self) and last.isEnabledTo(self):
            return last
        return self.rules.table if self._parts.currentIndex() == 0 else super().main_view()

    def focus_search(self) -> None:
        """Ctrl+F: filter the files."""
        self.folder.bar.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.folder.bar.field.selectAll()

    # following the document

    def _opened(self) -> None:
        self._source_id = None
        self._is_stale = True
        self.follow.close()
        if self.isVisible():
            self._open()

    def _open(self) -> None:
        """Everything anew."""
        self._is_stale = False
        shown = self._context.document.policy.sources
        if self._folder.source(self._source_id) is None:
            self._source_id = shown[0].source_id if shown else None
        self.rules.show_sources(shown, self._source_id)
        self._open_source()

    def _open_source(self) -> None:
        source = self._folder.source(self._source_id)
        self._patterns, self._path, self._counted = None, None, None
        self._base_path = source.base_path if source is not None else None
        self._is_behind, self._picks_first = False, False
        self.counting.start_over()
        self.rules.strip.stop()
        self._forget_news()
        self.folder.set_note("")
        self.folder.bar.set_filter(NO_FILTER)
        self._parts.setCurrentIndex(0 if source is not None else 1)
        self.rules.start_over(source)
        self._show_levels()
        self.decided.show_level(None)
        self.decided.field.clear()
        self.decided.field.forget_names()
        if source is not None:
            self.folder.show_path(str(self._folder.base(source)))
            self.folder.show_reading()
        self._is_counting_due = source is not None
        self.listing.start_over(source.source_id if source is not None else None)
        self.follow.follow(source.source_id if source is not None else None)

    def _base_shown(self) -> None:
        """What takes long begins once the folder can be seen."""
        source = self._folder.source(self._source_id)
        if self._is_counting_due and source is not None:
            self._is_counting_due = False
            self._count(source, afresh=True)
            self._look_at_blocks()

    def _changed(self, changes: ChangeSet) -> None:
        if self._is_stale:
            return
        ids = tuple(source.source_id for source in self._context.document.policy.sources)
        source = self._folder.source(self._source_id)
        if source is None or ids != self._offered() or source.base_path != self._base_path:
            self._open()
        elif changes.everything or changes.sources:
            self._rules_changed(source)

    def _offered(self) -> tuple[str, ...]:
        return tuple(self.rules.picker.itemData(row) for row in range(self.rules.picker.count()))

    def _rules_changed(self, source: Source) -> None:
        self.rules.refresh(source)
        self.tree_model.recolour()
        self._show_path(self._path)
        self._show_levels()
        wanted = self.folder.bar.filter
        if self._patterns == self._question(source) or self._is_counting_due:
            if wanted.levels:
                self.counting.fit(source, wanted)
            return
        self._count(source, afresh=False)
        if wanted.rule is not None:
            self.folder.bar.set_filter(replace(wanted, rule=None))  # that row may be another rule now

    def _choose_source(self, source_id: str) -> None:
        if source_id != self._source_id:
            self._source_id = source_id
            self._open_source()

    def _go_to_level(self, source_id: str, index: int | None) -> None:
        """A link from elsewhere: a row of a source's levels."""
        source = self._folder.source(source_id)
        if source is None:
            return
        if self._is_stale:
            self._source_id = source_id
            self._open()
        else:
            self.rules.picker.setCurrentIndex(self.rules.picker.findData(source_id))
            self._choose_source(source_id)
        at = self.rules.model.default_row if index is None or index < 0 else index
        self.rules.go_to(at)

    # what is counted

    def _refresh(self) -> None:
        source = self._folder.source(self._source_id)
        if source is not None:
            self._is_behind = False
            self.decided.field.forget_names()
            self.tree_model.refresh()
            self._count(source, afresh=True)
            self._look_at_blocks()
            if not self.follow.is_on:
                self.follow.follow(source.source_id)

    def _question(self, source: Source) -> object:
        """What the counts depend on: of a source that is alone levels and comments do not matter."""
        patterns = tuple(rule.pattern for rule in source.permission_rules)
        others = self._context.document.policy.sources
        return source.base_path, patterns, others if len(others) > 1 else None

    def _count(self, source: Source, *, afresh: bool) -> None:
        question = self._question(source)
        if question != self._patterns:
            self.rules.set_hits(None)
            self._counted = None
        self._patterns = question
        self.counting.count(source, afresh=afresh)

    def _count_begins(self) -> None:
        self.rules.strip.start("Counting the files of each rule")

    def _tell_counted(self, count: int) -> None:
        self.rules.strip.set_progress(None, f"Counting the files of each rule: {count:,} seen")

    def _take_count(self, counted: Counted) -> None:
        self._counted = counted
        self.rules.strip.stop()
        self.rules.set_hits(counted.hits)
        self._show_levels()
        source, wanted = self._folder.source(self._source_id), self.folder.bar.filter
        if source is not None and wanted.is_on:
            self.counting.fit(source, wanted)

    def _count_failed(self, why: str) -> None:
        self._patterns, self._counted = None, None
        self.rules.strip.stop()
        self.rules.show_not_counted("not counted", why)
        self._show_levels()

    def _cancel_count(self) -> None:
        self.counting.cancel()
        self.rules.strip.stop()
        self.rules.show_not_counted("counting stopped", "F5 counts again")

    def _try_pattern(self, row: int, text: str) -> None:
        source = self._folder.source(self._source_id)
        if source is not None:
            self.counting.try_pattern(source, row, text)

    def _show_levels(self) -> None:
        """The legend: the levels that the rules give, and how many files have each."""
        source = self._folder.source(self._source_id)
        if source is None:
            return
        counts = None
        if self._counted is not None:
            counts = self._counted.decided.level_counts(source.permission_rules, source.default_permission)
        levels = tuple(source.levels)
        self.folder.bar.set_levels(levels, counts, more=self._counted is not None and self._counted.hits.truncated)

    # what is shown of the folder

    def _filter(self, wanted: TreeFilter) -> None:
        source = self._folder.source(self._source_id)
        if source is not None:
            self.folder.bar.show_fitting(None, 0)
            self.counting.fit(source, wanted)

    def _show_fitting(self, fitting: Fitting | None) -> None:
        path = self.tree_model.path_at(self.folder.tree.currentIndex())
        self.listing.show(fitting)
        if fitting is not None:
            self.folder.bar.show_fitting(fitting.count, fitting.of, what=self._what(self.folder.bar.filter))
        elif path is not None:
            self.folder.select(path)

    def _what(self, wanted: TreeFilter) -> str:
        if wanted.rule is None:
            return ""
        return "decided by the default" if wanted.rule == DEFAULT else f"decided by rule {wanted.rule + 1}"

    def _show_files(self, row: int) -> None:
        """The files that a row decides, and the first of them chosen."""
        self._picks_first = True
        rule = DEFAULT if row >= self.rules.model.default_row else row
        self.folder.bar.set_filter(TreeFilter(rule=rule))

    def _served(self) -> None:
        if self._picks_first:
            self._picks_first = False
            self._step(1, afresh=True)
            self.folder.tree.setFocus(Qt.FocusReason.OtherFocusReason)

    def _step(self, step: int, *, afresh: bool = False) -> None:
        """To the next file that fits; where nothing is filtered, to the files of the row that decides."""
        fitting = self.listing.fitting
        if fitting is None:
            if self.rules.table.currentIndex().isValid():
                self.rules.show_files()
            return
        here = None if afresh else self.tree_model.path_at(self.folder.tree.currentIndex())
        path = fitting.beside(here, step)
        if path is not None:
            self.listing.open_to(path)
            self.folder.select(path)

    def _go_to_rule(self, path: str | None) -> None:
        """The row that decides a path gets the keys."""
        level = self._shown_level(path) if path is not None else None
        if level is None:
            return
        if level.index is None and not level.is_default:
            self._context.document.say("info", f"`{level.path}`: {level.sentence}")
            return
        self.rules.go_to(self.rules.model.default_row if level.index is None else level.index)

    # what happens outside

    def _take_news(self, news: FolderNews) -> None:
        if self._is_stale or self._context.tasks.closed:
            return
        if not news.is_there:
            self.folder.show_failure("The folder is gone. It is shown again once it is back.")
            self.counting.cancel()
            self._count_failed("the folder is gone")
        elif news.problem is not None:
            self.folder.set_note("changes outside are not noticed, F5 reads again", news.problem)
        elif not self.isVisible():
            self._is_behind = True
        elif news.more:
            self._refresh()
        else:
            self._take_paths(news)

    def _take_paths(self, news: FolderNews) -> None:
        paths = frozenset(path for path in news.paths if not self._level(path).protected)
        if not paths:
            return
        if paths & (news.came | news.went):
            self.decided.field.forget_names()
            if self.listing.fitting is None:
                self.tree_model.refresh_around(paths)
            self.counting.count_soon(lambda: self._folder.source(self._source_id))
        self._news |= dict.fromkeys(paths & news.came, CAME)
        self._news |= {path: CHANGED for path in paths & news.changed if self._news.get(path) != CAME}
        self.tree_model.set_news(self._news)
        self._old_news.start()
        self._look_at_blocks()

    def _forget_news(self) -> None:
        self._news = {}
        self.tree_model.set_news(self._news)

    def _changed_outside(self, changes: OutsideChanges) -> None:
        """The engine took in what it could; what came and went is told by the folder itself."""
        if not self._is_stale and changes.source_id == self._source_id:
            if changes.more:
                self.tree_model.refresh()
            else:
                self.tree_model.refresh_around(changes.paths)
            self._look_at_blocks()

    # files and their blocks

    def _look_at_blocks(self) -> None:
        if self._source_id is not None:
            self.blocks.look(self._source_id)

    def _show_standings(self, standings: Standings) -> None:
        self.tree_model.set_standings(standings)
        count, open_conflicts = len(standings.files), standings.open_conflicts
        more = "more than " if standings.truncated else ""
        told = f"{more}{count:,} block{'' if count == 1 else 's'}" if count else ""
        conflicts = f", {open_conflicts:,} conflict{'' if open_conflicts == 1 else 's'}" if open_conflicts else ""
        self.folder.set_note(f"{told}{conflicts}")
        self._show_path(self._path)

    def _blocks_failed(self, why: str) -> None:
        self.folder.set_note("blocks not known", why)

    def _reconcile(self, strategy: str) -> None:
        if self._source_id is not None and self._path is not None:
            self.blocks.reconcile(self._source_id, self._path, strategy, partial(self._standing, self._path))

    def _standing(self, path: str | None) -> FileStanding | None:
        found = self.tree_model.standing_of(path) if path else None
        return found if isinstance(found, FileStanding) else None

    # one path

    def _level(self, path: str) -> PathLevel:
        source = self._folder.source(self._source_id)
        if source is None:
            raise LookupError("a level was asked for without a source")
        return self._folder.level(source, path)

    def _shown_level(self, path: str) -> PathLevel | None:
        if self._folder.source(self._source_id) is None:
            return None
        return self.tree_model.level_at(self.tree_model.index_of(path)) or self._level(path)

    def _choose_path(self, path: str) -> None:
        if self.decided.field.text():
            self.decided.field.clear()
        self._show_path(path)
        at = self._level(inside(path)).index
        self.rules.suggest(pattern_of(path), self.rules.model.default_row if at is None else at)

    def _may_give(self, path: str) -> Permission | None:
        """The level of a file, or of what is in a folder; None where no rule of this source can give it one."""
        shown = self._shown_level(path) or self._level(path)
        level = self._level(inside(path))
        return None if shown.is_closed or level.is_closed or level.overlapped else level.permission

    def _give(self, path: str, level: object) -> None:
        source = self._folder.source(self._source_id)
        if source is not None and isinstance(level, Permission):
            at = self._level(inside(path)).index
            sources.give_level(self._context.document, source.source_id, path, level, at)

    def _try(self, text: str) -> None:
        path = text or self.tree_model.path_at(self.folder.tree.currentIndex())
        self.folder.show_choice(path)
        self._show_path(path)

    def _show_path(self, path: str | None) -> None:
        """Say what decides a path, and mark its rule."""
        self._path = path
        level = self._shown_level(path) if path is not None else None
        self.decided.show_level(level, self._standing(path))
        row = level.index if level is not None else None
        if level is not None and level.is_default:
            row = self.rules.model.default_row
        self.rules.show_deciding(row)

    def _keep_choice(self) -> None:
        """Rows came and went: what was chosen stays what is spoken of, in the folder or not."""
        if self._path is not None and self.tree_model.path_at(self.folder.tree.currentIndex()) != self._path:
            self.folder.show_choice(self._path)

    def _rule_of_shown(self) -> None:
        self._go_to_rule(self._path)

    def _name_folder(self, relative: str) -> None:
        if self._source_id is not None:
            task = self._names_of(self._source_id, relative, self.listing.turn)
            self._context.tasks.start(task, _COMPLETE, replace=True)

    async def _names_of(self, source_id: str, relative: str, turn: int) -> None:
        try:
            listing = await self._folder.read(source_id, relative)
        except GatewrightError:
            names: tuple[str, ...] = ()  # there is no such folder: nothing to complete, and no fault of who types
        else:
            names = tuple(f"{one.name}/" if one.is_folder else one.name for one in listing.entries)
        if isValid(self) and turn == self.listing.turn:
            self.decided.field.set_names(relative, names)

    # sources and levels explained

    def _add_source(self) -> None:
        if self._context.document.is_open:
            self._ask(self._add())

    async def _add(self) -> None:
        self._take_source(await sourcing.add_source(self, self._context.document))

    def _change_source(self) -> None:
        if self._source_id is not None:
            self._ask(self._change(self._source_id))

    async def _change(self, source_id: str) -> None:
        self._take_source(await sourcing.change_source(self, self._context.document, source_id))

    def _remove_source(self) -> None:
        if self._source_id is not None:
            self._ask(self._remove(self._source_id))

    async def _remove(self, source_id: str) -> None:
        await sourcing.remove_source(self, self._context.document, source_id)

    def _take_source(self, source_id: str | None) -> None:
        """Show a source that was added or renamed."""
        if isValid(self) and source_id is not None and source_id != self._source_id:
            self._source_id = source_id
            self._open()

    def _ask(self, work: Coroutine[Any, Any, None]) -> None:
        self._context.tasks.start(work, _SOURCES, replace=True)

    def _explain_levels(self) -> None:
        LevelHelp(self).show_at(self.folder.help_button)

    # the parts

    def _connect(self) -> None:
        document, rules, folder = self._context.document, self.rules, self.folder
        document.opened.connect(self._opened)
        document.policy_changed.connect(self._changed)
        document.source_changed.connect(self._changed_outside)
        self._context.navigator.level_requested.connect(self._go_to_level)
        self.follow.told.connect(self._take_news)
        self.tree_model.rearranged.connect(self._keep_choice)
        self.listing.base_shown.connect(self._base_shown)
        self.listing.served.connect(self._served)
        self.counting.began.connect(self._count_begins)
        self.counting.told.connect(self._tell_counted)
        self.counting.counted.connect(self._take_count)
        self.counting.failed.connect(self._count_failed)
        self.counting.fitted.connect(self._show_fitting)
        self.counting.tried.connect(rules.show_trial)
        self.blocks.found.connect(self._show_standings)
        self.blocks.failed.connect(self._blocks_failed)
        rules.source_chosen.connect(self._choose_source)
        rules.count_cancelled.connect(self._cancel_count)
        rules.pattern_typed.connect(self._try_pattern)
        rules.typing_ended.connect(self.counting.end_trial)
        rules.files_asked.connect(self._show_files)
        rules.add_source_asked.connect(self._add_source)
        rules.change_source_asked.connect(self._change_source)
        rules.remove_source_asked.connect(self._remove_source)
        folder.bar.filter_changed.connect(self._filter)
        folder.bar.step_requested.connect(self._step)
        folder.help_requested.connect(self._explain_levels)
        folder.refresh_requested.connect(self._refresh)
        folder.read_cancelled.connect(self.listing.cancel)
        folder.path_chosen.connect(self._choose_path)
        folder.rule_asked.connect(self._go_to_rule)
        folder.level_asked.connect(self._give)
        self.decided.block.asked.connect(self._reconcile)
        self.decided.tried.connect(self._try)
        self.decided.rule_asked.connect(self._rule_of_shown)
        self.decided.field.folder_wanted.connect(self._name_folder)
        self.decided.field.results_requested.connect(folder.tree.setFocus)
        self.decided.field.leave_requested.connect(folder.tree.setFocus)
        for keys, act in (
            ("F1", self._explain_levels),
            ("F3", partial(self._step, 1)),
            ("Shift+F3", partial(self._step, -1)),
        ):
            shortcut = QShortcut(QKeySequence(keys), self, context=Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(act)

    def _lay_out(self) -> None:
        right = Splitter(Qt.Orientation.Vertical, "files.right", self._context.sizes)
        right.addWidget(self.folder)
        right.addWidget(self.decided)
        right.setStretchFactor(0, 1)
        right.setStretchFactor(1, 0)
        right.restore((470, 190))
        split = Splitter(Qt.Orientation.Horizontal, "files.split", self._context.sizes)
        split.addWidget(self.rules)
        split.addWidget(right)
        split.setStretchFactor(0, 1)
        split.setStretchFactor(1, 1)
        split.restore((600, 620))
        none = EmptyState(
            "folder-tree",
            "No source in this policy",
            "A source is a folder that agents reach through levels",
            action="New source...",
        )
        none.action_requested.connect(self._add_source)
        self._parts = QStackedWidget()
        self._parts.addWidget(split)
        self._parts.addWidget(_padded(none))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._parts)


def _padded(widget: QWidget) -> QWidget:
    holder = QWidget()
    row = QHBoxLayout(holder)
    row.addWidget(widget)
    return holder
