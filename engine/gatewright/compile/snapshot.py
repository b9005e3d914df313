"""Policy and registry compiled per agent, immutable to whoever holds it. It decides nothing.

An agent is compiled when it is first asked for, a tool when it is first called. ``renewed`` carries over whatever an
edit cannot concern: whole agents, and within an agent the rights and plans of its other tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gatewright.base.once import once
from gatewright.compile.agent import AgentSnapshot, Ground
from gatewright.compile.declared import Key, offered
from gatewright.compile.operation_proof import Cell, OperationIndex, OperationProof
from gatewright.compile.policy_digest import AgentDigests, policy_digest
from gatewright.compile.shape import ShapeCache
from gatewright.policy.document import Policy
from gatewright.policy.right import Reason
from gatewright.policy.verdict import Verdict

if TYPE_CHECKING:
    from gatewright.policy.edit import ChangeSet
    from gatewright.tools.registry import ToolRegistry


class Snapshot:
    """One policy and one revision of the registry. Everything read from it belongs together.

    ``facts``: of every tool, as the policy declares it. ``known``: the tools that are not new to whoever wrote the
    policy; None: all that are there.
    """

    def __init__(
        self,
        policy: Policy,
        registry: ToolRegistry,
        shapes: ShapeCache | None = None,
        before: Snapshot | None = None,
        known: frozenset[Key] | None = None,
    ) -> None:
        self.policy = policy
        self.registry = registry
        self.revision = registry.revision
        self.shapes = shapes or ShapeCache()
        same = before is not None and before.revision == self.revision and before.policy.tools == policy.tools
        self._offer = before._offer if before and same else offered(policy, registry, self.shapes.declared)
        self.facts = self._offer.facts
        there = frozenset(self._offer.tools)
        self.known = there if known is None else known
        self._held = there - self.known if policy.defaults.new_tools == "hold" else _NONE
        self._ground = Ground(policy, self._offer, self.shapes, self._held)
        self._agents: dict[str, AgentSnapshot] = {}
        self._digests = AgentDigests()
        self._index = OperationIndex()
        self.rows = self._index.rows

    @property
    def is_current(self) -> bool:
        """Whether the registry still holds the tools that this was compiled from."""
        return self.revision == self.registry.revision

    @property
    def is_digested(self) -> bool:
        """Whether asking for the digest takes no time to speak of: it is known, or the policy is small."""
        if "policy_digest" in self.__dict__:
            return True
        agents = self.policy.agents.values()
        return len(agents) + len(self.policy.rules) + sum(len(agent.tool_rules) for agent in agents) < SMALL_RULES

    @once
    def policy_digest(self) -> str:
        """SHA-256 of everything that the policy says, 64 hexadecimal digits."""
        return policy_digest(self.policy, self._digests)

    @once
    def problems(self) -> tuple[Reason, ...]:
        """What of the policy does not fit the tools that are there now; each closes the tools that it concerns."""
        agents = (self.agent(agent_id) for agent_id in self.policy.agents)
        found = [
            reason for agent in agents if agent is not None for reasons in agent.problems.values() for reason in reasons
        ]
        return tuple(dict.fromkeys(found))

    def agent(self, agent_id: str) -> AgentSnapshot | None:
        """The agent, compiled at the first use; None when the policy has none of that id."""
        found = self._agents.get(agent_id)
        if found is not None:
            return found
        agent = self.policy.agents.get(agent_id)
        if agent is None:
            return None
        return self._agents.setdefault(agent_id, AgentSnapshot(self._ground, agent))

    def operation(self, agent_id: str, tool: str, operation: str = "") -> OperationProof:
        """Whether the agent's model is shown the operation, whatever the arguments; in the time of a few look-ups."""
        try:
            verdict = self.rows[agent_id][tool][operation]
        except KeyError:
            verdict = self._indexed(agent_id).get(tool, _NO_CELL).get(operation, _DENY)
        return OperationProof((self, agent_id, tool, operation, verdict))

    def renewed(
        self,
        policy: Policy,
        changed: ChangeSet | None,  # noqa: ARG002 found out anew, so that a wrong one leaves nothing stale
        *,
        known: frozenset[Key] | None = None,
    ) -> Snapshot:
        """The snapshot of another policy over the tools as they are now; ``known``: those not new; None: as before."""
        from gatewright.compile.concern import concerned, differ_in_agents_alone

        fresh = Snapshot(policy, self.registry, self.shapes, self, self.known if known is None else known)
        as_held = fresh._held == self._held
        if as_held and fresh.facts == self.facts:
            fresh._ground.choices.update(self._ground.choices)
        fresh._digests = self._digests
        same = fresh.revision == self.revision and as_held and policy.tools == self.policy.tools
        swapped = frozenset[str]() if same else self._swapped(fresh)
        compiled_by = {id(one.policy): one.policy for one in list(self._agents.values())}
        alike = {key for key, one in compiled_by.items() if same and differ_in_agents_alone(one, policy)}
        for agent_id, compiled in list(self._agents.items()):
            agent = policy.agents.get(agent_id)
            if agent is compiled.agent and id(compiled.policy) in alike:
                fresh._agents[agent_id] = compiled
                fresh._index.take(agent_id, self._index)
                continue
            if agent is None:
                continue
            tools = concerned(compiled.policy, policy, compiled.agent, agent, fresh.facts)
            if tools is None:
                continue
            touched = tools | swapped
            if touched or agent != compiled.agent or policy.places_of(agent) != compiled.sources:
                fresh._agents[agent_id] = AgentSnapshot(fresh._ground, agent, compiled, touched)
            elif fresh.revision == self.revision:
                fresh._agents[agent_id] = compiled
                fresh._index.take(agent_id, self._index)
        return fresh

    def _swapped(self, fresh: Snapshot) -> frozenset[str]:
        """The names of the tools that came, went, changed, are held or held no more, or that rules fit differently."""
        before, now = self._offer.tools, fresh._offer.tools
        names = {key[0] for key in before.keys() | now.keys() if before.get(key) is not now.get(key)}
        names |= {name for name, _ in self._held ^ fresh._held}
        misfits = self._ground.misfits.keys() | fresh._ground.misfits.keys()
        names |= {name for name in misfits if self._ground.misfits.get(name) != fresh._ground.misfits.get(name)}
        return frozenset(names)

    def _indexed(self, agent_id: str) -> Mapping[str, Cell]:
        rows = self.rows.get(agent_id)
        if rows is not None:
            return rows
        agent = self.agent(agent_id)
        return {} if agent is None else self._index.add(agent_id, agent.rights_unkept())


SMALL_RULES = 200
"""Below so many rules and agents a digest is made in a few milliseconds; 100,000 take a second."""
_NONE: frozenset[Key] = frozenset()
_DENY = Verdict.DENY
_NO_CELL: Mapping[str, Verdict] = {}
