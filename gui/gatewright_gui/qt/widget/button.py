"""A button that is only an icon, with a name for those who do not see it."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QToolButton, QWidget

from gatewright_gui.qt.look import Role, tie_icon

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
