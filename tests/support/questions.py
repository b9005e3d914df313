"""Questions for the worker process of a window, which finds them by their names; they check nothing."""

import os
import sys
import threading
from collections.abc import Generator
from pathlib import Path

from gatewright.workspace import Workspace


def wait_for(workspace: Workspace, begun: Path, go_on: Path) -> str:
    """Say by a file that it begun, and wait for another one; the name of the workspace."""
    begun.touch()
    pause = threading.Event()
    while not go_on.exists():
        pause.wait(0.01)
    return workspace.name


def leave_file(_workspace: Workspace, path: Path) -> str:
    """Make a file as a sign that the question arrived."""
    path.touch()
    return path.name


def wait_in_pieces(workspace: Workspace, begun: Path, go_on: Path) -> Generator[str, None, str]:
    """As `wait_for`, a short piece at a time."""
    begun.touch()
    pause = threading.Event()
    while not go_on.exists():
        pause.wait(0.01)
        yield "waiting"
    return workspace.name


def end_process(_workspace: Workspace, code: int) -> None:
    """End the worker process in the middle of an answer."""
    os._exit(code)


def fail(_workspace: Workspace, words: str) -> None:
    """Raise what no question should."""
    raise ZeroDivisionError(words)


def loaded_modules(_workspace: Workspace) -> frozenset[str]:
    """The names of all modules of the worker process."""
    return frozenset(sys.modules)
