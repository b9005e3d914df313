"""Draws an agent in the list: name, and its description below. It does not know what the agent may do."""

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QColor, QFont, QKeyEvent, QPainter
from PySide6.QtWidgets import QLineEdit, QStyle, QStyleOptionViewItem, QToolTip, QWidget

from gatewright_gui.models.agents import COUNT, DESCRIPTION, PROBLEMS
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import line_text, tip_text
from gatewright_gui.qt.widget.delegate import Delegate

Index = QModelIndex | QPersistentModelIndex
ROW_HEIGHT = 44
TOLD_MS = 60_000
_PAD = 10


class NameField(QLineEdit):
    """Says while one types whether the name can be had."""

    def __init__(self, refusal: Callable[[str], str], parent: QWidget) -> None:
        super().__init__(parent)
        self._refusal = refusal
        self.refused = ""
        self.textEdited.connect(self._check)

    def tell(self) -> None:
        """Show what is wrong below the field."""
        below = self.mapToGlobal(self.rect().bottomLeft())
        QToolTip.showText(below, tip_text(self.refused.replace("`", "")), self, self.rect(), TOLD_MS)

    def _check(self, text: str) -> None:
        self.refused = self._refusal(text.strip())
        self.setProperty("kind", "error" if self.refused else "")
        self.setAccessibleDescription(self.refused)
        self.style().unpolish(self)
        self.style().polish(self)
        if self.refused:
            self.tell()
        else:
            QToolTip.hideText()


class AgentDelegate(Delegate):
    """Two lines per agent; the name is edited in place, and what is wrong with it is said there.

    `refusal` gets the old name and the new one and says why not; empty when nothing is wrong.
    """

    def __init__(self, refusal: Callable[[str, str], str], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._refusal = refusal

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
        first = QRect(words.left(), words.top(), words.width(), 18)
        taken = _mark(painter, first, index)
        painter.setFont(bold)
        _line(painter, first.adjusted(0, 0, -taken, 0), str(index.data()))
        painter.setFont(look.small_font)
        painter.setPen(QColor(look.palette.muted))
        second = QRect(words.left(), words.top() + 18, words.width(), 15)
        _line(painter, second, str(index.data(DESCRIPTION) or "no description"))
        painter.restore()

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:  # noqa: N802
        """A field over the name."""
        del option
        field = NameField(partial(self._refusal, str(index.data())), parent)
        field.setObjectName("agents.list.name")
        field.setAccessibleName("Agent name")
        field.setMaxLength(64)
        return field

    def setEditorData(self, editor: QWidget, index: Index) -> None:  # noqa: N802
        """The name, ready to be typed over; what is told of the row meanwhile leaves the field alone."""
        if isinstance(editor, NameField) and not editor.property("filled"):
            editor.setText(str(index.data()))
            editor.selectAll()
            editor.setProperty("filled", True)

    def eventFilter(self, editor: QObject, event: QEvent) -> bool:  # noqa: N802
        """Enter with a name that would be refused stays in the field."""
        is_enter = isinstance(event, QKeyEvent) and event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}
        if is_enter and event.type() == QEvent.Type.KeyPress and isinstance(editor, NameField) and editor.refused:
            editor.tell()
            return True
        return super().eventFilter(editor, event)

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


def _mark(painter: QPainter, line: QRect, index: Index) -> int:
    """How many operations are on, and a sign where something is wrong, at the right; the room they take."""
    look, taken = current_look(), 0
    count = str(index.data(COUNT) or "")
    if count:
        painter.save()
        painter.setFont(look.small_font)
        painter.setPen(QColor(look.palette.muted))
        taken = painter.fontMetrics().horizontalAdvance(count) + 6
        painter.drawText(line, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, count)
        painter.restore()
    if index.data(PROBLEMS):
        place = QRect(line.right() - taken - 14, line.top() + 2, 14, 14)
        look.icon("triangle-alert", "ask").paint(painter, place)
        taken += 18
    return taken


def _rect(option: QStyleOptionViewItem) -> QRect:
    rect: QRect = getattr(option, "rect")  # noqa: B009
    return rect


def _line(painter: QPainter, place: QRect, text: str) -> None:
    cut = line_text(painter.fontMetrics(), text.replace("\n", " "), place.width())
    painter.drawText(place, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, cut)
