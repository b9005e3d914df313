"""The workspace that a record belongs to, and the seal that a store of memory bears of it.

The seal binds the file to its state folder and to the keys of its user, not its rows: a store that came with somebody's
workspace, or was copied from another one, is told from an own one. Whoever can write into an own one needs no other.
"""

from __future__ import annotations

import hmac
import os
import stat
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gatewright.base.frozen import frozen
from gatewright.record.folder import PrivateFolder
from gatewright.record.seal import SHARED_KEY, Seal, find_key, have_key

if TYPE_CHECKING:
    from sqlite3 import Connection

_PURPOSE = b"memory\0"
_TABLE = """CREATE TABLE IF NOT EXISTS home_seal (
  name TEXT PRIMARY KEY, folder BLOB NOT NULL, around TEXT NOT NULL, mac TEXT NOT NULL
)"""
_IS_THERE = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'home_seal'"
_SELECT = "SELECT folder, around, mac FROM home_seal WHERE name = ?"
_PUT = "INSERT OR REPLACE INTO home_seal VALUES (?, ?, ?, ?)"
_NAMELESS = "it does not say whose it is, as those of older versions"
_NOT_OURS = "it was not made with your keys"


@frozen
class Home:
    """A state folder as a record remembers it: its path, and which folder it lay in, by whatever name ("": unknown).

    A renamed workspace keeps the second; no folder that is made later has the same.
    """

    folder: str
    around: str = ""

    @classmethod
    def of(cls, state: Path) -> Home:
        """The home of a state folder; only the folders above it are looked at."""
        around = Path(os.path.realpath(state.parent))
        return cls(str(around / state.name), _identity(around))

    def is_same(self, other: Home) -> bool:
        """Tell whether it is the same folder, renamed perhaps."""
        renamed = self.around != "" and self.around == other.around
        return self.folder == other.folder or (renamed and Path(self.folder).name == Path(other.folder).name)


class HomeSeal:
    """The seal of the store ``name``, a path within the folder ``state``, made with the key in the folder ``keys``.

    ``adopts``: the store is taken over, whosever it is. Methods raise OSError and sqlite3.Error.
    """

    def __init__(self, state: Path, keys: Path, name: str, *, adopts: bool = False) -> None:
        self.adopts = adopts
        self.path = state / name
        self._state = state
        self._keys = PrivateFolder(keys)
        self._name = name

    def maker(self) -> Callable[[Connection], None]:
        """The function that puts the seal on a store. The key is there by then, a new one where there was none."""
        seal, home = _seal(have_key(self._keys, SHARED_KEY)), Home.of(self._state)

        def put(connection: Connection) -> None:
            connection.execute(_TABLE)
            row = self._name, os.fsencode(home.folder), home.around
            connection.execute(_PUT, (*row, seal.digest(_sealed(*row))))

        return put

    def why_foreign(self, connection: Connection) -> str:
        """Why the store is not this user's and this workspace's; empty where it is."""
        if connection.execute(_IS_THERE).fetchone() is None:
            return _NAMELESS
        home = self._home_on(connection)
        if home is None:
            return _NOT_OURS
        if home.is_same(Home.of(self._state)):
            return ""
        return f"it belongs to `{home.folder}`, and does not go along with a copy or a move of the workspace"

    def is_of_another_name(self, connection: Connection) -> bool:
        """Tell whether the workspace was renamed since the seal was put on it."""
        return self._home_on(connection) != Home.of(self._state)

    def _home_on(self, connection: Connection) -> Home | None:
        """The home to which the store belongs, as its seal says; None where none holds."""
        if connection.execute(_IS_THERE).fetchone() is None:
            return None
        row = connection.execute(_SELECT, (self._name,)).fetchone()
        key = find_key(self._keys, SHARED_KEY)
        if key is None or row is None:
            return None
        folder, around, mac = row
        if not (isinstance(folder, bytes) and isinstance(around, str) and isinstance(mac, str)):
            return None
        right = _seal(key).digest(_sealed(self._name, folder, around))
        is_right = hmac.compare_digest(right.encode(), mac.encode("utf-8", "replace"))
        return Home(os.fsdecode(folder), around) if is_right else None


def _seal(key: bytes) -> Seal:
    return Seal(hmac.digest(key, _PURPOSE, "sha256"))


def _sealed(name: str, folder: bytes, around: str) -> bytes:
    return b"\0".join((name.encode(), folder, around.encode()))


_GET_GENERATION = 0x80087601
"""FS_IOC_GETVERSION of Linux (ioctl_iflags(2)): tells a folder from an earlier one that had the same inode."""


def _identity(folder: Path) -> str:
    """Device, inode and, where the file system has one, generation; empty when there is no such folder."""
    try:
        if sys.platform == "win32":
            facts = folder.stat()
            return f"{facts.st_dev}:{facts.st_ino}:0" if stat.S_ISDIR(facts.st_mode) else ""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return ""
    import fcntl

    try:
        facts, generation = os.fstat(descriptor), 0
        with suppress(OSError):
            (generation,) = struct.unpack("q", fcntl.ioctl(descriptor, _GET_GENERATION, bytes(8)))
        return f"{facts.st_dev}:{facts.st_ino}:{generation}"
    finally:
        os.close(descriptor)
