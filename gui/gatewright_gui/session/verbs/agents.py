"""Verbs on the list of agents. They find free names; they do not know the list's widget."""

from collections.abc import Container
from itertools import count

from gatewright.policy import agentedit
from gatewright_gui.session.document import Document


def add_agent(document: Document) -> str | None:
    """A new agent that may do nothing yet, under a free name; the name, or None after a refusal."""
    agent_id = _free("agent", document.policy.agents)
    done = document.push(lambda policy, _tools: agentedit.add_agent(policy, agent_id))
    return agent_id if done else None


def duplicate_agent(document: Document, agent_id: str) -> str | None:
    """A copy under a free name; the name, or None after a refusal."""
    copy_id = _free(f"{agent_id}-copy", document.policy.agents)
    done = document.push(lambda policy, _tools: agentedit.duplicate_agent(policy, agent_id, copy_id))
    return copy_id if done else None


def rename_agent(document: Document, agent_id: str, new_id: str) -> bool:
    """The same agent under another name."""
    if new_id == agent_id:
        return False
    return document.push(lambda policy, _tools: agentedit.rename_agent(policy, agent_id, new_id))


def rename_refusal(document: Document, agent_id: str, new_id: str) -> str:
    """Why the agent cannot have that name; empty when it can."""
    if new_id == agent_id:
        return ""
    return document.refusal(lambda policy, _tools: agentedit.rename_agent(policy, agent_id, new_id))


def describe_agent(document: Document, agent_id: str, description: str) -> bool:
    """Another description."""
    return document.push(lambda policy, _tools: agentedit.describe_agent(policy, agent_id, description))


def remove_agent(document: Document, agent_id: str) -> bool:
    """Take the agent out of the policy; undo brings it back."""
    return document.push(lambda policy, _tools: agentedit.remove_agent(policy, agent_id))


def _free(wanted: str, taken: Container[str]) -> str:
    if wanted not in taken:
        return wanted
    return next(name for number in count(2) if (name := f"{wanted}-{number}") not in taken)
