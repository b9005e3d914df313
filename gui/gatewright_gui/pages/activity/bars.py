"""What stands above the calls of Activity: the calls that wait for an answer, and the search with its filters."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from PySide6.QtCore import QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtWidgets import QComboBox, QFrame, QGridLayout, QPushButton, QWidget

from gatewright_gui.pages.activity.rows import SOON_S, Line
from gatewright_gui.pages.trial.approval import CALM_MS
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import Gap, column_of, holding, keep_room, named, row_of, stack_of, stretch
from gatewright_gui.qt.look import current_look, tie_icon
from gatewright_gui.qt.plaintext import button_text, label_text
from gatewright_gui.qt.prose import plain
from gatewright_gui.qt.widget.button import Segmented, text_button
from gatewright_gui.qt.widget.label import ElidedLabel, IconLabel, Label
from gatewright_gui.qt.widget.text_field import SearchField
from gatewright_gui.session.audit import AuditChoices, AuditFilter
from gatewright_gui.session.calls import change_words
from gatewright_gui.session.question import PendingApproval, Reply, span

NOTHING_WAITS = mark("A call that asks first waits here for your answer while this window is open.")
WHOSE_CALLS = mark("Calls of programs that use the policy, of gatewright call, and of clients of gatewright serve.")
SHOWN = 2
"""So many calls that wait have a row of their own above the others."""
_LEFT_ROOM = 72
Span = tuple[float | None, float | None]


class WaitingRow(QWidget):
    """One call that waits, with its answers; an empty one keeps its room."""

    def __init__(self, band: "WaitingBand", at: int) -> None:
        super().__init__()
        self.question: PendingApproval | None = None
        self._band, self._calm = band, QTimer(self, singleShot=True, interval=CALM_MS)
        self._icon = IconLabel("hand", "ask")
        self.words = named(ElidedLabel(), f"activity.waiting.{at}.words")
        self.left = named(Label(), f"activity.waiting.{at}.left", kind="muted")
        self.left.setMinimumWidth(_LEFT_ROOM)
        name = f"activity.waiting.{at}"
        self.deny_button = text_button(tr("Deny"), f"{name}.deny", self._deny, kind="danger")
        self.see_button = text_button(tr("See the change"), f"{name}.see", self._see)
        self.allow_button = text_button(tr("Allow..."), f"{name}.allow", self._allow)
        parts = self._icon, stretch(self.words), self.left, self.deny_button, self.see_button, self.allow_button
        row_of(*parts, into=self, space=2)
        keep_room(self).hide()

    def set_question(self, question: PendingApproval | None) -> None:
        """Show a question. One that comes into the place of another cannot be answered by the click for that one."""
        before, self.question = self.question, question
        self.setVisible(question is not None)
        if question is None:
            return
        if before is not None and before.request_id != question.request_id:
            self._calm.start()
        words = tr("{agent} asks to call {call}", agent=question.whose, call=question.called)
        words = ": ".join(filter(None, (words, question.touches)))
        change = change_words(question.diff, question.operation)[0] if question.diff is not None else ""
        self.see_button.setText(tr("See the change") if change else tr("See the call"))
        self.words.set_text(words, "\n".join(filter(None, (words, change, *question.reasons))))
        for button, spoken in (
            (self.deny_button, tr("Deny: {call}", call=words)),
            (self.see_button, tr("See: {call}", call=words)),
            (self.allow_button, tr("Allow: {call}", call=words)),
        ):
            button.setAccessibleName(spoken)
        self.tell_time()

    def tell_time(self) -> None:
        """Say how long it still waits."""
        if self.question is None:
            return
        ends_s, now_s = self.question.expires_wall_s, time.time()
        left_s = None if ends_s is None else ends_s - now_s
        left = "" if left_s is None else tr("{time} left", time=span(left_s)) if left_s >= 1 else tr("expired")
        self.left.setText(left)
        self.left.setToolTip(self.question.wait_words(now_s))
        is_soon = left_s is not None and left_s < SOON_S
        self._icon.set_icon("hand", "deny" if is_soon else "ask")

    def _deny(self) -> None:
        question = self.question
        if question is not None and not self._calm.isActive():
            self._band.denied.emit(question)
            question.answer(Reply(approved=False))

    def _see(self) -> None:
        if self.question is not None:
            self._band.seen.emit(self.question)

    def _allow(self) -> None:
        if self.question is not None and not self._calm.isActive():
            self._band.seen.emit(self.question)
            self._band.allow_requested.emit(self.allow_button)


class WaitingBand(QWidget):
    """The calls that have waited longest, answered here; its room stays the same whatever waits."""

    denied = Signal(object)
    """PendingApproval: it is being denied here."""
    seen = Signal(object)
    """PendingApproval: all of it is to be shown."""
    allow_requested = Signal(object)
    """QWidget: below it the answers that allow are to be offered, for the question that was shown just before."""
    all_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("activity.waiting")
        self.rows = tuple(WaitingRow(self, at) for at in range(SHOWN))
        self.all_button = text_button("", "activity.waiting.all", self.all_requested.emit, kind="link")
        self.quiet = named(Label(tr("Nothing needs you")), "activity.nothing")
        self.why = named(Label(tr(NOTHING_WAITS), wraps=True), "activity.nothing.why", kind="muted")
        self.why.setToolTip(tr(WHOSE_CALLS))
        first = row_of(IconLabel("check", "allow"), stretch(self.quiet), space=2)
        below = row_of(Gap(4), Gap(2), stretch(self.why))
        nothing = holding(column_of(stretch(), first, below, stretch(), space=1, margins=(2, 0)))
        self._unknown, self._some, self._none = QWidget(), named(QFrame(), kind="waits"), nothing
        self.reason = named(ElidedLabel(role="muted"), "activity.waiting.reason")
        rows = QGridLayout()
        rows.setVerticalSpacing(current_look().tokens.space_1)
        for at, row in enumerate(self.rows):
            rows.addWidget(row, at, 0)
        below = row_of(Gap(4), Gap(2), stretch(self.reason))
        rows.addLayout(below, 1, 0, Qt.AlignmentFlag.AlignTop)  # where the second call would stand
        row_of(stretch(rows), self.all_button, into=self._some, space=2, margins=(2, 0))
        self._stack = stack_of(self._unknown, self._none, self._some)
        column_of(self._stack, into=self)
        high = current_look().tokens.control_height + current_look().tokens.space_1
        self._stack.setFixedHeight(SHOWN * high + current_look().tokens.space_2)
        self._tick = QTimer(self, interval=1000)
        self._tick.timeout.connect(self._tell_time)
        self._tick.start()

    def set_questions(self, questions: Sequence[PendingApproval], *, is_known: bool) -> None:
        """Show what waits. A question that goes moves no other that is shown."""
        ids = {one.request_id: one for one in questions}
        kept = [ids.get(row.question.request_id) if row.question is not None else None for row in self.rows]
        there = {one.request_id for one in kept if one is not None}
        others = iter([one for one in questions if one.request_id not in there][: len(self.rows)])
        for row, question in zip(self.rows, kept, strict=True):
            row.set_question(question if question is not None else next(others, None))
        first, second = (row.question for row in self.rows)
        self.reason.setVisible(first is not None and second is None)
        self.reason.set_text(plain("; ".join(first.reasons)) if first is not None else "")
        self.all_button.setText(tr("See all {count:,}", count=len(questions)))
        self.all_button.setVisible(len(questions) > SHOWN)
        self._stack.setCurrentWidget(self._some if questions else self._none if is_known else self._unknown)

    def set_unreached(self, count: int) -> None:
        """Say how many calls asked today while nobody could be reached."""
        words = tr(NOTHING_WAITS)
        if count:
            calls = counted(count, "call", "calls")
            words = tr("Today {calls} asked while nobody could be reached, and were denied.", calls=calls)
        self.why.setText(words)

    def _tell_time(self) -> None:
        if self.isVisible():
            for row in self.rows:
                row.tell_time()


CHIPS = (
    ("all", mark("All"), mark("Every call and every other row of the log")),
    ("waiting", mark("Waiting"), mark("The calls that wait for your answer")),
    ("deny", mark("Denied"), mark("The calls that were denied")),
    ("asked", mark("Asked"), mark("The calls that asked first, with the answer")),
    ("allow", mark("Allowed"), mark("The calls that were made")),
    ("failed", mark("Failed"), mark("The calls that were allowed and came to no good end")),
    ("standing", mark("Standing answers"), mark("The answers that still count for later calls")),
    ("lapsed", mark("Lapsed"), mark("The questions of suspended calls that came to nothing, and why")),
)
NOT_LOGGED = frozenset({"waiting", "standing", "lapsed"})
"""The chips whose rows are no calls of the log."""
TIMES = (
    (mark("Any time"), ""),
    (mark("Today"), "today"),
    (mark("Yesterday"), "yesterday"),
    (mark("Last 7 days"), "7"),
    (mark("Last 30 days"), "30"),
)
CHOICES = (
    ("agent", mark("Agent"), ((mark("Any agent"), ""),)),
    ("tool", mark("Tool or operation"), ((mark("Any tool"), ""),)),
    ("client", mark("Client"), ((mark("Any client"), ""),)),
    ("when", mark("Time"), TIMES),
)


class FilterBar(QWidget):
    """One search for calls, waiting ones and answers. Emits `changed` with each letter and each choice."""

    changed = Signal()
    leave_requested = Signal()
    """The keys are to go to the calls."""

    def __init__(self) -> None:
        super().__init__()
        self._span: tuple[float, float] | None = None
        self._within = self._noted = ""
        self.search = named(SearchField(tr("Search calls, arguments, reasons, answers")), "activity.search")
        self.search.search_changed.connect(self._tell)
        self.search.results_requested.connect(self.leave_requested)
        self.search.leave_requested.connect(self.leave_requested)
        self.chips = named(Segmented(tr("What is listed"), is_dense=True), "activity.part")
        for key, words, tip in CHIPS:
            self.chips.add_segment(key, tr(words), tooltip=tr(tip), apart=key == "standing")
        self.chips.current_changed.connect(self._tell)
        self._combos = {key: self._combo(f"activity.{key}", tr(spoken), rows) for key, spoken, rows in CHOICES}
        self.client = self._combos["client"]
        self.client.hide()
        again = tr("Show the calls of all times again")
        self.span_button = _chip("activity.span", again, lambda: self.set_span(None))
        self.within_button = _chip("activity.within", tr("Show the other calls again"), lambda: self.set_within("", ""))
        self.clear_button = text_button(
            tr("Show all"), "activity.clear", self.clear, spoken=tr("Show all calls"), kind="link"
        )
        self.clear_button.hide()
        chosen = self.span_button, self.within_button, self.clear_button
        column_of(
            row_of(stretch(self.search), *self._combos.values(), space=1),
            row_of(self.chips, stretch(), *chosen, space=1),
            into=self,
            space=1,
            margins=(2, 1),
        )

    @property
    def part(self) -> str:
        """Which chip is chosen."""
        return self.chips.current or "all"

    @property
    def period(self) -> Span:
        """From when to when, as the field of times says; in seconds since 1970."""
        return _period(self._choice("when"))

    @property
    def span(self) -> tuple[float, float] | None:
        """The span that was chosen on the timeline."""
        return self._span

    @property
    def filter(self) -> AuditFilter:
        """The calls of the log that are wanted."""
        (since_s, until_s), part = self._span or self.period, self.part
        return AuditFilter(
            agent=self._choice("agent"),
            tool=self._choice("tool"),
            client=self._choice("client"),
            verdict=part if part in {"deny", "allow"} else "",
            state=part if part in {"asked", "failed"} else "",
            text=tuple(self.search.text().split()),
            since_s=since_s,
            until_s=until_s,
            within=self._within,
            noted=self._noted,
        )

    def fitting(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Return the rows that are wanted, of those that are no calls of the log."""
        agent, tool, client = (self._choice(name) for name in ("agent", "tool", "client"))
        words = self.search.text().casefold().split()
        for line in lines:
            called = getattr(line.item, "called", "")
            whole = f"{line.whole} {line.more}".casefold() if words else ""
            if (
                all(word in whole for word in words)
                and line.agent.startswith(agent)
                and (not tool or called == tool or called.startswith(f"{tool}."))
                and client in line.client
            ):
                yield line

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
        with QSignalBlocker(self):
            if span is not None and self.part in NOT_LOGGED:
                self.chips.set_current("all")
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
            self.chips.set_current("all")
            for combo in self._combos.values():
                combo.setCurrentIndex(0)
        self._tell()

    def _choice(self, key: str) -> str:
        return str(self._combos[key].currentData() or "")

    def _combo(self, name: str, spoken: str, rows: Sequence[tuple[str, str]]) -> QComboBox:
        combo = named(QComboBox(), name, spoken=spoken)
        combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        combo.setMinimumContentsLength(6)
        for words, value in rows:
            combo.addItem(tr(words), value)
        combo.currentIndexChanged.connect(self._tell)
        return combo

    def _tell(self, _what: object = None) -> None:
        self.clear_button.setVisible(self.part != "all" or self.filter != AuditFilter())
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
