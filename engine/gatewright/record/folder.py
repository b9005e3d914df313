"""Folders of state and keys: where they lie, the one way to open a file there, the seal that tells own from foreign.

Whoever hands over a workspace hands over its state folder too, so a name there is not taken for what it says: a
symbolic link (the folder itself included), a file that has a second name elsewhere, a pipe, a device or a folder in the
place of a file is refused, and nothing is made through one. What lies above the folder is the user's and may be links:
a folder that somebody named is the one that its links lead to; the one beside a policy is taken as it stands.

A row's seal is HMAC-SHA-256 (RFC 2104, FIPS 180-4). The seal of a store of memory binds the file, not its rows, to its
state folder and to the keys of its user: a store that came with somebody's workspace, or was copied from another one,
is told from an own one. Whoever can write into an own one needs no other.
"""

from __future__ import annotations

import errno
import hmac
import os
import secrets
import stat
import struct
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from gatewright.base.file import lock, write_atomically
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, canonical_json

if TYPE_CHECKING:
    from sqlite3 import Connection


STATE_FOLDER = ".gatewright"
STATE_VARIABLE = "GATEWRIGHT_STATE"
DURABLE_VARIABLE = "GATEWRIGHT_DURABLE"
KEYS_VARIABLE = "GATEWRIGHT_KEYS"


def state_folder(policy_path: Path, explicit: Path | None = None) -> Path:
    """The folder of audit, memory and sessions: ``explicit``, else GATEWRIGHT_STATE, else beside the policy."""
    named = explicit or os.environ.get(STATE_VARIABLE)
    return Path(os.path.realpath(named)) if named else policy_path.absolute().parent / STATE_FOLDER


def key_folder(explicit: Path | None = None) -> Path:
    """The folder of keys and anchors: ``explicit``, else GATEWRIGHT_KEYS, else in the user's data folder."""
    named = explicit or os.environ.get(KEYS_VARIABLE) or platformdirs.user_data_path("gatewright") / "keys"
    return Path(os.path.realpath(named))


def is_durable(explicit: bool | None = None) -> bool:
    """Whether audit rows are to outlast a loss of power: ``explicit``, else GATEWRIGHT_DURABLE (1, true, yes or on)."""
    if explicit is not None:
        return explicit
    return os.environ.get(DURABLE_VARIABLE, "").strip().lower() in {"1", "true", "yes", "on"}


_LOOKS_UP_BELOW = os.open in os.supports_dir_fd
"""Whether a folder can be held open and names looked up in it. On Windows they are looked up by path, and whoever can
replace a folder above is not kept out; a link is refused all the same.
"""
_FOLDER = sum(getattr(os, name, 0) for name in ("O_RDONLY", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC"))
_FILE = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT"))
_JUNCTION = 0xA0000003
"""What Windows marks a folder with that is the name of another one (IO_REPARSE_TAG_MOUNT_POINT)."""
_LOCK = ".lock"
_PATIENCE_S = 5.0


class PrivateFolder:
    """The folder at ``path``, there or not. Methods raise OSError, whose ``strerror`` says what was refused."""

    def __init__(self, path: Path, *, within: PrivateFolder | None = None) -> None:
        self.path = path
        self._within = within

    def folder(self, name: str) -> PrivateFolder:
        """A folder below, under the same rules."""
        return PrivateFolder(self.path / name, within=self)

    def make(self) -> None:
        """Have the folder, for its owner only, if it is not there."""
        if self._within is not None:
            self._within.make()
        with suppress(FileExistsError):
            self.path.mkdir(parents=self._within is None, mode=0o700)
        with self._held():
            pass

    def require_real(self) -> None:
        """Raises OSError when something else than a folder lies here; nothing may lie here."""
        with suppress(FileNotFoundError), self._held():
            pass

    def look(self, name: str) -> os.stat_result | None:
        """The facts of the file of that name; None when there is none."""
        try:
            with self._held() as folder:
                facts = os.stat(self._in(folder, name), dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        _require_plain(facts, self.path / name)
        return facts

    def open(self, name: str, flags: int = os.O_RDONLY) -> int:
        """A descriptor of the file of that name. Raises FileNotFoundError when there is none and none is to be made."""
        self.look(name)  # a device is not even opened
        with self._held() as folder:
            descriptor = os.open(self._in(folder, name), flags | _FILE, 0o600, dir_fd=folder)
        try:
            _require_plain(os.fstat(descriptor), self.path / name)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def read(self, name: str, most_bytes: int) -> bytes:
        """The content of the file, cut after ``most_bytes``."""
        with os.fdopen(self.open(name), "rb") as stream:
            return stream.read(most_bytes)

    def replace(self, name: str, content: bytes) -> None:
        """Write the file over whatever had that name: the old content or the new, never a mixture."""
        self.make()
        write_atomically(self.path / name, content, mode=0o600, follow=False)

    def create(self, name: str, content: bytes) -> None:
        """Write the file unless there is one; of several processes that do so all see the same."""
        self.make()
        with self.locked():
            if self.look(name) is None:
                self.replace(name, content)

    def delete(self, name: str) -> bool:
        """Remove what has that name, whatever it is; whether there was something."""
        try:
            with self._held() as folder:
                os.unlink(self._in(folder, name), dir_fd=folder)
        except FileNotFoundError:
            return False
        return True

    def end(self, name: str, descriptor: int) -> None:
        """Remove the file of that name, if that goes, which is open and perhaps locked, and close it.

        Nobody takes it in between; but on Windows it is closed first, and what another has open by then stays.
        """
        if not _LOOKS_UP_BELOW:
            os.close(descriptor)
        try:
            with suppress(OSError):
                self.delete(name)
        finally:
            if _LOOKS_UP_BELOW:
                os.close(descriptor)

    def names(self) -> list[str]:
        """What lies in the folder, sorted; nothing when there is no folder."""
        try:
            with self._held() as folder:
                return sorted(os.listdir(self.path if folder is None else folder))  # noqa: PTH208 - of a descriptor
        except FileNotFoundError:
            return []

    @contextmanager
    def locked(self) -> Generator[None]:
        """No other process does the same meanwhile. Raises BlockingIOError when one does so for too long."""
        with self._held() as folder:
            held = self.open(_LOCK, os.O_RDWR | os.O_CREAT) if folder is None else os.dup(folder)
        try:
            lock(held, _PATIENCE_S)
            yield
        finally:
            os.close(held)

    @contextmanager
    def _held(self) -> Generator[int | None]:
        """A descriptor of the folder, that names in it are looked up by; None where the system has no such thing."""
        within = nullcontext() if self._within is None else self._within._held()
        with within as above:
            name = self.path if above is None else self.path.name
            facts = os.stat(name, dir_fd=above, follow_symlinks=False)
            if stat.S_ISLNK(facts.st_mode) or getattr(facts, "st_reparse_tag", 0) == _JUNCTION:
                raise _refused(self.path, "it is a symbolic link, which is not followed")
            if not _LOOKS_UP_BELOW:
                yield None
                return
            folder = os.open(name, _FOLDER, dir_fd=above)
        try:
            yield folder
        finally:
            os.close(folder)

    def _in(self, folder: int | None, name: str) -> str | Path:
        return self.path / name if folder is None else name


def _require_plain(facts: os.stat_result, path: Path) -> None:
    if stat.S_ISLNK(facts.st_mode):
        raise _refused(path, "it is a symbolic link, which is not followed")
    if not stat.S_ISREG(facts.st_mode):
        raise _refused(path, "it is not a plain file")
    if facts.st_nlink > 1:
        raise _refused(path, "it has a second name elsewhere (a hard link)")


def _refused(path: Path, why: str) -> OSError:
    return OSError(errno.EPERM, why, str(path))


KEY_BYTES = 32
SHARED_KEY = "approvals.key"
"""The name of the key that approvals and sessions are sealed with."""


class Seal:
    """Seals rows with one key; the key is taken in once."""

    def __init__(self, key: bytes) -> None:
        self._keyed = hmac.new(key, digestmod="sha256")

    def __call__(self, row: Sequence[JsonValue], previous: str = "") -> str:
        """The MAC of a row in hexadecimal; ``previous``: the MAC that it follows. Raises TypeError, ValueError."""
        return self.digest(previous.encode() + canonical_json(row))

    def digest(self, data: bytes) -> str:
        """The MAC of the data. Unlike `hmac.digest` it lets no fork in while OpenSSL holds locks of its own."""
        mac = self._keyed.copy()
        mac.update(data)
        return mac.hexdigest()

    def is_on(self, row: Sequence[JsonValue], mac: object, previous: str = "") -> bool:
        """Whether that is the MAC of the row. Raises TypeError, ValueError where it is no row at all."""
        right = self(row, previous)
        return isinstance(mac, str) and hmac.compare_digest(right.encode(), mac.encode("utf-8", "replace"))


def find_key(keys: PrivateFolder, name: str) -> bytes | None:
    """The key in that file; None when there is none. Raises OSError, also when it is damaged."""
    try:
        key = keys.read(name, KEY_BYTES + 1)
    except FileNotFoundError:
        return None
    if len(key) != KEY_BYTES:
        raise OSError(errno.EINVAL, "the key is damaged", str(keys.path / name))
    return key


def have_key(keys: PrivateFolder, name: str) -> bytes:
    """The key in that file, a new random one where there was none: processes that ask at once get the same.

    Raises OSError.
    """
    if keys.look(name) is None:
        keys.create(name, secrets.token_bytes(KEY_BYTES))
    key = find_key(keys, name)
    if key is None:
        raise FileNotFoundError(errno.ENOENT, "the key is gone", str(keys.path / name))
    return key


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
