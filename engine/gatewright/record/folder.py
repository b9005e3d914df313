"""A folder that holds the program's own records, state or keys, and the one way to open what lies there.

Whoever hands over a workspace hands over its state folder too, so a name there is not taken for what it says: a
symbolic link (the folder itself included), a file that has a second name elsewhere, a pipe, a device or a folder in the
place of a file is refused, and nothing is made through one. What lies above the folder is the user's and may be links.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from gatewright.base.atomicfile import write_atomically
from gatewright.base.filelock import lock

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
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
        os.close(self._descriptor())

    def require_real(self) -> None:
        """Raises OSError when something else than a folder lies here; nothing may lie here."""
        with suppress(FileNotFoundError):
            os.close(self._descriptor())

    def look(self, name: str) -> os.stat_result | None:
        """The facts of the file of that name; None when there is none."""
        try:
            folder = self._descriptor()
        except FileNotFoundError:
            return None
        try:
            facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        finally:
            os.close(folder)
        _require_plain(facts, self.path / name)
        return facts

    def open(self, name: str, flags: int = os.O_RDONLY) -> int:
        """A descriptor of the file of that name. Raises FileNotFoundError when there is none and none is to be made."""
        self.look(name)  # a device is not even opened
        folder = self._descriptor()
        try:
            flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(name, flags, 0o600, dir_fd=folder)
        finally:
            os.close(folder)
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
            folder = self._descriptor()
        except FileNotFoundError:
            return False
        try:
            os.unlink(name, dir_fd=folder)
        except FileNotFoundError:
            return False
        finally:
            os.close(folder)
        return True

    def names(self) -> list[str]:
        """What lies in the folder, sorted; nothing when there is no folder."""
        try:
            folder = self._descriptor()
        except FileNotFoundError:
            return []
        try:
            return sorted(os.listdir(folder))  # noqa: PTH208 - of a descriptor
        finally:
            os.close(folder)

    @contextmanager
    def locked(self) -> Generator[None]:
        """No other process does the same meanwhile. Raises BlockingIOError when one does so for too long."""
        folder = self._descriptor()
        try:
            lock(folder, _PATIENCE_S)
            yield
        finally:
            os.close(folder)

    def _descriptor(self) -> int:
        above = None if self._within is None else self._within._descriptor()
        try:
            name = self.path if above is None else self.path.name
            facts = os.stat(name, dir_fd=above, follow_symlinks=False)
            if stat.S_ISLNK(facts.st_mode):
                raise _refused(self.path, "it is a symbolic link, which is not followed")
            return os.open(name, _FOLDER, dir_fd=above)
        finally:
            if above is not None:
                os.close(above)


def _require_plain(facts: os.stat_result, path: Path) -> None:
    if stat.S_ISLNK(facts.st_mode):
        raise _refused(path, "it is a symbolic link, which is not followed")
    if not stat.S_ISREG(facts.st_mode):
        raise _refused(path, "it is not a plain file")
    if facts.st_nlink > 1:
        raise _refused(path, "it has a second name elsewhere (a hard link)")


def _refused(path: Path, why: str) -> OSError:
    return OSError(errno.EPERM, why, str(path))
