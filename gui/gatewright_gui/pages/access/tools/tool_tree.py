"""Tools and their operations as a tree of boxes for one agent.

A row's position is in its index: a tool has internal id 0, an operation the row of its tool plus 1; nothing is made per
row before it is asked for. Tools of one group follow each other; `ToolFilterModel` puts the rows of groups above them.
Over 450 lines, because a row answers some twenty roles, and all of them from the same few facts.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum, StrEnum
from itertools import accumulate, groupby
from typing import Any, Protocol

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, Qt, Signal

from gatewright.workspace.api import Agent, Catalog, Layer, OperationRight, Source, ToolRight, Verdict, frozen
from gatewright_gui.pages.access.tools.limits import limits_of
from gatewright_gui.pages.access.tools.row_state import (
    EFFECT_WORDS,
    STATE_WORDS,
    RowState,
    Switch,
    asking_of,
    asking_words,
    danger_of,
    depending_words,
    description_of,
    fact_words,
    facts_of,
    looks_alike,
    no_effect_words,
    reasons_of,
    same_shape,
    state_of,
    stop_of,
    switch_of,
    tool_state,
    verdict_of,
)
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.table_model import Index
from gatewright_gui.session.observed import Noted, note_rows, note_tool
from gatewright_gui.session.path_share import Share, Shares
from gatewright_gui.session.question import TIER_WORDS
from gatewright_gui.session.readings import Reading
from gatewright_gui.session.tokens import count_words
from gatewright_gui.session.tool_groups import ToolGroup, by_origin, group_of

_USER = Qt.ItemDataRole.UserRole
VERDICT, STATE, ASKING, REASONS, TOOL, OPERATION, COUNT, IS_TOOL, DESCRIPTION, MARK, GROUP, SHARE, NOTED = (
    _USER + n for n in range(1, 14)
)
SWITCH, SWITCH_TIP, DANGER, MEND, IDLE = (_USER + n for n in range(14, 19))
MANY_ROWS = 40
"""Changes of more tools than these are told of together."""


class Column(IntEnum):
    """The columns, from the left: box, switch, name and description; and the one fact."""

    NAME = 0
    FACT = 1


COLUMNS = len(Column)
HEADINGS = (mark("Tool or operation"), mark("What narrows it"))


class Mend(StrEnum):
    """The way out that a row without effect offers."""

    GRANT = "grant"
    SOURCE = "source"
    RULE = "rule"


_CELL = Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEnabled
FLAGS = (_CELL | Qt.ItemFlag.ItemIsUserCheckable, _CELL)
LEAF_FLAGS = tuple(flags | Qt.ItemFlag.ItemNeverHasChildren for flags in FLAGS)
"""Of the first column and of the others; a view asks for them again and again."""


class Verbs(Protocol):
    """The verbs that the boxes ask for. Each returns whether the policy changed."""

    def tick_tool(self, tool: str, on: bool) -> bool:
        """A tool as a whole."""
        ...

    def tick_operation(self, tool: str, operation: str, on: bool) -> bool:
        """One operation."""
        ...

    def tick_many(self, operations: Mapping[str, Sequence[str]], on: bool) -> bool:
        """Operations by tool."""
        ...


@frozen
class Tally:
    """The operations of an agent: those that are on, those that ask first, and the others.

    ``idle``: ticks among the others that have no effect.
    """

    can: int = 0
    asks: int = 0
    cannot: int = 0
    idle: int = 0

    @property
    def every(self) -> int:
        """All operations."""
        return self.can + self.asks + self.cannot


class ToolTreeModel(QAbstractItemModel):
    """Give it an agent with its rights; rows that did not change are left alone."""

    many_changed = Signal()
    """So many tools changed that a view would ask too much about each of them: whoever shows them looks again."""

    def __init__(self, verbs: Verbs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.verbs = verbs
        self._agent = Agent("")
        self._sources: tuple[Source, ...] = ()
        self._rights: tuple[ToolRight, ...] = ()
        self._groups: tuple[tuple[ToolGroup, int], ...] = ()
        self._rows: dict[str, int] = {}
        self._sizes: tuple[int, ...] = ()
        self._readings: Mapping[str, Reading] = {}
        self._tokens: Mapping[str, int] = {}
        self._shares: Shares = {}
        self._grounds: Mapping[str, str] = {}
        self._tokens_exact = True
        self._enforced: Mapping[str, ToolRight] = {}
        self._noted: dict[str, tuple[Noted | None, ...]] = {}
        self._asking: dict[str, tuple[ToolRight, int]] = {}
        """By tool the operations of a right that ask first, counted once for each right."""

    # content

    def set_agent(
        self,
        agent: Agent | None,
        rights: Mapping[str, ToolRight],
        sources: tuple[Source, ...] = (),
        catalogs: Sequence[Catalog] = (),
        enforced: Mapping[str, ToolRight] | None = None,
    ) -> None:
        """Show the rights of an agent with its sources. The same tools as before keep their rows, whoever it is.

        ``enforced``: its rights if nothing were only observed; empty or None where all is enforced.
        """
        was_observed, self._enforced, self._noted = bool(self._enforced), enforced or {}, {}
        together = by_origin(rights.values(), lambda right: right.facts.origin, catalogs)
        new = tuple([right for held in together.values() for right in held])
        starts = accumulate(map(len, together.values()), initial=0)
        groups = tuple([(group_of(origin, catalogs), start) for origin, start in zip(together, starts, strict=False)])
        if groups == self._groups and len(new) == len(self._rights) and all(map(same_shape, new, self._rights)):
            self._refresh(agent or Agent(""), new, sources, is_all=was_observed or bool(enforced))
            return
        self.beginResetModel()
        self._agent, self._rights, self._sources = agent or Agent(""), new, sources
        self._groups = groups
        self._rows = {right.facts.name: row for row, right in enumerate(new)}
        self._sizes = tuple([len(right.facts.operations) if right.facts.has_operations else 0 for right in new])
        self.endResetModel()

    def _refresh(self, agent: Agent, new: tuple[ToolRight, ...], sources: tuple[Source, ...], *, is_all: bool) -> None:
        old, self._rights = self._rights, new
        other_rules = is_all or agent.tool_rules != self._agent.tool_rules or sources != self._sources
        self._agent, self._sources = agent, sources
        other = [row for row, (before, after) in enumerate(zip(old, new, strict=True)) if is_all or before is not after]
        if len(other) > MANY_ROWS:  # to look at each takes longer than to paint what is seen of them
            self.dataChanged.emit(self.index(other[0], Column.NAME), self.index(other[-1], Column.FACT))
            self.many_changed.emit()
            return
        for row in other:
            if other_rules or not looks_alike(old[row], new[row]):
                self._tell_whole(row)

    def _tell_whole(self, row: int) -> None:
        """Have a tool with its operations painted again."""
        self.dataChanged.emit(self.index(row, 0), self.index(row, Column.FACT))
        if self._sizes[row]:
            parent, last = self.index(row, 0), self._sizes[row] - 1
            self.dataChanged.emit(self.index(0, 0, parent), self.index(last, Column.FACT, parent))

    def note_at(self, tool: ToolRight, operation: OperationRight | None) -> Noted | None:
        """The difference that enforcing would make to a row; None where nothing of it is only observed."""
        name = tool.facts.name
        if name not in self._enforced:
            return None
        if name not in self._noted:
            self._noted[name] = note_rows(tool, self._enforced[name])
        rows = self._noted[name]
        if operation is None:
            return note_tool(rows)
        return rows[tool.facts.operation_names.index(operation.operation)] if rows else None

    def set_readings(self, readings: Mapping[str, Reading]) -> None:
        """Set how the operations of strangers' tools were found."""
        before, self._readings = self._readings, readings
        self._tell(name for name in {*before, *readings} if before.get(name) != readings.get(name))

    def set_tokens(self, tokens: Mapping[str, int], *, exact: bool) -> None:
        """Set what each tool costs that the model sees; empty while it is not known."""
        before, self._tokens = self._tokens, tokens
        other, self._tokens_exact = exact != self._tokens_exact, exact
        self._tell(name for name in {*before, *tokens} if other or before.get(name) != tokens.get(name))

    def set_shares(self, shares: Shares) -> None:
        """Set how many files each operation that goes by the path may touch; empty while that is not known."""
        before, self._shares = self._shares, shares
        names = {tool for tool, name in {*before, *shares} if before.get((tool, name)) != shares.get((tool, name))}
        rows = sorted(self._rows[name] for name in names if name in self._rows)
        for row in rows[:MANY_ROWS]:
            self._tell_whole(row)
        if len(rows) > MANY_ROWS:
            self.many_changed.emit()

    def _share(self, tool: ToolRight, operation: OperationRight | None) -> Share | None:
        """Of an operation, or of a tool without any."""
        if operation is None and tool.facts.has_operations:
            return None
        return self._shares.get((tool.facts.name, operation.operation if operation else ""))

    def _tell(self, names: Iterable[str]) -> None:
        """Have the rows of these tools painted again; neighbours are told of together, and many at once."""
        rows = sorted(self._rows[name] for name in names if name in self._rows)
        if len(rows) > MANY_ROWS:
            self.dataChanged.emit(self.index(rows[0], 0), self.index(rows[-1], Column.FACT))
            return
        for _, run in groupby(enumerate(rows), key=lambda pair: pair[1] - pair[0]):
            told = [row for _, row in run]
            self.dataChanged.emit(self.index(told[0], 0), self.index(told[-1], Column.FACT))

    def reading_of(self, tool: str) -> Reading | None:
        """The reading of a stranger's tool; None for the others."""
        return self._readings.get(tool)

    def set_grounds(self, grounds: Mapping[str, str]) -> None:
        """Set what the files are that tools work on, in words."""
        self._grounds = grounds

    def ground_of(self, tool: str) -> str:
        """The words for what a tool works on; empty where that is not known."""
        return self._grounds.get(tool, "")

    @property
    def agent(self) -> Agent:
        """Whose rights are shown."""
        return self._agent

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources of the agent."""
        return self._sources

    @property
    def rights(self) -> tuple[ToolRight, ...]:
        """The rights that are shown."""
        return self._rights

    @property
    def groups(self) -> tuple[tuple[ToolGroup, int], ...]:
        """The groups that the tools come from, each with the row of its first tool."""
        return self._groups

    @property
    def tokens(self) -> Mapping[str, int]:
        """The cost of each tool; empty while it is not known."""
        return self._tokens

    def token_words(self, tokens: int) -> str:
        """A number of tokens as the cells say it."""
        return count_words(tokens, exact=self._tokens_exact)

    @property
    def tally(self) -> Tally:
        """The operations by what they come to; a plain tool is one."""
        asks, idle = 0, 0
        for right in self._rights:
            if right.shown:
                name = right.facts.name
                held = self._asking.get(name)
                if held is None or held[0] is not right:
                    held = self._asking[name] = (right, sum([row.verdict is Verdict.ASK for row in right.operations]))
                asks += held[1]
            idle += len(right.ticked - right.shown)
        on = sum([len(right.shown) for right in self._rights])
        every = sum([len(right.facts.operations) for right in self._rights])
        return Tally(on - asks, asks, every - on, idle)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of operations below each tool."""
        return self._sizes

    def right_of(self, index: Index) -> tuple[ToolRight, OperationRight | None] | None:
        """The tool of a row, and its operation when the row is one."""
        if not index.isValid():
            return None
        held = index.internalId()
        if held == 0:
            return self._rights[index.row()], None
        right = self._rights[held - 1]
        return right, right.operations[index.row()]

    def index_of(self, tool: str, operation: str | None) -> QModelIndex:
        """The row of a tool or of one of its operations; invalid when there is none."""
        row = self._rows.get(tool)
        if row is None:
            return QModelIndex()
        top = self.index(row, 0)
        names = self._rights[row].facts.operation_names
        return self.index(names.index(operation), 0, top) if operation in names else top

    # structure

    def index(self, row: int, column: int, parent: Index = QModelIndex()) -> QModelIndex:  # noqa: B008
        """A cell."""
        if row < 0 or not 0 <= column < COLUMNS or row >= self.rowCount(parent):
            return QModelIndex()
        return self.createIndex(row, column, parent.row() + 1 if parent.isValid() else 0)

    def parent(self, index: Index = QModelIndex()) -> QModelIndex:  # type: ignore[override]  # noqa: B008
        """The tool of an operation."""
        held = index.internalId() if index.isValid() else 0
        return self.createIndex(held - 1, 0, 0) if held else QModelIndex()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """Tools, or the operations of one."""
        if not parent.isValid():
            return len(self._rights)
        return 0 if parent.internalId() or parent.column() else self._sizes[parent.row()]

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """The same everywhere."""
        del parent
        return COLUMNS

    def hasChildren(self, parent: Index = QModelIndex()) -> bool:  # noqa: N802, B008
        """Tell whether a row can be opened."""
        return self.rowCount(parent) > 0

    def flags(self, index: Index) -> Qt.ItemFlag:
        """The first column can be ticked."""
        if not index.isValid():
            return Qt.ItemFlag.NoItemFlags
        return (LEAF_FLAGS if index.internalId() else FLAGS)[index.column() != 0]

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Words over the columns, which nobody sees and a screen reader says."""
        is_one = orientation == Qt.Orientation.Horizontal and 0 <= section < COLUMNS
        return tr(HEADINGS[section]) if is_one and role == Qt.ItemDataRole.DisplayRole else None

    # cells

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """The text that a cell shows, and the roles of its row."""
        if not index.isValid():
            return None
        held, row = index.internalId(), index.row()
        return self.value_at(held - 1 if held else row, row if held else None, index.column(), role)

    def value_at(self, row: int, operation_row: int | None, column: int, role: int) -> Any:
        """The same as `data`, of a tool's row or of one of its operations."""
        tool = self._rights[row]
        operation = None if operation_row is None else tool.operations[operation_row]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                if column == Column.FACT:
                    return self._fact(tool, operation)
                return operation.operation if operation else tool.facts.name
            case Qt.ItemDataRole.CheckStateRole:
                return _check_state(tool, operation) if column == Column.NAME else None
            case Qt.ItemDataRole.ToolTipRole:
                tip = self._fact_tip if column == Column.FACT else self._name_tip
                return "\n".join(filter(None, tip(tool, operation)))
            case Qt.ItemDataRole.AccessibleTextRole:
                return self._fact(tool, operation) if column == Column.FACT else self._spoken(tool, operation)
            case _ if role == SWITCH_TIP:
                return "\n".join(self._switch_tip(tool, operation))
            case _ if role == IDLE:
                is_leaf = operation is not None or not tool.facts.has_operations
                return is_leaf and state_of(tool, operation) is RowState.OVERRULED
            case _ if role == MEND:
                return mend_of(tool, operation)
            case _ if role == MARK:
                reading = self._reading(tool, operation)  # what is declared has been looked at
                return reading.kind if reading is not None and reading.mark and reading.kind != "declared" else ""
            case _ if role == NOTED:
                return self.note_at(tool, operation)
            case _ if role == SHARE:
                return self._share(tool, operation)
            case _ if role in _ROW_VALUES:
                return _ROW_VALUES[role](tool, operation)
            case _:
                return None

    def _reading(self, tool: ToolRight, operation: OperationRight | None) -> Reading | None:
        return self._readings.get(tool.facts.name) if operation is None else None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:  # noqa: N802
        """A tick asks the verb. A mixed tool is turned off, whatever the view wished."""
        found = self.right_of(index)
        if found is None or role != Qt.ItemDataRole.CheckStateRole or index.column() != Column.NAME:
            return False
        tool, operation = found
        wanted = Qt.CheckState(value) == Qt.CheckState.Checked
        if operation is not None:
            return self.verbs.tick_operation(tool.facts.name, operation.operation, wanted)
        mixed = _check_state(tool, None) == Qt.CheckState.PartiallyChecked
        return self.verbs.tick_tool(tool.facts.name, wanted and not mixed)

    def _fact(self, tool: ToolRight, operation: OperationRight | None) -> str:
        """The one fact of a row; of a tool with operations how many are on."""
        noted, reading = self.note_at(tool, operation), self._reading(tool, operation)
        if noted is not None:
            said = tr("observed in part") if noted.is_some else tr("only observed")
            return f"{said}: {noted.words}"
        mark_words = reading.mark if reading is not None else ""
        if operation is None and tool.facts.has_operations:
            idle = len(tool.ticked - tool.shown)
            count = _count(tool, None) if tool.shown or not idle else ""
            parts = (count, tr("{count:,} without effect", count=idle) if idle else "", mark_words)
            return ", ".join(filter(None, parts))
        if stopped := no_effect_words(self._agent, tool, operation):
            return stopped
        row = operation or tool.operations[0]
        parts = (mark_words, fact_words(tool, operation, self._share(tool, operation)))
        told = ", ".join(filter(None, parts))
        limits = "" if row.by_value or not row.ticked else self._limits(tool, operation)
        return ", ".join(filter(None, (told, limits)))

    def _limits(self, tool: ToolRight, operation: OperationRight | None) -> str:
        return limits_of(self._agent, tool.facts, operation.operation if operation else None, self._sources)

    def _name_tip(self, tool: ToolRight, operation: OperationRight | None) -> Iterable[str]:
        facts = tool.facts
        yield description_of(tool, operation)
        danger = danger_of(tool, operation)
        tokens = self._tokens.get(facts.name) if operation is None else None
        about = (
            tr(EFFECT_WORDS[danger]) if danger is not None else "",
            tr(TIER_WORDS[operation.tier if operation else facts.tier]),
            tr("from {origin}", origin=facts.origin) if operation is None else "",
            tr("{count} tokens", count=self.token_words(tokens)) if tokens is not None else "",
        )
        yield ", ".join(filter(None, about))
        yield self.ground_of(facts.name).replace("`", "") if operation is None else ""
        yield self._limits(tool, operation)
        yield from self._reading_words(tool, operation)

    def _fact_tip(self, tool: ToolRight, operation: OperationRight | None) -> Iterable[str]:
        share, rows = self._share(tool, operation), (operation,) if operation else tool.operations
        noted = self.note_at(tool, operation)
        yield noted.sentence if noted is not None else ""
        yield from (reason.text.replace("`", "") for reason in reasons_of(tool, operation)[:8])
        yield from dict.fromkeys(depending_words(facts_of(tool, row), row, share) for row in rows if not row.is_hidden)
        yield self._limits(tool, operation)
        yield from self._reading_words(tool, operation)
        yield tr("click: at which files") if share is not None else ""

    def _switch_tip(self, tool: ToolRight, operation: OperationRight | None) -> Iterable[str]:
        """Say whether the row asks first, and why it must; a row without effect says that."""
        if state_of(tool, operation) is RowState.OVERRULED:
            yield no_effect_words(self._agent, tool, operation)
        elif switch_of(tool, operation) is Switch.LOCKED:
            yield asking_words(tool, operation)
            rows = (operation,) if operation is not None else tool.operations
            held = (one for row in rows for one in row.reasons if one.verdict is Verdict.ASK)
            yield from dict.fromkeys(one.text.replace("`", "") for one in held if one.layer is not Layer.APPROVALS)
        else:
            yield asking_words(tool, operation)
            yield tr("On: runs at once. Ask first (Alt+K): a person is asked before each call.")

    def _reading_words(self, tool: ToolRight, operation: OperationRight | None) -> tuple[str, ...]:
        reading = self._reading(tool, operation)
        return tuple(text.replace("`", "") for text in reading.said) if reading is not None else ()

    def _spoken(self, tool: ToolRight, operation: OperationRight | None) -> str:
        """Name, box, switch, danger."""
        state, switch, danger = state_of(tool, operation), switch_of(tool, operation), danger_of(tool, operation)
        asks = asking_words(tool, operation) if state is RowState.ON and switch is not Switch.ON else ""
        parts = (
            operation.operation if operation else tool.facts.name,
            tr(STATE_WORDS[state]),
            asks,
            tr(EFFECT_WORDS[danger]) if danger is not None else "",
        )
        return ", ".join(filter(None, parts))


def mend_of(tool: ToolRight, operation: OperationRight | None) -> Mend | None:
    """The way out of a ticked row that has no effect."""
    reason = stop_of(tool, operation) if operation is not None or not tool.facts.has_operations else None
    if reason is None:
        return None
    if reason.code == "capability-not-granted":
        return Mend.GRANT
    if reason.code == "no-source":
        return Mend.SOURCE
    return Mend.RULE if reason.layer is Layer.POLICY and reason.address else None


def _check_state(tool: ToolRight, operation: OperationRight | None) -> Qt.CheckState:
    if operation is not None:
        return Qt.CheckState.Checked if operation.ticked else Qt.CheckState.Unchecked
    state = tool_state(tool)
    if state is RowState.OVERRULED and len(tool.ticked) == len(tool.operations):
        return Qt.CheckState.Checked
    return BOXES[state]


BOXES = {
    RowState.ON: Qt.CheckState.Checked,
    RowState.OFF: Qt.CheckState.Unchecked,
    RowState.MIXED: Qt.CheckState.PartiallyChecked,
    RowState.OVERRULED: Qt.CheckState.PartiallyChecked,
}


def _count(tool: ToolRight, operation: OperationRight | None) -> str:
    if operation is not None or not tool.facts.has_operations:
        return ""
    return tr("{count:,} of {every:,}", count=len(tool.shown), every=len(tool.operations))


_ROW_VALUES: Mapping[int, Callable[[ToolRight, OperationRight | None], object]] = {
    VERDICT: verdict_of,
    STATE: state_of,
    SWITCH: switch_of,
    DANGER: danger_of,
    ASKING: asking_of,
    REASONS: reasons_of,
    DESCRIPTION: description_of,
    COUNT: _count,
    TOOL: lambda tool, _operation: tool.facts.name,
    OPERATION: lambda _tool, operation: operation.operation if operation else None,
    IS_TOOL: lambda _tool, operation: operation is None,
}
