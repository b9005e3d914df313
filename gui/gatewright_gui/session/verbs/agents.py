"""Verbs on the list of agents. They find free names; they do not know the list's widget."""

from collections.abc import Container, Sequence
from dataclasses import replace
from itertools import count

from gatewright.workspace.api import AgentChange, Delegate, Edit, EditRefused, Policy, agentedit
from gatewright_gui.qt.language import tr
from gatewright_gui.session.document import Document

_ROOM = 54
"""So much of a name goes into that of a copy, which may have 64 letters with what follows."""


def add_agent(document: Document) -> str | None:
    """A new agent that may do nothing yet, under a free name; the name, or None after a refusal."""
    agent_id = _free("agent", document.policy.agents)
    done = document.push(lambda policy, _tools: agentedit.add_agent(policy, agent_id))
    return agent_id if done else None


def duplicate_agent(document: Document, agent_id: str) -> str | None:
    """A copy under a free name; the name, or None after a refusal."""
    copy_id = _free(f"{agent_id[:_ROOM]}-copy", document.policy.agents)
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


def remove_agents(document: Document, agent_ids: Sequence[str]) -> bool:
    """Take several agents out of the policy, as one edit."""
    chosen = tuple(agent_ids)
    return bool(chosen) and document.push(lambda policy, _tools: agentedit.remove_agents(policy, chosen))


def list_catalog(document: Document, agent_id: str, catalog_id: str, *, on: bool) -> bool:
    """All tools of a catalog for the agent, later ones too, or no longer; those that are listed by name stay."""
    return document.push(lambda policy, _tools: agentedit.list_catalog(policy, agent_id, catalog_id, on=on))


def name_sub_agent(document: Document, agent_id: str, child_id: str) -> bool:
    """Let another agent have its own rights when this one starts it."""
    return document.push(lambda policy, _tools: agentedit.name_sub_agent(policy, agent_id, child_id))


def sub_agent_refusal(document: Document, agent_id: str, child_id: str) -> str:
    """Why an agent cannot be named as a sub-agent; empty when it can."""
    return document.refusal(lambda policy, _tools: agentedit.name_sub_agent(policy, agent_id, child_id))


def drop_sub_agent(document: Document, agent_id: str, child_id: str) -> bool:
    """Let a sub-agent no longer do more than this agent."""
    return document.push(lambda policy, _tools: agentedit.drop_sub_agent(policy, agent_id, child_id))


def set_delegate(document: Document, agent_id: str, delegate: Delegate) -> bool:
    """Which rights the sub-agents that the agent names have."""
    return document.push(lambda policy, _tools: agentedit.set_delegate(policy, agent_id, delegate))


def attach_source(document: Document, agent_id: str, source_id: str, *, on: bool) -> bool:
    """Let the agent's tools work on a source, or no longer; its levels stay as they are."""
    return document.push(lambda policy, _tools: _source_edit(policy, agent_id, source_id, on))


def attach_every_source(document: Document, agent_id: str, *, on: bool) -> bool:
    """Attach every source of the policy, those added later too; or fix the list to those of now."""
    return document.push(lambda policy, _tools: _every_source_edit(policy, agent_id, on))


def _source_edit(policy: Policy, agent_id: str, source_id: str, on: bool) -> Edit:
    if policy.source(source_id) is None:
        raise EditRefused(tr("no source `{source}`", source=source_id))
    every = tuple(source.source_id for source in policy.sources)
    sources = agentedit.agent_of(policy, agent_id).sources
    held = every if sources is None else sources
    if (source_id in held) == on:
        return Edit("", ())
    after = (*held, source_id) if on else tuple(name for name in held if name != source_id)
    name = tr("attach `{source}` to `{agent}`") if on else tr("take `{source}` from `{agent}`")
    name = name.format(source=source_id, agent=agent_id)
    return _with_sources(policy, agent_id, name, after)


def _every_source_edit(policy: Policy, agent_id: str, on: bool) -> Edit:
    if on:
        return _with_sources(policy, agent_id, tr("attach every source to `{agent}`", agent=agent_id), None)
    every = tuple(source.source_id for source in policy.sources)
    return _with_sources(policy, agent_id, tr("list the sources of `{agent}`", agent=agent_id), every)


def _with_sources(policy: Policy, agent_id: str, name: str, sources: tuple[str, ...] | None) -> Edit:
    before = agentedit.agent_of(policy, agent_id)
    return Edit(name, (AgentChange(before, replace(before, sources=sources)),))


def _free(wanted: str, taken: Container[str]) -> str:
    if wanted not in taken:
        return wanted
    return next(name for number in count(2) if (name := f"{wanted}-{number}") not in taken)
