"""Draws the matrix: its cells, one mark each, its two frozen edges, and the line that says what the marks mean.

What a cell shows is drawn once for each kind of cell and kept as a picture, since hundreds of cells are seen at a time.
"""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QPoint, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QMouseEvent, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import QHeaderView, QSizePolicy, QWidget

from gatewright_gui.pages.access.tools.matrix import MatrixModel
from gatewright_gui.pages.access.tools.matrix_words import ASKS, OFF, ON, short_words
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import named
from gatewright_gui.qt.look import CheckState, Pair, current_look, role_colour
from gatewright_gui.qt.plaintext import LEFT, line_text
from gatewright_gui.session.right_columns import Cell, OperationCell, Summary

BOX = 18
"""Pixels of a mark."""
CELL_WIDTH, WIDEST_UPRIGHT = 34, 48
"""The narrowest cell, and the widest below a name that stands upright."""
_PICTURE = BOX + 8
_SIGN, _EYE = 7, 11
_LEAST_ASKING = 3.0
"""Pixels of what asks first in a mark that is filled in part."""
_RADIUS = 4
MOST_KEPT = 2_000
"""Pictures of cells that are kept."""


class CellPainter:
    """Call `forget` when the theme changes."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Summary | OperationCell | None, float], QPixmap] = {}

    def forget(self) -> None:
        """Draw everything anew."""
        self._kept.clear()

    def paint(self, painter: QPainter, place: QRect, found: Summary | OperationCell | None, scale: float) -> None:
        """Draw the mark of a cell in its middle."""
        key = (found, scale)
        picture = self._kept.get(key)
        if picture is None:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            picture = self._kept[key] = _cell_picture(painter, found, scale)
        painter.drawPixmap(
            place.left() + (place.width() - _PICTURE) // 2, place.top() + (place.height() - _PICTURE) // 2, picture
        )


def box_rect(place: QRect) -> QRect:
    """The place of the mark of a cell."""
    return QRect(place.left() + (place.width() - BOX) // 2, place.top() + (place.height() - BOX) // 2, BOX, BOX)


def _cell_picture(like: QPainter, found: Summary | OperationCell | None, scale: float) -> QPixmap:
    picture = QPixmap(round(_PICTURE * scale), round(_PICTURE * scale))
    picture.setDevicePixelRatio(scale)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setFont(like.font())
    whole = QRect(0, 0, _PICTURE, _PICTURE)
    box = box_rect(whole)
    match found:
        case Summary(on, asks, off) if on + asks + off:
            _draw_mark(painter, box, on, asks, off, is_idle=found.overruled)
            _draw_sign(painter, box, depends=found.depends, observed=found.observed)
        case OperationCell(state) if state is not Cell.MISSING:
            asks = int(state in {Cell.ASKS, Cell.LOCKED})
            off = int(state in {Cell.OFF, Cell.OVERRULED})
            _draw_mark(painter, box, 1 - asks - off, asks, off, is_idle=state is Cell.OVERRULED)
            _draw_sign(painter, box, depends=found.depends and not off, observed=found.is_observed)
        case _:
            painter.setPen(role_colour("muted"))
            painter.drawText(whole, Qt.AlignmentFlag.AlignCenter, short_words(found))
    painter.end()
    return picture


def _draw_mark(painter: QPainter, box: QRect, on: int, asks: int, off: int, *, is_idle: bool = False) -> None:
    """Draw one mark: empty for Off, a hand for Ask first, a hook for On; filled from below where they differ.

    `is_idle`: something is ticked and off; seen where all is off.
    """
    look = current_look()
    verdict = look.palette.verdict
    if not on and not asks:
        look.check_icon(CheckState.BLOCKED if is_idle else CheckState.OFF).paint(painter, box.adjusted(1, 1, -1, -1))
    elif not off and not (on and asks):
        pair = verdict.allow if on else verdict.ask
        _draw_box(painter, box, pair, pair.soft)
        icon = look.icon("check", "allow") if on else look.icon("hand", "ask")
        icon.paint(painter, box.adjusted(3, 3, -3, -3))
    else:
        _draw_box(painter, box, verdict.allow if on else verdict.ask, look.palette.surface)
        room = QRectF(box).adjusted(3, 3, -3, -3)
        every = on + asks + off
        top = room.bottom() - max(room.height() * (on + asks) / every, 2.0)
        asking = max(room.height() * asks / every, _LEAST_ASKING) if asks else 0.0
        painter.fillRect(QRectF(room.left(), top, room.width(), asking), QColor(verdict.ask.fg))
        top += asking + (1 if asks and on else 0)  # a gap: the two are not told apart by their colours alone
        painter.fillRect(QRectF(room.left(), top, room.width(), room.bottom() - top), QColor(verdict.allow.fg))


def _draw_box(painter: QPainter, box: QRect, pair: Pair, ground: str) -> None:
    painter.setPen(QPen(QColor(pair.fg), 1))
    painter.setBrush(QColor(ground))
    painter.drawRoundedRect(QRectF(box).adjusted(0.5, 0.5, -0.5, -0.5), _RADIUS, _RADIUS)


def _draw_sign(painter: QPainter, box: QRect, *, depends: bool, observed: bool) -> None:
    """Draw in the corner of a mark an eye for what is only observed, or a dot for what depends on path or value."""
    look = current_look()
    if observed:
        at = QRect(box.right() - _EYE + 4, box.top() - 4, _EYE, _EYE)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(look.palette.surface))
        painter.drawEllipse(at.adjusted(-1, -1, 1, 1))
        look.icon("eye", "ask").paint(painter, at)
    elif depends:
        painter.setPen(QPen(QColor(look.palette.surface), 1.5))
        painter.setBrush(QColor(look.palette.accent.fg))
        painter.drawEllipse(QRect(box.right() - _SIGN + 3, box.top() - 3, _SIGN, _SIGN))


LEGEND: tuple[tuple[Summary | OperationCell, str], ...] = (
    (OperationCell(Cell.OFF), OFF),
    (OperationCell(Cell.ASKS), ASKS),
    (OperationCell(Cell.ON), ON),
    (Summary(on=3, asks=2, off=4), mark("Some operations")),
    (OperationCell(Cell.ON, is_limited=True), mark("Depends on path or value")),
    (OperationCell(Cell.OVERRULED), mark("No effect")),
    (OperationCell(Cell.ON, is_observed=True), mark("Only observed")),
)


class MatrixLegend(QWidget):
    """Stands below the cells, in one line where there is room."""

    def __init__(self) -> None:
        super().__init__()
        words = ", ".join(tr(words) for _, words in LEGEND)
        named(self, "agents.matrix.legend", spoken=tr("Legend: {marks}", marks=words), tip=words)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self._painter = CellPainter()
        self.setFont(current_look().small_font)
        current_look().changed.connect(self._dress)

    def _dress(self) -> None:
        self._painter.forget()
        self.setFont(current_look().small_font)
        self.update()

    def sizeHint(self) -> QSize:  # noqa: N802
        """Room for the marks in one line."""
        return QSize(0, self._line_height)

    @property
    def _line_height(self) -> int:
        return max(_PICTURE, self.fontMetrics().height()) + 4

    def heightForWidth(self, width: int) -> int:  # noqa: N802
        """Room for the lines that the marks need."""
        return self._places(width)[-1].top() + self._line_height

    def _places(self, width: int) -> list[QRect]:
        """The places of the marks with their words, a line below the other."""
        high, metrics = self._line_height, self.fontMetrics()
        wide = [_PICTURE + metrics.horizontalAdvance(tr(words)) for _, words in LEGEND]
        gap = min(max((width - 2 * _PAD - sum(wide)) // len(wide), 4), 16)
        found = [QRect(_PAD, 0, wide[0], high)]
        for one in wide[1:]:
            last = found[-1]
            place = QRect(last.right() + 1 + gap, last.top(), one, high)
            found.append(place if place.right() < width else QRect(_PAD, last.top() + high, one, high))
        return found

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Draw each mark with its word, closer where the room is small."""
        del event
        painter = QPainter(self)
        painter.setPen(role_colour("muted"))
        for (found, words), place in zip(LEGEND, self._places(self.width()), strict=True):
            box = QRect(place.left(), place.top(), _PICTURE, place.height())
            self._painter.paint(painter, box, found, self.devicePixelRatioF())
            painter.drawText(place.adjusted(_PICTURE, 0, 2, 0), LEFT, tr(words))
        painter.end()


# the edges


LOWEST, HIGHEST = 60, 160
"""How high upright names make the edge."""
WIDEST_AGENT, LEAST_NAMED = 150, 90
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
        """Set what is under the mouse and what is current; -1 for none."""
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
        """Make it as wide as the room allows: names along while all of them fit, else upright."""
        count = max(self.count(), 1)
        share = room // count
        upright = share < LEAST_NAMED
        wide = max(CELL_WIDTH, min(WIDEST_UPRIGHT, share)) if upright else min(WIDEST_AGENT, share)
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
        painter.setFont(_font_of_weight(painter.font(), strong=logicalIndex == self.current))
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
        self.pinned: Callable[[], Sequence[int]] = tuple
        """Asked for the rows that stand at the top although they lie above what is seen."""

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Paint the names, over them those that stay."""
        super().paintEvent(event)
        painter, high = QPainter(self.viewport()), self.defaultSectionSize()
        painter.setFont(self.font())
        for at, row in enumerate(self.pinned()):
            self.paintSection(painter, QRect(0, at * high, self.width(), high), row)
        painter.end()

    def row_at(self, at: QPoint) -> int:
        """Return the row under a point, one that stays before the one that it covers; -1 beyond the rows."""
        place, pinned = at.y() // self.defaultSectionSize(), self.pinned()
        return pinned[place] if 0 <= place < len(pinned) else self.logicalIndexAt(at)

    def fit(self, room: int) -> None:
        """Make it as wide as the longest name of what is shown, within bounds."""
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
        """A size as wide as `fit` found."""
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
        painter.setFont(_font_of_weight(painter.font(), strong=place.operation is None))
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
        row = self.row_at(at.toPoint())
        step = _STEP if self.table.is_grouped and self.table.group_at(row) is None else 0
        is_arrow = row >= 0 and self.table.can_open(row) and at.x() < _PAD + step + _ARROW + 2
        if event.button() == Qt.MouseButton.LeftButton and is_arrow:
            self.open_requested.emit(row)
            event.accept()
            return
        if row in self.pinned():  # Qt would choose the one that it covers
            self.about_to_choose.emit()
            self.sectionPressed.emit(row)
            event.accept()
            return
        super().mousePressEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Twice on a name opens it; twice on the arrow is two clicks."""
        if event.button() == Qt.MouseButton.LeftButton:
            self.open_requested.emit(self.row_at(event.position().toPoint()))
            event.accept()
            return
        super().mouseDoubleClickEvent(event)


def _font_of_weight(font: QFont, *, strong: bool) -> QFont:
    found = QFont(font)
    found.setWeight(QFont.Weight.DemiBold if strong else QFont.Weight.Normal)
    return found
