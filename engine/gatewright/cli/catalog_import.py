"""``catalog import``: adds one server, those of a client's configuration, an OpenAPI document, or a manifest."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import typer

from gatewright.base.amount import plural
from gatewright.base.errors import GatewrightError, near_hint
from gatewright.base.printable import printable
from gatewright.cli.confinement import place_words, runner_words
from gatewright.cli.output import Exit, UsageProblem, decode, print_error, print_json, print_line, read_content
from gatewright.policy.document import Catalog, CatalogType, PlaceUse
from gatewright.policy.policyedit import add_catalog, set_places
from gatewright.tools.pin import Pin
from gatewright.workspace import Workspace
from gatewright.workspace.client_file import ClientServer, import_servers, read_client_file, read_servers_of
from gatewright.workspace.pins import Waiting, mend, waiting
from gatewright.workspace.toolfile import catalog_of_file, place_manifest, read_tool_file


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
    """Return the catalog that the options define; None if they name an existing one. Raises UsageProblem.

    With a ``manifest`` its tools run here: by a request for each call, a command or a ``module``.
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
    """Return the catalog of tools that are requests below ``url``. Raises UsageProblem."""
    return Catalog(catalog_id, CatalogType.HTTP, prefix=prefix, url=url, headers_env=dict(map(_header, headers)))


def import_host(workspace: Workspace, host_id: str, *, as_json: bool) -> None:
    """Add a coding agent's built-in tools, or renew their definitions, and print what changed."""
    changed = workspace.add_host_tools(host_id)
    if as_json:
        print_json({"catalog": host_id, "changed": list(changed)})
        return
    print_line(f"{host_id}: {plural(len(changed), 'tool')} new or changed")
    for name in changed:
        print_line(f"  {name}")


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
    """Add ``made``, unless it is None, and ask the server; if that does not answer, nothing is written.

    A definition that nobody trusts is only added. ``places``: what its process gets; None: what its command names.
    """
    there = workspace.policy.catalog(catalog_id)
    if made is not None and there is None:
        workspace.apply(add_catalog(workspace.policy, made))
    elif made and there and there != replace(made, places=there.places, confine=there.confine):
        hint = "leave the command out to ask that one again, or choose another --id"
        raise UsageProblem(f"another server's catalog is called `{catalog_id}` already: {hint}")
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
    """Report the progress of a package."""
    print_error(f"gatewright: {words}")


def mend_lost_pin(policy: Path, catalog_id: str, *, trust: bool) -> bool:
    """Ask the server for a lost pin, without which a policy that names its tools cannot open."""
    pin = asyncio.run(mend(policy, catalog_id, trust=trust))
    if pin is not None:
        print_error(f"gatewright: the pin of catalog `{catalog_id}` was made anew; none of its tools is accepted")
    return pin is not None


def catalog_now(workspace: Workspace, catalog_id: str) -> Catalog:
    """Return the catalog in the present policy. Raises UsageProblem."""
    found = workspace.policy.catalog(catalog_id)
    if found is None:
        raise UsageProblem(f"the policy has no catalog `{catalog_id}`: write `-- COMMAND ARGS...`, or --url")
    return found


def print_pin(workspace: Workspace, catalog_id: str, pin: Pin, rows: Sequence[Waiting]) -> None:
    """Print a server's listed and accepted tools; ``rows``: the tools that waited before."""
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
    """Print the same for scripts."""
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


def import_client_servers(
    workspace: Workspace,
    file: str,
    only: Sequence[str],
    *,
    trust: bool,
    accept: bool,
    scripts: bool,
    as_json: bool,
) -> None:
    """Add the servers in ``file`` (``-``: stdin), and print what each would run; with ``trust``, ask all of them at
    once.

    A server that fails is reported and does not affect the others. The exit code is 1 if one fails or makes no catalog.
    """
    found = read_servers_of(decode(read_content(file), "stdin")) if file == "-" else read_client_file(Path(file))
    chosen = _choose(found, only)
    result = import_servers(workspace.policy, chosen, workspace.proposed_places)
    if result.edit is not None:
        workspace.apply(result.edit)
        workspace.save()
    off = {server.server_id: "switched off in the client" for server in found if server not in chosen}
    reasons = {**off, **result.reasons}
    ids = {**result.there, **result.ids} if trust else result.ids
    for server in () if as_json else found:
        _print_server(workspace, server, ids.get(server.server_id), reasons.get(server.server_id))
    answers: dict[str, dict[str, object]] = {}
    if trust:
        for server in chosen:
            if server.server_id in ids:
                workspace.trust_server(ids[server.server_id])
                workspace.servers.lend(ids[server.server_id], server.values)
        answers = _ask(workspace, tuple(ids.values()), accept=accept, scripts=scripts, as_json=as_json)
    elif ids:
        again = f"gatewright catalog import {_quote(workspace)} --from {shlex.quote(file)} --trust"
        print_error(f"gatewright: nothing was started; `{again}` trusts and asks all of them")
    if as_json:
        print_json(
            [
                {
                    "server": server.server_id,
                    "catalog": None,
                    "added": server.server_id in result.ids,
                    "reason": reasons.get(server.server_id),
                    "notes": list(server.notes),
                    **(_definition(workspace, ids[server.server_id]) if server.server_id in ids else {}),
                    **answers.get(ids.get(server.server_id, ""), {}),
                }
                for server in found
            ]
        )
    failed = any("failed" in answer for answer in answers.values())
    if failed or any(server.catalog is None for server in chosen):
        raise typer.Exit(Exit.PROBLEMS)


def _ask(
    workspace: Workspace, ids: tuple[str, ...], *, accept: bool, scripts: bool, as_json: bool
) -> dict[str, dict[str, object]]:
    """Ask the servers and print their lists; for scripts by id, or the reason for a failure under ``failed``."""
    answers: dict[str, dict[str, object]] = {}
    for catalog_id, asked in zip(ids, asyncio.run(_pins(workspace, ids, scripts=scripts)), strict=True):
        try:
            if isinstance(asked, GatewrightError):
                raise asked
            rows = waiting(asked, trusted=catalog_now(workspace, catalog_id).trusted)
            pin = asked
            if accept:
                pin = workspace.accept_tools(catalog_id, None, instructions=True, who="command line")
        except GatewrightError as error:
            again = f"gatewright catalog import {_quote(workspace)} --id {catalog_id}"
            print_error(f"gatewright: `{catalog_id}`: {error}; `{again}` asks it again")
            answers[catalog_id] = {"failed": str(error)}
            continue
        answers[catalog_id] = {"answer": pin_json(catalog_id, pin, rows, accepted=accept)}
        if not as_json:
            print_pin(workspace, catalog_id, pin, rows)
    return answers


async def _pins(workspace: Workspace, ids: Iterable[str], *, scripts: bool) -> list[Pin | GatewrightError]:
    async def ask(catalog_id: str) -> Pin | GatewrightError:
        try:
            await workspace.servers.install(catalog_id, scripts=scripts, tell=tell_installation)
            return await workspace.servers.refresh(catalog_id)
        except GatewrightError as error:
            return error

    return await asyncio.gather(*(ask(catalog_id) for catalog_id in ids))


def _print_server(workspace: Workspace, server: ClientServer, catalog_id: str | None, reason: str | None) -> None:
    print_line(f"{server.server_id}: " + (f"added as `{catalog_id}`" if reason is None else f"not added: {reason}"))
    if catalog_id is None:
        return
    catalog = catalog_now(workspace, catalog_id)
    variables = ", ".join((*catalog.env, *catalog.headers_env.values()))
    gets = "" if catalog.places is None else place_words(catalog.places)
    digest = workspace.server_digest(catalog_id)
    told = (("runs", catalog.runs), ("places", gets), ("variables", variables), ("digest", digest))
    for name, words in told:
        if words:
            print_line(f"  {name:<9}  {words}")
    for note in server.notes:
        print_line(f"  {note}")


def _definition(workspace: Workspace, catalog_id: str) -> dict[str, object]:
    """Return the definition to trust, for scripts."""
    catalog = catalog_now(workspace, catalog_id)
    env = [*catalog.env, *catalog.headers_env.values()]
    digest, trusted = workspace.server_digest(catalog_id), workspace.trusts_server(catalog_id)
    places = None if catalog.places is None else {place: str(use) for place, use in catalog.places.items()}
    said = {"catalog": catalog_id, "runs": catalog.runs, "places": places, "env": env}
    return {**said, "digest": digest, "trusted": trusted}


def _quote(workspace: Workspace) -> str:
    return shlex.quote(str(workspace.policy_path))


def _choose(found: tuple[ClientServer, ...], only: Sequence[str]) -> tuple[ClientServer, ...]:
    names = [server.server_id for server in found]
    for name in only:
        if name not in names:
            raise UsageProblem(f"no server `{name}` there{near_hint(name, names)}")
    return tuple(server for server in found if (server.server_id in only if only else not server.is_disabled))


_SHOWN = 20


def import_openapi(workspace: Workspace, file: str, made: Catalog, *, trust: bool, accept: bool, as_json: bool) -> None:
    """Write the manifest of the document in ``file`` (``-``: stdin), and add or refresh its catalog.

    ``made``: the catalog from the options; if they name no address or headers, those of the document count. Raises
    UsageProblem, WorkspaceError for a document that cannot be read.
    """
    found = read_tool_file(read_content(file))
    if not found.is_document:
        raise UsageProblem("it is a manifest, not an OpenAPI document: --manifest adds one")
    for fault in found.faults[:_SHOWN]:
        print_error(f"gatewright: left out: {printable(fault.message)}, at {printable(fault.pointer)}")
    if found.left_out > _SHOWN:
        print_error(f"gatewright: and {found.left_out - _SHOWN:,} more that are left out")
    catalog = catalog_of_file(workspace.policy, found, made, workspace.folder)
    place_manifest(found, catalog, workspace.folder)
    print_error(f"gatewright: `{catalog.manifest}` has {found.words}, which are sent to {catalog.url}")
    for header, variable in catalog.headers_env.items():
        what = " (all of it, such as `name=value`)" if header.lower() == "cookie" else ""
        print_error(f"gatewright: the header `{header}` is the value of the environment variable `{variable}`{what}")
    for name, variable in catalog.query_env.items():
        print_error(f"gatewright: `{name}` of each query is the value of the environment variable `{variable}`")
    import_server(workspace, catalog.catalog_id, catalog, trust=trust, accept=accept, scripts=False, as_json=as_json)
