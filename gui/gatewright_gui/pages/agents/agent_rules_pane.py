"""What the chosen agent is granted and what asks first, edited in place. It calls verbs, nothing else."""

from collections.abc import Sequence
from functools import partial
from typing import cast

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QPersistentModelIndex, QStringListModel, Qt, QTimer, Signal
from PySide6.QtGui import QFont, QKeyEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QCompleter,
    QMenu,
    QPushButton,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from gatewright.policy.approvaledit import approval_keys
from gatewright.policy.document import Agent
from gatewright.policy.kinds.capability import CapabilityKind
from gatewright.policy.verdict import Verdict
from gatewright_gui.models.agentrules import (
    LINK,
    ROW,
    VERDICT_WORDS,
    AgentRow,
    AgentRulesModel,
    Column,
    RowKind,
    agent_rows,
    has_scope,
    missing_kinds,
    needed_by,
)
from gatewright_gui.pages.agents.limit_delegate import cast_any
from gatewright_gui.pages.agents.rule_table import RuleTable
from gatewright_gui.pages.agents.value_field import ValueDelegate, ValueField
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.look import Role, current_look, role_colour, tie_icon
from gatewright_gui.qt.plaintext import button_text
from gatewright_gui.qt.widget.button import IconButton
from gatewright_gui.qt.widget.chip import VERDICT_ICONS
from gatewright_gui.qt.widget.section_header import SectionHeader
from gatewright_gui.session.filetext import lines_of
from gatewright_gui.session.verbs import approvals, capabilities

Index = QModelIndex | QPersistentModelIndex
WIDTHS = {int(Column.WHAT): (112, 150), int(Column.ABOUT): (80, 170), int(Column.WHERE): (60, 90)}
_KEYS = {Qt.Key.Key_A: Verdict.ALLOW, Qt.Key.Key_K: Verdict.ASK, Qt.Key.Key_D: Verdict.DENY}


class AgentRulesView(RuleTable):
    """A, K and D give a key its verdict."""

    verdict_requested = Signal(object)
    """Verdict."""

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """The keys of the list."""
        verdict = _KEYS.get(Qt.Key(event.key()))
        if verdict is not None and not event.modifiers():
            self.verdict_requested.emit(verdict)
        else:
            super().keyPressEvent(event)


class AgentRulesDelegate(ValueDelegate):
    """Headings are bold, what is inherited or missing is muted, a verdict has its icon and colour."""

    def __init__(self, pane: "AgentRulesPane") -> None:
        super().__init__(pane)
        self._pane = pane

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        """Font, colour and icon."""
        super().initStyleOption(option, index)
        row, item = index.data(ROW), cast_any(option)
        if not isinstance(row, AgentRow):
            return
        if row.kind is RowKind.HEADING:
            font = QFont(item.font)
            font.setWeight(QFont.Weight.DemiBold)
            item.font = font
        if row.verdict is not None and index.column() == Column.VALUE:
            item.features |= QStyleOptionViewItem.ViewItemFeature.HasDecoration
            item.icon = current_look().icon(VERDICT_ICONS[row.verdict.value], row.verdict.value)
        for which in (item.palette.ColorRole.Text, item.palette.ColorRole.HighlightedText):
            item.palette.setColor(which, role_colour(_role(row, index)))

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:  # noqa: N802
        """A list of verdicts, a field for a scope, or one for a key."""
        row = index.data(ROW)
        if not isinstance(row, AgentRow):
            return super().createEditor(parent, option, index)
        if row.verdict is not None and index.column() == Column.VALUE:
            return self._verdict_field(parent, row)
        if index.column() == Column.WHAT:
            return self._key_field(parent, row)
        kind = CapabilityKind(row.what)
        field = ValueField(partial(capabilities.grant_refusal, kind), parent)
        field.setObjectName("agents.rules.scope")
        field.setAccessibleName(f"Scope of {kind}")
        field.setPlaceholderText(self._pane.scope_example(kind))
        field.setToolTip(capabilities.scope_tip(kind))
        return field

    def setEditorData(self, editor: QWidget, index: Index) -> None:  # noqa: N802
        """What stands there."""
        if isinstance(editor, QComboBox):
            editor.setCurrentIndex(editor.findData(index.data(Qt.ItemDataRole.EditRole)))
        elif isinstance(editor, ValueField):
            editor.setText(str(index.data(Qt.ItemDataRole.EditRole)))

    def setModelData(self, editor: QWidget, model: QAbstractItemModel, index: Index) -> None:  # noqa: N802
        """Hand over what can be taken."""
        where = model.index(index.row(), index.column())
        if isinstance(editor, QComboBox):
            model.setData(where, editor.currentData())
        elif isinstance(editor, ValueField) and not editor.refused:
            model.setData(where, editor.text())

    def _verdict_field(self, parent: QWidget, row: AgentRow) -> QComboBox:
        field = QComboBox(parent)
        field.setObjectName("agents.rules.verdict")
        field.setAccessibleName(f"Verdict of {row.what}")
        for verdict, word in VERDICT_WORDS.items():
            field.addItem(current_look().icon(VERDICT_ICONS[verdict.value], verdict.value), word, verdict)
        field.activated.connect(partial(self._chosen, field))
        return field

    def _key_field(self, parent: QWidget, row: AgentRow) -> ValueField:
        field = ValueField(partial(self._pane.key_refusal, row), parent)
        field.setObjectName("agents.rules.key")
        field.setAccessibleName("Approvals key")
        field.setPlaceholderText("a tool, or tool.operation")
        completer = QCompleter(field)
        completer.setModel(QStringListModel(list(self._pane.keys()), completer))
        completer.setCompletionMode(QCompleter.CompletionMode.InlineCompletion)
        field.setCompleter(completer)
        return field

    def _chosen(self, field: QComboBox, _index: int) -> None:
        self.commitData.emit(field)
        self.closeEditor.emit(field, self.EndEditHint.NoHint)


class AgentRulesPane(QWidget):
    """Its header has the buttons; whoever holds the pane lays it out."""

    line_requested = Signal(object)
    """Line of the policy file."""

    def __init__(self, context: PageContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("agents.rules")
        self._context = context
        self._agent: Agent | None = None
        self._row: tuple[str | None, str | None] = (None, None)
        self.model = AgentRulesModel(self, self)
        self.view = AgentRulesView("Capabilities and approvals", WIDTHS, Column.WHERE)
        self.header = SectionHeader("")
        self.add_button = QPushButton("Add")
        self.menu = QMenu(self)
        self.remove_button = IconButton("trash", "Revoke the capability, or remove the key (Del)")
        self._lay_out()
        self._connect()

    # layout

    def _lay_out(self) -> None:
        self.view.setObjectName("agents.rules.list")
        self.view.setModel(self.model)
        self.view.setItemDelegate(AgentRulesDelegate(self))
        self.view.settle(Column.VALUE)
        self.add_button.setObjectName("agents.rules.add")
        self.add_button.setAccessibleName("Grant a capability or add an approvals key")
        self.add_button.setToolTip("Grant a capability, or say what asks first (Ins in the list)")
        self.add_button.setMenu(self.menu)
        tie_icon(self.add_button, "plus", "muted")
        self.header.add_control(self.add_button)
        self.remove_button.setObjectName("agents.rules.remove")
        self.header.add_control(self.remove_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.view)

    def _connect(self) -> None:
        self.menu.aboutToShow.connect(self._fill_menu)
        self.view.add_requested.connect(self.add_button.showMenu)
        self.view.remove_requested.connect(self.remove_current)
        self.view.edit_requested.connect(self.edit_current)
        self.view.verdict_requested.connect(self._judge_current)
        self.view.line_clicked.connect(self._go)
        self.view.itemDelegate().closeEditor.connect(self._editor_closing)
        self.view.selectionModel().currentChanged.connect(self._current_changed)
        self.remove_button.clicked.connect(self.remove_current)

    # what is shown

    def show_agent(self, agent: Agent | None, tool: str | None, operation: str | None) -> None:
        """Show what an agent is granted; the row of the tree is offered as a key."""
        if agent is None or self._agent is None or agent.agent_id != self._agent.agent_id:
            self.model.drop_draft()
        self._agent, self._row = agent, (tool, operation)
        self.header.set_note(agent.agent_id if agent else "")
        self.setEnabled(agent is not None)
        rows: Sequence[AgentRow] = ()
        if agent is not None:
            document = self._context.document
            scopes = {at: one.text for at, one in enumerate(agent.capabilities)}
            rows = agent_rows(document.policy, agent, document.catalog, scopes)
        self.model.set_agent_rows(rows)
        self.add_button.setEnabled(agent is not None)
        self.view.fit()
        if rows and not self.view.currentIndex().isValid():
            self.view.setCurrentIndex(self.model.index(1, Column.VALUE))
        self._current_changed()
        if self.model.addresses:
            self._context.tasks.start(self._find_lines(), "agents.rules.lines", replace=True)

    async def _find_lines(self) -> None:
        addresses = self.model.addresses
        lines = await self._context.deriver.derive(lambda workspace: lines_of(workspace, addresses))
        if lines is not None:
            path = self._context.document.path
            self.model.set_lines(lines, path.name if path else "")
            self.view.fit()

    def scope_example(self, kind: CapabilityKind) -> str:
        """What one may type for a kind here."""
        return capabilities.scope_example(self._context.document, kind)

    def keys(self) -> tuple[str, ...]:
        """Every key that can be given."""
        return approval_keys(self._context.document.catalog)

    def key_refusal(self, row: AgentRow, key: str) -> str:
        """Why a key cannot be had; empty when it can, or when it stands there already."""
        if self._agent is None or (row.kind is RowKind.APPROVAL and key == row.what):
            return ""
        if row.kind is RowKind.NEW_KEY and key in self._agent.approvals:
            return f"there is a key `{key}` already"
        was = row.what if row.kind is RowKind.APPROVAL else None
        return approvals.approval_refusal(self._context.document, self._agent.agent_id, key.strip(), was)

    def _current_changed(self, *_: object) -> None:
        row = self._current()
        self.remove_button.setEnabled(row is not None and row.is_own)

    def _current(self) -> AgentRow | None:
        return self.model.row_at(self.view.currentIndex().row())

    # what is asked for

    def scope(self, row: AgentRow, text: str) -> bool:
        """Another scope, or a grant with that scope."""
        document = self._context.document
        if row.granted is not None:
            return capabilities.change_capability(document, row.granted, text)
        return self._agent is not None and capabilities.grant(
            document, self._agent.agent_id, CapabilityKind(row.what), text
        )

    def verdict(self, key: str, verdict: Verdict) -> bool:
        """A verdict for a key; an inherited one becomes the agent's own."""
        agent = self._agent
        return agent is not None and approvals.set_approval(self._context.document, agent.agent_id, key, verdict)

    def rename(self, row: AgentRow, key: str) -> bool:
        """Another key, or a new one that asks first."""
        agent = self._agent
        if agent is None:
            return False
        if row.kind is RowKind.NEW_KEY:
            return self._ask_for(key)
        return approvals.rename_approval(self._context.document, agent.agent_id, row.what, key)

    def remove_current(self) -> None:
        """Revoke the current capability, or remove the current key."""
        row, agent = self._current(), self._agent
        if row is None or agent is None or not row.is_own:
            return
        if row.granted is not None:
            capabilities.revoke(self._context.document, row.granted)
        else:
            approvals.remove_approval(self._context.document, agent.agent_id, row.what)

    def edit_current(self) -> None:
        """Edit the value of the current row; of a capability that lacks, grant it."""
        row = self._current()
        if row is None:
            return
        if row.kind is RowKind.MISSING and not has_scope(CapabilityKind(row.what)):
            self.grant(CapabilityKind(row.what))
            return
        self._edit(self.view.currentIndex().row(), Column.VALUE)

    def grant(self, kind: CapabilityKind) -> None:
        """Grant a kind: at once where it has no scope, else its scope is asked for in place."""
        at = self.model.find(str(kind))
        if at is None and not has_scope(kind):
            self.scope(AgentRow(RowKind.NEW_GRANT, str(kind)), "")
        elif at is not None and not has_scope(kind):
            row = self.model.row_at(at)
            if row is not None and row.kind is RowKind.MISSING:
                self.scope(row, "")
        else:
            at = self.model.begin(RowKind.NEW_GRANT, str(kind)) if at is None else at
            self._edit(at, Column.VALUE)

    def add_key(self, key: str | None) -> None:
        """A key that asks first; None: it is asked for in place."""
        if key is None:
            self._edit(self.model.begin(RowKind.NEW_KEY, ""), Column.WHAT)
        elif self._ask_for(key):
            at = self.model.find(key)
            if at is not None:
                self.view.setCurrentIndex(self.model.index(at, Column.VALUE))
                self.view.setFocus()

    def _ask_for(self, key: str) -> bool:
        agent = self._agent
        return agent is not None and approvals.set_approval(self._context.document, agent.agent_id, key, Verdict.ASK)

    def _judge_current(self, verdict: object) -> None:
        row = self._current()
        if row is not None and row.verdict is not None and isinstance(verdict, Verdict) and verdict != row.verdict:
            self.verdict(row.what, verdict)

    def _edit(self, row: int, column: Column) -> None:
        index = self.model.index(row, column)
        self.view.setFocus()
        self.view.setCurrentIndex(index)
        self.view.scrollTo(index)
        if index.flags() & Qt.ItemFlag.ItemIsEditable:
            self.view.edit(index)

    def _editor_closing(self, _editor: object) -> None:
        """Once the view is done with the field."""
        QTimer.singleShot(0, self, self._editor_closed)

    def _editor_closed(self) -> None:
        if self.view.state() != QAbstractItemView.State.EditingState:
            self.model.drop_draft()
            self.view.keep_keys()

    def _go(self, row: int) -> None:
        line = self.model.line_at(row)
        if line is not None:
            self.line_requested.emit(line)

    def _fill_menu(self) -> None:
        self.menu.clear()
        if self._agent is not None:
            grants = self.menu.addMenu("&Grant")
            tie_icon(grants.menuAction(), "key-round")
            self._fill_grants(grants, self._agent)
            self.menu.addSeparator()
            self._fill_keys(self._agent)

    def _fill_grants(self, menu: QMenu, agent: Agent) -> None:
        needed = needed_by(agent, self._context.document.catalog)
        missing = missing_kinds(agent, needed)
        for kind in (*missing, *(kind for kind in CapabilityKind if kind not in missing)):
            action = menu.addAction(f"{kind}\tneeded by {len(needed[kind])}" if kind in missing else str(kind))
            action.setObjectName(f"agents.rules.grant.{kind}")
            tie_icon(action, "key-round", cast("Role", "ask") if kind in missing else "text")
            row = self.model.row_at(self.model.find(str(kind)) or 0)
            action.setEnabled(has_scope(kind) or row is None or row.kind is not RowKind.GRANTED)
            action.triggered.connect(partial(self._soon, partial(self.grant, kind)))

    def _fill_keys(self, agent: Agent) -> None:
        tool, operation = self._row
        for key in (f"{tool}.{operation}" if operation else None, tool):
            if key is not None and key not in agent.approvals:
                action = self.menu.addAction(button_text(f"Ask first for {key}"))
                tie_icon(action, "hand")
                action.triggered.connect(partial(self._soon, partial(self.add_key, key)))
        other = self.menu.addAction("Ask first for &another…")
        other.setObjectName("agents.rules.other_key")
        tie_icon(other, "pencil")
        other.triggered.connect(partial(self._soon, partial(self.add_key, None)))

    def _soon(self, act: "partial[None]", _checked: bool = False) -> None:
        """Once the menu is gone, so that it does not take the keys from the field."""
        QTimer.singleShot(0, self, act)


def _role(row: AgentRow, index: Index) -> Role:
    if index.data(LINK):
        return "accent"
    if row.verdict is not None and index.column() == Column.VALUE and row.kind is RowKind.APPROVAL:
        return row.verdict.value
    if row.kind is RowKind.MISSING:
        return "ask" if index.column() == Column.VALUE else "muted"
    if row.kind is RowKind.INHERITED or index.column() == Column.ABOUT:
        return "muted"
    return "text"
