"""Edits of the list of agents: add, duplicate, rename, describe, remove. It does not know rights."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from gatewright.base.errors import EditRefused
from gatewright.policy.document import Agent
from gatewright.policy.edit import AgentChange, Edit

if TYPE_CHECKING:
    from gatewright.policy.document import Policy

_AGENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def add_agent(policy: Policy, agent_id: str, description: str = "") -> Edit:
    """A new agent with no tool and no source: nothing is allowed until it is ticked."""
    _check_new(policy, agent_id)
    agent = Agent(agent_id, description, tools=(), sources=())
    return Edit(f"add agent `{agent_id}`", (AgentChange(None, agent),))


def duplicate_agent(policy: Policy, agent_id: str, new_id: str) -> Edit:
    """A copy of an agent under another id."""
    _check_new(policy, new_id)
    copy = replace(agent_of(policy, agent_id), agent_id=new_id)
    return Edit(f"duplicate `{agent_id}` as `{new_id}`", (AgentChange(None, copy),))


def rename_agent(policy: Policy, agent_id: str, new_id: str) -> Edit:
    """The same agent, where it stands, under another id."""
    _check_new(policy, new_id)
    agent = agent_of(policy, agent_id)
    return Edit(f"rename `{agent_id}` to `{new_id}`", (AgentChange(agent, replace(agent, agent_id=new_id)),))


def describe_agent(policy: Policy, agent_id: str, description: str) -> Edit:
    """Another description."""
    agent = agent_of(policy, agent_id)
    return Edit(f"describe `{agent_id}`", (AgentChange(agent, replace(agent, description=description)),))


def remove_agent(policy: Policy, agent_id: str) -> Edit:
    """Take the agent out of the policy."""
    return Edit(f"remove agent `{agent_id}`", (AgentChange(agent_of(policy, agent_id), None),))


def agent_of(policy: Policy, agent_id: str) -> Agent:
    """The agent that an edit is about. Raises EditRefused when there is none of that id."""
    agent = policy.agents.get(agent_id)
    if agent is None:
        raise EditRefused(f"no agent `{agent_id}`")
    return agent


def _check_new(policy: Policy, agent_id: str) -> None:
    if not _AGENT_ID.fullmatch(agent_id):
        raise EditRefused(f"`{agent_id}` is no agent id: letters, digits, `-` and `_`, at most 64")
    if agent_id in policy.agents:
        raise EditRefused(f"agent `{agent_id}` exists already")
