"""A line that says why a call of the named tool comes to nothing, where that is known before. It decides nothing."""

from PySide6.QtWidgets import QHBoxLayout, QWidget

from gatewright_gui.pages.console.toolchoice import ToolChoice
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget import IconLabel, ProseLine


class ToolNote(QWidget):
    """Hidden for a tool that the agent sees."""

    def __init__(self) -> None:
        super().__init__()
        tokens = current_look().tokens
        self._icon = IconLabel("eye-off", "ask", size=14)
        self._said = ProseLine()
        self._said.setObjectName("console.note")
        row = QHBoxLayout(self)
        row.setContentsMargins(tokens.space_2, 0, tokens.space_2, tokens.space_2)
        row.setSpacing(tokens.space_2)
        row.addWidget(self._icon)
        row.addWidget(self._said, 1)
        self.hide()

    @property
    def text(self) -> str:
        """What it says."""
        return self._said.text

    def tell_of(self, choice: ToolChoice) -> None:
        """Look at what is named."""
        tool = choice.tool
        is_named = bool(choice.name) and choice.is_known
        said = "no tool has this name" if tool is None and is_named else ""
        if tool is not None and tool.hidden is not None:
            said = f"not shown to the model: {tool.hidden}"
        self._icon.set_icon("circle-help" if tool is None else "eye-off", "ask")
        self._said.set_text(said)
        self.setVisible(bool(said))
