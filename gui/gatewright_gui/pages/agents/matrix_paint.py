"""Draws one cell of the matrix: counts, or a box with what asks beside it. It does not know selection or rows.

What a cell shows is drawn once for each kind of cell and kept as a picture, since hundreds of cells are seen at a time.
"""

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QColor, QPainter, QPixmap

from gatewright_gui.pages.agents.matrix import short_words
from gatewright_gui.qt.look import CheckState, Role, current_look, role_colour
from gatewright_gui.session.right_grid import Cell, OperationCell, Summary

BOX = 16
MARK = 12
GAP = 4
CELL_WIDTH = 74
"""The narrowest cell that shows counts of two digits and three marks."""
_BOXES = {
    Cell.OFF: CheckState.OFF,
    Cell.ON: CheckState.ON,
    Cell.ASKS: CheckState.ON,
    Cell.LOCKED: CheckState.ON,
    Cell.OVERRULED: CheckState.BLOCKED,
    Cell.SOME_ASK: CheckState.ON,
}
_ASKS: tuple[str, Role] = ("hand", "ask")
_MARKS: dict[Cell, tuple[str, Role]] = {Cell.ASKS: _ASKS, Cell.LOCKED: ("lock", "ask"), Cell.SOME_ASK: _ASKS}
_LIMITED: tuple[str, Role] = ("list-filter", "muted")
_OVERRULED: tuple[str, Role] = ("layers", "blocked")


class CellPainter:
    """Call `forget` when the theme changes."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Summary | OperationCell | None, float], QPixmap] = {}

    def forget(self) -> None:
        """Draw everything anew."""
        self._kept.clear()

    def paint(self, painter: QPainter, place: QRect, found: Summary | OperationCell | None, scale: float) -> None:
        """What the cell shows, in its middle."""
        key = (found, scale)
        picture = self._kept.get(key)
        if picture is None:
            picture = self._kept[key] = _drawn(painter, found, scale)
        wide, high = round(picture.width() / scale), round(picture.height() / scale)
        painter.drawPixmap(
            place.left() + (place.width() - wide) // 2, place.top() + (place.height() - high) // 2, picture
        )


def box_rect(place: QRect) -> QRect:
    """Where the box of an operation's cell is."""
    left = place.left() + (place.width() - CELL_WIDTH) // 2 + _box_left()
    return QRect(left, place.top() + (place.height() - BOX) // 2, BOX, BOX)


def _box_left() -> int:
    return (CELL_WIDTH - BOX) // 2


def _drawn(like: QPainter, found: Summary | OperationCell | None, scale: float) -> QPixmap:
    height = BOX + 2
    picture = QPixmap(round(CELL_WIDTH * scale), round(height * scale))
    picture.setDevicePixelRatio(scale)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    painter.setFont(like.font())
    whole = QRect(0, 0, CELL_WIDTH, height)
    match found:
        case Summary():
            _draw_summary(painter, whole, found)
        case OperationCell(state) if state in _BOXES:
            _draw_cell(painter, whole, found)
        case _:
            painter.setPen(role_colour("muted"))
            painter.drawText(whole, Qt.AlignmentFlag.AlignCenter, short_words(found))
    painter.end()
    return picture


def _draw_cell(painter: QPainter, whole: QRect, found: OperationCell) -> None:
    """The box, at its right what asks (on a soft ground where every call does), and what limits it."""
    look, left = current_look(), _box_left()
    look.check_icon(_BOXES[found.state]).paint(painter, QRect(left, 1, BOX, BOX))
    at = left + BOX + GAP
    if found.state in _MARKS:
        if found.state is not Cell.SOME_ASK:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(look.palette.verdict.ask.soft))
            painter.drawRoundedRect(_mark_rect(whole, at).adjusted(-2, -2, 2, 2), 3, 3)
        look.icon(*_MARKS[found.state]).paint(painter, _mark_rect(whole, at))
        at += MARK + GAP
    if found.is_limited:
        look.icon(*_LIMITED).paint(painter, _mark_rect(whole, at))


def _draw_summary(painter: QPainter, whole: QRect, found: Summary) -> None:
    """Counts with marks behind; what is all on stands out, what is all off is quiet."""
    known = ((found.asks, _ASKS), (found.limited, _LIMITED), (found.overruled, _OVERRULED))
    marks = [mark for stands, mark in known if stands]
    text = short_words(found)
    wide = painter.fontMetrics().horizontalAdvance(text)
    left = (whole.width() - wide - len(marks) * (MARK + 2)) // 2
    palette = current_look().palette
    colour = palette.muted if found.on == 0 else palette.verdict.allow.fg if found.on == found.every else palette.text
    painter.setPen(QColor(colour))
    painter.drawText(QPoint(left, (whole.height() + painter.fontMetrics().capHeight()) // 2), text)
    at = left + wide + 3
    for icon, role in marks:
        current_look().icon(icon, role).paint(painter, _mark_rect(whole, at))
        at += MARK + 2


def _mark_rect(whole: QRect, left: int) -> QRect:
    return QRect(left, (whole.height() - MARK) // 2, MARK, MARK)
