"""``serve``: the tools of agents for MCP clients, behind the gate."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from gatewright.cli.exit import UsageProblem
from gatewright.cli.opening import PolicyArgument, StateOption, TrustOption, opened, require_agent
from gatewright.cli.output import print_error

if TYPE_CHECKING:
    from gatewright.workspace import Workspace
    from gatewright.workspace.gateway import Gateway


class Transport(StrEnum):
    """How clients reach the gateway."""

    STDIO = "stdio"
    HTTP = "http"


def serve(
    policy: PolicyArgument,
    agent: Annotated[str | None, typer.Option("--agent", metavar="ID", help="the agent, with stdio")] = None,
    transport: Annotated[
        Transport, typer.Option("--transport", help="stdio: one client, one agent; http: many, by their tokens")
    ] = Transport.STDIO,
    session: Annotated[
        str | None, typer.Option("--session", metavar="NAME", help="with stdio: the conversation that calls count in")
    ] = None,
    host: Annotated[str, typer.Option("--host", help="with http: the address to listen at")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="with http; 0: any that is free")] = 8765,
    known_as: Annotated[
        list[str] | None,
        typer.Option("--known-as", metavar="NAME", help="with http: a host name that clients use, besides --host"),
    ] = None,
    state: StateOption = None,
    trust: TrustOption = False,
) -> None:
    """Serve the tools of an agent to an MCP client, or of many agents over HTTP; each call passes the gate."""
    with opened(policy, state=state, trust=trust) as workspace:
        gateway = _gateway(workspace)
        if transport is Transport.STDIO:
            if agent is None:
                raise UsageProblem("stdio needs `--agent`, to say whose tools are served")
            asyncio.run(gateway.serve_stdio(require_agent(workspace, agent), session))
        elif agent is not None or session is not None:
            raise UsageProblem("over http a token says who a client speaks for: no `--agent`, no `--session`")
        else:
            asyncio.run(gateway.serve_http(workspace.tokens, host, port, tuple(known_as or ())))


def _gateway(workspace: Workspace) -> Gateway:
    try:
        from gatewright.workspace.gateway import Gateway
    except ModuleNotFoundError as error:
        raise UsageProblem(f"`serve` needs the extra `mcp`, pip install 'gatewright[mcp]': {error}") from None
    return Gateway(workspace, lambda line: print_error(f"gatewright: {line}"))
