"""A bar of parts, each as wide as its count. Words beside it say the same."""

from collections.abc import Iterable

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QBrush, QColor, QPainter

from gatewright_gui.qt.look import current_look

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
