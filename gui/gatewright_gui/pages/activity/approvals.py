"""The calls of all processes that wait for an operator; tables of answers that stand, of stale questions, of today."""

import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from PySide6.QtCore import QModelIndex, QRect, QSize, Qt, QTimer
from PySide6.QtGui import QColor, QHideEvent, QKeySequence, QPainter, QShortcut, QShowEvent
from PySide6.QtWidgets import QCheckBox, QStyleOptionViewItem, QWidget

from gatewright.workspace.api import Address
from gatewright_gui.pages.page import Page, PageContext
from gatewright_gui.pages.trial.approval import KEY, ApprovalBar
from gatewright_gui.qt.dialog import Choice, ask
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stack_of, stretch
from gatewright_gui.qt.listing import REST, Column, Listing, ListingModel, Verb
from gatewright_gui.qt.look import current_look, role_hex
from gatewright_gui.qt.plaintext import line_text
from gatewright_gui.qt.table_model import ROW, Index, RowModel
from gatewright_gui.qt.widget.delegate import Delegate, paint_ground
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.row_list import RowList
from gatewright_gui.qt.widget.section_header import SectionHeader
from gatewright_gui.qt.widget.segmented import Segmented
from gatewright_gui.qt.widget.splitter import split_of
from gatewright_gui.session.answered import Answered
from gatewright_gui.session.call_record import find_lines, find_place
from gatewright_gui.session.question import PendingApproval, Stale, Standing, place_words, span
from gatewright_gui.session.standing import StandingAnswers

R = TypeVar("R")
NOTHING_STANDS = mark("An answer for a while or for a session is listed here until it is over, and can be taken back.")
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
PARTS = (
    ("waiting", mark("Waiting"), mark("The calls that wait for an answer")),
    ("standing", mark("Standing"), mark("The answers that still stand")),
    ("stale", mark("Stale"), mark("Questions of suspended calls that came to nothing, and why")),
    ("today", mark("Today"), mark("The calls that asked today, and what became of them")),
)
_MOST_NAMED = 8
SOON_S = 15.0
"""With less time left a question stands out, and a suspended one when it is due."""


class InboxModel(RowModel[PendingApproval]):
    """Oldest first. A question that goes or comes moves no other."""

    def key(self, row: PendingApproval) -> object:
        """The question."""
        return row.request_id

    def set_rows(self, rows: Iterable[PendingApproval]) -> None:
        """Show these, new ones behind the others."""
        there = {row.request_id: at for at, row in enumerate(self.rows)}
        super().set_rows(sorted(rows, key=lambda row: there.get(row.request_id, len(there))))

    def text(self, row: PendingApproval, _column: int) -> str:
        """Who asks for what."""
        return f"{row.whose}: {row.called}"

    def tip(self, row: PendingApproval, column: int) -> str:
        """With where it comes from and the time that is left."""
        return ", ".join(filter(None, (self.text(row, column), row.asker, row.left_words(time.time()))))

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


def _ago(wall_s: float) -> str:
    return tr("{time} ago", time=span(time.time() - wall_s))


def _until(row: Standing) -> str:
    ends_s = row.expires_wall_s
    return tr("revoked") if ends_s is None else tr("in {time}", time=span(ends_s - time.time()))


def _who(row: Standing) -> str:
    answer = tr("allowed by {who}") if row.approved else tr("refused by {who}")
    return answer.format(who=row.who or tr("the operator"))


def _whole_standing(row: Standing) -> str:
    """The row, with the session that it is for."""
    is_session = row.session_id and row.where == tr("in this session")
    session = tr("session {session}", session=row.session_id) if is_session else ""
    told = row.words, row.agent_id, _who(row), _ago(row.granted_wall_s), _until(row), session
    return ", ".join(filter(None, told))


STANDING: tuple[Column[Standing], ...] = (
    Column(mark("What"), lambda row: f"{row.what} {row.where}".rstrip(), REST),
    Column(mark("Agent"), lambda row: row.agent_id),
    Column(mark("Answer"), _who),
    Column(mark("Given"), lambda row: _ago(row.granted_wall_s)),
    Column(mark("Until"), _until),
)
STALE: tuple[Column[Stale], ...] = (
    Column(mark("What"), lambda row: row.called),
    Column(mark("Agent"), lambda row: row.agent_id),
    Column(mark("Conversation"), lambda row: row.conversation),
    Column(mark("Asked"), lambda row: _ago(row.asked_wall_s)),
    Column(mark("Why it came to nothing"), lambda row: row.why, REST),
)
TODAY: tuple[Column[Answered], ...] = (
    Column(mark("Time"), lambda row: time.strftime("%H:%M:%S", time.localtime(row.wall_s))),
    Column(mark("What"), lambda row: row.called),
    Column(mark("Agent"), lambda row: row.agent_id),
    Column(mark("Answer"), lambda row: row.answer, REST),
    Column(mark("Outcome"), lambda row: row.outcome or tr("under way")),
)


class StaleModel(ListingModel[Stale]):
    """Questions of suspended calls that no answer fits any more: the tip and the search have their arguments too."""

    def whole(self, row: Stale) -> str:
        """With the arguments."""
        return f"{super().whole(row)}\n{row.arguments}"

    def spoken(self, row: Stale, column: int) -> str:
        """The row without its arguments, which may be long."""
        del column
        return super().whole(row)


class WaitingPage(Page):
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
        for part, words, tip in PARTS:
            self.part.add_segment(part, tr(words), tooltip=tr(tip))
        tip = tr(
            "Say on the desktop when a call begins to wait while another program is in front, without its arguments"
        )
        self.notify = named(QCheckBox(tr("Desktop messages")), "approvals.notify", tip=tip)
        self.notify.setChecked(context.sizes.notifies)
        self.notify.toggled.connect(self._keep_notify)
        self.answers = StandingAnswers(context.document, context.deriver, context.tasks, self)
        self._tables: dict[str, Listing[Any]] = {}
        self._panes: dict[str, QWidget] = {}
        uses: Column[Standing] = Column(
            mark("Used today"), lambda row: str(dict(self.answers.today.uses).get(row.grant_id, 0))
        )
        model = ListingModel((*STANDING, uses), _whole_standing)
        nothing = EmptyState("key-round", tr("No standing answers"), tr(NOTHING_STANDS))
        self.standing = self._table("standing", model, tr("Answers that stand"), nothing)
        nothing = EmptyState("history", tr("No stale questions"), tr(NOTHING_STALE))
        self.stale = self._table("stale", StaleModel(STALE), tr("Questions gone stale"), nothing)
        nothing = EmptyState("history", "", "")
        self.today = self._table("today", ListingModel(TODAY), tr("Calls that asked today"), nothing)
        self.empty = named(EmptyState("check", tr("Nothing needs you"), tr(NOTHING_WAITS)), "approvals.empty")
        self._tick = QTimer(self, interval=1000)
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

    def _table(self, part: str, model: ListingModel[R], spoken: str, empty: EmptyState) -> Listing[R]:
        """Make the table of a part, below the field that filters it; answers that stand can be taken back."""
        name, can = f"approvals.{part}", part == "standing"
        table = Listing(model, name, spoken, empty, self._offer if can else tuple, is_many=can)
        bar = row_of(stretch(table.search_field(f"{name}.search")), table.button(f"{name}.revoke"), space=2, margins=2)
        self._tables[part], self._panes[part] = table, holding(column_of(bar, stretch(table)))
        return table

    def _offer(self) -> Iterator[Verb]:
        """Offer to take the chosen answers back."""
        count = len(self.standing.chosen)
        words = tr("Revoke {count}", count=count) if count > 1 else tr("Revoke")
        tip = tr("Take the chosen answers back: such calls ask again (Del)")
        yield Verb("approvals.standing.revoke", words, self._revoke, tip, "Del", can=count > 0)

    def _lay_out(self) -> None:
        self._detail = stack_of(self.gone, self.question)
        panes, across = (self.view, self._detail), Qt.Orientation.Horizontal
        self._whole = split_of(across, "approvals", self._context.sizes, panes, (300, 900), 1)
        self._stack = stack_of(self._whole, self.empty, *self._panes.values())
        self.header.add_control(self.notify)
        self.header.add_control(self.part)
        column_of(self.header, stretch(self._stack), into=self)
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
        shown = self._panes.get(self.part.current or "", waits)
        self._stack.setCurrentWidget(shown)
        if shown is not waits:
            self.answers.look()

    def _show_answers(self, _questions: object = None) -> None:
        known = self.answers.is_known
        self.standing.show_rows(self.answers.standing, is_known=known)
        self.stale.show_rows(self.answers.stale, is_known=known)
        self.today.show_rows(self.answers.today.answered, is_known=known)
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

    def _revoke(self) -> None:
        self._context.tasks.start(self._revoke_all(self.standing.chosen), "approvals.revoke", stays=True)

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
