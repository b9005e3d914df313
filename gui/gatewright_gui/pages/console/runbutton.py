"""The button that runs a call, and says where: in a copy, live, or in another program. It starts nothing."""

from PySide6.QtWidgets import QPushButton, QWidget

from gatewright_gui.qt.look import tie_icon

RUN, RUN_TIP = (
    "Run in copy",
    "Send the call through the gate, in a disposable copy of the workspace (Ctrl+Shift+Return)",
)
LIVE, LIVE_TIP = (
    "Run LIVE",
    "Send the call through the gate, in the real workspace: what it changes stays changed (Ctrl+Shift+Return)",
)
ELSEWHERE, ELSEWHERE_TIP = (
    "Decide, not run",
    "The program that has this tool runs it: here the call is decided only (Ctrl+Shift+Return)",
)


class RunButton(QPushButton):
    """The page's main button."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("console.run")
        self.setAutoDefault(False)
        self.setProperty("kind", "primary")
        self.say(elsewhere=False)

    def say(self, *, elsewhere: bool, live: bool = False) -> None:
        """Say whether what is chosen is run here, and whether that is real."""
        words, tip = (ELSEWHERE, ELSEWHERE_TIP) if elsewhere else (LIVE, LIVE_TIP) if live else (RUN, RUN_TIP)
        self.setText(words)
        self.setAccessibleName(words)
        self.setToolTip(tip)
        self.setProperty("kind", "live" if live and not elsewhere else "primary")
        self.style().unpolish(self)
        self.style().polish(self)
        tie_icon(self, "shield-check" if elsewhere else "play", "on_accent")
