"""Which agents may touch a thing and how, as a table: agents by what is done to it."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QStyleOptionViewItem

from gatewright.workspace.api import Verdict
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.look import VerdictName, current_look
from gatewright_gui.qt.table_model import Index, RowModel
from gatewright_gui.qt.widget.chip import VERDICT_ICONS
from gatewright_gui.qt.widget.item_view import Delegate, TableView, put_icon
from gatewright_gui.session.block_access import mildest

VERDICT = Qt.ItemDataRole.UserRole + 1
_NAMES: dict[Verdict, VerdictName] = {Verdict.ALLOW: "allow", Verdict.ASK: "ask", Verdict.DENY: "deny"}


class OperationAccess(Protocol):
    """The verdict on an operation; `words`: with its reason."""

    @property
    def verdict(self) -> Verdict:
        """The verdict of the gate."""
        ...

    @property
    def words(self) -> str:
        """The operation, the verdict, why."""
        ...


class Access(Protocol):
    """One agent's operations, by what they do."""

    @property
    def agent_id(self) -> str:
        """Whose they are."""
        ...

    def of(self, group: str) -> Sequence[OperationAccess]:
        """The operations of a group."""
        ...


class AccessModel(RowModel[Access]):
    """One row per agent, one column per kind of use. `groups`: key of each and its heading."""

    def __init__(self, groups: Mapping[str, str]) -> None:
        super().__init__()
        self.groups = tuple(groups)
        self.headers = (tr("Agent"), *groups.values())

    def key(self, row: Access) -> str:
        """The agent."""
        return row.agent_id

    def operations_at(self, index: Index) -> Sequence[OperationAccess]:
        """The operations that a cell sums up; none in the column of the agents."""
        return self.rows[index.row()].of(self.groups[index.column() - 1]) if index.column() else ()

    def cell(self, row: Access, column: int, role: int) -> Any:
        """Agents, verdicts in words, each operation in the tooltip."""
        if column == 0:
            return row.agent_id if role == Qt.ItemDataRole.DisplayRole else None
        operations = row.of(self.groups[column - 1])
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return _words(operations)
            case Qt.ItemDataRole.ToolTipRole:
                return "\n".join(one.words for one in operations) or tr("no tool here can do this")
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{row.agent_id}, {self.headers[column]}: {_words(operations)}"
            case _ if role == VERDICT:
                return _NAMES[mildest(one.verdict for one in operations)] if operations else None
            case _:
                return None

    def as_text(self) -> str:
        """All of it, tabs between the cells."""
        rows = [[str(self.index(row, at).data()) for at in range(len(self.headers))] for row in range(self.count())]
        return "".join("\t".join(cells) + "\n" for cells in (self.headers, *rows))


def _words(operations: Sequence[OperationAccess]) -> str:
    """One verdict for all, or of how many operations the best one is."""
    if not operations:
        return "\u2013"
    best = mildest(one.verdict for one in operations)
    fits = sum(one.verdict is best for one in operations)
    word = best.words
    return (
        word
        if fits == len(operations)
        else tr("{verdict}: {fits} of {count}", verdict=word, fits=fits, count=len(operations))
    )


class _VerdictDelegate(Delegate):
    """The icon of the verdict before its word."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        super().initStyleOption(option, index)
        verdict: VerdictName | None = index.data(VERDICT)
        if verdict is not None:
            put_icon(option, VERDICT_ICONS[verdict], verdict, current_look().tokens.icon_size)


class AccessTable(TableView):
    """Return or a double click on a cell asks for the agent there, and for what is done."""

    cell_requested = Signal(object)
    """The cell: QModelIndex."""
    agent_requested = Signal(str)
    """The agent of that cell."""

    def __init__(self, what: str, groups: Mapping[str, str]) -> None:
        super().__init__(what)
        self.rows = AccessModel(groups)
        self.setModel(self.rows)
        self.setItemDelegate(_VerdictDelegate(self))
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        header = self.horizontalHeader()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.activated.connect(self._go)

    def _go(self, index: QModelIndex) -> None:
        self.cell_requested.emit(index)
        self.agent_requested.emit(self.rows.rows[index.row()].agent_id)
