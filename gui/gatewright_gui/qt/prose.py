"""Sentences of the engine: what stands in backticks is shown as code, without them."""

import html
import re
from collections.abc import Iterable, Iterator

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import QLabel, QWidget

from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import LEFT_TO_RIGHT, LONGEST_LINE, label_text

_DOTS = "\u2026"
_LEAST_NAME = 14
"""So many signs of a name are shown at least."""
_GROUND = 20
"""How much, of 255."""
_LONG_WORD = re.compile(r"\w{80}(?=\w)")
"""After each of these a line may break, so that no name makes the window wide."""
_CODE = re.compile(r"`([^`\n]+)`")


def pieces(text: str) -> Iterator[tuple[str, bool]]:
    """The parts of a sentence, each with whether it is code."""
    for number, part in enumerate(_CODE.split(text)):
        if part:
            yield part, number % 2 == 1


def plain(text: str) -> str:
    """The sentence in one face."""
    return "".join(part for part, _ in pieces(text))


def paint_prose(painter: QPainter, room: QRect, text: str) -> None:
    """One line with the painter's font and pen; too long, its names are cut in their middles, then its end."""
    normal = QFont(painter.font())
    faces = normal, _mono(normal)
    metrics = painter.fontMetrics()
    dots = max(QFontMetrics(face).horizontalAdvance(_DOTS) for face in faces)
    base = room.top() + (room.height() + metrics.ascent() - metrics.descent()) // 2
    line = label_text(text.replace("\n", "; "), LONGEST_LINE)
    left, parts = room.left(), _shorten(pieces(line), faces, room.width())
    for number, (part, is_code) in enumerate(parts):
        painter.setFont(faces[is_code])
        metrics = painter.fontMetrics()
        is_last, rest = number == len(parts) - 1, room.right() - left
        is_cut = metrics.horizontalAdvance(part) + (0 if is_last else dots) > rest
        wanted = part if is_last else f"{part}{_DOTS}"  # that more follows is told
        shown = metrics.elidedText(wanted, Qt.TextElideMode.ElideRight, rest) if is_cut else part
        width = metrics.horizontalAdvance(shown)
        if is_code:
            painter.fillRect(QRect(left, base - metrics.ascent(), width, metrics.height()), _ground())
        painter.drawText(left, base, shown)
        left += width
        if is_cut:
            break
    painter.setFont(normal)


def _shorten(parts: Iterable[tuple[str, bool]], faces: tuple[QFont, QFont], room: int) -> list[tuple[str, bool]]:
    """A sentence whose names lose their middles where it is too long, the longest first: its words say what it is."""
    found = list(parts)
    metrics = tuple(map(QFontMetrics, faces))
    widths = [metrics[is_code].horizontalAdvance(part) for part, is_code in found]
    least = metrics[1].horizontalAdvance("m" * _LEAST_NAME)
    for at in sorted(range(len(found)), key=lambda at: -widths[at]):
        over = sum(widths) - room
        if over > 0 and found[at][1] and widths[at] > least:
            most = max(widths[at] - over, least)
            found[at] = metrics[1].elidedText(found[at][0], Qt.TextElideMode.ElideMiddle, most), True
            widths[at] = metrics[1].horizontalAdvance(found[at][0])
    return found


def _ground() -> QColor:
    """Behind code: seen on any row, chosen or not."""
    ground = QColor(current_look().palette.text)
    ground.setAlpha(_GROUND)
    return ground


def _mono(font: QFont) -> QFont:
    """The face of code in the size of the words around it."""
    mono = QFont(current_look().mono_font)
    if font.pixelSize() > 0:
        mono.setPixelSize(font.pixelSize())
    else:
        mono.setPointSizeF(font.pointSizeF())
    return mono


class ProseLabel(QLabel):
    """Wraps. `text` is the sentence as the engine wrote it; what is shown and selected has no backticks."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = ""
        self.setWordWrap(True)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        current_look().changed.connect(self._show)

    def setText(self, text: str) -> None:  # noqa: N802
        """Show a sentence."""
        self._text = text
        self._show()

    def text(self) -> str:
        """The sentence, with its backticks."""
        return self._text

    def _show(self) -> None:
        text = _LONG_WORD.sub("\\g<0>\u200b", label_text(self._text))
        if "`" not in text:
            self.setTextFormat(Qt.TextFormat.PlainText)
            super().setText(f"{LEFT_TO_RIGHT}{text}" if text else "")
            self.setAccessibleName(text)
            return
        self.setTextFormat(Qt.TextFormat.RichText)
        family = html.escape(current_look().mono_font.family(), quote=True)
        ground = _ground()
        tint = f"rgba({ground.red()},{ground.green()},{ground.blue()},{ground.alpha()})"
        style = f"font-family:'{family}';background-color:{tint}"
        body = "".join(
            f'<span style="{style}">{html.escape(part)}</span>' if is_code else html.escape(part)
            for part, is_code in pieces(text)
        )
        super().setText(f'<p style="white-space:pre-wrap;margin:0" dir="ltr">{LEFT_TO_RIGHT}{body}</p>' if body else "")
        self.setAccessibleName(plain(text))
