"""The tab Rules: what holds for all agents at once, the policy rules and the compositions."""

from functools import cached_property

from PySide6.QtWidgets import QStackedWidget, QWidget

from gatewright.workspace.api import PolicyRule
from gatewright_gui.pages.access.rules.compositions_pane import CompositionsPane
from gatewright_gui.pages.access.rules.rules_pane import RulesPane
from gatewright_gui.pages.page import Page, PageContext
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import column_of, named, row_of, stretch
from gatewright_gui.qt.widget.segmented import Segmented


class RulesPage(Page):
    """Two parts, of which one is shown."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self.setObjectName("policy")
        self._context = context
        self.part = named(Segmented(tr("What to show of the policy")), "policy.part")
        tip = tr("What is denied, or asks first, for several agents and tools")
        self.part.add_segment("rules", tr("Rules"), tooltip=tip)
        tip = tr("Tools made of calls of other tools")
        self.part.add_segment("compositions", tr("Compositions"), tooltip=tip)
        self.rules = RulesPane(context)
        self._stack = QStackedWidget()
        self._stack.addWidget(self.rules)
        column_of(row_of(self.part, stretch(), margins=(2, 1)), stretch(self._stack), into=self)
        self.part.current_changed.connect(self._choose_part)
        context.navigator.policy_rule_requested.connect(self._show_rule)
        context.navigator.new_policy_rule_requested.connect(self._begin_rule)
        context.navigator.composition_requested.connect(self._show_composition)

    @cached_property
    def compositions(self) -> CompositionsPane:
        """Made when it is first looked at."""
        return CompositionsPane(self._context)

    def main_view(self) -> QWidget:
        """Return the rules, or the button that makes the first one; or the list of compositions."""
        if self.part.current == "compositions":
            return self.compositions.main_view()
        return self.rules.view if self.rules.view.isVisibleTo(self) else self.rules.empty.action_button

    def _choose_part(self, key: object) -> None:
        pane = self.compositions if key == "compositions" else self.rules
        if self._stack.indexOf(pane) < 0:
            self._stack.addWidget(pane)
        self._stack.setCurrentWidget(pane)

    def _show_rule(self, index: int) -> None:
        self.part.set_current("rules")
        self.rules.show_rule(index)

    def _show_composition(self, name: str) -> None:
        self.part.set_current("compositions")
        self.compositions.show_composition(name)

    def _begin_rule(self, rule: PolicyRule, field: str) -> None:
        self.part.set_current("rules")
        self.rules.add(rule)
        self.rules.form.when.add(field)
