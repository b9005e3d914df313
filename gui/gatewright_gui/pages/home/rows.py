"""The rows of Home: what could hurt most, each with *Ask first*, and the rights of an agent that nobody uses."""

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import QStyleOptionViewItem

from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import LEFT, line_text
from gatewright_gui.qt.table_model import ROW, Index, RowModel
from gatewright_gui.qt.widget.chip import paint_bar
from gatewright_gui.qt.widget.item_view import Delegate, RowList, paint_ground
from gatewright_gui.session.effects import MOST_PLACES, Effect, Risk, Unused

_PAD, _LINE, _BAR = 10, 17, 8
_NAMED = 20
"""Agents that a tooltip names."""
_DOES = {
    Effect.READ: mark("reads"),
    Effect.CHANGE: mark("makes changes that count as dangerous"),
    Effect.DELETE: mark("deletes"),
    Effect.SEND: mark("sends out"),
    Effect.RUN: mark("runs commands"),
}


def does_words(risk: Risk, most: int = MOST_PLACES) -> str:
    """`deletes in desk, tmp`: what a call does, and where; of places at most so many."""
    places = [one for one in risk.danger.places if one != "*"]
    does = tr(_DOES[risk.danger.effect])
    if not places:
        return tr("deletes data") if risk.danger.effect is Effect.DELETE else does
    told, more = ", ".join(places[:most]), len(places) - most
    if more > 0:
        told = tr("{names} and {count:,} more", names=told, count=more)
    if risk.danger.effect is Effect.SEND:
        return tr("{does} to {hosts}", does=does, hosts=told)
    return tr("{does} in {places}", does=does, places=told)


class RiskModel(RowModel[Risk]):
    """One row per operation, the worst first."""

    def key(self, row: Risk) -> object:
        """The operation."""
        return row.danger.tool, row.danger.operation

    def text(self, row: Risk, _column: int) -> str:
        """Tool and operation."""
        return row.danger.called

    def tip(self, row: Risk, _column: int) -> str:
        """All of it in words."""
        agents, more = ", ".join(row.agents[:_NAMED]), len(row.agents) - _NAMED
        if more > 0:
            agents = tr("{names} and {count:,} more", names=agents, count=more)
        told = tr(
            "{operation} {does}, without asking, for {agents}",
            operation=row.danger.called,
            does=does_words(row),
            agents=agents,
        )
        return told + "\n" + tr("Enter or a click shows it, K makes it ask first")

    spoken = tip


class RiskDelegate(Delegate):
    """Two lines, and a button at the right."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        """All of one height."""
        del option, index
        return QSize(200, 2 * _LINE + 12)

    @staticmethod
    def button_rect(row: QRect) -> QRect:
        """Return the place of the button in a row."""
        metrics_width, high = current_look().tokens.space_4 * 5, current_look().tokens.control_height - 4
        left = row.right() - metrics_width - _PAD
        return QRect(left, row.top() + (row.height() - high) // 2, metrics_width, high)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Ground, the operation with its agents, what it does, the button."""
        look, rect = current_look(), QRect(getattr(option, "rect"))  # noqa: B009
        risk: Risk = index.data(ROW)
        paint_ground(painter, option)
        painter.save()
        button = self.button_rect(rect)
        room = QRect(rect.left() + _PAD, rect.top() + 6, button.left() - rect.left() - 2 * _PAD, _LINE)
        painter.setFont(look.mono_font)
        role = look.palette.verdict.deny.fg if risk.danger.effect is Effect.DELETE else look.palette.text
        painter.setPen(QColor(role))
        called = line_text(painter.fontMetrics(), risk.danger.called, room.width())
        painter.drawText(room, LEFT, called)
        taken = painter.fontMetrics().horizontalAdvance(called) + _PAD
        painter.setFont(look.small_font)
        painter.setPen(QColor(look.palette.muted))
        agents = ", ".join(risk.agents) if len(risk.agents) < 3 else counted(len(risk.agents), "agent", "agents")
        metrics, does = painter.fontMetrics(), does_words(risk)
        if metrics.horizontalAdvance(does) > room.width():
            does = does_words(risk, 1)
        for words, place in ((agents, room.adjusted(taken, 0, 0, 0)), (does, room.translated(0, _LINE))):
            painter.drawText(place, LEFT, line_text(metrics, words, place.width()))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(look.palette.border_strong), 1))
        painter.setBrush(QColor(look.palette.raised))
        painter.drawRoundedRect(button, look.tokens.radius, look.tokens.radius)
        painter.setPen(QColor(look.palette.text))
        painter.drawText(button, Qt.AlignmentFlag.AlignCenter, tr("Ask first"))
        painter.restore()


class RiskList(RowList):
    """A click on the button, or `K`, makes the operation ask first; a click elsewhere, or Enter, shows it."""

    ask_requested = Signal(object)
    """Risk."""
    show_requested = Signal(object)
    """Risk."""

    def __init__(self) -> None:
        super().__init__()
        self._pressed = QPersistentModelIndex()
        self.setItemDelegate(RiskDelegate(self))
        self.setMouseTracking(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Take note of the row."""
        super().mousePressEvent(event)
        self._pressed = QPersistentModelIndex(self.indexAt(event.position().toPoint()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Do what was clicked, if press and release are on one row."""
        super().mouseReleaseEvent(event)
        at = event.position().toPoint()
        index = self.indexAt(at)
        if event.button() != Qt.MouseButton.LeftButton or not index.isValid() or self._pressed != index:
            return
        is_button = RiskDelegate.button_rect(self.visualRect(index)).contains(at)
        (self.ask_requested if is_button else self.show_requested).emit(index.data(ROW))

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """`K` and Enter."""
        index: QModelIndex = self.currentIndex()
        if index.isValid() and event.key() == Qt.Key.Key_K and not event.modifiers():
            self.ask_requested.emit(index.data(ROW))
        elif index.isValid() and event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self.show_requested.emit(index.data(ROW))
        else:
            super().keyPressEvent(event)


class UnusedModel(RowModel[tuple[str, Unused]]):
    """One row per agent."""

    def key(self, row: tuple[str, Unused]) -> object:
        """The agent."""
        return row[0]

    def text(self, row: tuple[str, Unused], _column: int) -> str:
        """The agent."""
        return row[0]

    def spoken(self, row: tuple[str, Unused], _column: int) -> str:
        """All of it in words."""
        return f"{row[0]}: {used_words(row[1])}"

    tip = spoken


def used_words(unused: Unused) -> str:
    """`14 of 60 operations used`."""
    return tr(
        "{used:,} of {operations} used", used=unused.used, operations=counted(unused.shown, "operation", "operations")
    )


class UnusedDelegate(Delegate):
    """The agent, a bar of the rights that it used, the count."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        """All of one height."""
        del option, index
        return QSize(200, 30)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Ground and one line."""
        look, rect = current_look(), QRect(getattr(option, "rect"))  # noqa: B009
        agent_id, unused = index.data(ROW)
        paint_ground(painter, option)
        painter.save()
        room = rect.adjusted(_PAD, 0, -_PAD, 0)
        name, words = QRect(room), QRect(room)
        name.setWidth(room.width() * 30 // 100)
        painter.setPen(QColor(look.palette.text))
        painter.drawText(name, LEFT, line_text(painter.fontMetrics(), agent_id, name.width()))
        painter.setFont(look.small_font)
        painter.setPen(QColor(look.palette.muted))
        said = used_words(unused)
        words.setLeft(room.right() - max(painter.fontMetrics().horizontalAdvance(said), room.width() * 24 // 100))
        painter.drawText(words, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, said)
        bar = QRect(name.right() + _PAD, room.center().y() - _BAR // 2, words.left() - name.right() - 2 * _PAD, _BAR)
        paint_bar(
            painter, bar, unused.shown, ((unused.used, look.palette.verdict.allow.fg, Qt.BrushStyle.SolidPattern),)
        )
        painter.restore()
