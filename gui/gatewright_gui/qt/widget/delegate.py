"""What paints the cells of views: the words of strangers and their tooltips are shown as plain text."""

from PySide6.QtCore import QEvent, QLocale, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QHelpEvent, QPainter
from PySide6.QtWidgets import QAbstractItemView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QToolTip, QWidget

from gatewright_gui.qt.plaintext import LONGEST_LINE, label_text, tip_text

Index = QModelIndex | QPersistentModelIndex


class Delegate(QStyledItemDelegate):
    """What a delegate paints by itself it passes through `plaintext`."""

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
