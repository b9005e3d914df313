"""Temporary files that a killed save left beside the file that it was writing: their names, and clearing them away.

A name is ``.{name}.{12 hexadecimal digits}.tmp``. Nobody is shown one, and the next save in the folder removes those
that are too old for any save still to be at work on them.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from contextlib import suppress

from gatewright.base.late import late_regex

STALE_S = 600.0
_NAME = late_regex(r"\..+\.[0-9a-f]{12}\.tmp", re.DOTALL)
_SUFFIX = ".tmp"
_LOOKED_AT = 20_000


def temporary_name(name: str) -> str:
    """A fresh name beside a file of that name."""
    return f".{name[:60]}.{secrets.token_hex(6)}{_SUFFIX}"


def is_leftover(path: str) -> bool:
    """Whether the last component of a path is such a name."""
    return path.endswith(_SUFFIX) and _NAME.fullmatch(path.rpartition("/")[2]) is not None


def sweep(folder: int) -> None:
    """Remove what was left in a folder (a descriptor, perhaps one to pass through only) by saves that were killed.

    Only regular files of ours with one name, not touched for ten minutes. What cannot be removed stays.
    """
    with suppress(OSError):
        descriptor = os.open(".", os.O_RDONLY, dir_fd=folder)
        try:
            with os.scandir(descriptor) as entries:
                names = [
                    entry.name for _, entry in zip(range(_LOOKED_AT), entries, strict=False) if is_leftover(entry.name)
                ]
            for name in names:
                with suppress(OSError):
                    status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                    plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_uid == os.geteuid()
                    if plain and time.time() - status.st_mtime > STALE_S:
                        os.unlink(name, dir_fd=descriptor)
        finally:
            os.close(descriptor)
