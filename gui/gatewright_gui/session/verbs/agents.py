"""Verbs on the list of agents and on their capabilities; scopes come as the text that one types."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from itertools import count

from gatewright.workspace.api import (
    AgentChange,
    CapabilityKind,
    Delegate,
    Edit,
    EditRefused,
    Granted,
    OperationRight,
    Policy,
    ToolRight,
    agentedit,
    kind_of,
    read_scope,
)
from gatewright_gui.qt.language import mark, tr
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


ACCESS_WORDS = {
    CapabilityKind.NET_READ: mark("network access"),
    CapabilityKind.NET_WRITE: mark("permission to send to the network"),
    CapabilityKind.FS_READ: mark("read access"),
    CapabilityKind.FS_WRITE: mark("write access"),
    CapabilityKind.DB_READ: mark("access to databases"),
    CapabilityKind.DB_WRITE: mark("permission to change databases"),
    CapabilityKind.EXEC: mark("permission to run programs"),
    CapabilityKind.WASM_EXEC: mark("permission to run modules"),
    CapabilityKind.CLOCK_READ: mark("the clock"),
    CapabilityKind.ENV_READ: mark("environment variables"),
    CapabilityKind.ADVANCED_EDIT: mark("advanced editing"),
}
"""The kinds in words that end `needs ...` and `Grant ...`."""
_FOLDERS = frozenset({CapabilityKind.FS_READ, CapabilityKind.FS_WRITE})


def scope_example(document: Document, kind: CapabilityKind) -> str:
    """An example of what one may type for a kind: of folders, those that the policy names."""
    return agentedit.scope_example(kind, document.policy)


def ready_scope(document: Document, kind: CapabilityKind) -> str | None:
    """The scope that a grant would have without a question: the folders of the policy, "" for a kind without one.

    None: somebody has to say it.
    """
    policy, example = document.policy, scope_example(document, kind)
    is_named = kind in _FOLDERS and bool(policy.roots.folders or policy.file_sources)
    return example if is_named or not example else None


def lacking_kind(
    document: Document, agent_id: str, tool: ToolRight, rows: Iterable[OperationRight]
) -> CapabilityKind | None:
    """The first kind that a ticked one of these operations needs and the agent is not granted; None: it has all."""
    agent = document.policy.agents.get(agent_id)
    if agent is None:
        return None
    held = {kind_of(one) for one in agent.capabilities if one.scope != ()}
    needed = {facts.name: facts.capabilities for facts in tool.facts.operations}
    lacks = {kind for row in rows if row.ticked for kind in needed.get(row.operation, ()) if kind not in held}
    return next((kind for kind in CapabilityKind if kind in lacks), None)


def scope_tip(kind: CapabilityKind) -> str:
    """Words on how the scope of a kind is read, where that is not plain; else empty."""
    if kind not in _FOLDERS:
        return ""
    return tr("Folders as seen from the policy file's own, separated by commas; all that lies below them counts")


def grant(document: Document, agent_id: str, kind: CapabilityKind, scope: str = "") -> bool:
    """Grant one more."""
    return document.push(lambda policy, _tools: agentedit.grant(policy, agent_id, read_scope(kind, scope)))


def change_capability(document: Document, granted: Granted, scope: str) -> bool:
    """Another scope for a grant."""
    kind = kind_of(granted.capability)
    return document.push(lambda policy, _tools: agentedit.change_capability(policy, granted, read_scope(kind, scope)))


def revoke(document: Document, granted: Granted) -> bool:
    """Take a grant away."""
    return document.push(lambda policy, _tools: agentedit.revoke(policy, granted))


def grant_refusal(kind: CapabilityKind, scope: str) -> str:
    """The fault in a scope; empty when there is none."""
    try:
        read_scope(kind, scope)
    except EditRefused as error:
        return str(error)
    return ""
