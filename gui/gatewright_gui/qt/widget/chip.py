"""Small coloured parts: a chip of any role, the badge of a verdict, a bar of shares."""

from collections.abc import Iterable

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.look import Role, VerdictName, current_look, role_pair
from gatewright_gui.qt.plaintext import LEFT, line_text

VERDICT_ICONS: dict[VerdictName, str] = {"allow": "circle-check", "ask": "hand", "deny": "ban"}
VERDICT_WORDS: dict[VerdictName, str] = {"allow": mark("allow"), "ask": mark("ask first"), "deny": mark("deny")}
_ICON = 12
_GAP = 4
_PAD = 6


def paint_chip(painter: QPainter, rect: QRect, text: str, icon: str | None, role: Role) -> None:
    """Draw a chip into `rect`, for delegates; the painter's font is used and its state kept."""
    look = current_look()
    pair = role_pair(look.palette, role)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(pair.soft))
    painter.drawRoundedRect(rect, look.tokens.small_radius, look.tokens.small_radius)
    left = rect.left() + _PAD
    if icon is not None:
        top = rect.top() + (rect.height() - _ICON) // 2
        look.icon(icon, role).paint(painter, QRect(left, top, _ICON, _ICON))
        left += _ICON + _GAP
    painter.setPen(QColor(pair.fg))
    words = QRect(left, rect.top(), rect.right() - _PAD - left + 2, rect.height())
    cut = line_text(painter.fontMetrics(), text, words.width())
    painter.drawText(words, LEFT, cut)
    painter.restore()


def chip_width(text_width: int, with_icon: bool) -> int:
    """Pixels that a chip around a text of this width takes."""
    return text_width + 2 * _PAD + (_ICON + _GAP if with_icon else 0)


class Chip(QWidget):
    """A word, with or without an icon, on a soft ground."""

    def __init__(
        self, text: str, *, icon: str | None = None, role: Role = "neutral", parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._icon = icon
        self._text = text
        self._role: Role = role
        self.setFont(current_look().small_font)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        current_look().changed.connect(self.update)
        self.set_chip(text, icon, role)

    @property
    def text(self) -> str:
        """The word it shows."""
        return self._text

    @property
    def role(self) -> Role:
        """The role whose colours it has."""
        return self._role

    def set_chip(self, text: str, icon: str | None, role: Role) -> None:
        """Show another word, icon and colour."""
        self._text, self._icon, self._role = text, icon, role
        self.setAccessibleName(text)
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:  # noqa: N802
        """Just the word and its ground."""
        metrics = self.fontMetrics()
        width = chip_width(metrics.horizontalAdvance(self._text), self._icon is not None)
        return QSize(width, metrics.height() + 5)

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """A chip is never cut."""
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Draw the chip in the colours of the theme that is on."""
        del event
        role: Role = self._role if self.isEnabled() else "disabled"
        paint_chip(QPainter(self), self.rect(), self._text, self._icon, role)


class VerdictBadge(Chip):
    """Allow, ask or deny: icon, word and colour."""

    def __init__(self, verdict: VerdictName, text: str | None = None, parent: QWidget | None = None) -> None:
        super().__init__("", parent=parent)
        self._verdict: VerdictName = verdict
        self.set_verdict(verdict, text)

    @property
    def verdict(self) -> VerdictName:
        """The verdict it shows."""
        return self._verdict

    def set_verdict(self, verdict: VerdictName, text: str | None = None) -> None:
        """Show a verdict, in other words than its own where `text` is given."""
        self._verdict = verdict
        self.set_chip(text or tr(VERDICT_WORDS[verdict]), VERDICT_ICONS[verdict], verdict)


LEAST = 2
"""So many pixels of what is there at all are seen."""


def paint_bar(painter: QPainter, room: QRect, every: int, parts: Iterable[tuple[int, str, Qt.BrushStyle]]) -> None:
    """Draw the parts of `every` (count, colour, pattern) from the left; what is left of the room stays ground."""
    painter.fillRect(room, QColor(current_look().palette.neutral.soft))
    left, done = room.left(), 0
    for count, colour, pattern in parts:
        done += count
        end = room.left() + room.width() * done // every if every else left
        end = max(end, min(left + LEAST, room.right() + 1)) if count else end
        painter.fillRect(left, room.top(), end - left, room.height(), QBrush(QColor(colour), pattern))
        left = end
