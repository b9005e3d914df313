"""What the self-check found, as two tables: what was checked of each agent, and every note. It checks nothing."""

from typing import Any

from PySide6.QtCore import Qt

from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.table_model import RowModel
from gatewright_gui.session.selfcheck import AgentCheck, CheckCount, CheckNote

_TEXT = {Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole}
STATE, AGENT, TOOL, OPERATION, WHAT = range(5)
"""Columns of the notes."""
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


class AgentCheckModel(RowModel[AgentCheck]):
    """One row for each agent."""

    headers = AGENT_HEADS
    header_tips = AGENT_TIPS
    numeric = frozenset(range(1, len(AGENT_HEADS)))

    def cell(self, row: AgentCheck, column: int, role: int) -> Any:
        """Name and numbers."""
        return _agent_cells(row)[column] if role in _TEXT else None


class CheckNoteModel(RowModel[CheckNote]):
    """Differences first, then what could not be tried."""

    headers = NOTE_HEADS

    def cell(self, row: CheckNote, column: int, role: int) -> Any:
        """State, place, words."""
        if role in {Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole}:
            return f"{state_words(row)}: {row}"
        words = (state_words(row), row.agent_id, row.tool, row.operation, row.what)
        return words[column] if role == Qt.ItemDataRole.DisplayRole else None


def state_words(note: CheckNote) -> str:
    """The kind of note it is, in words."""
    return tr("differs") if note.is_wrong else tr("not tried")


def agreement_words(found: CheckCount) -> str:
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
        f"{tr('self-check')}: {agreement_words(found)}",
        "\n".join(rows),
        *(["\n".join(notes)] if notes else []),
    ]
    return "\n\n".join(parts) + "\n"


def _agent_cells(row: AgentCheck) -> tuple[str, ...]:
    numbers = (row.tools, row.shown, row.operations, row.differences, row.untried)
    return (row.agent_id, *(f"{number:,}" for number in numbers))
