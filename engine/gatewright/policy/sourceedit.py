"""Edits of a source's levels: set, add, remove, move a rule, change the default. It does not know files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gatewright.base.errors import EditRefused
from gatewright.policy.edit import Edit, SourceChange

if TYPE_CHECKING:
    from gatewright.policy.document import PermissionRule, Policy, Source
    from gatewright.policy.permission import Permission


def set_level(policy: Policy, source_id: str, index: int, level: Permission) -> Edit:
    """Give the rule at ``index`` (from 0) another level."""
    source = _source(policy, source_id)
    rule = replace(_rule(source, index), permission=level)
    return _edit(f"set `{rule.pattern}` of `{source_id}` to {level}", source, _swap(source, index, rule))


def set_rule(policy: Policy, source_id: str, index: int, rule: PermissionRule) -> Edit:
    """Put another rule in the place of the one at ``index``."""
    source = _source(policy, source_id)
    old = _rule(source, index)
    return _edit(f"change rule `{old.pattern}` of `{source_id}`", source, _swap(source, index, rule))


def set_default_level(policy: Policy, source_id: str, level: Permission) -> Edit:
    """Change the level of paths that no rule matches."""
    source = _source(policy, source_id)
    return _edit(f"set the default of `{source_id}` to {level}", source, replace(source, default_permission=level))


def add_rule(policy: Policy, source_id: str, rule: PermissionRule, index: int | None = None) -> Edit:
    """Insert a rule before ``index``, or as the last one."""
    source = _source(policy, source_id)
    rules = list(source.permission_rules)
    rules.insert(len(rules) if index is None else index, rule)
    return _edit(f"add rule `{rule.pattern}` to `{source_id}`", source, replace(source, permission_rules=tuple(rules)))


def remove_rule(policy: Policy, source_id: str, index: int) -> Edit:
    """Remove the rule at ``index``."""
    source = _source(policy, source_id)
    gone = _rule(source, index)
    rules = tuple(rule for i, rule in enumerate(source.permission_rules) if i != index)
    return _edit(f"remove rule `{gone.pattern}` of `{source_id}`", source, replace(source, permission_rules=rules))


def move_rule(policy: Policy, source_id: str, index: int, to: int) -> Edit:
    """Move the rule at ``index`` so that it stands at ``to`` afterwards."""
    source = _source(policy, source_id)
    moved = _rule(source, index)
    rules = [rule for i, rule in enumerate(source.permission_rules) if i != index]
    rules.insert(max(0, min(to, len(rules))), moved)
    return _edit(
        f"move rule `{moved.pattern}` of `{source_id}`", source, replace(source, permission_rules=tuple(rules))
    )


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
