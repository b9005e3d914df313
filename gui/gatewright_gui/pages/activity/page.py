"""What agents do: what waits above, a search with a timeline over calls and answers, the chosen one at the right.

Over 450 lines, because every answer of the log and every button of its parts ends in a short method here.
"""

import asyncio
import time
from collections.abc import Iterator

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QAbstractItemView, QCheckBox, QWidget
from shiboken6 import isValid

from gatewright.workspace.api import Address
from gatewright_gui.pages.activity.bars import NOT_LOGGED, FilterBar, WaitingBand
from gatewright_gui.pages.activity.detail_pane import DetailPane
from gatewright_gui.pages.activity.rows import ActivityModel, Item, Line, fit_columns, line_of
from gatewright_gui.pages.activity.verbs import CallVerbs, LogVerbs
from gatewright_gui.pages.page import Page, PageContext
from gatewright_gui.pages.timeline import TimelineBar
from gatewright_gui.pages.trial.approval import KEY, ApprovalBar
from gatewright_gui.qt.dialog import Choice, ask
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, named, stretch
from gatewright_gui.qt.listing import Listing, Verb
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.label import SectionHeader
from gatewright_gui.qt.widget.message_bar import FootBars
from gatewright_gui.qt.widget.splitter import split_of
from gatewright_gui.session.audit import (
    NOTHING_FOUND,
    AuditChoices,
    AuditFilter,
    AuditTrail,
    Found,
    LoggedCall,
    Timeline,
)
from gatewright_gui.session.audit_call import (
    detail_of,
    fate_words,
)
from gatewright_gui.session.call_record import find_lines, find_place
from gatewright_gui.session.question import PendingApproval, Stale, Standing, place_words
from gatewright_gui.session.waiting import StandingAnswers

LOOK_MS = 500
"""How often it is looked what others wrote, while the page is there to be seen."""
_TELL_MS = 120
_TRIES, _PAUSE_S = 8, 0.25
"""How often the log is looked at for the end of a call, which its process may still be writing."""
_MOST_NAMED = 8
_ENDED = mark("The process that waited for the answer has ended; the call was not made.")
_ANSWERED = mark("It was answered elsewhere; its program takes the answer when it makes the call again.")
_EMPTY = {
    "waiting": (
        "check",
        mark("Nothing needs you"),
        mark("A call that asks first is listed here until somebody answers it."),
    ),
    "standing": (
        "key-round",
        mark("No standing answers"),
        mark("An answer for a while or for a session is listed here until it is over, and can be taken back."),
    ),
    "lapsed": (
        "history",
        mark("No lapsed questions"),
        mark(
            "A question of a suspended call lapses if the policy or the call changes before its program makes the call "
            "again, or if its time is over. It is listed here for seven days."
        ),
    ),
}


class ActivityPage(Page):
    """Everything is read beside the window, and nothing that comes or goes moves what one reads.

    Nothing is allowed by a plain letter, and no question is allowed that nobody has looked at.
    """

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self.setObjectName("activity")
        self._context, self._document, self._waiting = context, context.document, context.waiting
        self._goal: int | None = None
        """The number of the call that is to be chosen as soon as it is there."""
        self._failure = self._gone_id = ""
        self._names = AuditChoices()
        self._lines: dict[int, Line] = {}
        self._part = "all"
        """The chip whose rows are listed."""
        self._is_finding = False
        """True while the log is searched and nothing is listed yet."""
        self.trail = AuditTrail(context.document, context.tasks, self)
        self.answers = StandingAnswers(context.document, self.trail, context.tasks, self)
        self.header, self.band, self.filters = SectionHeader(tr("Activity")), WaitingBand(), FilterBar()
        log = self.log = LogVerbs(context, self.trail, lambda: self.filters.filter)
        tip = tr(
            "Say on the desktop when a call begins to wait while another program is in front, without its arguments"
        )
        self.notify = named(QCheckBox(tr("Notify me")), "activity.notify", tip=tip)
        self.notify.setChecked(context.sizes.notifies)
        for control in (self.notify, log.proof, log.verify_button, log.export_button):
            self.header.add_control(control)
        self.timeline = named(TimelineBar(), "activity.timeline")
        self.model = ActivityModel()
        self.empty = named(EmptyState("scroll-text", "", ""), "activity.empty")
        self.list = Listing(self.model, "activity.rows", tr("Calls"), self.empty, self._offer, is_many=True)
        self.view = self.list.view
        self.question = ApprovalBar(name="activity", tasks=context.tasks, keys_for=self)
        verbs = (("again", "rotate-ccw"), ("try", "terminal"), ("mend", "pencil"), ("back", "undo"))
        self.detail = DetailPane(self.question, [self.list.button(f"activity.{name}", icon) for name, icon in verbs])
        self._verbs = CallVerbs(context, self.detail)
        self._filter_soon = QTimer(self, singleShot=True, interval=_TELL_MS)
        self._look = QTimer(self, interval=LOOK_MS)
        self._tick = QTimer(self, interval=1000)
        self._lay_out()
        self._connect()
        self._narrow()
        self._look.start()
        self._tick.start()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """Show less in the rows where there is little room."""
        if event.type() == QEvent.Type.Resize:
            self._fit_columns()
        return super().eventFilter(watched, event)

    def _fit_columns(self, _why: object = None) -> None:
        """No clients in what is listed, no column for them."""
        is_logged = self.filters.part not in NOT_LOGGED
        has_clients = bool(self._names.clients) if is_logged else any(line.client for line in self.model.rows)
        has_took = is_logged or self.filters.part == "standing"
        fit_columns(self.view, is_logged=is_logged, has_clients=has_clients, has_took=has_took)

    def _offer_names(self, choices: AuditChoices) -> None:
        self._names = choices
        self.filters.set_choices(choices)
        self._fit_columns()

    # the window's side

    def main_view(self) -> QWidget:
        """The rows."""
        return self.view if self.view.isVisibleTo(self) else self.filters.search

    def focus_search(self) -> None:
        """Ctrl+F: the one search."""
        self.filters.search.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def page_shown(self) -> None:
        """Bring up to date what was put off while the page was hidden."""
        self.trail.look()
        self.answers.look()
        self._take(self._waiting.questions, calm=False)

    def end(self) -> None:
        """Let go of the log."""
        self._look.stop()
        self._tick.stop()
        self.trail.end()

    # what waits

    def choose(self, digests: tuple[str, ...]) -> None:
        """Show the oldest question of one of these calls; of none of them, the one that is shown, else the oldest."""
        self._take(self._waiting.questions, calm=False)
        wanted = next((one for one in self._waiting.questions if one.digest in digests), None)
        if wanted is not None:
            self.see(wanted)
        elif self.detail.waits is None and self._waiting.questions:
            self.see(self._waiting.questions[0])

    def see(self, question: PendingApproval, *, calm: bool = False) -> None:
        """Show all of a call that waits, with its answers."""
        is_new = self.detail.waits is None or self.detail.waits.request_id != question.request_id
        self.detail.show_question(question, calm=calm)
        if is_new:
            self.view.selectionModel().clear()
            self._choose_row(self.model.find(("waiting", question.request_id)))
            self._context.tasks.start(self._find_logged(question), "activity.detail", replace=True)
        self.list.tell()

    def _see(self, question: PendingApproval) -> None:
        self.see(question)

    async def _find_logged(self, question: PendingApproval) -> None:
        """Find where the rules stand that ask, and what the log has of the call, to choose its row."""
        lines = await find_lines(self._document, filter(None, question.places))
        call = await self.trail.call(question.call_id)
        if not isValid(self) or self.detail.waits is not question:
            return
        self.question.set_lines(lines)
        if call is None:
            return
        detail = detail_of(call, await self.trail.rows_of(call))
        if isValid(self) and self.detail.waits is question:
            self.detail.show_logged(question, detail)
            self._choose_row(self.model.find(call.seq))
            self.list.tell()

    def _take(self, questions: tuple[PendingApproval, ...], *, calm: bool = True) -> None:
        """Show what waits now. Nothing takes the place of what one reads: what goes by itself is said."""
        self.band.set_questions(questions, is_known=self._waiting.is_known)
        self.header.set_note(self._note())
        if not self.isVisible():
            return
        self._show_top()
        was = self.detail.waits
        now = next((one for one in questions if was is not None and one.request_id == was.request_id), None)
        if now is not None:
            self.detail.show_question(now, calm=True)
        elif was is not None:
            self._tell_gone(was)
        elif questions and self.detail.item is None and not self._gone_id:
            self.see(questions[0], calm=calm)

    def _forget(self, question: PendingApproval) -> None:
        """The question is answered: if it is shown, the next may be, or its row once that is read again."""
        if self.detail.waits is not None and self.detail.waits.request_id == question.request_id:
            chosen = (line.item for line in self.list.chosen if isinstance(line.item, LoggedCall))
            if any(call.call_id == question.call_id for call in chosen):
                self.detail.show_answered(question)
            else:
                self.detail.show_nothing()
            self.list.tell()

    def _tell_gone(self, question: PendingApproval) -> None:
        self._gone_id = question.request_id
        is_over = question.expires_wall_s is not None and question.expires_wall_s <= time.time()
        self._say_gone(question, tr("Nobody answered in time, so the call was denied.") if is_over else "")
        if not is_over:
            self._context.tasks.start(self._find_fate(question), "activity.fate", replace=True)

    def _say_gone(self, question: PendingApproval, words: str) -> None:
        more = tr("Show the next") if self._waiting.questions else None
        self.view.selectionModel().clear()
        self.detail.say("history", tr("{call} does not wait any more", call=question.called), words, action=more)
        self.list.tell()

    async def _find_fate(self, question: PendingApproval) -> None:
        why = await self.answers.why_lapsed(question) if question.call_key else ""
        words = tr("It came to nothing: {why}.", why=why) if why else ""
        for _ in range(0 if why else _TRIES):
            call = await self.trail.call(question.call_id)
            if call is not None and call.ended:
                words = fate_words(call)
                break
            await asyncio.sleep(_PAUSE_S)
        if isValid(self) and self._gone_id == question.request_id and self.detail.item is None:
            self._say_gone(question, words or tr(_ANSWERED if question.call_key else _ENDED))

    def _show_next(self) -> None:
        self._gone_id = ""
        if self._waiting.questions:
            self.see(self._waiting.questions[0])

    def _focus_question(self) -> None:
        """Bring the keys to the question that is shown, else to the oldest."""
        if self.detail.waits is None:
            self._show_next()
        self.question.focus_question()

    def _give_keys_back(self) -> None:
        self.main_view().setFocus(Qt.FocusReason.OtherFocusReason)

    def _go(self, address: Address) -> None:
        self._context.tasks.start(self._find(address), "activity.place", replace=True)

    async def _find(self, address: Address) -> None:
        place = await find_place(self._document, address)
        if place is None:
            self._document.say("warning", tr("`{place}` is no longer in the policy", place=place_words(address)))
        else:
            self._context.navigator.go_to_rule(place)

    # what is found

    @property
    def current(self) -> Item | None:
        """The item that is chosen in the rows, once it is read."""
        return next((line.item for line in self.list.chosen if self.model.is_read(line.key)), None)

    def _began(self) -> None:
        self._failure, self._goal, self._gone_id = "", None, ""
        self.log.forget()
        self.detail.show_nothing()
        self.filters.clear()
        self.band.set_questions((), is_known=False)
        self.model.set_top(())
        self.model.set_found(self.trail.now)
        self._show_counts(Timeline())

    def _show_top(self, _why: object = None) -> None:
        """List what is no call of the log: under its chip, and what a search finds of it above the calls."""
        part, answers = self.filters.part, self.answers
        items: list[Item] = []
        if part == "waiting":
            items += self._waiting.questions
        if part == "standing" or (part == "all" and self.filters.filter.text):
            items += answers.standing
        if part == "lapsed" or (part == "all" and self.filters.filter.text):
            items += answers.lapsed
        lines = [*map(self._line, items)]
        self._lines = {id(line.item): line for line in lines if isinstance(line.item, PendingApproval)}
        self.model.set_top(self.filters.fitting(lines))
        self._show_state()

    def _line(self, item: Item) -> Line:
        """Say a row in words; a call that waits is said once, however often others come and go."""
        uses = self.answers.uses.get(item.grant_id, 0) if isinstance(item, Standing) else 0
        return self._lines.get(id(item)) or line_of(item, uses)

    def _show_answers(self) -> None:
        self.band.set_unreached(self.answers.unreached)
        self._show_top()
        shown = self.detail.item
        if isinstance(shown, Standing):
            if shown in self.answers.standing:
                self.detail.show_answer(shown, self.answers.uses.get(shown.grant_id, 0))
            else:
                self.detail.show_nothing()
            self.list.tell()

    def _show_found(self, found: Found) -> None:
        self._is_finding = False
        if self.filters.part in NOT_LOGGED:
            self.model.set_found(NOTHING_FOUND)
            self._show_state()
            return
        bar, row = self.view.verticalScrollBar(), self.view.rowAt(0)
        top, was_at = self.model.key_at(row), bar.value()
        chosen = next((line.key for line in self.list.chosen), None)
        self.model.set_found(found)
        if isinstance(top, int) and was_at and (now := self.model.find(top)) >= 0:
            bar.setValue(was_at + (now - row) * self.view.rowHeight(now))
        self._failure = ""
        self._show_state()
        if self._goal is not None and self._select(self._goal):
            self._goal = None
        detail, waits = self.detail.detail, self.detail.waits
        if waits is not None and detail is None:
            self._context.tasks.start(self._find_logged(waits), "activity.detail", replace=True)
        elif (isinstance(chosen, int) and found.changed and chosen >= found.changed) or (detail and detail.is_orphan):
            self._choose()

    def _act_on_empty(self) -> None:
        if self.trail.now.rows or self.filters.part != "all":
            self.filters.clear()
        else:
            self._context.navigator.ask_for_client()

    def _note(self) -> str:
        found, waiting, others = self.trail.now, len(self._waiting.questions), len(self.trail.now.others)
        said = [
            counted(waiting, "call waits", "calls wait") if waiting else "",
            counted(len(found.numbers) - others, "call", "calls") if found.numbers else "",
            counted(others, "other row", "other rows") if others else "",
            "" if found.is_whole else tr("{part} % of the log read", part=100 * found.read // found.rows),
        ]
        return " \u00b7 ".join(filter(None, said))

    def _show_state(self) -> None:
        found, part, count = self.trail.now, self.filters.part, self.model.count()
        is_log, is_sought = part not in NOT_LOGGED, self.filters.filter != AuditFilter() or part != "all"
        if self._failure and is_log:
            self.empty.set_state("circle-alert", tr("The log cannot be read"), self._failure)
        elif self._is_finding or not (found.is_whole if is_log else self._waiting.is_known and self.answers.is_known):
            self.empty.set_unknown()
        elif not is_log and self.filters.filter == AuditFilter():
            icon, title, words = _EMPTY[part]
            self.empty.set_state(icon, tr(title), tr(words))
        elif is_sought and (found.rows or not is_log):
            words = tr("Try other filters or another time range.")
            self.empty.set_state("list-filter", tr("Nothing fits"), words, action=tr("Show all"))
        else:
            words = tr(
                "Every call through the gate is kept here, whoever makes it: a program, a client, Try while it "
                "is live. Runs in the copy are not recorded."
            )
            self.empty.set_state("scroll-text", tr("No calls yet"), words, action=tr("Connect a client..."))
        is_there = bool(count) and not (self._failure and is_log)
        takes_keys = is_there and self.filters.search.hasFocus() and not is_sought
        self.list.show_view(is_there)
        if takes_keys:
            self.view.setFocus(Qt.FocusReason.OtherFocusReason)
        self.timeline.setVisible(bool(self.timeline.timeline.stretches) and not self._failure)
        self.header.set_note(self._note())
        self.log.verify_button.setEnabled(bool(found.rows) or bool(self._failure))
        self.log.export_button.setEnabled(is_there and is_log)

    def _show_counts(self, timeline: Timeline) -> None:
        self.timeline.set_timeline(timeline)
        self._show_state()

    def _fail(self, words: str) -> None:
        self._failure = words
        self.detail.show_nothing()
        self._show_state()

    def _narrow(self, _why: object = None) -> None:
        """List what the chip, the search and the other filters ask for."""
        part, before = self.filters.part, self._part
        self._part = part
        if part != before and not NOT_LOGGED.isdisjoint({part, before}):  # what is shown is none of these
            self.detail.show_nothing()
        mode, is_many = QAbstractItemView.SelectionMode, part == "standing"
        self.view.setSelectionMode(mode.ExtendedSelection if is_many else mode.SingleSelection)
        self.timeline.set_span(self.filters.span)
        self.model.set_heads(part)
        if part in NOT_LOGGED:
            self.model.set_found(NOTHING_FOUND)
            self.answers.look()
            if part == "waiting" and self._waiting.questions and self.detail.item is None:
                self.see(self._waiting.questions[0], calm=True)
        else:
            self._is_finding = self._document.is_open and not self.model.count()
            self.trail.set_filter(self.filters.filter, self.filters.period)
        self._show_top()
        self._fit_columns()

    def _count(self) -> None:
        """Times say how long still, and how long ago."""
        part = self.filters.part
        if self.isVisible() and part in NOT_LOGGED:
            self.view.viewport().update()
            if part != "waiting":
                self.answers.look()

    def _bring_soon(self, numbers: tuple[int, ...]) -> None:
        self._context.tasks.start(self._bring(numbers), "activity.calls")

    async def _bring(self, numbers: tuple[int, ...]) -> None:
        calls = await self.trail.calls(numbers)
        if not isValid(self):
            return
        self.model.take(calls)
        self._choose()

    # what is chosen

    def _choose_row(self, row: int) -> None:
        if row >= 0:
            self.view.setCurrentIndex(self.model.index(row, 0))

    def _choose(self, *_what: object) -> None:
        """Show what is chosen in the rows, unless it is shown."""
        item = self.current
        if item is None or item == self.detail.item:
            return
        self._gone_id = ""
        match item:
            case LoggedCall():
                waits = [one for one in self._waiting.questions if item.call_id and one.call_id == item.call_id]
                if waits and (self.detail.waits is None or self.detail.waits.call_id != item.call_id):
                    self.see(waits[0])
                elif not waits:
                    self._context.tasks.start(self._show_call(item), "activity.detail", replace=True)
            case PendingApproval():
                self.see(item)
            case Standing():
                self.detail.show_answer(item, self.answers.uses.get(item.grant_id, 0))
            case Stale():
                self.detail.show_lapsed(item)
        self.list.tell()

    async def _show_call(self, call: LoggedCall) -> None:
        rows, parent = await self.trail.rows_of(call), await self.trail.parent_of(call)
        if not isValid(self) or not rows:
            return
        detail = detail_of(call, rows, parent)
        self.detail.show_detail(detail)
        self.list.tell()
        self._show_proof()
        await self._verbs.find_rule(detail)

    def _offer(self) -> Iterator[Verb]:
        """Offer what can be done about what is shown."""
        yield Verb("", "", self._focus_detail, keys="Enter")
        answers = [line.item for line in self.list.chosen if isinstance(line.item, Standing)]
        if answers:
            count = len(answers)
            words = tr("Take back {count} answers", count=count) if count > 1 else tr("Take back")
            yield Verb("activity.back", words, self._take_back, tr("Such calls ask again (Del)"), "Del")
        yield from self._verbs.offer()

    def _focus_detail(self) -> None:
        """Enter in the rows: the question, what denies first; of anything else what it says."""
        if self.detail.waits is not None:
            self.question.focus_question()
        elif self.detail.code.isVisible():
            self.detail.code.editor.setFocus(Qt.FocusReason.OtherFocusReason)

    def _take_back(self) -> None:
        chosen = tuple(line.item for line in self.list.chosen if isinstance(line.item, Standing))
        self._context.tasks.start(self._take_all_back(chosen), "activity.back", stays=True)

    async def _take_all_back(self, chosen: tuple[Standing, ...]) -> None:
        """Several only after a question that names them."""
        if len(chosen) > 1:
            lines, more = [one.words for one in chosen[:_MOST_NAMED]], len(chosen) - _MOST_NAMED
            text = "\n".join([*lines, *([tr("and {count} more", count=more)] if more > 0 else [])])
            choices = (Choice("keep", tr("Keep them"), "primary"), Choice("back", tr("Take all back"), "danger"))
            title = tr("Take {count} answers back?", count=len(chosen))
            if await ask(self.window(), title, text, choices, icon="key-round", role="ask") != "back":
                return
        await self.answers.take_back([one.grant_id for one in chosen])

    def _select(self, number: int) -> bool:
        """Choose the call with that number, where it is shown."""
        row = self.model.find(number)
        self._choose_row(row)
        if row >= 0:
            self.view.setFocus(Qt.FocusReason.OtherFocusReason)
        return row >= 0

    def _go_to_parent(self) -> None:
        parent = self.detail.detail.parent if self.detail.detail is not None else None
        if parent is not None and not self._select(parent.seq):
            self._goal = parent.seq
            self.filters.set_within(parent.call_id, parent.called)

    def _show_steps(self) -> None:
        """Show the chosen call with its steps, or a step with the others, and nothing else."""
        detail = self.detail.detail
        if detail is None:
            return
        call, parent = detail.call, detail.parent
        self._goal = call.seq
        if call.steps or call.started or parent is None:
            self.filters.set_within(call.call_id if call.steps or call.started else call.within, call.called)
        else:
            self.filters.set_within(parent.call_id, parent.called)

    def _show_proof(self) -> None:
        """Say whether the rows of the chosen call are proved, and what can be done with the log now."""
        self._show_state()
        if self.detail.detail is not None:
            self.detail.show_chain(*self.log.proof_of(self.detail.detail.call))

    # the parts

    def _keep_notify(self, is_on: bool) -> None:
        self._context.sizes.notifies = is_on

    def _say_edited(self, _changes: object) -> None:
        self.question.say_edited()

    def _follow_notify(self) -> None:
        self.notify.setChecked(self._context.sizes.notifies)

    def _connect(self) -> None:
        current_look().changed.connect(self._fit_columns)
        self.trail.began.connect(self._began)
        self.trail.found.connect(self._show_found)
        self.trail.counted.connect(self._show_counts)
        self.trail.named.connect(self._offer_names)
        self.trail.failed.connect(self._fail)
        self.model.wanted.connect(self._bring_soon)
        self.filters.changed.connect(self._filter_soon.start)
        self._filter_soon.timeout.connect(self._narrow)
        self.filters.chips.current_changed.connect(self._narrow)
        self.filters.leave_requested.connect(self._give_keys_back)
        self.timeline.span_chosen.connect(self.filters.set_span)
        navigator = self._context.navigator
        navigator.span_requested.connect(self.filters.set_span)
        navigator.waiting_requested.connect(self.choose)
        self.empty.action_requested.connect(self._act_on_empty)
        self.view.selectionModel().selectionChanged.connect(self._choose)
        self.notify.toggled.connect(self._keep_notify)
        self._context.sizes.changed.connect(self._follow_notify)
        self._look.timeout.connect(lambda: self.trail.look() if self.isVisible() else None)
        self._tick.timeout.connect(self._count)
        self.log.told.connect(self._show_proof)
        self.detail.parent_requested.connect(self._go_to_parent)
        self.detail.steps_requested.connect(self._show_steps)
        self.detail.gone.action_requested.connect(self._show_next)
        self._waiting.changed.connect(self._take)
        self.answers.changed.connect(self._show_answers)
        self._document.policy_changed.connect(self._say_edited)
        self.question.answered.connect(self._forget)
        self.question.keys_given_back.connect(self._give_keys_back)
        self.question.place_requested.connect(self._go)
        self.band.denied.connect(self._forget)
        self.band.seen.connect(self._see)
        self.band.allow_requested.connect(self.question.offer_allowing)
        self.band.all_requested.connect(lambda: self.filters.chips.set_current("waiting"))
        shortcut = QShortcut(QKeySequence(KEY), self, context=Qt.ShortcutContext.WidgetWithChildrenShortcut)
        shortcut.activated.connect(self._focus_question)

    def _lay_out(self) -> None:
        panes, across = (self.list, self.detail), Qt.Orientation.Horizontal
        split = split_of(across, "activity.split", self._context.sizes, panes, (700, 500))
        for at, share in enumerate((7, 5)):
            split.setStretchFactor(at, share)
        self.list.installEventFilter(self)
        column_of(self.header, self.band, self.filters, self.timeline, stretch(split), into=self)
        FootBars(self, self.log.strip, self.log.message)
