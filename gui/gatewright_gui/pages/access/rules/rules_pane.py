"""The policy rules: the list above, below it the chosen one as a form, tried on recorded calls beside it.

Of one agent those that touch it, and the others behind a chip.
"""

import asyncio
import time

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QAbstractItemView, QPushButton, QWidget
from shiboken6 import isValid

from gatewright.workspace.api import (
    GatewrightError,
    Observed,
    ObservedKind,
    PolicyRule,
    Verdict,
    available_zones,
    split_name,
)
from gatewright_gui.pages.access.rules.rule_form import RuleForm
from gatewright_gui.pages.access.rules.rule_list import RuleList, RuleListModel, rule_sentence
from gatewright_gui.pages.access.rules.tried_table import (
    CALL,
    DRAFTED,
    THEN,
    TIME,
    TriedDelegate,
    TriedModel,
    trial_words,
)
from gatewright_gui.pages.access.tools.filter_bar import TallyChip
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, holding, named, stack_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.widget.button import IconButton
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.qt.widget.label import Label, SectionHeader
from gatewright_gui.qt.widget.splitter import HANDLE_WIDTH, split_of
from gatewright_gui.session.argument import arguments_for
from gatewright_gui.session.comparison import Replay, replay_rule
from gatewright_gui.session.verbs import policy as verbs

NO_RULES = (
    "shield",
    mark("No rules for calls yet"),
    mark("A rule denies calls, or asks first, for several agents and tools at once, such as: amount over 100."),
)
NONE_OF_AGENT = (
    "shield",
    mark("No rule for calls touches this agent"),
    mark("A rule denies calls, or asks first, for several agents and tools at once, such as: amount over 100."),
)
_REST = {
    Verdict.ALLOW: mark("other calls go on"),
    Verdict.ASK: mark("other calls ask first"),
    Verdict.DENY: mark("other calls are denied"),
}
TRIED_HEADING = mark("Tried on recorded calls")
_CHECK_MS, _TRY_MS, _COUNT_MS = 80, 250, 20_000
_ACROSS, _DOWN = Qt.Orientation.Horizontal, Qt.Orientation.Vertical
_TRY, _ARGUMENTS, _ZONES = "policy.try", "policy.arguments", "policy.zones"


class RulesPane(QWidget):
    """A draft stays while one looks elsewhere; choosing another rule drops it."""

    opened = Signal()
    """A rule has its form below the list now, or none has (`is_open`)."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self._context, self._document = context, context.document
        self._asked: tuple[str, ...] | None = ()
        self._agent_id: str | None = None
        """The agent whose rules are shown; None: all of them."""
        self.header = SectionHeader(tr("Rules for calls"))
        self.add_button = named(
            QPushButton(tr("Add rule")), "policy.add", spoken=tr("Add a rule for calls"), tip=tr("Add a rule (Ins)")
        )
        tie_icon(self.add_button, "plus")
        self.up_button = named(IconButton("arrow-up", tr("Up (Alt+Up)")), "policy.up")
        self.down_button = named(IconButton("arrow-down", tr("Down (Alt+Down)")), "policy.down")
        self.remove_button = named(IconButton("trash", tr("Remove (Del)")), "policy.remove")
        self.observe_button = named(QPushButton(tr("Observe")), "policy.observe")
        tip = tr("Rules that are for other agents alone. Click: show these too")
        self.others = TallyChip("policy.others", "neutral", tip)
        for control in (
            self.others,
            self.add_button,
            self.observe_button,
            self.up_button,
            self.down_button,
            self.remove_button,
        ):
            self.header.add_control(control)
        self.model = RuleListModel()
        self.view = RuleList(self.model)
        self.form = RuleForm()
        self.tried_words = named(Label(wraps=True), "policy.tried.words", kind="muted")
        self.tried_words.setContentsMargins(8, 0, 8, 4)
        self.tried = TriedModel()
        self.tried_view = named(TableView(tr(TRIED_HEADING)), "policy.tried")
        self.tried_view.setItemDelegate(TriedDelegate(self.tried_view))
        self.tried_view.show_model(self.tried, {TIME: 92, THEN: 84, DRAFTED: 104}, wide=CALL)
        icon, title, text = NO_RULES
        self.empty = named(EmptyState(icon, tr(title), tr(text), action=tr("Add a rule")), "policy.empty")
        self._check_soon = QTimer(self, singleShot=True, interval=_CHECK_MS)
        self._try_soon = QTimer(self, singleShot=True, interval=_TRY_MS)
        self._count_down = QTimer(self, interval=_COUNT_MS)
        self._lay_out()
        self._connect()
        self._reopen()

    def _lay_out(self) -> None:
        self._beside = holding(column_of(SectionHeader(tr(TRIED_HEADING)), self.tried_words, stretch(self.tried_view)))
        self._beside.hide()
        edited = split_of(_ACROSS, "policy.rule", self._context.sizes, (self.form, self._beside), (590, 370))
        hint = Label(tr("Choose a rule to change it and to try it on recorded calls."))
        hint.setProperty("kind", "muted")
        hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._below = stack_of(hint, edited)
        self._below.currentChanged.connect(self.opened)
        whole = split_of(_DOWN, "policy.rules", self._context.sizes, (self.view, self._below), (100, 500))
        self._stack = stack_of(whole, self.empty)
        column_of(self.header, stretch(self._stack), into=self)

    def _connect(self) -> None:
        self._document.closed.connect(self._reopen)
        self._document.opened.connect(self._reopen)
        self._document.policy_changed.connect(self._refresh)
        self.add_button.clicked.connect(lambda _checked=False: self.add())
        self.empty.action_requested.connect(self.add)
        self.up_button.clicked.connect(lambda: self.view.move_by(-1))
        self.down_button.clicked.connect(lambda: self.view.move_by(1))
        self.remove_button.clicked.connect(self._remove)
        self.observe_button.clicked.connect(self._observe)
        self.others.toggled.connect(self._show_rows)
        self.view.selectionModel().selectionChanged.connect(self._follow_choice)
        self.view.move_requested.connect(self._move)
        self.view.remove_requested.connect(self._remove)
        self.view.add_requested.connect(self.add)
        for signal in (self.view.edit_requested, self.view.doubleClicked):
            signal.connect(self._focus_form)
        self.form.changed.connect(self._follow_edit)
        self.form.times.zones_wanted.connect(self._offer_zones)
        self.form.apply_requested.connect(self._apply)
        self.form.revert_requested.connect(self._revert)
        self._check_soon.timeout.connect(self._check)
        self._try_soon.timeout.connect(self._try)
        self._count_down.timeout.connect(self.model.tell_changed)

    # what is shown

    def show_agent(self, agent_id: str | None) -> None:
        """Show the rules that touch an agent; None: all of them."""
        if agent_id == self._agent_id:
            return
        self._agent_id = agent_id
        self.others.setChecked(False)
        self._show_rows()
        if not self.is_drafting:
            self._choose_first()
        self._show()

    def show_rule(self, index: int) -> None:
        """Choose a rule, one of other agents too."""
        if self.view.isRowHidden(index):
            self.others.setChecked(True)
        self.view.choose(index)

    def _show_rows(self, _on: bool = False) -> None:
        """Leave out what touches the agent in no way, unless that is wanted."""
        rules, agent_id = self.model.rows, self._agent_id
        others = [agent_id is not None and rule.agents is not None and agent_id not in rule.agents for rule in rules]
        is_whole = self.others.isChecked() or not any(others)
        for row, is_other in enumerate(others):
            self.view.setRowHidden(row, is_other and not is_whole)
        self.others.setVisible(any(others))
        self.others.say(counted(sum(others), "rule is for other agents", "rules are for other agents"))
        modes = QAbstractItemView.DragDropMode
        self.view.setDragDropMode(modes.InternalMove if is_whole else modes.NoDragDrop)
        for button in (self.up_button, self.down_button):
            button.setVisible(is_whole)
        self._show()

    @property
    def _shown_rows(self) -> list[int]:
        return [row for row in range(self.model.count()) if not self.view.isRowHidden(row)]

    def _choose_first(self) -> None:
        """The first rule has its form at once where the whole room is for rules; an agent's own settings need some."""
        self._choose(0 if self._agent_id is None else -1)

    def _choose(self, row: int) -> None:
        """Choose a rule that is shown, else none."""
        self.view.choose(row if row in self._shown_rows else -1)
        if not self.view.chosen:
            self._below.setCurrentIndex(0)

    @property
    def index(self) -> int | None:
        """The index of the rule of the form; None for a new one."""
        at = -1 if self.form.before is None else self.model.find(self.form.before.identity)
        return None if at < 0 else at

    def _reopen(self) -> None:
        self.model.set_rows(self._document.policy.rules)
        self._asked = ()
        self._below.setCurrentIndex(0)
        self.form.offer((), (), ())
        self.form.set_rule(PolicyRule("", Verdict.ASK), None)  # what is typed over a rule that is gone is no new one
        self._show_tried(None, "")
        self._show_rows()
        self._choose_first()
        self._show()

    def _refresh(self, _changes: object = None) -> None:
        """The rules after an edit; the form follows its own rule, unless it holds a draft."""
        before, rules = self.form.before, self._document.policy.rules
        is_draft, chosen = self.is_drafting, self.view.chosen
        self.model.set_rows(rules)
        self._show_rows()
        row = -1 if before is None else self.model.find(before.identity)
        if before is not None and row < 0:
            is_draft = False
            self._choose(min(chosen[0] if chosen else 0, self.model.count() - 1))
        elif row >= 0 and not self.view.chosen:
            self.view.choose(row)
        if not is_draft:
            self._follow_choice()
        self._show()

    def _focus_form(self, _index: object = None) -> None:
        self.form.name.setFocus(Qt.FocusReason.OtherFocusReason)

    @property
    def is_open(self) -> bool:
        """Tell whether a rule has its form below the list."""
        return self._below.currentIndex() == 1

    @property
    def wanted_height(self) -> int:
        """The height at which all fields of the rule that is open show, below some of the list."""
        return self.header.height() + self.view.minimumSizeHint().height() + HANDLE_WIDTH + self.form.whole_height

    @property
    def is_drafting(self) -> bool:
        """Tell whether the form holds what is not written yet."""
        return self.is_open and self.form.is_changed

    def _show(self) -> None:
        if not any(rule.times is not None for rule in self._document.policy.rules):
            self._count_down.stop()
        elif not self._count_down.isActive():
            self._count_down.start()
        count, is_new = self.model.count(), self.is_open and self.form.before is None
        shown = len(self._shown_rows)
        self._stack.setCurrentIndex(0 if shown or is_new else 1)
        icon, title, text = NONE_OF_AGENT if count else NO_RULES
        self.empty.set_state(icon, tr(title), tr(text), action=tr("Add a rule"))
        # beside an agent's own settings what would only say that nothing is chosen has no room
        self._below.setVisible(self._agent_id is None or self.is_open)
        self.header.set_note(self._note(shown))
        for control in (self.add_button, self.observe_button, self.remove_button):
            control.setVisible(self._stack.currentIndex() == 0)  # an empty place has a button of its own
        chosen = self.view.chosen
        self.up_button.setEnabled(bool(chosen) and chosen[0] > 0)
        self.down_button.setEnabled(bool(chosen) and chosen[-1] < count - 1)
        self.remove_button.setEnabled(bool(chosen))
        held = self._chosen_parts
        self.observe_button.setEnabled(bool(held))
        self.observe_button.setText(tr("Enforce") if self._is_observed else tr("Observe"))
        self.observe_button.setToolTip(tr("Only note for 7 days what the rule denies or asks, or enforce it again"))
        self.add_button.setEnabled(self._document.is_open)

    def _note(self, shown: int) -> str:
        """Say how the rules that are shown decide a call; empty where none does."""
        default = self._document.policy.default
        if not shown and default is Verdict.ALLOW:
            return ""
        rules, rest = counted(shown, "rule", "rules"), tr(_REST[default])
        return tr("{rules}: the strictest that fits a call counts, {rest}", rules=rules, rest=rest)

    def _follow_choice(self, *_selection: object) -> None:
        chosen = self.view.chosen
        rule = self.model.row_at(chosen[0]) if len(chosen) == 1 else None
        if rule is not None:
            self._edit(rule, rule)
        elif self.form.before is not None:
            self._below.setCurrentIndex(0)
        self._show()

    def _edit(self, rule: PolicyRule, before: PolicyRule | None) -> None:
        document = self._document
        operations = {name for facts in document.catalog for name in facts.operation_names}
        self._below.setCurrentIndex(1)
        tools = [*document.policy.selectors, *(facts.name for facts in document.catalog)]
        self.form.offer(list(document.policy.agents), tools, sorted(operations))
        self.form.set_rule(rule, before)

    # what is done

    def add(self, rule: object = None) -> None:
        """Begin a new rule, as `rule` where it is one; it is written when it is applied."""
        self.view.clearSelection()
        whom = None if self._agent_id is None else (self._agent_id,)
        begun = rule if isinstance(rule, PolicyRule) else PolicyRule("", Verdict.ASK, agents=whom)
        self._edit(begun, None)
        self._show()
        self._focus_form()
        self.form.name.selectAll()

    def _apply(self) -> None:
        rule, before = self.form.rule, self.form.before
        if rule is None or self._check():
            return
        if before is None:
            if verbs.add_rule(self._document, rule):
                self.form.before = rule
                self.view.choose(self.model.find(rule.identity))
        else:
            self.form.before = rule  # what is written is no draft any more
            if not verbs.change_rule(self._document, before, rule):
                self.form.before = before
        self._follow_edit()

    def _revert(self) -> None:
        index = self.index
        if index is None:
            self._below.setCurrentIndex(0)
            self._choose_first()
            self._show()
        elif (rule := self.model.row_at(index)) is not None:
            self._edit(rule, rule)

    def _move(self, to: int) -> None:
        rows = self.view.chosen
        others = [rule for row, rule in enumerate(self.model.rows) if row not in rows]
        moved = self._chosen_rules if len(self._shown_rows) == self.model.count() else []
        if moved and verbs.move_rules(self._document, moved, others[to] if to < len(others) else None):
            self.view.choose(self.model.find(moved[0].identity))
            self.view.setFocus()

    def _remove(self) -> None:
        rows = self.view.chosen
        if rows and verbs.remove_rules(self._document, self._chosen_rules):
            self._choose(min(rows[0], self.model.count() - 1))
            self._follow_choice()

    @property
    def _chosen_parts(self) -> list[PolicyRule]:
        """The chosen rules that can be observed: one that allows has nothing to observe."""
        return [rule for rule in self._chosen_rules if rule.effect is not Verdict.ALLOW]

    @property
    def _is_observed(self) -> bool:
        return bool(self._chosen_parts) and all(rule.observe_until_s is not None for rule in self._chosen_parts)

    def _observe(self) -> None:
        """Only note for a week what the chosen rules deny or ask, or enforce them again."""
        until_s = float(round(time.time() + verbs.OBSERVE_S))
        parts = [Observed(ObservedKind.RULE, rule.name, until_s) for rule in self._chosen_parts]
        verbs.set_observed(self._document, parts, None if self._is_observed else until_s)

    @property
    def _chosen_rules(self) -> list[PolicyRule]:
        return [rule for row in self.view.chosen if (rule := self.model.row_at(row)) is not None]

    # the draft

    def _follow_edit(self) -> None:
        self._check_soon.start()
        self._try_soon.start()

    def _check(self) -> bool:
        """Say what is wrong with the draft; whether something is."""
        rule, before = self.form.rule, self.form.before
        found: tuple[verbs.Fault, ...] = ()
        if rule is not None and self._document.is_open:
            found = verbs.rule_faults(self._document, before, rule)
        is_untouched = self.form.before is None and not self.form.name.text()
        if rule is not None:
            said = rule_sentence(rule)
            if rule.effect is self._document.policy.default is Verdict.ALLOW:
                said = tr("{sentence} It changes nothing now: calls that no rule fits go on anyway.", sentence=said)
            self.form.sentence.setText(said)
            self.form.show_faults(() if is_untouched else found)
        is_wrong = rule is None or bool(found)
        is_changed = rule is None or self.form.before is None or rule != self.form.before
        self.form.apply_button.setEnabled(is_changed and not is_wrong)
        self.form.revert_button.setEnabled(is_changed)
        known = {*self._document.policy.selectors, *(facts.name for facts in self._document.catalog)}
        tools = self.form.tools.words
        wanted = None if tools is None else tuple(name for name in tools if split_name(name)[0] in known)
        if wanted != self._asked and self._document.is_open:  # other tools have other arguments
            self._asked = wanted
            self._context.tasks.start(self._offer_arguments(wanted), _ARGUMENTS, replace=True)
        return is_wrong

    async def _offer_arguments(self, tools: tuple[str, ...] | None) -> None:
        found = await self._context.deriver.derive(arguments_for, tools)
        if found is None:
            self._asked = ()
        elif isValid(self):
            self.form.offer_arguments(found)
            self._check_soon.start()

    def _offer_zones(self) -> None:
        if _ZONES not in self._context.tasks.names:
            self._context.tasks.start(self._find_zones(), _ZONES)

    async def _find_zones(self) -> None:
        found = await asyncio.to_thread(available_zones)
        if isValid(self):
            self.form.times.offer(found)

    def _try(self) -> None:
        if self.is_open and self._document.is_open and self.isVisible():
            self._context.tasks.start(self._try_rule(), _TRY, replace=True)

    async def _try_rule(self) -> None:
        rule, index = self.form.rule, self.index
        if rule is None or self._check():
            self._show_tried(None, tr("Complete the rule: it is tried as soon as it could be written."))
            return
        try:
            found = await self._context.deriver.derive(replay_rule, index, rule)
        except GatewrightError as error:
            if isValid(self):
                self._show_tried(None, str(error).replace("`", ""))
            return
        if found is not None and isValid(self):
            self._show_tried(found, "")

    def _show_tried(self, found: Replay | None, why: str) -> None:
        self.tried.set_rows(found.calls if found is not None else ())
        words = trial_words(found) if found is not None else why
        self.tried_words.setText(words[:1].upper() + words[1:])
        self.tried_view.setVisible(bool(self.tried.rows))
        if found is not None:
            self._beside.setVisible(bool(found.looked_at))
