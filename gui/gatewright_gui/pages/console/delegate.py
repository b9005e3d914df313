"""How rows of stages and of the history are drawn: verdicts with icon, word and colour. It does not know calls."""

from typing import Any

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import QStyleOptionViewItem

from gatewright_gui.models import callhistory, stages
from gatewright_gui.qt.look import Role, VerdictName, current_look, role_colour
from gatewright_gui.qt.plaintext import line_text
from gatewright_gui.qt.prose import paint_prose
from gatewright_gui.qt.widget.chip import VERDICT_ICONS
from gatewright_gui.qt.widget.delegate import Delegate

Index = QModelIndex | QPersistentModelIndex
_PAD = 4
"""Beside the words of a cell, as the style has it."""
_FAILED: tuple[str, Role] = ("triangle-alert", "ask")
_ICONS: dict[str, tuple[str, Role]] = {
    "working": ("circle-dot", "accent"),
    "waiting": ("circle", "disabled"),
    "skipped": ("minus", "disabled"),
    "cancelled": ("circle-stop", "ask"),
    "failed": _FAILED,
}


def verdict_mark(state: str) -> tuple[str, Role]:
    """Icon and colour of a verdict, or of a stage that has none."""
    verdicts: dict[str, VerdictName] = {"allow": "allow", "ask": "ask", "deny": "deny"}
    if state in verdicts:
        name = verdicts[state]
        return VERDICT_ICONS[name], name
    return _ICONS[state]


def tint(item: Any, role: Role) -> None:
    """Words in a colour, whether the row is chosen or not."""
    for part in (item.palette.ColorRole.Text, item.palette.ColorRole.HighlightedText):
        item.palette.setColor(part, role_colour(role))


def put_icon(item: Any, name: str, role: Role) -> None:
    """A small icon before the words."""
    size = current_look().tokens.small_icon_size
    item.icon = current_look().icon(name, role)
    item.decorationSize = QSize(size, size)
    item.features |= QStyleOptionViewItem.ViewItemFeature.HasDecoration


class StageDelegate(Delegate):
    """Stages that were not reached are dim."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        """Icon and colour of what became of the stage."""
        super().initStyleOption(option, index)
        state = str(index.data(stages.STATE))
        icon, role = verdict_mark(state)
        if state in {"waiting", "skipped"}:
            tint(option, "disabled")
        elif index.column() == stages.VERDICT:
            tint(option, role)
        elif index.column() == stages.TIME:
            tint(option, "muted")
        if index.column() == stages.RULE:
            tint(option, "accent")
        if index.column() == stages.REASON:
            item: Any = option
            item.text = ""  # it is painted in two faces
        if index.column() == stages.VERDICT:
            put_icon(option, icon, role)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Reasons with their code; a line before the stages that act."""
        super().paint(painter, option, index)
        if index.column() == stages.REASON:
            self._paint_reason(painter, option, index)
        if index.row() == stages.FIRST_ACTING:
            cell: QRect = option.rect  # pyright: ignore[reportAttributeAccessIssue]
            painter.fillRect(QRect(cell.left(), cell.top(), cell.width(), 1), role_colour("disabled"))

    def _paint_reason(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        item: Any = option
        painter.save()
        painter.setFont(item.font)
        dim = str(index.data(stages.STATE)) in {"waiting", "skipped"}
        painter.setPen(role_colour("disabled") if dim else QColor(current_look().palette.text))
        paint_prose(painter, item.rect.adjusted(_PAD, 0, -_PAD, 0), str(index.data() or ""))
        painter.restore()


class HistoryDelegate(Delegate):
    """An icon for what was done, the verdict in its colour."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        """Icon and colour."""
        super().initStyleOption(option, index)
        if index.column() == callhistory.WHAT:
            is_run = index.data(callhistory.KIND_ROLE) == "run"
            is_live = bool(index.data(callhistory.LIVE_ROLE))
            kind: tuple[str, Role] = ("play" if is_run else "shield-check", "muted")
            put_icon(option, *(("triangle-alert", "deny") if is_live else kind))
        elif index.column() == callhistory.CALL:
            self._tell_call(option, index)
        elif index.column() == callhistory.VERDICT:
            failed = index.data() not in VERDICT_ICONS
            icon, role = _FAILED if failed else verdict_mark(str(index.data(callhistory.VERDICT_ROLE)))
            put_icon(option, icon, role)
            tint(option, role)
        elif index.column() == callhistory.WHEN:
            tint(option, "muted")

    def _tell_call(self, item: Any, index: Index) -> None:
        """The call with the argument that tells it from others, of which the end is seen, where paths differ."""
        if index.data(callhistory.LIVE_ROLE):
            tint(item, "deny")
            font = QFont(item.font)
            font.setBold(True)
            item.font = font
        telling = str(index.data(callhistory.TELLING_ROLE) or "")
        if telling:
            metrics, called = QFontMetrics(item.font), f"{item.text}  "
            room = item.rect.width() - metrics.horizontalAdvance(called) - 5 * _PAD
            item.text = called + line_text(metrics, telling, max(room, 0), Qt.TextElideMode.ElideLeft)
