"""What the self-check found, as two tables: what was checked of each agent, and every note. It checks nothing."""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, Qt

from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.table_model import FlatModel
from gatewright_gui.session.selfcheck import AgentCheck, CheckCount, CheckNote

Index = QModelIndex | QPersistentModelIndex
NOTE, AGENT = Qt.ItemDataRole.UserRole + 1, Qt.ItemDataRole.UserRole + 2
_TEXT = {Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole}
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class AgentColumn(IntEnum):
    """From the left."""

    AGENT = 0
    TOOLS = 1
    SHOWN = 2
    OPERATIONS = 3
    DIFFERENCES = 4
    UNTRIED = 5


class NoteColumn(IntEnum):
    """From the left."""

    STATE = 0
    AGENT = 1
    TOOL = 2
    OPERATION = 3
    WHAT = 4


AGENT_HEADS = (mark("Agent"), mark("Tools"), mark("Shown"), mark("Operations"), mark("Differences"), mark("Not tried"))
AGENT_TIPS = (
    mark("Every agent of the policy"),
    mark("Tools of the catalog, each of which is checked"),
    mark("Tools that the model of this agent sees"),
    mark("Operations that were checked, those that are hidden too"),
    mark("Operations of which list, schema and gate do not say the same"),
    mark("Operations for which no whole call could be made to try"),
)
NOTE_HEADS = ("", mark("Agent"), mark("Tool"), mark("Operation"), mark("What"))


class AgentCheckModel(FlatModel):
    """One row for each agent."""

    headers = AGENT_HEADS

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: tuple[AgentCheck, ...] = ()

    def set_rows(self, rows: Sequence[AgentCheck]) -> None:
        """Show these."""
        self.beginResetModel()
        self._rows = tuple(rows)
        self.endResetModel()

    def count(self) -> int:
        """How many agents."""
        return len(self._rows)

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Words over the columns; numbers stand at the right."""
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(AGENT_HEADS):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return tr(AGENT_HEADS[section])
        if role == Qt.ItemDataRole.ToolTipRole:
            return tr(AGENT_TIPS[section])
        return _alignment(section) if role == Qt.ItemDataRole.TextAlignmentRole else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Name and numbers; the row as a value under `AGENT`."""
        if not index.isValid() or index.row() >= len(self._rows):
            return None
        row = self._rows[index.row()]
        if role in _TEXT:
            return _agent_cells(row)[index.column()]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(index.column())
        return row if role == AGENT else None


class CheckNoteModel(FlatModel):
    """Differences first, then what could not be tried."""

    headers = NOTE_HEADS

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: tuple[CheckNote, ...] = ()

    def set_rows(self, rows: Sequence[CheckNote]) -> None:
        """Show these."""
        self.beginResetModel()
        self._rows = tuple(rows)
        self.endResetModel()

    def count(self) -> int:
        """How many notes."""
        return len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """State, place, words; the note as a value under `NOTE`."""
        if not index.isValid() or index.row() >= len(self._rows):
            return None
        row = self._rows[index.row()]
        if role == NOTE:
            return row
        if role in {Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole}:
            return f"{state_words(row)}: {row}"
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        return (state_words(row), row.agent_id, row.tool, row.operation, row.what)[index.column()]


def state_words(note: CheckNote) -> str:
    """What kind of note it is."""
    return tr("differs") if note.is_wrong else tr("not tried")


def found_words(found: CheckCount) -> str:
    """`172 of 172 operations agree, of 4 agents with 15 tools each`."""
    good = found.checked - len(found.differences)
    tools = max((agent.tools for agent in found.agents), default=0)
    agents = counted(len(found.agents), "agent", "agents")
    return tr(
        "{good:,} of {checked:,} operations agree, of {agents} with {tools:,} tools each",
        good=good,
        checked=found.checked,
        agents=agents,
        tools=tools,
    )


def report_text(found: CheckCount) -> str:
    """All of it as text to paste: the sum, a table by agent with tabs, every note in full."""
    rows = ["\t".join(map(tr, AGENT_HEADS)), *("\t".join(_agent_cells(agent)) for agent in found.agents)]
    notes = [f"{state_words(note)}: {note}" for note in (*found.differences, *found.untried)]
    parts = [
        f"{tr('self-check')}: {found_words(found)}",
        "\n".join(rows),
        *(["\n".join(notes)] if notes else []),
    ]
    return "\n\n".join(parts) + "\n"


def _agent_cells(row: AgentCheck) -> tuple[str, ...]:
    numbers = (row.tools, row.shown, row.operations, row.differences, row.untried)
    return (row.agent_id, *(f"{number:,}" for number in numbers))


def _alignment(column: int) -> Qt.AlignmentFlag:
    return _LEFT if column == AgentColumn.AGENT else _RIGHT
