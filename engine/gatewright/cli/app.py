"""``gui`` and ``tour``: the desktop app as commands."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from json import loads
from pathlib import Path
from typing import Annotated

import typer

from gatewright.cli.main import launch, run_app
from gatewright.cli.output import JsonOption, print_json

WorkspaceArgument = Annotated[
    Path | None, typer.Argument(metavar="WORKSPACE", help="a folder with a policy.toml, or a policy file")
]


def gui(workspace: WorkspaceArgument = None) -> None:
    """Open the app (with the last workspace, or the demo)."""
    raise typer.Exit(launch(workspace))


def tour(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="the folder for pictures and the exported policy")],
    workspace: WorkspaceArgument = None,
    json: JsonOption = False,
) -> None:
    """Drive the real window through the main job; a picture of each step, and tour.json with what was checked."""
    if not json:
        raise typer.Exit(run_app("tour", workspace, out))
    with redirect_stdout(sys.stderr):
        status = run_app("tour", workspace, out)
    print_json(loads((out / "tour.json").read_text(encoding="utf-8")))
    raise typer.Exit(status)
