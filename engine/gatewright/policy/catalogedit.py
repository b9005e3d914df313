"""Edits of catalogs: added, removed, and what the process of a server gets. What is said of their tools goes along."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from gatewright.base.errors import EditRefused
from gatewright.policy.document import Catalog, Confine, PlaceUse, Policy
from gatewright.policy.edit import (
    AgentChange,
    CatalogChange,
    Change,
    Edit,
    FieldChange,
    ToolSettingsChange,
)
from gatewright.policy.policyrule import PolicyRule
from gatewright.policy.toolname import split_name
from gatewright.policy.verdict import Verdict

USE_WORDS = {PlaceUse.READ: "read", PlaceUse.WRITE: "change", PlaceUse.SNAPSHOT: "change in a copy"}


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
    follow = tuple(_without(policy, frozenset(tool_names)))
    return Edit(
        f"remove catalog `{catalog_id}`", (*follow, CatalogChange(catalog, None, policy.catalogs.index(catalog)))
    )


def set_places(policy: Policy, catalog_id: str, places: Mapping[str, PlaceUse]) -> Edit:
    """Set what the process or module of a catalog gets: sources by id and folders. Its tools are seen from then on."""
    catalog = _catalog(policy, catalog_id)
    if not catalog.module:
        _process(policy, catalog_id)
    elif PlaceUse.SNAPSHOT in places.values():
        raise EditRefused("a module gets a place to read or to change, never as a copy")
    named = ", ".join(f"`{place}` to {USE_WORDS[use]}" for place, use in places.items())
    label = f"give the server of `{catalog_id}` {named or 'no place'}"
    if len(label) > 120:
        label = f"give the server of `{catalog_id}` {len(places)} places"
    return Edit(label, (CatalogChange(catalog, replace(catalog, places=dict(places))),))


def confine(policy: Policy, catalog_id: str | None) -> Edit:
    """Have the policy hold in the kernel for a server, or (None) for shell commands."""
    return _confine(policy, catalog_id, Confine.POLICY, "confine")


def unconfine(policy: Policy, catalog_id: str | None) -> Edit:
    """Let a server, or (None) shell commands, do all that the user may. For a person who was told what that gives away.

    Nothing else of ours writes it.
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
        raise EditRefused(f"no process of its own serves catalog `{catalog_id}`: there is nothing to confine")
    return catalog


def _without(policy: Policy, gone: frozenset[str]) -> Iterator[Change]:
    """What the policy says of tools, by their bare names, goes with them."""
    for agent in policy.agents.values():
        after = replace(
            agent,
            tools=None if agent.tools is None else _others(agent.tools, gone),
            tool_rules=tuple(rule for rule in agent.tool_rules if split_name(rule.tool_name)[0] not in gone),
            approvals=_approvals(agent.approvals, gone),
        )
        if after != agent:
            yield AgentChange(agent, after)
    approvals = _approvals(policy.defaults.approvals, gone)
    if approvals != policy.defaults.approvals:
        yield FieldChange("defaults", policy.defaults, replace(policy.defaults, approvals=approvals))
    for name, settings in policy.tools.items():
        if split_name(name)[0] in gone:
            yield ToolSettingsChange(name, settings, None)
    rules = tuple(_policy_rules(policy.rules, gone))
    if rules != policy.rules:
        yield FieldChange("rules", policy.rules, rules)


def _policy_rules(rules: Iterable[PolicyRule], gone: frozenset[str]) -> Iterator[PolicyRule]:
    """Without those that were about tools that go, and nothing else: without a name they would be about all."""
    for rule in rules:
        tools = None if rule.tools is None else _others(rule.tools, gone)
        if tools == rule.tools:
            yield rule
        elif tools:
            yield replace(rule, tools=tools)


def _approvals(approvals: Mapping[str, Verdict], gone: frozenset[str]) -> dict[str, Verdict]:
    """Keys are a tier, ``tool`` or ``tool.operation``."""
    return {
        key: verdict
        for key, verdict in approvals.items()
        if not any(key == name or key.startswith(f"{name}.") for name in gone)
    }


def _others(names: tuple[str, ...], gone: frozenset[str]) -> tuple[str, ...]:
    return tuple(name for name in names if split_name(name)[0] not in gone)


def _check_new(policy: Policy, catalog_id: str) -> None:
    for catalog in policy.catalogs:
        if catalog.catalog_id.casefold() == catalog_id.casefold():
            raise EditRefused(f"a catalog is named `{catalog.catalog_id}` already")


def _catalog(policy: Policy, catalog_id: str) -> Catalog:
    catalog = policy.catalog(catalog_id)
    if catalog is None:
        raise EditRefused(f"no catalog `{catalog_id}`")
    return catalog
