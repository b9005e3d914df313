"""Draws the matrix: its cells, and its two frozen edges with agents over the columns and tools before the rows.

What a cell shows is drawn once for each kind of cell and kept as a picture, since hundreds of cells are seen at a time.
"""

from PySide6.QtCore import QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QMouseEvent, QPainter, QPixmap
from PySide6.QtWidgets import QHeaderView, QWidget

from gatewright_gui.pages.access.tools.matrix import MatrixModel
from gatewright_gui.pages.access.tools.matrix_words import short_words
from gatewright_gui.pages.access.tools.share_counter import paint_share
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.look import CheckState, Role, current_look, role_colour
from gatewright_gui.qt.plaintext import LEFT, line_text
from gatewright_gui.session.path_share import Share
from gatewright_gui.session.right_columns import Cell, OperationCell, Summary

BOX = 16
MARK = 12
GAP = 4
DOT = 6
BAR_WIDTH, BAR_HEIGHT = 40, 3
MOST_KEPT = 2_000
"""Pictures of cells that are kept."""
CELL_WIDTH = 70
"""The narrowest cell that shows counts of two digits, two marks and the dot."""
_BOX_LEFT = min((CELL_WIDTH - BOX) // 2, CELL_WIDTH - BOX - 2 * (GAP + MARK) - 3)
"""As far in the middle as two marks at its right allow."""
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
_OVERRULED: tuple[str, Role] = ("triangle-alert", "ask")
_OBSERVED: tuple[str, Role] = ("eye", "ask")


class CellPainter:
    """Call `forget` when the theme changes."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Summary | OperationCell | None, Share | None, float], QPixmap] = {}

    def forget(self) -> None:
        """Draw everything anew."""
        self._kept.clear()

    def paint(
        self,
        painter: QPainter,
        place: QRect,
        found: Summary | OperationCell | None,
        scale: float,
        share: Share | None = None,
    ) -> None:
        """What the cell shows, in its middle; `share`: of the files, where it goes by the path."""
        key = (found, share, scale)
        picture = self._kept.get(key)
        if picture is None:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            picture = self._kept[key] = _drawn(painter, found, share, scale)
        wide, high = round(picture.width() / scale), round(picture.height() / scale)
        painter.drawPixmap(
            place.left() + (place.width() - wide) // 2, place.top() + (place.height() - high) // 2, picture
        )


def box_rect(place: QRect) -> QRect:
    """Where the box of an operation's cell is."""
    left = place.left() + (place.width() - CELL_WIDTH) // 2 + _BOX_LEFT
    return QRect(left, place.top() + (place.height() - BOX) // 2, BOX, BOX)


def _drawn(like: QPainter, found: Summary | OperationCell | None, share: Share | None, scale: float) -> QPixmap:
    height = BOX + 2 * (BAR_HEIGHT + 1)
    picture = QPixmap(round(CELL_WIDTH * scale), round(height * scale))
    picture.setDevicePixelRatio(scale)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    painter.setFont(like.font())
    whole = QRect(0, BAR_HEIGHT, CELL_WIDTH, BOX + 2)
    match found:
        case Summary():
            _draw_summary(painter, whole, found)
        case OperationCell(state) if state in _BOXES:
            _draw_cell(painter, whole, found)
        case _:
            painter.setPen(role_colour("muted"))
            painter.drawText(whole, Qt.AlignmentFlag.AlignCenter, short_words(found))
    if share is not None:
        paint_share(painter, QRect((CELL_WIDTH - BAR_WIDTH) // 2, height - BAR_HEIGHT, BAR_WIDTH, BAR_HEIGHT), share)
    painter.end()
    return picture


def _draw_cell(painter: QPainter, whole: QRect, found: OperationCell) -> None:
    """The box, at its right what asks (on a soft ground where every call does), and what limits it."""
    look, left = current_look(), _BOX_LEFT
    look.check_icon(_BOXES[found.state]).paint(painter, QRect(left, whole.top() + 1, BOX, BOX))
    at = left + BOX + GAP
    if found.state in _MARKS:
        if found.state is not Cell.SOME_ASK:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(look.palette.verdict.ask.soft))
            painter.drawRoundedRect(_mark_rect(whole, at).adjusted(-2, -2, 2, 2), 3, 3)
        look.icon(*_MARKS[found.state]).paint(painter, _mark_rect(whole, at))
        at += MARK + GAP
    if found.is_observed or found.is_limited:  # one of them has room
        look.icon(*(_OBSERVED if found.is_observed else _LIMITED)).paint(painter, _mark_rect(whole, at))


def _draw_summary(painter: QPainter, whole: QRect, found: Summary) -> None:
    """Counts on a bar of how much is on, marks behind, a dot in the corner where some ask first."""
    known = ((found.observed, _OBSERVED), (found.limited, _LIMITED), (found.overruled, _OVERRULED))
    text = short_words(found)
    wide = painter.fontMetrics().horizontalAdvance(text)
    inner = whole.width() - (DOT + 2 if found.asks else 0)
    marks = [mark for stands, mark in known if stands][: max(0, inner - wide) // (MARK + 2)]
    left = (inner - wide - len(marks) * (MARK + 2)) // 2
    palette = current_look().palette
    bar = whole.adjusted(1, 0, -2, 0)
    bar.setWidth(round(bar.width() * found.on / found.every) if found.every else 0)
    painter.fillRect(bar, QColor(palette.verdict.allow.soft))
    if found.asks:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(palette.verdict.ask.fg))
        painter.drawEllipse(whole.right() - DOT - 2, whole.top() + 1, DOT, DOT)
    colour = palette.muted if found.on == 0 else palette.verdict.allow.fg if found.on == found.every else palette.text
    painter.setPen(QColor(colour))
    painter.drawText(QPoint(left, whole.top() + (whole.height() + painter.fontMetrics().capHeight()) // 2), text)
    at = left + wide + 3
    for icon, role in marks:
        current_look().icon(icon, role).paint(painter, _mark_rect(whole, at))
        at += MARK + 2


def _mark_rect(whole: QRect, left: int) -> QRect:
    return QRect(left, whole.top() + (whole.height() - MARK) // 2, MARK, MARK)


# the edges


LOWEST, HIGHEST = 60, 160
"""How high upright names make the edge."""
WIDEST_AGENT, LEAST_NAMED = 150, 96
NARROWEST_NAMES, WIDEST_NAMES = 120, 260
_ARROW, _PAD, _INDENT, _STEP = 14, 6, 18, 12


class _Edge(QHeaderView):
    """One line of it is under the mouse, one is the current one's."""

    about_to_choose = Signal()
    """It is pressed, and nothing has been chosen yet."""

    def __init__(self, orientation: Qt.Orientation, name: str, parent: QWidget | None = None) -> None:
        super().__init__(orientation, parent)
        self.hovered = self.current = -1
        self.setObjectName(f"agents.matrix.{name.casefold()}")
        self.setAccessibleName(name)
        self.setSectionsClickable(True)
        self.setHighlightSections(False)
        self.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.setMinimumSectionSize(8)

    @property
    def table(self) -> MatrixModel:
        model = self.model()
        if not isinstance(model, MatrixModel):
            raise TypeError("the edges of the matrix need its model")
        return model

    def set_lines(self, hovered: int, current: int) -> None:
        """What is under the mouse and what is current; -1 for none."""
        if (hovered, current) != (self.hovered, self.current):
            self.hovered, self.current = hovered, current
            self.viewport().update()

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Tell before the view chooses the line."""
        self.about_to_choose.emit()
        super().mousePressEvent(event)

    def ground(self, painter: QPainter, rect: QRect, section: int) -> None:
        """Behind the words."""
        palette = current_look().palette
        colour = palette.raised
        if section == self.current:
            colour = palette.accent.soft
        elif section == self.hovered:
            colour = palette.hover
        painter.fillRect(rect, QColor(colour))
        painter.fillRect(rect.left(), rect.bottom(), rect.width(), 1, QColor(palette.border))
        painter.fillRect(rect.right(), rect.top(), 1, rect.height(), QColor(palette.border))


class AgentEdge(_Edge):
    """The agents."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, tr("Agents"), parent)
        self.upright = False
        self._high = LOWEST

    def fit(self, room: int) -> None:
        """As wide as the room allows: names along while all of them fit, else upright."""
        count = max(self.count(), 1)
        share = room // count
        upright = share < LEAST_NAMED
        wide = CELL_WIDTH if upright else min(WIDEST_AGENT, share)
        names = (agent.agent_id for agent in self.table.agents)
        longest = max(map(self.fontMetrics().horizontalAdvance, names), default=0)
        high = max(LOWEST, min(HIGHEST, longest * 11 // 10 + 2 * _PAD))
        if (upright, wide, high) != (self.upright, self.defaultSectionSize(), self._high):
            self.upright, self._high = upright, high
            self.setDefaultSectionSize(wide)
            self.updateGeometry()
            self.geometriesChanged.emit()

    def sizeHint(self) -> QSize:  # noqa: N802
        """Room for upright names where they are upright."""
        row = current_look().tokens.row_height
        return QSize(self.defaultSectionSize(), self._high if self.upright else row + 4)

    def paintSection(self, painter: QPainter, rect: QRect, logicalIndex: int) -> None:  # noqa: N802, N803
        """A name, along or upright."""
        agent = self.table.agent_at(logicalIndex)
        if agent is None:
            return
        painter.save()
        self.ground(painter, rect, logicalIndex)
        painter.setFont(_weighted(painter.font(), strong=logicalIndex == self.current))
        painter.setPen(QColor(current_look().palette.text))
        room = (rect.height() if self.upright else rect.width()) - 2 * _PAD
        text = line_text(painter.fontMetrics(), agent.agent_id, room, Qt.TextElideMode.ElideMiddle)
        if self.upright:
            painter.translate(rect.left(), rect.bottom())
            painter.rotate(-90)
            place = QRect(_PAD, 0, room, rect.width())
            painter.drawText(place, LEFT, text)
        else:
            painter.drawText(rect.adjusted(_PAD, 0, -_PAD, 0), Qt.AlignmentFlag.AlignCenter, text)
        painter.restore()


class ToolEdge(_Edge):
    """The tools, and the operations of those that are open."""

    open_requested = Signal(object)
    """The row whose arrow was pressed: int."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Vertical, tr("Tools and operations"), parent)
        self.setDefaultSectionSize(current_look().tokens.row_height)
        self._wide = NARROWEST_NAMES

    def fit(self, room: int) -> None:
        """As wide as the longest name of what is shown, within bounds."""
        metrics = self.fontMetrics()
        names = (self.table.tool_at(row) for row in range(0, self.count(), max(self.count() // 200, 1)))
        longest = max((metrics.horizontalAdvance(tool.name) for tool in names if tool is not None), default=0)
        longest += _STEP * self.table.is_grouped
        most = max(NARROWEST_NAMES, min(WIDEST_NAMES, room // 3))
        wide = max(NARROWEST_NAMES, min(longest * 11 // 10 + _ARROW + 4 * _PAD, most))
        if wide != self._wide:
            self._wide = wide
            self.updateGeometry()
            self.geometriesChanged.emit()

    def sizeHint(self) -> QSize:  # noqa: N802
        """As wide as `fit` found."""
        return QSize(self._wide, self.defaultSectionSize())

    def paintSection(self, painter: QPainter, rect: QRect, logicalIndex: int) -> None:  # noqa: N802, N803
        """An arrow where it can be opened, and the name; that of a group with what it is, where there is room."""
        place, group = self.table.place_at(logicalIndex), self.table.group_at(logicalIndex)
        if place is None:
            return
        look = current_look()
        painter.save()
        self.ground(painter, rect, logicalIndex)
        left = rect.left() + _PAD + (_STEP if group is None and self.table.is_grouped else 0)
        if place.operation is not None:
            left += _INDENT
        elif self.table.can_open(logicalIndex):
            arrow = "chevron-down" if self.table.is_open(logicalIndex) else "chevron-right"
            look.icon(arrow, "muted").paint(
                painter, QRect(left - 2, rect.top() + (rect.height() - _ARROW) // 2, _ARROW, _ARROW)
            )
        left += _ARROW if place.operation is None else 0
        painter.setFont(_weighted(painter.font(), strong=place.operation is None))
        painter.setPen(QColor(look.palette.text))
        words = QRect(left, rect.top(), rect.right() - left - _PAD, rect.height())
        name = group.title if group is not None else place.operation or place.tool
        text = line_text(painter.fontMetrics(), name, words.width(), Qt.TextElideMode.ElideMiddle)
        painter.drawText(words, LEFT, text)
        if group is not None:
            words.setLeft(words.left() + painter.fontMetrics().horizontalAdvance(text) + 2 * _PAD)
            painter.setFont(look.small_font)
            if painter.fontMetrics().horizontalAdvance(group.kind) <= words.width():
                painter.setPen(QColor(look.palette.muted))
                painter.drawText(words, LEFT, group.kind)
        painter.restore()

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """On the arrow: open or close. Elsewhere the line is chosen."""
        at = event.position()
        row = self.logicalIndexAt(at.toPoint())
        step = _STEP if self.table.is_grouped and self.table.group_at(row) is None else 0
        is_arrow = row >= 0 and self.table.can_open(row) and at.x() < _PAD + step + _ARROW + 2
        if event.button() == Qt.MouseButton.LeftButton and is_arrow:
            self.open_requested.emit(row)
            event.accept()
            return
        super().mousePressEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Twice on a name opens it; twice on the arrow is two clicks."""
        if event.button() == Qt.MouseButton.LeftButton:
            self.open_requested.emit(self.logicalIndexAt(event.position().toPoint()))
            event.accept()
            return
        super().mouseDoubleClickEvent(event)


def _weighted(font: QFont, *, strong: bool) -> QFont:
    found = QFont(font)
    found.setWeight(QFont.Weight.DemiBold if strong else QFont.Weight.Normal)
    return found
