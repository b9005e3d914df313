"""Buttons: with words, as a link, or only an icon, with a name for those who do not see it."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QToolButton, QWidget

from gatewright_gui.qt.layout import named
from gatewright_gui.qt.look import Role, tie_icon

Act = Callable[[], object]
_SMALLEST = 24


class IconButton(QToolButton):
    """A flat button with a tooltip and an accessible name."""

    def __init__(self, icon: str, name: str, *, role: Role = "muted", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setToolTip(name)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumSize(_SMALLEST, _SMALLEST)
        tie_icon(self, icon, role)

    def set_icon(self, icon: str, name: str, role: Role = "muted") -> None:
        """Show another icon and name."""
        self.setToolTip(name)
        self.setAccessibleName(name)
        tie_icon(self, icon, role)


def text_button(text: str, name: str, act: Act, tip: str = "", *, spoken: str = "", kind: str = "") -> QPushButton:
    """`name`: of the object; `spoken`: its accessible name where the text alone says too little; `kind`: its style."""
    button = named(QPushButton(text), name, spoken=spoken or text, tip=tip, kind=kind)
    button.setAutoDefault(False)
    button.clicked.connect(lambda _=False: act())
    return button


def icon_button(icon: str, words: str, name: str, act: Act) -> IconButton:
    """A flat button without text; `words` are its tooltip and its accessible name."""
    button = named(IconButton(icon, words), name)
    button.clicked.connect(lambda _=False: act())
    return button
