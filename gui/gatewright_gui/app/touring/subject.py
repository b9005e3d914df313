"""What the tour shows its steps on: an agent, one of its tools, two operations. It changes nothing."""

from dataclasses import dataclass

from gatewright.policy.document import Agent
from gatewright.policy.right import OperationRight, ToolRight
from gatewright.policy.tier import SafetyTier
from gatewright.policy.verdict import Verdict
from gatewright_gui.session.calls import shown_tools
from gatewright_gui.session.document import Document

FAVOURITES = ("operator", "file", "delete", "replace")
"""Of the demo; elsewhere what comes nearest."""


@dataclass(frozen=True, slots=True)
class Subject:
    """`operation` is unticked; `asking` shall ask first."""

    agent_id: str
    tool: str
    operation: str
    asking: str | None


def choose_subject(document: Document) -> Subject | None:
    """An agent with a tool that has at least two operations on; None where there is none."""
    agents = sorted(document.agents, key=lambda agent: agent.agent_id != FAVOURITES[0])
    for complete in (True, False):
        for agent in agents:
            for right in sorted(document.rights(agent.agent_id).values(), key=lambda r: r.facts.name != FAVOURITES[1]):
                found = _subject(agent, right, complete=complete)
                if found is not None:
                    return found
    return None


def _subject(agent: Agent, right: ToolRight, *, complete: bool) -> Subject | None:
    if not right.facts.has_operations:
        return None
    on = [op for op in right.operations if op.ticked and not op.is_hidden]
    if len(on) < 2 or (complete and len(on) < len(right.operations)):
        return None
    names = [op.operation for op in on]
    operation = FAVOURITES[2] if FAVOURITES[2] in names else names[-1]
    return Subject(agent.agent_id, right.facts.name, operation, _asking([op for op in on if op.operation != operation]))


def _asking(rest: list[OperationRight]) -> str | None:
    free = [op for op in rest if op.verdict is Verdict.ALLOW]
    free.sort(key=lambda op: (op.operation != FAVOURITES[3], op.tier is SafetyTier.READ_ONLY))
    return free[0].operation if free else None


def operation_field(document: Document, subject: Subject) -> str:
    """The argument of the tool that names the operation. Raises LookupError when the agent does not see the tool."""
    for tool in shown_tools(document.workspace, subject.agent_id):
        if tool.name == subject.tool and tool.operation_field:
            return tool.operation_field
    raise LookupError(f"`{subject.agent_id}` sees no operations of `{subject.tool}`")
