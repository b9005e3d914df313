"""Home answers *am I safe?* from facts: a sentence, what could hurt most, who can do what, what nobody uses."""

import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtWidgets import QFrame, QPushButton, QWidget

from gatewright_gui.pages.home.notices import Notices, WaitingBand
from gatewright_gui.pages.home.picture_pane import PicturePane
from gatewright_gui.pages.home.rows import RiskList, RiskModel, UnusedDelegate, UnusedModel
from gatewright_gui.pages.home.unused_dialog import Right, UnusedDialog
from gatewright_gui.pages.page import Page, PageContext
from gatewright_gui.pages.timeline import TimelineBar
from gatewright_gui.qt.dialog import run_dialog
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.layout import Part, column_of, holding, named, row_of, stack_of, stretch
from gatewright_gui.qt.plaintext import button_text
from gatewright_gui.qt.table_model import ROW
from gatewright_gui.qt.widget.button import text_button
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.item_view import RowList
from gatewright_gui.qt.widget.label import Label, SectionHeader
from gatewright_gui.session.document import ChangeSet
from gatewright_gui.session.effects import (
    AgentReach,
    Risk,
    Unused,
    count_unused,
    headline,
    list_unused,
    reaches_of,
    risks_of,
)
from gatewright_gui.session.question import span
from gatewright_gui.session.recent_calls import DAYS, RecentCalls, RecentCallsWatch
from gatewright_gui.session.verbs.rights import Target, edit_cells

TASK, UNUSED_TASK = "home.reaches", "home.unused"
BARS = 60
"""The height of the bars of today, in pixels."""


class HomePage(Page):
    """Asks the worker process for all that takes time, while somebody sees the page."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self.setObjectName("home")
        self._context = context
        self._reaches: dict[str, AgentReach] = {}
        self._unused: dict[str, Unused] = {}
        self._recent = RecentCalls()
        self._stale: set[str] = set()
        """Agents of which only an older policy is known."""
        self.is_whole = False
        """True if what could hurt is of the policy as it is now."""
        self.headline = named(Label(wraps=True), "home.headline", kind="title")
        self.band = WaitingBand(context)
        self.notices = Notices(context)
        self.risks = RiskModel(self)
        self.risk_view = named(RiskList(), "home.risks", spoken=tr("What could hurt most"))
        self.reach = PicturePane(context.sizes)
        self.calls_header = SectionHeader(tr("Calls today"))
        self.timeline = named(TimelineBar(BARS), "home.timeline")
        self.unused_header = SectionHeader(tr("On and never used"))
        self.unused = UnusedModel(self)
        self.unused_view = named(RowList(), "home.unused", spoken=tr("On and never used"))
        self.review_button = named(QPushButton(), "home.review")
        self.calls = RecentCallsWatch(context.document, context.tasks, "home.calls", self.isVisible, self)
        self.coding_agents = context.coding_agents
        self.empty = EmptyState(
            "users",
            tr("No agents yet"),
            tr("An agent is one program with rights of its own. Add the first, then tick what it may do."),
            action=tr("Go to Access"),
        )
        self._lay_out()
        self._connect()
        self._begin_anew()

    # layout

    def _lay_out(self) -> None:
        self.risk_view.setModel(self.risks)
        self.unused_view.setModel(self.unused)
        self.unused_view.setItemDelegate(UnusedDelegate(self.unused_view))
        self.unused_view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        safe = tr("Nothing deletes, runs commands or sends out without asking.")
        unknown, unread, uncounted = EmptyState("", "", ""), EmptyState("", "", ""), EmptyState("", "", "")
        for state in (unknown, unread, uncounted):
            state.set_unknown()
        self._risk_stack = stack_of(self.risk_view, _sentence(safe, "home.safe"), unknown)
        review = holding(row_of(self.review_button, stretch(), margins=(3, 1, 3, 2)))
        used = holding(column_of(stretch(self.unused_view), review))
        self._unused_stack = stack_of(used, unread)
        risks = _card(SectionHeader(tr("What could hurt most"), tr("without asking")), stretch(self._risk_stack))
        upper = row_of(stretch(risks, 36), stretch(_card(stretch(self.reach)), 64), space=3)
        quiet = _sentence(tr("No call today. Calls of agents show here by the hour."), "home.quiet")
        self._calls_stack = stack_of(quiet, self.timeline, uncounted)
        calls = _card(self.calls_header, stretch(self._calls_stack))
        unused = _card(self.unused_header, stretch(self._unused_stack))
        self.calls_row = holding(row_of(stretch(calls, 60), stretch(unused, 40), space=3))
        top = column_of(self.headline, self.notices, self.band, space=2)
        parts = stretch(upper, 62), self._make_first(), stretch(self.calls_row, 38)
        whole = holding(column_of(top, *parts, space=3, margins=3))
        self._stack = stack_of(whole, self.empty)
        column_of(self._stack, into=self)

    def _make_first(self) -> QWidget:
        """The line in the place of calls until there was one."""
        go = self._context.navigator
        words = tr("No call has come through this gate yet. Calls and unused rights show here once there was one.")
        line = row_of(
            stretch(Label(words, wraps=True)),
            text_button(tr("Try a call"), "home.first.try", lambda: go.go_to_page("try"), kind="link"),
            text_button(tr("Connect a client..."), "home.first.connect", go.ask_for_client),
            space=3,
            margins=(2, 1),
        )
        self.first = _card(line)
        return self.first

    def _connect(self) -> None:
        context = self._context
        for place in (self.empty, self.reach.nothing):
            place.action_requested.connect(lambda: context.navigator.go_to_page("tools"))
        self.risk_view.ask_requested.connect(self._ask_first)
        self.risk_view.show_requested.connect(self._show_risk)
        self.timeline.span_chosen.connect(self._show_span)
        self.unused_view.clicked.connect(self._show_unused)
        self.unused_view.activated.connect(self._show_unused)
        self.review_button.clicked.connect(lambda: self._review(list(self._unused)))
        self.calls.counted.connect(self._show_calls)
        self.coding_agents.changed.connect(self._show_coding_agents)
        document = context.document
        document.closed.connect(self._begin_anew)
        document.opened.connect(self._begin_anew)
        document.policy_changed.connect(self._follow)
        for signal in (document.problems_changed, document.dirty_changed, document.saved):
            signal.connect(self.notices.refresh)

    def main_view(self) -> QWidget | None:
        """The risks; without an agent the way to the first."""
        return self.risk_view if self._context.document.agents else self.empty.action_button

    def page_shown(self) -> None:
        """Bring up to date what was put off while nobody looked."""
        self._show_coding_agents()
        self.band.refresh()
        self.calls.look()
        self.coding_agents.look()
        self._ask()

    def end(self) -> None:
        """Let go of the log."""
        self.calls.end()

    # what is known

    def _begin_anew(self) -> None:
        self._reaches.clear()
        self._unused.clear()
        self._risk_stack.setCurrentIndex(2)
        self._unused_stack.setCurrentIndex(1)
        self._calls_stack.setCurrentIndex(2)
        self._show_lower(has_calls=True)
        self.risks.set_rows(())
        self.reach.forget()
        self._follow(ChangeSet(frozenset(), frozenset(), everything=True))

    def _follow(self, changes: ChangeSet) -> None:
        agents = [agent.agent_id for agent in self._context.document.agents]
        everything = changes.everything or bool(changes.sources)
        self._stale = (self._stale | set(agents if everything else changes.agents)) & set(agents)
        self._stale |= set(agents) - self._reaches.keys()
        known = self._reaches
        self._reaches = {name: known[name] for name in agents if name in known}
        self._unused = {name: self._unused[name] for name in agents if name in self._unused}
        self.is_whole = False
        self._stack.setCurrentIndex(0 if agents else 1)
        self.notices.refresh()
        self._ask()

    def _ask(self) -> None:
        is_wanted = bool(self._stale) or not self.is_whole or self._unused.keys() != self._reaches.keys()
        if self.isVisible() and is_wanted:
            self._context.tasks.start(self._work_out(), TASK, replace=True)

    async def _work_out(self) -> None:
        """Ask about every agent of which nothing, or an older policy, is known; then about what they use."""
        document, deriver = self._context.document, self._context.deriver
        while document.is_open and self.isVisible():
            agents = [agent.agent_id for agent in document.agents]
            if self._stale:
                found = await deriver.derive(reaches_of, [name for name in agents if name in self._stale])
                for name in found or ():
                    self._unused.pop(name, None)
                self._stale -= (found or {}).keys()
                known = self._reaches | (found or {})
                self._reaches = {name: known[name] for name in agents if name in known}
                self._say_headline()
                continue
            if not self.is_whole:
                risks = await deriver.derive(risks_of)
                if risks is not None:
                    self.is_whole = True
                    self._show_reaches(risks)
                continue
            unknown = [name for name in agents if name not in self._unused]
            if not unknown or self._recent.since_s is None:
                break
            used = self._recent.used
            counted_now = await deriver.derive(count_unused, used, unknown)
            if counted_now is not None and used is self._recent.used:
                self._unused |= counted_now
                self._show_used()

    def _show_reaches(self, risks: Sequence[Risk]) -> None:
        self.risks.set_rows(risks)
        self._risk_stack.setCurrentIndex(0 if self.risks.rows else 1)
        self.reach.show_reaches(self._reaches, self._recent.used)
        self._say_headline()

    def _say_headline(self) -> None:
        if self._risk_stack.currentIndex() != 2:
            self.headline.setText(headline(self._reaches, self.notices.ungated_names))
            return
        agents = counted(len(self._context.document.agents), "agent", "agents")
        works = tr("Working out what they can do: {known:,} of {agents}", known=len(self._reaches), agents=agents)
        self.headline.setText("\n".join(filter(None, (headline({}, self.notices.ungated_names), works))))

    def _show_coding_agents(self) -> None:
        self.notices.set_coding_agents(self.coding_agents.found or ())
        self._say_headline()

    def _show_calls(self, recent: RecentCalls) -> None:
        is_used = recent.used != self._recent.used
        self._recent = recent
        verdicts = recent.verdicts
        every = sum(verdicts.values())
        told = [counted(every, "call", "calls")] if every else []
        told += [
            words
            for words, count in (
                (tr("{count:,} denied", count=verdicts["deny"]), verdicts["deny"]),
                (tr("{count:,} asked", count=verdicts["ask"]), verdicts["ask"]),
            )
            if count
        ]
        if every:
            told.append(tr("a bar is {time}", time=span(recent.today.stretch_s)))
        self.calls_header.set_note(" \u00b7 ".join(told))
        self.timeline.set_timeline(recent.today)
        self._calls_stack.setCurrentIndex(1 if every else 0)
        self._show_lower(has_calls=recent.since_s is not None)
        if recent.since_s is None:
            self.unused_header.set_note("")
        elif is_used or not self._unused:
            self._unused.clear()
            self.unused_header.set_note(self._since)
            if self._reaches:
                self.reach.show_reaches(self._reaches, recent.used)
            self._ask()

    def _show_lower(self, *, has_calls: bool) -> None:
        self.calls_row.setVisible(has_calls)
        self.first.setHidden(has_calls)

    @property
    def _since(self) -> str:
        """`in 30 days`, or since when the log tells, if that is later."""
        since_s = self._recent.since_s or 0.0
        if time.time() - since_s > (DAYS - 1) * 86_400:
            return tr("in {days} days", days=DAYS)
        return tr("since {day}", day=datetime.fromtimestamp(since_s).astimezone().strftime("%Y-%m-%d"))

    def _show_used(self) -> None:
        rows = [(name, self._unused[name]) for name in self._reaches if name in self._unused]
        rows = [row for row in rows if row[1].shown]
        self.unused.set_rows(sorted(rows, key=lambda row: row[1].used - row[1].shown))
        rest = sum(one.shown - one.used for _, one in rows)
        words = tr("Review {rights}...", rights=counted(rest, "unused operation", "unused operations"))
        self.review_button.setText(button_text(words))
        self.review_button.setVisible(rest > 0)
        self._unused_stack.setCurrentIndex(0)

    # where it leads

    def _show_risk(self, risk: Risk) -> None:
        self._context.navigator.go_to_tool(risk.agents[0], risk.danger.tool, risk.danger.operation or None)

    def _ask_first(self, risk: Risk) -> None:
        target = Target(risk.danger.tool, (risk.danger.operation,))
        context = self._context
        edit_cells(context.document, context.deriver, context.tasks, dict.fromkeys(risk.agents, (target,)), "ask")

    def _show_span(self, chosen: tuple[float, float] | None) -> None:
        if chosen is not None:
            self.timeline.set_span(None)
            self._context.navigator.go_to_span(chosen)

    def _show_unused(self, index: QModelIndex) -> None:
        agent_id, unused = index.data(ROW)
        if unused.used < unused.shown:
            self._review([agent_id])

    def _review(self, agent_ids: Sequence[str]) -> None:
        self._context.tasks.start(self._review_rights(agent_ids), UNUSED_TASK, replace=True)

    async def _review_rights(self, agent_ids: Sequence[str]) -> None:
        context = self._context
        rights = await context.deriver.derive(list_unused, self._recent.used, agent_ids)
        if not rights:
            return
        dialog = UnusedDialog(self.window(), rights, self._since)
        if await run_dialog(dialog):
            edit_cells(context.document, context.deriver, context.tasks, _cells(dialog.chosen), "off")


def _cells(rights: Sequence[Right]) -> dict[str, list[Target]]:
    """Gather rights by agent and tool."""
    tools: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for agent_id, tool, operation in rights:
        tools[agent_id, tool].append(operation)
    found: defaultdict[str, list[Target]] = defaultdict(list)
    for (agent_id, tool), operations in tools.items():
        found[agent_id].append(Target(tool, tuple(operations)))
    return dict(found)


def _card(*parts: Part) -> QFrame:
    """A frame with the parts below each other."""
    frame = named(QFrame(), kind="card")
    column_of(*parts, into=frame, margins=1)
    return frame


def _sentence(words: str, name: str) -> QWidget:
    """A sentence in the place of rows."""
    return holding(column_of(named(Label(words, wraps=True), name, kind="muted"), stretch(), margins=(2, 1)))
