"""The limits of the current row, edited in place. It calls verbs, nothing else; what a limit does is said by models."""

from functools import partial

from PySide6.QtCore import QModelIndex, Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QMenu,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from gatewright.base.problem import Address
from gatewright.policy.document import Agent
from gatewright.policy.right import ToolFacts
from gatewright.policy.rule import (
    ArgumentConstraints,
    Cooldown,
    ExitLoop,
    MaxCalls,
    Periodic,
    RateLimit,
    RequiresConsent,
    RuleKind,
)
from gatewright.policy.ruleedit import free_fields, taken_fields
from gatewright_gui.models.limitlist import Choice, Column, LimitListModel, choices_for
from gatewright_gui.models.limitrow import LimitRow, limit_rows
from gatewright_gui.pages.agents.constraining import Constraining
from gatewright_gui.pages.agents.limit_delegate import LimitDelegate
from gatewright_gui.pages.agents.rule_table import RuleTable
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.menuheading import add_heading
from gatewright_gui.qt.widget.button import IconButton
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.section_header import SectionHeader
from gatewright_gui.session.filetext import lines_of
from gatewright_gui.session.verbs import limits as verbs

NEW: tuple[tuple[str, str, str, RuleKind], ...] = (
    ("calls", "&Max calls in a session", "hash", MaxCalls(10)),
    ("pause", "&Pause between calls", "pause", Cooldown(1.0)),
    ("rate", "&Rate: calls per time", "clock", RateLimit(30, 60.0)),
)
MORE: tuple[tuple[str, str, str, RuleKind], ...] = (
    ("consent", "&Consent", "hand", RequiresConsent()),
    ("reminder", "Re&minder", "history", Periodic(300.0)),
    ("end", "&End the loop after a call", "circle-stop", ExitLoop()),
)
WIDTHS = {int(Column.KIND): (70, 130), int(Column.FOR): (70, 110), int(Column.WHERE): (60, 130)}
NO_LIMIT = "No limit. Add one with the button above: calls, a pause, a rate, or what an argument may be."
NO_ROW = "Choose a tool or an operation: its limits are edited here."


class LimitsPane(QWidget):
    """Its header has the buttons; whoever holds the pane lays it out."""

    line_requested = Signal(object)
    """Line of the policy file."""

    def __init__(self, context: PageContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("agents.limits")
        self._context = context
        self._agent: Agent | None = None
        self._facts: ToolFacts | None = None
        self._operation: str | None = None
        self.model = LimitListModel(self, self)
        self.view = RuleTable("Limits", WIDTHS, Column.WHERE)
        self.header = SectionHeader("")
        self.add_button = QPushButton("Add")
        self.menu = QMenu(self)
        self.remove_button = IconButton("trash", "Remove the limit (Del)")
        self.constraining = Constraining(context, self)
        self._nothing = Label(NO_ROW)
        self._stack = QStackedWidget()
        self._lay_out()
        self._connect()

    # layout

    def _lay_out(self) -> None:
        self.view.setObjectName("agents.limits.list")
        self.view.setModel(self.model)
        self.view.setItemDelegate(LimitDelegate(self._choices, self.view))
        self.view.settle(Column.VALUE)
        self.add_button.setObjectName("agents.limits.add")
        self.add_button.setAccessibleName("Add limit")
        self.add_button.setToolTip("Limit the tool, or only the current operation (Ins in the list)")
        self.add_button.setMenu(self.menu)
        tie_icon(self.add_button, "plus", "muted")
        self.remove_button.setObjectName("agents.limits.remove")
        self.header.add_control(self.add_button)
        self.header.add_control(self.remove_button)
        self._nothing.setObjectName("agents.limits.none")
        self._nothing.setProperty("kind", "muted")
        self._nothing.setWordWrap(True)
        self._nothing.setMargin(8)
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.view, 1)
        column.addWidget(self._nothing)

    def _connect(self) -> None:
        self.menu.aboutToShow.connect(self._fill_menu)
        self.view.add_requested.connect(self.open_menu)
        self.view.remove_requested.connect(self.remove_current)
        self.view.edit_requested.connect(self.edit_current)
        self.view.doubleClicked.connect(self._double_clicked)
        self.view.line_clicked.connect(self._go)
        self.view.itemDelegate().closeEditor.connect(self._editor_closing)
        self.view.selectionModel().currentChanged.connect(self._current_changed)
        self.remove_button.clicked.connect(self.remove_current)

    # what is shown

    def show_row(self, agent: Agent | None, facts: ToolFacts | None, operation: str | None) -> None:
        """Show the limits of a tool, or of one operation of it."""
        same = self._facts is not None and facts is not None and self._facts.name == facts.name
        same = same and self._operation == operation and bool(agent and self._agent)
        if not same or (agent and self._agent and agent.agent_id != self._agent.agent_id):
            self.model.drop_draft()
        self._agent, self._facts, self._operation = agent, facts, operation
        rows: tuple[LimitRow, ...] = ()
        if agent is not None and facts is not None:
            rows = limit_rows(self._context.document.policy, agent, facts, operation)
        self.model.set_limits(rows)
        self.add_button.setEnabled(facts is not None and agent is not None)
        self._show_state()
        if self.model.addresses:
            self._context.tasks.start(self._find_lines(), "agents.limits.lines", replace=True)

    def show_rule(self, address: Address) -> None:
        """Make the rule that stands there the current one."""
        self.view.show_row(self.model.row_of(address), Column.VALUE)

    def _show_state(self) -> None:
        is_empty = self.model.rowCount() == 0
        self._nothing.setText(NO_LIMIT if self._facts is not None else NO_ROW)
        self._nothing.setVisible(is_empty)
        if not is_empty and not self.view.currentIndex().isValid():
            self.view.setCurrentIndex(self.model.index(0, Column.VALUE))
        self._current_changed()
        self.view.fit()

    def _current_changed(self, *_: object) -> None:
        row = self._current()
        self.remove_button.setEnabled(row is not None and row.is_own)

    async def _find_lines(self) -> None:
        addresses = self.model.addresses
        lines = await self._context.deriver.derive(lambda workspace: lines_of(workspace, addresses))
        if lines is not None:
            path = self._context.document.path
            self.model.set_lines(lines, path.name if path else "")
            self.view.fit()

    def _current(self) -> LimitRow | None:
        return self.model.row_at(self.view.currentIndex().row())

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
        row = self._current()
        if row is not None and row.standing is not None:
            verbs.remove_rule(self._context.document, row.standing, row.field)

    def edit_current(self) -> None:
        """Edit the value of the current limit; go to the line of one that is inherited or has no value."""
        row = self._current()
        if row is None:
            return
        if row.is_own and isinstance(row.kind, ArgumentConstraints):
            self._constrain(row)
        elif row.has_value:
            self._edit(self.view.currentIndex().row(), Column.VALUE)
        else:
            self._go(self.view.currentIndex().row())

    def begin(self, kind: RuleKind) -> None:
        """A new limit for the current row: its value is asked for in place, and nothing is written before."""
        if self._facts is None:
            return
        operations = frozenset({self._operation}) if self._operation else None
        at = self.model.begin(kind, operations, has_operations=self._facts.has_operations)
        self._show_state()
        row = self.model.row_at(at)
        if row is not None and not row.has_value:
            self.change(row, kind)
            return
        self._edit(at, Column.VALUE)

    def open_menu(self) -> None:
        """The ways to limit the row."""
        if self.add_button.isEnabled():
            self.add_button.showMenu()

    def _edit(self, row: int, column: Column) -> None:
        index = self.model.index(row, column)
        self.view.setFocus()
        self.view.setCurrentIndex(index)
        self.view.scrollTo(index)
        self.view.edit(index)

    def _double_clicked(self, index: QModelIndex) -> None:
        row = self.model.row_at(index.row())
        if row is None or not row.is_own or index.column() not in {Column.KIND, Column.VALUE}:
            return
        if isinstance(row.kind, ArgumentConstraints):
            self._constrain(row)

    def _editor_closing(self, _editor: object) -> None:
        """Once the view is done with the field."""
        QTimer.singleShot(0, self, self._editor_closed)

    def _editor_closed(self) -> None:
        if self.view.state() != QAbstractItemView.State.EditingState:
            self.model.drop_draft()
            self._show_state()
            self.view.keep_keys()

    def _go(self, row: int) -> None:
        line = self.model.line_at(row)
        if line is not None:
            self.line_requested.emit(line)

    def _fill_menu(self) -> None:
        self.menu.clear()
        facts = self._facts
        if facts is None:
            return
        what = f"{facts.name} > {self._operation} only" if self._operation else facts.name
        add_heading(self.menu, f"For {what}")
        for row in NEW:
            self._add_action(*row)
        operations = (self._operation,) if self._operation else None
        fields = free_fields(self._agent, facts, operations) if self._agent is not None else ()
        action = self.menu.addAction("&Argument…")
        action.setObjectName("agents.limits.add.argument")
        tie_icon(action, "braces")
        action.setEnabled(bool(fields))
        taken = taken_fields(facts, operations)
        action.setToolTip("" if fields else "Every argument is constrained" if taken else "It takes no argument")
        action.triggered.connect(lambda _checked=False: self._constrain(None))
        self.menu.addSeparator()
        for row in MORE:
            self._add_action(*row)

    def _add_action(self, key: str, text: str, icon: str, kind: RuleKind) -> None:
        action = self.menu.addAction(text)
        action.setObjectName(f"agents.limits.add.{key}")
        tie_icon(action, icon)
        action.triggered.connect(partial(self._begin_soon, kind))

    def _begin_soon(self, kind: RuleKind, _checked: bool = False) -> None:
        """Once the menu is gone, so that it does not take the keys from the field."""
        QTimer.singleShot(0, self, partial(self.begin, kind))

    def _constrain(self, row: LimitRow | None) -> None:
        if self._agent is not None and self._facts is not None:
            self.constraining.open(self._agent, self._facts, self._operation, row)
