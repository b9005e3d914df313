"""Edits of an agent's ``approvals`` keys, and which keys there can be."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Sequence
from dataclasses import replace

from gatewright.base.errors import EditRefused
from gatewright.base.problem import choice_hint, near_miss
from gatewright.policy.agentedit import agent_of
from gatewright.policy.document import Agent, Policy
from gatewright.policy.edit import AgentChange, Edit
from gatewright.policy.right import ToolFacts
from gatewright.policy.tier import SafetyTier
from gatewright.policy.verdict import Verdict

_COMPARED = 200
"""So many keys are compared with a wrong one, while it is typed: of a large catalog there are thousands."""
TIER_KEYS = tuple(str(tier) for tier in SafetyTier)
_SAYS = {Verdict.ALLOW: "allow", Verdict.ASK: "ask first for", Verdict.DENY: "deny"}


def approval_keys(catalog: Iterable[ToolFacts]) -> tuple[str, ...]:
    """Every key that can stand there: the tiers, then tools with their operations in the order of the catalog."""
    named = [key for facts in catalog for key in (facts.name, *(f"{facts.name}.{op}" for op in facts.operation_names))]
    return tuple(dict.fromkeys((*TIER_KEYS, *named)))


def set_approval(policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, key: str, verdict: Verdict) -> Edit:
    """Give a key a verdict where it stands, or put it at the end. Raises EditRefused for a key that names nothing."""
    agent = agent_of(policy, agent_id)
    if key not in agent.approvals:
        _check_key(catalog, key)
    approvals = {**agent.approvals, key: verdict}
    return _edit(f"{_SAYS[verdict]} `{key}` for `{agent_id}` by approvals", agent, approvals)


def rename_approval(policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, key: str, new_key: str) -> Edit:
    """The same verdict for another key, in the same place."""
    agent = agent_of(policy, agent_id)
    _check_held(agent, key)
    if new_key == key:
        return Edit("", ())
    _check_key(catalog, new_key)
    if new_key in agent.approvals:
        raise EditRefused(f"`{agent_id}` has an approvals key `{new_key}` already")
    approvals = {new_key if held == key else held: verdict for held, verdict in agent.approvals.items()}
    return _edit(f"approvals key `{new_key}` instead of `{key}` for `{agent_id}`", agent, approvals)


def remove_approval(policy: Policy, agent_id: str, key: str) -> Edit:
    """Take a key away: what the defaults, a broader key or the tier say holds again."""
    agent = agent_of(policy, agent_id)
    _check_held(agent, key)
    approvals = {held: verdict for held, verdict in agent.approvals.items() if held != key}
    return _edit(f"remove the approvals key `{key}` of `{agent_id}`", agent, approvals)


def _check_held(agent: Agent, key: str) -> None:
    if key not in agent.approvals:
        raise EditRefused(f"`{agent.agent_id}` has no approvals key `{key}`")


def _check_key(catalog: Sequence[ToolFacts], key: str) -> None:
    keys = approval_keys(catalog)
    if key not in keys:
        near = near_miss(key, _nearby(key, keys))
        meant = f"; did you mean `{near}`?" if near else choice_hint(key, keys)
        raise EditRefused(f"`{key}` is neither a tier nor a tool nor `tool.operation`{meant}")


def _nearby(key: str, keys: Sequence[str]) -> Sequence[str]:
    """The keys to compare a wrong one with; of many those that stand beside it in the alphabet."""
    if len(keys) <= _COMPARED:
        return keys
    ordered = sorted(keys)
    at = bisect(ordered, key)
    return ordered[max(at - _COMPARED // 2, 0) : at + _COMPARED // 2]


def _edit(name: str, agent: Agent, approvals: dict[str, Verdict]) -> Edit:
    return Edit(name, (AgentChange(agent, replace(agent, approvals=approvals)),))
