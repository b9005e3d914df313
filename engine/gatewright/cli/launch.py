"""The start of an installed desktop app, without an import of it."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import cast

from gatewright.base.errors import NotSupported
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
    for point in entry_points(group="gatewright.apps", name=name):
        try:
            return cast("Callable[..., int]", point.load())(*arguments)
        except ImportError as error:
            raise NotSupported(f"the desktop app cannot start: {error} (pip install 'gatewright[gui]')") from error
    raise NotSupported("the desktop app is not installed (pip install 'gatewright[gui]')")
