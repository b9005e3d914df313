"""One process at a time: a lock on an open file, which the system lets go of when its holder dies. It knows no data."""

from __future__ import annotations

import fcntl
import time

_STEP_S = 0.001


def lock(descriptor: int, patience_s: float) -> None:
    """Hold the file alone until it is closed. Raises BlockingIOError when another holds it for too long."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_STEP_S)
