"""Folders of whiteouts, which hide names in an overlay; they lie in a folder of ours that goes with its process.

A whiteout is a character device 0/0 at the place of a hidden name; the folders above it look like the real ones, since
they show instead. They must never show a folder that is gone: where a real folder goes, ours goes too.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path

from gatewright.base.file import lock
from gatewright.sources.protection import status_at
from gatewright.sources.roomview import Mount

_PATIENCE_S = 5.0
_NAME = "gatewright-rooms"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_HERE, _EXCHANGE = -100, 2


@cache
def libc() -> ctypes.CDLL:
    """Return the C library, for calls that Python lacks."""
    return ctypes.CDLL(None, use_errno=True)


def homes() -> tuple[str, ...]:
    """Make and return the folders of ours for whiteouts, which must not lie in what they hide.

    Folders of other users do not count: their names can be guessed.
    """
    user = os.getuid()
    runtime, temporary = os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir()
    wanted = [f"{runtime}/{_NAME}"] if runtime.startswith("/") else []
    others = (f"{folder}/{_NAME}-{user}" for folder in (temporary, "/dev/shm"))
    found = (_own(path, user) for path in (*wanted, *others))
    return tuple(path for path in found if path)


def _own(path: str, user: int) -> str:
    """Return the folder without links, if it is private and ours; else empty."""
    with suppress(OSError):
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)  # noqa: PTH102 - names of any bytes
        status = os.lstat(path)
        if stat.S_ISDIR(status.st_mode) and status.st_uid == user and not status.st_mode & 0o077:
            return os.path.realpath(path)
    return ""


class WhiteoutFolders:
    """The whiteout folders of one process; the first look removes those of killed processes from ``cache``."""

    def __init__(self, cache: Path) -> None:
        one_at_a_time = os.open(cache / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            lock(one_at_a_time, _PATIENCE_S)
            for left in cache.glob("run-*"):
                _clear_if_left(left)
            self.path = Path(tempfile.mkdtemp(prefix="run-", dir=cache))
            self._held = os.open(self.path, _FOLDER)  # what clears up temporary folders leaves a locked one alone
            lock(self._held, _PATIENCE_S)
        finally:
            os.close(one_at_a_time)
        self._users: dict[str, int] = {}
        self._changed: set[str] = set()

    def take(self, folder: str, names: Iterable[str]) -> str:
        """Return a folder that hides paths below ``folder``; unchanged ones are shared."""
        hidden = sorted(names)
        digest = hashlib.sha256(os.fsencode("\0".join((folder, *hidden)))).hexdigest()[:32]
        made = next(path for n in count() if (path := f"{self.path}/{digest}{n}") not in self._changed)
        if made not in self._users:
            fresh = self._aside()
            _dress(fresh, folder)
            for name in hidden:
                _hide(fresh, folder, name)
            Path(fresh).rename(made)
        self._users[made] = self._users.get(made, 0) + 1
        return made

    def let_go(self, whiteouts: str) -> None:
        """Remove a folder after its last user."""
        self._users[whiteouts] -= 1
        if not self._users[whiteouts]:
            del self._users[whiteouts]
            shutil.rmtree(whiteouts, ignore_errors=True)

    def hide(self, overlay: Mount, names: Iterable[str]) -> bool:
        """Hide paths in an overlay in use; tell whether any is new. Raises OSError."""
        fresh = [name for name in sorted(names) if _hide(overlay.whiteouts, overlay.path, name)]
        if fresh:
            self._changed.add(overlay.whiteouts)
        return bool(fresh)

    def follow(self, overlay: Mount, folder: str, *, hides: bool) -> None:
        """Remove our copy of a real folder that went; ``hides``: if it comes back, it stays hidden until ``look_into``.

        Raises OSError.
        """
        ours = _ours(overlay, folder)
        if not os.path.isdir(ours):  # noqa: PTH112 - names of any bytes
            return
        self._changed.add(overlay.whiteouts)
        aside = self._aside()
        if hides:
            _whiteout(f"{aside}/it")
            _exchange(f"{aside}/it", ours)
        else:
            os.rename(ours, f"{aside}/it")  # noqa: PTH104 - the same
        shutil.rmtree(aside, ignore_errors=True)

    def look_into(self, overlay: Mount, folder: str, names: Iterable[str]) -> None:
        """Show a real folder that was hidden whole, without some names. Raises OSError."""
        ours, status = _ours(overlay, folder), None
        with suppress(FileNotFoundError, NotADirectoryError):
            status = os.lstat(ours)
        if status is None or stat.S_ISDIR(status.st_mode):
            return
        self._changed.add(overlay.whiteouts)
        aside = self._aside()
        os.mkdir(f"{aside}/it")  # noqa: PTH102 - the same
        _dress(f"{aside}/it", folder)
        for name in sorted(names):
            _hide(f"{aside}/it", folder, name)
        _exchange(f"{aside}/it", ours)
        shutil.rmtree(aside, ignore_errors=True)

    def ghosts(self, overlay: Mount) -> list[str]:
        """Return the folders that ours show although they are gone."""
        found: list[str] = []
        for above, folders, _ in os.walk(overlay.whiteouts):
            real = overlay.path + above[len(overlay.whiteouts) :]
            gone = [name for name in folders if not os.path.isdir(f"{real}/{name}")]  # noqa: PTH112 - the same
            folders[:] = [name for name in folders if name not in gone]
            found += [f"{real}/{name}" for name in gone]
        return found

    def _aside(self) -> str:
        return tempfile.mkdtemp(prefix="new-", dir=self.path)


def _ours(overlay: Mount, path: str) -> str:
    return overlay.whiteouts + path[len(overlay.path) :]


def _hide(whiteouts: str, folder: str, path: str) -> bool:
    """Put a whiteout at the place of a path below ``folder``; false where one is. Raises OSError."""
    *above, name = path[len(folder) :].strip("/").split("/")
    made, real = whiteouts, folder
    for step in above:
        made, real = f"{made}/{step}", f"{real.rstrip('/')}/{step}"
        try:
            os.mkdir(made, 0o700)  # noqa: PTH102 - names of any bytes
        except FileExistsError:
            if not stat.S_ISDIR(os.lstat(made).st_mode):
                return False  # a folder above is hidden whole
            continue
        _dress(made, real)
    try:
        _whiteout(f"{made}/{name}")
    except FileExistsError:
        if stat.S_ISDIR(os.lstat(f"{made}/{name}").st_mode):
            raise  # it shows what stands below
        return False
    return True


def _whiteout(path: str) -> None:
    os.mknod(path, stat.S_IFCHR | 0o644, os.makedev(0, 0))


def _exchange(one: str, other: str) -> None:
    """Let two paths change places at once."""
    if libc().renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) != 0:
        why = ctypes.get_errno()
        raise OSError(why, os.strerror(why))


def _dress(made: str, real: str) -> None:
    """Give a folder of ours the mode of the real one that it stands for."""
    status = status_at(real)
    if status is not None:
        os.chmod(made, 0o700 | stat.S_IMODE(status.st_mode) & 0o077)  # noqa: PTH101 - names of any bytes


def _clear_if_left(folder: Path) -> None:
    """Remove the folder of a process that is gone."""
    with suppress(OSError):
        descriptor = os.open(folder, _FOLDER)
        try:
            lock(descriptor, 0.0)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(descriptor)
