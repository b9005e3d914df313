"""The folders of state and keys: where they are, how their files are opened, and seals that tell own files from foreign
ones.

A workspace comes with its state folder, so a name there proves nothing: the program refuses symbolic links (even for
the folder itself), files with a second name elsewhere, and pipes, devices or folders instead of a file. The path above
the folder is the user's and may contain links: links in a folder that somebody named are resolved; the folder beside a
policy is used as it is.

The seal of a memory store binds the file, not its rows, to its state folder and to the keys of its user. It exposes a
store that came with a foreign workspace, or was copied from another one; whoever can write into the user's own store
needs no such trick.
"""

from __future__ import annotations

import errno
import hmac
import os
import secrets
import stat
import struct
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from sqlite3 import Connection

import platformdirs

from gatewright.base.errors import WorkspaceError
from gatewright.base.file import lock, write_atomically
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import Seal

STATE_FOLDER = ".gatewright"
STATE_VARIABLE = "GATEWRIGHT_STATE"
URLS = ("postgresql:", "postgres:")
"""The beginnings of a URL of a shared state."""
DURABLE_VARIABLE = "GATEWRIGHT_DURABLE"
KEYS_VARIABLE = "GATEWRIGHT_KEYS"


StatePlace = Path | str
"""A state folder, or the URL of a shared state."""


def shared_url(explicit: StatePlace | None = None) -> str | None:
    """The URL of a shared state: ``explicit``, else GATEWRIGHT_STATE; None if neither is such a URL."""
    named = str(explicit or os.environ.get(STATE_VARIABLE) or "")
    return named if named.startswith(URLS) else None


def state_folder(policy_path: Path, explicit: StatePlace | None = None) -> Path:
    """The folder of audit, memory and sessions: ``explicit``, else GATEWRIGHT_STATE, else beside the policy.

    Raises WorkspaceError for the URL of a shared state.
    """
    named = explicit or os.environ.get(STATE_VARIABLE)
    if shared_url(explicit) is not None:
        raise WorkspaceError("this is not supported on a shared state, only on a state folder")
    return Path(os.path.realpath(named)) if named else policy_path.absolute().parent / STATE_FOLDER


def memory_folder(policy_path: Path, explicit: StatePlace | None = None) -> Path:
    """The state folder; with a shared state the one beside the policy, for what is a file of each machine anyway."""
    if shared_url(explicit) is not None:
        return policy_path.absolute().parent / STATE_FOLDER
    return state_folder(policy_path, explicit)


def key_folder(explicit: Path | None = None) -> Path:
    """The folder of keys and anchors: ``explicit``, else GATEWRIGHT_KEYS, else in the user's data folder."""
    named = explicit or os.environ.get(KEYS_VARIABLE) or platformdirs.user_data_path("gatewright") / "keys"
    return Path(os.path.realpath(named))


def config_folder() -> Path:
    """The folder of the user's settings."""
    return platformdirs.user_config_path("gatewright")


def is_durable(explicit: bool | None = None) -> bool:
    """Tell whether audit rows must survive loss of power: ``explicit``, else GATEWRIGHT_DURABLE (1, true, yes, on)."""
    if explicit is not None:
        return explicit
    return os.environ.get(DURABLE_VARIABLE, "").strip().lower() in {"1", "true", "yes", "on"}


_LOOKS_UP_BELOW = os.open in os.supports_dir_fd
"""True if names can be looked up in an open folder.

Windows looks them up by path, which does not stop somebody who can replace a folder above; links are refused there too.
"""
_FOLDER = sum(getattr(os, name, 0) for name in ("O_RDONLY", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC"))
_FILE = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT"))
_JUNCTION = 0xA0000003
"""The Windows mark of a folder that stands for another (IO_REPARSE_TAG_MOUNT_POINT)."""
_LOCK = ".lock"
_PATIENCE_S = 5.0


class PrivateFolder:
    """The folder at ``path``, existing or not. Methods raise OSError with the reason in ``strerror``."""

    def __init__(self, path: Path, *, within: PrivateFolder | None = None) -> None:
        self.path = path
        self._within = within

    def folder(self, name: str) -> PrivateFolder:
        """A folder below, under the same rules."""
        return PrivateFolder(self.path / name, within=self)

    def make(self) -> None:
        """Create the folder for its owner only, unless it exists."""
        if self._within is not None:
            self._within.make()
        with suppress(FileExistsError):
            self.path.mkdir(parents=self._within is None, mode=0o700)
        with self._handle():
            pass

    def require_real(self) -> None:
        """Raise OSError if anything but a folder has this path; a free path is fine."""
        with suppress(FileNotFoundError), self._handle():
            pass

    def look(self, name: str) -> os.stat_result | None:
        """The facts about the file of that name; None if it does not exist."""
        try:
            with self._handle() as folder:
                facts = os.stat(self._in(folder, name), dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        _require_plain(facts, self.path / name)
        return facts

    def open(self, name: str, flags: int = os.O_RDONLY) -> int:
        """A descriptor of the file of that name. Raises FileNotFoundError if it does not exist and ``flags`` create
        none.
        """
        self.look(name)  # never open a device
        with self._handle() as folder:
            descriptor = os.open(self._in(folder, name), flags | _FILE, 0o600, dir_fd=folder)
        try:
            _require_plain(os.fstat(descriptor), self.path / name)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def read(self, name: str, most_bytes: int) -> bytes:
        """The content of the file, at most ``most_bytes``."""
        with os.fdopen(self.open(name), "rb") as stream:
            return stream.read(most_bytes)

    def replace(self, name: str, content: bytes) -> None:
        """Replace the file of that name by a new one, atomically."""
        self.make()
        write_atomically(self.path / name, content, mode=0o600, follow=False)

    def create(self, name: str, content: bytes) -> None:
        """Write the file unless it exists; processes that do so at once all see the same file."""
        self.make()
        with self.exclusive():
            if self.look(name) is None:
                self.replace(name, content)

    def delete(self, name: str) -> bool:
        """Remove any file of that name; True if it existed."""
        try:
            with self._handle() as folder:
                os.unlink(self._in(folder, name), dir_fd=folder)
        except FileNotFoundError:
            return False
        return True

    def end(self, name: str, descriptor: int) -> None:
        """Remove an open, perhaps locked file if possible, and close it; nobody can open it in between.

        On Windows it is closed first, and stays if another process has opened it by then.
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
        """The names in the folder, sorted; empty without a folder."""
        try:
            with self._handle() as folder:
                return sorted(os.listdir(self.path if folder is None else folder))  # noqa: PTH208 - of a descriptor
        except FileNotFoundError:
            return []

    @contextmanager
    def exclusive(self) -> Generator[None]:
        """Exclude other processes that call this. Raises BlockingIOError after too long a wait."""
        with self._handle() as folder:
            held = self.open(_LOCK, os.O_RDWR | os.O_CREAT) if folder is None else os.dup(folder)
        try:
            lock(held, _PATIENCE_S)
            yield
        finally:
            os.close(held)

    @contextmanager
    def _handle(self) -> Generator[int | None]:
        """A descriptor of the folder for looking up names; None on a system that lacks this."""
        within = nullcontext() if self._within is None else self._within._handle()
        with within as above:
            name = self.path if above is None else self.path.name
            facts = os.stat(name, dir_fd=above, follow_symlinks=False)
            if stat.S_ISLNK(facts.st_mode) or getattr(facts, "st_reparse_tag", 0) == _JUNCTION:
                raise _refusal(self.path, "it is a symbolic link, which is not followed")
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
        raise _refusal(path, "it is a symbolic link, which is not followed")
    if not stat.S_ISREG(facts.st_mode):
        raise _refusal(path, "it is not a plain file")
    if facts.st_nlink > 1:
        raise _refusal(path, "it has a second name elsewhere (a hard link)")


def _refusal(path: Path, why: str) -> OSError:
    return OSError(errno.EPERM, why, str(path))


KEY_BYTES = 32
SHARED_KEY = "approvals.key"
"""The name of the key that seals approvals and sessions."""


def find_key(keys: PrivateFolder, name: str) -> bytes | None:
    """The key in that file; None if it does not exist. Raises OSError, also for a damaged key."""
    try:
        key = keys.read(name, KEY_BYTES + 1)
    except FileNotFoundError:
        return None
    if len(key) != KEY_BYTES:
        raise OSError(errno.EINVAL, "the key is damaged", str(keys.path / name))
    return key


def have_key(keys: PrivateFolder, name: str) -> bytes:
    """The key in that file; if missing, a new random one, the same for concurrent processes. Raises OSError."""
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
_NAMELESS = "it names no owner, like those of older versions"
_NOT_OURS = "it was not made with your keys"


@frozen
class Home:
    """A state folder as its stores remember it: its path, and the identity of the folder around it ("" if unknown).

    A renamed workspace keeps that identity, and no later folder gets the same.
    """

    folder: str
    around: str = ""

    @classmethod
    def of(cls, state: Path) -> Home:
        """The home of a state folder, from the folders above it."""
        around = Path(os.path.realpath(state.parent))
        return cls(str(around / state.name), _identity(around))

    def is_same(self, other: Home) -> bool:
        """Tell whether both are the same folder, perhaps renamed."""
        renamed = self.around != "" and self.around == other.around
        return self.folder == other.folder or (renamed and Path(self.folder).name == Path(other.folder).name)


class HomeSeal:
    """The seal of the store ``name``, a path within the folder ``state``, made with the key in the folder ``keys``.

    ``adopts``: accept the store, whoever made it. Methods raise OSError and sqlite3.Error.
    """

    def __init__(self, state: Path, keys: Path, name: str, *, adopts: bool = False) -> None:
        self.adopts = adopts
        self.path = state / name
        self._state = state
        self._keys = PrivateFolder(keys)
        self._name = name

    def maker(self) -> Callable[[Connection], None]:
        """A function that puts the seal on a store; a missing key is created now."""
        seal, home = _seal(have_key(self._keys, SHARED_KEY)), Home.of(self._state)

        def put(connection: Connection) -> None:
            connection.execute(_TABLE)
            row = self._name, os.fsencode(home.folder), home.around
            connection.execute(_PUT, (*row, seal.digest(_message(*row))))

        return put

    def why_foreign(self, connection: Connection) -> str:
        """The reason why the store is not this user's and this workspace's; empty if it is."""
        if connection.execute(_IS_THERE).fetchone() is None:
            return _NAMELESS
        home = self._home_on(connection)
        if home is None:
            return _NOT_OURS
        if home.is_same(Home.of(self._state)):
            return ""
        return f"it belongs to `{home.folder}`, and does not follow a copied or moved workspace"

    def is_of_another_name(self, connection: Connection) -> bool:
        """Tell whether the workspace was renamed after somebody sealed the store."""
        return self._home_on(connection) != Home.of(self._state)

    def _home_on(self, connection: Connection) -> Home | None:
        """The home in the store's seal; None without a valid seal."""
        if connection.execute(_IS_THERE).fetchone() is None:
            return None
        row = connection.execute(_SELECT, (self._name,)).fetchone()
        key = find_key(self._keys, SHARED_KEY)
        if key is None or row is None:
            return None
        folder, around, mac = row
        if not (isinstance(folder, bytes) and isinstance(around, str) and isinstance(mac, str)):
            return None
        right = _seal(key).digest(_message(self._name, folder, around))
        is_right = hmac.compare_digest(right.encode(), mac.encode("utf-8", "replace"))
        return Home(os.fsdecode(folder), around) if is_right else None


def _seal(key: bytes) -> Seal:
    return Seal(hmac.digest(key, _PURPOSE, "sha256"))


def _message(name: str, folder: bytes, around: str) -> bytes:
    return b"\0".join((name.encode(), folder, around.encode()))


_GET_GENERATION = 0x80087601
"""FS_IOC_GETVERSION of Linux (ioctl_iflags(2)): distinguishes a folder from an earlier one with the same inode."""


def _identity(folder: Path) -> str:
    """Device, inode and, if the file system has one, generation; empty for no folder."""
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
