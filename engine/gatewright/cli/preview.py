"""``preview`` and ``rules``: what the model of one agent sees. It does not call anything."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gatewright.cli.exit import UsageProblem
from gatewright.cli.listing import Choice, is_tool_file, preview_file
from gatewright.cli.option import (
    AgentOption,
    JsonOption,
    PolicyArgument,
    StateOption,
    TrustOption,
    require_agent,
)
from gatewright.cli.output import print_error, print_json, print_text
from gatewright.cli.schema import ChosenToolOption, FieldOption, OperationsOption
from gatewright.cli.toolnote import notes
from gatewright.workspace import Workspace, format_names


def preview(
    source: Annotated[
        str, typer.Argument(metavar="POLICY|FILE", help="a policy (or its folder), or JSON: a tool list, a definition")
    ],
    agent: Annotated[str | None, typer.Option("--agent", metavar="ID", help="the agent, with a policy")] = None,
    format: Annotated[  # noqa: A002
        str, typer.Option("--format", help="mcp, openai, openai-responses, anthropic, gemini or genai")
    ] = "mcp",
    tool: ChosenToolOption = None,
    allow: Annotated[
        str | None, typer.Option("--allow", metavar="A,B", help="with JSON: the operations of one tool to keep")
    ] = None,
    field: FieldOption = None,
    operations: OperationsOption = None,
    json: JsonOption = False,
    state: StateOption = None,
    trust: TrustOption = False,
) -> None:
    """Print the tools that a model gets, as JSON: those of an agent, or of a file; cost and losses on stderr."""
    if format not in format_names():
        raise UsageProblem(f"no format `{format}` (there are: {', '.join(format_names())})")
    choice = Choice(tool, allow, field, operations)
    if is_tool_file(source):
        if agent is not None:
            raise UsageProblem(f"`{source}` is no policy, so it has no `--agent`")
        raise typer.Exit(preview_file(source, format, choice, as_json=json))
    if agent is None:
        raise UsageProblem("a policy needs `--agent`, to say whose tools are meant")
    if words := choice.words():
        raise UsageProblem(f"`{words[0]}` is for JSON; what an agent sees of a policy is what the policy says")
    with Workspace.open(Path(source), state=state, trust=trust) as workspace:
        view = workspace.view(require_agent(workspace, agent))
        print_json(view.tools(format))
        if not json:
            for line in notes(view.listings(), format, view.unrestricted_listings()):
                print_error(line)


def rules(
    policy: PolicyArgument,
    agent: AgentOption,
    json: JsonOption = False,
    state: StateOption = None,
    trust: TrustOption = False,
) -> None:
    """Print the usage rules that the model of one agent gets, and what the servers of its tools say, as Markdown."""
    with Workspace.open(policy, state=state, trust=trust) as workspace:
        text = workspace.view(require_agent(workspace, agent)).instructions
    if json:
        print_json({"rules": text})
    else:
        print_text(text.rstrip("\n"))
