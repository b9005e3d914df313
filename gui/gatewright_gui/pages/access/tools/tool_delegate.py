"""Draws the cells of the tree: box and name, verdict, the ask-first switch, quiet words. It decides nothing."""

from collections.abc import Sequence

from PySide6.QtCore import (
    QAbstractItemModel,
    QEvent,
    QPoint,
    QRect,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QCursor, QFont, QFontMetrics, QMouseEvent, QPainter
from PySide6.QtWidgets import QAbstractItemView, QStyle, QStyleOptionViewItem, QTreeView

from gatewright.workspace.api import Verdict
from gatewright_gui.pages.access.tools.row_state import Asking, RowState
from gatewright_gui.pages.access.tools.share_counter import paint_share
from gatewright_gui.pages.access.tools.tool_tree import (
    ASKING,
    COUNT,
    DESCRIPTION,
    GROUP,
    IS_TOOL,
    MARK,
    NOTED,
    SHARE,
    STATE,
    VERDICT,
    Column,
)
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.look import CheckState, Role, current_look
from gatewright_gui.qt.plaintext import LEFT, line_text
from gatewright_gui.qt.table_model import Index
from gatewright_gui.qt.widget.chip import VERDICT_ICONS, chip_width, paint_chip
from gatewright_gui.qt.widget.delegate import Delegate, paint_ground
from gatewright_gui.session.path_share import Share
from gatewright_gui.session.tool_groups import ToolGroup

BOX = 16
MARK_SIZE = 14
_GAP = 6
_BAR_WIDTH, _BAR_HEIGHT = 28, 6
_WIDE, _LONGEST_NAMES = 400, 260
"""From this width of the column on descriptions stand below each other, at most so far to the right."""
_LEAST_DESCRIPTION = 60
_LONGEST_TEXT = 4_000
"""Characters of a description in which the words of a search are looked for."""
_BOXES = {
    RowState.ON: CheckState.ON,
    RowState.OFF: CheckState.OFF,
    RowState.MIXED: CheckState.MIXED,
    RowState.OVERRULED: CheckState.BLOCKED,
}
_GUESSED: tuple[str, Role] = ("circle-help", "ask")
_MARKS: dict[str, tuple[str, Role]] = {
    "free": ("pencil", "ask"),
    "open": ("terminal", "ask"),
}
_ASKS: dict[Asking, tuple[str, Role]] = {
    Asking.NO: ("hand", "disabled"),
    Asking.YES: ("hand", "ask"),
    Asking.SOME: ("hand", "ask"),
    Asking.LOCKED: ("lock", "ask"),
}


class ToolDelegate(Delegate):
    """Asks for a tick through the model, and for asking first through a signal."""

    ask_toggled = Signal(object)
    """The index whose switch was clicked."""
    files_requested = Signal(object)
    """The index whose verdict goes by the path and was clicked."""
    searched: tuple[str, ...] = ()
    """The words that are searched for, in small letters: they are marked where they stand."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        """One height for all rows."""
        size = super().sizeHint(option, index)
        return QSize(size.width(), current_look().tokens.row_height)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Ground, then what the column holds."""
        paint_ground(painter, option)
        rect: QRect = getattr(option, "rect")  # noqa: B009
        painter.save()
        match index.column():
            case Column.VERDICT | Column.ASK if index.data(GROUP) is not None:
                pass
            case Column.NAME:
                self._paint_name(painter, rect, option, index)
            case Column.VERDICT:
                self._paint_verdict(painter, rect, index)
            case Column.ASK:
                self._paint_ask(painter, rect, option, index)
            case Column.TOKENS:
                painter.setPen(QColor(current_look().palette.muted))
                right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
                painter.drawText(rect.adjusted(2, 0, -6, 0), right, str(index.data() or ""))
            case _:
                painter.setPen(QColor(current_look().palette.muted))
                _words(painter, rect.adjusted(6, 0, -4, 0), str(index.data() or ""))
        painter.restore()

    def _paint_name(self, painter: QPainter, rect: QRect, option: QStyleOptionViewItem, index: Index) -> None:
        """Box, name, mark, how much is on; behind the name what it is, where there is room for it."""
        look, state, group = current_look(), RowState(index.data(STATE)), index.data(GROUP)
        box = box_rect(rect)
        look.check_icon(_BOXES[state], hovered=_is_over(option, box)).paint(painter, box)
        left = box.right() + 1 + _GAP
        room = rect.right() - left - 4 - _paint_count(painter, rect, str(index.data(COUNT) or ""))
        if index.data(MARK):
            at = left + room - MARK_SIZE
            look.icon(*_MARKS.get(str(index.data(MARK)), _GUESSED)).paint(
                painter, QRect(at, rect.top() + (rect.height() - MARK_SIZE) // 2, MARK_SIZE, MARK_SIZE)
            )
            room -= MARK_SIZE + 4
        font = QFont(getattr(option, "font"))  # noqa: B009
        if index.data(IS_TOOL) or group is not None:
            font.setWeight(QFont.Weight.DemiBold)
        painter.setFont(font)
        is_quiet = group is None and state in {RowState.OFF, RowState.OVERRULED}
        painter.setPen(QColor(look.palette.muted if is_quiet else look.palette.text))
        place, middle = QRect(left, rect.top(), room, rect.height()), Qt.TextElideMode.ElideMiddle
        wide = self._marked(painter, place, str(index.data()), middle)
        if not isinstance(group, ToolGroup):
            self._paint_description(painter, rect, left + wide, left + room, str(index.data(DESCRIPTION) or ""))
            return
        painter.setFont(look.small_font)
        place.setLeft(left + wide + 2 * _GAP)
        if painter.fontMetrics().horizontalAdvance(group.kind) <= place.width():
            painter.setPen(QColor(look.palette.muted))
            _words(painter, place, group.kind)

    def _paint_description(self, painter: QPainter, rect: QRect, name_end: int, end: int, text: str) -> None:
        """A line of it behind the name; below each other where the column is wide."""
        column = self.parent()
        wide = column.columnWidth(Column.NAME) if isinstance(column, QTreeView) else rect.width()
        aligned = rect.right() - wide + min(wide * 2 // 5, _LONGEST_NAMES) if wide >= _WIDE else 0
        start = max(name_end + 2 * _GAP, aligned)
        if end - start < _LEAST_DESCRIPTION:
            return
        painter.setFont(current_look().small_font)
        painter.setPen(QColor(current_look().palette.muted))
        place = QRect(start, rect.top(), end - start, rect.height())
        self._marked(painter, place, _telling_part(painter.fontMetrics(), text, place.width(), self.searched))

    def _marked(
        self, painter: QPainter, place: QRect, text: str, mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight
    ) -> int:
        """Words, marked where they are what is searched for; how wide they are."""
        metrics = painter.fontMetrics()
        shown = line_text(metrics, text, place.width(), mode)
        accent, small = current_look().palette.accent, shown.lower()
        for word in self.searched if len(small) == len(shown) else ():
            start = small.find(word)
            while start >= 0:
                left, end = (metrics.horizontalAdvance(shown[:at]) for at in (start, start + len(word)))
                top = place.center().y() - metrics.height() // 2
                mark = QRect(place.left() + left, top, end - left, metrics.height() + 1)
                painter.fillRect(mark, QColor(accent.soft))
                painter.fillRect(mark.adjusted(0, mark.height() - 2, 0, 0), QColor(accent.fg))
                start = small.find(word, start + len(word))
        painter.drawText(place, LEFT, shown)
        return metrics.horizontalAdvance(shown)

    def _paint_verdict(self, painter: QPainter, rect: QRect, index: Index) -> None:
        text = str(index.data())
        painter.setFont(current_look().small_font)
        if RowState(index.data(STATE)) is RowState.OFF:
            painter.setPen(QColor(current_look().palette.muted))
            _words(painter, rect.adjusted(6, 0, -4, 0), text)
            return
        verdict = Verdict(index.data(VERDICT)).value
        icon, role = VERDICT_ICONS[verdict], verdict
        share = index.data(SHARE)
        if index.data(NOTED) is not None:
            icon, role, share = "eye", "ask", None
        elif RowState(index.data(STATE)) is RowState.OVERRULED:
            icon, role = "triangle-alert", "ask"
        elif text == tr("mixed"):
            icon, role = "circle-dot", "muted"
        elif icon == "circle-check" and text != tr("allow"):
            icon, role = ("hand", "ask") if Asking(index.data(ASKING)) is Asking.SOME else ("list-filter", "allow")
        place = chip_rect(rect, painter.fontMetrics(), text, with_bar=share is not None)
        paint_chip(painter, place, text, icon, role)
        if isinstance(share, Share):
            top = place.top() + (place.height() - _BAR_HEIGHT) // 2
            bar = QRect(place.right() - _BAR_WIDTH - _GAP + 1, top, _BAR_WIDTH, _BAR_HEIGHT)
            paint_share(painter, bar, share)

    def _paint_ask(self, painter: QPainter, rect: QRect, option: QStyleOptionViewItem, index: Index) -> None:
        if str(index.data(VERDICT)) == "deny":
            return
        look, asking = current_look(), Asking(index.data(ASKING))
        icon, role = _ASKS[asking]
        square = ask_rect(rect)
        hovered = _is_over(option, square)
        state: QStyle.StateFlag = getattr(option, "state")  # noqa: B009
        stands_out = hovered or bool(state & QStyle.StateFlag.State_Selected)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QColor(look.palette.border_strong if stands_out else look.palette.border))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if asking in {Asking.YES, Asking.LOCKED}:
            painter.setPen(QColor(look.palette.verdict.ask.fg) if asking is Asking.YES else Qt.PenStyle.NoPen)
            painter.setBrush(QColor(look.palette.verdict.ask.soft))
        painter.drawRoundedRect(square.adjusted(0, 0, -1, -1), 3, 3)
        if asking is Asking.NO:
            role = "text" if stands_out else "muted"
        look.icon(icon, role).paint(painter, square.adjusted(3, 3, -3, -3))

    def editorEvent(  # noqa: N802
        self, event: QEvent, model: QAbstractItemModel, option: QStyleOptionViewItem, index: Index
    ) -> bool:
        """A click on the box ticks, a click on the switch asks first; nothing else here."""
        if not isinstance(event, QMouseEvent) or event.button() != Qt.MouseButton.LeftButton:
            return False
        rect: QRect = getattr(option, "rect")  # noqa: B009
        hit = hit_of(rect, Column(index.column()), event.position().toPoint())
        if index.column() == Column.VERDICT and event.type() == QEvent.Type.MouseButtonRelease and index.data(SHARE):
            self.files_requested.emit(index)
        if index.column() == Column.ASK and index.data(GROUP) is not None:
            return False
        if hit and event.type() == QEvent.Type.MouseButtonRelease:
            self._act(model, index)
        return hit

    def _act(self, model: QAbstractItemModel, index: Index) -> None:
        if index.column() == Column.ASK:
            self.ask_toggled.emit(index)
            return
        checked = Qt.CheckState(index.data(Qt.ItemDataRole.CheckStateRole)) == Qt.CheckState.Checked
        wanted = Qt.CheckState.Unchecked if checked else Qt.CheckState.Checked
        model.setData(index, wanted, Qt.ItemDataRole.CheckStateRole)


def box_rect(cell: QRect) -> QRect:
    """Where the box of a name cell is."""
    return QRect(cell.left() + 3, cell.top() + (cell.height() - BOX) // 2, BOX, BOX)


def ask_rect(cell: QRect) -> QRect:
    """Where the switch of an ask cell is."""
    side = 20
    return QRect(cell.left() + 6, cell.top() + (cell.height() - side) // 2, side, side)


def chip_rect(cell: QRect, metrics: QFontMetrics, text: str, *, with_bar: bool) -> QRect:
    """Where the chip of a verdict is, with the bar behind its words."""
    wide = chip_width(metrics.horizontalAdvance(text), with_icon=True) + with_bar * (_BAR_WIDTH + _GAP)
    height = metrics.height() + 5
    top = cell.top() + (cell.height() - height) // 2
    return QRect(cell.left() + 4, top, min(wide, cell.width() - 6), height)


def hit_of(cell: QRect, column: Column, at: QPoint) -> bool:
    """Whether a point is on something that can be clicked; a few pixels beside it count."""
    if column is Column.NAME:
        return box_rect(cell).adjusted(-3, -5, 3, 5).contains(at)
    return column is Column.ASK and cell.contains(at)


def _paint_count(painter: QPainter, rect: QRect, count: str) -> int:
    """How much is on, at the right; the room that it takes."""
    if not count:
        return 0
    painter.setFont(current_look().small_font)
    wide = painter.fontMetrics().horizontalAdvance(count)
    painter.setPen(QColor(current_look().palette.muted))
    place = QRect(rect.right() - wide - 6, rect.top(), wide + 2, rect.height())
    painter.drawText(place, Qt.AlignmentFlag.AlignVCenter, count)
    return wide + 10


def _telling_part(metrics: QFontMetrics, text: str, width: int, searched: Sequence[str]) -> str:
    """The first line; where what is searched for cannot be seen there, its line, from a little before it."""
    first = next((line for line in text[:_LONGEST_TEXT].splitlines() if line.strip()), "").strip()
    word = next((word for word in searched if word in text[:_LONGEST_TEXT].lower()), "")
    if not word or word in line_text(metrics, first, width).lower():
        return first
    line = next((one for one in text[:_LONGEST_TEXT].splitlines() if word in one.lower()), "").strip()
    at = line.lower().find(word)
    start = line.rfind(" ", 0, max(at - 6, 0)) + 1
    if word not in line_text(metrics, f"… {line[start:]}", width).lower():
        start = at
    return f"… {line[start:]}" if start else line


def _is_over(option: QStyleOptionViewItem, place: QRect) -> bool:
    state: QStyle.StateFlag = getattr(option, "state")  # noqa: B009
    view: object = getattr(option, "widget")  # noqa: B009
    if not state & QStyle.StateFlag.State_MouseOver or not isinstance(view, QAbstractItemView):
        return False
    return place.contains(view.viewport().mapFromGlobal(QCursor.pos()))


def _words(painter: QPainter, place: QRect, text: str, mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight) -> None:
    """Names of many tools begin alike: those are cut in the middle."""
    cut = line_text(painter.fontMetrics(), text, place.width(), mode)
    painter.drawText(place, LEFT, cut)
