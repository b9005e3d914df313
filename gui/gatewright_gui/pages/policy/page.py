"""What holds for all agents at once: the policy rules."""

from PySide6.QtWidgets import QWidget

from gatewright_gui.pages.page import Page, PageContext
from gatewright_gui.pages.policy.rules_pane import RulesPane
from gatewright_gui.qt.layout import column_of, stretch


class PolicyPage(Page):
    """The rules in their order, and the chosen one as a form."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self.setObjectName("policy")
        self.rules = RulesPane(context)
        column_of(stretch(self.rules), into=self)

    def main_view(self) -> QWidget:
        """The rules, or the button that makes the first one."""
        return self.rules.view if self.rules.view.isVisibleTo(self) else self.rules.empty.action_button
