"""Below the tree: why the current row is as it is, its limits, and what the agent is granted. It decides nothing."""

from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QStackedWidget, QWidget

from gatewright.workspace.api import Address, ToolFacts, pick_tools
from gatewright_gui.pages.access.tools.why_pane import WhyPane
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import aligned, column_of, named, row_of, stretch
from gatewright_gui.qt.widget.segmented import Segmented
from gatewright_gui.session.document import ChangeSet

if TYPE_CHECKING:
    from gatewright_gui.pages.access.tools.agent_rules_pane import AgentRulesPane
    from gatewright_gui.pages.access.tools.limits_pane import LimitsPane

PaneT = TypeVar("PaneT", "LimitsPane", "AgentRulesPane")
PARTS = (
    ("why", mark("Why"), mark("Why the row is as it is")),
    ("limits", mark("Limits"), mark("Calls, pauses, rates and arguments of the row, edited in place")),
    ("agent", mark("Agent"), mark("What the agent is granted, and what asks first")),
)


class DetailPane(QWidget):
    """One part at a time; what is not shown is not worked out, and what was never shown is not made."""

    line_requested = Signal(object)
    """Line of the policy file."""

    def __init__(self, context: PageContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("agents.detail")
        self._context = context
        self._row: tuple[str | None, str | None] = (None, None)
        self._stale: set[str] = {"limits", "agent"}
        self.parts = named(Segmented(tr("Part")), "agents.detail.parts")
        self.why = WhyPane()
        self._headers = QStackedWidget()
        self._bodies = QStackedWidget()
        self._lay_out()
        self._connect()
        self.parts.keep("agents.detail", context.sizes)
        self.show_row(context.selection.tool, context.selection.operation)

    # layout

    def _lay_out(self) -> None:
        for key, text, tip in PARTS:
            self.parts.add_segment(key, tr(text), tooltip=tr(tip))
        self.why.header.set_title("")
        self._headers.addWidget(self.why.header)
        self._bodies.addWidget(self.why)
        for _ in PARTS[1:]:
            self._headers.addWidget(QWidget())
            self._bodies.addWidget(QWidget())
        parts = aligned(self.parts, Qt.AlignmentFlag.AlignVCenter)
        top = row_of(parts, stretch(self._headers), margins=(1, 0, 0, 0))
        column_of(top, stretch(self._bodies), into=self)

    def _connect(self) -> None:
        context = self._context
        self.parts.current_changed.connect(self._show_part)
        self.why.line_requested.connect(self.line_requested)
        context.document.closed.connect(self._let_go)
        context.document.opened.connect(self._all_stale)
        context.document.policy_changed.connect(self._policy_changed)
        context.selection.agent_changed.connect(self._all_stale)
        context.selection.tool_changed.connect(self._follow)

    # parts

    @cached_property
    def limits(self) -> "LimitsPane":
        """The limits of the row; made when they are first wanted."""
        from gatewright_gui.pages.access.tools.limits_pane import LimitsPane

        return self._put_in(1, LimitsPane(self._context))

    @cached_property
    def agent(self) -> "AgentRulesPane":
        """What the agent is granted; made when it is first wanted."""
        from gatewright_gui.pages.access.tools.agent_rules_pane import AgentRulesPane

        return self._put_in(2, AgentRulesPane(self._context))

    def _put_in(self, at: int, made: PaneT) -> PaneT:
        """In place of what kept its place, in the order of the Tab key as well."""
        made.line_requested.connect(self.line_requested)
        for stack, part in ((self._headers, made.header), (self._bodies, made)):
            empty = stack.widget(at)
            stack.insertWidget(at, part)
            if empty is not None:
                _follow_with_tab(empty, part)
                stack.removeWidget(empty)
                empty.deleteLater()
        return made

    # what is shown

    @property
    def part(self) -> str:
        """Key of the part that is shown."""
        return self.parts.current or "why"

    def show_part(self, key: str) -> None:
        """Show a part: `why`, `limits` or `agent`."""
        self.parts.set_current(key)

    def show_rule(self, address: Address) -> None:
        """Make a rule of the part that is shown the current one, ready to be edited."""
        if self.part == "limits":
            self.limits.show_rule(address)
        elif self.part == "agent":
            from gatewright_gui.pages.access.tools.agent_rules import Column

            self.agent.view.show_row(self.agent.model.row_of(address), Column.VALUE)

    def show_row(self, tool: str | None, operation: str | None) -> None:
        """Another row of the tree is current."""
        self._row = (tool, operation)
        self._stale |= {"limits", "agent"}
        self._refresh()

    def _follow(self, _tool: object = None) -> None:
        self.show_row(self._context.selection.tool, self._context.selection.operation)

    def _show_part(self, key: str) -> None:
        self._refresh()
        at = [name for name, _, _ in PARTS].index(key)
        self._headers.setCurrentIndex(at)
        self._bodies.setCurrentIndex(at)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        """What was put off while nobody looked."""
        super().showEvent(event)
        self._refresh()

    def _policy_changed(self, changes: ChangeSet) -> None:
        if changes.everything or changes.sources or self._context.selection.agent_id in changes.agents:
            self._all_stale()

    def _let_go(self) -> None:
        """Of a workspace that is gone nothing stays, in what is not shown either."""
        self._row = (None, None)
        for part in {"limits", "agent"} & self.__dict__.keys():
            self._show_in(part)
        self._all_stale()

    def _all_stale(self, _why: object = None) -> None:
        self._stale |= {"limits", "agent"}
        self._refresh()

    def _refresh(self) -> None:
        if self.part not in self._stale:
            return
        self._stale.discard(self.part)
        self._show_in(self.part)

    def _show_in(self, part: str) -> None:
        agent = self._context.document.policy.agents.get(self._context.selection.agent_id or "")
        tool, operation = self._row
        if part == "limits":
            self.limits.header.set_note(f"{tool} > {operation}" if operation else tool or "")
            self.limits.show_row(agent, self._facts(tool), operation)
        else:
            self.agent.show_agent(agent, tool, operation)

    def _facts(self, tool: str | None) -> ToolFacts | None:
        """Of the major that the agent has; its rights are not wanted, which can take long."""
        document = self._context.document
        agent = document.policy.agents.get(self._context.selection.agent_id or "")
        named = [facts for facts in document.catalog if facts.name == tool]
        return pick_tools(named, agent.tools).get(tool) if agent is not None and tool is not None else None


def _follow_with_tab(place: QWidget, part: QWidget) -> None:
    """What a part holds comes where its place is; Qt orders only widgets that take the focus."""
    before = place.previousInFocusChain()
    while before is not None and before is not place and before.focusPolicy() == Qt.FocusPolicy.NoFocus:
        before = before.previousInFocusChain()
    for widget in part.findChildren(QWidget):
        if before is not None and widget.focusPolicy() != Qt.FocusPolicy.NoFocus:
            QWidget.setTabOrder(before, widget)
            before = widget
