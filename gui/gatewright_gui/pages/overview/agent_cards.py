"""A card for each agent: name, bar of rights, counts, calls of today. They are drawn, so that many cost little."""

from collections.abc import Mapping

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QFont, QPainter
from PySide6.QtWidgets import QStyleOptionViewItem

from gatewright.workspace.api import frozen
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import LEFT, line_text
from gatewright_gui.qt.table_model import ROW, Index, RowModel
from gatewright_gui.qt.widget.delegate import Delegate, paint_ground
from gatewright_gui.qt.widget.share_bar import paint_bar
from gatewright_gui.session.rights_picture import RightShare

HEIGHT, _BAR, _PAD = 64, 8, 10


@frozen
class AgentCard:
    """What is known of an agent; ``calls``: how many of which verdict today."""

    agent_id: str
    share: RightShare | None
    calls: Mapping[str, int]


class AgentCardModel(RowModel[AgentCard]):
    """One row per agent, in the order of the file."""

    def key(self, row: AgentCard) -> object:
        """The agent."""
        return row.agent_id

    def text(self, row: AgentCard, _column: int) -> str:
        """The name."""
        return row.agent_id

    def tip(self, row: AgentCard, _column: int) -> str:
        """All of it in words, and where a click leads."""
        told = row.agent_id, share_words(row.share), calls_words(row.calls), tr("Enter or a click shows its tools")
        return "\n".join(told)

    def spoken(self, row: AgentCard, _column: int) -> str:
        """All of it in words."""
        return f"{row.agent_id}: {share_words(row.share)}; {calls_words(row.calls)}"


def share_words(share: RightShare | None) -> str:
    """`41 of 57 on, 3 ask first, 5 privileged`: what its model sees, and what of that is worth a look."""
    if share is None:
        return tr("counting...")
    rest = ((share.asks, tr("ask first")), (share.privileged, tr("privileged")), (share.blocked, tr("blocked")))
    told = [f"{count:,} {words}" for count, words in rest if count]
    return " \u00b7 ".join((tr("{shown:,} of {every:,} on", shown=share.shown, every=share.every), *told))


def calls_words(calls: Mapping[str, int]) -> str:
    """How many calls there were today, and how many of them were denied."""
    denied, made = calls.get("deny", 0), sum(calls.values())
    if not made:
        return tr("no calls today")
    return today_words(made, denied) if denied else tr("{calls} today", calls=counted(made, "call", "calls"))


def today_words(made: int, denied: int) -> str:
    """`12 calls today, 3 denied`."""
    return tr("{calls} today, {denied:,} denied", calls=counted(made, "call", "calls"), denied=denied)


class AgentCardDelegate(Delegate):
    """Name and calls; the bar, solid: on, dots: ask first, stripes: blocked; the counts."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        """All of one height."""
        del option, index
        return QSize(200, HEIGHT)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Ground and three lines."""
        look, rect = current_look(), QRect(getattr(option, "rect"))  # noqa: B009
        card: AgentCard = index.data(ROW)
        paint_ground(painter, option)
        painter.save()
        room = rect.adjusted(_PAD, 6, -_PAD, -6)
        painter.setFont(look.small_font)
        said = calls_words(card.calls) if card.calls else ""
        taken = painter.fontMetrics().horizontalAdvance(said)
        painter.setPen(QColor(look.palette.verdict.deny.fg if card.calls.get("deny") else look.palette.muted))
        first = QRect(room.left(), room.top(), room.width(), 18)
        painter.drawText(first, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, said)
        bold = QFont(getattr(option, "font"))  # noqa: B009
        bold.setWeight(QFont.Weight.DemiBold)
        painter.setFont(bold)
        painter.setPen(QColor(look.palette.text))
        name = line_text(painter.fontMetrics(), card.agent_id, first.width() - taken - _PAD)
        painter.drawText(first, LEFT, name)
        share, verdict = card.share, look.palette.verdict
        parts = (
            ()
            if share is None
            else (
                (share.on, verdict.allow.fg, Qt.BrushStyle.SolidPattern),
                (share.asks, verdict.ask.fg, Qt.BrushStyle.Dense4Pattern),
                (share.blocked, verdict.ask.fg, Qt.BrushStyle.BDiagPattern),
            )
        )  # what is off stays ground
        bar = QRect(room.left(), room.top() + 22, room.width(), _BAR)
        paint_bar(painter, bar, share.every if share is not None else 0, parts)
        painter.setFont(look.small_font)
        painter.setPen(QColor(look.palette.muted))
        last = QRect(room.left(), room.top() + 34, room.width(), 16)
        words = line_text(painter.fontMetrics(), share_words(card.share), last.width())
        painter.drawText(last, LEFT, words)
        painter.restore()
