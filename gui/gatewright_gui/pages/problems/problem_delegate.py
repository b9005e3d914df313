"""Draws a problem's sentence behind the icon of its severity. It does not know what to do about it."""

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QStyle, QStyleOptionViewItem, QWidget

from gatewright_gui.models.problems import ABOUT, IS_ERROR, MESSAGE, PLACE
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.prose import paint_prose
from gatewright_gui.qt.widget.delegate import Delegate

Index = QModelIndex | QPersistentModelIndex


class ProblemDelegate(Delegate):
    """Icon and words; what one can go to in the colour of links."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Ground, icon, words."""
        look = current_look()
        rect: QRect = getattr(option, "rect")  # noqa: B009
        widget: QWidget | None = getattr(option, "widget", None)
        if widget is not None:
            widget.style().drawPrimitive(QStyle.PrimitiveElement.PE_PanelItemViewItem, option, painter, widget)
        painter.save()
        left = rect.left() + 8
        if index.column() == MESSAGE:
            icon, role = ("circle-alert", "deny") if index.data(IS_ERROR) else ("triangle-alert", "ask")
            look.icon(icon, role).paint(painter, QRect(left, rect.top() + (rect.height() - 16) // 2, 16, 16))
            left += 24
        colours = {MESSAGE: look.palette.text, ABOUT: look.palette.accent.fg, PLACE: look.palette.accent.fg}
        painter.setPen(QColor(colours.get(index.column(), look.palette.muted)))
        words = QRect(left, rect.top(), rect.right() - left - 4, rect.height())
        paint_prose(painter, words, str(index.data() or ""))
        painter.restore()
