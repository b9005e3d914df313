"""Draws an agent in the list: name, and its description below. It does not know what the agent may do."""

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QColor, QFont, QPainter
from PySide6.QtWidgets import QLineEdit, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from gatewright_gui.models.agents import DESCRIPTION
from gatewright_gui.qt.look import current_look

Index = QModelIndex | QPersistentModelIndex
ROW_HEIGHT = 44
_PAD = 10


class AgentDelegate(QStyledItemDelegate):
    """Two lines per agent; the name is edited in place."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        """Room for two lines."""
        del option, index
        return QSize(120, ROW_HEIGHT)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Ground, name, description."""
        look, rect = current_look(), _rect(option)
        paint_ground(painter, option, index)
        painter.save()
        words = rect.adjusted(_PAD, 5, -6, -5)
        bold = QFont(painter.font())
        bold.setWeight(QFont.Weight.DemiBold)
        painter.setFont(bold)
        painter.setPen(QColor(look.palette.text))
        _line(painter, QRect(words.left(), words.top(), words.width(), 18), str(index.data()))
        painter.setFont(look.small_font)
        painter.setPen(QColor(look.palette.muted))
        second = QRect(words.left(), words.top() + 18, words.width(), 15)
        _line(painter, second, str(index.data(DESCRIPTION) or "no description"))
        painter.restore()

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:  # noqa: N802
        """A field over the name."""
        del option, index
        field = QLineEdit(parent)
        field.setObjectName("agents.list.name")
        field.setAccessibleName("Agent name")
        field.setMaxLength(64)
        return field

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        """Over the whole row."""
        del index
        rect = _rect(option)
        editor.setGeometry(QRect(rect.left() + 4, rect.top() + 8, rect.width() - 8, 28))


def paint_ground(painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
    """The ground of a row: hover, selection, focus, as the style sheet says."""
    del index
    widget: QWidget | None = getattr(option, "widget", None)
    if widget is not None:
        widget.style().drawPrimitive(QStyle.PrimitiveElement.PE_PanelItemViewItem, option, painter, widget)


def _rect(option: QStyleOptionViewItem) -> QRect:
    rect: QRect = getattr(option, "rect")  # noqa: B009
    return rect


def _line(painter: QPainter, place: QRect, text: str) -> None:
    cut = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, place.width())
    painter.drawText(place, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, cut)
