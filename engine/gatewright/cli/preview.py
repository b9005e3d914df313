"""``preview`` and ``rules``: what the model of one agent sees. It does not call anything."""

from __future__ import annotations

from typing import Annotated

import typer

from gatewright.cli.exit import UsageProblem
from gatewright.cli.opening import (
    AgentOption,
    JsonOption,
    PolicyArgument,
    StateOption,
    TrustOption,
    opened,
    require_agent,
)
from gatewright.cli.output import print_json, print_line
from gatewright.workspace import format_names

PLANNED_FORMATS = ("gemini", "genai")


def preview(
    policy: PolicyArgument,
    agent: AgentOption,
    format: Annotated[str, typer.Option("--format", help="mcp, openai or anthropic")] = "mcp",  # noqa: A002
    json: JsonOption = False,  # noqa: ARG001 - the list is JSON anyway
    state: StateOption = None,
    trust: TrustOption = False,
) -> None:
    """Print the list of tools that the model of one agent gets, as JSON."""
    if format in PLANNED_FORMATS:
        raise UsageProblem(f"format `{format}` is not supported yet")
    if format not in format_names():
        raise UsageProblem(f"no format `{format}` (there are: {', '.join(format_names())})")
    with opened(policy, state=state, trust=trust) as workspace:
        print_json(workspace.view(require_agent(workspace, agent)).tools(format))


def rules(
    policy: PolicyArgument,
    agent: AgentOption,
    json: JsonOption = False,
    state: StateOption = None,
    trust: TrustOption = False,
) -> None:
    """Print the usage rules that the model of one agent gets, as Markdown."""
    with opened(policy, state=state, trust=trust) as workspace:
        text = workspace.view(require_agent(workspace, agent)).usage_rules
    if json:
        print_json({"rules": text})
    else:
        print_line(text.rstrip("\n"))
