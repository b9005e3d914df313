"""The limits of the current row, edited in place or in the dialog of a constraint."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count

from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtWidgets import QPushButton, QStyleOptionViewItem, QWidget

from gatewright.workspace.api import (
    Address,
    AfterOutside,
    Agent,
    ArgumentConstraints,
    Cooldown,
    ExitLoop,
    MaxCalls,
    Periodic,
    PolicyRule,
    RateLimit,
    RequiresConsent,
    RuleKind,
    ToolFacts,
    Verdict,
    argument_names,
    free_fields,
)
from gatewright_gui.pages.access.tools.limit_list import Choice, Column, LimitListModel, choices_for
from gatewright_gui.pages.access.tools.limits import (
    MAX_CALLS,
    RATE_EXAMPLE,
    LimitRow,
    limit_fault,
    limit_rows,
    limit_text,
)
from gatewright_gui.pages.access.tools.rule_table import LINK, RuleDelegate, RuleTable
from gatewright_gui.pages.access.tools.rules_pane import RulesPane
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, named, stretch
from gatewright_gui.qt.look import Role
from gatewright_gui.qt.menu import add_action, add_heading
from gatewright_gui.qt.table_model import ROW, Index
from gatewright_gui.qt.widget.button import IconButton
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.text_field import NumberField, ValueField
from gatewright_gui.session.argument import arguments_of
from gatewright_gui.session.verbs import rights as verbs

NEW: tuple[tuple[str, str, str, RuleKind], ...] = (
    ("calls", mark("&Max calls in a session"), "hash", MaxCalls(10)),
    ("pause", mark("&Pause between calls"), "pause", Cooldown(1.0)),
    ("rate", mark("&Rate: calls per time"), "clock", RateLimit(30, 60.0)),
)
MORE: tuple[tuple[str, str, str, RuleKind], ...] = (
    ("consent", mark("Ask &first"), "hand", RequiresConsent()),
    ("outside.ask", mark("Ask first after &outside results"), "shield-alert", AfterOutside(Verdict.ASK)),
    ("outside.deny", mark("O&ff after outside results"), "shield-alert", AfterOutside(Verdict.DENY)),
    ("reminder", mark("Re&minder"), "history", Periodic(300.0)),
    ("end", mark("&End the loop after a call"), "circle-stop", ExitLoop()),
)
WIDTHS = {int(Column.KIND): (70, 130), int(Column.FOR): (70, 110), int(Column.WHERE): (60, 130)}
NO_LIMIT = mark("No limit. Add one with the button above: calls, a pause, a rate, or what an argument may be.")
NO_ROW = mark("Choose a tool or an operation: its limits are edited here.")
TASK = "constrain"


class LimitDelegate(RuleDelegate):
    """Editors for a number, a time, a rate, a scope, and the operations that a rule is for, which `choices` gives."""

    def __init__(self, choices: Callable[[LimitRow], Sequence[Choice]], parent: QWidget) -> None:
        super().__init__(parent)
        self._choices = choices

    def role_of(self, index: Index) -> Role:
        """The colour: muted for what is inherited, that of links for what leads to a line."""
        return "accent" if index.data(LINK) else "text" if index.data(ROW).is_own else "muted"

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:  # noqa: N802
        """The editor that fits the kind."""
        row = index.data(ROW)
        if not isinstance(row, LimitRow):
            return super().createEditor(parent, option, index)
        if index.column() == Column.FOR:
            choices = ((one.text, one.operations, None) for one in self._choices(row))
            return self.choice_field(
                parent, "agents.limits.for", tr("{limit}: for which operations", limit=row.title), choices
            )
        if isinstance(row.kind, MaxCalls) and 1 <= row.kind.calls <= MAX_CALLS:
            number = NumberField(tr("Max calls in a session"), 1, MAX_CALLS, unit=tr("calls"), parent=parent)
            number.setFrame(False)
            return named(number, "agents.limits.calls")
        field = named(ValueField(partial(_fault, row.kind), parent), "agents.limits.value", spoken=row.title)
        field.setPlaceholderText(_hint(row.kind))
        return field


class LimitsPane(RulesPane[LimitRow]):
    """The limits of a tool, or of one operation of it."""

    def __init__(self, context: PageContext) -> None:
        add = named(
            QPushButton(tr("Add")),
            spoken=tr("Add limit"),
            tip=tr("Limit the tool, or only the current operation (Ins in the list)"),
        )
        super().__init__(context, "agents.limits", add, IconButton("trash", tr("Remove the limit (Del)")))
        self._agent: Agent | None = None
        self._facts: ToolFacts | None = None
        self._operation: str | None = None
        self.model = LimitListModel(self, self)
        self.view = RuleTable(tr("Limits"), WIDTHS)
        self.set_table(self.view, self.model, LimitDelegate(self._choices, self.view), Column.VALUE)
        self.view.doubleClicked.connect(self._double_clicked)
        self._nothing = named(Label(tr(NO_ROW), wraps=True), "agents.limits.none", kind="muted")
        self._nothing.setMargin(8)
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        column_of(stretch(self.view), self._nothing, into=self)

    # what is shown

    def show_row(self, agent: Agent | None, facts: ToolFacts | None, operation: str | None) -> None:
        """Show the limits of a tool, or of one operation of it."""
        was, now = (
            (one and one.agent_id, held and held.name, op)
            for one, held, op in ((self._agent, self._facts, self._operation), (agent, facts, operation))
        )
        if was != now:
            self.model.drop_draft()
        self._agent, self._facts, self._operation = agent, facts, operation
        rows: tuple[LimitRow, ...] = ()
        if agent is not None and facts is not None:
            rows = limit_rows(self._context.document.policy, agent, facts, operation)
        self.model.set_rows(rows)
        self.add_button.setEnabled(facts is not None and agent is not None)
        self.editor_closed()
        self.find_lines()

    def show_rule(self, address: Address) -> None:
        """Make the rule that stands there the current one."""
        self.view.show_row(self.model.row_of(address), Column.VALUE)

    def editor_closed(self) -> None:
        """Rows, or why there are none."""
        is_empty = self.model.rowCount() == 0
        self._nothing.setText(tr(NO_LIMIT if self._facts is not None else NO_ROW))
        self._nothing.setVisible(is_empty)
        if is_empty and self.view.hasFocus():
            self.add_button.setFocus(Qt.FocusReason.OtherFocusReason)
        self.view.setHidden(is_empty)
        if not is_empty and not self.view.currentIndex().isValid():
            self.view.setCurrentIndex(self.model.index(0, Column.VALUE))
        self.current_changed()
        self.view.fit()

    def _choices(self, row: LimitRow) -> tuple[Choice, ...]:
        rows = self._facts.operations if self._facts else ()
        names = [one.name for one in rows if row.field is None or not one.parameters or row.field in one.parameters]
        return choices_for(names, row, self._operation if self._operation in names else None)

    # what is asked for

    def change(self, row: LimitRow, kind: RuleKind) -> bool:
        """Another value, or a new limit."""
        document = self._context.document
        if row.standing is not None:
            return verbs.change_rule(document, row.standing, kind)
        if self._agent is None or self._facts is None or not isinstance(kind, verbs.Limit):
            return False
        return verbs.set_limit(document, self._agent.agent_id, self._facts.name, kind, row.operations)

    def bind(self, row: LimitRow, operations: frozenset[str] | None) -> bool:
        """For other operations."""
        document = self._context.document
        return row.standing is not None and verbs.bind_rule(document, row.standing, operations, row.field)

    def remove_current(self) -> None:
        """Take the current limit away; the next row is current then."""
        row = self.current
        if row is not None and row.standing is not None:
            verbs.remove_rule(self._context.document, row.standing, row.field)

    def edit_current(self) -> None:
        """Edit the value of the current limit; go to the line of one that is inherited or has no value."""
        row = self.current
        if row is None:
            return
        if row.is_own and isinstance(row.kind, ArgumentConstraints):
            self._constrain(row)
        elif row.has_value:
            self.edit_cell(self.view.currentIndex().row(), Column.VALUE)
        else:
            self.go(self.view.currentIndex().row())

    def begin(self, kind: RuleKind) -> None:
        """A new limit for the current row: its value is asked for in place, and nothing is written before."""
        if self._facts is None:
            return
        operations = frozenset({self._operation}) if self._operation else None
        at = self.model.begin(kind, operations, has_operations=self._facts.has_operations)
        self.editor_closed()
        row = self.model.row_at(at)
        if row is not None and not row.has_value:
            self.change(row, kind)
            return
        self.edit_cell(at, Column.VALUE)

    def _double_clicked(self, index: QModelIndex) -> None:
        row = self.model.row_at(index.row())
        if row is None or not row.is_own or index.column() not in {Column.KIND, Column.VALUE}:
            return
        if isinstance(row.kind, ArgumentConstraints):
            self._constrain(row)

    def fill_menu(self) -> None:
        """The ways to limit the row."""
        self.menu.clear()
        facts = self._facts
        if facts is None:
            return
        row_of_tree = tr("{tool} > {operation} only", tool=facts.name, operation=self._operation)
        what = row_of_tree if self._operation else facts.name
        add_heading(self.menu, tr("For {tool}", tool=what))
        for row in NEW:
            self._add_action(*row)
        operations = (self._operation,) if self._operation else None
        fields = free_fields(self._agent, facts, operations) if self._agent is not None else ()
        taken = argument_names(facts, operations)
        why_not = "" if fields else tr("Every argument is constrained") if taken else tr("It takes no argument")
        add_action(
            self.menu,
            tr("&Argument…"),
            partial(self._constrain, None),
            name="agents.limits.add.argument",
            icon="braces",
            tip=why_not,
            can=bool(fields),
        )
        add_action(
            self.menu,
            tr("As&k first above…"),
            lambda: self._context.tasks.start(self._ask_above(), TASK, replace=True),
            name="agents.limits.add.above",
            icon="hand",
            tip=tr("A policy rule that asks when an argument is over a number"),
            can=bool(taken),
        )
        self.menu.addSeparator()
        for row in MORE:
            self._add_action(*row)

    def _add_action(self, key: str, text: str, icon: str, kind: RuleKind) -> None:
        begin = partial(self.soon, partial(self.begin, kind))
        add_action(self.menu, tr(text), begin, name=f"agents.limits.add.{key}", icon=icon)

    def _constrain(self, row: LimitRow | None) -> None:
        if self._agent is not None and self._facts is not None:
            self.constrain(self._agent, self._facts, self._operation, row)

    async def _ask_above(self) -> None:
        """Begin a policy rule for this row, with an argument that is a number and the keys where its bound is typed."""
        agent, facts, operation = self._agent, self._facts, self._operation
        known = await self._context.deriver.derive(arguments_of, facts.name) if facts is not None else None
        if agent is None or facts is None or known is None:
            return
        operations = (operation,) if operation else None
        taken = argument_names(facts, operations)
        field = next((name for name in taken if name in known and known[name].kind in {"number", "whole"}), "")
        what = f"{facts.name}.{operation}" if operation else facts.name
        held = {rule.name for rule in self._context.document.policy.rules}
        names = (f"large {what} of {agent.agent_id}{f' {number}' if number > 1 else ''}" for number in count(1))
        rule = PolicyRule(
            next(name for name in names if name not in held),
            Verdict.ASK,
            agents=(agent.agent_id,),
            tools=(facts.name,),
            operations=operations,
        )
        self._context.navigator.begin_policy_rule(rule, field)

    def constrain(self, agent: Agent, facts: ToolFacts, operation: str | None, row: LimitRow | None) -> None:
        """Ask for a new constraint, or for another one in the place of a row's: one dialog at a time."""
        from gatewright_gui.pages.access.tools.constraint_dialog import ask_constraint

        asking = ask_constraint(self.window(), self._context, agent, facts, operation, row)
        self._context.tasks.start(asking, TASK, replace=True)


def _fault(kind: RuleKind, text: str) -> str:
    """The fault; what stands there may stay, though one could not type it anew."""
    return "" if text == limit_text(kind) else limit_fault(kind, text)


def _hint(kind: RuleKind) -> str:
    if isinstance(kind, RateLimit):
        return RATE_EXAMPLE
    return tr("consent group, or empty") if isinstance(kind, RequiresConsent) else tr("such as 1.5 s, 2 min, 100 ms")
