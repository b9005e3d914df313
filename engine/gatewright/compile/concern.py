"""Which tools of one agent a change of the policy can concern; None where it can be any. It compiles nothing.

Too many is a waste of time, too few would be a stale right: what is not looked at here in detail concerns every tool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import TypeVar

from gatewright.policy.document import Agent, Policy, Source
from gatewright.policy.policyrule import PolicyRule
from gatewright.policy.right import ToolFacts
from gatewright.policy.rule import ANY_TOOL, ToolRule
from gatewright.policy.tier import SafetyTier
from gatewright.policy.toolname import split_name

Tools = frozenset[str] | None
_T = TypeVar("_T")
_NONE: frozenset[str] = frozenset()
_TIERS = frozenset(str(tier) for tier in SafetyTier)


def concerned(old: Policy, new: Policy, agent_id: str, facts: Iterable[ToolFacts]) -> Tools:
    """The bare names of the tools whose compiled form may differ for the agent under ``new``."""
    before, after = old.agents.get(agent_id), new.agents.get(agent_id)
    if before is None or after is None:
        return None
    parts: list[Callable[[], Tools]] = [
        lambda: _NONE if old.defaults == new.defaults and old.default is new.default else None,
        lambda: _NONE if _workspace(old) == _workspace(new) else None,
        lambda: _NONE if old.catalogs == new.catalogs else None,
        lambda: _settings(old, new),
        lambda: _policy_rules(old, new, agent_id),
        lambda: _NONE if before is after else _agent(before, after, facts),
        lambda: _sources(old.sources_of(before), new.sources_of(after), facts),
        lambda: _paths(old, new, facts),
    ]
    found = _NONE
    for part in parts:
        tools = part()
        if tools is None:
            return None
        found |= tools
    return found


def differ_in_agents_alone(old: Policy, new: Policy) -> bool:
    """Whether all that is not said of one agent is the very same, so that it need not be compared for each of them."""
    return all(getattr(old, part.name) is getattr(new, part.name) for part in fields(old) if part.name != "agents")


def _agent(before: Agent, after: Agent, facts: Iterable[ToolFacts]) -> Tools:
    rules = _tool_rules(before.tool_rules, after.tool_rules)
    listed = _listed(before.tools, after.tools)
    approvals = _approvals(before.approvals, after.approvals)
    if rules is None or listed is None or approvals is None:
        return None
    found = rules | listed | approvals | _capabilities(before, after, facts)
    if (before.sources is None) != (after.sources is None):
        found |= frozenset(row.name for row in facts if row.needs_source)
    return found


def _listed(before: tuple[str, ...] | None, after: tuple[str, ...] | None) -> Tools:
    if before == after:
        return _NONE
    if before is None or after is None:
        return None
    return frozenset(split_name(written)[0] for written in frozenset(before) ^ frozenset(after))


def _tool_rules(before: tuple[ToolRule, ...], after: tuple[ToolRule, ...]) -> Tools:
    names = {split_name(rule.tool_name)[0] for rule in _changed(before, after)}
    return None if ANY_TOOL in names else frozenset(names)


def _approvals(before: Mapping[str, object], after: Mapping[str, object]) -> Tools:
    if before == after:
        return _NONE
    keys = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
    if not _TIERS.isdisjoint(keys):
        return None
    return frozenset(name for key in keys for name in _heads(key))


def _heads(key: str) -> Iterable[str]:
    """Every tool name that an ``approvals`` key may begin with; names may hold dots."""
    yield key
    end = key.find(".")
    while end >= 0:
        yield key[:end]
        end = key.find(".", end + 1)


def _capabilities(before: Agent, after: Agent, facts: Iterable[ToolFacts]) -> frozenset[str]:
    """The tools that need a grant; what one bounds is part of their rights."""
    if before.capabilities == after.capabilities:
        return _NONE
    return frozenset(row.name for row in facts if any(op.capabilities for op in row.operations))


def _sources(before: tuple[Source, ...], after: tuple[Source, ...], facts: Iterable[ToolFacts]) -> Tools:
    if before == after:
        return _NONE
    named = {split_name(rule.tool_name)[0] for source in (*before, *after) for rule in source.required_tools}
    if [_reach(source) for source in before] == [_reach(source) for source in after]:
        return _NONE
    if ANY_TOOL in named:
        return None
    return frozenset(named) | frozenset(row.name for row in facts if row.needs_source)


def _paths(old: Policy, new: Policy, facts: Iterable[ToolFacts]) -> Tools:
    """The tools with arguments that are paths: what is below the base of any source has its level."""
    if old.sources == new.sources or [_reach(one) for one in old.sources] == [_reach(one) for one in new.sources]:
        return _NONE
    declared = {split_name(name)[0] for name, settings in new.tools.items() if settings.paths}
    return frozenset(declared).union(row.name for row in facts if any(op.paths for op in row.operations))


def _workspace(policy: Policy) -> tuple[object, ...]:
    return policy.roots, policy.web, policy.shell, policy.endpoints


def _reach(source: Source) -> tuple[object, ...]:
    """What of a source is compiled; which path has which level is read when a call comes."""
    return source.source_id, source.levels, source.required_tools


def _settings(old: Policy, new: Policy) -> frozenset[str]:
    if old.tools == new.tools:
        return _NONE
    names = old.tools.keys() | new.tools.keys()
    return frozenset(split_name(name)[0] for name in names if old.tools.get(name) != new.tools.get(name))


def _policy_rules(old: Policy, new: Policy, agent_id: str) -> Tools:
    found: set[str] = set()
    for rule in _changed(old.rules, new.rules):
        if _is_for(rule, agent_id):
            if rule.tools is None:
                return None
            found |= {split_name(written)[0] for written in rule.tools}
    return None if ANY_TOOL in found else frozenset(found)


def _is_for(rule: PolicyRule, agent_id: str) -> bool:
    return rule.agents is None or agent_id in rule.agents


def _changed(before: tuple[_T, ...], after: tuple[_T, ...]) -> list[_T]:
    """Every entry that came, went, or stands at another index, since reasons lead to the place of a rule."""
    if before is after:
        return []
    longest = max(len(before), len(after))
    if len(before) == len(after):
        return [one for pair in zip(before, after, strict=True) if not _same(*pair) for one in pair]
    first = next((i for i in range(min(len(before), len(after))) if not _same(before[i], after[i])), None)
    start = min(len(before), len(after)) if first is None else first
    return [*before[start:longest], *after[start:longest]]


def _same(one: object, other: object) -> bool:
    return one is other or one == other
