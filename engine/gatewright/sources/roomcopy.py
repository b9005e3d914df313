"""Private copies of places: a process works in one, and its changes there go to the code that writes them back.

A copy holds only what the process may see: no closed name, no socket or device, of a link only its target. It is a
clone where the file system can do that. The permission table decides about each change.
"""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gatewright.base.amount import format_size
from gatewright.base.frozen import frozen
from gatewright.base.word import Word
from gatewright.policy.target import View
from gatewright.sources.protection import status_at
from gatewright.sources.roomview import Mount, MountKind, RoomViews, refuse

MAX_FILES, MAX_BYTES, MAX_DEPTH = 20_000, 1 << 30, 150
"""The most that one place may hold to be copied."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CLONE_FILE = 0x40049409
_CHUNK = 1 << 24


Mark = tuple[int, ...]
"""A value that changes once a file is another one, or was written to."""


class CopyChange(Word):
    """The change that a process made in its copy."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


@frozen
class Difference:
    """One path in which a copy changed. ``path``: in the place; ``copy``: the new file.

    ``is_stale``: the original changed too. ``original``: its mark as of the copy, None: nothing.
    """

    change: CopyChange
    path: str
    copy: str
    is_folder: bool
    is_link: bool
    is_stale: bool
    original: Mark | None = None


class PrivateCopy:
    """The copy of one place, a folder or file, below ``ours``. Raises ToolFailure for a place that is too large."""

    def __init__(self, place: str, views: RoomViews, ours: Path) -> None:
        self.place = place
        self._views = views
        self._home = tempfile.mkdtemp(prefix="copy-", dir=ours)
        self.path = f"{self._home}/it"
        self._copied: dict[str, tuple[Mark | None, Mark | None]] = {}
        """The marks of original and copy, for each path below."""
        self._bytes = 0
        try:
            self._copy_place()
            for relative, (original, _) in self._copied.items():
                self._copied[relative] = (original, _mark(self.path + relative))
        except OSError as error:
            self.remove()
            raise refuse(f"a place cannot be copied: {error.strerror}") from None
        except BaseException:
            self.remove()
            raise

    def mount(self, mount: Mount) -> Mount | None:
        """Return the mount of the copy that replaces a mount in the place; None where the copy lacks it."""
        origin = self.path + mount.path[len(self.place) :]
        if not os.path.lexists(origin):
            return None
        kind = mount.kind if mount.kind is MountKind.WRITE else MountKind.READ
        return Mount(kind, mount.path, origin=origin)

    def remove(self) -> None:
        """Remove the copy from the disk."""
        remove_tree(self._home)

    def differences(self) -> Iterator[Difference]:
        """Yield all changes since the copy: additions and changes from the top, then removals from below."""
        now = dict(self._now())
        for relative, mark in now.items():
            original, copied = self._copied.get(relative, (None, None))
            is_known = relative in self._copied
            if not is_known or not _is_same(mark, copied):
                change = CopyChange.CHANGED if is_known else CopyChange.ADDED
                yield self._difference(change, relative, mark, original)
        for relative in reversed(self._copied):
            original, copied = self._copied[relative]
            if relative not in now and copied is not None:
                yield self._difference(CopyChange.REMOVED, relative, copied, original)

    def _difference(self, change: CopyChange, relative: str, mark: Mark, original: Mark | None) -> Difference:
        mode, path = mark[0], self.place + relative
        is_stale = not _is_same(_mark(path), original)
        is_folder, is_link = stat.S_ISDIR(mode), stat.S_ISLNK(mode)
        return Difference(change, path, self.path + relative, is_folder, is_link, is_stale, original)

    def _now(self) -> Iterator[tuple[str, Mark]]:
        """Yield every path of the copy, inside folders too that the process closed to us."""
        inner = [""]
        while inner:
            relative = inner.pop()
            if relative.count("/") > MAX_DEPTH + 1:
                raise refuse("folders in a private copy are nested too deeply")
            path = self.path + relative
            mark = _mark(path)
            if mark is None:
                continue
            yield relative, mark
            if stat.S_ISDIR(mark[0]):
                if mark[0] & 0o500 != 0o500:
                    os.chmod(path, 0o700)  # noqa: PTH101 - names of any bytes
                inner += sorted((f"{relative}/{name}" for name in os.listdir(path)), reverse=True)  # noqa: PTH208

    def _copy_place(self) -> None:
        above, name = os.path.split(self.place)
        with _open(above, _FOLDER) as folder, _open(self._home, _FOLDER) as home:
            status = os.lstat(name, dir_fd=folder)
            if stat.S_ISDIR(status.st_mode):
                self._copy_folder("", name, folder, "it", home, 0)
            elif self._views.view(self.place, folder=False) is not View.ABSENT:
                self._copy_one("", name, folder, "it", home, status)

    def _copy_folder(self, relative: str, name: str, above: int, target: str, home: int, depth: int) -> bool:
        """Copy a folder, and tell whether the process sees anything of it."""
        view = self._views.folder(self.place + relative)
        if depth > MAX_DEPTH or (view.is_settled and {view.own, view.generic} == {View.ABSENT}):
            return False
        try:
            source = os.open(name, _FOLDER, dir_fd=above)
        except PermissionError:
            return False
        try:
            status = os.fstat(source)
            self._count(relative, status)
            os.mkdir(target, 0o700, dir_fd=home)
            is_seen = view.own is not View.ABSENT or view.generic is not View.ABSENT
            with _open(target, _FOLDER, home) as into:
                is_seen |= self._copy_names(relative, source, into, depth)
                os.fchmod(into, stat.S_IMODE(status.st_mode) & 0o777 | 0o700)
                os.utime(into, ns=(status.st_atime_ns, status.st_mtime_ns))
        finally:
            os.close(source)
        if not is_seen:
            os.rmdir(target, dir_fd=home)
            del self._copied[relative]
        return is_seen

    def _copy_names(self, relative: str, source: int, into: int, depth: int) -> bool:
        with os.scandir(source) as entries:
            names = sorted(entry.name for entry in entries)
        is_seen = False
        for name, view in zip(names, self._views.names(self.place + relative, names), strict=True):
            status = os.lstat(name, dir_fd=source)
            inner = f"{relative}/{name}"
            if stat.S_ISDIR(status.st_mode):
                is_seen |= self._copy_folder(inner, name, source, name, into, depth + 1)
            elif view is not View.ABSENT:
                is_seen |= self._copy_one(inner, name, source, name, into, status)
        return is_seen

    def _copy_one(self, relative: str, name: str, source: int, target: str, into: int, status: os.stat_result) -> bool:
        """Copy a file or link; false for anything else."""
        if stat.S_ISLNK(status.st_mode):
            self._count(relative, status)
            os.symlink(os.readlink(name, dir_fd=source), target, dir_fd=into)
            return True
        if not stat.S_ISREG(status.st_mode):
            return False
        with _open(name, _FILE, source) as original:
            status = os.fstat(original)
            if not stat.S_ISREG(status.st_mode):
                return False
            self._count(relative, status)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with _open(target, flags, into) as copy:
                _copy_bytes(original, copy, status.st_size)
                os.fchmod(copy, stat.S_IMODE(status.st_mode) & 0o777 | 0o600)
                os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
        return True

    def _count(self, relative: str, status: os.stat_result) -> None:
        self._copied[relative] = (mark_of(status), None)
        self._bytes += status.st_size if stat.S_ISREG(status.st_mode) else 0
        if len(self._copied) > MAX_FILES or self._bytes > MAX_BYTES:
            most = f"{MAX_FILES:,} files and {format_size(MAX_BYTES)}"
            raise refuse(f"a place is too large to be copied: at most {most}")


@contextmanager
def _open(name: str, flags: int, folder: int | None = None) -> Generator[int]:
    descriptor = os.open(name, flags, 0o600, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _copy_bytes(original: int, copy: int, size: int) -> None:
    """Clone an open file, or copy as much of it as it held at the first look."""
    with suppress(OSError):
        fcntl.ioctl(copy, _CLONE_FILE, original)
        return
    while size > 0 and (held := os.read(original, min(size, _CHUNK))):
        size -= len(held)
        at = 0
        while at < len(held):
            at += os.write(copy, held[at:])


def _mark(path: str) -> Mark | None:
    status = status_at(path)
    return None if status is None else mark_of(status)


def remove_tree(folder: str) -> None:
    """Remove a folder that a program may have changed in any way: of any depth, and closed to its owner."""
    for command in (("chmod", "-R", "u+rwX"), ("rm", "-rf", "--one-file-system")):
        subprocess.run([*command, "--", folder], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def mark_of(status: os.stat_result) -> Mark:
    """Return the mark of a file; the names in a folder have their own."""
    is_folder = stat.S_ISDIR(status.st_mode)
    times = () if is_folder else (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return status.st_mode, status.st_dev, status.st_ino, *times


def _is_same(one: Mark | None, other: Mark | None) -> bool:
    """Tell whether two marks are of one thing that nobody changed; names in a folder are marks of their own."""
    if one is None or other is None:
        return one is other
    return (stat.S_ISDIR(one[0]) and stat.S_ISDIR(other[0])) or one == other
