"""The calls that wait, as a list: who asks for what, from where, and how long there is still time."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QStyleOptionViewItem

from gatewright_gui.qt.language import tr
from gatewright_gui.qt.look import current_look, role_hex
from gatewright_gui.qt.plaintext import line_text
from gatewright_gui.qt.widget.delegate import Delegate, paint_ground
from gatewright_gui.session.calls import visible
from gatewright_gui.session.question import PendingApproval, span

Index = QModelIndex | QPersistentModelIndex
QUESTION = Qt.ItemDataRole.UserRole + 1
SOON_S = 15.0
"""With less time left a question stands out."""


class InboxModel(QAbstractListModel):
    """Oldest first. A question that goes or comes moves no other: what is chosen stays chosen."""

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._wall = wall
        self._rows: list[PendingApproval] = []

    def set_questions(self, questions: Sequence[PendingApproval]) -> None:
        """Show these."""
        now = {question.request_id: question for question in questions}
        for row in reversed(range(len(self._rows))):
            if self._rows[row].request_id not in now:
                self.beginRemoveRows(QModelIndex(), row, row)
                del self._rows[row]
                self.endRemoveRows()
        for row, held in enumerate(self._rows):
            if held != now[held.request_id]:
                self._rows[row] = now[held.request_id]
                self.dataChanged.emit(self.index(row), self.index(row))
        known = {question.request_id for question in self._rows}
        new = [question for question in questions if question.request_id not in known]
        if new:
            self.beginInsertRows(QModelIndex(), len(self._rows), len(self._rows) + len(new) - 1)
            self._rows += new
            self.endInsertRows()

    def find(self, request_id: str) -> int:
        """The row of a question; -1 where it does not wait."""
        return next((row for row, one in enumerate(self._rows) if one.request_id == request_id), -1)

    def question_at(self, row: int) -> PendingApproval | None:
        """The question of a row."""
        return self._rows[row] if 0 <= row < len(self._rows) else None

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """How many questions."""
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Words, and the question itself."""
        question = self.question_at(index.row()) if index.isValid() else None
        if question is None:
            return None
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return f"{visible(question.agent_id)}: {question.called}"
            case Qt.ItemDataRole.AccessibleTextRole | Qt.ItemDataRole.ToolTipRole:
                left = question.left_words(self._wall())
                return ", ".join(
                    filter(None, (f"{visible(question.agent_id)}: {question.called}", question.asker, left))
                )
            case _ if role == QUESTION:
                return question
            case _:
                return None


class InboxDelegate(Delegate):
    """Three lines: what is called, by which agent, from where; the time that is left at the right."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        """Three lines high."""
        return QSize(super().sizeHint(option, index).width(), 3 * 18 + 8)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Ground, words, time."""
        question = index.data(QUESTION)
        if not isinstance(question, PendingApproval):
            return
        look, rect = current_look(), QRect(getattr(option, "rect"))  # noqa: B009
        paint_ground(painter, option)
        painter.save()
        left_s = None if question.expires_wall_s is None else question.expires_wall_s - time.time()
        time_words = "" if left_s is None else span(left_s) if left_s >= 1 else tr("expired")
        is_soon = left_s is not None and left_s < SOON_S
        metrics = painter.fontMetrics()
        wide = metrics.horizontalAdvance(time_words) + 8
        lines = (
            (question.called, look.palette.text, rect.width() - 28 - wide),
            (visible(question.agent_id), look.palette.text, rect.width() - 20),
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
