"""The middle of the tab Tools: the chosen agent, counts, search and filters, the tree. It calls verbs, nothing else.

Over 450 lines, because every signal of its parts ends in a short method here.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from gatewright.workspace.api import OperationRight, ToolRight, selector_of
from gatewright_gui.pages.access.agents import tools_with_problems
from gatewright_gui.pages.access.tools.declare_menu import DeclareMenu
from gatewright_gui.pages.access.tools.filter_bar import FilterBar, TallyBar
from gatewright_gui.pages.access.tools.legend import LegendButton
from gatewright_gui.pages.access.tools.rights_menu import RightsMenu
from gatewright_gui.pages.access.tools.row_state import Asking, Switch, operation_asking, stop_of, switch_of
from gatewright_gui.pages.access.tools.share_counter import ShareCounter
from gatewright_gui.pages.access.tools.source_bar import SourceBar, advice_for
from gatewright_gui.pages.access.tools.tool_delegate import mend_words
from gatewright_gui.pages.access.tools.tool_filter import ToolFilterModel
from gatewright_gui.pages.access.tools.tool_fit import NO_FILTERS
from gatewright_gui.pages.access.tools.tool_group import MORE
from gatewright_gui.pages.access.tools.tool_tree import MEND, OPERATION, SHARE, TOOL, Mend, ToolTreeModel
from gatewright_gui.pages.access.tools.tool_view import ToolView
from gatewright_gui.pages.access.tools.why import ShownRow
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, named, row_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.menu import add_action, popup_menu
from gatewright_gui.qt.plaintext import button_text, line_text, tip_text
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.text_field import QuietField, SearchField
from gatewright_gui.session.document import ChangeSet
from gatewright_gui.session.path_share import Shares
from gatewright_gui.session.readings import is_strange, readings
from gatewright_gui.session.tokens import TokenReport
from gatewright_gui.session.workson import works_on

if TYPE_CHECKING:
    from gatewright_gui.session.verbs.rights import ManyRights, Target, Wish


_WIDEST_NAME = 200
_RESET = mark("Clear overrides…")
TASK_RIGHTS, TASK_READINGS, TASK_SHARES = "agents.tree", "agents.readings", "agents.shares"


class ToolPane(QWidget):
    """Shows the agent of the selection and keeps the selection's tool."""

    row_shown = Signal(object)
    """ShownRow: another row is the current one, or more is known of it."""

    def __init__(self, context: PageContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._document, self._selection = context.document, context.selection
        self.model = ToolTreeModel(self, self)
        self.rows = ToolFilterModel(self.model, self)
        self.view = ToolView(self.model, self.rows)
        self.shares = ShareCounter(context, lambda _agent, _tools, found: self._take_shares(found), self, TASK_SHARES)
        self.nothing = EmptyState("search", tr("Nothing fits"), tr("No tool or operation fits."), action=tr("Show all"))
        self.search = named(SearchField(tr("Filter tools and operations")), "agents.search")
        self.filters = FilterBar()
        self.tally = TallyBar(self.filters)
        self.sources = SourceBar()
        self.description = named(QuietField(), "agents.description", spoken=tr("Description of the agent"))
        self.title = named(Label(), "agents.title", kind="heading")
        self.reset_action = QAction(tr(_RESET), self)
        self.reset_action.setObjectName("agents.reset")
        tie_icon(self.reset_action, "rotate-ccw")
        self.reset_action.triggered.connect(self.reset)
        self.declaring = DeclareMenu(context, self)
        self.rights_menu = RightsMenu(context, self)
        self.first_row: tuple[str | None, str | None] = (None, None)
        """Tool and operation to begin with when rows come; the first of all where they are not there."""
        self._agent_id = ""
        """Whose rights the rows show; for a moment not yet those of the selection."""
        self._kept_rows: tuple[set[str], tuple[str | None, str | None]] = (set(), (None, None))
        self._bulk: dict[str, QAction] = {}
        """What turns on or off all that is shown; in the menu of presets."""
        self._shows_more = False
        """Whether the tools with nothing on are shown."""
        self._is_filling = False
        self._opened_before: set[str] = set()
        """What was open before the filter was set; it is open again when the filter is taken away."""
        self._lay_out()
        self._connect()
        self._show_agent()
        self._read_strangers()

    # layout

    def _lay_out(self) -> None:
        self.nothing.hide()
        self.description.setPlaceholderText(tr("Say what this agent is for"))
        searches = (stretch(self.search), self.filters.button, self._preset_button(), LegendButton("agents.legend"))
        column_of(
            row_of(self.title, stretch(self.description), space=2, margins=(2, 1, 1, 0)),
            self.tally,
            row_of(*searches, space=2, margins=(2, 1, 1, 1)),
            row_of(stretch(self.sources), self.filters),
            stretch(self.view),
            stretch(self.nothing),
            into=self,
        )

    def _preset_button(self) -> QToolButton:
        self.preset_menu = QMenu(self)
        self.preset_menu.setToolTipsVisible(True)
        self.preset_menu.aboutToShow.connect(self._fill_presets)
        for key, icon in (("on", "circle-check"), ("off", "ban")):
            action = self._bulk[key] = QAction(self)
            action.setObjectName(f"agents.all_{key}")
            tie_icon(action, icon)
            action.triggered.connect(lambda _=False, on=key == "on": self.turn_shown(on=on))
        tip = tr("Give the agent a preset, or its rights to other agents; shows first what would change")
        button = named(QToolButton(), "agents.preset", spoken=tr("Start from a preset, copy rights"), tip=tip)
        button.setText(tr("Start from…") + " ")
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        button.setMenu(self.preset_menu)
        return button

    def _fill_presets(self) -> None:
        self.preset_menu.clear()
        self.preset_menu.addActions(list(self._bulk.values()))
        self.preset_menu.addSeparator()
        self.rights_menu.fill(self.preset_menu, (self._agent_id,))
        self.preset_menu.addSeparator()
        self.preset_menu.addAction(self.reset_action)

    def _connect(self) -> None:
        document, selection = self._document, self._selection
        document.closed.connect(self._let_go)
        document.opened.connect(self._show_agent)
        document.opened.connect(self._read_strangers)
        self.model.modelAboutToBeReset.connect(self._keep_rows)
        self.model.modelReset.connect(self._restore_rows)
        document.policy_changed.connect(self._policy_changed)
        document.problems_changed.connect(self._problems_changed)
        selection.agent_changed.connect(self._show_agent)
        selection.groups_folded.connect(self._show_groups)
        self.search.search_changed.connect(self._set_search)
        self.search.results_requested.connect(self._into_tree)
        self.search.leave_requested.connect(self.view.setFocus)
        self.filters.filters_changed.connect(partial(self._refilter, self.rows.set_filters))
        self.filters.cleared.connect(self.show_all)
        self.tally.fix_requested.connect(self._show_idle)
        self.nothing.action_requested.connect(self.show_all)
        self.view.current_changed.connect(self._row_changed)
        self.view.selectionModel().selectionChanged.connect(self._name_reset)
        self.view.group_folded.connect(self._fold)
        self.view.wish_requested.connect(self.wish)
        self.view.toggle_requested.connect(self.toggle)
        self.view.delegate.switched.connect(self._switch)
        self.view.delegate.mend_requested.connect(self._mend)
        self.view.delegate.files_requested.connect(self._show_files)
        self.view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.view.customContextMenuRequested.connect(self._open_menu)
        self.declaring.declared.connect(self.view.open_tool)
        self.description.editingFinished.connect(self._describe)
        self.sources.source_asked.connect(self._attach)

    # what is shown

    def _let_go(self) -> None:
        """Drop what is half typed of an agent that is gone: it is of nobody else."""
        self.description.setModified(False)
        self.first_row, self._kept_rows, self._opened_before = (None, None), (set(), (None, None)), set()
        self._show_agent()
        self._read_strangers()
        self.show_all()

    def _policy_changed(self, changes: ChangeSet) -> None:
        if changes.everything or changes.sources or self._selection.agent_id in changes.agents:
            self._show_agent()
        if changes.everything:
            self._read_strangers()

    def _read_strangers(self, _why: object = None) -> None:
        """Read how the operations of strangers' tools are found, if there are any; and what tools work on."""
        self.model.set_grounds(works_on(self._document))
        if any(map(is_strange, self._document.catalog)):
            self._context.tasks.start(self._ask_readings(), TASK_READINGS, replace=True)
        else:
            self.model.set_readings({})

    async def _ask_readings(self) -> None:
        found = await self._context.deriver.derive(readings)
        if found is not None:
            self.model.set_readings(found)
            self._row_changed()

    def _take_shares(self, found: Shares) -> None:
        self.model.set_shares(found)
        self.tell_row()

    def show_tokens(self, report: object) -> None:
        """Show what each tool costs; None while that is being counted."""
        if isinstance(report, TokenReport):
            self.model.set_tokens(report.by_tool, exact=report.exact)
        else:
            self.model.set_tokens({}, exact=True)

    def choose_tool(self, tool: str) -> None:
        """Make a tool's row the current one, unless it or one below it is."""
        if tool != self._selection.tool:
            self.choose_row(tool, None)

    def choose_row(self, tool: str, operation: str | None) -> None:
        """Make a row the current one, for which a filter that hides it is taken away; the keys stay where they are."""
        if not self.view.show_row(tool, operation):
            self.show_all()
            self.view.show_row(tool, operation)

    def _keep_rows(self) -> None:
        self._kept_rows = (self.view.open_names(), self.view.current_row)

    def _restore_rows(self) -> None:
        """Other operations of a tool make other rows: what was open and chosen is so again."""
        self._show_groups()
        opened, (tool, operation) = self._kept_rows
        if tool is not None:
            self.view.open_tools(opened)
            self.view.show_row(tool, operation)

    def _show_groups(self) -> None:
        """Open what is not closed; while a filter is set, all that has a row that fits."""
        more = () if self._shows_more else (MORE,)
        self.view.show_groups(() if self.rows.is_filtering else (*self._selection.closed_groups, *more))

    def _fold(self, origin: str, closed: bool) -> None:
        if origin == MORE:
            self._shows_more = not closed
        elif not self.rows.is_filtering:
            self._selection.fold_group(origin, closed=closed)

    def _show_agent(self, _why: object = None) -> None:
        """Show the rights of the chosen agent: at once, or as soon as they are worked out where that takes long."""
        agent_id = self._selection.agent_id or ""

        async def show_later() -> None:
            await self._document.work_out_rights(agent_id)
            self._show_rights(agent_id)

        self._context.tasks.cancel(TASK_RIGHTS)
        if self._document.has_rights(agent_id):
            self._show_rights(agent_id)
        else:
            self._context.tasks.start(show_later(), TASK_RIGHTS, replace=True)

    def _show_rights(self, agent_id: str) -> None:
        agent = self._document.policy.agents.get(agent_id)
        first, other = self.model.rowCount() == 0, agent_id != self._agent_id
        self._agent_id = agent_id if agent else ""
        sources = self._document.policy.sources_of(agent) if agent else ()
        self.shares.want((self._agent_id,) if agent else ())
        rights, enforced = self._document.rights(self._agent_id), self._document.rights_if_enforced(self._agent_id)
        self.model.set_agent(agent, rights, sources, self._document.policy.catalogs, enforced)
        self.setEnabled(agent is not None)
        name = agent.agent_id if agent else ""
        self.title.setText(line_text(self.title.fontMetrics(), name, _WIDEST_NAME, Qt.TextElideMode.ElideMiddle))
        self.title.setToolTip(tip_text(name))
        if not self.description.hasFocus() or not self.description.isModified():
            self.description.setText(agent.description if agent else "")
            self.description.setCursorPosition(0)
            self.description.setToolTip(tip_text(self.description.text()) or tr("Say what this agent is for"))
        self.tally.show_tally(self.model.tally)
        advice = advice_for(self._document.policy, agent, self.model.rights) if agent else None
        self.sources.show_agent(self._document.policy, agent, advice)
        self.filters.set_origins(right.facts.origin for right in self.model.rights)
        self._show_problems()
        if other:
            self._shows_more = False
            self._refilter(self.rows.refresh)
        else:
            self._show_shown()
        if first and self.model.rowCount():
            self._open_first()
        self._row_changed()

    def _show_problems(self) -> None:
        """Which tools have one, for the filter."""
        rights = {right.facts.name: right for right in self.model.rights}
        self.rows.set_problems(tools_with_problems(self._document.problems, self._agent_id, rights))

    def _problems_changed(self, _problems: object) -> None:
        self._show_problems()
        self.tell_row()

    def _open_first(self) -> None:
        if self.model.rowCount() <= 12:
            self.view.expandAll()
            self._show_groups()
        self._opened_before = self.view.open_names()
        tool, operation = self.first_row
        if not tool or not self.view.show_row(tool, operation):
            self.view.choose_first()

    def show_row(self, tool: str, operation: str | None) -> None:
        """Bring a row into view and give it the keys."""
        self.choose_row(tool, operation)
        self.view.setFocus()

    def show_group(self, origin: str) -> None:
        """Make the row of a group the current one."""
        index = self.rows.group_index(origin)
        if index.isValid():
            self.view.setCurrentIndex(index)

    def show_all(self) -> None:
        """No filter."""
        self.search.clear()
        self.filters.set_filters(NO_FILTERS)

    def _show_idle(self) -> None:
        """Give the first tick without effect the keys."""
        found = (right for right in self.model.rights if right.ticked - right.shown)
        if (right := next(found, None)) is not None:
            operation = next((row.operation for row in right.operations if row.is_overruled), "")
            self.show_row(right.facts.name, operation or None)

    def _set_search(self, text: str) -> None:
        self.view.delegate.searched = tuple(text.lower().split())
        self._refilter(self.rows.set_search, text)
        self.view.viewport().update()

    def _refilter(self, change: Callable[..., None], *wanted: object) -> None:
        tool, operation = self._selection.tool, self._selection.operation
        if not self.rows.is_filtering:
            self._opened_before = self.view.open_names()
        self._is_filling = True  # rows that are current for a moment are nobody's choice
        try:
            change(*wanted)
            self.view.open_tools(self._opened_before)
            self._show_groups()
            if self.rows.is_filtering and self.rows.tool_count <= 50:
                self.view.expandAll()
            if tool and not self.view.show_row(tool, operation) and self.rows.tool_count:
                self.view.choose_first()
        finally:
            self._is_filling = False
        self._row_changed()
        empty = self.rows.rowCount() == 0 and self.model.rowCount() > 0
        self.nothing.setVisible(empty)
        self.view.setVisible(not empty)
        self._show_shown()

    def _show_shown(self) -> None:
        filtering = self.rows.is_filtering
        shown = self.rows.shown_count if filtering else 0
        on, off = tr("Turn on all"), tr("Turn off all")
        if filtering:
            on, off = tr("Turn on the {count:,} shown", count=shown), tr("Turn off the {count:,} shown", count=shown)
        self._bulk["on"].setText(on)
        self._bulk["off"].setText(off)
        self.filters.show_count(shown, self.model.tally.every, is_filtering=self.rows.is_filtering)

    def _into_tree(self) -> None:
        self.view.setFocus()
        if not self.view.currentIndex().isValid():
            self.view.choose_first()

    def _row_changed(self) -> None:
        tool, operation = self.view.current_row
        if self._is_filling or (tool is None and self.rows.is_filtering and self.model.rowCount()):
            return  # nothing fits for the moment: what is chosen stays
        self._selection.choose_tool(tool, operation)
        self.tell_row()
        right = self.model.right_of(self.model.index_of(tool, None)) if tool is not None else None
        self.declaring.show_tool(right[0].facts if right else None, self.model.reading_of(tool or ""))

    def tell_row(self) -> None:
        """Tell all that is known of the current row now."""
        tool, operation = self.view.current_row
        index = self.view.currentIndex()
        found = self.model.right_of(self.model.index_of(tool, operation)) if tool is not None else None
        agent, group = self._document.policy.agents.get(self._agent_id), self.rows.group_at(index)
        if found is None:
            named = ShownRow(agent, group=group.words, origin=group.origin) if group is not None else ShownRow(agent)
            self.row_shown.emit(named)
            return
        right, row = found
        name = right.facts.name
        ground = self.model.ground_of(name).partition(":")[0].replace("`", "")
        noted, reading = self.model.note_at(right, row), self.model.reading_of(name)
        self.row_shown.emit(
            ShownRow(agent, right, row, index.data(SHARE), noted, reading, ground=ground, origin=right.facts.origin)
        )

    # what is asked for

    def tick_tool(self, tool: str, on: bool) -> bool:
        """Tick a tool, or take its tick away."""
        from gatewright_gui.session.verbs import rights as verbs

        return verbs.tick_tool(self._document, self._agent_id, tool, on=on)

    def tick_operation(self, tool: str, operation: str, on: bool) -> bool:
        """Tick an operation, or take its tick away."""
        from gatewright_gui.session.verbs import rights as verbs

        return verbs.tick_operations(self._document, self._agent_id, tool, (operation,), on=on)

    def tick_many(self, operations: Mapping[str, Sequence[str]], on: bool) -> bool:
        """Tick operations of several tools as they were before, or take their ticks away."""
        from gatewright_gui.session.verbs.rights import Target

        targets = tuple(Target(tool, tuple(names)) for tool, names in operations.items())
        self._many.edit(self._agent_id, targets, "again" if on else "off")
        return bool(targets)

    @cached_property
    def _many(self) -> "ManyRights":
        from gatewright_gui.session.verbs.rights import ManyRights

        return ManyRights(self._document, self._context.deriver, self._context.tasks)

    def wish(self, wanted: "Wish") -> None:
        """Turn on, make ask first, turn off what is selected; what asks first already, all of it, no longer does."""
        targets = self.view.targets()
        rights = self._document.rights(self._agent_id)
        if wanted == "ask" and targets and all(_asks(rights[target.tool], target) for target in targets):
            wanted = "allow"
        self._many.edit(self._agent_id, targets, wanted)

    def toggle(self) -> None:
        """Space: tick or untick as the current row's box says; all that is selected goes with it."""
        index = self.view.currentIndex().siblingAtColumn(0)
        if index == self.rows.group_index(MORE):
            self.view.setExpanded(index, not self.view.isExpanded(index))
            return
        targets = self.view.targets()
        if not index.isValid() or not targets:
            return
        state = Qt.CheckState(index.data(Qt.ItemDataRole.CheckStateRole))
        if len(self.view.selectionModel().selectedRows()) == 1:
            wanted = Qt.CheckState.Unchecked if state == Qt.CheckState.Checked else Qt.CheckState.Checked
            self.rows.setData(index, wanted, Qt.ItemDataRole.CheckStateRole)
            return
        self._many.edit(self._agent_id, targets, "again" if state == Qt.CheckState.Unchecked else "off")

    def _switch(self, index: QModelIndex, asks: bool) -> None:
        """Make a row ask first or not; nothing where it is so already. What another layer decides is said."""
        from gatewright_gui.session.verbs import rights as verbs

        tool, operation = str(index.data(TOOL)), index.data(OPERATION)
        found = self.model.right_of(self.model.index_of(tool, operation))
        now = switch_of(*found) if found is not None else None
        if now is None or now is (Switch.ASK if asks else Switch.ON) or (asks and now is Switch.LOCKED):
            return
        verbs.ask_first(self._document, self._agent_id, tool, operation or "", on=asks)

    def _mend(self, index: QModelIndex) -> None:
        """Take the way out of a row that has no effect."""
        found = self.model.right_of(self.model.index_of(str(index.data(TOOL)), index.data(OPERATION)))
        way = index.data(MEND)
        if found is None or way is None:
            return
        reason = stop_of(*found)
        if way == Mend.GRANT:
            self._grant(*found)
        elif way == Mend.SOURCE:
            self.sources.button.showMenu()
        elif reason is not None and reason.address is not None:
            self._context.navigator.go_to_policy_rule(int(reason.address[2]))

    def _grant(self, tool: ToolRight, operation: OperationRight | None) -> None:
        """Grant what a row lacks: at once where its reach is known, else by the form of the tab Rules."""
        from gatewright_gui.session.verbs import agents

        rows = (operation,) if operation is not None else tool.operations
        kind = agents.lacking_kind(self._document, self._agent_id, tool, rows)
        scope = agents.ready_scope(self._document, kind) if kind is not None else None
        if kind is not None and scope is not None:
            agents.grant(self._document, self._agent_id, kind, scope)
        elif kind is not None:
            self._context.navigator.ask_for_grant(self._agent_id, kind)

    def turn_shown(self, *, on: bool) -> None:
        """All that the filter shows on or off."""
        from gatewright_gui.session.verbs.rights import Target

        targets = tuple(Target(tool, operations) for tool, operations in self.rows.operations_that_fit().items())
        self._many.edit(self._agent_id, targets, "on" if on else "off")

    def _name_reset(self, _selected: object = None, _deselected: object = None) -> None:
        """Say of what the overrides would be cleared."""
        tool, _ = self.view.current_row
        words = tr("the selected tools") if self.view.selected_count > 1 else tool or ""
        self.reset_action.setText(button_text(tr("Clear overrides of {tools}…", tools=words) if words else tr(_RESET)))
        tip = tr("Give {tools} their defaults again; shows first what would change", tools=words) if words else ""
        self.reset_action.setToolTip(tip_text(tip))
        self.reset_action.setEnabled(bool(words))

    def reset(self) -> None:
        """Ask whether the selected tools are to have their own defaults again."""
        self.rights_menu.open_reset(self._agent_id, [target.tool for target in self.view.targets()])

    def _show_files(self, index: QModelIndex) -> None:
        self._context.navigator.go_to_files(self._agent_id, index.data(TOOL), index.data(OPERATION) or "")

    def _try(self, tool: str, operation: str | None) -> None:
        self._context.navigator.go_to_call(self._agent_id, tool, operation)

    def _describe(self) -> None:
        from gatewright_gui.session.verbs import agents as agent_verbs

        agent_id = self._agent_id
        if agent_id and self.description.isModified():
            self.description.setModified(False)
            agent_verbs.describe_agent(self._document, agent_id, self.description.text().strip())

    def _attach(self, source_id: str | None, on: bool) -> None:
        from gatewright_gui.session.verbs import agents as agent_verbs

        if source_id is None:
            agent_verbs.attach_every_source(self._document, self._agent_id, on=on)
        else:
            agent_verbs.attach_source(self._document, self._agent_id, source_id, on=on)

    def _open_menu(self, at: QPoint) -> None:
        menu = popup_menu(self)
        if way := mend_words(self.view.currentIndex()):
            add_action(menu, way, partial(self._mend, self.view.currentIndex()), name="agents.mend", icon="key-round")
            menu.addSeparator()
        add_action(menu, tr("On") + "\tAlt+A", partial(self.wish, "allow"), icon="circle-check")
        add_action(menu, tr("Ask first") + "\tAlt+K", partial(self.wish, "ask"), icon="hand")
        add_action(menu, tr("Off") + "\tAlt+D", partial(self.wish, "deny"), icon="ban")
        self._offer_catalog(menu)
        menu.addSeparator()
        add_action(menu, tr("Clear overrides…"), self.reset, icon="rotate-ccw")
        menu.addSeparator()
        add_action(menu, tr("Select all shown") + "\tCtrl+A", self.view.selectAll)
        add_action(menu, tr("Invert selection") + "\tCtrl+I", self.view.invert_selection)
        self.declaring.fill(menu)
        tool, operation = self.view.current_row
        if tool is not None:
            menu.addSeparator()
            go = partial(self._try, tool, operation)
            add_action(menu, tr("Try a call"), go, name="agents.try", icon="terminal")
            if any(row.name == tool for row in self._document.policy.compositions):
                go = partial(self._context.navigator.go_to_composition, tool)
                add_action(menu, tr("Edit steps"), go, name="agents.steps", icon="list")
            if self.view.currentIndex().data(SHARE) is not None:
                go = partial(self._show_files, self.view.currentIndex())
                add_action(menu, tr("Show matching files"), go, name="agents.files", icon="folder-tree")
        menu.popup(self.view.viewport().mapToGlobal(at))

    def _offer_catalog(self, menu: QMenu) -> None:
        """Offer all tools of the catalog of the current row, later ones too."""
        from gatewright_gui.session.verbs import agents as agent_verbs

        agent, (tool, _) = self._document.policy.agents.get(self._agent_id), self.view.current_row
        found = self.model.right_of(self.model.index_of(tool, None)) if tool is not None else None
        group = self.rows.group_at(self.view.currentIndex())
        origin = found[0].facts.origin if found is not None else group.origin if group is not None else ""
        if agent is None or self._document.policy.catalog(origin) is None:
            return
        is_on = selector_of(origin) in (agent.tools or ())
        act = partial(agent_verbs.list_catalog, self._document, self._agent_id, origin, on=not is_on)
        text = button_text(tr("All of {catalog}, later tools too", catalog=origin))
        add_action(menu, text, act, name="agents.whole_catalog", ticked=is_on)


def _asks(right: ToolRight, target: "Target") -> bool:
    """Tell whether each of these operations asks first, and only by the approvals of the agent."""
    rows = (row for row in right.operations if row.operation in target.operations)
    return all(operation_asking(row) is Asking.YES for row in rows)
