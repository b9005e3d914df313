"""The calls of the log as rows, newest first: only those that are looked at are read. And which of them are shown."""

from array import array
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from PySide6.QtCore import QModelIndex, QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtWidgets import QComboBox, QPushButton, QTableView, QWidget

from gatewright_gui.pages.trial.table import PAD, verdict_mark, verdict_width
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import named, row_of, stretch
from gatewright_gui.qt.listing import REST, Column, ListingModel
from gatewright_gui.qt.look import Role, tie_icon
from gatewright_gui.qt.plaintext import button_text, label_text
from gatewright_gui.qt.prose import plain
from gatewright_gui.qt.table_model import Index
from gatewright_gui.qt.widget.search_field import SearchField
from gatewright_gui.session.audit import AuditChoices, AuditFilter, Found, LoggedCall, first_below
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
_INDENT = "\u2003"
_LEAST = 90
"""Pixels of the reason where there is no room."""
_LONG_MS = (888.8, 888_888.0)
Span = tuple[float | None, float | None]


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


def mark_of(call: LoggedCall) -> tuple[str, Role]:
    """Icon and colour of what a call came to."""
    if call.verdict in {"ask", "deny"} or (call.verdict == "allow" and call.ended in {"", "ToolCompleted"}):
        return verdict_mark(call.verdict)
    return ("triangle-alert", "ask") if call.verdict == "allow" else ("circle", "muted")


def _quiet(call: LoggedCall) -> Role | None:
    return None if call.is_call else "muted"


COLUMNS: tuple[Column[LoggedCall], ...] = (
    Column(mark("Time"), lambda call: time_words(call.wall_s, _today()), 108, role=lambda _: "muted"),
    Column(mark("Agent"), agent_words, 84, role=_quiet),
    Column(
        mark("Call"),
        lambda call: call_words(call) if call.is_call else event_words(call),
        REST,
        lambda call: () if call.is_call else (("info", "muted"),),
        _quiet,
        is_cut_within=True,
    ),
    Column(
        mark("Verdict"),
        lambda call: tr(outcome_words(call)),
        106,
        lambda call: (mark_of(call),) if call.is_call else (),
        lambda call: mark_of(call)[1] if call.is_call else "muted",
    ),
    Column(mark("Reason"), lambda call: plain(call.reason), _LEAST, role=_quiet),
    Column(mark("Client"), lambda call: call.client, 104, role=lambda _: "muted"),
    Column(mark("Took"), lambda call: took_words(call.elapsed_ms), 60, role=lambda _: "muted", is_number=True),
)


def _today() -> date:
    return datetime.now().astimezone().date()


def size_columns(view: QTableView) -> None:
    """Give columns the width of their longest words: what a call came to, and how long that took, are never cut."""
    took = max(view.fontMetrics().horizontalAdvance(took_words(elapsed_ms)) for elapsed_ms in _LONG_MS) + 6 * PAD
    view.setColumnWidth(TOOK, took)
    view.setColumnWidth(VERDICT, verdict_width(view, 106, outcomes()))
    fit_reason(view)


def fit_reason(view: QTableView) -> None:
    """Share the rest between call and reason: a command is longer, and the details have the whole reason."""
    others = sum(view.columnWidth(column) for column in (TIME, AGENT, VERDICT, CLIENT, TOOK))
    rest = view.viewport().width() - others  # a hidden column has no width
    view.setColumnWidth(REASON, max(rest // 4, _LEAST))


class CallModel(ListingModel[LoggedCall]):
    """Asks for the calls that somebody looks at; `take` brings them."""

    wanted = Signal(object)
    """tuple[int, ...]: numbers of calls that are looked at and not read yet."""

    def __init__(self) -> None:
        super().__init__(COLUMNS)
        self._numbers: array[int] = array("q")
        self._known: dict[int, LoggedCall] = {}
        self._missed = 0
        self._is_asking = False
        self._ask_soon = QTimer(self, singleShot=True, interval=0)
        self._ask_soon.timeout.connect(self._ask)

    def set_found(self, found: Found) -> None:
        """Show these calls; those that are shown already stay where they are, and new ones come before or behind."""
        new, old = found.numbers, self._numbers
        self._known = {number: call for number, call in self._known.items() if number < found.changed}
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

    def key_at(self, at: int) -> int | None:
        """The number of the call in a row."""
        return self._numbers[at] if 0 <= at < len(self._numbers) else None

    def row_at(self, at: int) -> LoggedCall | None:
        """The call of a row; None while it is not read."""
        number = self.key_at(at)
        return None if number is None else self._known.get(number)

    def find(self, key: object) -> int:
        """The row of the call with that number, -1 where it is not shown."""
        row = first_below(self._numbers, key + 1) if isinstance(key, int) else -1
        return row if self.key_at(row) == key else -1

    def count(self) -> int:
        """How many calls fit."""
        return len(self._numbers)

    def tip(self, row: LoggedCall, column: int) -> str:
        """The call and the reason."""
        del column
        return "\n".join(filter(None, (self.text(row, CALL) if row.is_call else "", plain(row.reason))))

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """What the columns say; a call that is not read yet is asked for."""
        if not index.isValid() or index.row() >= len(self._numbers) or self.row_at(index.row()) is not None:
            return super().data(index, role)
        self._missed = index.row()
        if not self._is_asking and not self._ask_soon.isActive():
            self._ask_soon.start()
        return "…" if role == Qt.ItemDataRole.DisplayRole and index.column() == TIME else None

    def _ask(self) -> None:
        """The last row that was missed is the lowest one that is seen."""
        numbers = self._numbers[max(self._missed - ABOVE, 0) : self._missed + BELOW]
        if numbers:
            self._is_asking = True
            self.wanted.emit(tuple(numbers))


VERDICTS = ((mark("Any verdict"), ""), (mark("Allow"), "allow"), (mark("Ask first"), "ask"), (mark("Deny"), "deny"))
TIMES = (
    (mark("Any time"), ""),
    (mark("Today"), "today"),
    (mark("Yesterday"), "yesterday"),
    (mark("Last 7 days"), "7"),
    (mark("Last 30 days"), "30"),
)
CHOICES = (
    ("verdict", mark("Verdict"), VERDICTS),
    ("agent", mark("Agent"), ((mark("Any agent"), ""),)),
    ("tool", mark("Tool or operation"), ((mark("Any tool"), ""),)),
    ("client", mark("Client"), ((mark("Any client"), ""),)),
    ("when", mark("Time"), TIMES),
)


class FilterBar(QWidget):
    """Emits `changed` with each letter and each choice."""

    changed = Signal()
    leave_requested = Signal()
    """The keys are to go to the calls."""

    def __init__(self) -> None:
        super().__init__()
        self._span: tuple[float, float] | None = None
        self._within = self._noted = ""
        self.search = named(SearchField(tr("Words in the reason")), "audit.search")
        self.search.search_changed.connect(self._tell)
        self.search.results_requested.connect(self.leave_requested)
        self.search.leave_requested.connect(self.leave_requested)
        self._combos = {key: self._combo(f"audit.{key}", tr(spoken), rows) for key, spoken, rows in CHOICES}
        self.client = self._combos["client"]
        self.client.hide()
        self.span_button = _chip("audit.span", tr("Show the calls of all times again"), lambda: self.set_span(None))
        self.within_button = _chip("audit.within", tr("Show the other calls again"), lambda: self.set_within("", ""))
        self.clear_button = named(QPushButton(tr("Show all")), "audit.clear", spoken=tr("Show all calls"), kind="link")
        self.clear_button.clicked.connect(self.clear)
        self.clear_button.hide()
        parts = *self._combos.values(), self.span_button, self.within_button, self.clear_button
        row_of(stretch(self.search), *parts, into=self, space=1, margins=(2, 1, 2, 1))

    @property
    def period(self) -> Span:
        """From when to when, as the field of times says; in seconds since 1970."""
        return _period(str(self._combos["when"].currentData()))

    @property
    def span(self) -> tuple[float, float] | None:
        """What was chosen on the timeline."""
        return self._span

    @property
    def filter(self) -> AuditFilter:
        """What is to be shown."""
        chosen = {key: str(combo.currentData()) for key, combo in self._combos.items() if key != "when"}
        (since_s, until_s), words = self._span or self.period, tuple(self.search.text().split())
        return AuditFilter(
            **chosen, words=words, since_s=since_s, until_s=until_s, within=self._within, noted=self._noted
        )

    def set_choices(self, choices: AuditChoices) -> None:
        """Offer what the log names; what is chosen stays."""
        for key, names in (("agent", choices.agents), ("tool", choices.tools), ("client", choices.clients)):
            _offer(self._combos[key], names)
        self.client.setVisible(self.client.count() > 1)

    def set_span(self, span: tuple[float, float] | None) -> None:
        """Show the calls of this span only; None: of the whole period."""
        if span == self._span:
            return
        self._span = span
        self.span_button.setVisible(span is not None)
        if span is not None:
            self.span_button.setText(span_words(span))
            self.span_button.setAccessibleName(tr("Only {span}; show all times again", span=span_words(span)))
        self._tell()

    def set_within(self, call_id: str, called: str) -> None:
        """Show a call with its steps only, whatever else is chosen; an empty id: the others again."""
        self._show_part(call_id, "", tr("{call} and those under it", call=label_text(called, 40, keep="")))

    def set_noted(self, key: str, words: str) -> None:
        """Show only the calls that observe mode let through for one cause (`NotedCount.key`)."""
        self._show_part("", key, label_text(words, 40, keep=""))

    def _show_part(self, within: str, noted: str, words: str) -> None:
        is_part = bool(within or noted)
        if is_part:
            with QSignalBlocker(self):
                self.clear()
        self._within, self._noted = within, noted
        self.within_button.setVisible(is_part)
        if is_part:
            self.within_button.setText(button_text(words))
            self.within_button.setAccessibleName(tr("Only {calls}; show the other calls again", calls=words))
        self._tell()

    def clear(self) -> None:
        """Show all calls."""
        with QSignalBlocker(self):
            self.search.clear()
            self.set_span(None)
            self._within = self._noted = ""
            self.within_button.hide()
            for combo in self._combos.values():
                combo.setCurrentIndex(0)
        self._tell()

    def _combo(self, name: str, spoken: str, rows: Sequence[tuple[str, str]]) -> QComboBox:
        combo = named(QComboBox(), name, spoken=spoken)
        combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        combo.setMinimumContentsLength(6)
        for words, value in rows:
            combo.addItem(tr(words), value)
        combo.currentIndexChanged.connect(self._tell)
        return combo

    def _tell(self, _what: object = None) -> None:
        self.clear_button.setVisible(self.filter != AuditFilter())
        self.changed.emit()


def _chip(name: str, tip: str, act: Callable[[], None]) -> QPushButton:
    """Make a button that takes a filter away."""
    button = named(QPushButton(), name, tip=tip)
    tie_icon(button, "x", "muted")
    button.clicked.connect(lambda _=False: act())
    button.hide()
    return button


def span_words(span: tuple[float, float]) -> str:
    """From when to when."""
    begin, end = (datetime.fromtimestamp(moment).astimezone() for moment in span)
    clock = "%H:%M:%S" if begin.second or end.second else "%H:%M"
    if begin.date() == (end - timedelta(seconds=1)).date():
        return f"{begin:%Y-%m-%d} {begin.strftime(clock)} - {end.strftime(clock)}"
    return f"{begin:%Y-%m-%d} {begin.strftime(clock)} - {end:%Y-%m-%d} {end.strftime(clock)}"


def _period(key: str) -> Span:
    today = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    match key:
        case "":
            return None, None
        case "today":
            return today.timestamp(), None
        case "yesterday":
            return (today - timedelta(days=1)).timestamp(), today.timestamp()
        case days:
            return (today - timedelta(days=int(days) - 1)).timestamp(), None


def _offer(combo: QComboBox, names: Sequence[str]) -> None:
    there = [combo.itemData(at) for at in range(1, combo.count())]
    if there == list(names):
        return
    chosen = combo.currentData()
    with QSignalBlocker(combo):
        while combo.count() > 1:
            combo.removeItem(1)
        for name in sorted({*names, str(chosen or "")} - {""}):
            combo.addItem(label_text(name, 100, keep=""), name)
        combo.setCurrentIndex(max(combo.findData(chosen), 0))
