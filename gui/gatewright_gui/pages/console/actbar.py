"""The buttons under the request: decide, run, cancel, the copy, live mode. They send nothing by themselves."""

from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QStackedWidget, QWidget

from gatewright_gui.pages.console.runbutton import RunButton
from gatewright_gui.qt.look import current_look, tie_icon


class ActBar(QWidget):
    """Cancel stands where Reset copy is, while a call is under way."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.decide = _button(
            "Decide", "console.decide", "Ask the gate, without any effect (Ctrl+Return)", "shield-check"
        )
        self.run = RunButton()
        self.cancel = _button("Cancel", "console.cancel", "Give the call up", "circle-stop")
        self.reset_copy = _button("Reset copy", "console.resetcopy", "", None)
        self.reset_copy.setProperty("kind", "link")
        self.live = _button("Go live", "console.live", "Run in the real workspace (Ctrl+Shift+L)", None)
        self.live.setProperty("kind", "danger")
        self._lay_out()

    def show_state(self, *, busy: bool, can_call: bool, has_copy: bool, is_live: bool, is_open: bool) -> None:
        """What can be done now."""
        for button in (self.decide, self.run):
            button.setEnabled(can_call and not busy)
        self._ending.setCurrentWidget(self.cancel if busy else self.reset_copy)
        self.reset_copy.setEnabled(has_copy and not busy)
        self.reset_copy.setHidden(is_live)
        self.live.setHidden(is_live)
        self.live.setEnabled(not busy and is_open)

    def show_way(self, *, elsewhere: bool, live: bool) -> None:
        """Where a run is made: `elsewhere`: in the program that has the tool, so that it is decided only."""
        self.run.say(elsewhere=elsewhere, live=live)
        self.decide.setHidden(elsewhere)  # there would be two that do the same

    def _lay_out(self) -> None:
        tokens = current_look().tokens
        self._ending = QStackedWidget()
        for part in (self.cancel, self.reset_copy):
            self._ending.addWidget(part)
        self._ending.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        row = QHBoxLayout(self)
        row.setContentsMargins(tokens.space_2, tokens.space_2, tokens.space_2, tokens.space_2)
        row.setSpacing(tokens.space_2)
        row.addWidget(self.decide)
        row.addWidget(self.run)
        row.addStretch(1)
        row.addWidget(self.live)
        row.addWidget(self._ending)


def _button(text: str, name: str, tip: str, icon: str | None) -> QPushButton:
    button = QPushButton(text)
    button.setObjectName(name)
    button.setAccessibleName(text)
    button.setToolTip(tip)
    button.setAutoDefault(False)
    if icon is not None:
        tie_icon(button, icon)
    return button
