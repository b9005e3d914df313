"""Sub-agents: which agent of the policy a sub-agent is, and what its callers take from its rights.

The model of a coding agent chooses the kind of a sub-agent, so a kind alone grants nothing. One that is named like an
agent of the policy is that agent; but it has that agent's own rights only where `sub_agents` of its caller names it,
and otherwise never more than its caller. Any other kind counts as its caller. What a caller is denied explicitly holds
for all that it starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import cast

from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.document import Agent, Delegate, Policy
from gatewright.policy.layer import Layers
from gatewright.policy.right import Reason, ToolFacts
from gatewright.policy.rulematch import Numbered, rules_for_operation
from gatewright.policy.verdict import Mode, Verdict


@frozen
class Caller:
    """An agent that started a sub-agent, directly or not. ``whole``: the sub-agent may never do more than it."""

    agent_id: str
    whole: bool = False


@frozen
class SubAgent:
    """The agent whose rights count, and its callers, the outermost first."""

    agent_id: str
    callers: tuple[Caller, ...] = ()


@frozen
class Lineage:
    """The descent of a sub-agent from the agent ``root_id``, to be followed under each policy anew.

    ``lines``: the kinds from the outermost to its own, ``kind``, in each way in which it may have been started; none
    if nobody saw that: then everybody counts as its caller who might be. ``child_id``: its id with its host;
    ``within``: the id of the one call that may have started it, or empty.
    """

    root_id: str
    kind: str
    lines: tuple[tuple[str, ...], ...] = ()
    child_id: str = ""
    within: str = ""

    def sub_agent(self, policy: Policy) -> SubAgent:
        """The agent that it is under a policy; several ways together give it the least."""
        found = list(dict.fromkeys(_follow(policy, self.root_id, line) for line in self.lines))
        if not found:
            return _of_unknown(policy, self.root_id, self.kind)
        first, callers = found[0], dict[str, bool]()
        for one in found:
            is_other = one.agent_id != first.agent_id
            for caller in (*one.callers, Caller(one.agent_id, whole=True)) if is_other else one.callers:
                callers[caller.agent_id] = callers.get(caller.agent_id, False) or caller.whole
        return SubAgent(first.agent_id, tuple(Caller(name, whole) for name, whole in callers.items()))

    def to_json(self) -> dict[str, JsonValue]:
        """Every field."""
        lines: list[JsonValue] = [[*line] for line in self.lines]
        return {"root": self.root_id, "kind": self.kind, "lines": lines, "child": self.child_id, "within": self.within}

    @classmethod
    def from_json(cls, data: object) -> Lineage:
        """Reverse ``to_json``; ``child`` and ``within`` may be missing. Raises ValueError for anything else."""
        table = cast("dict[str, JsonValue]", data) if isinstance(data, dict) else {}
        lines = table.get("lines")
        if not isinstance(lines, list) or not all(isinstance(line, list) for line in lines):
            raise ValueError("this is no descent of a sub-agent")
        ways = cast("list[list[JsonValue]]", lines)
        names = [table.get("root"), table.get("kind"), table.get("child", ""), table.get("within", "")]
        if not all(isinstance(name, str) for name in (*names, *(kind for way in ways for kind in way))):
            raise ValueError("a name in the descent of a sub-agent is no text")
        root_id, kind, child_id, within = map(str, names)
        return cls(root_id, kind, tuple(tuple(map(str, way)) for way in ways), child_id, within)


def _follow(policy: Policy, agent_id: str, line: tuple[str, ...]) -> SubAgent:
    callers: list[Caller] = []
    for kind in line:
        if kind != agent_id and {kind, agent_id} <= policy.agents.keys():
            callers.append(_caller(policy, agent_id, kind))
            agent_id = kind
    return SubAgent(agent_id, tuple(callers))


def _of_unknown(policy: Policy, agent_id: str, kind: str) -> SubAgent:
    """The sub-agent that anybody may have started whom ``agent_id`` may start, at any depth."""
    reached = [agent_id] if agent_id in policy.agents else []
    for one in reached:
        reached += [name for name in policy.agents[one].sub_agents if name in policy.agents and name not in reached]
    child = kind if kind in policy.agents else agent_id
    return SubAgent(child, tuple(_caller(policy, one, kind) for one in reached if one != child))


def _caller(policy: Policy, agent_id: str, kind: str) -> Caller:
    agent = policy.agents[agent_id]
    return Caller(agent_id, whole=kind not in agent.sub_agents or agent.delegate is Delegate.INTERSECT)


def narrow(policy: Policy, agent: Agent, within: Iterable[str]) -> Agent:
    """The agent with only those sources and capabilities that all agents of ``within`` have too."""
    for agent_id in within:
        other = policy.agents.get(agent_id) or Agent(agent_id, sources=())
        if other.sources is not None:
            own = agent.sources if agent.sources is not None else other.sources
            agent = replace(agent, sources=tuple(name for name in own if name in other.sources))
        shared = tuple(one for one in agent.capabilities if one in other.capabilities)
        agent = replace(agent, capabilities=shared)
    return agent


_BY_HAND = {"operation-not-allowed", "approvals-deny"}


def explicit_denial(layers: Layers, facts: ToolFacts, operation: str) -> Reason | None:
    """The reason why a caller is denied every call of the operation explicitly; None if it was just never given it.

    That is a policy rule, an operation that its own AllowedOperations leave out of a tool that it has, or a key of its
    own `approvals`.
    """
    right = layers.right(facts)
    row = next((one for one in right.operations if one.operation == operation), None)
    for reason in row.reasons if row is not None else ():
        by_hand = reason.code in _BY_HAND and right.listed and (reason.address or ("",))[0] == "agents"
        if reason.verdict is Verdict.DENY and (reason.code == "policy-deny" or by_hand):
            return reason
    return None


def conditional_denials(layers: Layers, facts: ToolFacts, operation: str) -> Iterator[Numbered]:
    """The policy rules that deny a caller some calls of the operation, with their index; no observed ones."""
    if layers.passes(facts):
        return
    for index, rule in rules_for_operation(layers.policy_rules(facts), operation):
        if rule.effect is Verdict.DENY and not rule.is_unconditional and rule.mode is not Mode.OBSERVE:
            yield index, rule
