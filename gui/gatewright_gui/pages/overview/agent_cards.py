"""A card for each agent: name, bar of rights, counts, calls of today. They are drawn, so that many cost little."""

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QColor, QFont, QPainter
from PySide6.QtWidgets import QStyleOptionViewItem

from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import line_text
from gatewright_gui.qt.widget.delegate import Delegate, paint_ground
from gatewright_gui.qt.widget.share_bar import paint_bar
from gatewright_gui.session.calls_today import Tally
from gatewright_gui.session.rights_picture import RightShare

Index = QModelIndex | QPersistentModelIndex
AGENT_ID = Qt.ItemDataRole.UserRole + 1
SHARE = Qt.ItemDataRole.UserRole + 2
CALLS = Qt.ItemDataRole.UserRole + 3
"""How many calls of which verdict today: Mapping[str, int]."""
HEIGHT, _BAR, _PAD = 64, 8, 10


class AgentCardModel(QAbstractListModel):
    """One row per agent, in the order of the file."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._agents: tuple[str, ...] = ()
        self._shares: Mapping[str, RightShare] = {}
        self._calls: Tally = {}

    def set_agents(self, agent_ids: Sequence[str]) -> None:
        """Show these."""
        if tuple(agent_ids) != self._agents:
            self.beginResetModel()
            self._agents = tuple(agent_ids)
            self.endResetModel()

    def set_shares(self, shares: Mapping[str, RightShare]) -> None:
        """What is known of them."""
        self._shares = dict(shares)
        self._tell()

    def set_calls(self, calls: Tally) -> None:
        """What they called today."""
        self._calls = calls
        self._tell()

    def _tell(self) -> None:
        if self._agents:
            self.dataChanged.emit(self.index(0), self.index(len(self._agents) - 1))

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """How many agents."""
        return 0 if parent.isValid() else len(self._agents)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Name, counts, what is told in words."""
        if not index.isValid() or index.row() >= len(self._agents):
            return None
        agent_id = self._agents[index.row()]
        share, calls = self._shares.get(agent_id), self._calls.get(agent_id, {})
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return agent_id
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{agent_id}: {share_words(share)}; {calls_words(calls)}"
            case Qt.ItemDataRole.ToolTipRole:
                told = agent_id, share_words(share), calls_words(calls), tr("Enter or a click shows its tools")
                return "\n".join(told)
            case _:
                return {AGENT_ID: agent_id, SHARE: share, CALLS: calls}.get(role)


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
    """Name and calls, the bar, the counts."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        """All of one height."""
        del option, index
        return QSize(200, HEIGHT)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Ground and three lines."""
        look, rect = current_look(), QRect(getattr(option, "rect"))  # noqa: B009
        paint_ground(painter, option)
        painter.save()
        room = rect.adjusted(_PAD, 6, -_PAD, -6)
        calls: Mapping[str, int] = index.data(CALLS) or {}
        painter.setFont(look.small_font)
        said = calls_words(calls) if calls else ""
        taken = painter.fontMetrics().horizontalAdvance(said)
        painter.setPen(QColor(look.palette.verdict.deny.fg if calls.get("deny") else look.palette.muted))
        first = QRect(room.left(), room.top(), room.width(), 18)
        painter.drawText(first, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, said)
        bold = QFont(getattr(option, "font"))  # noqa: B009
        bold.setWeight(QFont.Weight.DemiBold)
        painter.setFont(bold)
        painter.setPen(QColor(look.palette.text))
        name = line_text(painter.fontMetrics(), str(index.data()), first.width() - taken - _PAD)
        painter.drawText(first, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, name)
        share: RightShare | None = index.data(SHARE)
        _paint_share(painter, QRect(room.left(), room.top() + 22, room.width(), _BAR), share)
        painter.setFont(look.small_font)
        painter.setPen(QColor(look.palette.muted))
        last = QRect(room.left(), room.top() + 34, room.width(), 16)
        words = line_text(painter.fontMetrics(), share_words(share), last.width())
        painter.drawText(last, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, words)
        painter.restore()


def _paint_share(painter: QPainter, room: QRect, share: RightShare | None) -> None:
    """Solid: on; dots: ask first; stripes: blocked; what is off stays ground."""
    palette = current_look().palette
    parts = (
        ()
        if share is None
        else (
            (share.on, palette.verdict.allow.fg, Qt.BrushStyle.SolidPattern),
            (share.asks, palette.verdict.ask.fg, Qt.BrushStyle.Dense4Pattern),
            (share.blocked, palette.verdict.ask.fg, Qt.BrushStyle.BDiagPattern),
        )
    )
    paint_bar(painter, room, share.every if share is not None else 0, parts)
