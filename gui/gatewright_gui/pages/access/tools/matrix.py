"""Tools and their operations as rows, agents as columns: a table in which the row of a tool or a group can be opened.

It is a table and not a tree, so that both headers stay where they are when the cells scroll. Over 450 lines, because
every method of the model answers for the same rows and columns.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, Qt, Signal

from gatewright.workspace.api import Agent, Reason, frozen
from gatewright_gui.pages.access.agents import agent_fits
from gatewright_gui.pages.access.tools.matrix_words import long_words, short_words
from gatewright_gui.pages.access.tools.notes import Note
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.table_model import Index
from gatewright_gui.session.path_share import Share, Shares
from gatewright_gui.session.right_columns import (
    OPERATION_CELLS,
    Cell,
    GridLayout,
    GridTool,
    OperationCell,
    Summary,
    differing,
    sum_cells,
    summary_of,
    texts_of,
)
from gatewright_gui.session.right_grid import RightGrid
from gatewright_gui.session.tool_groups import ToolGroup

Why = Callable[[str, str, str | None], Sequence[Reason | Note]]
"""The reasons of an agent's tool or of one of its operations, and what limits its calls."""
MOST_OPENED = 50
"""A search that finds no more tools than this opens them."""
MOST_REASONS = 8


@frozen
class Place:
    """A row: a tool, one of its operations, or, without a tool, the group of this origin."""

    tool: str
    operation: str | None
    origin: str = ""

    @property
    def words(self) -> str:
        """The words for what is named."""
        return f"{self.tool} > {self.operation}" if self.operation else self.tool or self.origin


GROUP = -2
"""In the place of an operation: the row of a group."""


class MatrixModel(QAbstractTableModel):
    """Rows are the tools that fit the search, each followed by its operations while it is open.

    Where tools come from several places, those of each stand below a row of their group while that is open.
    """

    group_folded = Signal(str, bool)
    """The origin of a group that is to be closed (True) or opened."""

    def __init__(self, grid: RightGrid, why: Why, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._grid, self._why = grid, why
        self._layout = GridLayout()
        """What the rows are rows of: the grid's own may be another one already, until the views were told."""
        self._every_agent: tuple[Agent, ...] = ()
        self._agents: tuple[Agent, ...] = ()
        self._columns: dict[str, int] = {}
        self._heads: list[int] | None = None
        """The rows of groups, from the top; None: to be found again."""
        self._rows: list[tuple[int, int]] = []
        """Number of the tool in the layout, number of the operation, -1 for the tool; `GROUP` and the first tool."""
        self._groups: dict[str, list[GridTool]] = {}
        """By origin the tools that fit; empty where there are no groups."""
        self._open: set[str] = set()
        self._closed_groups: frozenset[str] = frozenset()
        self._tool_count = 0
        self._words: tuple[str, ...] = ()
        self._agent_words: tuple[str, ...] = ()
        self._only_differing = False
        self._differing = b""
        self._shares: dict[str, Shares] = {}
        """By agent, as far as they were counted."""
        grid.columns_changed.connect(self._tell)
        grid.layout_changed.connect(self._set_rows)

    # what is shown

    @property
    def agents(self) -> tuple[Agent, ...]:
        """The agents that are shown, from the left."""
        return self._agents

    @property
    def every_agent(self) -> tuple[Agent, ...]:
        """Those that the search leaves out too."""
        return self._every_agent

    @property
    def tool_count(self) -> int:
        """The number of tools that fit, those of closed groups too."""
        return self._tool_count

    @property
    def is_filtering(self) -> bool:
        """Tell whether rows may be left out."""
        return bool(self._words) or self._only_differing

    def set_agents(self, agents: Sequence[Agent]) -> None:
        """One column each, in this order."""
        before, self._every_agent = self._every_agent, tuple(agents)
        if [agent.agent_id for agent in before] == [agent.agent_id for agent in agents]:
            self._agents = self._fitting_agents()
            if self._agents:
                self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(self._agents) - 1)
            return
        self._set_columns()

    def search_agents(self, text: str) -> None:
        """Every word has to be in the name or the description."""
        self._agent_words = tuple(text.casefold().split())
        self._set_columns()

    def close_groups(self, origins: frozenset[str]) -> None:
        """Show nothing below these groups; while rows may be left out, all groups are open."""
        if origins != self._closed_groups:
            self._closed_groups = origins
            self._set_rows()

    def search_tools(self, text: str) -> None:
        """Every word has to be in the names or the description of a tool or of an operation."""
        self._words = tuple(text.casefold().split())
        self._set_rows()

    def show_only_differing(self, only: bool) -> None:
        """Only rows in which the agents that are known are not all alike, in what they may or in what limits it."""
        self._only_differing = only
        self._set_rows()

    def refresh_differing(self) -> None:
        """Look again which rows differ: columns came."""
        if self._only_differing and self._different() != self._differing:
            self._set_rows()

    def _fitting_agents(self) -> tuple[Agent, ...]:
        return tuple(agent for agent in self._every_agent if agent_fits(agent, self._agent_words))

    def _set_columns(self) -> None:
        self.beginResetModel()
        self._agents = self._fitting_agents()
        self._columns = {agent.agent_id: column for column, agent in enumerate(self._agents)}
        self.endResetModel()
        self.refresh_differing()

    def _different(self) -> bytes:
        known = self._grid.known
        return differing(known[agent.agent_id] for agent in self._agents if agent.agent_id in known)

    def _set_rows(self) -> None:
        self.beginResetModel()
        self._layout = self._grid.layout
        self._differing = self._different() if self._only_differing else b""
        tools = self._layout.tools
        found = [(number, tool, fitting) for number, tool in enumerate(tools) if (fitting := self._fitting(tool))]
        if self._words and len(found) <= MOST_OPENED:
            self._open |= {tool.name for _, tool, _ in found}
        self._heads, self._rows, self._groups, self._tool_count = None, [], {}, len(found)
        for number, tool, fitting in found:
            if self._layout.is_grouped:
                if tool.origin not in self._groups:
                    self._rows.append((number, GROUP))
                self._groups.setdefault(tool.origin, []).append(tool)
                if self._is_closed(tool.origin):
                    continue
            self._rows.append((number, -1))
            if tool.name in self._open and tool.has_operations:
                self._rows += [(number, op) for op in fitting]
        self.endResetModel()

    def _fitting(self, tool: GridTool) -> Sequence[int]:
        """The operations of the tool that are shown when it is open; none: the tool is not shown."""
        fitting: Sequence[int] = range(len(tool.operations))
        if self._words and not all(word in texts_of(tool)[-1] for word in self._words):
            fitting = [op for op in fitting if all(word in texts_of(tool)[op] for word in self._words)]
        if self._only_differing:
            differ = self._differing[tool.start : tool.start + len(tool.operations)]
            fitting = [op for op in fitting if op < len(differ) and differ[op]]
        return fitting

    def _is_closed(self, origin: str) -> bool:
        return origin in self._closed_groups and not self.is_filtering

    # rows

    @property
    def is_grouped(self) -> bool:
        """Tell whether there are rows of groups."""
        return bool(self._groups)

    def group_at(self, row: int) -> ToolGroup | None:
        """The group of a row that is one."""
        is_one = 0 <= row < len(self._rows) and self._rows[row][1] == GROUP
        return self._grid.group_of(self._layout.tools[self._rows[row][0]].origin) if is_one else None

    def tools_of(self, group: ToolGroup) -> Sequence[GridTool]:
        """The tools of a group that fit."""
        return self._groups.get(group.origin, ())

    def tool_at(self, row: int) -> GridTool | None:
        """The tool of a row or of the row's operation; None for a group."""
        is_one = 0 <= row < len(self._rows) and self._rows[row][1] != GROUP
        return self._layout.tools[self._rows[row][0]] if is_one else None

    def place_at(self, row: int) -> Place | None:
        """The place of the row."""
        tool, group = self.tool_at(row), self.group_at(row)
        if tool is None:
            return Place("", None, group.origin) if group is not None else None
        op = self._rows[row][1]
        return Place(tool.name, tool.operations[op] if op >= 0 else None)

    def row_of(self, place: Place) -> int:
        """The row of a place; of its tool or its group when that alone is shown; -1 when neither is."""
        names = [tool.name for tool in self._layout.tools]
        if place.tool not in names:
            return self._row_of_group(place.origin)
        number = names.index(place.tool)
        first = bisect_left(self._rows, (number, -1))
        if first == len(self._rows) or self._rows[first] != (number, -1):
            tool = self._layout.tools[number]
            return self._row_of_group(tool.origin) if tool in self._groups.get(tool.origin, ()) else -1
        operations = self._layout.tools[number].operations
        if place.operation in operations:
            wanted = (number, operations.index(place.operation))
            row = bisect_left(self._rows, wanted)
            if row < len(self._rows) and self._rows[row] == wanted:
                return row
        return first

    def _row_of_group(self, origin: str) -> int:
        tools = self._layout.tools
        return next((row for row in self._group_rows if tools[self._rows[row][0]].origin == origin), -1)

    @property
    def _group_rows(self) -> list[int]:
        if self._heads is None:
            self._heads = [row for row, (_, op) in enumerate(self._rows) if op == GROUP]
        return self._heads

    def group_row_of(self, row: int) -> int:
        """The row of the group that a row belongs to; -1 where there are none."""
        heads = self._group_rows
        return heads[bisect_right(heads, row) - 1] if heads and row >= 0 else -1

    def column_of(self, agent_id: str | None) -> int:
        """The column of an agent, -1 when it is not shown."""
        return self._columns.get(agent_id or "", -1)

    def agent_at(self, column: int) -> Agent | None:
        """The agent of a column."""
        return self._agents[column] if 0 <= column < len(self._agents) else None

    def can_open(self, row: int) -> bool:
        """Tell whether the row is a group, or a tool with operations."""
        tool = self.tool_at(row)
        return self.group_at(row) is not None or (tool is not None and tool.has_operations and self._rows[row][1] < 0)

    def is_open(self, row: int) -> bool:
        """Tell whether what belongs to the row is shown below it."""
        tool, group = self.tool_at(row), self.group_at(row)
        if group is not None:
            return not self._is_closed(group.origin)
        return tool is not None and tool.name in self._open and self.can_open(row)

    def set_open(self, row: int, on: bool) -> None:
        """Show or hide the operations of a tool, or ask for a group; on an operation's row nothing happens."""
        tool, group = self.tool_at(row), self.group_at(row)
        if group is not None and not self.is_filtering:
            self.group_folded.emit(group.origin, not on)
        if tool is None or not self.can_open(row) or self.is_open(row) == on:
            return
        number, fitting, self._heads = self._rows[row][0], self._fitting(tool), None
        if on:
            self._open.add(tool.name)
            self.beginInsertRows(QModelIndex(), row + 1, row + len(fitting))
            self._rows[row + 1 : row + 1] = [(number, op) for op in fitting]
            self.endInsertRows()
        else:
            self._open.discard(tool.name)
            self.beginRemoveRows(QModelIndex(), row + 1, row + len(fitting))
            del self._rows[row + 1 : row + 1 + len(fitting)]
            self.endRemoveRows()

    def top_of(self, row: int) -> int:
        """The row of the tool that a row belongs to, a group's own; -1 beyond the rows."""
        if not 0 <= row < len(self._rows):
            return -1
        return row if self._rows[row][1] == GROUP else bisect_left(self._rows, (self._rows[row][0], -1))

    def set_many_open(self, rows: Iterable[int], on: bool) -> None:
        """Show or hide the operations of many tools in one step."""
        names = {tool.name for row in rows if (tool := self.tool_at(row)) is not None and self.can_open(row)}
        self._open = self._open | names if on else self._open - names
        self._set_rows()

    def set_all_open(self, on: bool) -> None:
        """Open or close every tool that is shown."""
        self._open = {tool.name for tool in self._layout.tools} if on else set()
        self._set_rows()

    # cells

    def cell(self, row: int, column: int) -> Summary | OperationCell | None:
        """The cell's content: counts for a group and a tool with operations, else one state; None while not known."""
        held = self._grid.column(self._agents[column].agent_id)
        if held is None:
            return None
        number, op = self._rows[row]
        tool = self._layout.tools[number]
        if op == GROUP:
            tools = self._groups[tool.origin]
            spans = [(one.start, one.start + len(one.operations)) for one in tools]
            if not self.is_filtering:  # then nothing is left out between the first and the last
                spans = [(spans[0][0], spans[-1][1])]
            return sum_cells(b"".join([held.cells[start:end] for start, end in spans]))
        if op < 0 and tool.has_operations:
            return summary_of(held.cells[tool.start : tool.start + len(tool.operations)])
        return OPERATION_CELLS[held.cells[tool.start + max(op, 0)]]

    def take_shares(self, agent_id: str, tools: frozenset[str] | None, found: Shares) -> None:
        """Of an agent how many files its operations may touch, at the tools that were counted for."""
        before = self._shares.get(agent_id, {})
        kept = {key: share for key, share in before.items() if tools is not None and key[0] not in tools}
        self._shares[agent_id] = {**kept, **found}
        if before != self._shares[agent_id]:
            self._tell((agent_id,))

    def share(self, row: int, column: int) -> Share | None:
        """The number of files the cell stands for, by the verdict; None where it is off or does not go by the path."""
        number, op = self._rows[row]
        tool, cell = self._layout.tools[number], self.cell(row, column)
        if not isinstance(cell, OperationCell) or cell.state in {Cell.MISSING, Cell.OFF, Cell.OVERRULED}:
            return None
        return self._shares.get(self._agents[column].agent_id, {}).get((tool.name, tool.operations[max(op, 0)]))

    def is_on(self, row: int, column: int) -> bool | None:
        """True if anything of the cell is ticked; None while that is not known."""
        found = self.cell(row, column)
        if isinstance(found, Summary):
            return found.on + found.asks > 0 or found.overruled
        return None if found is None else found.state not in {Cell.OFF, Cell.MISSING}

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """Tools that are shown and the operations of those that are open."""
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """Agents that are shown."""
        return 0 if parent.isValid() else len(self._agents)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """The words of a cell."""
        if not index.isValid():
            return None
        row, column = index.row(), index.column()
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return short_words(self.cell(row, column))
            case Qt.ItemDataRole.ToolTipRole:
                return self.tip(row, column)
            case Qt.ItemDataRole.AccessibleTextRole:
                return "; ".join(self._cell_words(row, column))
            case Qt.ItemDataRole.TextAlignmentRole:
                return int(Qt.AlignmentFlag.AlignCenter)
            case _:
                return None

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Agents over the columns, tools and operations before the rows."""
        if orientation == Qt.Orientation.Horizontal:
            agent = self.agent_at(section)
            return _agent_words(agent, role) if agent is not None else None
        place, group = self.place_at(section), self.group_at(section)
        if place is None:
            return None
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return group.title if group is not None else place.operation or place.tool
            case Qt.ItemDataRole.ToolTipRole | Qt.ItemDataRole.AccessibleTextRole:
                return group.words if group is not None else place.words
            case _:
                return None

    def _cell_name(self, row: int, column: int) -> str:
        place, group, agent = self.place_at(row), self.group_at(row), self._agents[column].agent_id
        if place is None:
            return agent
        return f"{agent}, {group.words if group is not None else place.words}"

    def tip(self, row: int, column: int) -> str:
        """The cell in words, and why it is so."""
        return "\n".join((*self._cell_words(row, column), *self.why(row, column)))

    def _cell_words(self, row: int, column: int) -> tuple[str, ...]:
        share = self.share(row, column)
        goes = (
            tr("depends on the block: {verdicts}") if share and share.blocks else tr("depends on the file: {verdicts}")
        )
        by_path = (goes.format(verdicts=share.words),) if share is not None else ()
        return (f"{self._cell_name(row, column)}: {long_words(self.cell(row, column))}", *by_path)

    def why(self, row: int, column: int) -> tuple[str, ...]:
        """The reasons of a cell, the deciding one first; none while it is not known."""
        place, agent_id = self.place_at(row), self._agents[column].agent_id
        if place is None or not place.tool or self._grid.column(agent_id) is None:
            return ()
        texts = dict.fromkeys(
            reason.text.replace("`", "") for reason in self._why(agent_id, place.tool, place.operation)
        )
        found = tuple(texts)
        more = (tr("and {count} more reasons", count=len(found) - MOST_REASONS),) if len(found) > MOST_REASONS else ()
        return (*found[:MOST_REASONS], *more)

    def text_of(self, rows: Sequence[int], columns: Sequence[int]) -> str:
        """Cells with their headers, tabs between them: for a spreadsheet."""
        lines = ["\t".join((tr("tool"), tr("operation"), *(self._agents[column].agent_id for column in columns)))]
        for row in rows:
            place = self.place_at(row)
            if place is not None:
                cells = (short_words(self.cell(row, column)) for column in columns)
                lines.append("\t".join((place.tool or place.origin, place.operation or "", *cells)))
        return "\n".join(lines) + "\n"

    def _tell(self, agent_ids: Iterable[str]) -> None:
        """Cells of these agents are others; neighbours are told of together."""
        if not self._rows:
            return
        columns = sorted(self._columns[name] for name in agent_ids if name in self._columns)
        for _, run in groupby(enumerate(columns), key=lambda pair: pair[1] - pair[0]):
            told = [column for _, column in run]
            self.dataChanged.emit(self.index(0, told[0]), self.index(len(self._rows) - 1, told[-1]))


def _agent_words(agent: Agent, role: int) -> str | None:
    match role:
        case Qt.ItemDataRole.DisplayRole:
            return agent.agent_id
        case Qt.ItemDataRole.ToolTipRole | Qt.ItemDataRole.AccessibleTextRole:
            return f"{agent.agent_id}\n{agent.description}" if agent.description else agent.agent_id
        case _:
            return None
