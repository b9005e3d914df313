"""The blocks of an agent: the list at the left, the chosen one at the right, kept up to date with whoever writes."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtWidgets import QPushButton, QStackedWidget, QWidget
from shiboken6 import isValid

from gatewright.workspace.api import GatewrightError, Step
from gatewright_gui.pages.access.memory.block_list import BlockDelegate, BlockLine, BlockModel
from gatewright_gui.pages.access.memory.block_pane import BlockPane
from gatewright_gui.pages.access.memory.create_dialog import CreateDialog
from gatewright_gui.pages.access.memory.settings_form import level_line
from gatewright_gui.pages.access.memory.text_dialog import Asked, TextDialog
from gatewright_gui.pages.access.memory.value_pane import Draft
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.dialog import Choice, ask, run_dialog
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stack_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.table_model import ROW
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.item_view import RowList
from gatewright_gui.qt.widget.label import SectionHeader
from gatewright_gui.qt.widget.message_bar import FootBars, MessageBar
from gatewright_gui.qt.widget.splitter import Splitter
from gatewright_gui.qt.widget.text_field import SearchField
from gatewright_gui.session.block_access import BlockRight, block_rights
from gatewright_gui.session.memory import (
    WHO,
    BlockChanged,
    BlockContent,
    BlockList,
    BlockRow,
    Blocks,
    BlockSettings,
    way_out,
)
from gatewright_gui.session.unsaved import Typed, TypedText

NO_BLOCKS = mark(
    "A block is a text, a list or fields that an agent keeps under a label. Make one, or let an agent do it."
)

_Act = Callable[[BlockContent], Awaitable[None]]


class BlocksPane(QWidget):
    """``agent_id`` "" means the shared blocks alone. What was typed and not saved stays for each block (``typed``)."""

    agent_requested = Signal(str)
    """An agent of which the rights are to be shown."""

    def __init__(self, context: PageContext, typed: Typed) -> None:
        super().__init__()
        self.setObjectName("memory.blocks_pane")
        self._context, self._document = context, context.document
        self._blocks = Blocks(context.document)
        self._agent_id = ""
        self._found = BlockList("", ())
        self._is_known = False
        self._failure = ""
        self._rights: Mapping[str, tuple[BlockRight, ...]] = {}
        self._typed = typed
        self._wanted: str | None = None
        """The label that is to be chosen as soon as it is there."""
        self.header = SectionHeader(tr("Blocks"))
        self.new_button = named(QPushButton(tr("New...")), "memory.new", spoken=tr("New block"))
        tie_icon(self.new_button, "plus")
        self.header.add_control(self.new_button)
        self.bar = named(MessageBar(), "memory.bar")
        self.filter = named(SearchField(tr("Filter blocks")), "memory.filter")
        self.model = BlockModel()
        self.view = named(RowList(), "memory.blocks", spoken=tr("Blocks"))
        self.view.setModel(self.model)
        self.view.setItemDelegate(BlockDelegate(self.view))
        self.none_fits = EmptyState("search", tr("No block fits"), tr("Change the filter, or clear it."))
        self._list = stack_of(self.view, self.none_fits)
        self.detail = BlockPane(context.sizes, context.tasks)
        self.empty = named(EmptyState("database", "", ""), "memory.empty")
        left = holding(column_of(self.header, row_of(stretch(self.filter), margins=(2, 0, 2, 1)), stretch(self._list)))
        self._whole = Splitter(Qt.Orientation.Horizontal, "memory", context.sizes)
        self._stack = QStackedWidget()
        column_of(stretch(self._stack), into=self)
        FootBars(self, self.bar)
        for part in (self._whole, self.empty):
            self._stack.addWidget(part)
        for part in (left, self.detail):
            self._whole.addWidget(part)
        self._whole.setStretchFactor(1, 1)
        self._whole.restore((380, 800))
        self._connect()
        self._document.opened.connect(self._forget)
        self._show_list()

    def _connect(self) -> None:
        self.filter.search_changed.connect(self._filter)
        self.filter.results_requested.connect(self.view.setFocus)
        self.filter.leave_requested.connect(self.view.setFocus)
        self.view.selectionModel().currentChanged.connect(self._choose)
        for signal in (self.new_button.clicked, self.empty.action_requested):
            signal.connect(lambda: self._start(self._create(), "memory.dialog"))
        detail, value = self.detail, self.detail.value
        detail.archive_requested.connect(self._archive)
        detail.delete_requested.connect(lambda: self._start(self._delete(), "memory.dialog"))
        detail.theirs_requested.connect(self._take_theirs)
        detail.kept.connect(self._keep_mine)
        detail.settings.apply_requested.connect(self._set)
        detail.history.step_requested.connect(self._show_step)
        detail.history.bring_back_requested.connect(self._bring_back)
        detail.access.agent_requested.connect(self.agent_requested)
        value.save_requested.connect(self._save)
        value.undo_requested.connect(lambda: self._act(self._blocks.undo))
        value.redo_requested.connect(lambda: self._act(self._blocks.redo))
        value.add_requested.connect(lambda: self._start(self._add(), "memory.dialog"))
        value.replace_requested.connect(lambda: self._start(self._replace(), "memory.dialog"))
        value.edited.connect(self._keep_typed)
        value.draft_changed.connect(self._show_list)
        self._typed.read.connect(self._show_list)

    # what is shown

    def show_agent(self, agent_id: str) -> None:
        """The blocks of another agent, or "" of none."""
        if agent_id != self._agent_id:
            self._agent_id = agent_id
            self._found, self._is_known, self._failure = BlockList(agent_id, ()), False, ""
            self.detail.content = None
            self._show_list()
        self.refresh()

    def _forget(self) -> None:
        """Another workspace: nothing of the one before is shown while that is read."""
        self._found, self._rights, self._is_known, self._failure = BlockList(self._agent_id, ()), {}, False, ""
        self.detail.content = None
        self._show_list()

    def refresh(self) -> None:
        """Read the blocks and the rights on them anew; what is there stays until the answer has come."""
        if self._document.is_open:
            self._context.tasks.start(self._read(), "memory.blocks", replace=True)
            self._context.tasks.start(self._read_rights(), "memory.rights", replace=True)

    def choose(self, label: str) -> None:
        """Choose a block, now or as soon as it is there."""
        at = self.model.find(label)
        self._wanted = label if at < 0 else None
        if at >= 0:
            self.view.setCurrentIndex(self.model.index(at, 0))

    def main_view(self) -> QWidget:
        """The list; without a block the way to make one."""
        return self.view if self._stack.currentWidget() is self._whole else self.empty.action_button

    @property
    def current(self) -> BlockRow | None:
        """The chosen block."""
        line = self.view.currentIndex().data(ROW)
        return line.row if isinstance(line, BlockLine) else None

    async def _read(self) -> None:
        agent_id, workspace = self._agent_id, self._document.workspace
        try:
            found = await self._blocks.list(agent_id)
        except GatewrightError as error:
            is_open = isValid(self) and self._document.is_open and workspace is self._document.workspace
            if is_open and agent_id == self._agent_id:
                self._failure = str(error)
                told = tr("{error}. What is shown may be old; nothing was changed.", error=error)
                self.bar.show_message("error", told, action=way_out(error))
                self._show_list()
            return
        is_open = isValid(self) and self._document.is_open and workspace is self._document.workspace
        if is_open and agent_id == self._agent_id:
            self.bar.hide()
            self._found, self._is_known, self._failure = found, True, ""
            self._show_list()

    async def _read_rights(self) -> None:
        found = await self._context.deriver.derive(block_rights)
        if found is not None and isValid(self):
            self._rights = found
            self._show_list()

    def _show_list(self) -> None:
        chosen = self.current
        label = self._wanted or (chosen.label if chosen is not None else None)
        sources = self._sources(self._agent_id)
        self.model.set_lines(tuple(self._line(row, sources) for row in self._found.rows))
        at = self.model.find(label) if label is not None else -1
        if at >= 0 and self._wanted:
            self._wanted = None
            self.view.setCurrentIndex(self.model.index(at, 0))
        elif self.model.rows and not self.view.currentIndex().isValid():
            self.view.setCurrentIndex(self.model.index(max(at, 0), 0))
        else:
            self._choose()
        # after the choice: a list that gets the keys without one has a current row that is not filled
        if self._is_known:
            self.empty.set_state("database", tr("No blocks"), tr(NO_BLOCKS), action=tr("New block..."))
        elif self._failure:
            self.empty.set_state("circle-alert", tr("The memory cannot be read"), self._failure)
        else:
            self.empty.set_unknown()
        self.new_button.setEnabled(self._is_known)
        shown = self._whole if self._found.rows else self.empty
        if self._stack.currentWidget() is not shown:
            self._stack.setCurrentWidget(shown)
            if self.isAncestorOf(self.window().focusWidget() or self.window()):
                self.main_view().setFocus()  # the list, where Qt would give the keys to the first button
        self._tell_count()

    def _line(self, row: BlockRow, sources: set[str]) -> BlockLine:
        may = ("", "none")
        if self._agent_id and self._agent_id in self._rights:
            may = row.access_of(self._agent_id, self._rights, sources).summary
        return BlockLine(row, may, self._typed.of(_name(row.record.block_id)) is not None)

    def _sources(self, agent_id: str) -> set[str]:
        policy = self._document.policy
        agent = policy.agents.get(agent_id)
        return {source.source_id for source in policy.sources_of(agent)} if agent is not None else set()

    def _tell_count(self) -> None:
        total, fits = len(self.model.all), len(self.model.rows)
        every = f"{total:,}" if total else ""
        self.header.set_note(tr("{count} of {total}", count=fits, total=total) if fits < total else every)
        self._list.setCurrentWidget(self.view if fits or not total else self.none_fits)

    def _filter(self, text: str) -> None:
        chosen = self.current
        self.model.set_filter(text)
        self._tell_count()
        if self.model.rows and not self.view.currentIndex().isValid():
            self.view.setCurrentIndex(self.model.index(max(self.model.find(chosen.label) if chosen else 0, 0), 0))

    def _choose(self, _now: QModelIndex | None = None, _before: QModelIndex | None = None) -> None:
        """Read the chosen block, where it is not shown as it is."""
        row = self.current
        self.detail.setEnabled(row is not None)
        if row is None:
            return
        content = self.detail.content
        if content is not None and row.info == content.info and content.agent_id == self._agent_id:
            self._show(content)
        elif row.problem:
            self.detail.setEnabled(False)
            self.detail.header.set_title(row.label)
            self.detail.say(row.problem)
        else:
            self._context.tasks.start(self._read_block(row.label), "memory.block", replace=True)

    async def _read_block(self, label: str) -> None:
        agent_id = self._agent_id
        try:
            content = await self._blocks.content(agent_id, label)
        except GatewrightError as error:
            if isValid(self):
                self.detail.say(str(error))
            return
        row = self.current if isValid(self) else None
        if row is not None and agent_id == self._agent_id and row.label == label:
            self._show(content)

    def _show(self, content: BlockContent) -> None:
        row = self.current
        if row is None:
            return
        draft = self._draft_of(content)
        if draft is None:
            self._typed.put(_name(content.info.record.block_id), None)
        agents = [self._agent_id] if row.record.owner else [agent.agent_id for agent in self._document.agents]
        known = [agent_id for agent_id in agents if agent_id in self._rights]
        touching = tuple(row.access_of(agent_id, self._rights, self._sources(agent_id)) for agent_id in known)
        self.detail.show_content(content, row, self._place(row), touching, draft)

    def _place(self, row: BlockRow) -> str:
        agent_id = self._agent_id
        if not agent_id:
            return tr("Always in a model's sight where it is core or pinned")
        if row.position is None:
            return tr("Out of the model's sight: {agent} has to look it up", agent=agent_id)
        at, every = row.position, self._found.in_context
        return tr("Always in the model's sight: {position} of {count}", position=at, count=every)

    # what is typed and not saved

    def _keep_typed(self) -> None:
        content, draft = self.detail.content, self.detail.value.draft
        if content is not None:
            typed = None if draft is None else TypedText(draft.text, str(draft.content.info.steps))
            self._typed.put(_name(content.info.record.block_id), typed)

    def _draft_of(self, content: BlockContent) -> Draft | None:
        """The draft typed over a block; on top of the operator's own edits it is meant as it stands."""
        typed = self._typed.of(_name(content.info.record.block_id))
        if typed is None or content.is_same(typed.text):
            return None
        steps = int(typed.over)
        is_own = all(step.author == WHO for step in content.steps if step.number > steps)
        if steps > content.info.steps or not is_own:  # of what it was typed over only the number is known
            return Draft(replace(content, info=replace(content.info, steps=steps)), typed.text)
        return Draft(content, typed.text)

    def _take_theirs(self) -> None:
        self.detail.value.revert()
        if self.detail.content is not None:
            self._show(self.detail.content)

    def _keep_mine(self) -> None:
        content, draft = self.detail.content, self.detail.value.draft
        if content is not None and draft is not None:
            self.detail.value.rebase(content)
            self._keep_typed()
            self._show(content)

    # what is done

    def _start(self, work: Awaitable[None], name: str = "memory.act") -> None:
        self._context.tasks.start(self._do(work), name)

    async def _do(self, work: Awaitable[None]) -> None:
        """Do it, say what went wrong, and show what is there now."""
        problem, content = "", self.detail.content
        try:
            await work
        except BlockChanged:
            problem = ""  # that is told beside what was typed
        except GatewrightError as error:
            problem = str(error)
        if not isValid(self):
            return
        await self._read()
        is_there = content is None or any(_is_of(row, content) for row in self._found.rows)
        if problem and is_there:
            self.detail.say(problem[:1].upper() + problem[1:])
        elif problem:
            self._document.say("warning", problem)

    def _act(self, what: _Act) -> None:
        content = self.detail.content
        if content is not None:
            self._start(what(content))

    def _save(self) -> None:
        draft = self.detail.value.draft
        if draft is not None and self.detail.value.can_save:
            self._start(self._blocks.save(draft.content, draft.text))

    def _archive(self) -> None:
        content = self.detail.content
        if content is not None:
            kind = "unarchive" if content.info.record.archived_at is not None else "archive"
            self._start(self._blocks.note(content, kind))

    def _set(self, new: BlockSettings) -> None:
        self._act(lambda content: self._change(content, new))

    async def _change(self, content: BlockContent, new: BlockSettings) -> None:
        await self._blocks.set(content, new)
        if new.permission is not None:
            level = level_line(new.permission)
            self._document.noted.emit(tr("{label} is now {level}", label=content.label, level=level))

    def _bring_back(self, step: Step) -> None:
        if self.detail.content is not None:
            self._start(self._blocks.bring_back(self.detail.content, step.number))

    def _show_step(self, step: Step, part: str) -> None:
        content = self.detail.content
        if content is not None:
            self._context.tasks.start(self._read_step(content, step, part), "memory.step", replace=True)

    async def _read_step(self, content: BlockContent, step: Step, part: str) -> None:
        history = self.detail.history
        try:
            if part == "then":
                text = await self._blocks.text_at(content, step.number)
            else:
                text = await self._blocks.difference(content, step)
        except GatewrightError as error:
            if isValid(self):
                history.show_problem(step, str(error))
            return
        if isValid(self):
            history.show_text(step, part, text)

    async def _create(self) -> None:
        dialog = CreateDialog(self, self._agent_id, self._context.tasks, self._blocks.create)
        if await run_dialog(dialog):
            self._wanted = dialog.label.text()

    async def _delete(self) -> None:
        content = self.detail.content
        if content is None:
            return
        record, steps = content.info.record, content.info.steps
        told = [tr("Its value goes with its history, and nothing brings it back.")]
        if steps:
            changes = counted(steps, "change", "changes")
            told = [tr("Its value goes with its history of {changes}, and nothing brings it back.", changes=changes)]
        if not record.owner:
            told.append(tr("All agents share it."))
        choices = (Choice("keep", tr("Keep it"), "primary"), Choice("delete", tr("Delete"), "danger"))
        title = tr("Delete the block {label}?", label=record.label)
        if await ask(self, title, " ".join(told), choices, icon="trash", role="ask") == "delete":
            await self._blocks.delete(content)
            self._typed.put(_name(record.block_id), None)

    async def _add(self) -> None:
        content = self.detail.content
        dialog = TextDialog(self, tr("Add to the end"), (Asked("text", tr("What is to be added")),), tr("Add"))
        if content is not None and await run_dialog(dialog):
            await self._blocks.append(content, dialog.texts["text"])

    async def _replace(self) -> None:
        content = self.detail.content
        asked = Asked("old", tr("The first place with this text"), 4), Asked("new", tr("becomes"), 4, is_needed=False)
        dialog = TextDialog(self, tr("Replace a part"), asked, tr("Replace"))
        if content is not None and await run_dialog(dialog):
            texts = dialog.texts
            await self._blocks.replace(content, texts["old"], texts["new"], everywhere=False)


def _is_of(row: BlockRow, content: BlockContent) -> bool:
    return row.record.block_id == content.info.record.block_id


def _name(block_id: str) -> str:
    return f"block {block_id}"
