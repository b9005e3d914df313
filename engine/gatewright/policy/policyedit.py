"""Edits of the parts of a policy for all agents: its rules, catalogs, and fields such as the roots.

Mentions of a catalog's tools go with the catalog.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from gatewright.base.errors import EditRefused
from gatewright.policy.document import Catalog, Confine, PlaceUse, Policy
from gatewright.policy.edit import CatalogChange, Edit, Field, FieldChange, move_rows
from gatewright.policy.rule import PolicyRule
from gatewright.policy.toolmention import follow_names


def add_rule(policy: Policy, rule: PolicyRule, index: int | None = None) -> Edit:
    """Insert a rule before ``index`` (from 0), or append it."""
    at = len(policy.rules) if index is None else index
    return _edit(f"add policy rule `{rule.name}`", policy, (*policy.rules[:at], rule, *policy.rules[at:]))


def change_rule(policy: Policy, index: int, rule: PolicyRule) -> Edit:
    """Replace the rule at ``index``."""
    old = _rule(policy, index)
    after = replace(rule, identity=old.identity)
    if old.name != rule.name and replace(old, name=rule.name) == rule:
        name = f"rename policy rule `{old.name}` to `{rule.name}`"
    else:
        name = f"change policy rule `{old.name}`"
    return _edit(name, policy, (*policy.rules[:index], after, *policy.rules[index + 1 :]))


def put_rule(policy: Policy, index: int | None, rule: PolicyRule) -> Edit:
    """Replace the rule at ``index``; None: append it."""
    return add_rule(policy, rule) if index is None else change_rule(policy, index, rule)


def move_rules(policy: Policy, indexes: Iterable[int], to: int) -> Edit:
    """Move rules, in their order, so that the first stands at ``to`` and the others below it."""
    chosen = {index: _rule(policy, index) for index in indexes}
    return _edit(f"move {_rules_in_words(chosen.values())}", policy, move_rows(policy.rules, chosen, to))


def remove_rules(policy: Policy, indexes: Iterable[int]) -> Edit:
    """Remove rules in one edit."""
    gone = {index: _rule(policy, index) for index in indexes}
    rest = tuple(rule for index, rule in enumerate(policy.rules) if index not in gone)
    return _edit(f"remove {_rules_in_words(gone.values())}", policy, rest)


def set_field(policy: Policy, field: Field, after: object) -> Edit:
    """Set a field of the policy; the edit's name tells the difference, e.g. ``set `roots.shared` to `files```."""
    before: object = getattr(policy, field)
    name, old, new = field, before, after
    while is_dataclass(old) and type(old) is type(new):
        pairs = [(one.name, getattr(old, one.name), getattr(new, one.name)) for one in fields(old)]
        differing = [pair for pair in pairs if pair[1] != pair[2]]
        if len(differing) != 1:
            break
        key, old, new = differing[0]
        name = cast("Field", f"{name}.{key}")
    said = "" if is_dataclass(new) or isinstance(new, Mapping) else _short(new)
    label = f"remove `{name}`" if new is None else f"set `{name}` to `{said}`" if said else f"change `{name}`"
    return Edit(label, (FieldChange(field, before, after),))


def _short(value: Any) -> str:
    """A short value in words; empty for a long one."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        words = [one for one in cast("tuple[object, ...]", value) if isinstance(one, str)]
        value = ", ".join(words) if len(words) == len(cast("tuple[object, ...]", value)) else ""
    text = str(value)
    return text if len(text) <= 60 and text.isprintable() else ""


def _rules_in_words(rules: Iterable[PolicyRule]) -> str:
    names = [rule.name for rule in rules]
    return f"policy rule `{names[0]}`" if len(names) == 1 else f"{len(names)} policy rules"


def _rule(policy: Policy, index: int) -> PolicyRule:
    if not 0 <= index < len(policy.rules):
        raise EditRefused(f"the policy has no rule {index + 1}")
    return policy.rules[index]


def _edit(name: str, policy: Policy, rules: tuple[PolicyRule, ...]) -> Edit:
    return Edit(name, (FieldChange("rules", policy.rules, rules),))


USE_WORDS = {PlaceUse.READ: "read", PlaceUse.WRITE: "change", PlaceUse.SNAPSHOT: "change in a copy"}


def add_catalog(policy: Policy, catalog: Catalog) -> Edit:
    """Append a catalog; agents with a list of tools get none of its tools."""
    return add_catalogs(policy, (catalog,))


def add_catalogs(policy: Policy, catalogs: Sequence[Catalog]) -> Edit:
    """Append several catalogs in one edit."""
    for catalog in catalogs:
        _check_new(policy, catalog.catalog_id)
    named = ", ".join(f"`{catalog.catalog_id}`" for catalog in catalogs)
    label = f"add catalog{'s' if len(catalogs) > 1 else ''} {named}"
    return Edit(label, tuple(CatalogChange(None, catalog) for catalog in catalogs))


def remove_catalog(policy: Policy, catalog_id: str, tool_names: Iterable[str] = ()) -> Edit:
    """Remove a catalog and the mentions of ``tool_names``, its tools.

    The pin of a server stays on disk.
    """
    catalog = _catalog(policy, catalog_id)
    follow = tuple(follow_names(policy, dict.fromkeys(tool_names)))
    return Edit(
        f"remove catalog `{catalog_id}`", (*follow, CatalogChange(catalog, None, policy.catalogs.index(catalog)))
    )


def set_places(policy: Policy, catalog_id: str, places: Mapping[str, PlaceUse]) -> Edit:
    """Set the places of a catalog's process or module: sources by id and folders. Its tools appear from then on."""
    catalog = _catalog(policy, catalog_id)
    if not catalog.module:
        _process(policy, catalog_id)
    elif PlaceUse.SNAPSHOT in places.values():
        raise EditRefused("a module may read or change a place, but not get a copy of it")
    named = ", ".join(f"`{place}` to {USE_WORDS[use]}" for place, use in places.items())
    label = f"give the server of `{catalog_id}` {named or 'no place'}"
    if len(label) > 120:
        label = f"give the server of `{catalog_id}` {len(places)} places"
    return Edit(label, (CatalogChange(catalog, replace(catalog, places=dict(places))),))


def confine(policy: Policy, catalog_id: str | None) -> Edit:
    """Confine a server, or (None) shell commands, in the kernel."""
    return _confine(policy, catalog_id, Confine.POLICY, "confine")


def unconfine(policy: Policy, catalog_id: str | None) -> Edit:
    """Give a server, or (None) shell commands, all rights of the user. Only for a person who has read the warning.

    Nothing else in the program writes ``confine = "none"``.
    """
    return _confine(policy, catalog_id, Confine.NONE, "no longer confine")


def _confine(policy: Policy, catalog_id: str | None, to: Confine, verb: str) -> Edit:
    if catalog_id is None:
        return Edit(f"{verb} shell commands", (FieldChange("shell", policy.shell, replace(policy.shell, confine=to)),))
    catalog = _process(policy, catalog_id)
    return Edit(f"{verb} the server of `{catalog_id}`", (CatalogChange(catalog, replace(catalog, confine=to)),))


def _process(policy: Policy, catalog_id: str) -> Catalog:
    catalog = _catalog(policy, catalog_id)
    if catalog.command is None:
        raise EditRefused(f"catalog `{catalog_id}` has no process of its own to confine")
    return catalog


def _check_new(policy: Policy, catalog_id: str) -> None:
    for catalog in policy.catalogs:
        if catalog.catalog_id.casefold() == catalog_id.casefold():
            raise EditRefused(f"a catalog `{catalog.catalog_id}` exists already")


def _catalog(policy: Policy, catalog_id: str) -> Catalog:
    catalog = policy.catalog(catalog_id)
    if catalog is None:
        raise EditRefused(f"no catalog `{catalog_id}`")
    return catalog
