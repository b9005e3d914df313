"""What a plan for rights would change, as a table (agent, operation, now, then), and the agents that it is for."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from PySide6.QtCore import QModelIndex, QObject, Qt, Signal

from gatewright.workspace.api import Agent
from gatewright_gui.pages.access.agents import agent_fits
from gatewright_gui.pages.access.tools.right_lines import KIND_WORDS, MOST_ROWS, AgentLines, ChangeRow
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.table_model import Index, RowModel

HEADINGS = (mark("Agent"), mark("What changes"), mark("Now"), mark("Then"))
AGENT, WHAT, NOW, THEN = range(4)


class RightChangesModel(RowModel[ChangeRow]):
    """Rows come agent by agent; a search and a kind choose among them."""

    def __init__(self, parent: QObject | None = None, headers: Sequence[str] = HEADINGS) -> None:
        super().__init__(parent)
        self.headers = tuple(headers)
        self._every: list[ChangeRow] = []
        self._texts: list[str] = []
        self._counts: Counter[str] = Counter()
        self._words: tuple[str, ...] = ()
        self._kind = ""

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of lines of each kind in all, those left out of the table too."""
        return self._counts

    @property
    def counts_total(self) -> int:
        """The number of lines in all."""
        return self._counts.total()

    @property
    def is_cut(self) -> bool:
        """Tell whether there are more lines than the table holds."""
        return self._counts.total() > len(self._every)

    def clear(self) -> None:
        """No lines."""
        self._every, self._texts, self._counts = [], [], Counter()
        self.refresh_rows((), stay=False)

    @property
    def room(self) -> int:
        """The number of lines that the table still takes."""
        return max(MOST_ROWS - len(self._every), 0)

    def add(self, lines: AgentLines) -> None:
        """The lines of one more agent."""
        self._counts.update(lines.counts)
        first, room = len(self._every), self.room
        self._every += lines.rows[:room]
        self._texts += lines.texts[:room]
        chosen = self._fitting(range(first, len(self._every)))
        if chosen:
            self.beginInsertRows(QModelIndex(), len(self.rows), len(self.rows) + len(chosen) - 1)
            self.rows = (*self.rows, *chosen)
            self.endInsertRows()

    def set_filter(self, text: str, kind: str) -> None:
        """Only lines with all of these words, and of that kind; an empty one stands for all."""
        wanted = tuple(text.casefold().split()), kind
        if wanted != (self._words, self._kind):
            self._words, self._kind = wanted
            self.refresh_rows(self._fitting(range(len(self._every))), stay=False)

    def _fitting(self, places: Sequence[int]) -> Sequence[ChangeRow]:
        """Which of these fit, one word after the other: each leaves fewer to look at."""
        rows, texts, kind = self._every, self._texts, self._kind
        if kind:
            places = [at for at in places if rows[at].kind == kind]
        for word in self._words:
            places = [at for at in places if word in texts[at]]
        return [rows[at] for at in places]

    def text(self, row: ChangeRow, column: int, /) -> str:
        """Agent, what, now, then."""
        return (row.agent_id, row.what, row.now, row.then)[column]

    def tip(self, row: ChangeRow, _column: int, /) -> str:
        """The whole line, with the agents that it is for."""
        return f"{row.agent_id}: {row.what}: {row.now} -> {row.then}"

    spoken = tip


def counts_words(counts: Mapping[str, int]) -> str:
    """`3 turned on, 2 turned off`, in the order in which one wants to know."""
    return ", ".join(f"{counts[kind]:,} {tr(KIND_WORDS[kind])}" for kind in KIND_WORDS if counts.get(kind))


class AgentChoiceModel(RowModel[Agent]):
    """Agents with a box each; a filter leaves agents out of the list and their boxes as they are."""

    chosen_changed = Signal()

    def __init__(self, agents: Sequence[Agent], chosen: Iterable[str], parent: QObject | None = None) -> None:
        super().__init__(parent, agents)
        self._agents = tuple(agents)
        self._chosen = set(chosen) & {agent.agent_id for agent in self._agents}

    @property
    def chosen(self) -> tuple[str, ...]:
        """The ids whose box is ticked, in the order of the file."""
        return tuple(agent.agent_id for agent in self._agents if agent.agent_id in self._chosen)

    @property
    def every(self) -> int:
        """The number of agents to choose from."""
        return len(self._agents)

    @property
    def are_all_shown_chosen(self) -> bool:
        """Tell whether no box in the list is empty."""
        return all(agent.agent_id in self._chosen for agent in self.rows)

    def set_filter(self, text: str) -> None:
        """Only agents whose name or description has every word."""
        words = text.casefold().split()
        self.set_rows(agent for agent in self._agents if agent_fits(agent, words))

    def turn_shown(self) -> None:
        """Tick all that the filter leaves, or none of them where all are ticked."""
        names = {agent.agent_id for agent in self.rows}
        self._set(self._chosen - names if self.are_all_shown_chosen else self._chosen | names)

    def _set(self, chosen: set[str]) -> None:
        if chosen == self._chosen:
            return
        self._chosen = chosen
        self.tell_changed()
        self.chosen_changed.emit()

    def cell(self, row: Agent, column: int, role: int) -> Any:
        """Name, description, box."""
        del column
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return row.agent_id
            case Qt.ItemDataRole.ToolTipRole:
                return row.description or row.agent_id
            case Qt.ItemDataRole.CheckStateRole:
                return Qt.CheckState.Checked if row.agent_id in self._chosen else Qt.CheckState.Unchecked
            case _:
                return None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:  # noqa: N802
        """Tick or untick one."""
        if not index.isValid() or role != Qt.ItemDataRole.CheckStateRole:
            return False
        one = {self.rows[index.row()].agent_id}
        self._set(self._chosen | one if Qt.CheckState(value) == Qt.CheckState.Checked else self._chosen - one)
        return True

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Every row has a box."""
        flags = super().flags(index)
        return flags | Qt.ItemFlag.ItemIsUserCheckable if index.isValid() else flags
