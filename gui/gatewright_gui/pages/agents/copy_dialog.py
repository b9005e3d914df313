"""To whom the rights of an agent are copied, and what goes along. It does not know how they are written."""

from collections.abc import Sequence

from PySide6.QtWidgets import QCheckBox, QLabel, QVBoxLayout, QWidget

from gatewright.policy.copyrights import Along
from gatewright_gui.models.agentchoice import AgentChoiceModel
from gatewright_gui.pages.agents.rights_dialog import RightsDialog
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import tip_text
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.verbs.presets import CopyPlan


class CopyDialog(RightsDialog):
    """Nobody is chosen at first."""

    def __init__(
        self, parent: QWidget | None, source_id: str, agents: AgentChoiceModel, rules_that_stay: Sequence[str] = ()
    ) -> None:
        super().__init__(parent, f"Copy the rights of {source_id}", "Copy", agents)
        self._source_id = source_id
        box = QWidget()
        column = QVBoxLayout(box)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(current_look().tokens.space_1)
        told = Label(f"Tools, operations and what asks first are copied from {source_id}. Also copy:")
        told.setWordWrap(True)
        column.addWidget(told)
        self.limits = _box("&Limits and other rules on tools", "limits", on=True)
        self.sources = _box("&Sources", "sources", on=False)
        self.capabilities = _box("&Capabilities", "capabilities", on=False)
        for one in (self.limits, self.sources, self.capabilities):
            column.addWidget(one)
            one.toggled.connect(self.choose)
        if rules_that_stay:
            column.addWidget(_not_copied(source_id, rules_that_stay))
        self.lay_out(box)
        self.agent_view.setFocus()

    def plan(self) -> CopyPlan:
        """The rights with what goes along, for the chosen agents."""
        along = Along(self.limits.isChecked(), self.sources.isChecked(), self.capabilities.isChecked())
        return CopyPlan(self._source_id, along, self.agents.chosen)


def _not_copied(source_id: str, names: Sequence[str]) -> QLabel:
    """What binds the agent by its name and nobody else: without a word one would think that it goes along."""
    what = "1 policy rule is" if len(names) == 1 else f"{len(names)} policy rules are"
    told = Label(f"Not copied: {what} for {source_id} by name.")
    told.setObjectName("rights.not_copied")
    told.setToolTip(tip_text("\n".join(names)))
    told.setProperty("kind", "small")
    told.setWordWrap(True)
    return told


def _box(text: str, key: str, *, on: bool) -> QCheckBox:
    box = QCheckBox(text)
    box.setObjectName(f"rights.along.{key}")
    box.setChecked(on)
    return box
