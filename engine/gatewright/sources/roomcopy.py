"""The folders that we make for a room: private copies of places, and whiteouts that hide names in an overlay.

A whiteout is a character device 0/0 in the place of a hidden name. The folders above it look like the real ones, since
the overlay shows them instead; when a real folder is removed, ours is removed too.

A copy contains only what the process may see: no closed name, no socket or device, and of a link only its target. A
file is cloned if the file system can do that. The permission table decides about each change.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path

from gatewright.base.amount import format_size
from gatewright.base.file import lock
from gatewright.base.frozen import frozen
from gatewright.policy.target import View
from gatewright.policy.verdict import Word
from gatewright.sources.ground import status_at
from gatewright.sources.roomview import Mount, MountKind, RoomViews, refuse

_PATIENCE_S = 5.0
_NAME = "gatewright-rooms"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_HERE, _EXCHANGE = -100, 2


@cache
def libc() -> ctypes.CDLL:
    """Return the C library, for calls that Python lacks."""
    return ctypes.CDLL(None, use_errno=True)


def homes() -> tuple[str, ...]:
    """Make and return our folders for whiteouts, which must not lie in what they hide.

    Folders of other users do not count, since their names can be guessed.
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
    """The whiteout folders of one process; the first use removes those of killed processes from ``cache``."""

    def __init__(self, cache: Path) -> None:
        one_at_a_time = os.open(cache / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            lock(one_at_a_time, _PATIENCE_S)
            for left in cache.glob("run-*"):
                _clear_if_left(left)
            self.path = Path(tempfile.mkdtemp(prefix="run-", dir=cache))
            self._held = os.open(self.path, _FOLDER)  # programs that clear temporary folders spare a locked one
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
        """Hide paths in an overlay in use, and return True if any is new. Raises OSError."""
        fresh = [name for name in sorted(names) if _hide(overlay.whiteouts, overlay.path, name)]
        if fresh:
            self._changed.add(overlay.whiteouts)
        return bool(fresh)

    def follow(self, overlay: Mount, folder: str, *, hides: bool) -> None:
        """Remove our copy of a real folder that is gone; if it returns, it stays hidden (``hides``) until
        ``look_into``. Raises OSError.
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
        """Show a real folder that was hidden as a whole, without some names. Raises OSError."""
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
        """Return the folders that exist only among ours, since the real ones are gone."""
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
    """Put a whiteout in the place of a path below ``folder``; false if it has one. Raises OSError."""
    *above, name = path[len(folder) :].strip("/").split("/")
    made, real = whiteouts, folder
    for step in above:
        made, real = f"{made}/{step}", f"{real.rstrip('/')}/{step}"
        try:
            os.mkdir(made, 0o700)  # noqa: PTH102 - names of any bytes
        except FileExistsError:
            if not stat.S_ISDIR(os.lstat(made).st_mode):
                return False  # a folder above is hidden as a whole
            continue
        _dress(made, real)
    try:
        _whiteout(f"{made}/{name}")
    except FileExistsError:
        if stat.S_ISDIR(os.lstat(f"{made}/{name}").st_mode):
            raise  # it hides only what lies below
        return False
    return True


def _whiteout(path: str) -> None:
    os.mknod(path, stat.S_IFCHR | 0o644, os.makedev(0, 0))


def _exchange(one: str, other: str) -> None:
    """Swap two paths in one step."""
    if libc().renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) != 0:
        why = ctypes.get_errno()
        raise OSError(why, os.strerror(why))


def _dress(made: str, real: str) -> None:
    """Give one of our folders the mode of the real folder that it stands for."""
    status = status_at(real)
    if status is not None:
        os.chmod(made, 0o700 | stat.S_IMODE(status.st_mode) & 0o077)  # noqa: PTH101 - names of any bytes


def _clear_if_left(folder: Path) -> None:
    """Remove the folder of a dead process."""
    with suppress(OSError):
        descriptor = os.open(folder, _FOLDER)
        try:
            lock(descriptor, 0.0)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(descriptor)


MAX_FILES, MAX_BYTES, MAX_DEPTH = 20_000, 1 << 30, 150
"""The most files, bytes and levels of folders in a place that is copied."""
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CLONE_FILE = 0x40049409
_CHUNK = 1 << 24


Mark = tuple[int, ...]
"""A value that changes once a file is replaced or written to."""


class CopyChange(Word):
    """The change that a process made in its copy."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


@frozen
class Difference:
    """One path in which a copy changed. ``path``: in the place; ``copy``: the new file.

    ``is_stale``: the original changed too. ``original``: its mark when it was copied, None if it did not exist.
    """

    change: CopyChange
    path: str
    copy: str
    is_folder: bool
    is_link: bool
    is_stale: bool
    original: Mark | None = None


class PrivateCopy:
    """The copy of one place, a folder or file, below our folder ``ours``.

    Raises ToolFailure for a place that is too large.
    """

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
        """Return the mount of the copy in place of a mount in the original; None if the copy lacks it."""
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
        """Yield every path of the copy, even inside folders that the process closed to us."""
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
        """Copy a folder, and return True if the process sees anything of it."""
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
    """Clone an open file, or copy as many bytes as it had at the first look."""
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
    """Remove a folder that a program may have changed in any way: nested to any depth, or closed to its owner."""
    for command in (("chmod", "-R", "u+rwX"), ("rm", "-rf", "--one-file-system")):
        subprocess.run([*command, "--", folder], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def mark_of(status: os.stat_result) -> Mark:
    """Return the mark of a file; that of a folder leaves out its times, since each name in it has a mark of its own."""
    is_folder = stat.S_ISDIR(status.st_mode)
    times = () if is_folder else (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return status.st_mode, status.st_dev, status.st_ino, *times


def _is_same(one: Mark | None, other: Mark | None) -> bool:
    """Tell whether nothing changed between two marks; any two folders count as the same."""
    if one is None or other is None:
        return one is other
    return (stat.S_ISDIR(one[0]) and stat.S_ISDIR(other[0])) or one == other
