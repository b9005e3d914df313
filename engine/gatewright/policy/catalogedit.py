"""Edits of catalogs: added, removed, and what the process of a server gets. What is said of their tools goes along."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gatewright.base.errors import EditRefused
from gatewright.policy.document import Catalog, Confine, PlaceUse, Policy
from gatewright.policy.edit import CatalogChange, Edit, FieldChange
from gatewright.policy.toolmention import follow_names

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
    follow = tuple(follow_names(policy, dict.fromkeys(tool_names)))
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


def _check_new(policy: Policy, catalog_id: str) -> None:
    for catalog in policy.catalogs:
        if catalog.catalog_id.casefold() == catalog_id.casefold():
            raise EditRefused(f"a catalog is named `{catalog.catalog_id}` already")


def _catalog(policy: Policy, catalog_id: str) -> Catalog:
    catalog = policy.catalog(catalog_id)
    if catalog is None:
        raise EditRefused(f"no catalog `{catalog_id}`")
    return catalog
