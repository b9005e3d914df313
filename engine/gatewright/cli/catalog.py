"""``catalog``: the MCP servers of a policy, taken out of a client's configuration and put behind the gateway there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gatewright.base.errors import PolicyInvalid
from gatewright.cli.exit import UsageProblem
from gatewright.cli.option import AgentOption, JsonOption, PolicyArgument, StateOption, require_agent
from gatewright.cli.output import print_error, print_json, print_line
from gatewright.cli.place import PlaceOption, places_of
from gatewright.workspace import Workspace

ClientOption = Annotated[
    str,
    typer.Option("--client", metavar="NAME", help="claude-desktop, claude-code, vscode, cursor, windsurf or zed"),
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
        list[str] | None,
        typer.Option("--header", metavar="NAME=VARIABLE", help="a header, and the variable that holds its value"),
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
    if openapi is not None:
        from gatewright.cli.openapi_import import import_openapi
        from gatewright.cli.server_import import http_catalog

        if catalog_id is None or words or only or env or place or scripts or cwd or module or manifest or file:
            raise UsageProblem("--openapi goes with --id, --url, --header, --prefix, --trust and --accept")
        wanted = http_catalog(catalog_id, url, header or (), prefix)
        with Workspace.open(policy, state=state) as workspace:
            import_openapi(workspace, openapi, wanted, trust=trust, accept=accept, as_json=json)
        return
    if file is None:
        from gatewright.cli.server_import import catalog_of, import_server, mend_lost_pin

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
    from gatewright.cli.client_import import import_client_servers

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
