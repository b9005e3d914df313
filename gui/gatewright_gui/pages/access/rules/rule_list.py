"""The policy rules in their order: a table whose rows are dragged; one with times counts down to its next boundary."""

import time
from functools import lru_cache

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractItemView, QStyleOptionViewItem, QWidget

from gatewright.workspace.api import PolicyRule, Times, Verdict, duration_words, is_observed
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import named
from gatewright_gui.qt.table_model import ROW, Index, OrderedModel
from gatewright_gui.qt.widget.chip import VERDICT_ICONS
from gatewright_gui.qt.widget.item_view import Delegate, OrderedTable, put_icon, tint
from gatewright_gui.session.condition import when_words
from gatewright_gui.session.verdict import verdict_words

EFFECT, TOOLS, AGENTS, WHEN, NAME, MESSAGE = range(6)
WIDTHS = {TOOLS: 150, AGENTS: 110, NAME: 150, MESSAGE: 170}
ICON_ROOM = 44


def whom_words(rule: PolicyRule) -> str:
    """The agents that a rule is for."""
    return tr("all agents") if rule.agents is None else ", ".join(rule.agents)


def what_words(rule: PolicyRule) -> str:
    """The tools and operations that a rule is for."""
    tools = tr("all tools") if rule.tools is None else ", ".join(rule.tools)
    if rule.operations is None:
        return tools
    operations = ", ".join(rule.operations)
    return f"{tools}: {operations}"


_EFFECTS = {
    Verdict.DENY: mark("Denies {calls} to {agents}{when}."),
    Verdict.ASK: mark("Asks first before {calls} by {agents}{when}."),
    Verdict.ALLOW: mark("Lets {calls} by {agents} pass{when}; ticks, levels and other rules still hold."),
}


def rule_sentence(rule: PolicyRule) -> str:
    """Say in one sentence what a rule does to which calls, of whom, and when."""
    tools, operations = ", ".join(rule.tools or ()), ", ".join(rule.operations or ())
    if rule.tools is None:
        calls = tr("calls of {operations} of any tool", operations=operations) if operations else tr("every call")
    elif rule.operations is None:
        calls = tr("calls of {tools}", tools=tools)
    else:
        calls = ", ".join(f"{tool}.{one}" for tool in rule.tools for one in rule.operations)
    when = "" if rule.when is None else tr(" when {condition}", condition=when_words(rule.when))
    times = "" if rule.times is None else tr(" at these times: {times}", times=rule.times)
    said = tr(_EFFECTS[rule.effect], calls=calls, agents=whom_words(rule), when=when + times)
    if not is_observed(rule, time.time()):
        return said
    return tr("{sentence} For now this is only noted, not enforced.", sentence=said)


SOON_S = 3600
"""A rule that changes within this time is amber."""


@lru_cache(maxsize=1024)
def _change_after(times: Times, minute: int) -> tuple[bool, float | None]:
    """Tell whether a rule with these times holds at a minute, and the seconds until that changes."""
    now_s = minute * 60.0
    change_s = times.next_change(now_s)
    return times.holds(now_s), None if change_s is None else change_s - now_s


def times_words(rule: PolicyRule) -> str:
    """The times of a rule, whether it is in force, and for how long; empty for one that always is."""
    if rule.times is None:
        return ""
    is_on, left_s = _change_after(rule.times, int(time.time() // 60))
    if left_s is None:
        return f"{rule.times}: {tr('in force') if is_on else tr('never in force')}"
    left = duration_words(left_s)
    said = tr("in force for {time} more", time=left) if is_on else tr("in force in {time}", time=left)
    return f"{rule.times}: {said}"


class RuleListModel(OrderedModel[PolicyRule]):
    """One row for each rule; a row stays itself while it is edited and moved."""

    headers = (mark("Effect"), mark("Calls"), mark("Agents"), mark("When"), mark("Rule"), mark("Message"))

    def key(self, row: PolicyRule) -> object:
        """The rule, whatever became of it."""
        return row.identity

    def text(self, row: PolicyRule, column: int) -> str:
        """Words for each part of a rule."""
        match column:
            case 0:
                return verdict_words(row.effect)
            case 1:
                return what_words(row)
            case 2:
                return whom_words(row)
            case 3:
                when = when_words(row.when) if row.times is None or row.when is not None else ""
                return "; ".join(filter(None, (times_words(row), when)))
            case 4:
                return row.name
            case _:
                return row.message or ""

    def tip(self, row: PolicyRule, column: int) -> str:
        """The cell where it may be cut, and the whole rule."""
        return "\n".join(dict.fromkeys((self.text(row, column), rule_sentence(row))))


class RuleListDelegate(Delegate):
    """The effect with its icon and colour; what is for all is quiet."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        """Icon and colour."""
        super().initStyleOption(option, index)
        rule = index.data(ROW)
        if not isinstance(rule, PolicyRule):
            return
        if index.column() == EFFECT:
            put_icon(option, VERDICT_ICONS[rule.effect.value], rule.effect.value)
            tint(option, "muted" if rule.effect is Verdict.ALLOW else rule.effect.value)
        elif index.column() == WHEN and rule.times is not None:
            is_on, left_s = _change_after(rule.times, int(time.time() // 60))
            is_soon = left_s is not None and left_s <= SOON_S
            if is_soon or not is_on:
                tint(option, "ask" if is_soon else "muted")
        elif index.column() == MESSAGE or (index.column(), None) in ((AGENTS, rule.agents), (TOOLS, rule.tools)):
            tint(option, "muted")


class RuleList(OrderedTable):
    """Del removes, Ins adds, Enter edits, Alt+Up and Alt+Down move, as dragging does."""

    remove_requested = Signal()
    add_requested = Signal()
    edit_requested = Signal()

    def __init__(self, model: RuleListModel, parent: QWidget | None = None) -> None:
        super().__init__(tr("Policy rules in order"), parent)
        named(self, "policy.rules")
        self.setItemDelegate(RuleListDelegate(self))
        longest = max(self.fontMetrics().horizontalAdvance(verdict_words(verdict)) for verdict in Verdict)
        self.show_model(model, {**WIDTHS, EFFECT: longest + ICON_ROOM}, wide=WHEN)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)

    def move_by(self, step: int) -> None:
        """Ask that the chosen rows go up or down."""
        rows = self.chosen
        to = rows[0] + step if rows else -1
        if rows and 0 <= to <= self.model().rowCount() - len(rows):
            self.move_requested.emit(to)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """The keys of the list."""
        is_alt = event.modifiers() == Qt.KeyboardModifier.AltModifier
        match event.key():
            case Qt.Key.Key_Up | Qt.Key.Key_Down if is_alt:
                self.move_by(-1 if event.key() == Qt.Key.Key_Up else 1)
            case Qt.Key.Key_Delete | Qt.Key.Key_Backspace:
                self.remove_requested.emit()
            case Qt.Key.Key_Insert:
                self.add_requested.emit()
            case Qt.Key.Key_Return | Qt.Key.Key_Enter | Qt.Key.Key_F2:
                self.edit_requested.emit()
            case _:
                super().keyPressEvent(event)

    def choose(self, row: int) -> None:
        """Make a row the only chosen one."""
        self.setCurrentIndex(self.model().index(row, NAME) if row >= 0 else QModelIndex())
        if row >= 0:
            self.scrollTo(self.currentIndex())
