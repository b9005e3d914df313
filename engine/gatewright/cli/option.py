"""What commands share: options that name a workspace, choosing an agent, who types. It does not print results."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated

import typer

from gatewright.base.problem import near_hint
from gatewright.cli.exit import UsageProblem
from gatewright.workspace import Workspace

PolicyArgument = Annotated[Path, typer.Argument(metavar="POLICY", help="a policy file, or the folder that holds one")]
AgentOption = Annotated[str, typer.Option("--agent", metavar="ID", help="the agent")]
JsonOption = Annotated[bool, typer.Option("--json", help="print JSON")]
StateOption = Annotated[
    Path | None, typer.Option("--state", metavar="DIR", help="state folder (else GATEWRIGHT_STATE, .gatewright)")
]
TrustOption = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="trust the servers, endpoints, and folders and manifests outside the workspace, that the policy names",
    ),
]


def require_agent(workspace: Workspace, agent_id: str) -> str:
    """The id itself; an unknown one is a usage problem with a near miss."""
    agents = workspace.policy.agents
    if agent_id in agents:
        return agent_id
    near = near_hint(agent_id, agents, listed=True)
    raise UsageProblem(f"no agent `{agent_id}` in {workspace.policy_path}{near}")


def user_name() -> str:
    """Who types the command, as the system knows them."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # of a container's user the system knows no name
        return "command line"
