"""Which rows of the tree are shown: a search text and filters.

What fits is worked out once when a filter is set: a row that stops fitting while it is worked on stays until then, so
that nothing jumps.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Any

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from gatewright.workspace.api import (
    ANY_TOOL,
    Agent,
    AllowedOperations,
    ContinueLoop,
    OperationRight,
    SafetyTier,
    Source,
    ToolFacts,
    ToolRight,
    ToolRule,
    Verdict,
    frozen,
    names_tool,
    split_name,
)
from gatewright_gui.pages.agents.tool_tree import COLUMNS, FLAGS, LEAF_FLAGS, ToolTreeModel

Index = QModelIndex | QPersistentModelIndex


class State(StrEnum):
    """Of an operation; `MIXED` is of a tool with some on and some not, with all its operations."""

    ON = "on"
    OFF = "off"
    ASKS = "asks"
    OVERRULED = "overruled"
    MIXED = "mixed"


@frozen
class Filters:
    """An empty set leaves nothing out; of two kinds of filters a row has to fit both."""

    states: frozenset[State] = frozenset()
    tiers: frozenset[SafetyTier] = frozenset()
    origins: frozenset[str] = frozenset()
    has_problem: bool = False
    has_limits: bool = False


NO_FILTERS = Filters()


class ToolFilterModel(QAbstractItemModel):
    """A tool is shown when one of its operations fits; words may be in the tool's name or description too.

    A view asks for every row whenever it lays out its rows, so that nothing here is made per row before it is asked
    for: a tool has internal id 0, an operation the row of its tool plus 1, both rows as they are shown.
    """

    def __init__(self, tree: ToolTreeModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tree = tree
        self._words: tuple[str, ...] = ()
        self._filters = NO_FILTERS
        self._problems: frozenset[str] = frozenset()
        self._texts: dict[str, _Texts] = {}
        self._shown = _Shown.of_all(tree)
        tree.modelAboutToBeReset.connect(self.beginResetModel)
        tree.modelReset.connect(self._reset)
        tree.dataChanged.connect(self._pass_on)

    @property
    def is_filtering(self) -> bool:
        """Whether anything may be left out."""
        return bool(self._words) or self._filters != NO_FILTERS

    @property
    def filters(self) -> Filters:
        """What is set now."""
        return self._filters

    def set_search(self, text: str) -> None:
        """Every word has to be in the name or the description."""
        self._words = tuple(text.casefold().split())
        self.refresh()

    def set_filters(self, filters: Filters) -> None:
        """Only rows that fit."""
        self._filters = filters
        self.refresh()

    def set_problems(self, tools: Iterable[str]) -> None:
        """The tools that have a problem; who fits is looked at when the filter is set again."""
        self._problems = frozenset(tools)

    def refresh(self) -> None:
        """Look anew at what fits."""
        after = self._fit()
        if after == self._shown:
            return
        self.layoutAboutToBeChanged.emit()
        held = self.persistentIndexList()
        sources = [self._source_of(index) for index in held]
        self._shown = after
        moved = [self._shown_at(*source, index.column()) for source, index in zip(sources, held, strict=True)]
        self.changePersistentIndexList(held, moved)
        self.layoutChanged.emit()

    def shown_operations(self) -> Mapping[str, tuple[str, ...]]:
        """Tool -> its operations that fit; `("",)` for a tool without operations."""
        rights, shown = self._tree.rights, self._shown
        found: dict[str, tuple[str, ...]] = {}
        for row, fitting in zip(shown.rows, shown.fitting, strict=True):
            operations = rights[row].operations
            found[rights[row].facts.name] = tuple([operations[at].operation for at in fitting])
        return found

    @property
    def shown_count(self) -> int:
        """How many operations fit."""
        return sum(map(len, self._shown.fitting))

    def held_tools(self) -> Sequence[QModelIndex]:
        """The tools whose rows somebody keeps: what a view has open is among them, and few others."""
        return [index for index in self.persistentIndexList() if not index.internalId() and not index.column()]

    def right_at(self, row: int) -> ToolRight:
        """The tool of a row."""
        return self._tree.rights[self._shown.rows[row]]

    def operations_at(self, row: int) -> Sequence[OperationRight]:
        """The operations of a tool that are shown below it, row by row."""
        operations = self.right_at(row).operations
        return [operations[at] for at in self._shown.fitting[row]] if self._shown.sizes[row] else ()

    # rows of the tree and rows that are shown

    def mapToSource(self, index: Index) -> QModelIndex:  # noqa: N802  as Qt calls it
        """The cell of the tree."""
        if not index.isValid():
            return QModelIndex()
        tool, operation = self._source_of(index)
        top = self._tree.index(tool, index.column() if operation is None else 0)
        return top if operation is None else self._tree.index(operation, index.column(), top)

    def mapFromSource(self, index: Index) -> QModelIndex:  # noqa: N802  as Qt calls it
        """Where a cell of the tree is shown; invalid when it is not."""
        if not index.isValid():
            return QModelIndex()
        held = index.internalId()
        return self._shown_at(held - 1 if held else index.row(), index.row() if held else None, index.column())

    def _source_of(self, index: Index) -> tuple[int, int | None]:
        """Row of the tool, row of the operation, in the tree."""
        held, row, shown = index.internalId(), index.row(), self._shown
        return (shown.rows[held - 1], shown.fitting[held - 1][row]) if held else (shown.rows[row], None)

    def _shown_at(self, tool: int, operation: int | None, column: int) -> QModelIndex:
        shown = self._shown
        at = bisect_left(shown.rows, tool)
        if at == len(shown.rows) or shown.rows[at] != tool:
            return QModelIndex()
        if operation is None:
            return self.createIndex(at, column, 0)
        row = bisect_left(shown.fitting[at], operation)
        if row >= shown.sizes[at] or shown.fitting[at][row] != operation:
            return QModelIndex()
        return self.createIndex(row, column, at + 1)

    def _reset(self) -> None:
        self._shown = self._fit()
        self.endResetModel()

    def _pass_on(self, first: QModelIndex, last: QModelIndex, roles: Sequence[int] = ()) -> None:
        """The rows among these that are shown have changed."""
        held, shown = first.internalId(), self._shown
        rows: Sequence[int] = shown.rows
        at = 0
        if held:
            at = bisect_left(rows, held - 1)
            if at == len(rows) or rows[at] != held - 1 or not shown.sizes[at]:
                return
            rows = shown.fitting[at]
        top, bottom = bisect_left(rows, first.row()), bisect_right(rows, last.row()) - 1
        if top <= bottom:
            parent = at + 1 if held else 0
            start, end = (self.createIndex(row, col.column(), parent) for row, col in ((top, first), (bottom, last)))
            self.dataChanged.emit(start, end, roles)

    # structure

    def index(self, row: int, column: int, parent: Index = QModelIndex()) -> QModelIndex:  # noqa: B008
        """A cell."""
        at = parent.row()
        if not 0 <= column < COLUMNS or row < 0:
            return QModelIndex()
        if at < 0:
            return self.createIndex(row, column, 0) if row < len(self._shown.rows) else QModelIndex()
        if row >= self._shown.sizes[at] or parent.internalId() or parent.column():
            return QModelIndex()
        return self.createIndex(row, column, at + 1)

    def parent(self, index: Index = QModelIndex()) -> QModelIndex:  # type: ignore[override]  # noqa: B008
        """The tool of an operation."""
        held = index.internalId() if index.isValid() else 0
        return self.createIndex(held - 1, 0, 0) if held else QModelIndex()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """Tools, or the operations of one."""
        at = parent.row()
        if at < 0:
            return len(self._shown.rows)
        return 0 if parent.internalId() or parent.column() else self._shown.sizes[at]

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """The same everywhere."""
        del parent
        return COLUMNS

    def hasChildren(self, parent: Index = QModelIndex()) -> bool:  # noqa: N802, B008
        """Whether a row can be opened."""
        return self.rowCount(parent) > 0

    def flags(self, index: Index) -> Qt.ItemFlag:
        """The first column can be ticked; a view asks for this of every row whenever it lays them out."""
        column = index.column()
        if column < 0:
            return Qt.ItemFlag.NoItemFlags
        return (LEAF_FLAGS if index.internalId() else FLAGS)[column != 0]

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Words over the columns."""
        return self._tree.headerData(section, orientation, role)

    # cells

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """What a cell of the tree shows."""
        if not index.isValid():
            return None
        tool, operation = self._source_of(index)
        return self._tree.value_at(tool, operation, index.column(), role)

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:  # noqa: N802
        """A tick, as the tree takes it."""
        return self._tree.setData(self.mapToSource(index), value, role)

    # what fits

    def _fit(self) -> "_Shown":
        if not self.is_filtering:
            return _Shown.of_all(self._tree)
        limited = _Limited(self._tree.agent, self._tree.sources) if self._filters.has_limits else None
        rows: list[int] = []
        found: list[Sequence[int]] = []
        for row, right in enumerate(self._tree.rights):
            if self._fits_as_tool(right) and (fitting := self._operations(right, limited)):
                rows.append(row)
                found.append(fitting)
        sizes = self._tree.sizes
        return _Shown(rows, found, [len(fit) if sizes[row] else 0 for row, fit in zip(rows, found, strict=True)])

    def _fits_as_tool(self, right: ToolRight) -> bool:
        filters = self._filters
        if filters.origins and right.facts.origin not in filters.origins:
            return False
        return not filters.has_problem or right.facts.name in self._problems

    def _operations(self, right: ToolRight, limited: "_Limited | None") -> Sequence[int]:
        """The places of the operations that fit."""
        rows, filters = right.operations, self._filters
        places: Sequence[int] = range(len(rows))
        if filters.states and not (State.MIXED in filters.states and 0 < len(right.shown) < len(rows)):
            places = [at for at in places if self._in_state(rows[at])]
        if filters.tiers:
            places = [at for at in places if rows[at].tier in filters.tiers]
        if limited is not None and places:
            places = limited.of(right.facts, rows, places)
        return self._with_words(right.facts, places) if self._words and places else places

    def _with_words(self, facts: ToolFacts, places: Sequence[int]) -> Sequence[int]:
        held = self._texts.get(facts.name)
        if held is None or held.facts is not facts:
            held = self._texts[facts.name] = _Texts(facts)
        left = [word for word in self._words if word not in held.whole]
        if not left:
            return places
        if not all(word in held.every for word in left):
            return ()
        return [at for at in places if all(word in held.own[at] for word in left)]

    def _in_state(self, row: OperationRight) -> bool:
        states = self._filters.states
        if row.is_hidden:
            return State.OFF in states or (row.ticked and State.OVERRULED in states)
        asks = row.verdict is Verdict.ASK or row.asks_for_some
        return State.ON in states or (asks and State.ASKS in states)


@frozen
class _Shown:
    """The tools that are shown by their rows in the tree; of each the places that fit, and how many rows these are."""

    rows: Sequence[int]
    fitting: Sequence[Sequence[int]]
    sizes: Sequence[int]

    @classmethod
    def of_all(cls, tree: ToolTreeModel) -> "_Shown":
        """Everything; equal to what a filter that all of them fit gives."""
        every = [range(len(right.operations)) for right in tree.rights]
        return cls(list(range(len(every))), every, list(tree.sizes))


class _Texts:
    """What a tool and each of its operations can be found by; of the operations once they are looked at."""

    def __init__(self, facts: ToolFacts) -> None:
        self.facts = facts
        self.whole = f"{facts.name} {facts.description}".casefold()

    @cached_property
    def own(self) -> tuple[str, ...]:
        """One text for each operation."""
        return tuple([f"{row.name} {row.description}".casefold() for row in self.facts.operations])

    @cached_property
    def every(self) -> str:
        """All of them, to leave out a tool at one look."""
        return "\n".join(self.own)


class _Limited:
    """Which operations some rule limits; the rules are sorted by tool once."""

    def __init__(self, agent: Agent, sources: Iterable[Source]) -> None:
        self._rules: dict[str, list[ToolRule]] = {}
        for rule in (*agent.tool_rules, *(rule for source in sources for rule in source.required_tools)):
            if not isinstance(rule.rule_type, AllowedOperations):
                self._rules.setdefault(split_name(rule.tool_name)[0], []).append(rule)

    def of(self, facts: ToolFacts, rows: Sequence[OperationRight], places: Sequence[int]) -> Sequence[int]:
        named = (*self._rules.get(facts.name, ()), *self._rules.get(ANY_TOOL, ()), *facts.tool_rules)
        rules = [
            rule
            for rule in named
            if names_tool(rule.tool_name, facts.name, facts.major)
            and not isinstance(rule.rule_type, AllowedOperations | ContinueLoop)
        ]
        return [at for at in places if any(rule.binds(rows[at].operation) for rule in rules)] if rules else ()
