"""The gateway: agents of a workspace served to MCP clients."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from gatewright.adapters.mcp_server import AgentServer, Caller
from gatewright.adapters.mcp_stdio import stdio_streams

if TYPE_CHECKING:
    from collections.abc import Generator

    from gatewright.workspace.workspace import Workspace


async def serve_stdio(workspace: Workspace, agent_id: str) -> None:
    """Serve one agent on standard input and output until the client closes its end, or SIGTERM or SIGINT comes.

    Raises AuditUnavailable where a log exists that cannot be continued, WorkspaceError for an unknown agent, and
    KeyboardInterrupt, once all is put away, for SIGINT.
    """
    workspace.require_audit()
    session = workspace.session(agent_id)
    agent = AgentServer(workspace.gate, Caller(agent_id, session), workspace.broker)
    with _stop_signals() as stopped:
        serving = asyncio.ensure_future(_serve(agent))
        await asyncio.wait({serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not serving.done():
            serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
    if stopped.done() and stopped.result() == signal.SIGINT:
        raise KeyboardInterrupt


async def _serve(agent: AgentServer) -> None:
    async with stdio_streams() as (incoming, outgoing):
        await agent.server.run(incoming, outgoing, agent.server.create_initialization_options())


@contextmanager
def _stop_signals() -> Generator[asyncio.Future[int]]:
    """Done, with the number of the signal, as soon as the process is asked to end."""
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[int] = loop.create_future()
    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, lambda number=number: stopped.done() or stopped.set_result(number))
    try:
        yield stopped
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
