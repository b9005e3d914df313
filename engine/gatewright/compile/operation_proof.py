"""Whether an operation is open to an agent, answered by look-ups, with a proof that completes when it is read.

The verdicts are those of the agent's rights, laid out flat.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any, Protocol

from gatewright.base.jsonvalue import JsonValue, digest
from gatewright.compile.agent import AgentSnapshot
from gatewright.compile.finding import Finding
from gatewright.policy.right import ToolRight
from gatewright.policy.verdict import Verdict

Cell = Mapping[str, Verdict]
_DENY = Verdict.DENY
_NAMED = 80


class _Compiled(Protocol):
    """The snapshot that answered."""

    @property
    def policy_digest(self) -> str: ...
    def agent(self, agent_id: str) -> AgentSnapshot | None: ...


class OperationProof(tuple[Any, ...]):
    """The verdict on one operation whatever its arguments: allow and ask mean that lookup and operation let it pass.

    Made of the snapshot, agent, tool, operation and verdict, in that order; the rest is worked out when it is read. A
    tuple inside, since nothing else in the language is made as fast.
    """

    __slots__ = ()

    agent_id: str = property(itemgetter(1), doc="Whose model.")  # pyright: ignore[reportAssignmentType]
    tool: str = property(itemgetter(2), doc="The tool, by its bare name.")  # pyright: ignore[reportAssignmentType]
    operation: str = property(itemgetter(3), doc="Empty for a tool without.")  # pyright: ignore[reportAssignmentType]
    verdict: Verdict = property(itemgetter(4), doc="Allow, ask or deny.")  # pyright: ignore[reportAssignmentType]

    @property
    def is_open(self) -> bool:
        """Whether the agent's model is shown the operation."""
        return self[4] is not _DENY

    @property
    def proof_id(self) -> str:
        """The same for the same answer under the same policy and tool: a digest of them."""
        parts: list[JsonValue] = [self.agent_id, self.tool, self.operation, str(self.verdict)]
        return "op_" + digest([*parts, self.policy_digest, self.tool_digest])[:32]

    @property
    def policy_digest(self) -> str:
        """The digest of the policy that it was answered by."""
        return self._snapshot.policy_digest

    @property
    def tool_digest(self) -> str | None:
        """The digest of the tool; None when there is none of that name."""
        agent = self._snapshot.agent(self.agent_id)
        plan = agent.plan(self.tool) if agent is not None else None
        return plan.tool_digest if plan is not None else None

    @property
    def code(self) -> str:
        """The code of the finding; ``allowed`` without one."""
        finding = self.finding
        return finding.code if finding is not None else "allowed"

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: id, agent, tool, operation, verdict, code, reason, policy_digest, tool_digest."""
        finding = self.finding
        return {
            "id": self.proof_id,
            "agent": self.agent_id,
            "tool": self.tool,
            "operation": self.operation,
            "verdict": str(self.verdict),
            "code": self.code,
            "reason": finding.reason if finding is not None else "",
            "policy_digest": self.policy_digest,
            "tool_digest": self.tool_digest,
        }

    @property
    def finding(self) -> Finding | None:
        """Why it is denied or asks, with the deciding place of the policy; None when it is simply allowed."""
        agent = self._snapshot.agent(self.agent_id)
        if agent is None:
            return Finding(_DENY, "unknown-agent", f"no agent `{self.agent_id[:_NAMED]}` in the policy")
        plan = agent.plan(self.tool)
        if plan is None:
            return Finding(_DENY, "unknown-tool", f"no tool `{self.tool[:_NAMED]}`")
        if plan.closed is not None:
            return plan.closed
        shown = plan.operations.get(self.operation)
        if shown is None:
            unknown = f"`{self.tool}` has no operation `{self.operation[:_NAMED]}`"
            return plan.hidden.get(self.operation) or Finding(_DENY, "operation-unknown", unknown)
        reason = next((reason for reason in shown.right.reasons if reason.verdict is self.verdict), None)
        return reason and Finding(reason.verdict, reason.code, reason.text, reason.address, reason.rule_id)

    @property
    def _snapshot(self) -> _Compiled:
        return self[0]


class OperationIndex:
    """Verdicts by agent, tool and operation; equal cells of different agents and tools are one object."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Cell]] = {}
        self._cells: dict[tuple[tuple[str, Verdict], ...], Cell] = {}

    def add(self, agent_id: str, rights: Mapping[str, ToolRight]) -> dict[str, Cell]:
        """Lay out the rights of an agent."""
        rows = {name: self._cell(right) for name, right in rights.items()}
        return self.rows.setdefault(agent_id, rows)

    def take(self, agent_id: str, other: OperationIndex) -> None:
        """Carry over what another index holds for an agent that nothing changed for."""
        rows = other.rows.get(agent_id)
        if rows is not None:
            self.rows[agent_id] = rows

    def _cell(self, right: ToolRight) -> Cell:
        key = tuple([(row.operation, row.verdict) for row in right.operations])
        found = self._cells.get(key)
        return found if found is not None else self._cells.setdefault(key, dict(key))
