"""What is chosen in Activity: a call that waits with its answers, a call of the log, an answer that stands, a question
that lapsed. Each says why, with what, and what can be done about it.
"""

import json
import time
from collections.abc import Iterable, Sequence

from PySide6.QtCore import Qt, Signal, SignalInstance
from PySide6.QtWidgets import QFormLayout, QPushButton, QWidget

from gatewright_gui.pages.activity.rows import Item, event_words, line_of, mark_of, time_words
from gatewright_gui.pages.trial.approval import ApprovalBar
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stack_of, stretch
from gatewright_gui.qt.look import Role, current_look
from gatewright_gui.qt.plaintext import button_text
from gatewright_gui.qt.prose import ProseLabel
from gatewright_gui.qt.widget.button import Segmented
from gatewright_gui.qt.widget.chip import Chip
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.flow_layout import FlowLayout
from gatewright_gui.qt.widget.label import ElidedLabel, Label, SectionHeader
from gatewright_gui.session.audit_call import (
    Again,
    CallDetail,
    RuleToday,
    agent_words,
    calls_words,
    outcome_words,
    step_words,
)
from gatewright_gui.session.question import PendingApproval, Stale, Standing, span

_LOWEST = 240
"""Pixels of height that what is chosen gets in a low window; its parts scroll."""


class DetailPane(QWidget):
    """Shows one of them; what is asked for goes out as signals with nothing in them.

    ``verbs``: buttons of what can be done, whatever is shown.
    """

    rule_requested = Signal()
    parent_requested = Signal()
    steps_requested = Signal()
    """The call is to be shown together with its steps, or the step with the others."""

    def __init__(self, question: ApprovalBar, verbs: Iterable[QPushButton]) -> None:
        super().__init__()
        self.setObjectName("activity.detail")
        self.item: Item | None = None
        """What is shown."""
        self._uses = -1
        self.detail: CallDetail | None = None
        """The rows in the log of the call that is shown, of one that waits too."""
        self.question = question
        self.gone = named(EmptyState("history", tr("Choose a call"), ""), "activity.gone")
        self.header = SectionHeader("")
        self.verdict = named(Chip("", role="muted"), "activity.detail.verdict")
        self.chain = named(Chip("", role="muted"), "activity.chain")
        self.who = named(ElidedLabel(role="muted"), "activity.detail.who")
        self.reason = named(ProseLabel(), "activity.detail.reason")
        self.parent_button = _link("activity.parent", tr("Go to the call that made this step"), self.parent_requested)
        self.steps_button = _link("activity.steps", "", self.steps_requested)
        self.rule_button = _link("activity.rule", tr("Go to the rule"), self.rule_requested)
        self.rule_note = named(Label(wraps=True), "activity.detail.rulenote", kind="small")
        self._facts = QFormLayout()
        self._facts.setHorizontalSpacing(current_look().tokens.space_3)
        self._facts.setVerticalSpacing(2)
        self.again = named(ProseLabel(), "activity.detail.again")
        self.part = named(Segmented(tr("What to show of the call")), "activity.code.part")
        self.part.add_segment(
            "arguments", tr("Arguments"), tooltip=tr("As the log keeps them: without secrets, cut to size")
        )
        self.part.add_segment("rows", tr("Rows"), tooltip=tr("The rows of the call, as they stand in the log"))
        self.part.current_changed.connect(self._show_code)
        self.lacks = named(ElidedLabel(role="muted"), "activity.detail.lacks")
        self.code = named(CodeView(tr("Arguments of the call")), "activity.code")
        self._lay_out(verbs)
        self.show_nothing()

    @property
    def waits(self) -> PendingApproval | None:
        """The call that waits, if it is one that is shown."""
        return self.item if isinstance(self.item, PendingApproval) else None

    def show_nothing(self) -> None:
        """Nothing is chosen."""
        self.say("history", tr("Choose a call"), tr("Why it was decided so, and what to do about it."))

    def say(self, icon: str, title: str, words: str, action: str | None = None) -> None:
        """Show words in the place of a call."""
        self._begin(None, self.gone)
        self.gone.set_state(icon, title, words, action=action)

    def show_question(self, question: PendingApproval, *, calm: bool) -> None:
        """Show a call that waits; ``calm``: nobody chose it."""
        if self.waits is None or self.waits.request_id != question.request_id:
            self._begin(question, self.question)
        self.item = question
        self.question.ask(question, calm=calm)

    def show_answered(self, question: PendingApproval) -> None:
        """Say that a question was answered, until its call is read again."""
        state = tr("answered")
        self._tell(None, question.called, ("history", "muted"), state, question.whose, "; ".join(question.reasons), ())

    def show_logged(self, item: PendingApproval, detail: CallDetail) -> None:
        """Take what the log has of a call that waits."""
        if self.item is item:
            self.detail = detail

    def show_answer(self, answer: Standing, uses: int) -> None:
        """Show an answer that stands; one that is shown with as many uses stays as it is."""
        if (answer, uses) == (self.item, self._uses):
            return
        line, self._uses = line_of(answer, uses), uses
        facts = (
            (tr("Given by"), answer.who),
            (tr("Given"), time_words(answer.granted_wall_s)),
            (tr("Ends"), line.reason),
            (tr("Used today"), line.took),
            (tr("Session"), answer.session_id),
        )
        more = "" if answer.words == line.what else answer.words
        self._tell(answer, line.what, line.mark, line.state, answer.agent_id, more, facts)

    def show_lapsed(self, question: Stale) -> None:
        """Show the question of a suspended call that came to nothing."""
        line, asked = line_of(question), time_words(question.asked_wall_s)
        ago = tr("{time} ago", time=span(time.time() - question.asked_wall_s))
        facts = (tr("Conversation"), question.conversation), (tr("Asked"), f"{asked}, {ago}")
        self._tell(question, line.what, line.mark, line.state, question.agent_id, question.why, facts)
        self.code.show()
        self.code.set_json(question.arguments)

    def show_detail(self, detail: CallDetail) -> None:
        """Show a call of the log."""
        call = detail.call
        title = call.called if call.is_call else event_words(call)
        state = tr(outcome_words(call)) if call.is_call else ""
        self._tell(call, title, mark_of(call), state, agent_words(call), call.reason, detail.facts)
        self.detail = detail
        self.header.set_note(time_words(call.wall_s))
        self._show_steps(detail)
        self.part.setVisible(call.is_call)
        if not call.is_call:
            self.part.set_current("rows")
        elif detail.arguments is not None:
            self.part.set_current("arguments")
        self.code.show()
        self._show_code()

    def show_rule(self, rule: RuleToday | None) -> None:
        """Say where the rule that decided stands today."""
        detail = self.detail
        self.rule_button.setVisible(rule is not None)
        self.rule_note.setVisible(rule is not None and not rule.is_same)
        if rule is None or detail is None:
            return
        words = tr("{rule}, line {line}", rule=detail.rule, line=rule.line) if rule.line is not None else detail.rule
        named(self.rule_button, spoken=str(words), tip=str(words))
        line = tr("Go to line {line}", line=rule.line) if rule.line is not None else button_text(str(words))
        self.rule_button.setText(line)
        self.rule_button.setEnabled(rule.line is not None)
        if rule.line is None:
            self.rule_note.setText(tr("It is no longer in the policy."))
        else:
            self.rule_note.setText(tr("The policy has changed since: this is what stands there today."))

    def show_again(self, again: Again | str) -> None:
        """Say how it would be decided today, or why that cannot be said."""
        detail = self.detail
        if detail is not None:
            self.again.setText(again if isinstance(again, str) else again.words(detail.call.verdict))
            self.again.show()

    def show_chain(self, words: str, icon: str, role: Role) -> None:
        """Say whether the rows of the call are proved; before a check there is nothing to say."""
        self.chain.setVisible(bool(words))
        self.chain.set_chip(words, icon, role)

    def _begin(self, item: Item | None, shown: QWidget) -> None:
        self.item, self.detail = item, None
        self.again.hide()
        if shown is not self.question:
            self.question.withdraw()
        self._stack.setCurrentWidget(shown)

    def _tell(
        self,
        item: Item | None,
        title: str,
        mark: tuple[str, Role],
        state: str,
        agent: str,
        reason: str,
        facts: Sequence[tuple[str, str]],
    ) -> None:
        self._begin(item, self._body)
        self.header.set_title(title)
        self.header.set_note("")
        self.verdict.setVisible(bool(state))
        self.verdict.set_chip(state, *mark)
        self.who.set_text(agent)
        self.reason.setText(reason)
        self.reason.setVisible(bool(reason))
        for part in (self.chain, self.parent_button, self.steps_button, self.rule_button, self.rule_note):
            part.hide()
        for part in (self.part, self.lacks, self.code):
            part.hide()
        while self._facts.rowCount():
            self._facts.removeRow(0)
        for name, said in facts:
            if said:
                value = Label(said, wraps=True)
                value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
                self._facts.addRow(named(Label(name), kind="small"), value)

    def _show_steps(self, detail: CallDetail) -> None:
        """Say which call it is a step of, and how many steps it made; both lead there."""
        call, parent = detail.call, detail.parent
        self.parent_button.setVisible(bool(call.within))
        self.parent_button.setEnabled(parent is not None)
        above = parent.called if parent is not None else call.within
        is_step = call.step is not None
        said = tr("{step} of {call}", step=step_words(call), call=above) if is_step else tr("Under {call}", call=above)
        self.parent_button.setText(button_text(said))
        made = calls_words(call)
        self.steps_button.setVisible(bool(made or call.within))
        words = made or (tr("all steps") if is_step else tr("all calls under it"))
        self.steps_button.setText(words)
        tip = tr("Show only this call and those under it") if made else tr("Show only that call and those under it")
        named(self.steps_button, "activity.steps", spoken=f"{words}: {tip}", tip=tip)

    def _show_code(self, _part: object = None) -> None:
        detail = self.detail
        if detail is None:
            return
        is_rows = self.part.current == "rows"
        self.lacks.setVisible(bool(detail.lacks) and not is_rows)
        self.lacks.set_text(detail.lacks)
        if is_rows:
            self.code.set_json(detail.rows)
        elif detail.arguments is None:
            self.code.set_plain(tr("The log has no arguments of this call."))
        else:
            self.code.set_json(json.dumps(detail.arguments, ensure_ascii=False, indent=2))

    def _lay_out(self, verbs: Iterable[QPushButton]) -> None:
        buttons = FlowLayout()
        for button in verbs:
            buttons.addWidget(button)
        told = column_of(
            row_of(self.verdict, self.chain, stretch(self.who), space=2),
            row_of(self.parent_button, self.steps_button, stretch(), space=2),
            self.reason,
            row_of(self.rule_button, stretch()),
            self.rule_note,
            self._facts,
            row_of(self.part, stretch(self.lacks, 8), stretch(), space=2),
            stretch(self.code),
            stretch(factor=0),
            space=2,
            margins=(3, 2),
        )
        self._body = holding(column_of(self.header, stretch(told)))
        self._stack = stack_of(self.gone, self.question, self._body)
        self._stack.setMinimumHeight(_LOWEST)
        foot = column_of(self.again, buttons, space=1, margins=(3, 0, 3, 2))
        column_of(stretch(self._stack), foot, into=self)


def _link(name: str, tip: str, wish: SignalInstance) -> QPushButton:
    button = named(QPushButton(), name, tip=tip, kind="link")
    button.setProperty("in", "text")
    button.clicked.connect(wish)
    return button
