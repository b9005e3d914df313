"""Edits of an agent's capabilities: grant, change, revoke. Scopes come as values, or as the text that one types.

Grants of one kind with lists are granted together, so a new one is put into the first of its kind that stands there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gatewright.base.errors import EditRefused
from gatewright.base.frozen import frozen
from gatewright.base.report import Report
from gatewright.policy.agentedit import agent_of
from gatewright.policy.document import Agent, Policy
from gatewright.policy.edit import AgentChange, Edit
from gatewright.policy.kinds.capability import CAPABILITIES, Capability, CapabilityKind, ListedCapability, kind_of
from gatewright.policy.right import ToolFacts


@frozen
class Granted:
    """A capability where it stood when it was looked at; an edit of it refuses once it is not there any more."""

    agent_id: str
    index: int
    capability: Capability


def grant(policy: Policy, agent_id: str, capability: Capability) -> Edit:
    """Grant one more; a list goes into what of its kind is granted already. Raises EditRefused where nothing is new."""
    agent, kind = agent_of(policy, agent_id), kind_of(capability)
    held = next((i for i, one in enumerate(agent.capabilities) if kind_of(one) is kind), None)
    if held is None:
        return _edit(f"grant `{kind}` to `{agent_id}`", agent, (*agent.capabilities, capability))
    after = _joined(agent.capabilities[held], capability)
    if after == agent.capabilities[held]:
        raise EditRefused(f"`{agent_id}` is granted that `{kind}` already")
    return _edit(f"widen `{kind}` of `{agent_id}`", agent, _put(agent, held, after))


def change_capability(policy: Policy, granted: Granted, capability: Capability) -> Edit:
    """Another scope for a grant where it stands."""
    agent = _standing(policy, granted)
    name = f"change `{kind_of(capability)}` of `{agent.agent_id}`"
    return _edit(name, agent, _put(agent, granted.index, capability))


def revoke(policy: Policy, granted: Granted) -> Edit:
    """Take a grant away."""
    agent = _standing(policy, granted)
    name = f"revoke `{kind_of(granted.capability)}` of `{agent.agent_id}`"
    return _edit(name, agent, _put(agent, granted.index, None))


def read_scope(kind: CapabilityKind, text: str) -> Capability:
    """The capability of the kind with the scope that ``text`` says. Raises EditRefused naming what cannot be read."""
    capability, report = CAPABILITIES[kind].from_text(text), Report()
    capability.check((), report)
    if report.first_error is not None:
        raise EditRefused(report.first_error[1])
    return capability


def scope_example(kind: CapabilityKind, policy: Policy | None = None) -> str:
    """What one may type for a kind; empty for a kind without a scope. Folders are those that the policy names."""
    folders: list[str] = []
    if policy is not None and kind in {CapabilityKind.FS_READ, CapabilityKind.FS_WRITE}:
        folders = [folder for name, folder in policy.roots.folders.items() if name != "vault"]
        folders = folders or [source.base_path for source in policy.file_sources]
    return ", ".join(dict.fromkeys(folders)) or CAPABILITIES[kind].typed_example


def needs(catalog: Iterable[ToolFacts]) -> dict[CapabilityKind, tuple[str, ...]]:
    """What needs each kind: ``tool`` where all of its operations do, else ``tool.operation``."""
    found: dict[CapabilityKind, list[str]] = {}
    for facts in catalog:
        by_kind: dict[CapabilityKind, list[str]] = {}
        for row in facts.operations:
            for kind in row.capabilities:
                by_kind.setdefault(kind, []).append(row.name)
        for kind, rows in by_kind.items():
            whole = len(rows) == len(facts.operations)
            found.setdefault(kind, []).extend([facts.name] if whole else [f"{facts.name}.{row}" for row in rows])
    return {kind: tuple(names) for kind, names in found.items()}


def _joined(held: Capability, new: Capability) -> Capability:
    if not isinstance(held, ListedCapability) or not isinstance(new, ListedCapability):
        raise EditRefused(f"`{kind_of(held)}` is granted already: change what stands there")
    return type(held)(tuple(dict.fromkeys((*held.scope, *new.scope))))


def _standing(policy: Policy, granted: Granted) -> Agent:
    agent = agent_of(policy, granted.agent_id)
    if agent.capabilities[granted.index : granted.index + 1] != (granted.capability,):
        raise EditRefused(f"capability {granted.index + 1} of `{agent.agent_id}` is not what it was")
    return agent


def _put(agent: Agent, index: int, capability: Capability | None) -> tuple[Capability, ...]:
    middle = () if capability is None else (capability,)
    return (*agent.capabilities[:index], *middle, *agent.capabilities[index + 1 :])


def _edit(name: str, agent: Agent, capabilities: tuple[Capability, ...]) -> Edit:
    return Edit(name, (AgentChange(agent, replace(agent, capabilities=capabilities)),))
