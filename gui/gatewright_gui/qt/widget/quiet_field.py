"""A field that looks like text until the mouse or the cursor is in it; what does not fit is shortened at the end."""

from PySide6.QtCore import QRect
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QLineEdit, QStyle, QStyleOptionFrame, QWidget

from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import LEFT, line_text

QUIET = "QLineEdit:!focus:!hover { border-color: transparent; background: transparent; }"


class QuietField(QLineEdit):
    """The maker puts the whole text into the tooltip. ``is_framed``: looks like a field all the time."""

    def __init__(self, parent: QWidget | None = None, *, is_framed: bool = False) -> None:
        super().__init__(parent)
        if not is_framed:
            self.setStyleSheet(QUIET)

    @property
    def shown_text(self) -> str:
        """The text that fits while one is not typing."""
        return line_text(self.fontMetrics(), self.text(), self._inside().width())

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """The field itself while one types or nothing is in it, else its frame with what fits, from the left."""
        if self.hasFocus() or not self.text():
            super().paintEvent(event)
            return
        option = self._option()
        painter = QPainter(self)
        self.style().drawPrimitive(QStyle.PrimitiveElement.PE_PanelLineEdit, option, painter, self)
        painter.setPen(QColor(current_look().palette.text if self.isEnabled() else current_look().palette.disabled))
        flags = LEFT
        painter.drawText(self._inside(), flags, self.shown_text)

    def _option(self) -> QStyleOptionFrame:
        option = QStyleOptionFrame()
        self.initStyleOption(option)
        return option

    def _inside(self) -> QRect:
        inside = self.style().subElementRect(QStyle.SubElement.SE_LineEditContents, self._option(), self)
        return inside.adjusted(2, 0, -2, 0)
