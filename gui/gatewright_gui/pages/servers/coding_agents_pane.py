"""The coding agents on this machine: is a gate before their calls, and what passes it."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtWidgets import QHeaderView, QStyleOptionViewItem, QWidget
from shiboken6 import isValid

from gatewright.workspace.api import GatewrightError
from gatewright_gui.pages.page import PageContext
from gatewright_gui.pages.servers.agent_dialog import put_gate
from gatewright_gui.pages.servers.asked_dialog import AskedDialog, asked_words
from gatewright_gui.qt.dialog import Choice, ask, shown
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, named, stretch
from gatewright_gui.qt.look import Role, tie_icon
from gatewright_gui.qt.prose import plain
from gatewright_gui.qt.table_model import ROW, Index, RowModel
from gatewright_gui.qt.widget.button import WordButton
from gatewright_gui.qt.widget.delegate import Delegate, put_icon, tint
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.qt.widget.section_header import SectionHeader
from gatewright_gui.qt.widget.splitter import split_of
from gatewright_gui.session.asked_today import AskedToday, asked_today, mending_of
from gatewright_gui.session.coding_agents import (
    OPEN,
    CodingAgents,
    HostFact,
    HostLevel,
    HostStatus,
    edit_to_remove,
    facts_of,
)
from gatewright_gui.session.question import span

HEADINGS = (
    mark("Coding agent"),
    mark("Gate"),
    mark("As agent"),
    mark("Commands"),
    mark("Calls today"),
    mark("Last call"),
)
NAME, GATE, AGENT, COMMANDS, TODAY, LAST = range(len(HEADINGS))
_LOOK = {
    HostLevel.OK: ("circle-check", "allow"),
    HostLevel.AMBER: ("triangle-alert", "ask"),
    HostLevel.RED: ("circle-x", "deny"),
}
_SPOKEN = {HostLevel.OK: mark("fine"), HostLevel.AMBER: mark("look at it"), HostLevel.RED: mark("not safe")}


class AgentsModel(RowModel[HostStatus]):
    """One row per coding agent."""

    headers = HEADINGS
    numeric = frozenset((TODAY,))

    def key(self, row: HostStatus) -> object:
        """The agent, whatever its state."""
        return row.host_id

    def text(self, row: HostStatus, column: int) -> str:
        """Cells; empty where nothing is known."""
        if row.file is None:
            return {NAME: row.title, GATE: tr("no gate")}.get(column, "")
        match column:
            case 0:
                return row.title
            case 1:
                return tr("in {file}", file=row.file.path.name)
            case 2:
                return row.agent_id
            case 3:
                return tr("confined") if row.is_confined else tr("run with your rights")
            case 4:
                return "" if row.calls_today is None else f"{row.calls_today:,}"
            case _:
                ago = None if row.last_call_s is None else max(1.0, time.time() - row.last_call_s)
                return tr("none yet") if ago is None else tr("{time} ago", time=span(ago))

    def tip(self, row: HostStatus, column: int) -> str:
        """The whole file and policy, the time, else the worst that is known."""
        if column == GATE and row.file is not None:
            policy = "" if row.policy is None else tr("decided by {policy}", policy=row.policy)
            return f"{row.file.path}\n{policy}".strip()
        if column == LAST and row.last_call_s is not None:
            return datetime.fromtimestamp(row.last_call_s).astimezone().strftime("%Y-%m-%d %H:%M:%S")
        worst = [fact.sentence for fact in row.facts if fact.level is row.level]
        return worst[0].replace("`", "") if worst else ""

    def spoken(self, row: HostStatus, column: int) -> str:
        """The agent with its state, at its first cell."""
        return f"{row.title}: {tr(_SPOKEN[row.level])}" if column == NAME else ""


class FactModel(RowModel[HostFact]):
    """The facts of one coding agent, the worst first."""

    def text(self, row: HostFact, _column: int) -> str:
        """The sentence; places below the home folder in short."""
        return row.sentence.replace("`", "").replace(f"{Path.home()}/", "~/")

    def tip(self, row: HostFact, column: int) -> str:
        """The sentence, which may be longer than its place."""
        return self.text(row, column)

    def spoken(self, row: HostFact, column: int) -> str:
        """The sentence with its weight."""
        weight = HostLevel.RED if row.name == OPEN else row.level
        return f"{tr(_SPOKEN[weight])}: {self.text(row, column)}"


class _Delegate(Delegate):
    """An icon and a colour for the level of a row, and red words for commands that nothing holds."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        super().initStyleOption(option, index)
        row = index.data(ROW)
        if not isinstance(row, HostStatus | HostFact):
            return
        is_open = isinstance(row, HostFact) and row.name == OPEN
        icon, role = ("shield-x", "deny") if is_open else _LOOK[row.level]
        if index.column() == NAME:
            put_icon(option, icon, _role(role))
        elif isinstance(row, HostStatus) and index.column() == GATE and row.file is None:
            tint(option, "ask")
        elif isinstance(row, HostStatus) and index.column() == COMMANDS and not row.is_confined:
            tint(option, "deny")


def _role(name: str) -> Role:
    return "allow" if name == "allow" else "ask" if name == "ask" else "deny"


class CodingAgentsPane(QWidget):
    """Hidden where no coding agent was found. ``is_looked_at`` tells whether somebody sees the page."""

    def __init__(self, context: PageContext, is_looked_at: Callable[[], bool]) -> None:
        super().__init__()
        self._context, self._document = context, context.document
        self.agents = CodingAgents(context.document, context.tasks, is_looked_at, self)
        self._counted: dict[str, int | None] | None = None
        """The agents of coding agents, with their calls of today, when it was last counted what they asked."""
        self._asked: tuple[str, AskedToday] | None = None
        self.header = SectionHeader(tr("Coding agents"))
        self.asked_button = named(WordButton(""), "catalogs.hook.asked", kind="link")
        self.asked_button.setToolTip(tr("Show the rules that would have answered, and what else they would open"))
        self.asked_button.hide()
        self.install_button = named(WordButton(tr("Put a gate here...")), "catalogs.hook.install")
        self.install_button.setToolTip(tr("Have this coding agent ask before each call; the change is shown first"))
        tie_icon(self.install_button, "shield-check")
        self.remove_button = named(WordButton(tr("Remove")), "catalogs.hook.remove", spoken=tr("Remove the gate"))
        self.remove_button.setToolTip(tr("Take the gate out; its file is then as it was before"))
        tie_icon(self.remove_button, "trash")
        for button in (self.asked_button, self.install_button, self.remove_button):
            self.header.add_control(button)
        self.model, self.facts = AgentsModel(), FactModel()
        self.view = named(TableView(tr("Coding agents on this machine")), "catalogs.hooks")
        self.view.setItemDelegate(_Delegate(self.view))
        widths = {NAME: 124, GATE: 120, AGENT: 72, COMMANDS: 132, TODAY: 84}
        self.view.show_model(self.model, widths, wide=LAST)
        self.facts_view = named(TableView(tr("What is known of this coding agent")), "catalogs.hooks.facts")
        self.facts_view.setItemDelegate(_Delegate(self.facts_view))
        self.facts_view.show_model(self.facts, {}, wide=0)
        self.facts_view.horizontalHeader().hide()
        self.facts_view.setWordWrap(True)
        self.facts_view.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        across = Qt.Orientation.Horizontal
        both = split_of(across, "catalogs.hooks", context.sizes, (self.view, self.facts_view), (770, 430), 0)
        column_of(self.header, stretch(both), into=self)
        self.agents.changed.connect(self._show_found)
        self.view.selectionModel().currentChanged.connect(self._show)
        self.view.activated.connect(self._activate)
        self.asked_button.clicked.connect(lambda: self._start(self._show_asked()))
        self.install_button.clicked.connect(lambda: self._start(self._put_gate()))
        self.remove_button.clicked.connect(lambda: self._start(self._remove_gate()))
        self.hide()

    def look(self) -> None:
        """Look now: coding agents come and go."""
        self.agents.look()

    def end(self) -> None:
        """Look no more."""
        self.agents.end()

    @property
    def current(self) -> HostStatus | None:
        """The chosen coding agent."""
        row = self.view.currentIndex().data(ROW)
        return row if isinstance(row, HostStatus) else None

    def _start(self, work: Coroutine[object, object, None]) -> None:
        self._context.tasks.start(work, "catalogs", replace=True)

    # what is known

    def _show_found(self) -> None:
        found = self.agents.found or ()
        before = self.current
        self.model.set_rows(found)
        gated = sum(one.file is not None for one in found)
        total = counted(len(found), "coding agent asks", "coding agents ask")
        self.header.set_note(tr("{count} of {total} the gate first", count=gated, total=total))
        at = self.model.find(before.host_id) if before is not None else 0
        if found and not self.view.currentIndex().isValid():
            self.view.setCurrentIndex(self.model.index(max(at, 0), 0))
        self._show()
        self.setVisible(bool(found))
        self._count_asked()

    def _show(self, _now: QModelIndex | None = None, _before: QModelIndex | None = None) -> None:
        row = self.current
        self.facts.set_rows(() if row is None else facts_of(row))
        self.install_button.setEnabled(row is not None)
        has_gate = row is not None and row.file is not None
        self.install_button.setText(tr("Change the gate...") if has_gate else tr("Put a gate here..."))
        self.remove_button.setEnabled(has_gate)

    def _activate(self, index: QModelIndex) -> None:
        """Enter or a double click: the calls of a gated one, else the gate is offered."""
        row = index.data(ROW)
        if isinstance(row, HostStatus) and row.file is not None:
            self._context.navigator.go_to_page("calls")
        elif isinstance(row, HostStatus):
            self._start(self._put_gate())

    # the gate

    async def _put_gate(self) -> None:
        status = self.current
        if status is None:
            return
        change = await put_gate(self, self._context, status)
        if change is not None:
            self.agents.look()
            told = tr("{agent} asks the gate before each call: {file}", agent=status.title, file=change.file.path)
            self._document.say("info", told)

    async def _remove_gate(self) -> None:
        status = self.current
        if status is None:
            return
        try:
            change = edit_to_remove(status)
        except GatewrightError as error:
            self._document.say("error", str(error))
            return
        text = tr("Its calls then pass nobody. {file} is as it was before.", file=change.file.path)
        choices = (Choice("keep", tr("Keep it")), Choice("remove", tr("Remove"), "danger"))
        title = tr("Remove the gate before {agent}?", agent=status.title)
        if await ask(self, title, text, choices, icon="shield-alert", role="ask") == "remove":
            self.agents.write(change)

    # what was asked

    def _count_asked(self) -> None:
        """Count again once a coding agent of this policy has made further calls."""
        here = self._document.workspace.policy_path if self._document.is_open else None
        found = self.agents.found or ()
        gated = {one.agent_id: one.calls_today for one in found if one.policy == here and one.agent_id}
        if here is not None and gated != self._counted:
            self._counted = gated
            self._context.tasks.start(self._work_out_asked(tuple(gated)), "catalogs.asked", replace=True)

    async def _work_out_asked(self, agents: tuple[str, ...]) -> None:
        since_s = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
        found: dict[str, AskedToday] = {}
        for agent_id in agents:
            with suppress(GatewrightError):  # the page Audit says why the log cannot be read
                asked = await self._context.deriver.derive_in_pieces(asked_today, _ignore, agent_id, since_s)
                if asked is not None and asked.asked:
                    found[agent_id] = asked
        if isValid(self):
            self._asked = max(found.items(), key=lambda one: one[1].asked, default=None)
            self.asked_button.setText("" if self._asked is None else asked_words(self._asked[1]))
            self.asked_button.setVisible(self._asked is not None)

    async def _show_asked(self) -> None:
        if self._asked is None:
            return
        dialog = AskedDialog(self, *self._asked)
        if not await shown(dialog) or dialog.chosen is None:
            return
        mending = await asyncio.to_thread(mending_of, self._document.workspace, dialog.chosen)
        if mending is None:
            self._document.say("warning", tr("the policy has changed meanwhile: look at the rules again"))
        elif self._document.push(mending.make):
            self._document.say("info", plain(mending.words), can_undo=True)
        self._counted = None
        self._count_asked()


def _ignore(_progress: object) -> None:
    """Nobody looks at how far it is."""
