"""Which agents may touch a block and how: the rights on the tools and the level of the block together."""

from typing import Any

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QStyleOptionViewItem

from gatewright.workspace.api import Verdict
from gatewright_gui.qt.look import VerdictName, current_look
from gatewright_gui.qt.table_model import FlatModel, Index
from gatewright_gui.qt.widget.chip import VERDICT_ICONS, VERDICT_WORDS
from gatewright_gui.qt.widget.delegate import Delegate
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.session.block_access import GROUPS, BlockAccess

VERDICT = Qt.ItemDataRole.UserRole + 1
_NAMES: dict[Verdict, VerdictName] = {Verdict.ALLOW: "allow", Verdict.ASK: "ask", Verdict.DENY: "deny"}
_GROUPS = tuple(GROUPS)


class AccessModel(FlatModel):
    """One row per agent that can reach the block, one column per kind of use."""

    headers = ("Agent", *GROUPS.values())

    def __init__(self) -> None:
        super().__init__()
        self._rows: tuple[BlockAccess, ...] = ()

    def set_rows(self, rows: tuple[BlockAccess, ...]) -> None:
        """Show these; rows of the same agents stay."""
        if [row.agent_id for row in rows] != [row.agent_id for row in self._rows]:
            self.beginResetModel()
            self._rows = rows
            self.endResetModel()
        elif rows != self._rows:
            self._rows = rows
            self.dataChanged.emit(self.index(0, 0), self.index(len(rows) - 1, len(self.headers) - 1))

    def count(self) -> int:
        """How many agents."""
        return len(self._rows)

    def row_at(self, at: int) -> BlockAccess:
        """The access of one agent."""
        return self._rows[at]

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Agents, verdicts in words, each operation in the tooltip."""
        if not index.isValid() or index.row() >= len(self._rows):
            return None
        row, column = self._rows[index.row()], index.column()
        if column == 0:
            return row.agent_id if role == Qt.ItemDataRole.DisplayRole else None
        group = _GROUPS[column - 1]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return _words(row, column - 1)
            case Qt.ItemDataRole.ToolTipRole:
                return "\n".join(one.words for one in row.of(group)) or "no tool of the workspace does it"
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{row.agent_id}, {GROUPS[group]}: {_words(row, column - 1)}"
            case _ if role == VERDICT:
                return _NAMES[row.best(group)]
            case _:
                return None


def _words(row: BlockAccess, group: int) -> str:
    """One verdict for all, or of how many operations the best one is."""
    operations = row.of(_GROUPS[group])
    best = row.best(_GROUPS[group])
    fits = sum(one.verdict is best for one in operations)
    word = VERDICT_WORDS[_NAMES[best]]
    return word if fits == len(operations) else f"{word}: {fits} of {len(operations)}"


class _VerdictDelegate(Delegate):
    """The icon of the verdict before its word."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        super().initStyleOption(option, index)
        verdict: VerdictName | None = index.data(VERDICT)
        if verdict is not None:
            setattr(option, "icon", current_look().icon(VERDICT_ICONS[verdict], verdict))  # noqa: B010
            has = QStyleOptionViewItem.ViewItemFeature.HasDecoration
            setattr(option, "features", getattr(option, "features") | has)  # noqa: B009, B010


class AccessTable(TableView):
    """A double click on an agent goes to its rights."""

    agent_requested = Signal(str)

    def __init__(self) -> None:
        super().__init__("Which agents may touch the block")
        self.setObjectName("memory.access")
        self.rows = AccessModel()
        self.setModel(self.rows)
        self.setItemDelegate(_VerdictDelegate(self))
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        header = self.horizontalHeader()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        for column in range(1, len(self.rows.headers)):
            self.setColumnWidth(column, 112)
        self.activated.connect(self._go)

    def _go(self, index: QModelIndex) -> None:
        self.agent_requested.emit(self.rows.row_at(index.row()).agent_id)
