"""The grants of the chosen agent, what asks first, its whole catalogs and its sub-agents, edited in place."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QCompleter, QPushButton, QStyle, QStyleOptionViewItem, QWidget

from gatewright.workspace.api import (
    Agent,
    CapabilityKind,
    Delegate,
    Verdict,
    approval_keys,
    selected_catalog,
    selector_of,
)
from gatewright_gui.pages.access.tools.agent_rules import (
    DELEGATES,
    VERDICTS,
    AgentRow,
    AgentRulesModel,
    Column,
    RowKind,
    agent_rows,
    has_scope,
    missing_kinds,
    needs_of,
)
from gatewright_gui.pages.access.tools.rule_table import LINK, RuleDelegate, RuleTable
from gatewright_gui.pages.access.tools.rules_pane import RulesPane
from gatewright_gui.pages.access.tools.tool_view import WISH_KEYS
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import column_of, named
from gatewright_gui.qt.look import Role, current_look, tie_icon
from gatewright_gui.qt.menu import add_action
from gatewright_gui.qt.plaintext import button_text
from gatewright_gui.qt.table_model import ROW, Index
from gatewright_gui.qt.widget.button import IconButton
from gatewright_gui.qt.widget.chip import VERDICT_ICONS
from gatewright_gui.qt.widget.item_view import embolden, put_icon
from gatewright_gui.qt.widget.text_field import ValueField
from gatewright_gui.session.verbs import agents, rights

WIDTHS = {int(Column.WHAT): (190, 240), int(Column.ABOUT): (80, 420), int(Column.WHERE): (60, 90)}


class AgentRulesView(RuleTable):
    """Alt with A, K and D gives a key its verdict."""

    verdict_requested = Signal(object)
    """Verdict."""

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """The keys of the list."""
        if event.key() in WISH_KEYS and event.modifiers() == Qt.KeyboardModifier.AltModifier:
            self.verdict_requested.emit(Verdict(WISH_KEYS[event.key()]))
        else:
            super().keyPressEvent(event)


class AgentRulesDelegate(RuleDelegate):
    """Headings are bold, what is inherited or missing is muted, a verdict has its icon and colour."""

    def __init__(self, pane: "AgentRulesPane") -> None:
        super().__init__(pane)
        self._pane = pane

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        """Font, colour and icon."""
        super().initStyleOption(option, index)
        row = index.data(ROW)
        if not isinstance(row, AgentRow):
            return
        if row.kind is RowKind.HEADING:
            embolden(option)
            option.state |= QStyle.StateFlag.State_Enabled
        if row.verdict is not None and index.column() == Column.VALUE:
            verdict = row.verdict.value
            put_icon(option, VERDICT_ICONS[verdict], verdict, current_look().tokens.icon_size)

    def role_of(self, index: Index) -> Role:
        """The colour of a cell."""
        row: AgentRow = index.data(ROW)
        if index.data(LINK):
            return "accent"
        if row.verdict is not None and index.column() == Column.VALUE and row.kind is RowKind.APPROVAL:
            return row.verdict.value
        if row.kind is RowKind.MISSING:
            return "ask" if index.column() == Column.VALUE else "muted"
        return "muted" if row.kind is RowKind.INHERITED or index.column() == Column.ABOUT else "text"

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:  # noqa: N802
        """A list of verdicts, a field for a scope, or one for a key."""
        row = index.data(ROW)
        if not isinstance(row, AgentRow):
            return super().createEditor(parent, option, index)
        if row.verdict is not None and index.column() == Column.VALUE:
            look = current_look()
            verdicts = (
                (tr(VERDICTS[verdict]), verdict, look.icon(VERDICT_ICONS[verdict.value], verdict.value))
                for verdict in Verdict
            )
            return self.choice_field(parent, "agents.rules.verdict", tr("Setting of {key}", key=row.what), verdicts)
        if row.delegate is not None:
            choices = ((tr(words), delegate, None) for delegate, words in DELEGATES.items())
            return self.choice_field(parent, "agents.rules.delegate", tr("Rights of its sub-agents"), choices)
        if index.column() == Column.WHAT:
            is_key = row.kind is not RowKind.NEW_CHILD
            refusal = partial(self._pane.key_refusal if is_key else self._pane.child_refusal, row)
            field = ValueField(refusal, parent)
            if is_key:
                named(field, "agents.rules.key", spoken=tr("Approvals key"))
                field.setPlaceholderText(tr("a tool, tool.operation or catalog:ID"))
            else:
                named(field, "agents.rules.sub_agent", spoken=tr("Sub-agent"))
                field.setPlaceholderText(tr("an agent of this policy"))
            completer = QCompleter(list(self._pane.keys() if is_key else self._pane.children_to_name()), field)
            completer.setCompletionMode(QCompleter.CompletionMode.InlineCompletion)
            field.setCompleter(completer)
            return field
        kind = CapabilityKind(row.what)
        field = named(
            ValueField(partial(agents.grant_refusal, kind), parent),
            "agents.rules.scope",
            spoken=tr("Scope of {capability}", capability=tr(agents.ACCESS_WORDS[kind])),
            tip=agents.scope_tip(kind),
        )
        field.setPlaceholderText(self._pane.scope_example(kind))
        return field


class AgentRulesPane(RulesPane[AgentRow]):
    """Capabilities, approvals, whole catalogs and sub-agents of one agent."""

    def __init__(self, context: PageContext) -> None:
        add = named(
            QPushButton(tr("Add grant or limit")),
            spoken=tr("Grant access, say what asks first, add a whole server or a sub-agent"),
            tip=tr("Grant access, say what asks first, add a whole server or a sub-agent (Ins in the list)"),
        )
        remove = IconButton("trash", tr("Take the grant, key, server or sub-agent away (Del)"))
        super().__init__(context, "agents.rules", add, remove)
        self._agent: Agent | None = None
        self._row: tuple[str | None, str | None] = (None, None)
        self.model = AgentRulesModel(self, self)
        self.view = AgentRulesView(tr("What the agent may reach, what asks first, servers and sub-agents"), WIDTHS)
        self.set_table(self.view, self.model, AgentRulesDelegate(self), Column.VALUE)
        self.view.verdict_requested.connect(self._judge_current)
        column_of(self.view, into=self)

    # what is shown

    def show_agent(self, agent: Agent | None, tool: str | None, operation: str | None) -> None:
        """Show what an agent is granted; the row of the tree is offered as a key."""
        if agent is None or self._agent is None or agent.agent_id != self._agent.agent_id:
            self.model.drop_draft()
        self._agent, self._row = agent, (tool, operation)
        self.setEnabled(agent is not None)
        rows: Sequence[AgentRow] = ()
        if agent is not None:
            document = self._context.document
            scopes = {at: one.text for at, one in enumerate(agent.capabilities)}
            rows = agent_rows(document.policy, agent, document.catalog, scopes)
        self.model.set_rows(rows)
        self.add_button.setEnabled(agent is not None)
        self.view.fit()
        self.current_changed()
        self.find_lines()

    @property
    def wanted_height(self) -> int:
        """The height at which all rows show, below the header."""
        rows, frame = self.view.verticalHeader().length(), 2 * self.view.frameWidth()
        return self.header.sizeHint().height() + self.view.horizontalHeader().sizeHint().height() + rows + frame

    def scope_example(self, kind: CapabilityKind) -> str:
        """An example of what one may type for a kind here."""
        return agents.scope_example(self._context.document, kind)

    def keys(self) -> tuple[str, ...]:
        """Every key that can be given."""
        return approval_keys(self._context.document.policy, self._context.document.catalog)

    def key_refusal(self, row: AgentRow, key: str) -> str:
        """Why a key cannot be had; empty when it can, or when it stands there already."""
        if self._agent is None or (row.kind is RowKind.APPROVAL and key == row.what):
            return ""
        if row.kind is RowKind.NEW_KEY and key in self._agent.approvals:
            return tr("there is a key `{key}` already", key=key)
        was = row.what if row.kind is RowKind.APPROVAL else None
        return rights.approval_refusal(self._context.document, self._agent.agent_id, key.strip(), was)

    def children_to_name(self) -> tuple[str, ...]:
        """The agents that can be named as its sub-agents."""
        agent, every = self._agent, self._context.document.policy.agents
        return () if agent is None else tuple(one for one in every if one not in {agent.agent_id, *agent.sub_agents})

    def child_refusal(self, _row: AgentRow, name: str) -> str:
        """Why an agent cannot be named as a sub-agent; empty when it can."""
        agent = self._agent
        return "" if agent is None else agents.sub_agent_refusal(self._context.document, agent.agent_id, name.strip())

    # what is asked for

    def scope(self, row: AgentRow, text: str) -> bool:
        """Another scope, or a grant with that scope."""
        document = self._context.document
        if row.granted is not None:
            return agents.change_capability(document, row.granted, text)
        return self._agent is not None and agents.grant(document, self._agent.agent_id, CapabilityKind(row.what), text)

    def verdict(self, key: str, verdict: Verdict) -> bool:
        """A verdict for a key; an inherited one becomes the agent's own."""
        agent = self._agent
        return agent is not None and rights.set_approval(self._context.document, agent.agent_id, key, verdict)

    def rename(self, row: AgentRow, key: str) -> bool:
        """Another key, a new one that asks first, or a new sub-agent."""
        agent = self._agent
        if agent is None:
            return False
        if row.kind is RowKind.NEW_CHILD:
            self.soon(partial(self._show, RowKind.CHILD, key))
            return agents.name_sub_agent(self._context.document, agent.agent_id, key)
        if row.kind is RowKind.NEW_KEY:
            return self._ask_for(key)
        return rights.rename_approval(self._context.document, agent.agent_id, row.what, key)

    def delegate(self, delegate: Delegate) -> bool:
        """Which rights the sub-agents that it names have."""
        agent = self._agent
        return agent is not None and agents.set_delegate(self._context.document, agent.agent_id, delegate)

    def list_catalog(self, catalog_id: str) -> None:
        """Give the agent all tools of a catalog."""
        agent, document = self._agent, self._context.document
        if agent is not None and agents.list_catalog(document, agent.agent_id, catalog_id, on=True):
            self._show(RowKind.CATALOG, selector_of(catalog_id))

    def _show(self, kind: RowKind, what: str) -> None:
        rows = enumerate(self.model.rows)
        self.view.show_row(next((at for at, one in rows if (one.kind, one.what) == (kind, what)), None), Column.VALUE)

    def remove_current(self) -> None:
        """Revoke the current capability, or take the current key, catalog or sub-agent away."""
        row, agent, document = self.current, self._agent, self._context.document
        if row is None or agent is None or not row.is_own:
            return
        if row.granted is not None:
            agents.revoke(document, row.granted)
        elif row.kind is RowKind.CHILD:
            agents.drop_sub_agent(document, agent.agent_id, row.what)
        elif (catalog_id := selected_catalog(row.what)) is not None and row.kind is RowKind.CATALOG:
            agents.list_catalog(document, agent.agent_id, catalog_id, on=False)
        else:
            rights.remove_approval(document, agent.agent_id, row.what)

    def edit_current(self) -> None:
        """Edit the value of the current row; of a capability that lacks, grant it."""
        row = self.current
        if row is None:
            return
        if row.kind is RowKind.MISSING and not has_scope(CapabilityKind(row.what)):
            self.grant(CapabilityKind(row.what))
            return
        self.edit_cell(self.view.currentIndex().row(), Column.VALUE)

    def grant(self, kind: CapabilityKind) -> None:
        """Grant a kind: at once where it has no scope, else its scope is asked for in place."""
        at = self.model.find_row(str(kind))
        if at is None and not has_scope(kind):
            self.scope(AgentRow(RowKind.NEW_GRANT, str(kind)), "")
        elif at is not None and not has_scope(kind):
            row = self.model.row_at(at)
            if row is not None and row.kind is RowKind.MISSING:
                self.scope(row, "")
        else:
            at = self.model.begin(RowKind.NEW_GRANT, str(kind)) if at is None else at
            self.edit_cell(at, Column.VALUE)

    def add_key(self, key: str | None) -> None:
        """A key that asks first; None: it is asked for in place."""
        if key is None:
            self.edit_cell(self.model.begin(RowKind.NEW_KEY, ""), Column.WHAT)
        elif self._ask_for(key):
            at = self.model.find_row(key)
            if at is not None:
                self.view.setCurrentIndex(self.model.index(at, Column.VALUE))
                self.view.setFocus()

    def add_sub_agent(self) -> None:
        """Ask for a sub-agent in place."""
        self.edit_cell(self.model.begin(RowKind.NEW_CHILD, ""), Column.WHAT)

    def _ask_for(self, key: str) -> bool:
        agent = self._agent
        return agent is not None and rights.set_approval(self._context.document, agent.agent_id, key, Verdict.ASK)

    def _judge_current(self, verdict: object) -> None:
        row = self.current
        if row is not None and row.verdict is not None and isinstance(verdict, Verdict) and verdict != row.verdict:
            self.verdict(row.what, verdict)

    def fill_menu(self) -> None:
        """Offer what can be granted, which keys can be given, which catalogs listed, and a sub-agent."""
        self.menu.clear()
        agent, (tool, operation) = self._agent, self._row
        if agent is None:
            return
        grants = self.menu.addMenu(tr("&Grant"))
        tie_icon(grants.menuAction(), "key-round")
        needed = needs_of(agent, self._context.document.catalog)
        missing = missing_kinds(agent, needed)
        for kind in (*missing, *(kind for kind in CapabilityKind if kind not in missing)):
            said = tr("needed by {count}", count=len(needed[kind])) if kind in missing else ""
            row = self.model.row_at(self.model.find_row(str(kind)) or 0)
            add_action(
                grants,
                f"{tr(agents.ACCESS_WORDS[kind])}\t{said}".strip(),
                partial(self.soon, partial(self.grant, kind)),
                name=f"agents.rules.grant.{kind}",
                icon="key-round",
                role="ask" if kind in missing else "text",
                can=has_scope(kind) or row is None or row.kind is not RowKind.GRANTED,
            )
        self.menu.addSeparator()
        for key in (f"{tool}.{operation}" if operation else None, tool):
            if key is not None and key not in agent.approvals:
                text = button_text(tr("Ask first for {key}", key=key))
                add_action(self.menu, text, partial(self.soon, partial(self.add_key, key)), icon="hand")
        another = partial(self.soon, partial(self.add_key, None))
        add_action(self.menu, tr("Ask first for &another…"), another, name="agents.rules.other_key", icon="pencil")
        self.menu.addSeparator()
        whole = self.menu.addMenu(tr("&Whole server"))
        tie_icon(whole.menuAction(), "plug")
        held = {selected_catalog(name) for name in agent.tools or ()}
        for catalog in self._context.document.policy.catalogs:
            if catalog.catalog_id not in held:
                act = partial(self.soon, partial(self.list_catalog, catalog.catalog_id))
                add_action(whole, button_text(catalog.catalog_id), act, name="agents.rules.catalog", icon="plug")
        whole.setEnabled(not whole.isEmpty())
        name_one = partial(self.soon, self.add_sub_agent)
        can = bool(self.children_to_name())
        tip = tr("It keeps its own rights; an agent that is not named may never do more than its caller")
        text, name = tr("&Sub-agent…"), "agents.rules.add_sub_agent"
        add_action(self.menu, text, name_one, name=name, icon="users", tip=tip, can=can)
