"""The calls that wait, as a list: who asks for what, from where, and how long there is still time."""

import time
from collections.abc import Callable, Iterable

from PySide6.QtCore import QModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QStyleOptionViewItem

from gatewright_gui.qt.language import tr
from gatewright_gui.qt.look import current_look, role_hex
from gatewright_gui.qt.plaintext import line_text
from gatewright_gui.qt.table_model import ROW, Index, RowModel
from gatewright_gui.qt.widget.delegate import Delegate, paint_ground
from gatewright_gui.session.question import PendingApproval, span

SOON_S = 15.0
"""With less time left a question stands out, and a suspended one when it is due."""


class InboxModel(RowModel[PendingApproval]):
    """Oldest first. A question that goes or comes moves no other: what is chosen stays chosen."""

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._wall = wall

    def key(self, row: PendingApproval) -> object:
        """The question."""
        return row.request_id

    def set_rows(self, rows: Iterable[PendingApproval]) -> None:
        """Show these, new ones behind the others."""
        now = {question.request_id: question for question in rows}
        for at in reversed(range(len(self.rows))):
            if self.rows[at].request_id not in now:
                self.beginRemoveRows(QModelIndex(), at, at)
                self.rows = (*self.rows[:at], *self.rows[at + 1 :])
                self.endRemoveRows()
        held = tuple(now.pop(question.request_id) for question in self.rows)
        if now:
            self.beginInsertRows(QModelIndex(), len(held), len(held) + len(now) - 1)
            self.rows = (*held, *now.values())
            self.endInsertRows()
        self.refresh_rows((*held, *now.values()), stay=True)

    def text(self, row: PendingApproval, _column: int) -> str:
        """Who asks for what."""
        return f"{row.whose}: {row.called}"

    def tip(self, row: PendingApproval, column: int) -> str:
        """With where it comes from and the time that is left."""
        return ", ".join(filter(None, (self.text(row, column), row.asker, row.left_words(self._wall()))))

    spoken = tip


class InboxDelegate(Delegate):
    """Three lines: what is called, by which agent, from where; the time that is left at the right."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        """Three lines high."""
        return QSize(super().sizeHint(option, index).width(), 3 * 18 + 8)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Ground, words, time."""
        question = index.data(ROW)
        if not isinstance(question, PendingApproval):
            return
        look, rect = current_look(), QRect(getattr(option, "rect"))  # noqa: B009
        paint_ground(painter, option)
        painter.save()
        left_s = None if question.expires_wall_s is None else question.expires_wall_s - time.time()
        time_words = "" if left_s is None else span(left_s) if left_s >= 1 else tr("expired")
        is_soon = question.is_due(time.time()) if question.call_key else left_s is not None and left_s < SOON_S
        metrics = painter.fontMetrics()
        wide = metrics.horizontalAdvance(time_words) + 8
        lines = (
            (question.called, look.palette.text, rect.width() - 28 - wide),
            (question.whose, look.palette.text, rect.width() - 20),
            (question.asker or tr("this program"), look.palette.muted, rect.width() - 20),
        )
        for at, (words, colour, width) in enumerate(lines):
            painter.setPen(QColor(colour))
            line = QRect(rect.left() + 12, rect.top() + 4 + at * 18, width, 18)
            painter.drawText(line, Qt.AlignmentFlag.AlignVCenter, line_text(metrics, words, width))
        painter.setPen(QColor(role_hex(look.palette, "deny" if is_soon else "ask")))
        right = QRect(rect.right() - wide - 12, rect.top() + 4, wide, 18)
        painter.drawText(right, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, time_words)
        painter.restore()
