"""A small bar of how much is denied, asks first and is allowed. Words beside it say the same."""

from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath

from gatewright_gui.qt.look import VerdictName, role_colour

BAR_WIDTH, BAR_HEIGHT = 28, 6
_LEAST = 3
"""So wide is the part of what is there at all."""
_ORDER: tuple[VerdictName, ...] = ("deny", "ask", "allow")


def paint_bar(painter: QPainter, place: QRect, counts: tuple[int, int, int]) -> None:
    """Draw deny, ask and allow side by side, each as wide as its count; nothing where all are 0."""
    every = sum(counts)
    if not every:
        return
    room = place.width() - _LEAST * sum(count > 0 for count in counts)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    shape = QPainterPath()
    shape.addRoundedRect(QRectF(place), 2, 2)
    painter.setClipPath(shape)
    painter.setPen(Qt.PenStyle.NoPen)
    left = float(place.left())
    for count, role in zip(counts, _ORDER, strict=True):
        if count:
            wide = _LEAST + room * count / every
            painter.fillRect(QRectF(left, place.top(), wide - 1, place.height()), role_colour(role))
            left += wide
    painter.restore()
