"""Whether a process is still there: a file that it holds locked while it lives. It does not know what for.

The system lets go of the lock when the process ends in whatever way, so nobody has to write a heartbeat.
"""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from gatewright.base.ids import new_id
from gatewright.record import PrivateFolder, renew_after_fork

if TYPE_CHECKING:
    from pathlib import Path

_OWNER = re.compile(r"owner-[0-9a-f]{16}")


class Lifeline:
    """One owner's file below ``folder``: held between ``hold`` and ``let_go``."""

    def __init__(self, folder: Path) -> None:
        self.owner = new_id("owner")
        self._folder = PrivateFolder(folder)
        self._name = f"{self.owner}.alive"
        self._descriptor: int | None = None
        renew_after_fork(self)

    def renew(self) -> None:
        """A child is another owner, and does not keep its parent alive."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self.owner, self._descriptor = new_id("owner"), None
        self._name = f"{self.owner}.alive"

    def hold(self) -> None:
        """Make the file and lock it; held already: nothing. Raises OSError."""
        if self._descriptor is not None:
            return
        descriptor = self._folder.open(self._name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._descriptor = descriptor

    def let_go(self) -> None:
        """Remove the file and its lock."""
        if self._descriptor is None:
            return
        with suppress(OSError):
            self._folder.delete(self._name)
        os.close(self._descriptor)
        self._descriptor = None


def is_alive(folder: Path, owner: str) -> bool:
    """Whether the owner still holds its file; one left by a process that died is removed."""
    if not _OWNER.fullmatch(owner):
        return False
    own, name = PrivateFolder(folder), f"{owner}.alive"
    try:
        descriptor = own.open(name)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    else:
        with suppress(OSError):
            own.delete(name)
        return False
    finally:
        os.close(descriptor)
