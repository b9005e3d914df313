"""The buttons under the request: decide, run, cancel, live mode. They send nothing by themselves."""

from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from gatewright_gui.pages.console.runbutton import RunButton
from gatewright_gui.qt.look import current_look, tie_icon


class ActBar(QWidget):
    """Cancel has a place of its own, empty while no call is under way: an impatient click hits nothing else."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.decide = _button(
            "Decide", "console.decide", "Ask the gate, without any effect (Ctrl+Return)", "shield-check"
        )
        self.run = RunButton()
        self.cancel = _button("Cancel", "console.cancel", "Give the call up (Esc)", "circle-stop")
        self.live = _button("Go live", "console.live", "Run in the real workspace (Ctrl+Shift+L)", None)
        self.live.setProperty("kind", "danger")
        self._lay_out()

    def show_state(self, *, busy: bool, can_call: bool, is_live: bool, is_open: bool) -> None:
        """What can be done now."""
        for button in (self.decide, self.run):
            button.setEnabled(can_call and not busy)
        self.cancel.setVisible(busy)
        self.live.setHidden(is_live)
        self.live.setEnabled(not busy and is_open)

    def show_way(self, *, elsewhere: bool, live: bool) -> None:
        """Where a run is made: `elsewhere`: in the program that has the tool, so that it is decided only."""
        self.run.say(elsewhere=elsewhere, live=live)
        self.decide.setHidden(elsewhere)  # there would be two that do the same

    def _lay_out(self) -> None:
        tokens = current_look().tokens
        policy = self.cancel.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.cancel.setSizePolicy(policy)
        row = QHBoxLayout(self)
        row.setContentsMargins(tokens.space_2, tokens.space_2, tokens.space_2, tokens.space_2)
        row.setSpacing(tokens.space_2)
        row.addWidget(self.decide)
        row.addWidget(self.run)
        row.addWidget(self.cancel)
        row.addStretch(1)
        row.addWidget(self.live)


def _button(text: str, name: str, tip: str, icon: str | None) -> QPushButton:
    button = QPushButton(text)
    button.setObjectName(name)
    button.setAccessibleName(text)
    button.setToolTip(tip)
    button.setAutoDefault(False)
    if icon is not None:
        tie_icon(button, icon)
    return button
