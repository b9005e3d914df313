"""Edits of the list of agents: add, duplicate, rename, describe, remove.

Policy rules name agents, so they go along: a rule for one agent is never left for nobody, nor made one for all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from gatewright.base.errors import EditRefused
from gatewright.policy.document import Agent, Policy
from gatewright.policy.edit import AgentChange, Edit, FieldChange
from gatewright.policy.identity import new_identity
from gatewright.policy.policyrule import PolicyRule

_AGENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def add_agent(policy: Policy, agent_id: str, description: str = "") -> Edit:
    """A new agent with no tool and no source: nothing is allowed until it is ticked."""
    _check_new(policy, agent_id)
    agent = Agent(agent_id, description, tools=(), sources=())
    return Edit(f"add agent `{agent_id}`", (AgentChange(None, agent),))


def duplicate_agent(policy: Policy, agent_id: str, new_id: str) -> Edit:
    """A copy of an agent under another id; the policy rules for the agent are for the copy too."""
    _check_new(policy, new_id)
    copy = replace(agent_of(policy, agent_id), agent_id=new_id, identity=new_identity())
    rules = _renamed_in_rules(policy.rules, agent_id, (agent_id, new_id))
    return _edit(f"duplicate `{agent_id}` as `{new_id}`", policy, [AgentChange(None, copy)], rules)


def rename_agent(policy: Policy, agent_id: str, new_id: str) -> Edit:
    """The same agent, where it stands, under another id; the policy rules for it follow."""
    _check_new(policy, new_id)
    agent = agent_of(policy, agent_id)
    change = AgentChange(agent, replace(agent, agent_id=new_id))
    rules = _renamed_in_rules(policy.rules, agent_id, (new_id,))
    return _edit(f"rename `{agent_id}` to `{new_id}`", policy, [change], rules)


def describe_agent(policy: Policy, agent_id: str, description: str) -> Edit:
    """Another description."""
    agent = agent_of(policy, agent_id)
    return Edit(f"describe `{agent_id}`", (AgentChange(agent, replace(agent, description=description)),))


def remove_agent(policy: Policy, agent_id: str) -> Edit:
    """Take the agent out of the policy and its policy rules; a rule that was for it alone goes with it."""
    return remove_agents(policy, (agent_id,))


def remove_agents(policy: Policy, agent_ids: Sequence[str]) -> Edit:
    """As ``remove_agent`` for several agents, as one edit; a rule that was for them alone goes with them."""
    agents = [agent_of(policy, agent_id) for agent_id in dict.fromkeys(agent_ids)]
    gone = {agent.agent_id for agent in agents}
    rest = tuple(rule for rule in policy.rules if not rule.agents or not gone.issuperset(rule.agents))
    left = rest
    for agent_id in gone:
        left = _renamed_in_rules(left, agent_id, ())
    one = len(agents) == 1
    name = f"remove agent `{agents[0].agent_id}`" if one else f"remove {len(agents)} agents"
    if lost := len(policy.rules) - len(rest):
        name += f" and the {'policy rule' if lost == 1 else f'{lost} policy rules'} for {'it' if one else 'them'} alone"
    order = list(policy.agents)
    last_first = sorted(agents, key=lambda agent: order.index(agent.agent_id), reverse=True)
    changes = [AgentChange(agent, None, order.index(agent.agent_id)) for agent in last_first]
    return _edit(name, policy, changes, left)


def agent_of(policy: Policy, agent_id: str) -> Agent:
    """The agent that an edit is about. Raises EditRefused when there is none of that id."""
    agent = policy.agents.get(agent_id)
    if agent is None:
        raise EditRefused(f"no agent `{agent_id}`")
    return agent


def _renamed_in_rules(rules: tuple[PolicyRule, ...], agent_id: str, instead: tuple[str, ...]) -> tuple[PolicyRule, ...]:
    """The rules with ``instead`` where they name the agent; those for all agents stay as they are."""
    return tuple(
        rule
        if rule.agents is None or agent_id not in rule.agents
        else replace(rule, agents=_put(rule.agents, agent_id, instead))
        for rule in rules
    )


def _put(agents: tuple[str, ...], agent_id: str, instead: tuple[str, ...]) -> tuple[str, ...]:
    """The list, never empty where it was for another agent too; each name once."""
    return tuple(dict.fromkeys(one for held in agents for one in (instead if held == agent_id else (held,))))


def _edit(name: str, policy: Policy, changes: Sequence[AgentChange], rules: tuple[PolicyRule, ...]) -> Edit:
    if rules == policy.rules:
        return Edit(name, tuple(changes))
    return Edit(name, (*changes, FieldChange("rules", policy.rules, rules)))


def _check_new(policy: Policy, agent_id: str) -> None:
    if not _AGENT_ID.fullmatch(agent_id):
        raise EditRefused(f"`{agent_id}` is no agent id: letters, digits, `-` and `_`, at most 64")
    if agent_id in policy.agents:
        raise EditRefused(f"agent `{agent_id}` exists already")
