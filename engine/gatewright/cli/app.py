"""``gui`` and ``tour``: the desktop app as commands, found where it is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from json import loads
from pathlib import Path
from typing import Annotated, cast

import typer

from gatewright.base.errors import NotSupported
from gatewright.cli.output import JsonOption, print_json
from gatewright.workspace.location import policy_path_of


def launch(workspace: Path | None = None) -> int:
    """Open the app and stay until it is closed; its exit code.

    Raises NotSupported where it cannot start, WorkspaceError where the workspace is not there.
    """
    if workspace is not None:
        policy_path_of(workspace)
    return run_app("gui", workspace)


def run_app(name: str, *arguments: Path | None) -> int:
    """Start that app, as the installation declares it, and stay until it ends; its exit code. Raises NotSupported."""
    from importlib.metadata import entry_points

    for point in entry_points(group="gatewright.apps", name=name):
        try:
            return cast("Callable[..., int]", point.load())(*arguments)
        except ImportError as error:
            raise NotSupported(f"the desktop app cannot start: {error} (pip install 'gatewright[gui]')") from error
    raise NotSupported("the desktop app is not installed (pip install 'gatewright[gui]')")


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
