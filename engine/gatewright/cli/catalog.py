"""``catalog``: the servers and tools of others in a policy: imports, lists and accepts them.

It has more than 450 lines because each command states all of its options here, where the help takes them from.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from gatewright.base.amount import plural
from gatewright.base.errors import PolicyInvalid, near_hint
from gatewright.base.frozen import frozen
from gatewright.cli.confinement import PlaceOption, places_of
from gatewright.cli.output import (
    AgentOption,
    JsonOption,
    PolicyArgument,
    StateOption,
    UsageProblem,
    print_error,
    print_json,
    print_line,
    print_passage,
    require_agent,
    user_name,
)
from gatewright.policy.document import Catalog, CatalogType
from gatewright.policy.verdict import SafetyTier
from gatewright.tools.pin import Acceptance, Pin
from gatewright.workspace import Workspace
from gatewright.workspace.pins import CatalogState, Waiting, text_difference, waiting

ClientOption = Annotated[
    str,
    typer.Option("--client", metavar="NAME", help="claude-desktop, claude-code, vscode, codex, ... (docs/gateway.md)"),
]


def import_(
    policy: PolicyArgument,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND ARGS...", help="what starts the server")
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("--from", metavar="FILE", help="the configuration file of an MCP client, or `-` for stdin"),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="NAME", help="of --from this server alone; more than once for several"),
    ] = None,
    catalog_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="the server's catalog, one that is there or a new one")
    ] = None,
    url: Annotated[str | None, typer.Option("--url", metavar="URL", help="where the server is, over HTTP")] = None,
    prefix: Annotated[
        str | None, typer.Option("--prefix", metavar="P", help="its tools are named P.NAME in the policy")
    ] = None,
    env: Annotated[
        list[str] | None, typer.Option("--env", metavar="NAME", help="a variable that the server gets")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", metavar="NAME=VARIABLE", help="a header, and the variable it is in")
    ] = None,
    cwd: Annotated[str | None, typer.Option("--cwd", metavar="DIR", help="where the server runs")] = None,
    manifest: Annotated[
        str | None,
        typer.Option("--manifest", metavar="FILE", help="the tools' definitions; COMMAND, --url or --module runs them"),
    ] = None,
    module: Annotated[
        str | None, typer.Option("--module", metavar="FILE", help="the WASM module that runs the tools of --manifest")
    ] = None,
    openapi: Annotated[
        str | None,
        typer.Option("--openapi", metavar="FILE", help="an OpenAPI 3 document, or `-`: its operations become tools"),
    ] = None,
    place: PlaceOption = None,
    host: Annotated[
        str | None, typer.Option("--host", metavar="HOST", help="a coding agent: its built-in tools become a catalog")
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="start, or reach, exactly this server (of --from: all) from now on")
    ] = False,
    accept: Annotated[bool, typer.Option("--accept", help="with --trust: accept all tools as proposed")] = False,
    scripts: Annotated[
        bool, typer.Option("--install-scripts", help="with --trust: packages may run code of their own to be installed")
    ] = False,
    json: JsonOption = False,
    state: StateOption = None,
) -> None:
    """Add a server to the policy and pin its tools; or add those of a client's configuration (--from).

    Its process gets the folders and files that its command names, or what --place says. With --id alone the server of
    that catalog is asked again. Without --trust nothing is started. Of --from no value of a variable gets into the
    policy, and what the client has switched off is left out unless --only names it.
    """
    if host is not None:
        if any((words, file, only, catalog_id, url, prefix, env, header, cwd, manifest, module, openapi, place)):
            raise UsageProblem("--host goes with no other server: write it alone")
        from gatewright.cli.catalog_import import import_host

        with Workspace.open(policy, state=state) as workspace:
            import_host(workspace, host, as_json=json)
        return
    if openapi is not None:
        from gatewright.cli.catalog_import import http_catalog, import_openapi

        if catalog_id is None or words or only or env or place or scripts or cwd or module or manifest or file:
            raise UsageProblem("--openapi goes with --id, --url, --header, --prefix, --trust and --accept")
        wanted = http_catalog(catalog_id, url, header or (), prefix)
        with Workspace.open(policy, state=state) as workspace:
            import_openapi(workspace, openapi, wanted, trust=trust, accept=accept, as_json=json)
        return
    if file is None:
        from gatewright.cli.catalog_import import catalog_of, import_server, mend_lost_pin

        if catalog_id is None or only:
            raise UsageProblem("say --id ID and `-- COMMAND ARGS...` (or --url), or --from FILE")
        made = catalog_of(
            catalog_id,
            words or (),
            url,
            prefix=prefix,
            env=env or (),
            headers=header or (),
            cwd=cwd,
            manifest=manifest or "",
            module=module or "",
        )
        try:
            workspace = Workspace.open(policy, state=state)
        except PolicyInvalid:
            if made is not None or not mend_lost_pin(policy, catalog_id, trust=trust):
                raise
            workspace = Workspace.open(policy, state=state)
        with workspace:
            given = None if place is None else places_of(place)
            import_server(
                workspace,
                catalog_id,
                made,
                trust=trust,
                accept=accept,
                scripts=scripts,
                as_json=json,
                places=given,
            )
        return
    named = (catalog_id, url, prefix, cwd, manifest, module)
    if words or any(given is not None for given in named) or env or header or place:
        raise UsageProblem(
            "--from takes the servers as they stand in the file: --only, --trust and --accept go with it"
        )
    from gatewright.cli.catalog_import import import_client_servers

    with Workspace.open(policy, state=state) as workspace:
        import_client_servers(workspace, file, only or (), trust=trust, accept=accept, scripts=scripts, as_json=json)


def client_config(
    policy: PolicyArgument,
    client: ClientOption,
    agent: AgentOption,
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FILE", help="change this file; a backup is kept beside it")
    ] = None,
    json: JsonOption = False,
    state: StateOption = None,
) -> None:
    """Show what a client's configuration becomes with the gateway in the place of the policy's servers.

    Without --write nothing is changed, and the user's own file of the client is what is compared.
    """
    from gatewright.workspace.client_file import client_file, gateway_edit, write_client_file

    with Workspace.open(policy, state=state) as workspace:
        agent_id = require_agent(workspace, agent)
        change = gateway_edit(client_file(client, write), workspace.policy.catalogs, workspace.policy_path, agent_id)
    backup = write_client_file(change) if write is not None and change.edit.difference else None
    edit = change.edit
    if json:
        print_json(
            {
                "file": str(change.file.path),
                "entry": edit.entry,
                "difference": edit.difference,
                "replaced": list(edit.replaced),
                "direct": dict(edit.direct),
                "handed": list(edit.handed),
                "written": write is not None and bool(edit.difference),
                "backup": str(backup) if backup else None,
            }
        )
        return
    for line in edit.difference.splitlines():
        print_line(line)
    told = "it is so already" if not edit.difference else "written" if write is not None else "nothing is written"
    print_error(f"gatewright: {change.file.path}: {told}" + (f", as it was: {backup}" if backup else ""))
    for name, why in edit.direct.items():
        print_error(f"gatewright: `{name}` is still reached directly: {why}")


_TIERS = {str(tier).replace("_", ""): tier for tier in SafetyTier}


def list_(policy: PolicyArgument, json: JsonOption = False, state: StateOption = None) -> None:
    """Print each catalog: what it is, whether its server is trusted, which of its tools are held and why."""
    with Workspace.open(policy, state=state) as workspace:
        states = workspace.catalog_states()
    if json:
        print_json([_state_json(one) for one in states])
        return
    for one in states:
        catalog, pin = one.catalog, one.pin
        trust = "" if one.is_trusted is None else ", trusted" if one.is_trusted else ", not trusted"
        print_line(f"{catalog.catalog_id}  {catalog.kind}{trust}: {catalog.runs or catalog.manifest}")
        open_count = len(one.tool_names) - len(one.held)
        drifted: list[str] = []
        if pin is not None:
            rows = (("new", pin.drift.new), ("changed", pin.drift.changed), ("vanished", pin.drift.vanished))
            drifted = [f"{len(names):,} {what} ({', '.join(names)})" for what, names in rows if names]
            drifted += ["other instructions"] if pin.drift.instructions else []
        drift = ": " + ", ".join(drifted) if drifted else ""
        print_line(f"  {plural(open_count, 'tool')}, {len(one.held):,} held{drift}")
        if pin is not None:
            server = f"{pin.listing.name} {pin.listing.version}".strip()
            print_line(f"  digest {pin.digest}" + (f", server {server}" if server else ""))
        elif one.is_trusted is not None:
            print_line("  its tools were never imported")
    if not states:
        print_line("the policy has no catalogs")


def accept(
    policy: PolicyArgument,
    catalog_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="the catalog; none: all of them")] = None,
    names: Annotated[list[str] | None, typer.Argument(metavar="[TOOL]...", help="the tools; none: only show")] = None,
    all_: Annotated[bool, typer.Option("--all", help="all that waits, the server's instructions too")] = False,
    tiers: Annotated[
        list[str] | None,
        typer.Option("--tier", metavar="TOOL[.OPERATION]=TIER", help="read_only, side_effecting or privileged"),
    ] = None,
    no_capabilities: Annotated[
        bool, typer.Option("--no-capabilities", help="new tools need no capability, whatever they touch")
    ] = False,
    instructions: Annotated[bool, typer.Option("--instructions", help="the server's instructions too")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="of new tools too all that they say")] = False,
    json: JsonOption = False,
    state: StateOption = None,
) -> None:
    """Show what of a server's tools waits to be accepted, with what changed; accept those that are named, or --all."""
    if catalog_id is None and (tiers or instructions):
        raise UsageProblem("say of which catalog: --tier and --instructions go with an ID")
    with Workspace.open(policy, state=state) as workspace:
        chosen = None if catalog_id is None else workspace.policy.catalog(catalog_id)
        if chosen is not None and chosen.kind is CatalogType.HOST:
            _accept_of_host(workspace, chosen.catalog_id, names or (), as_json=json)
            return
        pinned = (state.catalog.catalog_id for state in workspace.catalog_states() if state.pin is not None)
        chosen = pinned if catalog_id is None else (catalog_id,)
        asked = _Asked(all_, tuple(names or ()), tuple(tiers or ()), instructions or all_, not no_capabilities)
        found = [_accept_one(workspace, policy, one, asked) for one in chosen]
    if json:
        rows = [_accept_json(one, rows, before, after) for one, rows, before, after in found]
        print_json(rows if catalog_id is None else rows[0])
        return
    for one, rows, before, after in found:
        _print_accept(one, rows, before, after, all_=all_, acts=asked.acts, verbose=verbose)
    if not found:
        print_line("the tools of no server were ever imported")


def _accept_of_host(workspace: Workspace, catalog_id: str, names: Sequence[str], *, as_json: bool) -> None:
    """Accept tools of a program by name: its calls alone tell of those that its definitions lack."""
    if not names:
        raise UsageProblem(f"`{catalog_id}` lists no tools: name those to accept, as a denial in the log does")
    accepted = workspace.accept_host_tools(catalog_id, names, who=user_name())
    if as_json:
        print_json({"catalog": catalog_id, "accepted": list(accepted)})
    else:
        print_line(f"accepted of catalog `{catalog_id}`, with any arguments: {', '.join(accepted)}")


@frozen
class _Asked:
    """The options of ``accept``, for each catalog."""

    everything: bool
    names: tuple[str, ...]
    tiers: tuple[str, ...]
    instructions: bool
    needs_capabilities: bool

    @property
    def acts(self) -> bool:
        """Tell whether to accept anything, and not only show it."""
        return bool(self.everything or self.names or self.tiers or self.instructions)


def _accept_one(
    workspace: Workspace, policy: Path, catalog_id: str, asked: _Asked
) -> tuple[str, tuple[Waiting, ...], Pin, Pin]:
    """The id, the waiting tools, the pin before and after."""
    pin, catalog = workspace.pin(catalog_id), workspace.policy.catalog(catalog_id)
    if pin is None or catalog is None:
        hint = f"`gatewright catalog import {policy} --id {catalog_id}` asks its server"
        raise UsageProblem(f"the tools of catalog `{catalog_id}` were never imported: {hint}")
    rows = waiting(pin, trusted=catalog.trusted, needs_capabilities=asked.needs_capabilities)
    names = None if asked.everything else tuple(_name_on_server(name, catalog, pin) for name in asked.names)
    given = dict(_tier(text, catalog, pin) for text in asked.tiers)
    if not asked.acts:
        return catalog_id, rows, pin, pin
    after = workspace.accept_tools(
        catalog_id,
        names,
        tiers=given,
        needs_capabilities=asked.needs_capabilities,
        instructions=asked.instructions,
        who=user_name(),
    )
    return catalog_id, rows, pin, after


def _name_on_server(name: str, catalog: Catalog, pin: Pin) -> str:
    """Return the server's name of a tool, given that name or the policy's."""
    known = {*pin.listing.definitions, *pin.accepted}
    bare = name.removeprefix(f"{catalog.prefix or catalog.catalog_id}.")
    found = next((one for one in (name, bare) if one in known), None)
    if found is None:
        near = near_hint(bare, sorted(known))
        raise UsageProblem(f"the server of catalog `{catalog.catalog_id}` lists no tool `{name}`{near}")
    return found


def _tier(text: str, catalog: Catalog, pin: Pin) -> tuple[tuple[str, str], SafetyTier]:
    """Read ``TOOL[.OPERATION]=TIER``; of names with dots the longest known one counts."""
    whole, equals, written = text.rpartition("=")
    tier = _TIERS.get(written.replace("_", "").casefold())
    if not equals or tier is None:
        options = ", ".join(f"`{one}`" for one in SafetyTier)
        raise UsageProblem(f"--tier `{text}`: say TOOL=TIER or TOOL.OPERATION=TIER, the tier one of {options}")
    known = {*pin.listing.definitions, *pin.accepted}
    for start in dict.fromkeys((whole, whole.removeprefix(f"{catalog.prefix or catalog.catalog_id}."))):
        if start in known:
            return (start, ""), tier
        fitting = [name for name in known if start.startswith(f"{name}.")]
        if fitting:
            name = max(fitting, key=len)
            return (name, start[len(name) + 1 :]), tier
    return (_name_on_server(whole, catalog, pin), ""), tier


def _print_accept(
    catalog_id: str, rows: tuple[Waiting, ...], before: Pin, after: Pin, *, all_: bool, acts: bool, verbose: bool
) -> None:
    told = [row for row in rows if not acts or after.accepted.get(row.name) != before.accepted.get(row.name)]
    for row in told:
        counts_as = after.accepted.get(row.name) if acts else row.after
        if verbose or row.change != "new" or counts_as is None:
            _print_waiting(row, counts_as)
        else:
            print_line(f"new {row.name}  {_in_short(counts_as)}")
    if before.instructions != before.listing.instructions and (not acts or after.instructions != before.instructions):
        print_line("instructions of the server")
        _print_lines(text_difference(before.instructions, before.listing.instructions))
    left = len(after.drift.names)
    if acts:
        changed = sum(before.accepted.get(name) != row for name, row in after.accepted.items())
        gone = sum(name not in after.accepted for name in before.accepted)
        wait = "1 waits" if left == 1 else f"{left:,} wait"
        print_line(
            f"accepted {plural(changed, 'tool')}, forgot {plural(gone, 'tool')}; of catalog `{catalog_id}` {wait}"
        )
        if all_ and after.drift.vanished:
            print_line(f"vanished, and the policy still names them: {', '.join(after.drift.vanished)}")
    elif rows or after.drift.instructions:
        wait = "1 tool waits" if left == 1 else f"{left:,} tools wait"
        print_line(f"{wait}: name what to accept, or say --all; --tier TOOL=TIER takes another tier than proposed")
    else:
        print_line(f"nothing of catalog `{catalog_id}` waits to be accepted")


def _print_waiting(row: Waiting, counts_as: Acceptance | None) -> None:
    print_line(f"{row.change} {row.name}")
    if counts_as is not None:
        print_passage(f"  counts as {counts_as.tier}: ", row.why)
        for operation, tier in counts_as.operation_tiers.items():
            print_line(f"    {operation}: {tier}")
        if counts_as.side_effects:
            print_line(f"  touches {', '.join(sorted(counts_as.side_effects))}")
        if counts_as.capabilities:
            print_line(f"  needs {', '.join(sorted(counts_as.capabilities))}: agents without it do not see the tool")
    if row.change == "new":
        print_passage("  ", row.description)
    else:
        _print_lines(row.difference)


def _in_short(counts_as: Acceptance) -> str:
    """Name the tier, the operations by tier if these differ, and what the tool touches."""
    by_tier: dict[str, list[str]] = {}
    for operation, tier in counts_as.operation_tiers.items():
        by_tier.setdefault(str(tier), []).append(operation)
    if len(by_tier) > 1:
        said = "; ".join(f"{tier}: {', '.join(names)}" for tier, names in by_tier.items())
    else:
        names = ", ".join(counts_as.operation_tiers)
        said = f"{counts_as.tier}: {names}" if names else str(counts_as.tier)
    return said + (f"  touches {', '.join(sorted(counts_as.side_effects))}" if counts_as.side_effects else "")


def _print_lines(text: str) -> None:
    for line in text.splitlines():
        print_line(f"  | {line}")


def _state_json(state: CatalogState) -> dict[str, object]:
    catalog, pin = state.catalog, state.pin
    how: dict[str, object] = {"command": catalog.command, "args": list(catalog.args), "env": list(catalog.env)}
    how |= {"cwd": catalog.cwd, "url": catalog.url, "headers_env": dict(catalog.headers_env)}
    how |= {"query_env": dict(catalog.query_env)} if catalog.query_env else {}
    return {
        "id": catalog.catalog_id,
        "type": str(catalog.kind),
        "prefix": catalog.prefix,
        "file": catalog.file,
        **({} if state.is_trusted is None else how),
        "trusted": state.is_trusted,
        "tools": [name for name in state.tool_names if name not in state.held],
        "held": list(state.held),
        "drift": None if pin is None else _drift_json(pin),
        "digest": None if pin is None else pin.digest,
        "server": None if pin is None else {"name": pin.listing.name, "version": pin.listing.version},
    }


def _drift_json(pin: Pin) -> dict[str, object]:
    drift = pin.drift
    rows = {"new": drift.new, "changed": drift.changed, "vanished": drift.vanished}
    return {**{what: list(names) for what, names in rows.items()}, "instructions": drift.instructions}


def _accept_json(catalog_id: str, rows: tuple[Waiting, ...], before: Pin, after: Pin) -> dict[str, object]:
    other = before.instructions != before.listing.instructions
    words = text_difference(before.instructions, before.listing.instructions)
    return {
        "catalog": catalog_id,
        "waiting": [
            {
                "tool": row.name,
                "change": row.change,
                "before": _acceptance_json(row.before),
                "proposed": _acceptance_json(row.after),
                "why": row.why,
                "description": row.description,
                "difference": row.difference,
            }
            for row in rows
        ],
        "instructions": words if other else None,
        "accepted": [name for name, row in after.accepted.items() if before.accepted.get(name) != row],
        "forgotten": [name for name in before.accepted if name not in after.accepted],
        "left": _drift_json(after),
        "digest": after.digest,
    }


def _acceptance_json(row: Acceptance | None) -> dict[str, object] | None:
    if row is None:
        return None
    return {
        "tier": str(row.tier),
        "operation_tiers": {name: str(tier) for name, tier in row.operation_tiers.items()},
        "side_effects": sorted(row.side_effects),
        "capabilities": sorted(row.capabilities),
    }
