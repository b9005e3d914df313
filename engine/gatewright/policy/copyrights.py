"""The rights of one agent given to others, as one edit.

The list of tools, the AllowedOperations rules and the ``approvals`` always go along; limits, sources and capabilities
as chosen. What is not chosen stays as the other agent has it. Policy rules are for whom they name, and stay so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gatewright.base.errors import EditRefused
from gatewright.base.frozen import frozen
from gatewright.policy.agentedit import agent_of
from gatewright.policy.document import Agent, Policy
from gatewright.policy.edit import AgentChange, Edit
from gatewright.policy.policyrule import PolicyRule
from gatewright.policy.rule import AllowedOperations, ToolRule


@frozen
class Along:
    """What goes along with the boxes. ``limits``: every other rule on tools."""

    limits: bool = True
    sources: bool = False
    capabilities: bool = False


def copy_rights(policy: Policy, source_id: str, agent_ids: Sequence[str], along: Along) -> Edit:
    """One edit that gives several agents the rights of another. Raises EditRefused for an agent that is not there."""
    source = agent_of(policy, source_id)
    targets = [agent_of(policy, agent_id) for agent_id in dict.fromkeys(agent_ids)]
    if source in targets:
        raise EditRefused(f"`{source_id}` has its own rights already")
    changes = tuple(AgentChange(agent, with_rights_of(source, agent, along)) for agent in targets)
    named = f"`{targets[0].agent_id}`" if len(targets) == 1 else f"{len(targets)} agents"
    name = f"copy the rights of `{source_id}` to {named}"
    return Edit(name, tuple(change for change in changes if change.before != change.after))


def rules_by_name(policy: Policy, source_id: str) -> tuple[PolicyRule, ...]:
    """The policy rules that are for an agent by its name: they are no rights of its own, and do not go along."""
    return tuple(rule for rule in policy.rules if rule.agents is not None and source_id in rule.agents)


def with_rights_of(source: Agent, agent: Agent, along: Along) -> Agent:
    """The agent with the rights of ``source``; name, description and user stay its own."""
    return replace(
        agent,
        tools=source.tools,
        tool_rules=source.tool_rules if along.limits else _with_boxes_of(source, agent),
        approvals=source.approvals,
        sources=source.sources if along.sources else agent.sources,
        capabilities=source.capabilities if along.capabilities else agent.capabilities,
    )


def _with_boxes_of(source: Agent, agent: Agent) -> tuple[ToolRule, ...]:
    """The agent's own limits and the other's AllowedOperations, those that it has already where they stand."""
    wanted = [rule for rule in source.tool_rules if _is_box(rule)]
    kept: list[ToolRule] = []
    for rule in agent.tool_rules:
        if not _is_box(rule):
            kept.append(rule)
        elif rule in wanted:
            wanted.remove(rule)
            kept.append(rule)
    return (*kept, *wanted)


def _is_box(rule: ToolRule) -> bool:
    return isinstance(rule.rule_type, AllowedOperations)
