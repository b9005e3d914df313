"""Files that several processes share: replaced whole, and locked by one process at a time."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import sys
import time
from pathlib import Path


def write_atomically(path: Path, content: bytes, *, mode: int | None = None, follow: bool = True) -> None:
    """Replace ``path`` by ``content``: temporary neighbour, fsync, rename, fsync of the folder.

    Follows a symlink, so that the link stays (without ``follow`` it replaces the link), and keeps the permission bits
    of an existing file. Raises OSError.
    """
    target = Path(os.path.realpath(path)) if follow else path
    if mode is None:
        try:
            mode = stat.S_IMODE(target.stat().st_mode)
        except FileNotFoundError:
            umask = os.umask(0)
            os.umask(umask)
            mode = 0o666 & ~umask
    temporary = target.with_name(f".{target.name[:80]}.{secrets.token_hex(6)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(mode)
        temporary.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    with contextlib.suppress(OSError):
        descriptor = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


MOMENT_S = 0.0005
"""The pause before the next attempt; most locks last a tenth of it."""
_STEP_S = 0.001

if sys.platform == "win32":
    import msvcrt

    _BEYOND = 0x7FFF_FFFE
    """The byte to lock: Windows keeps others from reading a locked byte, and no file of ours is this long."""

    def _try_lock(descriptor: int, shared: bool) -> None:  # noqa: ARG001 - there all locks are for one alone
        os.lseek(descriptor, _BEYOND, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(*error.args) from None

    def unlock(descriptor: int) -> None:
        """Release the lock of a file that stays open."""
        os.lseek(descriptor, _BEYOND, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int, shared: bool) -> None:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)

    def unlock(descriptor: int) -> None:
        """Release the lock of a file that stays open."""
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def lock(descriptor: int, patience_s: float, *, shared: bool = False) -> None:
    """Lock the file (``shared``: together with other readers) until somebody unlocks or closes it.

    The position of the next read may move. Raises BlockingIOError if another process holds the lock for too long.
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
