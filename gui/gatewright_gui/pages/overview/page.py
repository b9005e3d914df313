"""All agents at a glance: what each may do, what of it is risky, what waits. All of it leads to where it is changed."""

from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtWidgets import QAbstractItemView, QWidget

from gatewright_gui.pages.overview.agent_cards import AgentCard, AgentCardDelegate, AgentCardModel
from gatewright_gui.pages.overview.notices import Notices
from gatewright_gui.pages.overview.picture_pane import PicturePane
from gatewright_gui.pages.overview.risks import RiskModel
from gatewright_gui.pages.page import Page, PageContext
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import column_of, holding, named, stack_of, stretch
from gatewright_gui.qt.table_model import ROW
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.row_list import RowList
from gatewright_gui.qt.widget.section_header import SectionHeader
from gatewright_gui.qt.widget.splitter import split_of
from gatewright_gui.session.calls_today import CallsToday, Tally
from gatewright_gui.session.coding_agents import CodingAgents
from gatewright_gui.session.document import ChangeSet
from gatewright_gui.session.rights_picture import RightShare, Risk, rights_together, shares_of

TASK = "overview.shares"


class OverviewPage(Page):
    """What takes time is asked of the worker process, while the page is there to be seen."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self.setObjectName("overview")
        self._context = context
        self._shares: dict[str, RightShare] = {}
        self._calls: Tally = {}
        self._stale: set[str] = set()
        """Agents whose share is of an older policy."""
        self._is_whole = False
        """Whether what is told of all agents together is of the policy as it is now."""
        self.cards, self.risks = AgentCardModel(self), RiskModel(self)
        self.agents_header = SectionHeader(tr("Agents"))
        self.view = named(RowList(), "overview.agents", spoken=tr("Agents"))
        self.notices = Notices(context)
        risky = tr("Privileged or deleting operations that are on without asking")
        self.risk_view = named(TableView(risky), "overview.risks")
        self.rights = PicturePane(context.sizes)
        self.calls = CallsToday(context.document, context.tasks, self.isVisible, self)
        self.coding_agents = CodingAgents(context.document, context.tasks, self.isVisible, self)
        self.empty = EmptyState(
            "users",
            tr("No agents yet"),
            tr("An agent is one program with rights of its own. Add the first, then tick what it may do."),
            action=tr("Go to Agents"),
        )
        for place in (self.empty, self.rights.nothing):
            place.action_requested.connect(lambda: context.navigator.go_to_page("agents"))
        self._lay_out()
        self.calls.counted.connect(self._show_calls)
        self.coding_agents.changed.connect(lambda: self.notices.set_coding_agents(self.coding_agents.found or ()))
        document = context.document
        document.closed.connect(self._begin_anew)
        document.opened.connect(self._begin_anew)
        document.policy_changed.connect(self._follow)
        for signal in (document.problems_changed, document.dirty_changed, document.saved, context.waiting.changed):
            signal.connect(self.notices.refresh)
        self._begin_anew()

    # layout

    def _lay_out(self) -> None:
        self.view.setModel(self.cards)
        self.view.setItemDelegate(AgentCardDelegate(self.view))
        self.view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.view.setMouseTracking(True)
        self.risk_view.show_model(self.risks, {0: 150, 1: 88}, wide=2)
        for view, show in ((self.view, self._show_agent), (self.risk_view, self._show_risk)):
            view.clicked.connect(show)
            view.activated.connect(show)
        none = tr("Nothing that is privileged, or known to delete, is on without asking.")
        safe = named(Label(none, wraps=True), "overview.safe", kind="muted")
        unknown = EmptyState("", "", "")
        unknown.set_unknown()
        self._risk_stack = stack_of(self.risk_view, holding(column_of(safe, stretch(), margins=(3, 1))), unknown)
        agents = holding(column_of(self.agents_header, stretch(self.view)))
        risky = SectionHeader(tr("On without asking"), tr("privileged, or deletes"))
        lower = holding(column_of(risky, stretch(self._risk_stack), SectionHeader(tr("To look at")), self.notices))
        sizes, down, across = self._context.sizes, Qt.Orientation.Vertical, Qt.Orientation.Horizontal
        left = split_of(down, "overview.left", sizes, (agents, lower), (360, 220), 0)
        self._stack = stack_of(split_of(across, "overview", sizes, (left, self.rights), (340, 780), 1), self.empty)
        column_of(stretch(self._stack), into=self)

    def main_view(self) -> QWidget:
        """The agents; without one the way to the first."""
        return self.view if self._context.document.agents else self.empty.action_button

    def page_shown(self) -> None:
        """What was put off while nobody looked."""
        self.notices.refresh()
        self.calls.look()
        self.coding_agents.look()
        self._ask()

    def end(self) -> None:
        """Let go of the log."""
        self.calls.end()
        self.coding_agents.end()

    # what is known

    def _begin_anew(self) -> None:
        self._shares.clear()
        self.risks.set_rows(())
        self._risk_stack.setCurrentIndex(2)
        self.rights.forget()
        self._follow(ChangeSet(frozenset(), frozenset(), everything=True))

    def _follow(self, changes: ChangeSet) -> None:
        agents = [agent.agent_id for agent in self._context.document.agents]
        everything = changes.everything or bool(changes.sources)
        self._stale = (self._stale | set(agents if everything else changes.agents)) & set(agents)
        self._shares = {name: share for name, share in self._shares.items() if name in agents}
        self._stale |= set(agents) - self._shares.keys()
        self._is_whole = False
        self._show_cards()
        self._stack.setCurrentIndex(0 if agents else 1)
        self.agents_header.set_note(f"{len(agents):,}")
        self.notices.refresh()
        self._ask()

    def _ask(self) -> None:
        if self.isVisible() and (self._stale or not self._is_whole) and TASK not in self._context.tasks.names:
            self._context.tasks.start(self._work_out(), TASK)

    async def _work_out(self) -> None:
        document, deriver = self._context.document, self._context.deriver
        while document.is_open and self.isVisible() and (self._stale or not self._is_whole):
            if self._stale:
                wanted = [agent.agent_id for agent in document.agents if agent.agent_id in self._stale]
                shares = await deriver.derive(shares_of, wanted)
                if shares is not None:
                    self._shares.update(shares)
                    self._stale -= shares.keys()
                    self._show_cards()
                continue
            together = await deriver.derive(rights_together)
            if together is not None:
                risks, picture = together
                self._is_whole = True
                self.risks.set_rows(risks)
                self._risk_stack.setCurrentIndex(0 if risks else 1)
                self.rights.show_picture(picture)

    def _show_cards(self) -> None:
        agents = [agent.agent_id for agent in self._context.document.agents]
        cards = [AgentCard(name, self._shares.get(name), self._calls.get(name, {})) for name in agents]
        self.cards.set_rows(cards)

    def _show_calls(self, calls: Tally) -> None:
        self._calls = calls
        self._show_cards()
        self.notices.set_calls(calls)

    # where it leads

    def _show_agent(self, index: QModelIndex) -> None:
        self._context.selection.choose_agent(index.data())
        self._context.navigator.go_to_page("agents")

    def _show_risk(self, index: QModelIndex) -> None:
        risk = index.data(ROW)
        if isinstance(risk, Risk):
            self._context.navigator.go_to_tool(risk.agents[0], risk.tool, risk.operation or None)
