"""What every agent may do with every operation, a few bytes a cell, worked out beside the window for those in view."""

import time
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from enum import IntEnum
from functools import lru_cache
from itertools import count

from PySide6.QtCore import QObject, Signal

from gatewright.workspace.api import (
    Layer,
    OperationRight,
    Policy,
    ToolFacts,
    ToolRight,
    Verdict,
    Workspace,
    chosen_tools,
    frozen,
)
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.derive import Deriver
from gatewright_gui.session.document import ChangeSet, Document
from gatewright_gui.session.rightsbeside import is_long
from gatewright_gui.session.selection import Selection
from gatewright_gui.session.switching import often_switched

AT_A_TIME_S = 0.05
"""How long one question may take; then what is known is shown, and the next is asked."""


class Cell(IntEnum):
    """One operation of one agent. `MISSING`: the agent's version of the tool has no such operation.

    `LOCKED` asks first by another layer than the agent's approvals, `SOME_ASK` for some calls only; `OVERRULED` is
    ticked and turned off by another layer.
    """

    MISSING = 0
    OFF = 1
    ON = 2
    ASKS = 3
    LOCKED = 4
    OVERRULED = 5
    SOME_ASK = 6


@frozen
class OperationCell:
    """One operation in one cell; `is_limited`: rules limit its calls, or some of them are denied."""

    state: Cell
    is_limited: bool = False


_LIMITED = 0x10
"""Beside the state in the byte of a cell."""
OPERATION_CELLS = {state | limited: OperationCell(state, limited > 0) for state in Cell for limited in (0, _LIMITED)}
"""What the byte of a cell says."""


@frozen
class Column:
    """One agent: of each operation a byte under `OPERATION_CELLS`, and four bytes that are equal for equal limits."""

    cells: bytes
    limits: bytes


@frozen
class GridTool:
    """A tool of the grid: its operations in order (`("",)` for a plain tool), and where the first of them stands."""

    name: str
    operations: tuple[str, ...]
    start: int
    said: tuple[str, ...]
    """What each operation says of itself, and the tool last."""

    @property
    def has_operations(self) -> bool:
        """Whether it can be opened."""
        return self.operations != ("",)


@frozen
class GridLayout:
    """The operations of all tools, one after the other: the order of the bytes of a column."""

    tools: tuple[GridTool, ...] = ()
    size: int = 0
    _numbers: dict[object, int] = field(default_factory=dict[object, int], compare=False, repr=False)
    _next: "count[int]" = field(default_factory=lambda: count(1), compare=False, repr=False)

    def number_of(self, limits: object) -> int:
        """The same number for equal limits, another one for others."""
        return self._numbers.setdefault(limits, next(self._next))


@frozen
class Summary:
    """A tool in one cell: `on` operations of `every` are shown to the model, and what else is worth a look."""

    on: int
    every: int
    asks: bool
    overruled: bool
    limited: bool = False


def layout_of(catalog: Sequence[ToolFacts]) -> GridLayout:
    """Every tool once, with the operations of all its versions."""
    found: dict[str, dict[str, str]] = {name: {} for name in chosen_tools(catalog, None)}
    said: dict[str, str] = {}
    for facts in catalog:
        said.setdefault(facts.name, facts.description)
        operations = found.setdefault(facts.name, {})
        for op in facts.operations:
            operations.setdefault(op.name, op.description)
    tools: list[GridTool] = []
    start = 0
    for name, operations in found.items():
        tools.append(GridTool(name, tuple(operations), start, (*operations.values(), said[name])))
        start += len(operations)
    return GridLayout(tuple(tools), start)


@lru_cache(maxsize=4_096)
def texts_of(tool: GridTool) -> tuple[str, ...]:
    """What each operation can be found by, in small letters; the tool's own text is last."""
    names = (*tool.operations, "")
    return tuple(f"{tool.name} {name} {said}".casefold() for name, said in zip(names, tool.said, strict=True))


def column_of(layout: GridLayout, rights: Mapping[str, ToolRight], source_ids: tuple[str, ...]) -> Column:
    """The column of an agent with these rights and sources."""
    cells, limits = bytearray(layout.size), array("I", bytes(4 * layout.size))
    for tool in layout.tools:
        right = rights.get(tool.name)
        if right is None:
            continue
        rows = right.operations
        if tuple([row.operation for row in rows]) == tool.operations:
            places: Iterable[int] = range(tool.start, tool.start + len(rows))
        else:
            at = {name: place for place, name in enumerate(tool.operations, tool.start)}
            places = [at[row.operation] for row in rows]
        reachable = source_ids if right.facts.needs_source else ()
        for place, row in zip(places, rows, strict=True):
            cells[place] = _cell(row)
            if (row.limits or row.by_path or row.by_value or reachable) and row.verdict is not Verdict.DENY:
                limits[place] = layout.number_of((row.limits, row.by_path, row.by_value, reachable))
    return Column(bytes(cells), limits.tobytes())


def _cell(row: OperationRight) -> int:
    if not row.ticked:
        return Cell.OFF
    if row.verdict is Verdict.DENY:
        return Cell.OVERRULED
    limited = _LIMITED if row.limits or Verdict.DENY in row.by_path or Verdict.DENY in row.by_value else 0
    if row.verdict is Verdict.ALLOW:
        return (Cell.SOME_ASK if row.asks_for_some else Cell.ON) | limited
    own = all(reason.layer is Layer.APPROVALS for reason in row.reasons if reason.verdict is Verdict.ASK)
    return (Cell.ASKS if own else Cell.LOCKED) | limited


@lru_cache(maxsize=16_384)
def summary_of(cells: bytes) -> Summary:
    """The operations of one tool of one agent in a cell."""
    found = [OPERATION_CELLS[cell] for cell in cells]
    states = Counter(cell.state for cell in found)
    asking = states[Cell.ASKS] + states[Cell.LOCKED] + states[Cell.SOME_ASK]
    return Summary(
        on=states[Cell.ON] + asking,
        every=len(found) - states[Cell.MISSING],
        asks=asking > 0,
        overruled=states[Cell.OVERRULED] > 0,
        limited=any(cell.is_limited for cell in found),
    )


def columns_of(workspace: Workspace, layout: GridLayout, agent_ids: Iterable[str]) -> dict[str, Column]:
    """The columns of these agents: of the first at least, of the others while there is time. Not for the window."""
    found: dict[str, Column] = {}
    until = time.monotonic() + AT_A_TIME_S
    with often_switched():
        for agent_id in agent_ids:
            if agent_id in workspace.policy.agents:
                found[agent_id] = _column(layout, workspace.policy, agent_id, workspace.rights(agent_id))
            if time.monotonic() > until:
                break
    return found


def _column(layout: GridLayout, policy: Policy, agent_id: str, rights: Mapping[str, ToolRight]) -> Column:
    sources = policy.sources_of(policy.agents[agent_id])
    return column_of(layout, rights, tuple(source.source_id for source in sources))


def differing(columns: Iterable[Column]) -> bytes:
    """For each operation whether these columns differ there, in what it may or in its limits: 0 or something else."""
    held = list(columns)
    if not held:
        return b""
    cells = _differing([column.cells for column in held])
    limits = memoryview(_differing([column.limits for column in held])).cast("I")
    return bytes([cell or limit > 0 for cell, limit in zip(cells, limits, strict=True)])


def _differing(held: Sequence[bytes]) -> bytes:
    first, seen = int.from_bytes(held[0]), 0
    for one in held[1:]:
        seen |= int.from_bytes(one) ^ first
    return seen.to_bytes(len(held[0]))


class RightGrid(QObject):
    """Say which agents are looked at with `want`; their columns come, and are kept current from then on."""

    layout_changed = Signal()
    """Other tools or operations, and no column is known."""
    columns_changed = Signal(object)
    """frozenset of agent ids: their columns came, changed, or are not known any more."""

    def __init__(
        self,
        document: Document,
        selection: Selection,
        deriver: Deriver,
        tasks: TaskOwner,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._document, self._selection, self._deriver, self._tasks = document, selection, deriver, tasks
        self.layout = GridLayout()
        self._columns: dict[str, Column] = {}
        self._current: set[str] = set()
        """Those of the known columns that are of the policy as it is now."""
        self._wanted: tuple[str, ...] = ()
        document.opened.connect(self._start_anew)
        document.policy_changed.connect(self._follow)

    def want(self, agent_ids: Iterable[str]) -> None:
        """Look at these agents, the first ones first; the former ones are not worked out any more."""
        self._wanted = tuple(agent_ids)
        if self._wanted and not self.layout.tools and self._lay_out():
            self.layout_changed.emit()  # whoever hears it may want other agents; then it is their work that goes on
        self._work_out()

    def column(self, agent_id: str) -> Column | None:
        """What is known of an agent; None while it is not."""
        return self._columns.get(agent_id)

    @property
    def known(self) -> Mapping[str, Column]:
        """The columns that are known."""
        return self._columns

    def _start_anew(self) -> None:
        self._tasks.cancel("agents.matrix")
        self.layout = GridLayout()
        self._columns.clear()
        self._current.clear()
        self._wanted = ()
        self.layout_changed.emit()

    def _lay_out(self) -> bool:
        """Whether the rows are others than before."""
        found = layout_of(self._document.catalog)
        if found == self.layout:
            return False
        self.layout = found
        self._columns.clear()
        self._current.clear()
        return True

    def _follow(self, changes: ChangeSet) -> None:
        """What was edited is worked out anew; a column of an agent that is edited stays until the new one comes."""
        if not self.layout.tools:
            return
        if changes.everything and self._lay_out():
            self.layout_changed.emit()
        elif changes.everything or changes.sources:
            self._forget(frozenset(self._columns))
        else:
            self._touched(changes.agents)
        self._work_out()

    def _forget(self, agent_ids: frozenset[str]) -> None:
        self._columns.clear()
        self._current.clear()
        self.columns_changed.emit(agent_ids)

    def _touched(self, agent_ids: frozenset[str]) -> None:
        self._current -= agent_ids
        for gone in agent_ids - self._document.policy.agents.keys():
            self._columns.pop(gone, None)
        chosen = self._selection.agent_id
        alone = chosen in self._columns and chosen in agent_ids and len(agent_ids) == 1
        if chosen is not None and alone and not is_long(self._document, chosen):
            # the edit of one agent costs the tools it concerns; several agents or many tools are worked out beside
            document = self._document
            self._take({chosen: _column(self.layout, document.policy, chosen, document.rights(chosen))})

    def _lacking(self) -> list[str]:
        agents = self._document.policy.agents
        return [agent_id for agent_id in self._wanted if agent_id not in self._current and agent_id in agents]

    def _work_out(self) -> None:
        if self._lacking() and "agents.matrix" not in self._tasks.names:
            self._tasks.start(self._ask(), "agents.matrix")

    async def _ask(self) -> None:
        while self._document.is_open and (lacking := self._lacking()):
            layout = self.layout
            found = await self._deriver.derive(
                lambda workspace, layout=layout, lacking=lacking: columns_of(workspace, layout, lacking), aside=True
            )
            if found is not None and layout is self.layout:
                self._take(found)

    def _take(self, found: Mapping[str, Column]) -> None:
        changed = frozenset(name for name, column in found.items() if self._columns.get(name) != column)
        self._columns.update(found)
        self._current |= found.keys()
        if changed:
            self.columns_changed.emit(changed)
