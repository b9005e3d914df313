"""The choice of a preset for one or several agents. It does not know what a preset writes."""

from PySide6.QtWidgets import QButtonGroup, QRadioButton, QVBoxLayout, QWidget

from gatewright.policy.preset import Preset
from gatewright_gui.models.agentchoice import AgentChoiceModel
from gatewright_gui.pages.agents.rights_dialog import RightsDialog
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.verbs.presets import PresetPlan

PRESETS: tuple[tuple[Preset, str, str], ...] = (
    (Preset.EVERYTHING, "&Everything", "all, and none asks first"),
    (Preset.STANDARD, "&Standard", "all; privileged ones ask first"),
    (Preset.READ_ONLY, "&Read only", "only what reads"),
    (Preset.NOTHING, "&Nothing", "no operation at all"),
)


class PresetDialog(RightsDialog):
    """Begins with a preset chosen."""

    def __init__(self, parent: QWidget | None, agents: AgentChoiceModel, preset: Preset) -> None:
        super().__init__(parent, "Preset", "Apply", agents)
        self._buttons_of: dict[Preset, QRadioButton] = {}
        group = QButtonGroup(self)
        box = QWidget()
        column = QVBoxLayout(box)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for one, text, says in PRESETS:
            button = QRadioButton(text)
            button.setObjectName(f"rights.preset.{one.name.lower()}")
            button.setAccessibleDescription(says)
            button.setChecked(one is preset)
            group.addButton(button)
            note = Label(says)
            note.setProperty("kind", "small")
            note.setIndent(22)
            column.addWidget(button)
            column.addWidget(note)
            column.addSpacing(current_look().tokens.space_1)
            self._buttons_of[one] = button
        keeps = Label("Limits and every other rule stay.")
        keeps.setProperty("kind", "small")
        column.addWidget(keeps)
        self.lay_out(box)
        group.buttonClicked.connect(self.choose)
        self._buttons_of[preset].setFocus()

    @property
    def preset(self) -> Preset:
        """The chosen one."""
        return next(preset for preset, button in self._buttons_of.items() if button.isChecked())

    def plan(self) -> PresetPlan:
        """The chosen preset for the chosen agents."""
        return PresetPlan(self.preset, self.agents.chosen)
