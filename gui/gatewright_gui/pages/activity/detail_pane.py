"""One call of the log: what was sent, what was decided by what, what came of it, what to do about it."""

import json
from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal, SignalInstance
from PySide6.QtWidgets import QFormLayout, QListWidget, QPushButton, QWidget

from gatewright_gui.pages.activity.call_model import event_words, mark_of, time_words
from gatewright_gui.qt.dialog import FormDialog
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stretch
from gatewright_gui.qt.look import Role, current_look, tie_icon
from gatewright_gui.qt.plaintext import button_text, label_text
from gatewright_gui.qt.prose import ProseLabel, plain
from gatewright_gui.qt.widget.chip import Chip
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.elided_label import ElidedLabel
from gatewright_gui.qt.widget.flow_layout import FlowLayout
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.section_header import SectionHeader
from gatewright_gui.qt.widget.segmented import Segmented
from gatewright_gui.session.audit_call import (
    Again,
    CallDetail,
    Mending,
    RuleToday,
    agent_words,
    calls_words,
    outcome_words,
    step_words,
)


class DetailPane(QWidget):
    """Shows one call; what is asked for goes out as signals with nothing in them."""

    rule_requested = Signal()
    again_requested = Signal()
    console_requested = Signal()
    mend_requested = Signal()
    parent_requested = Signal()
    steps_requested = Signal()
    """The call is to be shown together with its steps, or the step with the others."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("audit.detail")
        self.detail: CallDetail | None = None
        self.header = SectionHeader(tr("Call"))
        self.verdict = named(Chip("", role="muted"), "audit.detail.verdict")
        self.chain = named(Chip("", role="muted"), "audit.chain")
        self.who = named(ElidedLabel(role="muted"), "audit.detail.who")
        self.reason = named(ProseLabel(), "audit.detail.reason")
        self.parent_button = _link("audit.parent", tr("Go to the call that made this step"), self.parent_requested)
        self.steps_button = _link("audit.steps", "", self.steps_requested)
        self.rule_button = _link("audit.rule", tr("Go to the rule"), self.rule_requested)
        self.rule_note = named(Label(wraps=True), "audit.detail.rulenote", kind="small")
        self._facts = QFormLayout()
        self._facts.setHorizontalSpacing(current_look().tokens.space_3)
        self._facts.setVerticalSpacing(2)
        self.again_button = _button(tr("Decide again"), "rotate-ccw", "audit.again", self.again_requested)
        self.again_button.setAccessibleName(tr("Decide again today"))
        self.again_button.setToolTip(
            tr("What the gate says to this call by the policy as it is now, without any effect")
        )
        self.console_button = _button(tr("Console"), "terminal", "audit.console", self.console_requested)
        self.console_button.setAccessibleName(tr("Open in Console"))
        self.console_button.setToolTip(tr("Open the call in the Console, filled in"))
        self.mend_button = _button(tr("Make a rule..."), "pencil", "audit.mend", self.mend_requested)
        self.mend_button.setToolTip(tr("Change what the policy says of such calls; undo takes it back"))
        self.again = named(ProseLabel(), "audit.detail.again")
        self.part = named(Segmented(tr("What to show of the call")), "audit.part")
        self.part.add_segment(
            "arguments", tr("Arguments"), tooltip=tr("As the log keeps them: without secrets, cut to size")
        )
        self.part.add_segment("rows", tr("Rows"), tooltip=tr("The rows of the call, as they stand in the log"))
        self.part.current_changed.connect(self._show_code)
        self.lacks = named(ElidedLabel(role="muted"), "audit.detail.lacks")
        self.code = named(CodeView(tr("Arguments of the call")), "audit.code")
        self._lay_out()
        self.show_detail(None)

    def show_detail(self, detail: CallDetail | None) -> None:
        """Show a call; None: nothing is chosen."""
        self.detail = detail
        self._body.setVisible(detail is not None)
        if detail is None:
            self.header.set_title(tr("Call"))
            self.header.set_note(tr("choose one"))
            return
        call = detail.call
        self.header.set_title(call.called if call.is_call else event_words(call))
        self.header.set_note(time_words(call.wall_s))
        self.verdict.setVisible(call.is_call)
        if call.is_call:
            icon, role = mark_of(call)
            self.verdict.set_chip(tr(outcome_words(call)), icon, role)
        self.who.set_text(agent_words(call))
        self.reason.setText(call.reason)
        self._show_steps(detail)
        self.rule_button.hide()
        self.rule_note.hide()
        self.again.hide()
        while self._facts.rowCount():
            self._facts.removeRow(0)
        for name, said in detail.facts:
            value = Label(said, wraps=True)
            value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            self._facts.addRow(named(Label(name), kind="small"), value)
        for button in (self.again_button, self.console_button, self.mend_button):
            button.setVisible(call.is_call)
            button.setEnabled(detail.arguments is not None)
        self.part.setVisible(call.is_call)
        if not call.is_call:
            self.part.set_current("rows")
        elif detail.arguments is not None:
            self.part.set_current("arguments")
        self._show_code()

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
        named(self.steps_button, "audit.steps", spoken=f"{words}: {tip}", tip=tip)

    def show_rule(self, rule: RuleToday | None) -> None:
        """Say where the rule that decided stands today."""
        detail = self.detail
        self.rule_button.setVisible(rule is not None)
        self.rule_note.setVisible(rule is not None and not rule.is_same)
        if rule is None or detail is None:
            return
        words = tr("{rule}, line {line}", rule=detail.rule, line=rule.line) if rule.line is not None else detail.rule
        self.rule_button.setText(str(words).replace("&", "&&"))
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
        """Say whether the rows of the call are proved."""
        self.chain.set_chip(words, icon, role)

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

    def _lay_out(self) -> None:
        buttons = FlowLayout()
        for button in (self.again_button, self.console_button, self.mend_button):
            buttons.addWidget(button)
        self._body = holding(
            column_of(
                row_of(self.verdict, self.chain, stretch(self.who), space=2),
                row_of(self.parent_button, self.steps_button, stretch(), space=2),
                self.reason,
                row_of(self.rule_button, stretch()),
                self.rule_note,
                self._facts,
                buttons,
                self.again,
                row_of(self.part, stretch(self.lacks, 8), stretch(), space=2),
                stretch(self.code),
                space=2,
                margins=(3, 2),
            )
        )
        column_of(self.header, stretch(self._body), stretch(factor=0), into=self)


class RuleDialog(FormDialog):
    """`chosen` is the edit that is to be made when it is accepted."""

    looked_at = Signal()
    """Another one is looked at: `show_change` is to say what it changes."""

    def __init__(self, parent: QWidget | None, called: str, mendings: Sequence[Mending]) -> None:
        title = tr("Make a rule from the call of {called}", called=called)
        super().__init__(parent, "audit_rule", title, tr("Change the policy"))
        self._mendings = mendings
        self.list = named(QListWidget(), "audit_rule.list", spoken=tr("What the policy could say"))
        for one in mendings:
            self.list.addItem(label_text(plain(one.words), 300, keep=""))
            self.list.item(self.list.count() - 1).setSizeHint(QSize(0, current_look().tokens.row_height))
        self.change = named(CodeView(tr("What changes in the policy file")), "audit_rule.change")
        self.accept_button.setDefault(True)
        self.accept_button.setEnabled(False)
        self.lay_out(
            Label(tr("What should happen to calls like this one?")),
            stretch(self.list),
            Label(tr("What the policy file will say; undo takes it back")),
            stretch(self.change),
        )
        self.resize(680, 460)
        self.list.currentRowChanged.connect(self._look)

    @property
    def chosen(self) -> Mending | None:
        """The one that is looked at."""
        at = self.list.currentRow()
        return self._mendings[at] if 0 <= at < len(self._mendings) else None

    def _look(self, _row: int) -> None:
        self.accept_button.setEnabled(False)
        self.change.set_plain("")
        self.looked_at.emit()

    def show_change(self, of: Mending, text: str) -> None:
        """Show what an edit changes, if it is still looked at."""
        if of is self.chosen:
            self.change.set_diff(text)
            self.accept_button.setEnabled(True)


def _link(name: str, tip: str, wish: SignalInstance) -> QPushButton:
    button = named(QPushButton(), name, tip=tip, kind="link")
    button.setProperty("in", "text")
    button.clicked.connect(wish)
    return button


def _button(words: str, icon: str, name: str, wish: SignalInstance) -> QPushButton:
    button = named(QPushButton(words), name, spoken=words.rstrip("."))
    tie_icon(button, icon)
    button.clicked.connect(wish)
    return button
