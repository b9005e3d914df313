"""Edits of what all agents share: rules, catalogs, fields such as the roots, and the names of tools everywhere.

Removing a catalog removes the mentions of its tools.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from gatewright.base.errors import EditRefused
from gatewright.policy.document import Agent, Catalog, Confine, PlaceUse, Policy
from gatewright.policy.edit import (
    AgentChange,
    CatalogChange,
    Change,
    Edit,
    Field,
    FieldChange,
    SourceChange,
    ToolSettingsChange,
    move_rows,
)
from gatewright.policy.rule import OPERATION_CONDITION, ExclusiveGroups, PolicyRule, ToolRule
from gatewright.policy.verdict import Verdict, selected_catalog, selector_of, split_name

Names = Mapping[str, str | None]
"""The new name of each tool by its bare name; None for a removed tool."""


def follow_names(policy: Policy, names: Names, others: Collection[str] = ()) -> Iterator[Change]:
    """The changes for renamed or removed tools (or ``catalog:ID``), everywhere but in compositions.

    Mentions of a removed tool are removed too, except in rules on other tools, which then fail the check. ``others``:
    the names of other tools: where a name may end with an operation, the longest tool name counts.
    """
    known = (*names, *others)
    for agent in policy.agents.values():
        after = _agent(agent, names, known)
        if after != agent:
            yield AgentChange(agent, after)
    for source in policy.sources:
        required = tuple(_rule_with_names(rule, names, known) for rule in source.required_tools)
        if required != source.required_tools:
            yield SourceChange(source, replace(source, required_tools=required))
    approvals = _approvals(policy.defaults.approvals, names, known)
    if approvals != policy.defaults.approvals:
        yield FieldChange("defaults", policy.defaults, replace(policy.defaults, approvals=approvals))
    for name, settings in policy.tools.items():
        new = _new_names((name,), names)
        if new != (name,):
            yield ToolSettingsChange(name, settings, None)
            yield from (ToolSettingsChange(one, None, settings) for one in new)
    rules = tuple(_policy_rules(policy.rules, names))
    if rules != policy.rules:
        yield FieldChange("rules", policy.rules, rules)


def _agent(agent: Agent, names: Names, known: Collection[str]) -> Agent:
    rules = [rule for rule in agent.tool_rules if names.get(split_name(rule.tool_name)[0], "") is not None]
    return replace(
        agent,
        tools=None if agent.tools is None else _new_names(agent.tools, names),
        tool_rules=tuple(_rule_with_names(rule, names, known) for rule in rules),
        approvals=_approvals(agent.approvals, names, known),
    )


def _rule_with_names(rule: ToolRule, names: Names, known: Collection[str]) -> ToolRule:
    """The rule with the new names of tools; the same object if it mentions none."""
    (tool_name,) = _new_names((rule.tool_name,), names) or (rule.tool_name,)
    conditions = tuple(_new_key(text, names, known) or text for text in rule.conditions)
    kind = rule.rule_type
    if isinstance(kind, ExclusiveGroups):
        groups = tuple(tuple(_new_key(name, names, known) or name for name in group) for group in kind.groups)
        kind = kind if groups == kind.groups else replace(kind, groups=groups)
    after = replace(rule, tool_name=tool_name, conditions=conditions, rule_type=kind)
    return rule if after == rule else after


def _policy_rules(rules: Iterable[PolicyRule], names: Names) -> Iterator[PolicyRule]:
    """Drop rules whose tools are all gone: without a name they would hold for all tools."""
    for rule in rules:
        tools = None if rule.tools is None else _new_names(rule.tools, names)
        if tools == rule.tools:
            yield rule
        elif tools:
            yield replace(rule, tools=tools)


def _approvals(approvals: Mapping[str, Verdict], names: Names, known: Collection[str]) -> dict[str, Verdict]:
    """Rename the tools in ``approvals``, whose keys are a tier, ``tool`` or ``tool.operation``."""
    found = ((_new_key(key, names, known), verdict) for key, verdict in approvals.items())
    return {key: verdict for key, verdict in found if key is not None}


def _new_names(written: tuple[str, ...], names: Names) -> tuple[str, ...]:
    """The new names in place of the written ones, without removed tools; ``name@major`` keeps its major."""
    found: list[str] = []
    for one in written:
        bare, _ = split_name(one)
        new = names.get(bare, bare)
        if new is not None:
            found.append(new + one[len(bare) :])
    return tuple(found)


def _new_key(written: str, names: Names, known: Collection[str]) -> str | None:
    """The new form of a name that may end with an operation behind a dot; a condition on operations stays."""
    if written.startswith(OPERATION_CONDITION):
        return written
    if selected_catalog(written) is not None:
        return names.get(written, written)
    heads = [name for name in known if written == name or written.startswith((f"{name}.", f"{name}@"))]
    head = max(heads, key=len, default="")
    if head not in names:
        return written
    new = names[head]
    return None if new is None else new + written[len(head) :]


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
    """Replace the rule at ``index``, or append it if that is None."""
    return add_rule(policy, rule) if index is None else change_rule(policy, index, rule)


def move_rules(policy: Policy, indexes: Iterable[int], to: int) -> Edit:
    """Move rules, in their order, so that the first gets the place ``to`` and the others follow."""
    chosen = {index: _rule(policy, index) for index in indexes}
    return _edit(f"move {_rules_in_words(chosen.values())}", policy, move_rows(policy.rules, chosen, to))


def remove_rules(policy: Policy, indexes: Iterable[int]) -> Edit:
    """Remove rules in one edit."""
    gone = {index: _rule(policy, index) for index in indexes}
    rest = tuple(rule for index, rule in enumerate(policy.rules) if index not in gone)
    return _edit(f"remove {_rules_in_words(gone.values())}", policy, rest)


def set_field(policy: Policy, field: Field, after: object) -> Edit:
    """Set a field of the policy; the name of the edit says the difference, e.g. ``set `roots.shared` to `files```."""
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
    """Remove a catalog and the mentions of it and of ``tool_names``, its tools; the pin of a server stays on disk."""
    catalog = _catalog(policy, catalog_id)
    follow = tuple(follow_names(policy, dict.fromkeys((*tool_names, selector_of(catalog_id)))))
    return Edit(
        f"remove catalog `{catalog_id}`", (*follow, CatalogChange(catalog, None, policy.catalogs.index(catalog)))
    )


def set_places(policy: Policy, catalog_id: str, places: Mapping[str, PlaceUse]) -> Edit:
    """Set the places of a catalog's process or module: sources by id and folders. From then on its tools appear."""
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
