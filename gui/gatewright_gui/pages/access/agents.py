"""The agents as a list, what is wrong with them or their tools, and how many operations their models see."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from PySide6.QtCore import QObject, QSortFilterProxyModel, Qt, Signal

from gatewright.workspace.api import Agent, Layer, Problem, ToolRight
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.table_model import Index, RowModel
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.derive import Deriver
from gatewright_gui.session.document import ChangeSet, Document
from gatewright_gui.session.right_columns import visible_count

AGENT_ID = Qt.ItemDataRole.UserRole + 1
DESCRIPTION = Qt.ItemDataRole.UserRole + 2
COUNT = Qt.ItemDataRole.UserRole + 3
"""`41 of 57`: what its model sees; empty while that is not known."""
PROBLEMS = Qt.ItemDataRole.UserRole + 4
"""What is wrong with it, one line each; empty when nothing is."""


class AgentListModel(RowModel[Agent]):
    """One row per agent, in the order of the file. `rename` gets the old and the new name."""

    def __init__(self, rename: Callable[[str, str], bool], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rename = rename
        self._counts: dict[str, tuple[int, int]] = {}
        self._problems: Mapping[str, tuple[str, ...]] = {}

    def set_count(self, agent_id: str, on: int, every: int) -> None:
        """Set the number of operations that the model of the agent sees."""
        if self._counts.get(agent_id) != (on, every):
            self._counts[agent_id] = (on, every)
            self._tell(agent_id)

    def set_problems(self, problems: Mapping[str, tuple[str, ...]]) -> None:
        """Set what is wrong with each agent."""
        before, self._problems = self._problems, problems
        for agent_id in {*before, *problems}:
            if before.get(agent_id) != problems.get(agent_id):
                self._tell(agent_id)

    def _tell(self, agent_id: str) -> None:
        row = self.find(agent_id)
        if row >= 0:
            self.dataChanged.emit(self.index(row, 0), self.index(row, 0))

    def set_rows(self, rows: Iterable[Agent]) -> None:
        """Show these; rows that stay are only refreshed, so that what is selected stays selected."""
        new = tuple(rows)
        if len(new) == len(self.rows):  # one of them may have another name now
            self.refresh_rows(new, stay=True)
        else:
            super().set_rows(new)

    def key(self, row: Agent, /) -> str:
        """Its name."""
        return row.agent_id

    def cell(self, row: Agent, column: int, role: int) -> Any:
        """Name, description, tooltip."""
        del column
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.EditRole:
                return row.agent_id
            case Qt.ItemDataRole.ToolTipRole:
                return self._tip(row)
            case Qt.ItemDataRole.AccessibleTextRole:
                return ", ".join(part for part in (row.agent_id, row.description, *self._marks(row)) if part)
            case _ if role == AGENT_ID:
                return row.agent_id
            case _ if role == DESCRIPTION:
                return row.description
            case _ if role == COUNT:
                return self._count(row.agent_id)
            case _ if role == PROBLEMS:
                return self._problems.get(row.agent_id, ())
            case _:
                return None

    def _count(self, agent_id: str) -> str:
        held = self._counts.get(agent_id)
        return tr("{count:,} of {every:,}", count=held[0], every=held[1]) if held else ""

    def _marks(self, agent: Agent) -> tuple[str, ...]:
        count, wrong = self._count(agent.agent_id), len(self._problems.get(agent.agent_id, ()))
        said = counted(wrong, "problem", "problems") if wrong else ""
        return tuple(part for part in (tr("{count} on", count=count) if count else "", said) if part)

    def _tip(self, agent: Agent) -> str:
        wrong = (text.replace("`", "") for text in self._problems.get(agent.agent_id, ())[:4])
        count = self._count(agent.agent_id)
        lines = (agent.description or agent.agent_id, tr("{count} operations on", count=count) if count else "", *wrong)
        return "\n".join(line for line in lines if line)

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:  # noqa: N802
        """Rename by the verb."""
        agent = self.row_at(index.row())
        if agent is None or role != Qt.ItemDataRole.EditRole:
            return False
        return self._rename(agent.agent_id, str(value).strip())

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Names can be edited."""
        flags = super().flags(index)
        return flags | Qt.ItemFlag.ItemIsEditable if index.isValid() else flags


def agent_fits(agent: Agent, words: Iterable[str]) -> bool:
    """Tell whether its name or description has every word; these are casefolded."""
    text = f"{agent.agent_id} {agent.description}".casefold()
    return all(word in text for word in words)


class AgentFilterModel(QSortFilterProxyModel):
    """Only agents that fit a search."""

    def __init__(self, agents: AgentListModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._agents = agents
        self._words: tuple[str, ...] = ()
        self.setSourceModel(agents)

    def set_search(self, text: str) -> None:
        """Other words."""
        self._words = tuple(text.casefold().split())
        self.invalidate()

    def row_of(self, agent_id: str | None) -> int:
        """The row of an agent, -1 when it is not shown."""
        row = self._agents.find(agent_id)
        return self.mapFromSource(self._agents.index(row, 0)).row() if row >= 0 else -1

    def agent_at(self, row: int) -> Agent | None:
        """The agent of a row."""
        return self._agents.row_at(self.mapToSource(self.index(row, 0)).row())

    def filterAcceptsRow(self, source_row: int, source_parent: Index) -> bool:  # noqa: N802
        """Tell whether an agent is shown."""
        del source_parent
        agent = self._agents.row_at(source_row)
        return agent is None or agent_fits(agent, self._words)


_MISFITS = frozenset({"rule-unknown-operation"})


def tools_with_problems(
    problems: Sequence[Problem], agent_id: str, rights: Mapping[str, ToolRight]
) -> dict[str, tuple[str, ...]]:
    """Tool -> what is wrong with it for one agent: problems that are about it, and rules that close it."""
    found: dict[str, list[str]] = {}
    for problem in problems:
        subject = problem.subject
        if subject is not None and (not subject.agents or agent_id in subject.agents):
            for name in dict.fromkeys(tool for tool, _ in subject.tools if tool in rights):
                found.setdefault(name, []).append(problem.message)
    for name, right in rights.items():
        closing = [r.text for r in right.reasons if r.layer is not Layer.TOOLS and r.code in _MISFITS]
        if closing:
            found.setdefault(name, []).extend(closing)
    return {name: tuple(dict.fromkeys(said)) for name, said in found.items()}


def agents_with_problems(problems: Sequence[Problem], agents: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Agent -> the problems that are about it by name."""
    known = set(agents)
    found: dict[str, list[str]] = {}
    for problem in problems:
        for name in problem.subject.agents if problem.subject is not None else ():
            if name in known:
                found.setdefault(name, []).append(problem.message)
    return {name: tuple(said) for name, said in found.items()}


TASK = "agents.counts"


class AgentCounts(QObject):
    """Asks for one agent at a time; `wanted` says which are looked at now, and is asked again after every answer."""

    counted = Signal(object, object, object)
    """Agent, operations that are on, operations in all: str, int, int."""

    def __init__(
        self,
        document: Document,
        deriver: Deriver,
        tasks: TaskOwner,
        wanted: Callable[[], Sequence[str]],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._document, self._deriver, self._tasks, self._wanted = document, deriver, tasks, wanted
        self._known: set[str] = set()
        document.closed.connect(self._forget)
        document.opened.connect(self._forget)
        document.policy_changed.connect(self._look_again)

    def look(self) -> None:
        """Others may be looked at now."""
        if self._next() is not None and TASK not in self._tasks.names:
            self._tasks.start(self._count(), TASK)

    def _next(self) -> str | None:
        return next((name for name in self._wanted() if name not in self._known), None)

    async def _count(self) -> None:
        while (agent_id := self._next()) is not None:
            if agent_id not in self._document.policy.agents:
                self._known.add(agent_id)
                continue
            found = await self._deriver.derive(visible_count, agent_id)
            if found is not None:
                self._known.add(agent_id)
                self.counted.emit(agent_id, *found)
            elif not self._document.is_open:
                return

    def _forget(self) -> None:
        self._known.clear()
        self.look()

    def _look_again(self, changes: ChangeSet) -> None:
        if changes.everything or changes.sources:
            self._known.clear()
        self._known -= changes.agents
        self.look()
