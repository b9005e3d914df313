"""``catalog import --from``: the servers of a client's configuration are added and shown, trusted and asked at once."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gatewright.base.errors import GatewrightError
from gatewright.base.problem import near_hint
from gatewright.cli.exit import Exit, UsageProblem
from gatewright.cli.output import decode, print_error, print_json, print_line, read_content
from gatewright.cli.place import place_words
from gatewright.cli.server_import import catalog_now, pin_json, print_pin, tell_installation
from gatewright.tools.pin import Pin
from gatewright.workspace.client_file import ClientServer, import_servers, read_client_file, read_servers_of
from gatewright.workspace.pins import waiting

if TYPE_CHECKING:
    from gatewright.workspace import Workspace


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
    """Add the servers in ``file`` (``-``: stdin), print what each would run; with ``trust`` then ask them all at once.

    A server that fails is told and leaves the others alone. The exit code is 1 where one fails or makes no catalog.
    """
    found = read_servers_of(decode(read_content(file), "stdin")) if file == "-" else read_client_file(Path(file))
    chosen = _chosen(found, only)
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
        again = f"gatewright catalog import {_quoted(workspace)} --from {shlex.quote(file)} --trust"
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
    """Ask the servers and print what they list; the same for scripts by their ids, or why one ``failed``."""
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
            again = f"gatewright catalog import {_quoted(workspace)} --id {catalog_id}"
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
    """What is trusted, for scripts."""
    catalog = catalog_now(workspace, catalog_id)
    env = [*catalog.env, *catalog.headers_env.values()]
    digest, trusted = workspace.server_digest(catalog_id), workspace.trusts_server(catalog_id)
    places = None if catalog.places is None else {place: str(use) for place, use in catalog.places.items()}
    said = {"catalog": catalog_id, "runs": catalog.runs, "places": places, "env": env}
    return {**said, "digest": digest, "trusted": trusted}


def _quoted(workspace: Workspace) -> str:
    return shlex.quote(str(workspace.policy_path))


def _chosen(found: tuple[ClientServer, ...], only: Sequence[str]) -> tuple[ClientServer, ...]:
    names = [server.server_id for server in found]
    for name in only:
        if name not in names:
            raise UsageProblem(f"no server `{name}` there{near_hint(name, names)}")
    return tuple(server for server in found if (server.server_id in only if only else not server.is_disabled))
