"""Edits of catalogs: added, changed, removed. What the policy says of their tools goes along."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from gatewright.base.errors import EditRefused
from gatewright.policy.document import Agent, Catalog, Policy
from gatewright.policy.edit import (
    AgentChange,
    CatalogChange,
    Change,
    Edit,
    FieldChange,
    ToolSettingsChange,
)
from gatewright.policy.policyrule import PolicyRule
from gatewright.policy.rule import ToolRule
from gatewright.policy.toolname import split_name
from gatewright.policy.verdict import Verdict


def add_catalog(policy: Policy, catalog: Catalog) -> Edit:
    """A new catalog, the last one; agents with a list of their tools get none of its."""
    return add_catalogs(policy, (catalog,))


def add_catalogs(policy: Policy, catalogs: Sequence[Catalog]) -> Edit:
    """Several new catalogs in one step, behind those there are."""
    for catalog in catalogs:
        _check_new(policy, catalog.catalog_id)
    named = ", ".join(f"`{catalog.catalog_id}`" for catalog in catalogs)
    label = f"add catalog{'s' if len(catalogs) > 1 else ''} {named}"
    return Edit(label, tuple(CatalogChange(None, catalog) for catalog in catalogs))


def remove_catalog(policy: Policy, catalog_id: str, tool_names: Iterable[str] = ()) -> Edit:
    """Take a catalog out of the policy, with what is said of ``tool_names``, the tools that it gives.

    The pin of a server stays on disk.
    """
    catalog = _catalog(policy, catalog_id)
    follow = tuple(_follow(policy, dict.fromkeys(tool_names)))
    return Edit(
        f"remove catalog `{catalog_id}`", (*follow, CatalogChange(catalog, None, policy.catalogs.index(catalog)))
    )


def change_catalog(policy: Policy, catalog_id: str, after: Catalog, renamed: Mapping[str, str] | None = None) -> Edit:
    """Other settings for a catalog, where it stands. ``renamed``: tools that thereby bear another name."""
    before = _catalog(policy, catalog_id)
    if after.catalog_id.casefold() != catalog_id.casefold():
        _check_new(policy, after.catalog_id)
    follow = tuple(_follow(policy, renamed or {}))
    return Edit(f"change catalog `{catalog_id}`", (CatalogChange(before, after), *follow))


def _follow(policy: Policy, renamed: Mapping[str, str | None]) -> Iterator[Change]:
    """What the policy says of tools by their bare names, under the new names; None: gone with the tool."""
    if not renamed:
        return
    for agent in policy.agents.values():
        after = _agent(agent, renamed)
        if after != agent:
            yield AgentChange(agent, after)
    approvals = _approvals(policy.defaults.approvals, renamed)
    if approvals != policy.defaults.approvals:
        yield FieldChange("defaults", policy.defaults, replace(policy.defaults, approvals=approvals))
    for name, settings in policy.tools.items():
        named = _name(name, renamed)
        if named != name:
            yield ToolSettingsChange(name, settings, None)
        if named is not None and named != name:
            yield ToolSettingsChange(named, None, settings)
    rules = tuple(_policy_rules(policy.rules, renamed))
    if rules != policy.rules:
        yield FieldChange("rules", policy.rules, rules)


def _agent(agent: Agent, renamed: Mapping[str, str | None]) -> Agent:
    return replace(
        agent,
        tools=None if agent.tools is None else _names(agent.tools, renamed),
        tool_rules=tuple(_tool_rules(agent.tool_rules, renamed)),
        approvals=_approvals(agent.approvals, renamed),
    )


def _tool_rules(rules: Iterable[ToolRule], renamed: Mapping[str, str | None]) -> Iterator[ToolRule]:
    for rule in rules:
        named = _name(rule.tool_name, renamed)
        if named is not None:
            yield rule if named == rule.tool_name else replace(rule, tool_name=named)


def _policy_rules(rules: Iterable[PolicyRule], renamed: Mapping[str, str | None]) -> Iterator[PolicyRule]:
    """Without those that were about tools that go, and nothing else: without a name they would be about all."""
    for rule in rules:
        tools = None if rule.tools is None else _names(rule.tools, renamed)
        if tools == rule.tools:
            yield rule
        elif tools:
            yield replace(rule, tools=tools)


def _approvals(approvals: Mapping[str, Verdict], renamed: Mapping[str, str | None]) -> dict[str, Verdict]:
    """Keys are a tier, ``tool`` or ``tool.operation``; the longest name that fits is meant."""
    kept: dict[str, Verdict] = {}
    for key, verdict in approvals.items():
        fitting = (name for name in renamed if key == name or key.startswith(f"{name}."))
        tool = max(fitting, key=len, default=None)
        named = None if tool is None else renamed[tool]
        if tool is None or named is not None:
            kept[key if tool is None else f"{named}{key[len(tool) :]}"] = verdict
    return kept


def _names(names: tuple[str, ...], renamed: Mapping[str, str | None]) -> tuple[str, ...]:
    return tuple(named for name in names if (named := _name(name, renamed)) is not None)


def _name(written: str, renamed: Mapping[str, str | None]) -> str | None:
    """``name`` or ``name@major`` under its new name."""
    name, major = split_name(written)
    if name not in renamed:
        return written
    named = renamed[name]
    return named if named is None or major is None else f"{named}@{major}"


def _check_new(policy: Policy, catalog_id: str) -> None:
    for catalog in policy.catalogs:
        if catalog.catalog_id.casefold() == catalog_id.casefold():
            raise EditRefused(f"a catalog is named `{catalog.catalog_id}` already")


def _catalog(policy: Policy, catalog_id: str) -> Catalog:
    catalog = policy.catalog(catalog_id)
    if catalog is None:
        raise EditRefused(f"no catalog `{catalog_id}`")
    return catalog
