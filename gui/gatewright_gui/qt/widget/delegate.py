"""What paints the cells of views: the words of strangers and their tooltips are shown as plain text."""

from typing import Any

from PySide6.QtCore import QEvent, QLocale, QSize, Qt
from PySide6.QtGui import QFont, QHelpEvent, QPainter
from PySide6.QtWidgets import QAbstractItemView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QToolTip, QWidget

from gatewright_gui.qt.look import Role, current_look, role_colour
from gatewright_gui.qt.plaintext import LONGEST_LINE, label_text, tip_text
from gatewright_gui.qt.table_model import Index


class Delegate(QStyledItemDelegate):
    """A delegate that passes what it paints by itself through `plaintext`."""

    def displayText(self, value: object, locale: QLocale | QLocale.Language) -> str:  # noqa: N802
        """The text of a cell."""
        return label_text(value, LONGEST_LINE) if isinstance(value, str) else super().displayText(value, locale)

    def helpEvent(  # noqa: N802
        self, event: QHelpEvent, view: QAbstractItemView, option: QStyleOptionViewItem, index: Index
    ) -> bool:
        """The tooltip of a cell."""
        text = index.data(Qt.ItemDataRole.ToolTipRole) if event.type() == QEvent.Type.ToolTip else None
        if not isinstance(text, str):
            return super().helpEvent(event, view, option, index)
        QToolTip.showText(event.globalPos(), tip_text(text), view.viewport(), view.visualRect(index))
        return True


def paint_ground(painter: QPainter, option: QStyleOptionViewItem) -> None:
    """The ground of a cell: hover, selection, focus, as the style sheet says."""
    widget: QWidget | None = getattr(option, "widget", None)
    if widget is not None:
        widget.style().drawPrimitive(QStyle.PrimitiveElement.PE_PanelItemViewItem, option, painter, widget)


def tint(item: Any, role: Role) -> None:
    """Words in a colour, whether the row is chosen or not. `item`: of the style, its members are untyped."""
    for part in (item.palette.ColorRole.Text, item.palette.ColorRole.HighlightedText):
        item.palette.setColor(part, role_colour(role))


def put_icon(item: Any, name: str, role: Role, size: int = 0) -> None:
    """An icon before the words, a small one unless its `size` in pixels is given."""
    size = size or current_look().tokens.small_icon_size
    item.icon = current_look().icon(name, role)
    item.decorationSize = QSize(size, size)
    item.features |= QStyleOptionViewItem.ViewItemFeature.HasDecoration


def embolden(item: Any) -> None:
    """Words that stand out."""
    item.font = QFont(item.font)
    item.font.setWeight(QFont.Weight.DemiBold)
