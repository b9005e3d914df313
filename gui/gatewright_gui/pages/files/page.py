"""The Files page put together: a source's levels, its folder, and what decides a path.

It does not decide levels and reads no disk: the session does, and late answers are dropped. Over 400 lines, because
every signal of the parts ends in a short method here.
"""

from typing import cast

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QWidget
from shiboken6 import isValid

from gatewright.base.errors import GatewrightError
from gatewright.policy.document import Source
from gatewright.policy.edit import ChangeSet
from gatewright.policy.permission import Permission
from gatewright_gui.models.foldertree import FolderTreeModel
from gatewright_gui.pages.files.decided import DecidedPanel
from gatewright_gui.pages.files.folder import FolderPanel
from gatewright_gui.pages.files.reconcile import BothDialog
from gatewright_gui.pages.files.rules import RulesPanel
from gatewright_gui.pages.page import Page, PageContext
from gatewright_gui.qt.dialog import Choice, ask, shown
from gatewright_gui.qt.widget import EmptyState, Splitter
from gatewright_gui.session.files import PathLevel, SourceFolder, inside, pattern_of
from gatewright_gui.session.filestate import FileStanding, OutsideChanges, Reconciled
from gatewright_gui.session.verbs import sources

_COUNT = "files.count"
_BLOCKS = "files.blocks"
_DONE = {
    "nothing": "`{path}`: block and file were in step already",
    "kept_block": "`{path}`: the block stays, and is now compared with the file as it is on disk",
    "took_disk": "`{path}`: the block took what is on disk",
    "merged": "`{path}`: merged into the block; nothing was written to disk",
    "forgotten": "`{path}`: the file is gone, and its block with it",
    "conflict": "`{path}`: nothing was done, {why}",
}


class FilesPage(Page):
    """One source at a time."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self._context = context
        self._folder = SourceFolder(context.document)
        self._source_id: str | None = None
        self._opening = 0
        self._is_stale = True
        self._counted: tuple[str, tuple[str, ...]] | None = None
        self._path: str | None = None
        self._reading: set[str] = set()
        self._is_counting_due = False
        self._base_path: str | None = None
        self.tree_model = FolderTreeModel(self._level, self)
        self.rules = RulesPanel(context.document)
        self.folder = FolderPanel(self.tree_model, self._may_give)
        self.decided = DecidedPanel()
        self._lay_out()
        self._connect()

    # the window's side

    def page_shown(self) -> None:
        """Bring up to date what was put off while the page was hidden."""
        if self._is_stale:
            self._open()
        else:
            self._look_at_blocks()

    def main_view(self) -> QWidget | None:
        """Where the keys were when one left the page, else the rules."""
        last = cast("QWidget | None", self.focusWidget())
        if last is not None and last.isVisibleTo(self) and last.isEnabledTo(self):
            return last
        return self.rules.table if self._parts.currentIndex() == 0 else super().main_view()

    def focus_search(self) -> None:
        """Ctrl+F: try a path."""
        self.decided.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.decided.field.selectAll()

    # following the document

    def _opened(self) -> None:
        self._source_id = None
        self._is_stale = True
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
        self._opening += 1
        self._counted, self._path = None, None
        self._base_path = source.base_path if source is not None else None
        self._context.tasks.cancel(_COUNT)
        self._stop_reading()
        self.folder.set_note("")
        self._parts.setCurrentIndex(0 if source is not None else 1)
        self.rules.start_over(source)
        self.decided.show_level(None)
        self.decided.field.clear()
        if source is not None:
            self.folder.show_path(str(self._folder.base(source)))
            self.folder.show_reading()
        self.tree_model.start_over(is_open=source is not None)
        self._is_counting_due = source is not None

    def _base_shown(self) -> None:
        """What takes long begins once the folder can be seen."""
        source = self._folder.source(self._source_id)
        if self._is_counting_due and source is not None:
            self._is_counting_due = False
            self._count(source)
            self._look_at_blocks()

    def _changed(self, changes: ChangeSet) -> None:
        if self._is_stale:
            return
        ids = tuple(source.source_id for source in self._context.document.policy.sources)
        source = self._folder.source(self._source_id)
        if source is None or ids != self._offered() or source.base_path != self._base_path:
            self._open()
        elif changes.everything or source.source_id in changes.sources:
            self._rules_changed(source)

    def _offered(self) -> tuple[str, ...]:
        return tuple(self.rules.picker.itemData(row) for row in range(self.rules.picker.count()))

    def _rules_changed(self, source: Source) -> None:
        self.rules.refresh(source)
        self.tree_model.recolour()
        self._show_path(self._path)
        if self._counted != _patterns(source) and not self._is_counting_due:
            self._count(source)

    def _choose_source(self, source_id: str) -> None:
        if source_id != self._source_id:
            self._source_id = source_id
            self._open_source()

    # the folder

    def _want(self, relative: str) -> None:
        source_id, opening = self._source_id, self._opening
        if source_id is not None:
            self._reading.add(relative)
            if relative:
                self.folder.strip.start(f"Reading {relative}")
            self._context.tasks.start(self._read(source_id, relative, opening), _task_of(relative), replace=True)

    async def _read(self, source_id: str, relative: str, opening: int) -> None:
        try:
            listing = await self._folder.read(source_id, relative)
        except GatewrightError as error:
            if self._awaits(opening):
                self.tree_model.set_failed(relative, str(error))
                if not relative:
                    self.folder.show_failure(str(error))
                    self._base_shown()
                self._has_read(relative)
            return
        if self._awaits(opening):
            self.tree_model.set_listing(relative, listing)
            if not relative:
                self.folder.show_tree()
                self._base_shown()
            self._has_read(relative)

    def _has_read(self, relative: str) -> None:
        self._reading.discard(relative)
        if not self._reading:
            self.folder.strip.stop()

    def _stop_reading(self) -> None:
        for relative in self._reading:
            self._context.tasks.cancel(_task_of(relative))
        self._reading.clear()
        self.folder.strip.stop()

    def _cancel_reading(self) -> None:
        given_up = tuple(self._reading)
        self._stop_reading()
        for relative in given_up:
            if relative:
                self.tree_model.set_failed(relative, "reading stopped; F5 reads again")
            else:
                self.folder.show_failure("Reading was stopped")

    def _refresh(self) -> None:
        source = self._folder.source(self._source_id)
        if source is not None:
            self.tree_model.refresh()
            self._count(source)
            self._look_at_blocks()

    def _changed_outside(self, changes: OutsideChanges) -> None:
        """The engine took in what it could. The counts stay as they are: they read the whole source."""
        if self._is_stale or changes.source_id != self._source_id:
            return
        if changes.more:
            self.tree_model.refresh()
        else:
            self.tree_model.refresh_around(changes.paths)
        self._look_at_blocks()

    def _count(self, source: Source) -> None:
        self._counted = _patterns(source)
        self.rules.set_hits(None)
        self.rules.strip.start("Counting the files of each rule")
        task = self._count_hits(source.source_id, self._counted)
        self._context.tasks.start(task, _COUNT, replace=True)

    async def _count_hits(self, source_id: str, question: tuple[str, tuple[str, ...]]) -> None:
        try:
            hits = await self._folder.count(source_id, self._tell_counted)
        except GatewrightError as error:
            if self._asks(question):
                self.rules.strip.stop()
                self.rules.show_not_counted("not counted", str(error))
            return
        if self._asks(question):
            self.rules.strip.stop()
            self.rules.set_hits(hits)

    def _tell_counted(self, count: int) -> None:
        if isValid(self) and self._counted is not None:
            self.rules.strip.set_progress(None, f"Counting the files of each rule: {count:,} seen")

    # files and their blocks

    def _look_at_blocks(self) -> None:
        if self._source_id is not None:
            look = self._read_standings(self._source_id, self._opening)
            self._context.tasks.start(look, _BLOCKS, replace=True)

    async def _read_standings(self, source_id: str, opening: int) -> None:
        try:
            standings = await self._folder.standings(source_id)
        except GatewrightError as error:
            if self._awaits(opening):
                self.folder.set_note("blocks not known", str(error))
            return
        if self._awaits(opening):
            self.tree_model.set_standings(standings)
            count, open_conflicts = len(standings.files), standings.open_conflicts
            more = "more than " if standings.truncated else ""
            told = f"{more}{count:,} block{'' if count == 1 else 's'}" if count else ""
            conflicts = f", {open_conflicts:,} conflict{'' if open_conflicts == 1 else 's'}" if open_conflicts else ""
            self.folder.set_note(f"{told}{conflicts}")
            self._show_path(self._path)

    def _reconcile(self, strategy: str) -> None:
        if self._source_id is not None and self._path is not None:
            task = self._bring_in_step(self._source_id, self._path, strategy)
            self._context.tasks.start(task, "files.reconcile", replace=True)

    async def _bring_in_step(self, source_id: str, path: str, strategy: str) -> None:
        standing = self._standing(path)
        if strategy == "theirs" and standing is not None and not await self._may_lose(standing):
            return
        try:
            told = await self._folder.reconcile(source_id, path, strategy)
        except GatewrightError as error:
            self._context.document.say("error", f"not reconciled: {error}")
            return
        if isValid(self):
            await self._tell_reconciled(told, strategy)

    async def _may_lose(self, standing: FileStanding) -> bool:
        if not standing.is_conflict:
            return True
        text = f"What was edited in the block of {standing.path} and not written to disk is gone then."
        choices = (Choice("keep", "Keep the edits", "primary"), Choice("take", "Take disk", "danger"))
        answer = await ask(self, "Throw the edits of the block away?", text, choices, icon="triangle-alert", role="ask")
        return answer == "take"

    async def _tell_reconciled(self, told: Reconciled, strategy: str) -> None:
        self._look_at_blocks()
        if strategy != "ask":
            words = _DONE.get(told.outcome, "`{path}`: {why}").format(path=told.path, why=told.why)
            self._context.document.say("warning" if told.is_conflict else "info", words)
        if told.is_conflict:
            await shown(BothDialog(self, told))

    def _standing(self, path: str | None) -> FileStanding | None:
        found = self.tree_model.standing_of(path) if path else None
        return found if isinstance(found, FileStanding) else None

    def _awaits(self, opening: int) -> bool:
        """Whether a listing is still of use: the same source is open, and the page is there."""
        return opening == self._opening and isValid(self)

    def _asks(self, question: tuple[str, tuple[str, ...]]) -> bool:
        """Whether a count is still of use: the same rules stand, and the page is there."""
        return question == self._counted and isValid(self)

    def _cancel_count(self) -> None:
        self._context.tasks.cancel(_COUNT)
        self.rules.strip.stop()
        self.rules.show_not_counted("counting stopped", "F5 counts again")

    # one path

    def _level(self, path: str) -> PathLevel:
        source = self._folder.source(self._source_id)
        if source is None:
            raise LookupError("a level was asked for without a source")
        return self._folder.level(source, path)

    def _choose_path(self, path: str) -> None:
        if self.decided.field.text():
            self.decided.field.clear()
        self._show_path(path)
        at = self._level(inside(path)).index
        self.rules.suggest(pattern_of(path), self.rules.model.default_row if at is None else at)

    def _may_give(self, path: str) -> Permission | None:
        """The level of a file, or of what is in a folder; None where no rule of this source can give it one."""
        shown = self.tree_model.level_at(self.tree_model.index_of(path)) or self._level(path)
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
        level = None
        if path is not None and self._folder.source(self._source_id) is not None:
            level = self.tree_model.level_at(self.tree_model.index_of(path)) or self._level(path)
        self.decided.show_level(level, self._standing(path))
        row = level.index if level is not None else None
        if level is not None and level.is_default:
            row = self.rules.model.default_row
        self.rules.show_deciding(row)

    # the parts

    def _connect(self) -> None:
        document = self._context.document
        document.opened.connect(self._opened)
        document.policy_changed.connect(self._changed)
        document.source_changed.connect(self._changed_outside)
        self.tree_model.folder_wanted.connect(self._want)
        self.rules.source_chosen.connect(self._choose_source)
        self.rules.count_cancelled.connect(self._cancel_count)
        self.folder.refresh_requested.connect(self._refresh)
        self.folder.read_cancelled.connect(self._cancel_reading)
        self.decided.block.asked.connect(self._reconcile)
        self.folder.path_chosen.connect(self._choose_path)
        self.folder.level_asked.connect(self._give)
        self.decided.tried.connect(self._try)
        self.decided.field.results_requested.connect(self.folder.tree.setFocus)
        self.decided.field.leave_requested.connect(self.folder.tree.setFocus)

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
        split.setStretchFactor(0, 0)
        split.setStretchFactor(1, 1)
        split.restore((600, 620))
        none = EmptyState(
            "folder-tree",
            "No source in this policy",
            "A source is a folder that agents reach through levels: add a [[sources]] table to the policy file",
        )
        self._parts = QStackedWidget()
        self._parts.addWidget(split)
        self._parts.addWidget(_padded(none))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._parts)


def _patterns(source: Source) -> tuple[str, tuple[str, ...]]:
    """What the counts depend on: levels and comments do not matter."""
    return source.base_path, tuple(rule.pattern for rule in source.permission_rules)


def _task_of(relative: str) -> str:
    return f"files.read:{relative}"


def _padded(widget: QWidget) -> QWidget:
    holder = QWidget()
    row = QHBoxLayout(holder)
    row.addWidget(widget)
    return holder
