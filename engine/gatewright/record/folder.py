"""A folder that holds the program's own records, state or keys, and the one way to open what lies there.

Whoever hands over a workspace hands over its state folder too, so a name there is not taken for what it says: a
symbolic link (the folder itself included), a file that has a second name elsewhere, a pipe, a device or a folder in the
place of a file is refused, and nothing is made through one. What lies above the folder is the user's and may be links.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from gatewright.base.atomicfile import write_atomically
from gatewright.base.filelock import lock

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
