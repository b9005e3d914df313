"""Way for the window: threads that count hold still while a large view is painted.

Painting calls between Qt and Python a thousand times, and each call may have to wait for a thread to hand over.
"""

import threading
from collections.abc import Generator
from contextlib import contextmanager

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
