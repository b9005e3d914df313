"""The picture of reach: agents and effects in two columns, and bands as wide as the operations between them.

It is painted into a pixmap, once for a size, a theme and a choice; of hundreds of bands some at a time, so that the
window has its turns in between.
"""

import time
from collections.abc import Iterator

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import QFrame, QSizePolicy

from gatewright.workspace.api import Effect
from gatewright_gui.pages.home.picture_layout import (
    Band,
    Box,
    Drawing,
    Part,
    Picture,
    drawing_of,
    height_for,
    words_of,
)
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.look import Pair, VerdictName, current_look
from gatewright_gui.qt.plaintext import line_text

PAD = 8
_FREE, _ASKS = 110, 150
"""The share, of 255, that bands cover where there are few."""
_ROLES: dict[Effect, VerdictName] = {
    Effect.READ: "allow",
    Effect.DELETE: "deny",
    Effect.SEND: "ask",
    Effect.RUN: "ask",
}
_THIN = 2.5
"""Bands that are no thicker are lines, in pixels."""
TURN_S = 0.006
"""How long is painted before the window has its turn."""
_STEPS = {Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1), Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0)}


class ReachCanvas(QFrame):
    """A click or `Space` chooses a box or a band, once more or `Escape` nothing; the arrows go from box to box."""

    chosen_changed = Signal(object)
    """Part: what is chosen, () for nothing."""
    told = Signal(object)
    """str: what is under the mouse or the current box, in words; empty for nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("home.picture")
        self.setAccessibleName(tr("Picture of who can do what; the list has the same in words"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.picture = Picture()
        self.chosen: Part = ()
        self.current = 0
        """The box that the keys are at."""
        self._pointed: Part = ()
        self._drawing = Drawing()
        self._painted = QPixmap()
        self._fresh: QPixmap | None = None
        """What is being painted; None when `painted` is of now."""
        self._bands_left: Iterator[Band] = iter(())
        self._turn = QTimer(self, interval=0, singleShot=True)
        self._turn.timeout.connect(self.update)
        current_look().changed.connect(self._forget)

    @property
    def drawing(self) -> Drawing:
        """The drawing that is shown, with its places from the corner of the widget."""
        return self._drawing

    def show_picture(self, picture: Picture) -> None:
        """Show other rights; what was chosen stays where it is there still."""
        names = [(self.picture.nodes[number].agents, self.picture.nodes[number].effect) for number in self.chosen]
        numbers = {(node.agents, node.effect): number for number, node in enumerate(picture.nodes)}
        self.picture = picture
        self.current = min(self.current, max(len(picture.nodes) - 1, 0))
        self._pointed = ()
        self._choose(tuple(numbers[name] for name in names) if all(name in numbers for name in names) else ())
        self.setMinimumHeight(height_for(picture.nodes) + 2 * PAD)
        self._lay_out()

    def choose(self, part: Part) -> None:
        """Light what a part concerns; what is chosen already is chosen no more."""
        self._choose(() if part == self.chosen else part)

    def _choose(self, part: Part) -> None:
        if part != self.chosen:
            self.chosen = part
            self._lay_out()
            self.chosen_changed.emit(part)

    def sizeHint(self) -> QSize:  # noqa: N802
        """A size as small as its boxes allow."""
        return QSize(420, self.minimumHeight())

    def _lay_out(self) -> None:
        room = self.rect().adjusted(PAD, PAD, -PAD, -PAD)
        self._drawing = drawing_of(self.picture, room.width(), room.height(), self.chosen)
        self._tell()
        self._forget()

    def _forget(self, _why: object = None) -> None:
        scale = self.devicePixelRatioF()
        self._fresh = QPixmap((self.size() * scale).expandedTo(QSize(1, 1)))
        self._fresh.setDevicePixelRatio(scale)
        self._fresh.fill(QColor(current_look().palette.surface))
        self._bands_left = iter(self._drawing.bands)
        self.update()

    # mouse and keys

    def part_at(self, at: QPointF) -> Part:
        """The box or the band at a place; () for none."""
        place = at - QPointF(PAD, PAD)
        for box in self._drawing.boxes:
            if box.rect.contains(place):
                return (box.number,)
        return next((band.part for band in reversed(self._drawing.bands) if band.path().contains(place)), ())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Tell what is there."""
        self._point_at(self.part_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802
        """Nothing is there any more."""
        super().leaveEvent(event)
        self._point_at(())

    def _point_at(self, part: Part) -> None:
        if part != self._pointed:
            self._pointed = part
            self.setCursor(Qt.CursorShape.PointingHandCursor if part else Qt.CursorShape.ArrowCursor)
            self._tell()
            self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Choose what is there."""
        if event.button() == Qt.MouseButton.LeftButton:
            part = self.part_at(event.position())
            if len(part) == 1:
                self.current = part[0]
            self.choose(part)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """From box to box; choose; choose nothing."""
        key = Qt.Key(event.key())
        if key in _STEPS and self._drawing.boxes:
            self.current, self._pointed = self._beside(*_STEPS[key]), ()
            self._tell()
            self.update()
        elif key in {Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter} and self._drawing.boxes:
            self.choose((self.current,))
        elif key == Qt.Key.Key_Escape and self.chosen:
            self._choose(())
        else:
            super().keyPressEvent(event)

    def _beside(self, across: int, along: int) -> int:
        """The number of the next box in a direction; where there is none, of the same."""
        boxes = {box.number: box for box in self._drawing.boxes}
        here = boxes[self.current]
        is_effect = here.node.effect is not None
        if along:
            there = boxes.get(self.current + along)
            return there.number if there is not None and (there.node.effect is not None) == is_effect else here.number
        if is_effect == (across > 0):
            return here.number
        others = [box for box in self._drawing.boxes if (box.node.effect is not None) != is_effect]
        middle = here.rect.center().y()
        return min(others, key=lambda box: abs(box.rect.center().y() - middle)).number if others else here.number

    def focusInEvent(self, event: QFocusEvent) -> None:  # noqa: N802
        """The current box is told."""
        super().focusInEvent(event)
        self._tell()

    def focusOutEvent(self, event: QFocusEvent) -> None:  # noqa: N802
        """It is told no more."""
        super().focusOutEvent(event)
        self._tell()

    def _tell(self) -> None:
        part = self._pointed or ((self.current,) if self.hasFocus() and self.picture.nodes else self.chosen)
        words = words_of(self.picture, part) if part else ""
        self.setAccessibleDescription(words)
        self.told.emit(words)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Lay out anew."""
        super().resizeEvent(event)
        self._lay_out()

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """The pixmap, and over it what is pointed at and where the keys are."""
        del event
        if self._fresh is not None:
            self._paint_more(self._fresh)
        look, painter = current_look(), QPainter(self)
        is_old = self._fresh is not None and self._painted.size() != self._fresh.size()
        painter.drawPixmap(0, 0, self._fresh if is_old and self._fresh is not None else self._painted)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(PAD, PAD)
        rects = {box.number: box.rect for box in self._drawing.boxes}
        painter.setPen(QPen(QColor(look.palette.text), 1.2))
        match self._pointed:
            case (number,) if number in rects:
                painter.drawRoundedRect(rects[number], 3, 3)
            case (_, _):
                band = next((one for one in self._drawing.bands if one.part == self._pointed), None)
                if band is not None:
                    painter.drawPath(band.path())
            case _:
                pass
        if self.hasFocus() and self.current in rects:
            painter.setPen(QPen(QColor(look.palette.focus), 2))
            painter.drawRoundedRect(rects[self.current].adjusted(-2, -2, 2, 2), 4, 4)

    def _paint_more(self, fresh: QPixmap) -> None:
        """Some bands, or what stands over them where no more are left; then it is seen."""
        painter, until = QPainter(fresh), time.monotonic() + TURN_S
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(PAD, PAD)
        palette = current_look().palette
        for band in self._bands_left:
            if not band.is_lit:
                _fill(painter, band, (0, 1), QColor(palette.neutral.soft))
            else:
                free, pair = band.flow.count.free / band.flow.count.every, _pair(band.effect)
                if free:
                    _fill(painter, band, (0, free), _thin(pair.fg, _FREE * band.cover))
                if free and band.effect is Effect.CHANGE and band.begin.height() * free > _THIN:
                    stripes = QBrush(_thin(pair.fg, _FREE * band.cover), Qt.BrushStyle.BDiagPattern)
                    painter.fillPath(band.path(0, free), stripes)
                if free < 1:
                    dots, ground = _thin(pair.fg, _ASKS * band.cover), _thin(pair.soft, 255 * band.cover)
                    _fill(painter, band, (free, 1), dots, ground)
            if time.monotonic() > until:
                self._turn.start()
                return
        painter.setFont(current_look().small_font)
        for rect, words in self._drawing.headings:
            painter.setPen(QColor(palette.muted))
            self._write(painter, rect, words, Qt.AlignmentFlag.AlignLeft)
            self._write(painter, rect.adjusted(0, 0, -6, 0), tr("operations"), Qt.AlignmentFlag.AlignRight)
        for box in self._drawing.boxes:
            self._paint_box(painter, box)
        self._painted, self._fresh = fresh, None

    def _paint_box(self, painter: QPainter, box: Box) -> None:
        look = current_look()
        palette, is_lit = look.palette, box.number in self._drawing.lit
        is_chosen = box.number in self.chosen
        painter.setPen(QPen(QColor(palette.accent.fg if is_chosen else palette.border), 2 if is_chosen else 1))
        painter.setBrush(QColor(palette.accent.soft if is_chosen else palette.raised))
        painter.drawRoundedRect(box.rect, 3, 3)
        if box.node.effect is not None and box.node.size:
            painter.fillRect(box.rect.adjusted(1, 1, 4 - box.rect.width(), -1), QColor(_pair(box.node.effect).fg))
        painter.setFont(look.small_font)
        painter.setPen(QColor(palette.text if is_lit and box.node.size else palette.muted))
        inner = box.rect.adjusted(6 if box.node.effect is None else 10, 0, -6, 0)
        count = f"{box.node.size:,}"
        taken = painter.fontMetrics().horizontalAdvance(count) + 8
        self._write(painter, inner.adjusted(0, 0, -taken, 0), box.node.title, Qt.AlignmentFlag.AlignLeft)
        painter.setPen(QColor(palette.muted))
        self._write(painter, inner, count, Qt.AlignmentFlag.AlignRight)

    @staticmethod
    def _write(painter: QPainter, rect: QRectF, words: str, side: Qt.AlignmentFlag) -> None:
        room: QRect = rect.toAlignedRect()
        text = line_text(painter.fontMetrics(), words, room.width())
        painter.drawText(room, side | Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignAbsolute, text)


def _pair(effect: Effect) -> Pair:
    """The colours of an effect: changes are striped besides, to be told from what only reads."""
    palette = current_look().palette
    return palette.accent if effect is Effect.CHANGE else getattr(palette.verdict, _ROLES[effect])


def _fill(
    painter: QPainter,
    band: Band,
    share: tuple[float, float],
    colour: QColor,
    below: QColor | None = None,
) -> None:
    """Solid, or dots on what is `below`. Smooth along the edge alone: smoothing large areas takes six times as long."""
    thick = (share[1] - share[0]) * max(band.begin.height(), band.end.height())
    if thick < _THIN:
        painter.strokePath(band.line(sum(share) / 2), QPen(colour, max(thick, 0.7)))
        return
    path = band.path(*share)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
    if below is not None:
        painter.fillPath(path, below)
    painter.fillPath(path, QBrush(colour, Qt.BrushStyle.SolidPattern if below is None else Qt.BrushStyle.Dense4Pattern))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.strokePath(path, QPen(colour, 1))


def _thin(colour: str, cover: float) -> QColor:
    thin = QColor(colour)
    thin.setAlpha(round(cover))
    return thin
