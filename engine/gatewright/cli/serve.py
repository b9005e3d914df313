"""``serve``: an agent's tools for MCP clients, behind the gate."""

from __future__ import annotations

import asyncio

from gatewright.cli.exit import UsageProblem
from gatewright.cli.opening import AgentOption, PolicyArgument, StateOption, TrustOption, opened, require_agent


def serve(
    policy: PolicyArgument,
    agent: AgentOption,
    state: StateOption = None,
    trust: TrustOption = False,
) -> None:
    """Serve an agent's tools to an MCP client on standard input and output; each call passes the gate."""
    try:
        from gatewright.workspace.gateway import serve_stdio
    except ModuleNotFoundError as error:
        raise UsageProblem(f"`serve` needs the extra `mcp`, pip install 'gatewright[mcp]': {error}") from None
    with opened(policy, state=state, trust=trust) as workspace:
        asyncio.run(serve_stdio(workspace, require_agent(workspace, agent)))
