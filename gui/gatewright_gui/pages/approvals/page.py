"""The calls of all processes that wait for an operator: which at the left, the chosen one at the right."""

import time

from PySide6.QtCore import QModelIndex, Qt, QTimer
from PySide6.QtGui import QHideEvent, QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import QCheckBox, QStackedWidget, QWidget

from gatewright.workspace.api import Address
from gatewright_gui.pages.approvals.answers import NOTHING_STANDS, AnsweredModel, AnswersPane, StaleModel, StandingModel
from gatewright_gui.pages.approvals.inbox import InboxDelegate, InboxModel
from gatewright_gui.pages.console.approval import KEY, ApprovalBar
from gatewright_gui.pages.page import Page, PageContext
from gatewright_gui.qt.dialog import Choice, ask
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, named, stretch
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.row_list import RowList
from gatewright_gui.qt.widget.section_header import SectionHeader
from gatewright_gui.qt.widget.segmented import Segmented
from gatewright_gui.qt.widget.splitter import Splitter
from gatewright_gui.session.call_record import find_lines, find_place
from gatewright_gui.session.question import PendingApproval, Standing, place_words
from gatewright_gui.session.standing import StandingAnswers

NOTHING_WAITS = mark(
    "A call that asks first waits here for your answer, while this window is open. It may come from a program that "
    "uses the policy, from gatewright call, or from a client of gatewright serve."
)
NO_CALL_ASKED = mark("A call that asks first is listed here once it is answered, with its outcome.")
_ENDED = mark("The process that waited for the answer has ended; the call was not made.")
NOTHING_STALE = mark(
    "A question of a suspended call comes to nothing if the policy or the call changes before its program makes the "
    "call again, or if its time is over. It is listed here for seven days."
)
_ANSWERED = mark("It was answered elsewhere; its program takes the answer when it makes the call again.")
_MOST_NAMED = 8
TICK_MS = 1000


class ApprovalsPage(Page):
    """Nothing is allowed by a plain letter, and no question is allowed that nobody has looked at."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self.setObjectName("approvals")
        self._context, self._waiting = context, context.waiting
        self._shown: PendingApproval | None = None
        self._row = 0
        self._gone_id = ""
        self._is_taking = self._is_calm = self._is_told = False
        self.header = SectionHeader(tr("Approvals"))
        self.model = InboxModel()
        self.view = named(RowList(), "approvals.list", spoken=tr("Calls that wait"))
        self.view.setModel(self.model)
        self.view.setItemDelegate(InboxDelegate(self.view))
        self.question = ApprovalBar(name="approvals", tasks=context.tasks, keys_for=self)
        self.gone = named(EmptyState("hand", tr("Choose a call"), ""), "approvals.gone")
        self.part = named(Segmented(tr("What is shown")), "approvals.part")
        self.part.add_segment("waiting", tr("Waiting"), tooltip=tr("The calls that wait for an answer"))
        self.part.add_segment("standing", tr("Standing"), tooltip=tr("The answers that still stand"))
        tip = tr("Questions of suspended calls that came to nothing, and why")
        self.part.add_segment("stale", tr("Stale"), tooltip=tip)
        self.part.add_segment("today", tr("Today"), tooltip=tr("The calls that asked today, and what became of them"))
        tip = tr(
            "Say on the desktop when a call begins to wait while another program is in front, without its arguments"
        )
        self.notify = named(QCheckBox(tr("Desktop messages")), "approvals.notify", tip=tip)
        self.notify.setChecked(context.sizes.notifies)
        self.notify.toggled.connect(self._keep_notify)
        self.answers = StandingAnswers(context.document, context.deriver, context.tasks, self)
        nothing = EmptyState("key-round", tr("No standing answers"), tr(NOTHING_STANDS))
        self.standing = AnswersPane(
            StandingModel(), "approvals.standing", tr("Answers that stand"), nothing, stretched=0, revoke=True
        )
        nothing = EmptyState("history", tr("No stale questions"), tr(NOTHING_STALE))
        self.stale = AnswersPane(
            StaleModel(), "approvals.stale", tr("Questions gone stale"), nothing, stretched=4, revoke=False
        )
        nothing = EmptyState("history", "", "")
        self.today = AnswersPane(
            AnsweredModel(), "approvals.today", tr("Calls that asked today"), nothing, stretched=3, revoke=False
        )
        self.empty = named(EmptyState("check", tr("Nothing needs you"), tr(NOTHING_WAITS)), "approvals.empty")
        self._tick = QTimer(self, interval=TICK_MS)
        self._tick.timeout.connect(self._count)
        self._lay_out()
        self._connect()
        self._show_answers()

    def main_view(self) -> QWidget:
        """The list that is shown: no key there answers anything by itself."""
        table = self._tables.get(self.part.current or "")
        return self.view if table is None else table.view

    def focus_search(self) -> None:
        """Ctrl+F: filter what was answered."""
        if (table := self._tables.get(self.part.current or "")) is not None:
            table.search.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def page_shown(self) -> None:
        """Bring up to date what was put off while the page was hidden."""
        self._take(self._waiting.questions, calm=False)
        self.answers.look()

    def _lay_out(self) -> None:
        self._detail = QStackedWidget()
        self._stack = QStackedWidget()
        splitter = Splitter(Qt.Orientation.Horizontal, "approvals", self._context.sizes)
        self.header.add_control(self.notify)
        self.header.add_control(self.part)
        column_of(self.header, stretch(self._stack), into=self)
        self._tables = {"standing": self.standing, "stale": self.stale, "today": self.today}
        for part in (splitter, self.empty, *self._tables.values()):
            self._stack.addWidget(part)
        splitter.addWidget(self.view)
        splitter.addWidget(self._detail)
        self._detail.addWidget(self.gone)
        self._detail.addWidget(self.question)
        splitter.setStretchFactor(1, 1)
        splitter.restore((300, 900))
        self._whole = splitter
        before: QWidget = self.view
        for part in self.question.tab_parts:
            self.setTabOrder(before, part)
            before = part

    def _connect(self) -> None:
        self._waiting.changed.connect(self._take)
        self._waiting.changed.connect(self._show_answers)
        self._context.sizes.changed.connect(self._follow_notify)
        self.part.current_changed.connect(self._show_part)
        self.answers.changed.connect(self._show_answers)
        self.standing.revoke_requested.connect(self._revoke)
        delete = QShortcut(QKeySequence(QKeySequence.StandardKey.Delete), self.standing.view)
        delete.setContext(Qt.ShortcutContext.WidgetShortcut)
        delete.activated.connect(self.standing.revoke_button.click)
        self._context.navigator.waiting_requested.connect(self.choose)
        self._context.document.policy_changed.connect(self._say_edited)
        self.view.selectionModel().currentChanged.connect(self._show)
        self.view.activated.connect(self._focus_question)
        self.question.answered.connect(self._forget)
        self._context.document.closed.connect(self._let_go)
        self.gone.action_requested.connect(lambda: self._choose_row(0))
        self.question.keys_given_back.connect(lambda: self.view.setFocus(Qt.FocusReason.OtherFocusReason))
        self.question.place_requested.connect(self._go)
        shortcut = QShortcut(QKeySequence(KEY), self, context=Qt.ShortcutContext.WidgetWithChildrenShortcut)
        shortcut.activated.connect(self._focus_question)

    def _say_edited(self, _changes: object) -> None:
        self.question.say_edited()

    def _focus_question(self, _index: object = None) -> None:
        self.question.focus_question()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        """Count down while one can see it."""
        super().showEvent(event)
        self._tick.start()

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802
        """Nothing counts unseen."""
        super().hideEvent(event)
        self._tick.stop()

    def choose(self, digests: tuple[str, ...]) -> None:
        """Show the oldest question of one of these calls; of none of them, the one that is shown, else the oldest."""
        self._take(self._waiting.questions, calm=False)
        wanted = next((one for one in self._waiting.questions if one.digest in digests), None)
        if wanted is not None:
            self._choose_row(self.model.find(wanted.request_id))
        elif self._shown is None:
            self._choose_row(0)

    def _choose_row(self, row: int) -> None:
        index = self.model.index(row, 0)
        if index == self.view.currentIndex():
            self._show(index)
        else:
            self.view.setCurrentIndex(index)

    def _take(self, questions: tuple[PendingApproval, ...], *, calm: bool = True) -> None:
        """Show what waits now. Nothing takes the place of a question that went by itself: what goes is said."""
        if not self.isVisible():
            return
        self._is_taking = True
        self.model.set_rows(questions)
        self._is_taking = False
        self.header.set_note(counted(len(questions), "waits", "wait") if questions else "")
        row = self.model.find(self._shown.request_id) if self._shown is not None else -1
        if row >= 0:
            self._choose_row(row)
        elif self._shown is not None:
            self._tell_gone(self._shown)
        elif questions and not self._is_told:
            self._is_calm = calm
            self._choose_row(min(self._row, len(questions) - 1))
            self._is_calm = False
        self._show_part()

    def _show(self, index: QModelIndex, _before: QModelIndex | None = None) -> None:
        question = self.model.row_at(index.row())
        if self._is_taking or question is None:
            return
        self._shown, self._row, self._is_told = question, index.row(), False
        is_new = self.question.question is None or self.question.question.request_id != question.request_id
        self.question.ask(question, calm=self._is_calm)
        if is_new:
            self._context.tasks.start(self._find_lines(question), "approvals.lines", replace=True)
        self._detail.setCurrentWidget(self.question)

    def _keep_notify(self, is_on: bool) -> None:
        self._context.sizes.notifies = is_on

    def _follow_notify(self) -> None:
        self.notify.setChecked(self._context.sizes.notifies)

    def _show_part(self, _part: object = None) -> None:
        waits = self._whole if self.model.rowCount() or self._is_told else self.empty
        shown = self._tables.get(self.part.current or "")
        self._stack.setCurrentWidget(waits if shown is None else shown)
        if shown is not None:
            self.answers.look()

    def _show_answers(self, _questions: object = None) -> None:
        model = self.standing.model
        if isinstance(model, StandingModel):
            model.uses = dict(self.answers.today.uses)
        known = self.answers.is_known
        self.standing.set_rows(self.answers.standing, is_known=known)
        self.stale.set_rows(self.answers.stale, is_known=known)
        self.today.set_rows(self.answers.today.answered, is_known=known)
        if problem := self.answers.today.problem:
            self.today.empty.set_state("circle-alert", tr("The log cannot be read"), problem)
        else:
            self.today.empty.set_state("history", tr("No call asked today"), tr(NO_CALL_ASKED))
        missed = self.answers.today.unreached
        words = tr(NOTHING_WAITS)
        if missed:
            calls = counted(missed, "call", "calls")
            words += "\n" + tr(
                "Today {calls} asked while nobody could be reached, and were denied at once.", calls=calls
            )
        if known and self._waiting.is_known:
            self.empty.set_state("check", tr("Nothing needs you"), words)
        else:
            self.empty.set_unknown()

    def _count(self) -> None:
        """Times say how long still, and how long ago."""
        self.view.viewport().update()
        if self.part.current != "waiting":
            self.answers.look()

    def _revoke(self, chosen: tuple[Standing, ...]) -> None:
        self._context.tasks.start(self._revoke_all(chosen), "approvals.revoke", stays=True)

    async def _revoke_all(self, chosen: tuple[Standing, ...]) -> None:
        """Several only after a question that names them."""
        if len(chosen) > 1:
            lines, more = [one.words for one in chosen[:_MOST_NAMED]], len(chosen) - _MOST_NAMED
            text = "\n".join([*lines, *([tr("and {count} more", count=more)] if more > 0 else [])])
            choices = (Choice("keep", tr("Keep them"), "primary"), Choice("revoke", tr("Revoke all"), "danger"))
            title = tr("Revoke {count} answers?", count=len(chosen))
            if await ask(self.window(), title, text, choices, icon="key-round", role="ask") != "revoke":
                return
        await self.answers.revoke([one.grant_id for one in chosen])

    def _let_go(self) -> None:
        """What is shown waits in a workspace that is gone."""
        self._forget()
        self.model.set_rows(())
        self.header.set_note("")
        self.question.withdraw()
        self._show_part()

    def _forget(self, _question: object = None) -> None:
        """The question that is shown is answered: the next may be shown."""
        self._shown, self._is_told = None, False

    def _tell_gone(self, question: PendingApproval) -> None:
        self._shown, self._is_told = None, True
        self.view.selectionModel().clear()
        self.question.withdraw()
        is_over = question.expires_wall_s is not None and question.expires_wall_s <= time.time()
        self._say_gone(question, tr("Nobody answered in time, so the call was denied.") if is_over else "")
        self._detail.setCurrentWidget(self.gone)
        if not is_over:
            self._context.tasks.start(self._find_fate(question), "approvals.fate", replace=True)

    def _say_gone(self, question: PendingApproval, words: str) -> None:
        self._gone_id = question.request_id
        more = tr("Show the next") if self.model.rowCount() else None
        title = tr("{call} does not wait any more", call=question.called)
        self.gone.set_state("history", title, words, action=more)

    async def _find_fate(self, question: PendingApproval) -> None:
        why = await self.answers.why_stale(question) if question.call_key else ""
        fate = None if why else await self.answers.fate_of(question)
        if self._is_told and self._gone_id == question.request_id:
            words = tr(_ANSWERED if question.call_key else _ENDED)
            if why:
                words = tr("It came to nothing: {why}.", why=why)
            elif fate is not None:
                words = tr("{answer}; the call: {outcome}.", answer=fate.answer, outcome=fate.outcome)
            self._say_gone(question, f"{words[:1].upper()}{words[1:]}")

    async def _find_lines(self, question: PendingApproval) -> None:
        lines = await find_lines(self._context.document, filter(None, question.places))
        if self._shown is question:
            self.question.set_lines(lines)

    def _go(self, address: Address) -> None:
        self._context.tasks.start(self._find(address), "approvals.place", replace=True)

    async def _find(self, address: Address) -> None:
        place = await find_place(self._context.document, address)
        if place is None:
            words = tr("`{place}` is no longer in the policy", place=place_words(address))
            self._context.document.say("warning", words)
        else:
            self._context.navigator.go_to_rule(place)
