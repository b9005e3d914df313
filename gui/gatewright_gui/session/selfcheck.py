"""The self-check of the open policy: what was checked of each agent, and every place that disagrees. It draws nothing.

It runs in the worker process, a few tools at a time, and says how far it is.
"""

import time
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, TypeVar

from gatewright.workspace.api import Workspace, frozen

if TYPE_CHECKING:
    from gatewright.workspace.api import Difference

T = TypeVar("T")


@frozen
class CheckNote:
    """One operation of which something has to be said. `is_wrong`: the views disagree; else it could not be tried."""

    agent_id: str
    tool: str
    operation: str
    what: str
    is_wrong: bool = True

    @property
    def where(self) -> str:
        """`agent > tool.operation`."""
        return f"{self.agent_id} > {self.tool}{'.' if self.operation else ''}{self.operation}"

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@frozen
class AgentCheck:
    """The check of one agent. `shown`: tools that its model sees."""

    agent_id: str
    tools: int
    shown: int
    operations: int
    differences: int
    untried: int


@frozen
class CheckCount:
    """The result of the self-check; `finished_at` in seconds of the epoch."""

    agents: tuple[AgentCheck, ...]
    differences: tuple[CheckNote, ...]
    untried: tuple[CheckNote, ...] = ()
    finished_at: float = 0.0

    @property
    def checked(self) -> int:
        """The number of operations, of all agents and tools."""
        return sum(agent.operations for agent in self.agents)


@frozen
class CheckProgress:
    """The number of the agents that are done."""

    done: int
    of: int


def check_count(workspace: Workspace, *, afresh: bool = False) -> Generator[CheckProgress, None, CheckCount]:
    """Run the self-check piece by piece. ``afresh``: what was checked and has not changed is checked again as well."""
    agent_ids, tools = tuple(workspace.policy.agents), len({facts.name for facts in workspace.catalog})
    agents: list[AgentCheck] = []
    wrong: list[CheckNote] = []
    untried: list[CheckNote] = []
    for done, agent_id in enumerate(agent_ids):
        yield CheckProgress(done, len(agent_ids))
        pieces = workspace.selfcheck_in_pieces(agent_id, afresh=afresh)
        found = yield from _report_between(pieces, CheckProgress(done, len(agent_ids)))
        shown = len(workspace.view(agent_id).listings())
        differences, not_tried = len(found.differences), len(found.no_witness)
        agents.append(AgentCheck(agent_id, tools, shown, found.checked, differences, not_tried))
        wrong += _notes(found.differences, is_wrong=True)
        untried += _notes(found.no_witness, is_wrong=False)
    return CheckCount(tuple(agents), tuple(wrong), tuple(untried), time.time())


def _report_between(pieces: Generator[None, None, T], progress: CheckProgress) -> Generator[CheckProgress, None, T]:
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            found: T = end.value
            return found
        yield progress


def _notes(rows: "Sequence[Difference]", *, is_wrong: bool) -> list[CheckNote]:
    return [CheckNote(row.agent_id, row.tool, row.operation, row.what, is_wrong) for row in rows]
