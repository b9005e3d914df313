"""A label that shows one tinted icon and follows the theme."""

from PySide6.QtCore import QEvent, QSize
from PySide6.QtGui import QIcon, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from gatewright_gui.qt.look import Role, current_look


class IconLabel(QWidget):
    """An icon of a fixed size, sharp at every scale."""

    def __init__(self, name: str, role: Role = "text", *, size: int = 16, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name = name
        self._role: Role = role
        self.setFixedSize(QSize(size, size))
        current_look().changed.connect(self.update)

    def set_icon(self, name: str, role: Role) -> None:
        """Show another icon."""
        self._name, self._role = name, role
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Draw the icon of the theme that is on."""
        del event
        painter = QPainter(self)
        mode = QIcon.Mode.Normal if self.isEnabled() else QIcon.Mode.Disabled
        current_look().icon(self._name, self._role).paint(painter, self.rect(), mode=mode)

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802
        """Redraw when switched on or off."""
        super().changeEvent(event)
        self.update()
