"""What every agent may do with every operation, a few bytes a cell. For the worker process: nothing of Qt is loaded."""

import hashlib
import time
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields, is_dataclass
from enum import IntEnum
from functools import lru_cache
from typing import cast

from gatewright.workspace.api import (
    Catalog,
    Layer,
    OperationRight,
    Policy,
    RightWord,
    ToolFacts,
    ToolRight,
    Verdict,
    Workspace,
    frozen,
    pick_tools,
)
from gatewright_gui.session.observed import note_rows
from gatewright_gui.session.readings import BUILT_IN
from gatewright_gui.session.tool_groups import by_origin

AT_A_TIME_S = 0.02
"""How long one question may take; then what is known is shown, and the next is asked."""
LIMITS = "Q"
"""The array type of what says which limits an operation has."""


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
    """One operation in one cell; `is_limited`: rules limit its calls, or some of them are denied.

    `but_paths`: it is allowed, but for texts that are paths into a source; `is_observed`: enforcing would deny more of
    it, or ask.
    """

    state: Cell
    is_limited: bool = False
    but_paths: bool = False
    is_observed: bool = False

    @property
    def depends(self) -> bool:
        """Tell whether what is not off is narrowed by limits, paths or values."""
        return self.is_limited or self.but_paths or self.state is Cell.SOME_ASK


_LIMITED, _BUT_PATHS, _OBSERVED = 0x10, 0x20, 0x40
"""Beside the state in the byte of a cell; the second one beside `ON` alone."""
OPERATION_CELLS = {
    state | limited | paths | observed: OperationCell(state, limited > 0, paths > 0, observed > 0)
    for state in Cell
    for limited in (0, _LIMITED)
    for paths in ((0, _BUT_PATHS) if state is Cell.ON else (0,))
    for observed in (0, _OBSERVED)
}
"""What the byte of a cell says."""


@frozen
class Column:
    """One agent: of each operation a byte under `OPERATION_CELLS`, and eight bytes that are equal for equal limits."""

    cells: bytes
    limits: bytes


@frozen
class Basis:
    """A column with what it was made of: the agent's sources and its rights, those in force and the enforced ones."""

    source_ids: tuple[str, ...]
    rights: Mapping[str, ToolRight]
    column: Column
    enforced: Mapping[str, ToolRight] = field(default_factory=dict[str, ToolRight])


@frozen
class GridTool:
    """A tool of the grid: its operations in order (`("",)` for a plain tool), and where the first of them stands."""

    name: str
    operations: tuple[str, ...]
    start: int
    said: tuple[str, ...]
    """What each operation says of itself, and the tool last."""
    origin: str = BUILT_IN
    is_held: bool = False
    """Whether it waits to be accepted, so that nobody may see it."""

    @property
    def has_operations(self) -> bool:
        """Tell whether it can be opened."""
        return self.operations != ("",)


@frozen
class GridLayout:
    """The operations of all tools, one after the other: the order of the bytes of a column."""

    tools: tuple[GridTool, ...] = ()
    size: int = 0
    is_grouped: bool = False
    """Whether the tools come from more than one place."""


@frozen
class Summary:
    """Several operations in one cell: how many are on, ask first and are off, and what else is worth a look.

    `depends`: limits, paths or values narrow some of what is not off; `overruled`: some are ticked and off.
    """

    on: int
    asks: int
    off: int
    overruled: bool = False
    depends: bool = False
    observed: bool = False


def layout_of(catalog: Sequence[ToolFacts], catalogs: Sequence[Catalog] = ()) -> GridLayout:
    """Every tool once, with the operations of all its versions; those of one place follow each other."""
    chosen = pick_tools(catalog, None)
    together = by_origin(chosen, lambda name: chosen[name].origin, catalogs)
    found: dict[str, dict[str, str]] = {name: {} for names in together.values() for name in names}
    said: dict[str, str] = {}
    for facts in catalog:
        said.setdefault(facts.name, facts.description)
        operations = found.setdefault(facts.name, {})
        for op in facts.operations:
            operations.setdefault(op.name, op.description)
    tools: list[GridTool] = []
    start = 0
    for name, operations in found.items():
        texts, facts = (*operations.values(), said[name]), chosen[name]
        tools.append(GridTool(name, tuple(operations), start, texts, facts.origin, bool(facts.held)))
        start += len(operations)
    return GridLayout(tuple(tools), start, len(together) > 1)


@lru_cache(maxsize=4_096)
def texts_of(tool: GridTool) -> tuple[str, ...]:
    """The texts that each operation can be found by, in small letters; the tool's own text is last."""
    names = (*tool.operations, "")
    return tuple(
        f"{tool.name} {name} {tool.origin} {said}".casefold() for name, said in zip(names, tool.said, strict=True)
    )


_ALL_ENFORCED: Mapping[str, ToolRight] = {}


def column_under(
    layout: GridLayout,
    policy: Policy,
    agent_id: str,
    rights: Mapping[str, ToolRight],
    basis: Basis | None = None,
    enforced: Mapping[str, ToolRight] = _ALL_ENFORCED,
) -> Column:
    """The column of an agent of a policy with these rights; ``enforced``: those if nothing were only observed.

    ``basis``, of the same layout: tools whose rights are the same objects as there are not looked at again.
    """
    source_ids = source_ids_of(policy, agent_id)
    if basis is None or basis.source_ids != source_ids:
        basis = Basis(source_ids, {}, Column(bytes(layout.size), bytes(8 * layout.size)))
    cells, limits = bytearray(basis.column.cells), array(LIMITS, basis.column.limits)
    for tool in layout.tools:
        right, former = rights.get(tool.name), basis.rights.get(tool.name)
        if right is former and enforced.get(tool.name) is basis.enforced.get(tool.name):
            continue
        every = slice(tool.start, tool.start + len(tool.operations))
        cells[every], limits[every] = bytes(len(tool.operations)), array(LIMITS, bytes(8 * len(tool.operations)))
        if right is None:
            continue
        rows = right.operations
        if tuple([row.operation for row in rows]) == tool.operations:
            places: Iterable[int] = range(tool.start, tool.start + len(rows))
        else:
            at = {name: place for place, name in enumerate(tool.operations, tool.start)}
            places = [at[row.operation] for row in rows]
        reachable = source_ids if right.facts.needs_source else ()
        noted = note_rows(right, enforced.get(tool.name)) or (None,) * len(rows)
        for place, row, one in zip(places, rows, noted, strict=True):
            cells[place] = _cell(row) | (0 if one is None else _OBSERVED)
            found = (row.limits, row.by_path, row.by_block, row.by_value, row.by_text, reachable)
            if row.verdict is not Verdict.DENY and any(found):
                limits[place] = _digest(found)
    return Column(bytes(cells), limits.tobytes())


@lru_cache(maxsize=16_384)
def _digest(limits: tuple[object, ...]) -> int:
    """The same number for equal limits in every process, another one for others."""
    return int.from_bytes(
        hashlib.blake2b(_stable_text(limits).encode("utf-8", "replace"), digest_size=8).digest(), "big"
    )


def _stable_text(value: object) -> str:
    """A text that equal values have in common, whatever order a process keeps its sets in."""
    if is_dataclass(value):
        own = (_stable_text(getattr(value, row.name)) for row in fields(value) if row.compare)
        return f"{type(value).__name__}({','.join(own)})"
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return f"{{{','.join(sorted(f'{_stable_text(key)}:{_stable_text(held)}' for key, held in pairs))}}}"
    if isinstance(value, frozenset):
        return f"{{{','.join(sorted(map(_stable_text, cast('frozenset[object]', value))))}}}"
    if isinstance(value, tuple | list):
        return f"({','.join(map(_stable_text, cast('Sequence[object]', value)))})"
    return repr(value)


def _cell(row: OperationRight) -> int:
    if not row.ticked:
        return Cell.OFF
    if row.verdict is Verdict.DENY:
        return Cell.OVERRULED
    limited = _LIMITED if row.limits or Verdict.DENY in row.depends else 0
    if row.verdict is Verdict.ALLOW:
        but_paths = _BUT_PATHS if row.word is RightWord.BUT_PATHS else 0
        return (Cell.SOME_ASK if row.asks_for_some else Cell.ON | but_paths) | limited
    own = all(reason.layer is Layer.APPROVALS for reason in row.reasons if reason.verdict is Verdict.ASK)
    return (Cell.ASKS if own else Cell.LOCKED) | limited


@lru_cache(maxsize=16_384)
def summary_of(cells: bytes) -> Summary:
    """The operations of one tool of one agent in a cell."""
    return sum_cells(cells)


def sum_cells(cells: bytes) -> Summary:
    """The same as `summary_of`, of any number of tools; nothing of it is kept."""
    counts = {cell: cells.count(cell) for cell in OPERATION_CELLS}

    def count(*states: Cell) -> int:
        return sum([number for cell, number in counts.items() if OPERATION_CELLS[cell].state in states])

    return Summary(
        on=count(Cell.ON, Cell.SOME_ASK),
        asks=count(Cell.ASKS, Cell.LOCKED),
        off=count(Cell.OFF, Cell.OVERRULED),
        overruled=count(Cell.OVERRULED) > 0,
        depends=any(number for cell, number in counts.items() if OPERATION_CELLS[cell].depends),
        observed=any(number for cell, number in counts.items() if cell & _OBSERVED),
    )


def columns_of(workspace: Workspace, agent_ids: Iterable[str]) -> dict[str, Column]:
    """The columns of these agents: of the first at least, of the others while there is time."""
    found: dict[str, Column] = {}
    layout, policy, until = (
        layout_of(workspace.catalog, workspace.policy.catalogs),
        workspace.policy,
        time.monotonic() + AT_A_TIME_S,
    )
    for agent_id in agent_ids:
        if agent_id in policy.agents:
            view = workspace.view(agent_id)
            found[agent_id] = column_under(layout, policy, agent_id, view.rights, enforced=view.enforced_rights)
        if time.monotonic() > until:
            break
    return found


def source_ids_of(policy: Policy, agent_id: str) -> tuple[str, ...]:
    """The sources of an agent."""
    return tuple([source.source_id for source in policy.sources_of(policy.agents[agent_id])])


def visible_count(workspace: Workspace, agent_id: str) -> tuple[int, int]:
    """The number of operations that the model of an agent sees, and of all that there are."""
    rows = [row for right in workspace.rights(agent_id).values() for row in right.operations]
    return sum(row.ticked and not row.is_hidden for row in rows), len(rows)


def differing(columns: Iterable[Column]) -> bytes:
    """For each operation whether these columns differ there, in what it may or in its limits: 0 or something else."""
    held = list(columns)
    if not held:
        return b""
    cells = _differing([column.cells for column in held])
    limits = memoryview(_differing([column.limits for column in held])).cast(LIMITS)
    return bytes([cell or limit > 0 for cell, limit in zip(cells, limits, strict=True)])


def _differing(held: Sequence[bytes]) -> bytes:
    first, seen = int.from_bytes(held[0]), 0
    for one in held[1:]:
        seen |= int.from_bytes(one) ^ first
    return seen.to_bytes(len(held[0]))
