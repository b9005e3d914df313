"""Policy and registry compiled per agent, immutable to whoever holds it. It decides nothing.

An agent is compiled when it is first asked for, a tool when it is first called. ``renewed`` carries over the agents
that an edit did not touch, so that an edit costs what it changes.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from gatewright.gate import ruleset
from gatewright.gate.plan import ShapeCache, ToolPlan, compile_tool
from gatewright.policy.effective import effective_rights

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gatewright.policy.document import Agent, Policy
    from gatewright.policy.edit import ChangeSet
    from gatewright.policy.right import ToolFacts, ToolRight
    from gatewright.tools.registry import ToolRegistry
    from gatewright.tools.tool import Tool

ToolTable = dict[tuple[str, int], "Tool"]


class AgentSnapshot:
    """What one agent may do, under one policy and one set of tools."""

    def __init__(
        self, policy: Policy, agent: Agent, facts: tuple[ToolFacts, ...], tools: ToolTable, shapes: ShapeCache
    ) -> None:
        self.agent = agent
        self.sources = policy.sources_of(agent)
        self.source_ids = tuple(source.source_id for source in self.sources)
        self.starts = ruleset.start_rules(agent)
        self._policy = policy
        self._facts = facts
        self._tools = tools
        self._shapes = shapes
        self._plans: dict[str, ToolPlan] = {}

    @cached_property
    def rights(self) -> Mapping[str, ToolRight]:
        """The right on every tool, hidden ones included, by bare name in the order of the registry."""
        return effective_rights(self._policy, self.agent.agent_id, self._facts)

    @cached_property
    def hidden_tools(self) -> frozenset[str]:
        """The names of the tools that the model does not see."""
        return frozenset(name for name, right in self.rights.items() if right.is_hidden)

    def plan(self, name: str) -> ToolPlan | None:
        """The tool of that bare name, hidden or not; None when there is none."""
        found = self._plans.get(name)
        if found is not None:
            return found
        right = self.rights.get(name)
        if right is None:
            return None
        tool = self._tools[name, right.facts.major]
        plan = compile_tool(self._policy, self.agent, tool, right, self._shapes, self.hidden_tools)
        self._plans[name] = plan
        return plan

    def plans(self) -> Iterator[ToolPlan]:
        """Every tool, hidden ones included."""
        for name in self.rights:
            plan = self.plan(name)
            if plan is not None:
                yield plan

    def is_same_under(self, policy: Policy) -> bool:
        """Whether compiling under ``policy`` would give the same."""
        old, new = self._policy, policy
        agent = new.agents.get(self.agent.agent_id)
        return (
            agent is not None
            and agent == self.agent
            and new.sources_of(agent) == self.sources
            and new.defaults == old.defaults
            and new.tools == old.tools
        )


class Snapshot:
    """One policy and one revision of the registry. Everything read from it belongs together."""

    def __init__(self, policy: Policy, registry: ToolRegistry, shapes: ShapeCache | None = None) -> None:
        self.policy = policy
        self.registry = registry
        self.revision = registry.revision
        self.shapes = shapes or ShapeCache()
        self._tools: ToolTable = {(tool.name, tool.major): tool for tool in registry.tools()}
        self._facts = tuple(tool.facts() for tool in self._tools.values())
        self._agents: dict[str, AgentSnapshot] = {}

    @property
    def is_current(self) -> bool:
        """Whether the registry still holds the tools that this was compiled from."""
        return self.revision == self.registry.revision

    def agent(self, agent_id: str) -> AgentSnapshot | None:
        """The agent, compiled at the first use; None when the policy has none of that id."""
        found = self._agents.get(agent_id)
        if found is not None:
            return found
        agent = self.policy.agents.get(agent_id)
        if agent is None:
            return None
        compiled = AgentSnapshot(self.policy, agent, self._facts, self._tools, self.shapes)
        return self._agents.setdefault(agent_id, compiled)

    def renewed(self, policy: Policy, changed: ChangeSet | None) -> Snapshot:
        """The snapshot of another policy over the tools as they are now."""
        fresh = Snapshot(policy, self.registry, self.shapes)
        if fresh.revision != self.revision or (changed is not None and changed.everything):
            return fresh
        touched = changed.agents if changed is not None else frozenset[str]()
        for agent_id, compiled in list(self._agents.items()):
            if agent_id not in touched and compiled.is_same_under(policy):
                fresh._agents[agent_id] = compiled
        return fresh
