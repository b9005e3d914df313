"""The Files page put together: a source's levels, its folder, and what decides a path."""

from functools import partial
from typing import cast

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QAction, QHideEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QStackedWidget, QWidget

from gatewright.workspace.api import ChangeSet
from gatewright_gui.pages.access.files.blocks import Blocks
from gatewright_gui.pages.access.files.counts import FileCounts
from gatewright_gui.pages.access.files.decided_panel import DecidedPanel, OnePath
from gatewright_gui.pages.access.files.file_filter import NO_FILTER
from gatewright_gui.pages.access.files.file_use import ShownUse
from gatewright_gui.pages.access.files.folder_panel import FolderPanel
from gatewright_gui.pages.access.files.level_help import LevelHelp
from gatewright_gui.pages.access.files.listing import Listing
from gatewright_gui.pages.access.files.outside import Outside
from gatewright_gui.pages.access.files.rules_panel import RulesPanel
from gatewright_gui.pages.access.files.shown_source import ShownSource, root_line
from gatewright_gui.pages.access.files.source_dialog import SourceQuestions
from gatewright_gui.pages.access.files.who_dialog import WhoQuestion
from gatewright_gui.pages.page import Page, PageContext
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.plaintext import label_text
from gatewright_gui.qt.widget import EmptyState, Splitter
from gatewright_gui.qt.widget.label import ElidedLabel
from gatewright_gui.session.files import SourceFolder

_NONE = mark("No source of files in this policy"), mark("A source is a folder that agents reach through levels")


_NAMED, _LONGEST_NAME = 3, 40
"""So many other agents are named, with so many letters."""


class FilesPage(Page):
    """One source at a time."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self._context = context
        self._is_stale = True
        self._is_behind = False
        self._base: object = None  # the folder that the source was opened on
        shown = self._shown = ShownSource(SourceFolder(context.document), self)
        self.tree_model = shown.tree_model
        self.whose = named(ElidedLabel(role="muted"), "files.whose")
        self._parts, split, right = self._frame()
        self.rules = RulesPanel(context.document, split)
        split.addWidget(self.rules)
        split.addWidget(right)
        self.folder = FolderPanel(shown.tree_model, shown.may_give, right)
        right.addWidget(self.folder)
        self.decided = DecidedPanel(right)
        right.addWidget(self.decided)
        for splitter, first, second, sizes in ((right, 1, 0, (390, 270)), (split, 1, 1, (690, 530))):
            splitter.setStretchFactor(0, first)
            splitter.setStretchFactor(1, second)
            splitter.restore(sizes)
        self.outside = Outside(context, shown, self)
        self.questions = SourceQuestions(context, shown, self)
        self._blocks = Blocks(self, context, shown.folder)
        self._path = OnePath(context, shown, self.rules, self.folder, self.decided, self._blocks)
        self._counts = FileCounts(context.document, context.tasks, shown, self.rules, self.folder.bar, self)
        self.use = ShownUse(context, shown, self.folder)
        self._who = WhoQuestion(context, self)
        self.who_action = QAction(tr("Who can touch this file or folder?"), self)
        self.listing = Listing(context.tasks, shown, self.folder, self.rules, self._counts)
        self._seen = QTimer(self, singleShot=True, interval=0)
        self._connect()

    # the window's side

    def page_shown(self) -> None:
        """Bring up to date what was put off while the page was hidden."""
        if self._is_stale:
            self._open()
            found = cast("QWidget | None", self.focusWidget())
            if found is not None:  # Qt gave the keys to a button of the header on the way here
                self.rules.table.setFocus(Qt.FocusReason.OtherFocusReason)
        elif self._is_behind:
            self._refresh()
        elif not self.tree_model.is_reading:
            self._begin()

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802
        """Nobody waits for a count any more: it is made when somebody looks again."""
        super().hideEvent(event)
        if not event.spontaneous():
            self._counts.put_off()

    def main_view(self) -> QWidget | None:
        """The view with the keys when one left the page, else the rules; the way to a source where there is none."""
        if self._parts.currentIndex() == 1:
            return self.no_source.action_button
        last = cast("QWidget | None", self.focusWidget())
        if last is not None and last.isVisibleTo(self) and last.isEnabledTo(self):
            return last
        return self.rules.table

    def focus_search(self) -> None:
        """Ctrl+F: filter the files."""
        self.folder.bar.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.folder.bar.field.selectAll()

    # following the document

    def _let_go(self) -> None:
        """No source, and nothing of the one that was shown: it is of a workspace that is gone."""
        self.use.end()
        self._shown.source_id = None
        self._is_stale = True
        self.rules.header.show_sources((), None)
        self._show_streams()
        self._show_roots()
        self._open_source()

    def _catch_up(self) -> None:
        if self._is_stale and self.isVisible():
            self._open()

    def _open(self) -> None:
        """Everything anew."""
        self._is_stale = False
        offered = self._context.document.policy.file_sources
        if self._shown.source is None:
            self._shown.source_id = offered[0].source_id if offered else None
        self.rules.header.show_sources(offered, self._shown.source_id)
        self._show_streams()
        self._show_roots()
        self._open_source()

    def _open_source(self) -> None:
        source = self._shown.source
        self._base = self._shown.folder.base_folder(source) if source is not None else None
        self._is_behind = False
        self._seen.stop()
        self.listing.start_over()  # first: the rows that there are have no level any more
        self.rules.start_over(source)
        for part in (self.outside, self._counts, self._path):
            part.start_over()
        self._parts.setCurrentIndex(0 if source is not None else 1)
        self._show_whose()
        self.folder.set_note("")
        self.folder.bar.set_filter(NO_FILTER)
        if source is not None:
            self.folder.show_path(str(self._shown.folder.base(source)))
            self.folder.show_reading()

    def _show_whose(self, _why: object = None) -> None:
        """Say above the files whose they are: of the chosen agent, and of which others."""
        selection, policy, source = self._context.selection, self._context.document.policy, self._shown.source
        if source is None:
            self.whose.set_text("")
            return
        having = [one.agent_id for one in policy.agents.values() if source in policy.sources_of(one)]
        chosen = None if selection.is_everyone else selection.agent_id
        others = [one for one in having if one != chosen]
        names = ", ".join(label_text(one, _LONGEST_NAME, keep="") for one in others[:_NAMED])
        if len(others) > _NAMED:
            names = tr("{agents} and {count} more", agents=names, count=len(others) - _NAMED)
        names = names or tr("no agent")
        words = {"agent": label_text(chosen or "", _LONGEST_NAME, keep=""), "source": source.source_id, "others": names}
        if chosen is not None and chosen in having and others:
            said = tr("What {agent} may do with the files of {source}; the same rules hold for {others}", **words)
        elif chosen is not None and chosen in having:
            said = tr("What {agent} may do with the files of {source}; no other agent has them", **words)
        elif chosen is not None:
            said = tr("{agent} does not have the files of {source}; these rules are for {others}", **words)
        else:
            said = tr("What agents may do with the files of {source}; these rules hold for {others}", **words)
        self.whose.set_text(said)

    def _begin(self) -> None:
        """The folder is seen: what takes long begins."""
        if self.isVisible() and self._shown.source is not None:
            self._counts.begin()
            self._look_at_blocks()
            self.outside.begin()

    def _follow_change(self, changes: ChangeSet) -> None:
        if self._is_stale:
            return
        self.use.refresh()
        self._show_whose()
        ids = tuple(source.source_id for source in self._context.document.policy.file_sources)
        source = self._shown.source
        if (
            source is None
            or ids != self.rules.header.offered
            or self._shown.folder.base_folder(source) is not self._base
        ):
            self._open()
        elif changes.everything or changes.sources:
            self._show_roots()
            self._show_streams()
            self.rules.refresh(source)
            self.tree_model.recolour()
            self._path.show_again()
            self._counts.rules_changed(source)
        else:
            self._path.show_again()  # other agents may reach the source now

    def _show_streams(self) -> None:
        policy = self._context.document.policy
        streams = tuple(source for source in policy.sources if source not in policy.file_sources)
        self.rules.header.show_streams(streams)
        count = counted(len(streams), "other source", "other sources")
        other = f"{count}..." if streams else None
        self.no_source.set_state("folder-tree", *map(tr, _NONE), action=tr("New source..."), other=other)

    def _pop_up_streams(self) -> None:
        button = self.no_source.other_button
        self.rules.header.source_menu.popup(button.mapToGlobal(button.rect().bottomLeft()))

    def _show_roots(self) -> None:
        self.rules.show_roots(*root_line(self._context.document))

    def _choose_source(self, source_id: str) -> None:
        if source_id != self._shown.source_id:
            self._shown.source_id = source_id
            self._open_source()

    def _take_source(self, source_id: str) -> None:
        self._shown.source_id = source_id
        self._open()

    def _show_use(self, agent_id: str, tool: str, operation: str) -> None:
        """A link from elsewhere: an operation of an agent, at the files of a source that the agent has."""
        policy = self._context.document.policy
        ids = [source.source_id for source in policy.sources_of(policy.agents[agent_id])]
        if self._is_stale:
            self._open()
        if ids and self._shown.source_id not in ids:
            self.rules.header.choose_source(ids[0])
            self._choose_source(ids[0])
        self.use.show(agent_id, tool, operation)

    def _go_to_level(self, source_id: str, index: int | None) -> None:
        """A link from elsewhere: a row of a source's levels."""
        if source_id not in {source.source_id for source in self._context.document.policy.file_sources}:
            return
        if self._is_stale:
            self._take_source(source_id)
        else:
            self.rules.header.choose_source(source_id)
            self._choose_source(source_id)
        self.rules.go_to(self.rules.model.default_row if index is None or index < 0 else index)

    # the disk

    def _refresh(self) -> None:
        if self._shown.source is not None:
            self._is_behind = False
            self.decided.field.forget_names()
            self.tree_model.refresh()
            self._counts.count(afresh=True)
            self._look_at_blocks()
            self.outside.begin()

    def _all_old(self) -> None:
        if self.isVisible():
            self._refresh()
        else:
            self._is_behind = True

    def _tell_loss(self, why: str) -> None:
        self.folder.show_failure(
            tr("Nothing to show: {why}. It comes back by itself; another folder in its place, with Reload.", why=why)
        )
        self._counts.fail(why)

    def _follow_files(self, paths: frozenset[str]) -> None:
        self.decided.field.forget_names()
        if not self.listing.is_filtered:
            self.tree_model.refresh_around(paths)
        self._counts.count_soon()

    def _look_at_blocks(self) -> None:
        if self._shown.source_id is not None:
            self._blocks.look(self._shown.source_id)

    # the parts

    def _ask_who(self, path: object = None) -> None:
        """Of the path that is spoken of where none is named; of the whole folder where none is."""
        if self._shown.source_id is not None:
            self._who.ask(self._shown.source_id, path if isinstance(path, str) else self._path.shown or "./")

    def _explain_levels(self) -> None:
        LevelHelp(self).show_at(self.folder.help_button)

    def _connect(self) -> None:
        document, rules, folder, outside = self._context.document, self.rules, self.folder, self.outside
        document.closed.connect(self._let_go)
        for signal in (self._context.selection.agent_changed, self._context.selection.everyone_changed):
            signal.connect(self._show_whose)
        document.opened.connect(self._catch_up)
        document.policy_changed.connect(self._follow_change)
        self._context.navigator.level_requested.connect(self._go_to_level)
        self._context.navigator.files_requested.connect(self._show_use)
        self.listing.base_shown.connect(self._seen.start)
        self._seen.timeout.connect(self._begin)
        self._blocks.failed.connect(partial(folder.set_note, tr("blocks not known")))
        self._counts.below_changed.connect(self._path.show_again)
        outside.vanished.connect(self._tell_loss)
        outside.unwatched.connect(partial(folder.set_note, tr("changes outside are not noticed, F5 reads again")))
        outside.all_old.connect(self._all_old)
        outside.moved.connect(self._follow_files)
        outside.touched.connect(self._look_at_blocks)
        rules.header.source_chosen.connect(self._choose_source)
        rules.header.add_source_requested.connect(self.questions.add)
        rules.header.change_source_requested.connect(self.questions.change)
        rules.header.remove_source_requested.connect(self.questions.remove)
        self.no_source.action_requested.connect(self.questions.add)
        self.no_source.other_requested.connect(self._pop_up_streams)
        self.questions.taken.connect(self._take_source)
        folder.help_requested.connect(self._explain_levels)
        folder.refresh_requested.connect(self._refresh)
        folder.who_asked.connect(self._ask_who)
        self.who_action.setObjectName("files.who_action")
        self.who_action.setShortcut(QKeySequence("F4"))
        tie_icon(self.who_action, "users")
        self.who_action.triggered.connect(self._ask_who)
        self.addAction(self.who_action)
        for keys, act in (
            ("Shift+F1", self._explain_levels),
            ("F3", partial(self.listing.step, 1)),
            ("Shift+F3", partial(self.listing.step, -1)),
        ):
            shortcut = QShortcut(QKeySequence(keys), self, context=Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(act)

    def _frame(self) -> tuple[QStackedWidget, Splitter, Splitter]:
        """Make the frame of the parts before them: a part that changes its parent is polished anew with all in it."""
        parts = QStackedWidget(self)
        split = Splitter(Qt.Orientation.Horizontal, "files.split", self._context.sizes)
        parts.addWidget(split)
        right = Splitter(Qt.Orientation.Vertical, "files.right", self._context.sizes)
        none = self.no_source = EmptyState("folder-tree", *map(tr, _NONE), action=tr("New source..."))
        none.setObjectName("files.nosource")
        parts.addWidget(holding(row_of(none, margins=2)))
        column_of(row_of(self.whose, margins=(2, 1)), stretch(parts), into=self)
        return parts, split, right
