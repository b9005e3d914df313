"""Way for the window: threads that count hold still while a large view is painted.

Painting calls between Qt and Python a thousand times, and each call may have to wait for a thread to hand over.
"""

import asyncio
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import TypeVar

from gatewright.workspace.api import WorkspaceError
from gatewright_gui.qt.language import tr
from gatewright_gui.session.switching import often_switched

T = TypeVar("T")
Stop = Callable[[], bool]
"""Tells whether the work is not wanted any more."""
LONGEST_S = 0.1
"""Nobody waits longer than this for a painting to end."""
_FREE = threading.Event()
_FREE.set()


@contextmanager
def painting() -> Generator[None]:
    """Threads that ask hold still meanwhile."""
    _FREE.clear()
    try:
        yield
    finally:
        _FREE.set()


def give_way() -> None:
    """Hold still while something is painted."""
    if not _FREE.is_set():
        _FREE.wait(LONGEST_S)


async def beside(work: Callable[[Stop], T], worker: Executor | None = None) -> T:
    """Run `work` in a thread, one of `worker` or any; cancelling tells it to stop. Raises WorkspaceError."""
    stop = threading.Event()

    def is_unwanted() -> bool:
        give_way()
        return stop.is_set()

    def polite() -> T:
        with often_switched():
            return work(is_unwanted)

    try:
        return await asyncio.get_running_loop().run_in_executor(worker, polite)
    except OSError as error:
        reason = error.strerror or error
        raise WorkspaceError(tr("cannot read the folder: {reason}", reason=reason)) from None
    finally:
        stop.set()
