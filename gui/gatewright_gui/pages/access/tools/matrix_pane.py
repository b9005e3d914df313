"""The matrix with its search fields and what is said of the current cell. It calls verbs, nothing else."""

import asyncio
from collections.abc import Iterable, Sequence

from PySide6.QtCore import QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QStackedWidget, QWidget

from gatewright.workspace.api import Reason
from gatewright_gui.pages.access.tools.matrix import MatrixModel, Place
from gatewright_gui.pages.access.tools.matrix_paint import MatrixLegend
from gatewright_gui.pages.access.tools.matrix_view import Block, MatrixView
from gatewright_gui.pages.access.tools.notes import Note, notes_of, observation_notes
from gatewright_gui.pages.access.tools.row_state import operation_reasons, tool_reasons
from gatewright_gui.pages.access.tools.share_counter import ShareCounter
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, named, row_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.menu import add_action, popup_menu
from gatewright_gui.qt.widget.button import IconButton, WordButton
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.label import ElidedLabel, Label
from gatewright_gui.qt.widget.text_field import SearchField
from gatewright_gui.session.observed import note_rows, note_tool
from gatewright_gui.session.path_share import Shares
from gatewright_gui.session.right_columns import Cell
from gatewright_gui.session.right_grid import RightGrid
from gatewright_gui.session.verbs import rights as verbs
from gatewright_gui.session.verbs.rights import Target, Tick, Wish

FOLLOW_S = 0.06
"""The preview follows when the current cell has stood still so long: keys that are held down do not wait for it."""
FOLLOW = "agents.matrix.follow"
SHARES = "agents.matrix.shares"
ABOUT = mark("What each agent can do with each tool. Click a box to change it, beside it to see why.")
NO_AGENTS = ("users", mark("No agents"), mark("Add an agent in the tree view; every agent is a column here."))
NOTHING_FITS = ("search", mark("Nothing fits"), mark("No tool, operation or agent fits the search."))


class MatrixPane(QWidget):
    """Tools by agents. What is chosen is told by signals; what was chosen elsewhere comes in by `show_cell`."""

    cell_chosen = Signal(object, object)
    """Agent id, Place: the current cell."""
    row_requested = Signal(object, object)
    """Agent id, Place: the row of the tree is wanted."""

    def __init__(self, context: PageContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context, self._document = context, context.document
        self.grid = RightGrid(context.document, context.selection, context.deriver, context.tasks, self)
        self.model = MatrixModel(self.grid, self._reasons, self)
        self.view = MatrixView(self.model)
        self.shares = ShareCounter(context, self._take_shares, self, SHARES)
        self.search = named(SearchField(tr("Filter tools and operations")), "agents.matrix.search")
        self.agent_search = named(SearchField(tr("Filter agents")), "agents.matrix.agents.field")
        tip = tr("Only rows in which the agents shown differ")
        self.differs = named(WordButton(tr("Differences")), "agents.matrix.differs", tip=tip)
        tie_icon(self.differs, "diff")
        open_all = IconButton("chevrons-up-down", tr("Open every tool (+ on a selection)"))
        self.open_all = named(open_all, "agents.matrix.open_all")
        close_all = IconButton("chevrons-down-up", tr("Close every tool (- on a selection)"))
        self.close_all = named(close_all, "agents.matrix.close_all")
        self.said = named(ElidedLabel(role="text"), "agents.matrix.said")
        self.note = named(Label(), "agents.matrix.note", kind="muted")
        self.nothing = EmptyState(*NOTHING_FITS, action=tr("Show all"))
        searches = (stretch(self.search, 3), stretch(self.agent_search, 2))
        buttons = (self.differs, self.open_all, self.close_all)
        self.controls = row_of(*searches, *buttons, space=2, margins=(2, 1, 1, 1))
        self._stack = QStackedWidget()
        self._want_soon = QTimer(self, singleShot=True, interval=0)
        """So that what opening, fitting and scrolling ask for is asked once, and apart from them."""
        self._kept: tuple[str | None, Place | None] = (None, None)
        self._lay_out()
        self._connect()

    def _lay_out(self) -> None:
        self.differs.setCheckable(True)
        self._stack.addWidget(self.view)
        self._stack.addWidget(self.nothing)
        foot = row_of(stretch(self.said), self.note, space=3, margins=(2, 1))
        about = row_of(
            stretch(named(Label(tr(ABOUT), wraps=True), "agents.matrix.about", kind="muted")), margins=(2, 1)
        )
        column_of(about, self.controls, stretch(self._stack), MatrixLegend(), foot, into=self)

    def _connect(self) -> None:
        view, selection = self.view, self._context.selection
        self._document.closed.connect(self._let_go)
        self._document.opened.connect(self._refresh)
        self._document.policy_changed.connect(self._refresh)
        self.grid.columns_changed.connect(self._columns_came)
        self.model.modelAboutToBeReset.connect(self._keep)
        self.model.modelReset.connect(self._restore)
        self.model.group_folded.connect(self._fold)
        selection.groups_folded.connect(lambda: self.model.close_groups(selection.closed_groups))
        self.model.close_groups(selection.closed_groups)
        self.search.search_changed.connect(self.model.search_tools)
        self.agent_search.search_changed.connect(self.model.search_agents)
        for field in (self.search, self.agent_search):
            field.results_requested.connect(self.focus_cells)
            field.leave_requested.connect(self.focus_cells)
        self.differs.toggled.connect(self.model.show_only_differing)
        self.differs.toggled.connect(self._want_soon.start)
        self.open_all.clicked.connect(lambda: self.model.set_all_open(on=True))
        self.close_all.clicked.connect(lambda: self.model.set_all_open(on=False))
        self.nothing.action_requested.connect(self.show_all)
        view.view_changed.connect(self._want_soon.start)
        self._want_soon.timeout.connect(self._want)
        view.current_changed.connect(self._follow)
        view.current_changed.connect(self._say)
        view.selectionModel().selectionChanged.connect(self._count)
        view.wish_requested.connect(self.edit)
        view.toggle_requested.connect(self.toggle)
        view.row_requested.connect(self._ask_row)
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        view.customContextMenuRequested.connect(self._open_menu)

    # what is shown

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        """Bring up to date what was put off while nobody looked."""
        super().showEvent(event)
        self._refresh()
        self.shares.look_again()

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802
        """Nobody looks: nothing is worked out."""
        super().hideEvent(event)
        self._context.tasks.cancel(FOLLOW)
        self.grid.want(())
        self.shares.want(())

    def _let_go(self) -> None:
        self._kept = (None, None)
        self.show_all()
        self.model.set_agents(())

    def _refresh(self, _changes: object = None) -> None:
        if self.isVisible():
            self.model.set_agents(self._document.agents)
            self._want_soon.start()
            self._judge()
            self._say()

    def _want(self) -> None:
        """Columns in view first; for differences all of them."""
        if self.isVisible():
            seen = self.view.agents_in_view()
            rest = [agent.agent_id for agent in self.model.agents] if self.differs.isChecked() else []
            self.grid.want(dict.fromkeys((*seen, *rest)))
            self.shares.want(seen, self.view.tools_in_view())
            self._count()

    def _columns_came(self, agent_ids: Iterable[str | None]) -> None:
        self.model.refresh_differing()
        self._count()
        if self.view.current_agent in frozenset(agent_ids):
            self._say()

    def _take_shares(self, agent_id: str, tools: frozenset[str] | None, found: Shares) -> None:
        self.model.take_shares(agent_id, tools, found)
        if agent_id == self.view.current_agent:
            self._say()

    def show_all(self) -> None:
        """No filter."""
        self.search.clear()
        self.agent_search.clear()
        self.differs.setChecked(False)

    def show_cell(self, agent_id: str | None, place: Place | None) -> None:
        """Make a cell the current one, if it is shown, or once the rows come; the keys stay where they are."""
        if (agent_id, place) == (self.view.current_agent, self.view.current_place):
            return
        if not self.view.show_cell(agent_id, place) and not self.model.rowCount():
            self._kept = (agent_id, place)

    def choose_none(self) -> None:
        """Leave no cell chosen."""
        self._kept = (None, None)
        self.view.selectionModel().clear()
        self._say()

    def focus_cells(self) -> None:
        """Give the keys to the cells."""
        self.view.setFocus(Qt.FocusReason.OtherFocusReason)
        if not self.view.currentIndex().isValid():
            self.view.setCurrentIndex(self.model.index(0, 0))

    def _fold(self, origin: str, closed: bool) -> None:
        self._context.selection.fold_group(origin, closed=closed)

    def _keep(self) -> None:
        if self.view.currentIndex().isValid():
            self._kept = (self.view.current_agent, self.view.current_place)

    def _restore(self) -> None:
        agent_id, place = self._kept
        if not self.view.show_cell(agent_id, place) and place is not None and self.model.agents:
            found = self.view.show_cell(self.model.agents[0].agent_id, place)
            if not found and self.model.rowCount():  # what was chosen does not fit: the first that does
                self.view.setCurrentIndex(self.model.index(0, max(self.model.column_of(agent_id), 0)))
        self._judge()
        self._say()

    def _judge(self) -> None:
        """Cells, or why there are none."""
        empty = not self.model.rowCount() or not self.model.agents
        if empty and not self.model.every_agent:
            self.nothing.set_state(*NO_AGENTS)
        elif empty:
            self.nothing.set_state(*NOTHING_FITS, action=tr("Show all"))
        self._stack.setCurrentWidget(self.nothing if empty else self.view)
        self._count()

    def _count(self) -> None:
        wanted, done = self.grid.progress
        cells = sum((block.bottom - block.top + 1) * (block.right - block.left + 1) for block in self.view.blocks())
        every, shown = len(self.grid.layout.tools), self.model.tool_count
        agents, seen = len(self.model.every_agent), len(self.model.agents)
        if cells > 1:
            self.note.setText(tr("{count:,} cells selected", count=cells))
        elif done < wanted:
            agents = counted(wanted, "agent", "agents")
            self.note.setText(tr("{count:,} of {agents} in view worked out", count=done, agents=agents))
        else:
            parts = (
                _of(shown, counted(every, "tool", "tools"), every),
                _of(seen, counted(agents, "agent", "agents"), agents),
            )
            self.note.setText(", ".join(parts))

    def _say(self) -> None:
        index = self.view.currentIndex()
        words, whole = (index.data(role) for role in (Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.ToolTipRole))
        self.said.set_text(words or "", whole or "")

    def _reasons(self, agent_id: str, tool: str, operation: str | None) -> Sequence[Reason | Note]:
        policy, right = self._document.policy, self._document.rights(agent_id).get(tool)
        if right is None:
            return ()
        row = next((row for row in right.operations if row.operation == operation), None)
        reasons = tool_reasons(right) if row is None else operation_reasons(row)
        rows = note_rows(right, self._document.rights_if_enforced(agent_id).get(tool))
        one = note_tool(rows) if row is None or not rows else rows[right.operations.index(row)]
        agent = policy.agents[agent_id]
        return (
            *observation_notes(policy, agent, right.facts, one),
            *reasons,
            *notes_of(policy, agent, right, operation),
        )

    # what is asked for

    def edit(self, wanted: Wish | Tick) -> None:
        """Allow, ask or deny what is selected."""
        cells = self.cell_choice()
        if cells:
            verbs.edit_cells(self._document, self._context.deriver, self._context.tasks, cells, wanted)

    def toggle(self) -> None:
        """Turn all that is selected off where the current cell has something on, else on."""
        here = self.view.currentIndex()
        on = self.model.is_on(here.row(), here.column()) if here.isValid() else None
        if on is not None:
            self.edit("off" if on else "again")

    def cell_choice(self) -> dict[str, Sequence[Target]]:
        """By agent what is selected; a tool stands for all its operations."""
        found: dict[str, Sequence[Target]] = {}
        for block in self.view.blocks():
            targets = self._targets(block)
            for agent in self.model.agents[block.left : block.right + 1]:
                held = found.get(agent.agent_id)
                found[agent.agent_id] = targets if held is None else _merge((*held, *targets))
        return {agent_id: kept for agent_id, held in found.items() if (kept := self._there(agent_id, held))}

    def _targets(self, block: Block) -> Sequence[Target]:
        found: list[Target] = []
        for row in range(block.top, block.bottom + 1):
            tool, place, group = self.model.tool_at(row), self.model.place_at(row), self.model.group_at(row)
            if group is not None and (row == block.bottom or self.model.tool_at(row + 1) is None):
                # beside tools of its own that are selected its row stands for nothing more
                tools = (one for one in self.model.tools_of(group) if not one.is_held)
                found += [Target(one.name, one.operations) for one in tools]
            if tool is not None and place is not None:
                found.append(Target(tool.name, tool.operations if place.operation is None else (place.operation,)))
        return _merge(found)

    def _there(self, agent_id: str, targets: Sequence[Target]) -> Sequence[Target]:
        """Without operations that the agent's version of a tool has not."""
        column = self.grid.column(agent_id)
        if column is None or Cell.MISSING not in column.cells:
            return targets
        tools = {tool.name: tool for tool in self.grid.layout.tools}
        kept = (
            Target(
                target.tool,
                tuple(
                    name
                    for place, name in enumerate(tools[target.tool].operations, tools[target.tool].start)
                    if name in target.operations and column.cells[place] != Cell.MISSING
                ),
            )
            for target in targets
        )
        return tuple(target for target in kept if target.operations)

    def _follow(self) -> None:
        async def tell_soon() -> None:
            await asyncio.sleep(FOLLOW_S)
            if self.view.current_agent is not None and self.view.current_place is not None:
                self.cell_chosen.emit(self.view.current_agent, self.view.current_place)

        self._context.tasks.start(tell_soon(), FOLLOW, replace=True)

    def _ask_row(self) -> None:
        if self.view.current_agent is not None and self.view.current_place is not None:
            self.row_requested.emit(self.view.current_agent, self.view.current_place)

    def _open_menu(self, at: QPoint) -> None:
        menu = popup_menu(self)
        rows = (
            (tr("On") + "\tAlt+A", "circle-check", lambda: self.edit("allow")),
            (tr("Ask first") + "\tAlt+K", "hand", lambda: self.edit("ask")),
            (tr("Off") + "\tAlt+D", "ban", lambda: self.edit("deny")),
            (tr("Show in the tree") + "\tEnter", "list", self._ask_row),
            (tr("Copy") + "\tCtrl+C", "copy", self.view.copy_chosen),
        )
        for number, (text, icon, run) in enumerate(rows):
            if number == 3:
                menu.addSeparator()
            add_action(menu, text, run, icon=icon)
        menu.popup(self.view.viewport().mapToGlobal(at))


def _merge(targets: Iterable[Target]) -> Sequence[Target]:
    """One target for each tool, its operations in the order in which they came."""
    found: dict[str, dict[str, None]] = {}
    for target in targets:
        found.setdefault(target.tool, {}).update(dict.fromkeys(target.operations))
    return tuple(Target(tool, tuple(operations)) for tool, operations in found.items())


def _of(shown: int, words: str, every: int) -> str:
    return words if shown == every else tr("{count:,} of {things}", count=shown, things=words)
