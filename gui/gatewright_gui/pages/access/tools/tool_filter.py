"""The rows of the tree as they are shown: groups of tools, tools, operations; what a filter leaves out is not there.

What fits is worked out once when a filter is set: a row that stops fitting while it is worked on stays until then, so
that nothing jumps.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, Qt

from gatewright.workspace.api import OperationRight, ToolRight
from gatewright_gui.pages.access.tools.tool_fit import Filters, Fit, Shown
from gatewright_gui.pages.access.tools.tool_group import MORE, GroupRow, group_row, operations_of
from gatewright_gui.pages.access.tools.tool_tree import COLUMNS, FLAGS, LEAF_FLAGS, Column, ToolTreeModel
from gatewright_gui.qt.table_model import Index
from gatewright_gui.session.tool_groups import ToolGroup

IN_GROUP = 1 << 32


class ToolFilterModel(QAbstractItemModel):
    """A tool is shown when one of its operations fits; words may be in the tool's name or description too.

    A view asks for every row whenever it lays out its rows, so that nothing here is made per row before it is asked
    for. A row at the top has internal id 0: the tools that are in no group, then the groups. A tool in a group has
    `IN_GROUP` and the number of the group, an operation the place of its tool among all that are shown plus 1.
    """

    def __init__(self, tree: ToolTreeModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tree = tree
        self._fit = Fit(tree)
        self._shown = Shown.of_all(tree)
        self._group_rows: dict[int, GroupRow] = {}
        tree.modelAboutToBeReset.connect(self.beginResetModel)
        tree.modelReset.connect(self._reset)
        tree.dataChanged.connect(self._pass_on)

    @property
    def is_filtering(self) -> bool:
        """Tell whether anything may be left out."""
        return self._fit.leaves_out

    @property
    def filters(self) -> Filters:
        """The filters that are set now."""
        return self._fit.filters

    def set_search(self, text: str) -> None:
        """Every word has to be in the name or the description."""
        self._fit.words = tuple(text.casefold().split())
        self.refresh()

    def set_filters(self, filters: Filters) -> None:
        """Only rows that fit."""
        self._fit.filters = filters
        self.refresh()

    def set_problems(self, tools: Iterable[str]) -> None:
        """The tools that have a problem; who fits is looked at when the filter is set again."""
        self._fit.problems = frozenset(tools)

    def refresh(self) -> None:
        """Look anew at what fits."""
        after = self._fit.rows_to_show()
        if after == self._shown:
            return
        self.layoutAboutToBeChanged.emit()
        held = self.persistentIndexList()
        sources = [self._source_of(index) for index in held]
        origins = [group.origin if (group := self.group_at(index)) else "" for index in held]
        self._shown = after
        self._group_rows.clear()
        kept = [*map(self.group_index, origins)]
        moved = [
            group.siblingAtColumn(index.column()) if origin else self._index_of(*source, index.column())
            for index, source, origin, group in zip(held, sources, origins, kept, strict=True)
        ]
        self.changePersistentIndexList(held, moved)
        self.layoutChanged.emit()

    def operations_that_fit(self) -> Mapping[str, tuple[str, ...]]:
        """Tool -> its operations that fit; `("",)` for a tool without operations."""
        rights, shown = self._tree.rights, self._shown
        found: dict[str, tuple[str, ...]] = {}
        for row, fitting in zip(shown.rows, shown.fitting, strict=True):
            operations = rights[row].operations
            found[rights[row].facts.name] = tuple([operations[at].operation for at in fitting])
        return found

    @property
    def shown_count(self) -> int:
        """The number of operations that fit."""
        return sum(map(len, self._shown.fitting))

    # tools by their place among those that are shown

    @property
    def tool_count(self) -> int:
        """The number of tools that are shown."""
        return len(self._shown.rows)

    def tool_at(self, place: int) -> ToolRight:
        """A tool."""
        return self._tree.rights[self._shown.rows[place]]

    def operations_at(self, place: int) -> Sequence[OperationRight]:
        """The operations of a tool that are shown below it, row by row."""
        operations = self.tool_at(place).operations
        return [operations[at] for at in self._shown.fitting[place]] if self._shown.sizes[place] else ()

    def tool_index(self, place: int, column: int = 0) -> QModelIndex:
        """The row of a tool."""
        shown = self._shown
        if place < shown.loose:
            return self.createIndex(place, column, 0)
        group = bisect_right(shown.starts, place) - 1
        return self.createIndex(place - shown.starts[group], column, IN_GROUP + group)

    def place_of(self, index: Index) -> int:
        """The place of a tool by its row; -1 for any other row."""
        held, shown = index.internalId(), self._shown
        if held >= IN_GROUP:
            return shown.starts[held - IN_GROUP] + index.row()
        return -1 if held or index.row() >= shown.loose else index.row()

    def persistent_tools(self) -> Sequence[QModelIndex]:
        """The tools whose rows somebody keeps: what a view has open is among them, and few others."""
        return [index for index in self.persistentIndexList() if not index.column() and self.place_of(index) >= 0]

    # groups

    @property
    def groups(self) -> Sequence[tuple[QModelIndex, ToolGroup]]:
        """The rows of groups: of places that tools come from, and of the tools with nothing on."""
        loose = self._shown.loose
        return [(self.createIndex(loose + at, 0, 0), group) for at, group in enumerate(self._shown.groups)]

    def group_at(self, index: Index) -> ToolGroup | None:
        """The group of a row that is one."""
        at = index.row() - self._shown.loose
        return self._shown.groups[at] if index.isValid() and not index.internalId() and at >= 0 else None

    def group_index(self, origin: str) -> QModelIndex:
        """The row of a group; invalid when it is not shown."""
        return next((index for index, group in self.groups if group.origin == origin), QModelIndex())

    def members(self, origin: str) -> Sequence[int]:
        """The places of the tools that the row of a group stands for: also those of its origin with nothing on."""
        shown, rights = self._shown, self._tree.rights
        at = [group.origin for group in shown.groups].index(origin)
        own = range(shown.starts[at], shown.starts[at + 1])
        if origin == MORE or shown.groups[-1].origin != MORE:
            return own
        more = range(shown.starts[-2], shown.starts[-1])
        return [*own, *(place for place in more if rights[shown.rows[place]].facts.origin == origin)]

    def _tools_in(self, group: int) -> list[tuple[ToolRight, Sequence[int]]]:
        places = self.members(self._shown.groups[group].origin)
        return [(self.tool_at(place), self._shown.fitting[place]) for place in places]

    def _group_row(self, group: int) -> GroupRow:
        if group not in self._group_rows:
            self._group_rows[group] = group_row(self._shown.groups[group], self._tools_in(group))
        return self._group_rows[group]

    # rows of the tree and rows that are shown

    def mapToSource(self, index: Index) -> QModelIndex:  # noqa: N802  as Qt calls it
        """The cell of the tree; invalid for a group."""
        if not index.isValid() or self.group_at(index) is not None:
            return QModelIndex()
        tool, operation = self._source_of(index)
        top = self._tree.index(tool, index.column() if operation is None else 0)
        return top if operation is None else self._tree.index(operation, index.column(), top)

    def mapFromSource(self, index: Index) -> QModelIndex:  # noqa: N802  as Qt calls it
        """The place where a cell of the tree is shown; invalid when it is not."""
        if not index.isValid():
            return QModelIndex()
        held = index.internalId()
        return self._index_of(held - 1 if held else index.row(), index.row() if held else None, index.column())

    def _source_of(self, index: Index) -> tuple[int, int | None]:
        """Row of the tool, row of the operation, in the tree; -1 for a group."""
        held, shown = index.internalId(), self._shown
        if 0 < held < IN_GROUP:
            return shown.rows[held - 1], shown.fitting[held - 1][index.row()]
        place = self.place_of(index)
        return shown.rows[place] if place >= 0 else -1, None

    def _index_of(self, tool: int, operation: int | None, column: int) -> QModelIndex:
        shown = self._shown
        at = shown.places.get(tool)
        if at is None:
            return QModelIndex()
        if operation is None:
            return self.tool_index(at, column)
        row = bisect_left(shown.fitting[at], operation)
        if row >= shown.sizes[at] or shown.fitting[at][row] != operation:
            return QModelIndex()
        return self.createIndex(row, column, at + 1)

    def _reset(self) -> None:
        self._shown = self._fit.rows_to_show()
        self._group_rows.clear()
        self.endResetModel()

    def _pass_on(self, first: QModelIndex, last: QModelIndex, roles: Sequence[int] = ()) -> None:
        """The rows among these that are shown have changed, and the groups that they are in."""
        held, shown = first.internalId(), self._shown
        self._group_rows.clear()
        if held:
            at = shown.places.get(held - 1)
            if at is None or not shown.sizes[at]:
                return
            rows = shown.fitting[at]
            top, bottom = bisect_left(rows, first.row()), bisect_right(rows, last.row()) - 1
            if top <= bottom:
                start, end = (self.createIndex(r, one.column(), at + 1) for r, one in ((top, first), (bottom, last)))
                self.dataChanged.emit(start, end, roles)
            return
        found = (shown.places.get(row) for row in range(first.row(), last.row() + 1))
        places = sorted(place for place in found if place is not None)
        for parent, run in groupby(places, key=lambda place: bisect_right(shown.starts, place)):
            told = [*run]
            start, end = (self.tool_index(at, one.column()) for at, one in ((told[0], first), (told[-1], last)))
            self.dataChanged.emit(start, end, roles)
            if parent:
                self._tell_group(parent - 1)
                self._tell_group(len(shown.groups) - 1)

    def _tell_group(self, group: int) -> None:
        """Have the row of a group painted again."""
        index = self.createIndex(self._shown.loose + group, 0, 0)
        self.dataChanged.emit(index, index.siblingAtColumn(Column.FACT))

    # structure

    def _below(self, parent: Index) -> tuple[int, int]:
        """The number of rows below a row, and their internal id."""
        at, held, shown = parent.row(), parent.internalId(), self._shown
        if at < 0:
            return shown.loose + len(shown.groups), 0
        if parent.column() or 0 < held < IN_GROUP:
            return 0, 0
        if not held and at >= shown.loose:
            group = at - shown.loose
            return shown.starts[group + 1] - shown.starts[group], IN_GROUP + group
        place = shown.starts[held - IN_GROUP] + at if held else at
        return shown.sizes[place], place + 1

    def index(self, row: int, column: int, parent: Index = QModelIndex()) -> QModelIndex:  # noqa: B008
        """A cell."""
        count, held = self._below(parent)
        return self.createIndex(row, column, held) if 0 <= row < count and 0 <= column < COLUMNS else QModelIndex()

    def parent(self, index: Index = QModelIndex()) -> QModelIndex:  # type: ignore[override]  # noqa: B008
        """The tool of an operation, the group of a tool."""
        held = index.internalId() if index.isValid() else 0
        if not held:
            return QModelIndex()
        if held < IN_GROUP:
            return self.tool_index(held - 1)
        return self.createIndex(self._shown.loose + held - IN_GROUP, 0, 0)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """Groups, tools, or the operations of one."""
        return self._below(parent)[0]

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """The same everywhere."""
        del parent
        return COLUMNS

    def hasChildren(self, parent: Index = QModelIndex()) -> bool:  # noqa: N802, B008
        """Tell whether a row can be opened."""
        return self._below(parent)[0] > 0

    def flags(self, index: Index) -> Qt.ItemFlag:
        """The first column can be ticked; a view asks for this of every row whenever it lays them out."""
        column = index.column()
        if column < 0:
            return Qt.ItemFlag.NoItemFlags
        return (LEAF_FLAGS if 0 < index.internalId() < IN_GROUP else FLAGS)[column != 0]

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Words over the columns."""
        return self._tree.headerData(section, orientation, role)

    # cells

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """The content of a cell of the tree, or of the row of a group; behind what is off stands where it is from."""
        if not index.isValid():
            return None
        if not index.internalId() and index.row() >= self._shown.loose:
            return self._group_row(index.row() - self._shown.loose).value(Column(index.column()), role)
        tool, operation = self._source_of(index)
        value = self._tree.value_at(tool, operation, index.column(), role)
        is_fact = role == Qt.ItemDataRole.DisplayRole and index.column() == Column.FACT and operation is None
        if is_fact and len(self._tree.groups) > 1 and self._is_in_more(index) and not self._tree.rights[tool].ticked:
            return ", ".join(filter(None, (self._tree.rights[tool].facts.origin, value)))
        return value

    def _is_in_more(self, index: Index) -> bool:
        group = self.group_at(self.parent(index))
        return group is not None and group.origin == MORE

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:  # noqa: N802
        """A tick, as the tree takes it; on a group for all its tools that are shown. A mixed one is turned off."""
        group = self.group_at(index)
        if group is None:
            return self._tree.setData(self.mapToSource(index), value, role)
        if group.origin == MORE or role != Qt.ItemDataRole.CheckStateRole or index.column() != Column.NAME:
            return False
        mixed = self.data(index, role) == Qt.CheckState.PartiallyChecked
        wanted = Qt.CheckState(value) == Qt.CheckState.Checked and not mixed
        return self._tree.verbs.tick_many(operations_of(self._tools_in(index.row() - self._shown.loose)), wanted)
