"""``init``: a new workspace in a folder. It overwrites nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gatewright.cli.exit import UsageProblem
from gatewright.cli.option import JsonOption
from gatewright.cli.output import print_json, print_line
from gatewright.workspace import create_workspace, example_names, name_schema, template_names


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="the folder to make")],
    template: Annotated[str, typer.Option("--template", help="demo, or empty")] = "empty",
    example: Annotated[
        str | None,
        typer.Option("--example", metavar="NAME", help="coding-agent, research-assistant, runbook or support-bot"),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Write a new workspace: policy.toml and what it needs."""
    if example is not None and example not in example_names():
        raise UsageProblem(f"no example `{example}` (there are: {', '.join(example_names())})")
    if template not in template_names():
        raise UsageProblem(f"no template `{template}` (there are: {', '.join(template_names())})")
    policy_path = create_workspace(folder, example or template)
    name_schema(policy_path)
    if json:
        print_json({"policy": str(policy_path)})
    else:
        print_line(str(policy_path))
