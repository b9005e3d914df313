"""The calls of the log as rows, newest first: only those that are looked at are read."""

from array import array
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from PySide6.QtCore import QModelIndex, QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import QStyleOptionViewItem, QTableView

from gatewright_gui.pages.console.table import PAD, verdict_mark, verdict_width
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.look import Role
from gatewright_gui.qt.plaintext import line_text
from gatewright_gui.qt.prose import plain
from gatewright_gui.qt.table_model import FlatModel, Index
from gatewright_gui.qt.widget.delegate import Delegate, put_icon, tint
from gatewright_gui.session.audit import Found, LoggedCall, first_below
from gatewright_gui.session.audit_call import (
    EVENTS,
    agent_words,
    calls_words,
    outcome_words,
    outcomes,
    step_words,
)

TIME, AGENT, CALL, VERDICT, REASON, CLIENT, TOOK = range(7)
ABOVE, BELOW, MOST_KNOWN = 200, 100, 5_000
"""So many rows above and below the lowest one that is seen are read at once, and so many are kept."""
CALL_ROLE = Qt.ItemDataRole.UserRole + 1
"""LoggedCall of a row; None while it is not read."""
_INDENT = "\u2003"
_LEAST = 90
"""Pixels of the reason where there is no room."""
_LONG_MS = (888.8, 888_888.0)


class CallModel(FlatModel):
    """Asks for the calls that somebody looks at; `take` brings them."""

    headers = (mark("Time"), mark("Agent"), mark("Call"), mark("Verdict"), mark("Reason"), mark("Client"), mark("Took"))
    wanted = Signal(object)
    """tuple[int, ...]: numbers of calls that are looked at and not read yet."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._numbers: array[int] = array("q")
        self._known: dict[int, LoggedCall] = {}
        self._missed = 0
        self._is_asking = False
        self._today = datetime.now().astimezone().date()
        self._ask_soon = QTimer(self, singleShot=True, interval=0)
        self._ask_soon.timeout.connect(self._ask)

    def set_found(self, found: Found) -> None:
        """Show these calls; those that are shown already stay where they are, and new ones come before or behind."""
        new, old = found.numbers, self._numbers
        self._known = {number: call for number, call in self._known.items() if number < found.changed}
        self._today = datetime.now().astimezone().date()
        more = len(new) - len(old)
        if more > 0 and old and new[more:] == old:
            self.beginInsertRows(QModelIndex(), 0, more - 1)
            self._numbers = new
            self.endInsertRows()
        elif more > 0 and old and new[: len(old)] == old:
            self.beginInsertRows(QModelIndex(), len(old), len(new) - 1)
            self._numbers = new
            self.endInsertRows()
        elif new != old:
            self.beginResetModel()
            self._numbers = new
            self.endResetModel()
        self._tell(0, first_below(new, found.changed) - 1)

    def take(self, calls: Sequence[LoggedCall]) -> None:
        """These were read, newest first."""
        self._is_asking = False
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        self._known.update({call.seq: call for call in calls})
        if calls:
            self._tell(first_below(self._numbers, calls[0].seq + 1), first_below(self._numbers, calls[-1].seq))

    def _tell(self, first: int, last: int) -> None:
        """These rows say something else."""
        last = min(last, len(self._numbers) - 1)
        if first <= last:
            self.dataChanged.emit(self.index(first, 0), self.index(last, TOOK))

    def number_at(self, row: int) -> int | None:
        """The number of the call in a row."""
        return self._numbers[row] if 0 <= row < len(self._numbers) else None

    def call_at(self, row: int) -> LoggedCall | None:
        """The call of a row; None while it is not read."""
        number = self.number_at(row)
        return None if number is None else self._known.get(number)

    def row_of(self, number: int) -> int:
        """The row of a call, -1 where it is not shown."""
        row = first_below(self._numbers, number + 1)
        return row if self.number_at(row) == number else -1

    def count(self) -> int:
        """How many calls fit."""
        return len(self._numbers)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Texts; a call that is not read yet is asked for."""
        if not index.isValid() or index.row() >= len(self._numbers):
            return None
        call = self.call_at(index.row())
        if call is None:
            self._missed = index.row()
            if not self._is_asking and not self._ask_soon.isActive():
                self._ask_soon.start()
            return "…" if role == Qt.ItemDataRole.DisplayRole and index.column() == TIME else None
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self._text(call, index.column())
            case Qt.ItemDataRole.TextAlignmentRole if index.column() == TOOK:
                return int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            case Qt.ItemDataRole.ToolTipRole:
                return f"{self._text(call, CALL)}\n{plain(call.reason)}" if call.is_call else plain(call.reason)
            case Qt.ItemDataRole.AccessibleTextRole:
                return ", ".join(filter(None, (self._text(call, column) for column in range(len(self.headers)))))
            case _ if role == CALL_ROLE:
                return call
            case _:
                return None

    def _ask(self) -> None:
        """The last row that was missed is the lowest one that is seen."""
        numbers = self._numbers[max(self._missed - ABOVE, 0) : self._missed + BELOW]
        if numbers:
            self._is_asking = True
            self.wanted.emit(tuple(numbers))

    def _text(self, call: LoggedCall, column: int) -> str:
        match column:
            case 0:
                return time_words(call.wall_s, self._today)
            case 1:
                return agent_words(call)
            case 2:
                return call_words(call) if call.is_call else event_words(call)
            case 3:
                return tr(outcome_words(call))
            case 4:
                return plain(call.reason)
            case 5:
                return call.client
            case _:
                return took_words(call.elapsed_ms)


def call_words(call: LoggedCall) -> str:
    """The call with its arguments in short, indented under the one that it belongs to; and how many it made."""
    words = f"{call.called}  {call.arguments}".rstrip()
    if call.within:
        words = f"{_INDENT}{step_words(call)}: {words}" if call.step is not None else f"{_INDENT}{words}"
    made = calls_words(call)
    return f"{words}  \u00b7 {made}" if made else words


def event_words(call: LoggedCall) -> str:
    """The name of a row of the log that belongs to no call, with the tool that it is about."""
    event = tr(EVENTS.get(call.kind, call.kind))
    return f"{event}  {call.tool}" if call.tool else event


def time_words(wall_s: float | None, today: date | None = None) -> str:
    """The time of today, with the day where it is another one."""
    if wall_s is None:
        return tr("no time")
    moment = datetime.fromtimestamp(wall_s).astimezone()
    if today is None or moment.year != today.year:
        return f"{moment:%Y-%m-%d %H:%M:%S}"
    return f"{moment:%H:%M:%S}" if moment.date() == today else f"{moment.day} {moment:%b %H:%M:%S}"


def took_words(elapsed_ms: float | None) -> str:
    """How long the tool took; empty where it did not run."""
    if elapsed_ms is None:
        return ""
    return f"{elapsed_ms / 1000:,.1f} s" if elapsed_ms >= 1000 else f"{elapsed_ms:,.1f} ms"


def size_columns(view: QTableView) -> None:
    """Give the columns their widths; what a call came to, and how long that took, are never cut."""
    took = max(view.fontMetrics().horizontalAdvance(took_words(elapsed_ms)) for elapsed_ms in _LONG_MS) + 6 * PAD
    verdict = verdict_width(view, 106, outcomes())
    for column, width in ((TIME, 108), (AGENT, 84), (VERDICT, verdict), (CLIENT, 104), (TOOK, took)):
        view.setColumnWidth(column, width)
    fit_reason(view)


def fit_reason(view: QTableView) -> None:
    """Share the rest between call and reason: a command is longer, and the details have the whole reason."""
    others = sum(view.columnWidth(column) for column in (TIME, AGENT, VERDICT, CLIENT, TOOK))
    rest = view.viewport().width() - others  # a hidden column has no width
    view.setColumnWidth(REASON, max(rest // 4, _LEAST))


def mark_of(call: LoggedCall) -> tuple[str, Role]:
    """Icon and colour of what a call came to."""
    if call.verdict in {"ask", "deny"} or (call.verdict == "allow" and call.ended in {"", "ToolCompleted"}):
        return verdict_mark(call.verdict)
    return ("triangle-alert", "ask") if call.verdict == "allow" else ("circle", "muted")


def _elide(item: Any) -> None:
    """Shorten what a call was given in its middle: the end of a command says as much as its beginning."""
    head, gap, rest = item.text.partition("  ")
    room = item.rect.width() - 6 * PAD - item.fontMetrics.horizontalAdvance(head + gap)
    if rest and room > 0:
        item.text = head + gap + line_text(item.fontMetrics, rest, room, Qt.TextElideMode.ElideMiddle)


class CallDelegate(Delegate):
    """The verdict with its icon and colour; what belongs to no call is quiet."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        """Icon and colour."""
        super().initStyleOption(option, index)
        if index.column() == CALL:
            _elide(option)
        call = index.data(CALL_ROLE)
        if not isinstance(call, LoggedCall):
            return
        if index.column() == VERDICT and call.is_call:
            icon, role = mark_of(call)
            put_icon(option, icon, role)
            tint(option, role)
        elif index.column() in {TIME, TOOK, CLIENT} or not call.is_call:
            tint(option, "muted")
            if index.column() == CALL:
                put_icon(option, "info", "muted")
