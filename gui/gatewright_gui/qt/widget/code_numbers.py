"""The column of line numbers and fold arrows beside a text."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QRect, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from gatewright_gui.qt.fold import Fold
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.look import Role, current_look

ARROW = 14
"""Pixels of a fold's arrow; its column is two wider."""


@dataclass(frozen=True, slots=True)
class NumberedRow:
    """A row that is in view: its upper edge, its line (from 0), and the fold that begins in it."""

    top: int
    line: int
    fold: Fold | None
    is_closed: bool


class LineNumbers(QWidget):
    """A column as wide as the numbers of so many lines need; a click on an arrow chooses its fold."""

    fold_chosen = Signal(object)
    """Fold."""

    def __init__(self, rows: Callable[[], Iterable[NumberedRow]], parent: QWidget) -> None:
        super().__init__(parent)
        self._rows = rows
        self._names: Sequence[str] = ()
        self._pointed: Fold | None = None
        self.setMouseTracking(True)

    def set_names(self, names: Sequence[str]) -> None:
        """Set what stands beside each line instead of its number; (): the number."""
        self._names = names

    def width_for(self, lines: int, *, with_arrows: bool) -> int:
        """Pixels for a text of so many lines."""
        space = current_look().tokens.space_2
        digits = max(2, len(str(lines)), *map(len, self._names)) * self.fontMetrics().horizontalAdvance("9") + space
        return digits + (ARROW + 2 if with_arrows else space)

    def arrow_rect(self, line: int) -> QRect:
        """The place of the arrow of a fold that begins at a line (from 0); empty where it is not in view."""
        return next((self._arrow(row) for row in self._rows() if row.line == line), QRect())

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Numbers and arrows of the rows in view."""
        palette = current_look().palette
        painter = QPainter(self)
        painter.fillRect(event.rect(), QColor(palette.background))
        painter.setPen(QColor(palette.muted))
        height, space = self.fontMetrics().height(), current_look().tokens.space_2
        rows = [row for row in self._rows() if row.top <= event.rect().bottom()]
        right = self.width() - (ARROW + 2 if any(row.fold for row in rows) else space)
        for row in rows:
            number = self._names[row.line] if row.line < len(self._names) else "" if self._names else str(row.line + 1)
            painter.drawText(QRect(0, row.top, right, height), Qt.AlignmentFlag.AlignRight, number)
            if row.fold is not None:
                role: Role = "accent" if row.fold == self._pointed or row.is_closed else "muted"
                icon = "chevron-right" if row.is_closed else "chevron-down"
                current_look().icon(icon, role).paint(painter, self._arrow(row))

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Choose the fold whose arrow it is."""
        row = self._row_at(event.position().y())
        if row is not None and event.button() == Qt.MouseButton.LeftButton:
            self.fold_chosen.emit(row.fold)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Say what a click would do."""
        row = self._row_at(event.position().y())
        self.setCursor(Qt.CursorShape.ArrowCursor if row is None else Qt.CursorShape.PointingHandCursor)
        tip = tr("Unfold (Ctrl+Shift+])") if row is not None and row.is_closed else tr("Fold (Ctrl+Shift+[)")
        self.setToolTip("" if row is None else tip)
        self._point_at(None if row is None else row.fold)

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802
        """No arrow is pointed at."""
        super().leaveEvent(event)
        self._point_at(None)

    def _row_at(self, y: float) -> NumberedRow | None:
        """The row with a fold whose first line is at a height."""
        high = self.fontMetrics().height() + 2
        return next((row for row in self._rows() if row.fold is not None and row.top <= y < row.top + high), None)

    def _arrow(self, row: NumberedRow) -> QRect:
        down = row.top + (self.fontMetrics().height() - ARROW) // 2
        return QRect(self.width() - ARROW - 1, down, ARROW, ARROW)

    def _point_at(self, fold: Fold | None) -> None:
        if fold != self._pointed:
            self._pointed = fold
            self.update()
