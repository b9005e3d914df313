"""Which tools of one agent a change of the policy can concern; None where it can be any. It compiles nothing.

Too many is a waste of time, too few would be a stale right: what is not looked at here in detail concerns every tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from itertools import accumulate
from typing import TypeVar

from gatewright.policy.document import Agent, Policy, Source
from gatewright.policy.permission import Permission
from gatewright.policy.right import ToolFacts
from gatewright.policy.rule import ANY_TOOL, ToolRule
from gatewright.policy.tier import SafetyTier
from gatewright.policy.toolname import split_name

Tools = frozenset[str] | None
_T = TypeVar("_T")
_NONE: frozenset[str] = frozenset()
_TIERS = frozenset(str(tier) for tier in SafetyTier)


def concerned(old: Policy, new: Policy, before: Agent, after: Agent, facts: Iterable[ToolFacts]) -> Tools:
    """The bare names of the tools whose compiled form may differ for the agent, ``after`` under ``new``."""
    found = _NONE
    for tools in _parts(old, new, before, after, facts):
        if tools is None:
            return None
        found |= tools
    return found


def _parts(old: Policy, new: Policy, before: Agent, after: Agent, facts: Iterable[ToolFacts]) -> Iterator[Tools]:
    """The tools that each part of the policy concerns."""
    yield _NONE if _for_all(old) == _for_all(new) else None
    yield _settings(old, new)
    yield _policy_rules(old, new, after.agent_id)
    if before is not after:
        yield _tool_rules(before.tool_rules, after.tool_rules)
        yield _listed(before.tools, after.tools)
        yield _approvals(before.approvals, after.approvals)
        yield _capabilities(before, after, facts)
        if (before.sources is None) != (after.sources is None):
            yield frozenset(row.name for row in facts if row.needs_source)
    if old.sources is not new.sources or before.sources != after.sources:
        yield _sources(old.places_of(before), new.places_of(after), facts)
        yield _paths(old, new, facts)


def differ_in_agents_alone(old: Policy, new: Policy) -> bool:
    """Whether all that is not said of one agent is the very same, so that it need not be compared for each of them."""
    return all(getattr(old, part.name) is getattr(new, part.name) for part in fields(old) if part.name != "agents")


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
    keys = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
    if not _TIERS.isdisjoint(keys):
        return None
    return frozenset(name for key in keys for name in _heads(key))


def _heads(key: str) -> Iterable[str]:
    """Every tool name that an ``approvals`` key may begin with; names may hold dots."""
    return accumulate(key.split("."), "{}.{}".format)


def _capabilities(before: Agent, after: Agent, facts: Iterable[ToolFacts]) -> frozenset[str]:
    """The tools that need a grant; what one bounds is part of their rights."""
    if before.capabilities == after.capabilities:
        return _NONE
    return frozenset(row.name for row in facts if any(op.capabilities for op in row.operations))


def _sources(before: tuple[Source, ...], after: tuple[Source, ...], facts: Iterable[ToolFacts]) -> Tools:
    if [_reach(source) for source in before] == [_reach(source) for source in after]:
        return _NONE
    named = {split_name(rule.tool_name)[0] for source in (*before, *after) for rule in source.required_tools}
    if ANY_TOOL in named:
        return None
    return frozenset(named) | frozenset(row.name for row in facts if row.needs_source)


def _paths(old: Policy, new: Policy, facts: Iterable[ToolFacts]) -> Tools:
    """The tools with arguments that are or may be paths: what is below the base of any source has its level."""
    before, after = ({one.source_id: one.levels for one in policy.sources} for policy in (old, new))
    if before == after:
        return _NONE
    texts = frozenset[Permission]().union(*before.values()) != frozenset[Permission]().union(*after.values())
    declared = {split_name(name)[0] for name, settings in new.tools.items() if settings.paths}
    return frozenset(declared).union(row.name for row in facts if _names_paths(row, texts=texts))


def _names_paths(facts: ToolFacts, *, texts: bool) -> bool:
    """Tell whether a call names places; ``texts``: also by what may be one, which any source may judge."""
    return any(
        op.paths or op.disk_actions or (texts and (op.holds_texts or op.takes_others)) for op in facts.operations
    )


def _for_all(policy: Policy) -> tuple[object, ...]:
    """What may concern every tool of every agent."""
    shared = policy.roots, policy.web, policy.shell, policy.endpoints, policy.closed
    return policy.defaults, policy.default, policy.catalogs, policy.compositions, *shared


def _reach(source: Source) -> tuple[object, ...]:
    """What of a source is compiled; which path has which level is read when a call comes."""
    return source.source_id, source.levels, source.required_tools


def _settings(old: Policy, new: Policy) -> frozenset[str]:
    names = old.tools.keys() | new.tools.keys()
    return frozenset(split_name(name)[0] for name in names if old.tools.get(name) != new.tools.get(name))


def _policy_rules(old: Policy, new: Policy, agent_id: str) -> Tools:
    found: set[str] = set()
    for rule in _changed(old.rules, new.rules):
        if rule.agents is None or agent_id in rule.agents:
            if rule.tools is None:
                return None
            found |= {split_name(written)[0] for written in rule.tools}
    return frozenset(found)


def _changed(before: tuple[_T, ...], after: tuple[_T, ...]) -> list[_T]:
    """Every entry that came, went, or stands at another index, since reasons lead to the place of a rule."""
    if len(before) == len(after):
        return [one for pair in zip(before, after, strict=True) if pair[0] != pair[1] for one in pair]
    shared = min(len(before), len(after))
    start = next((i for i in range(shared) if before[i] != after[i]), shared)
    return [*before[start:], *after[start:]]
