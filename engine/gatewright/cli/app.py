"""``gui`` and ``tour``: start the desktop app where it is installed. The engine does not import it."""

from __future__ import annotations

import gc
import sys
import time
from contextlib import contextmanager, redirect_stdout
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from gatewright.cli.exit import UsageProblem
from gatewright.cli.opening import JsonOption
from gatewright.cli.output import print_json, print_line

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

WorkspaceArgument = Annotated[
    Path | None, typer.Argument(metavar="WORKSPACE", help="a folder with a policy.toml, or a policy file")
]


def gui(workspace: WorkspaceArgument = None) -> None:
    """Open the app (with the last workspace, or the demo)."""
    with _no_collection():
        raise typer.Exit(_app("gui")(workspace))


def tour(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="the folder for pictures and the exported policy")],
    workspace: WorkspaceArgument = None,
    json: JsonOption = False,
) -> None:
    """Drive the real window through the main job; a picture of each step, and tour.json with what was checked."""
    drive = _app("tour")
    if not json:
        raise typer.Exit(drive(workspace, out))
    begun_s = time.time()
    with redirect_stdout(sys.stderr):
        status = drive(workspace, out)
    report = out / "tour.json"
    if report.is_file() and report.stat().st_mtime >= begun_s - 1:
        print_line(report.read_text(encoding="utf-8"))
    else:
        print_json({"steps": []})
    raise typer.Exit(status)


@contextmanager
def _no_collection() -> Generator[None]:
    """What starting an app makes stays; the app says itself when garbage is collected."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _app(name: str) -> Callable[..., int]:
    for point in entry_points(group="gatewright.apps", name=name):
        try:
            return cast("Callable[..., int]", point.load())
        except ImportError as error:
            raise UsageProblem(f"the desktop app cannot start: {error} (pip install 'gatewright[gui]')") from None
    raise UsageProblem("the desktop app is not installed (pip install 'gatewright[gui]')")
