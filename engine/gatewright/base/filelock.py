"""One process at a time: a lock on an open file, which the system lets go of when its holder dies."""

from __future__ import annotations

import os
import sys
import time

MOMENT_S = 0.0005
"""For so long it is asked for again and again: most files are held for a tenth of it."""
_STEP_S = 0.001

if sys.platform == "win32":
    import msvcrt

    _BEYOND = 0x7FFF_FFFE
    """The byte that is locked: nobody else can read a locked one, and no file of ours is as long."""

    def _try_lock(descriptor: int, shared: bool) -> None:  # noqa: ARG001 - there all locks are for one alone
        os.lseek(descriptor, _BEYOND, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(*error.args) from None

    def unlock(descriptor: int) -> None:
        """Let go of a file that stays open."""
        os.lseek(descriptor, _BEYOND, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int, shared: bool) -> None:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)

    def unlock(descriptor: int) -> None:
        """Let go of a file that stays open."""
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def lock(descriptor: int, patience_s: float, *, shared: bool = False) -> None:
    """Hold the file alone (``shared``: with other readers) until it is closed or let go of; the place in it where it is
    read next may be another afterwards.

    Raises BlockingIOError when another holds it for too long.
    """
    began = 0.0
    while True:
        try:
            _try_lock(descriptor, shared)
            return
        except BlockingIOError:
            now = time.monotonic()
            began = began or now
            if now - began >= patience_s:
                raise
            time.sleep(0 if now - began < MOMENT_S else _STEP_S)
