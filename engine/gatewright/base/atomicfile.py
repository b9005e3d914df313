"""Writing a file so that a reader, or a killed writer, leaves the old content or the new, never a mixture."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path


def write_atomically(path: Path, content: bytes, *, mode: int | None = None, follow: bool = True) -> None:
    """Replace ``path`` by ``content``: temporary neighbour, fsync, rename, fsync of the folder.

    A symlink is followed, so that the link stays (without ``follow`` it is replaced); the permission bits of an
    existing file are kept. Raises OSError.
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
