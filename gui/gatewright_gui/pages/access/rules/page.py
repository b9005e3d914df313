"""The tab Rules: what the chosen agent is granted and the policy rules that touch it; of everyone all policy rules and
the compositions.
"""

from functools import cached_property

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QStackedWidget, QWidget

from gatewright.workspace.api import Address, CapabilityKind, PolicyRule
from gatewright_gui.pages.access.rules.compositions_pane import CompositionsPane
from gatewright_gui.pages.access.rules.rules_pane import RulesPane
from gatewright_gui.pages.access.tools.agent_rules import Column
from gatewright_gui.pages.access.tools.agent_rules_pane import AgentRulesPane
from gatewright_gui.pages.page import Page, PageContext
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stretch
from gatewright_gui.qt.plaintext import label_text
from gatewright_gui.qt.widget.button import Segmented
from gatewright_gui.qt.widget.splitter import HANDLE_WIDTH, Splitter

_LONGEST_NAME = 40
_LEAST, _MOST = 0.3, 0.6
"""The share of the height for what an agent is granted, if it needs so much: beside a rule's form, and without."""


class RulesPage(Page):
    """Of an agent two panes, one below the other; of everyone two parts, of which one is shown."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self.setObjectName("policy")
        self._context = context
        self.part = named(Segmented(tr("What to show of the policy")), "policy.part")
        tip = tr("What is denied, or asks first, for several agents and tools")
        self.part.add_segment("rules", tr("Rules"), tooltip=tip)
        tip = tr("Tools made of calls of other tools")
        self.part.add_segment("compositions", tr("Compositions"), tooltip=tip)
        self._parts = holding(row_of(self.part, stretch(), margins=(2, 1)))
        self._own_column = column_of()
        self._own = holding(self._own_column)
        self.rules = RulesPane(context)
        self._stack = QStackedWidget()
        self._stack.addWidget(self.rules)
        self._split = Splitter(Qt.Orientation.Vertical, "rules.agent")
        for pane in (self._own, self._stack):
            self._split.addWidget(pane)
        column_of(self._parts, stretch(self._split), into=self)
        self._connect()
        self._follow()

    def _connect(self) -> None:
        context, document = self._context, self._context.document
        self.part.current_changed.connect(self._choose_part)
        self.rules.opened.connect(self._share_room)
        context.navigator.policy_rule_requested.connect(self._show_rule)
        context.navigator.new_policy_rule_requested.connect(self._begin_rule)
        context.navigator.composition_requested.connect(self._show_composition)
        context.navigator.agent_requested.connect(self._show_agent)
        context.navigator.grant_requested.connect(self._ask_grant)
        chosen = context.selection
        for signal in (document.opened, document.closed, document.policy_changed):
            signal.connect(self._follow)
        for signal in (chosen.agent_changed, chosen.tool_changed, chosen.everyone_changed):
            signal.connect(self._follow)

    def page_shown(self) -> None:
        """Another agent may have been chosen meanwhile."""
        self._follow()

    # whose rules are shown

    @cached_property
    def agent(self) -> AgentRulesPane:
        """The pane of what the chosen agent is granted, and what asks first; made when first looked at."""
        made = AgentRulesPane(self._context)
        made.line_requested.connect(self._context.navigator.go_to_line)
        made.header.set_note(tr("access that its tools need, and when it asks first"))
        for signal in (made.model.rowsInserted, made.model.rowsRemoved):
            signal.connect(self._share_room)
        QTimer.singleShot(0, self, self._share_room)  # once the style has given it its heights
        self._own_column.addWidget(made.header)
        self._own_column.addWidget(made, 1)
        return made

    def _follow(self, _why: object = None) -> None:
        """Show the rules of the chosen agent, or of everyone; while nobody looks only let go of what is gone."""
        selection = self._context.selection
        agent = self._context.document.policy.agents.get(selection.agent_id or "")
        if selection.is_everyone:
            agent = None
        if agent is not None and not self.isVisible():
            return
        if agent is not None or "agent" in self.__dict__:
            self.agent.show_agent(agent, selection.tool, selection.operation)
        if agent is not None:
            name = label_text(agent.agent_id, _LONGEST_NAME, keep="")
            self.agent.header.set_title(tr("What {agent} may reach", agent=name))
            self._stack.setCurrentWidget(self.rules)
        else:
            self._choose_part(self.part.current)
        self._own.setVisible(agent is not None)
        self._parts.setVisible(agent is None)
        self.rules.show_agent(agent.agent_id if agent is not None else None)
        self._share_room()

    def _share_room(self, *_why: object) -> None:
        """Give what the agent is granted the room of its rows, as far as a rule that is open leaves it."""
        if "agent" not in self.__dict__:
            return
        whole, is_open = self._split.height() - HANDLE_WIDTH, self.rules.is_open
        left = whole - self.rules.wanted_height if is_open else 0
        above = min(self.agent.wanted_height, max(left, int(whole * (_LEAST if is_open else _MOST))))
        self._split.setSizes([above, whole - above])

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Share the room out again."""
        super().resizeEvent(event)
        self._share_room()

    def main_view(self) -> QWidget:
        """Return what the agent is granted; the rules, or the button that makes the first; the compositions."""
        if self._own.isVisibleTo(self):
            return self.agent.view
        if self.part.current == "compositions":
            return self.compositions.main_view()
        return self.rules.view if self.rules.view.isVisibleTo(self) else self.rules.empty.action_button

    def _show_agent(self, agent_id: str, rule: Address | None) -> None:
        """Show what an agent is granted, and make a row of that the current one."""
        self._context.selection.show_everyone(on=False)
        self._context.selection.choose_agent(agent_id)
        self._follow()
        self.agent.view.show_row(self.agent.model.row_of(rule) if rule is not None else None, Column.VALUE)

    def _ask_grant(self, agent_id: str, kind: CapabilityKind) -> None:
        """Open the form of a grant."""
        self._show_agent(agent_id, None)
        self.agent.grant(kind)

    # what everyone shares

    @cached_property
    def compositions(self) -> CompositionsPane:
        """Made when it is first looked at."""
        return CompositionsPane(self._context)

    def _choose_part(self, key: object) -> None:
        pane = self.compositions if key == "compositions" else self.rules
        if self._stack.indexOf(pane) < 0:
            self._stack.addWidget(pane)
        self._stack.setCurrentWidget(pane)

    def _show_rule(self, index: int) -> None:
        self.part.set_current("rules")
        self.rules.show_rule(index)

    def _show_composition(self, name: str) -> None:
        self._context.selection.show_everyone(on=True)
        self.part.set_current("compositions")
        self.compositions.show_composition(name)

    def _begin_rule(self, rule: PolicyRule, field: str) -> None:
        self.part.set_current("rules")
        self.rules.add(rule)
        self.rules.form.when.add(field)
