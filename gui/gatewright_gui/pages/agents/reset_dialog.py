"""What resetting tools of one agent would change, before it is done. It does not know what a reset writes."""

from collections.abc import Sequence

from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from gatewright_gui.models.agentchoice import AgentChoiceModel
from gatewright_gui.pages.agents.rights_dialog import RightsDialog
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.verbs.presets import ResetPlan

_NAMED = 12


class ResetDialog(RightsDialog):
    """For one agent and the tools that were chosen; nothing else is asked."""

    def __init__(self, parent: QWidget | None, agents: AgentChoiceModel, tools: Sequence[str]) -> None:
        super().__init__(parent, "Reset to defaults", "Reset", agents)
        self._tools = tuple(tools)
        box = QWidget()
        column = QVBoxLayout(box)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(current_look().tokens.space_2)
        column.addWidget(_label(f"For {', '.join(agents.chosen)}:"))
        column.addWidget(_label(_named(self._tools), "rights.tools"))
        rules = "Gone are the rule that lists the operations of a tool, and the keys that say whether it asks."
        column.addWidget(_label(rules, kind="small"))
        opens = "A tool that is on has every operation on then, so far as no other layer turns it off. Limits stay."
        column.addWidget(_label(opens, kind="small"))
        self.lay_out(box)
        self.hide_agents()

    def plan(self) -> ResetPlan:
        """The tools of the agent."""
        return ResetPlan(self._tools, self.agents.chosen)


def _named(tools: Sequence[str]) -> str:
    more = f", and {len(tools) - _NAMED} more" if len(tools) > _NAMED else ""
    return f"{', '.join(tools[:_NAMED])}{more}"


def _label(text: str, name: str = "", kind: str = "") -> QLabel:
    label = Label(text)
    label.setObjectName(name)
    label.setProperty("kind", kind)
    label.setWordWrap(True)
    return label
