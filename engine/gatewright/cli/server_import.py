"""``catalog import`` of one server: it is added to the policy, asked for its tools, and these are pinned."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gatewright.base.plural import plural
from gatewright.cli.exit import Exit, UsageProblem
from gatewright.cli.output import print_error, print_json, print_line
from gatewright.cli.place import place_words, runner_words
from gatewright.policy.document import Catalog, CatalogType, PlaceUse
from gatewright.tools.pin import Pin
from gatewright.workspace.pins import Waiting, mend, waiting

if TYPE_CHECKING:
    from gatewright.workspace import Workspace


def catalog_of(
    catalog_id: str,
    words: Sequence[str],
    url: str | None,
    *,
    prefix: str | None,
    env: Sequence[str],
    headers: Sequence[str],
    cwd: str | None,
    manifest: str = "",
    module: str = "",
) -> Catalog | None:
    """The catalog that the options define; None where they name one that is there. Raises UsageProblem.

    With a ``manifest`` its tools are run here: by a request for each call, a command or a ``module``.
    """
    if sum((bool(words), url is not None, bool(module))) > 1:
        raise UsageProblem("a server is either a command or a --url")
    if module and not manifest:
        raise UsageProblem("--module goes with --manifest, which defines its tools")
    if not words and url is None and not module:
        if prefix is not None or env or headers or cwd is not None or manifest:
            raise UsageProblem("which server? write `-- COMMAND ARGS...`, or --url")
        return None
    if headers and url is None:
        raise UsageProblem("--header is for a server with a --url")
    if not words and (env or cwd is not None):
        raise UsageProblem("--env and --cwd are for a server that is a command")
    by_manifest = CatalogType.WASM if module else CatalogType.SUBPROCESS if words else CatalogType.HTTP
    return Catalog(
        catalog_id,
        by_manifest if manifest else CatalogType.MCP,
        manifest,
        prefix=prefix,
        command=words[0] if words else None,
        args=tuple(words[1:]),
        env=tuple(env),
        cwd=cwd,
        url=url,
        headers_env=dict(map(_header, headers)),
        module=module,
    )


def http_catalog(catalog_id: str, url: str | None, headers: Sequence[str], prefix: str | None) -> Catalog:
    """The catalog of tools that are requests below ``url``. Raises UsageProblem."""
    return Catalog(catalog_id, CatalogType.HTTP, prefix=prefix, url=url, headers_env=dict(map(_header, headers)))


def import_server(
    workspace: Workspace,
    catalog_id: str,
    made: Catalog | None,
    *,
    trust: bool,
    accept: bool,
    scripts: bool,
    as_json: bool,
    places: Mapping[str, PlaceUse] | None = None,
) -> None:
    """Add ``made``, unless it is None, and ask the server; nothing is written where it does not answer.

    A definition that is not trusted is only added. ``places``: what its process gets; None: what its command names.
    """
    from gatewright.policy.policyedit import add_catalog, set_places

    there = workspace.policy.catalog(catalog_id)
    if made is not None and there is None:
        workspace.apply(add_catalog(workspace.policy, made))
    elif made and there and there != replace(made, places=there.places, confine=there.confine):
        hint = "leave the command out to ask that one again, or choose another --id"
        raise UsageProblem(f"there is a catalog `{catalog_id}` already, which is another server: {hint}")
    catalog = catalog_now(workspace, catalog_id)
    if places is None and catalog.waits_for_places and (there is None or trust):
        places = workspace.proposed_places(catalog)
    if places is not None:
        workspace.apply(set_places(workspace.policy, catalog_id, places))
        print_error(f"gatewright: {runner_words(catalog)} gets {place_words(places)}")
    if trust:
        workspace.trust_server(catalog_id)
    elif not workspace.trusts_server(catalog_id):
        workspace.save()
        if as_json:
            print_json({"catalog": catalog_id, "trusted": False, "command": catalog.runs})
        asked = "its tools were not imported" if catalog.manifest else "its server was not asked"
        print_error(f"gatewright: catalog `{catalog_id}` is in the policy; {asked}, since nothing is")
        print_error("started or reached before exactly this was trusted. Look at it, then say --trust:")
        print_error(f"  {catalog.runs}")
        raise typer.Exit(Exit.PROBLEMS)
    if catalog.kind is CatalogType.MCP:
        asyncio.run(workspace.servers.install(catalog_id, scripts=scripts, tell=tell_installation))
    pin = asyncio.run(workspace.catalog_tools.refresh(catalog_id))
    workspace.save()
    rows = waiting(pin, trusted=catalog_now(workspace, catalog_id).trusted)
    after = workspace.accept_tools(catalog_id, None, instructions=True, who="command line") if accept else pin
    if as_json:
        print_json(pin_json(catalog_id, after, rows, accepted=accept))
    else:
        print_pin(workspace, catalog_id, after, rows)


def tell_installation(words: str) -> None:
    """Say what becomes of a package."""
    print_error(f"gatewright: {words}")


def mend_lost_pin(policy: Path, catalog_id: str, *, trust: bool) -> bool:
    """A policy that names tools cannot be opened without their pin: where it is lost, the server is asked for it."""
    pin = asyncio.run(mend(policy, catalog_id, trust=trust))
    if pin is not None:
        print_error(f"gatewright: the pin of catalog `{catalog_id}` was made anew; none of its tools is accepted")
    return pin is not None


def catalog_now(workspace: Workspace, catalog_id: str) -> Catalog:
    """The catalog as the policy has it now. Raises UsageProblem."""
    found = workspace.policy.catalog(catalog_id)
    if found is None:
        raise UsageProblem(f"the policy has no catalog `{catalog_id}`: write `-- COMMAND ARGS...`, or --url")
    return found


def print_pin(workspace: Workspace, catalog_id: str, pin: Pin, rows: Sequence[Waiting]) -> None:
    """What a server listed, and what of it was accepted; ``rows``: what waited before."""
    listing = pin.listing
    state = workspace.servers.states.get(catalog_id)
    server = f"{listing.name} {listing.version}".strip() or ("the manifest" if state is None else "the server")
    print_line(f"{catalog_id}: {server} lists {plural(len(listing.tools), 'tool')}")
    for row in rows:
        counts = f"  {row.after.tier}" if row.after is not None else ""
        print_line(f"  {row.change:8}  {row.name}{counts}")
    for left in listing.left_out:
        print_line(f"  left out  {left.name or 'a tool'}: {left.message}")
    for note in state.notes if state is not None else ():
        print_error(f"gatewright: {note}")
    accepted = [row for row in rows if row.name not in pin.held]
    if accepted:
        print_line(f"{len(accepted):,} of them were accepted: agents that list them see them")
    waits = len(pin.drift.names)
    if waits:
        command = f"gatewright catalog accept {shlex.quote(str(workspace.policy_path))} {catalog_id}"
        print_line(f"{waits:,} of them are held until they are accepted: {command}")


def pin_json(catalog_id: str, pin: Pin, rows: Sequence[Waiting], *, accepted: bool) -> dict[str, object]:
    """The same for scripts."""
    listing = pin.listing
    return {
        "catalog": catalog_id,
        "trusted": True,
        "server": {"name": listing.name, "version": listing.version},
        "tools": list(listing.definitions),
        "changes": [
            {"tool": row.name, "change": row.change, "tier": str(row.after.tier) if row.after else None, "why": row.why}
            for row in rows
        ],
        "left_out": [{"tool": one.name, "reason": one.message} for one in listing.left_out],
        "accepted": accepted,
        "held": list(pin.held),
    }


def _header(text: str) -> tuple[str, str]:
    name, equals, variable = text.partition("=")
    if not (name and equals and variable):
        raise UsageProblem(f"--header `{text}`: say NAME=VARIABLE")
    return name, variable
