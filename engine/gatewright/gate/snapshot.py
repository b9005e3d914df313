"""Policy and registry compiled per agent, immutable to whoever holds it. It decides nothing.

An agent is compiled when it is first asked for, a tool when it is first called. ``renewed`` carries over whatever an
edit cannot concern: whole agents, and within an agent the rights and plans of its other tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from gatewright.base.errors import GatewrightError
from gatewright.gate.concern import concerned
from gatewright.gate.operationproof import OperationIndex, OperationProof
from gatewright.gate.plan import ToolPlan, compile_tool, described, has_conditions, unusable
from gatewright.gate.policydigest import AgentDigests, policy_digest
from gatewright.gate.rulebook import AgentRules
from gatewright.gate.shape import ShapeCache
from gatewright.policy.layer import Layers
from gatewright.policy.right import Layer, Reason
from gatewright.policy.rulecheck import UNKNOWN, policy_rule_misfits
from gatewright.policy.toolname import chosen_tools
from gatewright.policy.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gatewright.gate.operationproof import Cell
    from gatewright.gate.shape import ToolShape
    from gatewright.policy.document import Agent, Policy
    from gatewright.policy.edit import ChangeSet
    from gatewright.policy.right import ToolFacts, ToolRight
    from gatewright.tools.registry import ToolRegistry
    from gatewright.tools.tool import Tool

ToolTable = dict[tuple[str, int], "Tool"]
_NO_TOOLS: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Ground:
    """What agents are compiled from. It holds no compiled agent, so that one kept over many edits keeps no other."""

    policy: Policy
    facts: tuple[ToolFacts, ...]
    tools: ToolTable = field(hash=False)
    shapes: ShapeCache = field(hash=False)

    @cached_property
    def misfits(self) -> Mapping[str, Reason]:
        """By tool name: the policy rule that closes it, since it names an operation that none of its tools has."""
        return policy_rule_misfits(self.policy, self.facts)


class AgentSnapshot:
    """What one agent may do, under one policy and one set of tools.

    ``base`` is the agent as it was compiled before, ``touched`` the tools that may differ from then.
    """

    def __init__(
        self, ground: Ground, agent: Agent, base: AgentSnapshot | None = None, touched: frozenset[str] = _NO_TOOLS
    ) -> None:
        self.agent = agent
        self.capabilities = agent.capabilities
        self.sources = ground.policy.sources_of(agent)
        self.source_ids = tuple(source.source_id for source in self.sources)
        self._ground = ground
        self._touched = touched
        self._plans: dict[str, ToolPlan] = {}
        self._old_rights: Mapping[str, ToolRight] | None = None
        self._old_hidden: frozenset[str] | None = None
        self._old_plans: dict[str, ToolPlan] = {}
        if base is not None:
            self._take(base)

    @property
    def policy(self) -> Policy:
        """The policy that this was compiled from; where it differs from the one in force the agent is not concerned."""
        return self._ground.policy

    @cached_property
    def rights(self) -> Mapping[str, ToolRight]:
        """The right on every tool, hidden ones included, by bare name in the order of the registry."""
        old = self._old_rights or {}
        rights = {
            name: old[name] if name in old and name not in self._touched else self._right(facts, self._layers)
            for name, facts in self._chosen().items()
        }
        self._old_rights = None
        return rights

    @cached_property
    def hidden_tools(self) -> frozenset[str]:
        """The names of the tools that the model does not see."""
        hidden = frozenset(name for name, right in self.rights.items() if not right.shown)
        old = self._old_hidden
        return old if old is not None and old == hidden else hidden

    @cached_property
    def rules(self) -> AgentRules:
        """The tool rules that the agent's calls come under."""
        return AgentRules(self.agent, self.sources, self.rights)

    def plan(self, name: str) -> ToolPlan | None:
        """The tool of that bare name, hidden or not; None when there is none."""
        return self._plans.get(name) or self._planned(name)

    def plans(self) -> Iterator[ToolPlan]:
        """Every tool, hidden ones included."""
        for name in self.rights:
            plan = self.plan(name)
            if plan is not None:
                yield plan

    def shapes(self) -> Iterator[ToolShape]:
        """What the model sees, tool by tool."""
        for name, right in self.rights.items():
            if right.shown:
                shape = self._shape(name, right)
                if shape is not None:
                    yield shape

    def rights_unkept(self) -> Mapping[str, ToolRight]:
        """The rights, not held on to if nobody has asked for them so far."""
        held = self.__dict__.get("rights")
        if held is not None or self._old_rights is not None:
            return self.rights
        layers = self._new_layers()
        return {name: self._right(facts, layers) for name, facts in self._chosen().items()}

    def _take(self, base: AgentSnapshot) -> None:
        self._old_rights = base.__dict__.get("rights") or base._old_rights
        if base._old_rights is not None:
            self._touched |= base._touched
        self._old_hidden = base.__dict__.get("hidden_tools")
        self._old_plans = {**base._old_plans, **base._plans}
        for name in self._touched:
            self._old_plans.pop(name, None)

    def _chosen(self) -> dict[str, ToolFacts]:
        return chosen_tools(self._ground.facts, self.agent.tools)

    def _planned(self, name: str) -> ToolPlan | None:
        right = self.rights.get(name)
        if right is None:
            return None
        plan = self._old_plans.pop(name, None)
        if plan is None:
            tool = self._ground.tools[name, right.facts.major]
            plan = compile_tool(self._layers, tool, right, self._ground.shapes, self.hidden_tools)
        elif plan.hidden_tools is not self.hidden_tools:
            plan = replace(plan, hidden_tools=self.hidden_tools)
        return self._plans.setdefault(name, plan)

    def _shape(self, name: str, right: ToolRight) -> ToolShape | None:
        plan = self._plans.get(name)
        if plan is not None:
            return plan.shape
        tool = self._ground.tools[name, right.facts.major]
        try:
            return self._ground.shapes.shape(tool, right.shown, described(self.policy, tool))
        except GatewrightError:
            return None

    def _right(self, facts: ToolFacts, layers: Layers) -> ToolRight:
        right = layers.right(facts)
        if not right.shown or not self._ground.tools[facts.name, facts.major].schema_may_fail:
            return right
        wrong = self._unusable_schema(facts, right)
        return layers.right(facts, wrong) if wrong is not None else right

    def _unusable_schema(self, facts: ToolFacts, right: ToolRight) -> Reason | None:
        tool = self._ground.tools[facts.name, facts.major]
        try:
            shape = self._ground.shapes.shape(tool, right.shown, described(self.policy, tool))
            if shape is not None:
                shape.compile()
                return None
            text = f"`{facts.name}` has nothing to show"
        except GatewrightError as error:
            text = f"`{facts.name}` has no usable schema: {error}"
        return Reason(Layer.TOOLS, Verdict.DENY, "schema-unusable", text)

    @cached_property
    def _layers(self) -> Layers:
        return self._new_layers()

    def _new_layers(self) -> Layers:
        ground = self._ground
        conditions = has_conditions(self.agent, self.sources, ground.policy)

        def closed(facts: ToolFacts) -> Reason | None:
            wrong = ground.misfits.get(facts.name)
            if wrong is None and (conditions or facts.tool_rules):
                wrong = unusable(layers, facts, ground.shapes)
            return wrong

        layers = Layers(ground.policy, self.agent, self.sources, closed)
        return layers


class Snapshot:
    """One policy and one revision of the registry. Everything read from it belongs together."""

    def __init__(self, policy: Policy, registry: ToolRegistry, shapes: ShapeCache | None = None) -> None:
        self.policy = policy
        self.registry = registry
        self.revision = registry.revision
        self.shapes = shapes or ShapeCache()
        self.facts = registry.facts()
        self._tools: ToolTable = {(tool.name, tool.major): tool for tool in registry.tools()}
        self._ground = Ground(policy, self.facts, self._tools, self.shapes)
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

    @cached_property
    def policy_digest(self) -> str:
        """SHA-256 of everything that the policy says, 64 hexadecimal digits."""
        return policy_digest(self.policy, self._digests)

    @cached_property
    def problems(self) -> tuple[Reason, ...]:
        """What of the policy does not fit the tools that are there now; each closes the tools that it concerns."""
        agents = (self.agent(agent_id) for agent_id in self.policy.agents)
        found = [
            reason
            for agent in agents
            if agent is not None
            for right in agent.rights_unkept().values()
            for reason in right.reasons
            if reason.code in _PROBLEMS
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

    def renewed(self, policy: Policy, changed: ChangeSet | None) -> Snapshot:  # noqa: ARG002 found out anew, so that a wrong one leaves nothing stale
        """The snapshot of another policy over the tools as they are now."""
        fresh = Snapshot(policy, self.registry, self.shapes)
        fresh._digests = self._digests
        swapped = frozenset[str]() if fresh.revision == self.revision else self._swapped(fresh)
        for agent_id, compiled in list(self._agents.items()):
            agent = policy.agents.get(agent_id)
            tools = concerned(compiled.policy, policy, agent_id, fresh.facts) if agent is not None else None
            if agent is None or tools is None:
                continue
            touched = tools | swapped
            if touched or agent != compiled.agent or policy.sources_of(agent) != compiled.sources:
                fresh._agents[agent_id] = AgentSnapshot(fresh._ground, agent, compiled, touched)
            elif fresh.revision == self.revision:
                fresh._agents[agent_id] = compiled
                fresh._index.take(agent_id, self._index)
        return fresh

    def _swapped(self, fresh: Snapshot) -> frozenset[str]:
        """The names of the tools that came, went, or are others now, and of those that rules fit differently."""
        keys = self._tools.keys() | fresh._tools.keys()
        names = {key[0] for key in keys if self._tools.get(key) is not fresh._tools.get(key)}
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
_DENY = Verdict.DENY
_NO_CELL: Mapping[str, Verdict] = {}
_PROBLEMS = frozenset({UNKNOWN, "condition-unusable", "constraint-unusable", "schema-unusable"})
