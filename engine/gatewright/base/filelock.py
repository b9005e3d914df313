"""One process at a time: a lock on an open file, which the system lets go of when its holder dies."""

from __future__ import annotations

import fcntl
import time

MOMENT_S = 0.0005
"""For so long it is asked for again and again: most files are held for a tenth of it."""
_STEP_S = 0.001


def lock(descriptor: int, patience_s: float, *, shared: bool = False) -> None:
    """Hold the file alone (``shared``: with other readers) until it is closed or let go of.

    Raises BlockingIOError when another holds it for too long.
    """
    how = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
    began = 0.0
    while True:
        try:
            fcntl.flock(descriptor, how)
            return
        except BlockingIOError:
            now = time.monotonic()
            began = began or now
            if now - began >= patience_s:
                raise
            time.sleep(0 if now - began < MOMENT_S else _STEP_S)
