"""The rows of Activity: calls that wait, answers that stand, questions that lapsed, and the calls of the log.

Calls of the log come newest first, and only those that are looked at are read.
"""

import time
from array import array
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any

from PySide6.QtCore import QModelIndex, Qt, QTimer, Signal
from PySide6.QtWidgets import QTableView

from gatewright.workspace.api import frozen
from gatewright_gui.pages.trial.table import PAD, verdict_mark, verdict_width
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.listing import REST, Column, ListingModel
from gatewright_gui.qt.look import Role
from gatewright_gui.qt.prose import plain
from gatewright_gui.qt.table_model import Index
from gatewright_gui.session.audit import Found, LoggedCall, first_below
from gatewright_gui.session.audit_call import (
    EVENTS,
    agent_words,
    answer_words,
    calls_words,
    outcome_words,
    outcomes,
    step_words,
)
from gatewright_gui.session.question import PendingApproval, Stale, Standing, span

Item = LoggedCall | PendingApproval | Standing | Stale
TIME, AGENT, CALL, VERDICT, REASON, CLIENT, TOOK = range(7)
HEADS = mark("Time"), mark("Agent"), mark("Call"), mark("Verdict"), mark("Reason"), mark("Client"), mark("Took")
HEADS_OF = {
    "waiting": (mark("Time left"), *HEADS[1:3], mark("State"), mark("Why it asks"), mark("From"), ""),
    "standing": (mark("Given"), HEADS[1], mark("What"), mark("Answer"), mark("Ends"), mark("By"), mark("Used today")),
    "lapsed": (mark("Asked"), *HEADS[1:3], mark("State"), mark("Why"), mark("Conversation"), ""),
}
"""The headings, where other rows than calls of the log are listed."""
_WAITS: tuple[str, Role] = ("hand", "ask")
_EVENT: tuple[str, Role] = ("info", "muted")
_LAPSED: tuple[str, Role] = ("history", "muted")
_STATES = mark("waits"), mark("allowed"), mark("refused"), mark("lapsed")
ABOVE, BELOW, MOST_KNOWN = 200, 100, 5_000
"""So many rows above and below the lowest one that is seen are read at once, and so many are kept."""
SOON_S = 15.0
"""With less time left a question stands out, and a suspended one when it is due."""
_INDENT = "\u2003"
_LEAST, _SHORT = 140, 84
_FROM = {TOOK: 640, CLIENT: 760, REASON: 820}
"""Pixels of the list from which on there is room for a column; those of calls that wait and answers need less."""
_ROOMY = 1_000
"""Pixels of the list from which on the reason gets as much room as the call."""
_LONG_MS = (888.8, 888_888.0)


@frozen
class Line:
    """The words of a row. ``wall_s``: seconds since 1970; ``more``: what else a search finds it by."""

    item: Item
    key: object
    wall_s: float | None
    agent: str
    what: str
    state: str
    mark: tuple[str, Role]
    reason: str
    client: str = ""
    took: str = ""
    more: str = ""

    @property
    def is_quiet(self) -> bool:
        """True for a row of the log that belongs to no call."""
        return isinstance(self.item, LoggedCall) and not self.item.is_call

    @property
    def whole(self) -> str:
        """All that the row says."""
        said = when_words(self), self.agent, self.what, self.state, self.reason, self.client, self.took
        return ", ".join(filter(None, said))

    def is_soon(self) -> bool:
        """Tell whether little time is left to answer."""
        item, now_s = self.item, time.time()
        if not isinstance(item, PendingApproval):
            return False
        left_s = None if item.expires_wall_s is None else item.expires_wall_s - now_s
        return item.is_due(now_s) if item.call_key else left_s is not None and left_s < SOON_S


def line_of(item: Item, uses: int = 0) -> Line:
    """Say a row in words. ``uses``: how often a standing answer was used today."""
    match item:
        case LoggedCall() if item.is_call:
            took = took_words(item.elapsed_ms)
            said = tr(outcome_words(item)), mark_of(item), plain(answer_words(item) or item.reason)
            return Line(item, item.seq, item.wall_s, agent_words(item), call_words(item), *said, item.client, took)
        case LoggedCall():
            said = agent_words(item), event_words(item), "", _EVENT, plain(item.reason), item.client
            return Line(item, item.seq, item.wall_s, *said)
        case PendingApproval():
            said = tr("waits"), _WAITS, plain("; ".join(item.reasons)), item.asker or tr("this program")
            what = f"{item.called}  {item.touches}".rstrip()
            key = "waiting", item.request_id
            return Line(item, key, item.asked_wall_s, item.whose, what, *said, more=item.arguments)
        case Standing():
            ends_s = item.expires_wall_s
            until = tr("taken back") if ends_s is None else tr("in {time}", time=span(ends_s - time.time()))
            state, icon = (tr("allowed"), "allow") if item.approved else (tr("refused"), "deny")
            said = f"{item.what} {item.where}".rstrip(), state, verdict_mark(icon), until, item.who
            used = counted(uses, "time", "times")
            more = f"{item.words} {item.session_id}"
            return Line(item, ("standing", item.grant_id), item.granted_wall_s, item.agent_id, *said, used, more)
        case Stale():
            said = item.called, tr("lapsed"), _LAPSED, item.why, item.conversation
            key = "lapsed", item.request_id
            return Line(item, key, item.asked_wall_s, item.agent_id, *said, more=item.arguments)


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
    """A moment: of today its time, of this year the day with it, else the day; all of it where no day is today."""
    if wall_s is None:
        return tr("no time")
    moment = datetime.fromtimestamp(wall_s).astimezone()
    if today is None:
        return f"{moment:%Y-%m-%d %H:%M:%S}"
    if moment.year != today.year:
        return f"{moment:%Y-%m-%d}"
    return f"{moment:%H:%M:%S}" if moment.date() == today else f"{moment.day} {moment:%b %H:%M}"


def when_words(line: Line) -> str:
    """The time of a row; of a call that waits how long it still does."""
    if not isinstance(line.item, PendingApproval):
        return time_words(line.wall_s, datetime.now().astimezone().date())
    if line.item.expires_wall_s is None:
        return ""
    left_s = line.item.expires_wall_s - time.time()
    return span(left_s) if left_s >= 1 else tr("expired")


def took_words(elapsed_ms: float | None) -> str:
    """The time that the tool took; empty where it did not run."""
    if elapsed_ms is None:
        return ""
    return f"{elapsed_ms / 1000:,.1f} s" if elapsed_ms >= 1000 else f"{elapsed_ms:,.1f} ms"


def mark_of(call: LoggedCall) -> tuple[str, Role]:
    """Icon and colour of what a call came to."""
    if call.verdict in {"ask", "deny"} or (call.verdict == "allow" and call.ended in {"", "ToolCompleted"}):
        return verdict_mark(call.verdict)
    return ("triangle-alert", "ask") if call.verdict == "allow" else ("circle", "muted")


def _quiet(line: Line) -> Role | None:
    return "muted" if line.is_quiet else None


COLUMNS: tuple[Column[Line], ...] = (
    Column(HEADS[TIME], when_words, 98, role=lambda line: "deny" if line.is_soon() else "muted"),
    Column(HEADS[AGENT], lambda line: line.agent, 98, role=_quiet, is_cut_within=True),
    Column(
        HEADS[CALL],
        lambda line: line.what,
        REST,
        lambda line: (line.mark,) if line.is_quiet else (),
        _quiet,
    ),
    Column(
        HEADS[VERDICT],
        lambda line: line.state,
        106,
        lambda line: () if line.is_quiet else (line.mark,),
        lambda line: line.mark[1],
    ),
    Column(HEADS[REASON], lambda line: line.reason, _LEAST, role=_quiet),
    Column(HEADS[CLIENT], lambda line: line.client, 104, role=lambda _: "muted"),
    Column(HEADS[TOOK], lambda line: line.took, 60, role=lambda _: "muted", is_number=True),
)


def fit_columns(view: QTableView, *, is_logged: bool, has_clients: bool, has_took: bool) -> None:
    """Give columns their room: what a call came to is never cut, and what has nothing to say has no column."""
    width, less = view.viewport().width(), 0 if is_logged else 300
    for column, is_wanted in ((REASON, True), (CLIENT, has_clients), (TOOK, has_took)):
        view.setColumnHidden(column, not is_wanted or width < _FROM[column] - less)
    head = HEADS[TOOK] if is_logged else HEADS_OF["standing"][TOOK]
    took = max(map(view.fontMetrics().horizontalAdvance, (*map(took_words, _LONG_MS), tr(head))))
    view.setColumnWidth(TOOK, took + 6 * PAD)
    view.setColumnWidth(VERDICT, verdict_width(view, 106, (*outcomes(), *map(tr, _STATES)) if is_logged else _STATES))
    others = sum(view.columnWidth(column) for column in (TIME, AGENT, VERDICT, CLIENT, TOOK))
    for column in (CLIENT, TOOK):  # what was called comes first
        if not is_logged and width - others - _LEAST < _LEAST:
            others -= view.columnWidth(column)
            view.setColumnHidden(column, True)
    is_short = has_took and not is_logged  # of an answer that stands it says when that ends
    share = 6 if is_short else 2 if width > _ROOMY else 3
    least = _SHORT if is_short else _LEAST
    view.setColumnWidth(REASON, max((width - others) // share, least))  # a hidden column has no width
    model = view.model()
    if isinstance(model, ActivityModel):
        model.tells_why = is_logged and view.isColumnHidden(REASON)
        if model.tells_why:
            verdict = view.columnWidth(VERDICT)
            view.setColumnWidth(VERDICT, max(verdict, (width - others + verdict) // 2))


class ActivityModel(ListingModel[Line]):
    """Rows that are known, above calls of the log: it asks for those that somebody looks at, and `take` brings them."""

    wanted = Signal(object)
    """tuple[int, ...]: numbers of calls that are looked at and not read yet."""

    def __init__(self) -> None:
        super().__init__(COLUMNS)
        self.tells_why = False
        """True while the column of reasons is hidden."""
        self._numbers: array[int] = array("q")
        self._known: dict[int, Line] = {}
        self._stale: set[int] = set()
        """Calls that are shown as they were, until they are read again."""
        self._missed = 0
        self._is_asking = False
        self._ask_soon = QTimer(self, singleShot=True, interval=0)
        self._ask_soon.timeout.connect(self._ask)

    def set_heads(self, part: str) -> None:
        """Name the columns as a part of the page needs it."""
        self.headers = HEADS_OF.get(part, HEADS)
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, TOOK)

    def set_top(self, lines: Iterable[Line]) -> None:
        """Show these above the calls."""
        self.set_rows(lines)

    def set_found(self, found: Found) -> None:
        """Show these calls; those that are shown already stay where they are, and new ones come before or behind."""
        new, old, top = found.numbers, self._numbers, len(self.rows)
        self._stale.update(number for number in self._known if number >= found.changed)
        more = len(new) - len(old)
        if more > 0 and old and new[more:] == old:
            self.beginInsertRows(QModelIndex(), top, top + more - 1)
            self._numbers = new
            self.endInsertRows()
        elif more > 0 and old and new[: len(old)] == old:
            self.beginInsertRows(QModelIndex(), top + len(old), top + len(new) - 1)
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
        self._known.update({call.seq: line_of(call) for call in calls})
        self._stale.difference_update(call.seq for call in calls)
        if calls:
            self._tell(first_below(self._numbers, calls[0].seq + 1), first_below(self._numbers, calls[-1].seq))

    def _tell(self, first: int, last: int) -> None:
        """Say that these calls have changed."""
        last, top = min(last, len(self._numbers) - 1), len(self.rows)
        if first <= last:
            self.dataChanged.emit(self.index(top + first, 0), self.index(top + last, TOOK))

    def key(self, row: Line) -> object:
        """The number of a call, or what else the row is known by."""
        return row.key

    def key_at(self, at: int) -> object:
        """The key of a row, read or not."""
        call = at - len(self.rows)
        if call < 0:
            return super().key_at(at)
        return self._numbers[call] if call < len(self._numbers) else None

    def row_at(self, at: int) -> Line | None:
        """The row; None while it is not read."""
        number = self.key_at(at) if at >= len(self.rows) else None
        return self._known.get(number) if isinstance(number, int) else super().row_at(at)

    def is_read(self, key: object) -> bool:
        """Tell whether a row is shown as it is now."""
        return key not in self._stale

    def find(self, key: object) -> int:
        """The row of a key, -1 where it is not shown."""
        if not isinstance(key, int):
            return super().find(key)
        row = len(self.rows) + first_below(self._numbers, key + 1)
        return row if self.key_at(row) == key else -1

    def count(self) -> int:
        """The number of rows."""
        return len(self.rows) + len(self._numbers)

    def whole(self, row: Line) -> str:
        """All that the row says."""
        return row.whole

    def more(self, row: Line, column: int) -> str:
        """The reason why nothing, or not all, was done, where it has no column of its own."""
        is_told = column == VERDICT and self.tells_why and row.mark[1] != "allow" and not row.is_quiet
        return row.reason if is_told else ""

    def tip(self, row: Line, column: int) -> str:
        """The call and the reason, with the arguments where they are known."""
        del column
        more = row.more if isinstance(row.item, Stale) else row.item.words if isinstance(row.item, Standing) else ""
        return "\n".join(filter(None, ("" if row.is_quiet else row.what, row.reason, more)))

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """The words of the columns; a call that is not read yet is asked for."""
        at = index.row() - len(self.rows)
        is_call = index.isValid() and 0 <= at < len(self._numbers)
        is_known = not is_call or self._numbers[at] in self._known
        if is_call and (not is_known or self._numbers[at] in self._stale):
            self._missed = at
            if not self._is_asking and not self._ask_soon.isActive():
                self._ask_soon.start()
        if is_known:
            return super().data(index, role)
        return "…" if role == Qt.ItemDataRole.DisplayRole and index.column() == TIME else None

    def _ask(self) -> None:
        """Ask for the rows around the last one that was missed, the lowest one that is seen."""
        numbers = self._numbers[max(self._missed - ABOVE, 0) : self._missed + BELOW]
        if numbers:
            self._is_asking = True
            self.wanted.emit(tuple(numbers))
