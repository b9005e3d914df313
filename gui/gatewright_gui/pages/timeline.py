"""How many calls there were when, by verdict: bars over an axis of times, of which a stretch can be chosen."""

from collections import defaultdict
from datetime import datetime

from PySide6.QtCore import QEvent, QRect, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QToolTip

from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.look import VerdictName, current_look, role_colour
from gatewright_gui.qt.plaintext import LEFT
from gatewright_gui.qt.table_model import RIGHT
from gatewright_gui.session.audit import Timeline

VERDICTS: tuple[VerdictName, ...] = ("allow", "ask", "deny")
_PATTERNS = {
    "allow": Qt.BrushStyle.SolidPattern,
    "ask": Qt.BrushStyle.Dense4Pattern,
    "deny": Qt.BrushStyle.BDiagPattern,
}
_BARS, _WORDS = 44, 16
_LEFT, _RIGHT, _TICK = 68, 76, 84
"""Pixels for the numbers beside the bars, for what their patterns stand for, and at least between two times."""
_TALL = 60
"""From this height on the bars take what room there is."""
_STEPS_S = (1, 5, 15, 30, 60, 300, 900, 1_800, 3_600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600)
_LONGEST_STEP_S = 2_592_000
_LEGEND: tuple[tuple[VerdictName, str], ...] = (
    ("deny", mark("denied")),
    ("ask", mark("asked")),
    ("allow", mark("allowed")),
)


def _form(timeline: Timeline) -> str:
    """The format, as exact as its moments are told."""
    if timeline.stretch_s < 60:
        return "%Y-%m-%d %H:%M:%S"
    return "%Y-%m-%d %H:%M" if timeline.stretch_s < 86_400 else "%Y-%m-%d"


class TimelineBar(QFrame):
    """Press and drag, or the arrow keys with Shift, choose a span; Escape chooses none."""

    span_chosen = Signal(object)
    """(from, to) in seconds since 1970, or None: float pair."""

    def __init__(self, bars: int = _BARS) -> None:
        super().__init__()
        self._least = bars
        self.setAccessibleName(tr("Calls by time"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        high = QSizePolicy.Policy.Expanding if bars >= _TALL else QSizePolicy.Policy.Fixed
        self.setSizePolicy(QSizePolicy.Policy.Expanding, high)
        self.setMouseTracking(True)
        self._timeline = Timeline()
        self._counts: dict[int, dict[str, int]] = {}
        self._most = 1
        self._anchor: int | None = None
        self._chosen: tuple[int, int] | None = None
        self._span: tuple[float, float] | None = None
        current_look().changed.connect(self.update)

    @property
    def timeline(self) -> Timeline:
        """The timeline that is shown."""
        return self._timeline

    def set_timeline(self, timeline: Timeline) -> None:
        """Show other counts; the chosen span stays."""
        if timeline == self._timeline:
            return
        self._timeline = timeline
        counts: dict[int, dict[str, int]] = defaultdict(dict)
        for one in timeline.counts:
            counts[one.stretch][one.verdict] = one.count
        self._counts = dict(counts)
        self._most = max((sum(found.values()) for found in counts.values()), default=1)
        self._mark()

    def set_span(self, span: tuple[float, float] | None) -> None:
        """Mark a span."""
        self._span = span
        self._mark()

    def _mark(self) -> None:
        """The stretches of the chosen span."""
        self._chosen = None
        if self._span is not None and self._timeline.stretches:
            begin, end = (int((moment - self._timeline.begin_s) // self._timeline.stretch_s) for moment in self._span)
            self._chosen = begin, max(end - 1, begin)
        self._tell()
        self.update()

    def words_of(self, stretch: int) -> str:
        """When a stretch is, and how many calls of which verdict it has."""
        begin_s = self._timeline.begin_s + stretch * self._timeline.stretch_s
        begin, end = (datetime.fromtimestamp(at).astimezone() for at in (begin_s, begin_s + self._timeline.stretch_s))
        form = _form(self._timeline)
        counts = self._counts.get(stretch, {})
        told = ", ".join(
            f"{counts[name]:,} {tr(words)}" for name, words in reversed(_LEGEND) if counts.get(name)
        ) or tr("no calls")
        return tr("{begin} to {end}: {calls}", begin=begin.strftime(form), end=end.strftime(form), calls=told)

    @property
    def _bars(self) -> int:
        """The height of the bars."""
        return max(self._least, self.height() - _WORDS - 6) if self._least >= _TALL else self._least

    @property
    def _wide(self) -> int:
        """The width of all bars."""
        return self.width() - _LEFT - _RIGHT

    def ticks(self) -> tuple[tuple[int, str], ...]:
        """The times below the bars: where each stands, and its words; the first one and every midnight with the day."""
        line, found = self._timeline, list[tuple[int, str]]()
        long_s = line.stretches * line.stretch_s
        if not long_s:
            return ()
        most = max(self._wide // _TICK, 1)
        step_s = next((one for one in _STEPS_S if long_s / one <= most), _LONGEST_STEP_S)
        offset_s = datetime.fromtimestamp(line.begin_s).astimezone().utcoffset()
        ahead_s = offset_s.total_seconds() if offset_s is not None else 0.0
        at_s = line.begin_s + -(line.begin_s + ahead_s) % step_s
        while at_s <= line.begin_s + long_s:
            moment = datetime.fromtimestamp(at_s).astimezone()
            clock = f"{moment:%H:%M:%S}" if step_s < 60 else f"{moment:%H:%M}"
            is_midnight = (moment.hour, moment.minute, moment.second) == (0, 0, 0)
            day = f"{moment.day} {moment:%b}"
            words = day if is_midnight or step_s >= 86_400 else clock if found else f"{day} {clock}"
            found.append((_LEFT + round(self._wide * (at_s - line.begin_s) / long_s), words))
            at_s += step_s
        return tuple(found)

    def rect_of(self, stretch: int) -> QRect:
        """The place where a stretch is drawn, from the top to the foot of the bars."""
        width, count = self._wide, max(self._timeline.stretches, 1)
        left = _LEFT + width * stretch // count
        return QRect(left, 2, max(_LEFT + width * (stretch + 1) // count - left, 1), self._bars)

    def sizeHint(self) -> QSize:  # noqa: N802
        """Slim."""
        return QSize(400, self._least + _WORDS + 6)

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """No narrower than can be hit."""
        return QSize(160, self._least + _WORDS + 6)

    # choosing

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Begin a span."""
        at = self._stretch_at(event.position().toPoint().x())
        if event.button() == Qt.MouseButton.LeftButton and at is not None:
            self._anchor = at
            self._show_chosen(at, at)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Draw the span out."""
        at = self._stretch_at(event.position().toPoint().x())
        if self._anchor is not None and at is not None:
            self._show_chosen(self._anchor, at)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """It is chosen."""
        if event.button() == Qt.MouseButton.LeftButton and self._anchor is not None:
            self._anchor = None
            self._choose()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Left and Right go from stretch to stretch, with Shift they draw the span out."""
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if event.key() == Qt.Key.Key_Escape and self._chosen is not None:
            self.span_chosen.emit(None)
        elif step is not None and self._timeline.stretches:
            last = self._timeline.stretches - 1
            begin, end = self._chosen or (last + 1, last + 1 if step < 0 else last)
            at = min(max((begin if step < 0 else end) + step, 0), last)
            is_longer = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier) and self._chosen is not None
            self._show_chosen(*((min(begin, at), max(end, at)) if is_longer else (at, at)))
            self._choose()
        else:
            super().keyPressEvent(event)

    def _show_chosen(self, one: int, other: int) -> None:
        self._chosen = min(one, other), max(one, other)
        self._tell()
        self.update()

    def _choose(self) -> None:
        if self._chosen is not None:
            begin_s, stretch_s = self._timeline.begin_s, self._timeline.stretch_s
            self.span_chosen.emit((begin_s + self._chosen[0] * stretch_s, begin_s + (self._chosen[1] + 1) * stretch_s))

    def _stretch_at(self, x: int) -> int | None:
        width, count = self._wide, self._timeline.stretches
        return min(max((x - _LEFT) * count // max(width, 1), 0), count - 1) if count else None

    def _tell(self) -> None:
        self.setAccessibleDescription(self.words_of(self._chosen[0]) if self._chosen is not None else "")

    def event(self, event: QEvent) -> bool:
        """The tooltip of a stretch."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            at = self._stretch_at(event.pos().x())
            QToolTip.showText(event.globalPos(), self.words_of(at) if at is not None else "", self)
            return True
        return super().event(event)

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Bars from the foot, allow lowest; the chosen span stands out, and so does the focus."""
        del event
        look, painter = current_look(), QPainter(self)
        painter.fillRect(self.rect(), QColor(look.palette.surface))
        if self._chosen is not None:
            span = self.rect_of(self._chosen[0]).united(self.rect_of(self._chosen[1]))
            painter.fillRect(span, QColor(look.palette.selection))
        foot = self.rect_of(0).bottom()
        painter.fillRect(_LEFT, foot + 1, self._wide, 1, QColor(look.palette.border_strong))
        for stretch, counts in self._counts.items():
            self._paint_bar(painter, self.rect_of(stretch), counts)
        painter.setFont(current_look().small_font)
        if self._timeline.stretches:
            self._paint_axes(painter, foot)
        if self.hasFocus():
            painter.setPen(QColor(look.palette.focus))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))

    def _paint_bar(self, painter: QPainter, room: QRect, counts: dict[str, int]) -> None:
        gap = 1 if room.width() > 3 else 0
        foot, whole = room.bottom() + 1, sum(counts.values())
        top = foot - max(round((room.height() - 2) * whole / self._most), 2)
        done = 0
        for name in VERDICTS:
            if not counts.get(name):
                continue
            low = foot - (foot - top) * done // whole
            done += counts[name]
            high = min(foot - (foot - top) * done // whole, low - 1)
            colour = QColor(role_colour(name))
            painter.fillRect(room.left(), high, room.width() - gap, low - high, QBrush(colour, _PATTERNS[name]))

    def _paint_axes(self, painter: QPainter, foot: int) -> None:
        """Draw numbers with lines at the left, times below, and at the right what the patterns stand for."""
        palette = current_look().palette
        half = self._most // 2
        for count in (self._most, half) if half and foot > 2 * _WORDS else (self._most,):
            at = foot - round((foot - 4) * count / self._most)
            painter.setPen(QColor(palette.border))
            painter.drawLine(_LEFT, at, _LEFT + self._wide, at)
            painter.setPen(QColor(palette.muted))
            room = QRect(0, max(at - _WORDS // 2, 0), _LEFT - 6, _WORDS)
            painter.drawText(room, RIGHT, counted(count, "call", "calls"))
        last = -_TICK
        for at, words in self.ticks():
            wide = painter.fontMetrics().horizontalAdvance(words)
            left = min(max(at - wide // 2, 0), self.width() - wide)
            if left < last + 8:
                continue
            last = left + wide
            painter.fillRect(at, foot + 1, 1, 4, QColor(palette.border_strong))
            painter.drawText(QRect(left, foot + 4, wide + 2, _WORDS), LEFT, words)
        step = min(foot // len(_LEGEND), _WORDS)
        for number, (name, words) in enumerate(_LEGEND):
            top, left = 2 + number * step, self.width() - _RIGHT + 8
            painter.fillRect(left, top + 2, 9, step - 4, QBrush(QColor(role_colour(name)), _PATTERNS[name]))
            painter.drawText(QRect(left + 13, top, _RIGHT - 22, step), LEFT, tr(words))
