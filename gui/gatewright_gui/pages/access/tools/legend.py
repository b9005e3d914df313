"""The meaning of boxes, marks and icons of the tree: a button that opens the list of them."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMenu, QToolButton

from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import named
from gatewright_gui.qt.look import CheckState, Role, current_look, tie_icon

BOXES = (
    (CheckState.ON, mark("on")),
    (CheckState.MIXED, mark("on in part")),
    (CheckState.OFF, mark("off: nobody ticked it")),
    (CheckState.BLOCKED, mark("no effect: ticked, and turned off by another layer")),
)
MARKS: tuple[tuple[str, Role, str], ...] = (
    ("lock", "ask", mark("asks first, and the switch cannot change that")),
    ("trash", "deny", mark("deletes")),
    ("send", "deny", mark("sends out")),
    ("terminal", "deny", mark("runs commands")),
    ("pencil", "ask", mark("an operation that is free text")),
    ("terminal", "ask", mark("open-ended: it may do what nobody listed")),
    ("circle-help", "ask", mark("operations that were guessed; look at them")),
)


class LegendButton(QToolButton):
    """A button that a click, Space or Down opens."""

    def __init__(self, name: str) -> None:
        super().__init__()
        named(self, name, spoken=tr("Legend"), tip=tr("What the boxes and marks mean"))
        tie_icon(self, "circle-help", "muted")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.setProperty("kind", "plainmenu")
        menu = QMenu(self)
        menu.aboutToShow.connect(self._fill)
        self.setMenu(menu)

    def _fill(self) -> None:
        menu = self.menu()
        menu.clear()
        for state, words in BOXES:
            menu.addAction(current_look().check_icon(state), tr(words))
        menu.addSeparator()
        for icon, role, words in MARKS:
            tie_icon(menu.addAction(tr(words)), icon, role)
