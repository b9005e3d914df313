"""Edits of sources and their levels: set, add, remove and move rules; add, change and remove sources.

Agents and places of servers name sources, so renaming or removing a source changes them too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gatewright.base.amount import plural
from gatewright.base.errors import EditRefused
from gatewright.policy.document import PermissionRule, Policy, Source, is_folder_place
from gatewright.policy.edit import AgentChange, CatalogChange, Edit, SourceChange, move_rows
from gatewright.policy.verdict import Permission


def set_level(policy: Policy, source_id: str, index: int, level: Permission) -> Edit:
    """Give the rule at ``index`` (from 0) another level."""
    source = _source(policy, source_id)
    rule = replace(_rule(source, index), permission=level)
    return _edit(f"set `{rule.pattern}` of `{source_id}` to {level}", source, _swap(source, index, rule))


def set_rule(policy: Policy, source_id: str, index: int, rule: PermissionRule) -> Edit:
    """Replace the rule at ``index``."""
    source = _source(policy, source_id)
    old = _rule(source, index)
    rule = replace(rule, identity=old.identity)
    return _edit(f"change rule `{old.pattern}` of `{source_id}`", source, _swap(source, index, rule))


def set_default_level(policy: Policy, source_id: str, level: Permission) -> Edit:
    """Change the level of paths that no rule matches."""
    source = _source(policy, source_id)
    return _edit(f"set the default of `{source_id}` to {level}", source, replace(source, default_permission=level))


def add_rule(policy: Policy, source_id: str, rule: PermissionRule, index: int | None = None) -> Edit:
    """Insert a rule before ``index``, or append it."""
    source = _source(policy, source_id)
    rules = list(source.permission_rules)
    rules.insert(len(rules) if index is None else index, rule)
    return _edit(f"add rule `{rule.pattern}` to `{source_id}`", source, replace(source, permission_rules=tuple(rules)))


def remove_rule(policy: Policy, source_id: str, index: int) -> Edit:
    """Remove the rule at ``index``."""
    return remove_rules(policy, source_id, (index,))


def remove_rules(policy: Policy, source_id: str, indexes: Iterable[int]) -> Edit:
    """Remove several rules in one edit."""
    source = _source(policy, source_id)
    gone = {index: _rule(source, index) for index in sorted(set(indexes))}
    rules = tuple(rule for i, rule in enumerate(source.permission_rules) if i not in gone)
    return _edit(
        f"remove {_rules_in_words(gone.values())} of `{source_id}`", source, replace(source, permission_rules=rules)
    )


def move_rule(policy: Policy, source_id: str, index: int, to: int) -> Edit:
    """Move the rule at ``index`` to ``to``."""
    return move_rules(policy, source_id, (index,), to)


def move_rules(policy: Policy, source_id: str, indexes: Iterable[int], to: int) -> Edit:
    """Move rules, in their order, so that the first gets the place ``to`` and the others follow."""
    source = _source(policy, source_id)
    chosen = {index: _rule(source, index) for index in sorted(set(indexes))}
    after = replace(source, permission_rules=move_rows(source.permission_rules, chosen, to))
    return _edit(f"move {_rules_in_words(chosen.values())} of `{source_id}`", source, after)


def add_source(policy: Policy, source: Source) -> Edit:
    """Append a source; agents with a list of sources do not get it."""
    _check_new(policy, source.source_id)
    return Edit(f"add source `{source.source_id}`", (SourceChange(None, source),))


def remove_source(policy: Policy, source_id: str) -> Edit:
    """Remove a source from the policy, the agents' lists and the places of servers. Files on disk stay."""
    source = _source(policy, source_id)
    agents, servers = _agent_changes(policy, source_id, ()), _server_changes(policy, source_id, None)
    holders = [plural(len(rows), what) for rows, what in ((agents, "agent"), (servers, "server")) if rows]
    name = f"remove source `{source_id}`"
    if holders:
        name += f" and take it from {' and '.join(holders)}"
    return Edit(name, (*agents, *servers, SourceChange(source, None, policy.sources.index(source))))


def change_source(policy: Policy, source_id: str, after: Source) -> Edit:
    """Change the settings of a source in its place; lists of agents and places of servers take over a new id."""
    before = _source(policy, source_id)
    follow: tuple[AgentChange | CatalogChange, ...] = ()
    if after.source_id != source_id:
        if after.source_id.casefold() != source_id.casefold():
            _check_new(policy, after.source_id)
        _check_id(after.source_id)
        follow = (
            *_agent_changes(policy, source_id, (after.source_id,)),
            *_server_changes(policy, source_id, after.source_id),
        )
    told = _differences(before, after)
    name = f"{told[0]} of `{source_id}`" if len(told) == 1 else f"change source `{source_id}`"
    return Edit(name, (SourceChange(before, after), *follow))


def _differences(before: Source, after: Source) -> list[str]:
    """The differences as words that fit before the name of the source."""
    pairs = (
        ("change the id", before.source_id != after.source_id),
        (f"set the folder to `{after.base_path}`", before.base_path != after.base_path),
        (f"set the default to {after.default_permission}", before.default_permission != after.default_permission),
        (f"set the size limit to {after.max_file_bytes:,} bytes", before.max_file_bytes != after.max_file_bytes),
        ("follow changes" if after.watch else "stop following changes", before.watch != after.watch),
    )
    return [words for words, differs in pairs if differs]


def _agent_changes(policy: Policy, source_id: str, instead: tuple[str, ...]) -> tuple[AgentChange, ...]:
    """The changes of agents that list a source, with ``instead`` in its place."""
    changes: list[AgentChange] = []
    for agent in policy.agents.values():
        if agent.sources is not None and source_id in agent.sources:
            at = agent.sources.index(source_id)
            listed = (*agent.sources[:at], *instead, *agent.sources[at + 1 :])
            changes.append(AgentChange(agent, replace(agent, sources=listed)))
    return tuple(changes)


def _server_changes(policy: Policy, source_id: str, to: str | None) -> tuple[CatalogChange, ...]:
    """The changes of servers that have a source as a place: its new id, or its removal."""
    changes: list[CatalogChange] = []
    for catalog in policy.catalogs:
        if catalog.places is not None and source_id in catalog.places and not is_folder_place(source_id):
            places = {to if one == source_id else one: use for one, use in catalog.places.items()}
            kept = {one: use for one, use in places.items() if one is not None}
            changes.append(CatalogChange(catalog, replace(catalog, places=kept)))
    return tuple(changes)


def _check_new(policy: Policy, source_id: str) -> None:
    _check_id(source_id)
    for source in policy.sources:
        if source.source_id.casefold() == source_id.casefold():
            raise EditRefused(f"a source `{source.source_id}` exists already")


def _check_id(source_id: str) -> None:
    if not source_id.strip():
        raise EditRefused("a source needs a name")
    if source_id != source_id.strip() or any(char < " " or char == "\x7f" for char in source_id):
        raise EditRefused("the name of a source has no spaces around it and no control characters")


def _rules_in_words(rules: Iterable[PermissionRule]) -> str:
    """Name one rule by its pattern, several by their number."""
    patterns = [rule.pattern for rule in rules]
    return f"rule `{patterns[0]}`" if len(patterns) == 1 else f"{len(patterns)} rules"


def _source(policy: Policy, source_id: str) -> Source:
    source = policy.source(source_id)
    if source is None:
        raise EditRefused(f"no source `{source_id}`")
    return source


def _rule(source: Source, index: int) -> PermissionRule:
    if not 0 <= index < len(source.permission_rules):
        raise EditRefused(f"source `{source.source_id}` has no rule {index + 1}")
    return source.permission_rules[index]


def _swap(source: Source, index: int, rule: PermissionRule) -> Source:
    rules = source.permission_rules
    return replace(source, permission_rules=(*rules[:index], rule, *rules[index + 1 :]))


def _edit(name: str, before: Source, after: Source) -> Edit:
    return Edit(name, (SourceChange(before, after),))
