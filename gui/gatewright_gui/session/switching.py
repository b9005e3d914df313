"""Threads that leave the window its turn: while they work, Python hands over more often, and collects no garbage.

The window asks for its turn with every call from Qt into Python, hundreds of times to lay out or paint a view; at five
milliseconds each, as Python does it by default, one look at a tree would take a second, and at a tenth of one the
handing over costs the window more than its own work. A collection among a hundred thousand fresh objects stops
everything for a tenth of a second; what such work makes goes without one.
"""

import gc
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

INTERVAL_S = 0.0003


@dataclass(slots=True)
class _Held:
    count: int = 0
    before: float = 0.0
    collects: bool = True


_LOCK = threading.Lock()
_HELD = _Held()


@contextmanager
def often_switched() -> Generator[None]:
    """Hand over often, and collect nothing, until the last of those who asked for it is done."""
    with _LOCK:
        if _HELD.count == 0:
            _HELD.before, _HELD.collects = sys.getswitchinterval(), gc.isenabled()
            gc.disable()
            sys.setswitchinterval(min(INTERVAL_S, _HELD.before))
        _HELD.count += 1
    try:
        yield
    finally:
        with _LOCK:
            _HELD.count -= 1
            if _HELD.count == 0:
                sys.setswitchinterval(_HELD.before)
                if _HELD.collects:
                    gc.enable()
