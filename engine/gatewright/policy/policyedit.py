"""Edits of what a policy says for all agents at once: its rules, and its fields such as the roots or the defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from gatewright.base.errors import EditRefused
from gatewright.policy.document import Policy
from gatewright.policy.edit import Edit, Field, FieldChange, moved
from gatewright.policy.policyrule import PolicyRule


def add_rule(policy: Policy, rule: PolicyRule, index: int | None = None) -> Edit:
    """Insert a rule before ``index`` (from 0), or as the last one."""
    at = len(policy.rules) if index is None else index
    return _edit(f"add policy rule `{rule.name}`", policy, (*policy.rules[:at], rule, *policy.rules[at:]))


def change_rule(policy: Policy, index: int, rule: PolicyRule) -> Edit:
    """Put another rule in the place of the one at ``index``."""
    old = _rule(policy, index)
    after = replace(rule, identity=old.identity)
    if old.name != rule.name and replace(old, name=rule.name) == rule:
        name = f"rename policy rule `{old.name}` to `{rule.name}`"
    else:
        name = f"change policy rule `{old.name}`"
    return _edit(name, policy, (*policy.rules[:index], after, *policy.rules[index + 1 :]))


def put_rule(policy: Policy, index: int | None, rule: PolicyRule) -> Edit:
    """Put a rule in the place of the one at ``index``; None: as the last one."""
    return add_rule(policy, rule) if index is None else change_rule(policy, index, rule)


def move_rules(policy: Policy, indexes: Iterable[int], to: int) -> Edit:
    """Move rules, in the order they have, so that the first of them stands at ``to`` afterwards, the others below."""
    chosen = {index: _rule(policy, index) for index in indexes}
    return _edit(f"move {_named(chosen.values())}", policy, moved(policy.rules, chosen, to))


def remove_rules(policy: Policy, indexes: Iterable[int]) -> Edit:
    """Remove rules, as one edit."""
    gone = {index: _rule(policy, index) for index in indexes}
    rest = tuple(rule for index, rule in enumerate(policy.rules) if index not in gone)
    return _edit(f"remove {_named(gone.values())}", policy, rest)


def set_field(policy: Policy, field: Field, after: object) -> Edit:
    """Another value for a field of the policy; named by what of it differs, e.g. ``set `roots.shared` to `files```."""
    before: object = getattr(policy, field)
    name, old, new = field, before, after
    while is_dataclass(old) and type(old) is type(new):
        pairs = [(one.name, getattr(old, one.name), getattr(new, one.name)) for one in fields(old)]
        differing = [pair for pair in pairs if pair[1] != pair[2]]
        if len(differing) != 1:
            break
        key, old, new = differing[0]
        name = cast("Field", f"{name}.{key}")
    said = "" if is_dataclass(new) or isinstance(new, Mapping) else _shown(new)
    label = f"remove `{name}`" if new is None else f"set `{name}` to `{said}`" if said else f"change `{name}`"
    return Edit(label, (FieldChange(field, before, after),))


def _shown(value: Any) -> str:
    """A value in a few words; empty where it takes more."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        words = [one for one in cast("tuple[object, ...]", value) if isinstance(one, str)]
        value = ", ".join(words) if len(words) == len(cast("tuple[object, ...]", value)) else ""
    text = str(value)
    return text if len(text) <= 60 and text.isprintable() else ""


def _named(rules: Iterable[PolicyRule]) -> str:
    names = [rule.name for rule in rules]
    return f"policy rule `{names[0]}`" if len(names) == 1 else f"{len(names)} policy rules"


def _rule(policy: Policy, index: int) -> PolicyRule:
    if not 0 <= index < len(policy.rules):
        raise EditRefused(f"the policy has no rule {index + 1}")
    return policy.rules[index]


def _edit(name: str, policy: Policy, rules: tuple[PolicyRule, ...]) -> Edit:
    return Edit(name, (FieldChange("rules", policy.rules, rules),))
