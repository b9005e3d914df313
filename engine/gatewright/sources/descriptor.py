"""Reaches files below a base folder by descriptors only, component by component.

Each folder on the way opens relative to the folder above it, never through a symlink, and a file is examined, read or
replaced through the descriptor of its folder. So the checked object is the one in use, whoever swaps names meanwhile.
Symlinks are not followed, not even inside the base. A regular file with a second name (hard link) is refused, since
nobody can show that its other names lie inside. FIFOs, sockets and devices are refused without opening them. If the
file system treats two spellings as one name (``A`` and ``a``), only the spelling on disk counts.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from operator import attrgetter

from gatewright.base.errors import ToolFailure
from gatewright.base.file import lock
from gatewright.base.frozen import frozen
from gatewright.sources.basefolder import (
    FOLDER,
    PASS_THROUGH,
    BaseFolder,
    failure_of,
    failures,
    plain,
    refuse_other_spelling,
)
from gatewright.sources.filetext import sweep, temporary_name

Identity = tuple[int, int]
"""Device and inode."""

CONFLICT = "file modified externally, use file load to refresh"
_BUSY_S = 5.0
_VERSION = attrgetter("st_dev", "st_ino", "st_size", "st_mtime_ns", "st_nlink")
"""A value that changes once a file is replaced, is written to, or has another number of names."""
_FILE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


@frozen
class Standing:
    """The entry at a path: its metadata (None: nothing), the identities of the folders on the way, and its own."""

    status: os.stat_result | None
    identities: tuple[Identity, ...]
    is_folder: bool = False

    @property
    def exists(self) -> bool:
        """True if something exists at the path."""
        return self.status is not None


def identity_of(status: os.stat_result) -> Identity:
    """Return device and inode of a file."""
    return (status.st_dev, status.st_ino)


def unusable(status: os.stat_result) -> ToolFailure | None:
    """Return the reason why no call may use an entry other than a folder, or None."""
    mode = status.st_mode
    if stat.S_ISLNK(mode):
        return ToolFailure("the path leads through a symbolic link, which is not followed", code="symlink")
    if not stat.S_ISREG(mode):
        return ToolFailure("this is neither a file nor a folder but a device, pipe or socket", code="special-file")
    if status.st_nlink > 1:
        return ToolFailure("the file has a second name (hard link), perhaps outside the source", code="hard-link")
    return None


@contextmanager
def open_folder(
    base: BaseFolder, parts: tuple[str, ...], *, make: bool = False, passed: list[Identity] | None = None
) -> Generator[int]:
    """Open a folder below ``base``; ``make`` creates missing ones. Raises ToolFailure.

    ``passed`` receives the identities of every folder on the way as it opened, that of the folder itself last.
    """
    descriptor = base.open()
    try:
        if passed is not None:
            passed.append(identity_of(os.fstat(descriptor)))
        for name in parts:
            if make:
                with suppress(FileExistsError), failures(FileExistsError):
                    os.mkdir(name, dir_fd=descriptor)
            try:
                deeper = os.open(name, PASS_THROUGH, dir_fd=descriptor)
            except OSError as error:
                if error.errno in {errno.ENOTDIR, errno.ELOOP}:
                    raise _not_passable(status_of(descriptor, name)) from None
                raise failure_of(error) from None
            os.close(descriptor)
            descriptor = deeper
            if passed is not None:
                passed.append(identity_of(os.fstat(descriptor)))
        yield descriptor
    finally:
        os.close(descriptor)


def look_from_top(absolute: str) -> Standing:
    """Look at an absolute path on disk, whatever source it lies in. Raises ToolFailure as ``look`` does."""
    return look(_top(), tuple(filter(None, absolute.split("/"))))


@cache
def _top() -> BaseFolder:
    return BaseFolder("/")


def look(base: BaseFolder, parts: tuple[str, ...]) -> Standing:
    """Look at a path by names alone, which is enough to decide; every use goes through descriptors again.

    Raises ToolFailure if the way does not consist of plain folders.
    """
    return look_along(steps_of(base.path, parts), base)


def steps_of(base: str, parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the paths of ``base`` and of every component below it."""
    steps, path = [base], base.rstrip("/")
    for name in parts:
        path = f"{path}/{name}"
        steps.append(path)
    return tuple(steps)


def without_dots(parts: Iterable[str]) -> tuple[str, ...] | None:
    """Resolve ``..`` in the parts of a path; None if they lead above its beginning.

    The text decides: since no link is followed, it agrees with the disk.
    """
    kept: list[str] = []
    for part in parts:
        if part != "..":
            kept.append(part)
        elif kept:
            kept.pop()
        else:
            return None
    return tuple(kept)


def look_along(steps: tuple[str, ...], base: BaseFolder) -> Standing:
    """Look at the last of ``steps``; each step must first prove to be a plain folder.

    The first is the path of ``base``. Raises ToolFailure as ``look`` does.
    """
    identity = base.known_identity or base.identity()
    passed: list[Identity] = []
    lstat, is_folder, is_elsewhere = os.lstat, stat.S_ISDIR, base.place is not base.path
    status: os.stat_result | None = None
    ends = False
    try:
        for step in steps:
            path = base.place_of(step) if is_elsewhere else step
            above, status = status, lstat(path)
            found = (status.st_dev, status.st_ino)
            if above is None:
                if found != identity:
                    base.check(status)
            elif not (path.isascii() and plain.get(passed[-1]) == above.st_ctime_ns):
                refuse_other_spelling(path, status, above)
            passed.append(found)
            if ends := not is_folder(status.st_mode):
                break
    except FileNotFoundError as error:
        if not passed:
            raise base.failure(error) from None
        return Standing(None, tuple(passed))
    except OSError as error:
        raise failure_of(error) if passed else base.failure(error) from None
    if len(passed) < len(steps):
        raise _not_passable(status)
    return Standing(status, tuple(passed), not ends)


def read_bytes(folder: int, name: str, limit: int) -> tuple[bytes, os.stat_result]:
    """Read a regular file of at most ``limit`` bytes, and its metadata. Raises ToolFailure."""
    status = status_of(folder, name)
    if status is None:
        raise ToolFailure("there is no such file", code="not-found")
    _refuse_unusable(status)
    with failures():
        descriptor = os.open(name, os.O_RDONLY | _FILE, dir_fd=folder)
        try:
            status = os.fstat(descriptor)
            _refuse_unusable(status)
            with os.fdopen(descriptor, "rb", closefd=False) as stream:
                content = stream.read(limit + 1)
        finally:
            os.close(descriptor)
    if len(content) > limit:
        raise ToolFailure(f"the file is larger than the limit of {limit:,} bytes", code="too-large")
    return content, status


def write_new(folder: int, name: str, content: bytes) -> None:
    """Write a new file; an existing one is never overwritten. Raises ToolFailure."""
    try:
        with failures(FileExistsError):
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE, 0o666, dir_fd=folder))
    except FileExistsError:
        raise exists_failure() from None
    try:
        status = status_of(folder, name)
        if status is None:
            raise ToolFailure("the new file vanished at once", code="not-found")
        replace_bytes(folder, name, content, status)
    except BaseException:
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)
        raise


def exists_failure() -> ToolFailure:
    """Return the failure for a new file whose path is in use."""
    return ToolFailure("there is something at that path, and it is never overwritten", code="exists")


def folder_failure() -> ToolFailure:
    """Return the failure for a folder that a call tries to remove as a file."""
    return ToolFailure("this is a folder, and folders are not removed", code="is-a-folder")


def replace_bytes(folder: int, name: str, content: bytes, seen: os.stat_result) -> None:
    """Replace a file by ``content`` in one step, mode kept, if it is still the one ``seen``. Raises ToolFailure."""
    _refuse_unusable(seen)
    if not os.access(name, os.W_OK, dir_fd=folder):
        raise ToolFailure("the file is write-protected", code="no-access")
    sweep(folder)
    temporary = temporary_name(name)
    with failures():
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE, 0o600, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
                stream.flush()
                _keep_mode_and_owner(stream.fileno(), seen)
                os.fsync(stream.fileno())
            now = status_of(folder, name)
            if now is None or _VERSION(now) != _VERSION(seen):
                raise ToolFailure(CONFLICT, code="conflict")
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
    sync_folder(folder)


def remove(folder: int, name: str, *, sync: bool = True) -> bool:
    """Remove a regular file, and return True if it existed. Raises ToolFailure for a folder and anything else."""
    status = status_of(folder, name)
    if status is None:
        return False
    if stat.S_ISDIR(status.st_mode):
        raise folder_failure()
    _refuse_unusable(status)
    with failures():
        os.unlink(name, dir_fd=folder)
    if sync:
        sync_folder(folder)
    return True


def remove_folder(folder: int, name: str) -> None:
    """Remove an empty folder, never through a link. Raises ToolFailure."""
    with failures():
        os.rmdir(name, dir_fd=folder)
    sync_folder(folder)


def status_of(folder: int, name: str) -> os.stat_result | None:
    """Return the metadata of an entry (of a link itself); None if it is missing. Raises ToolFailure."""
    try:
        with failures(FileNotFoundError):
            return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


@contextmanager
def entries_of(
    base: BaseFolder, parts: tuple[str, ...], *, passed: list[Identity] | None = None
) -> Generator[Iterator[os.DirEntry[str]]]:
    """Yield the entries of a folder through its descriptor; their ``stat(follow_symlinks=False)`` works inside the
    context. Raises ToolFailure.
    """
    with open_folder(base, parts, passed=passed) as passing, failures():
        descriptor = os.open(".", FOLDER, dir_fd=passing)
        try:
            with os.scandir(descriptor) as entries:
                yield entries
        finally:
            os.close(descriptor)


@contextmanager
def alone_in(folder: int) -> Generator[None]:
    """Keep other processes of ours from replacing files in the folder meanwhile, whatever stores they use.

    If the folder cannot be locked, only the last look before a file is replaced protects the file. Raises ToolFailure.
    """
    try:
        descriptor = os.open(".", FOLDER, dir_fd=folder)
    except OSError:
        yield
        return
    try:
        try:
            lock(descriptor, _BUSY_S)
        except BlockingIOError:
            raise ToolFailure("another program holds this folder: try again", code="busy") from None
        except OSError as error:
            if error.errno not in {errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF}:
                raise ToolFailure("another program holds this folder: try again", code="busy") from None
        yield
    finally:
        os.close(descriptor)


def sync_folder(folder: int) -> None:
    """Make renames in a folder durable, as far as the file system allows."""
    with suppress(OSError):
        descriptor = os.open(".", FOLDER, dir_fd=folder)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _not_passable(status: os.stat_result | None) -> ToolFailure:
    if status is not None and stat.S_ISLNK(status.st_mode):
        return ToolFailure("the path leads through a symbolic link, which is not followed", code="symlink")
    return ToolFailure("a part of the path is not a folder", code="not-a-folder")


def _refuse_unusable(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise ToolFailure("this is a folder, not a file", code="is-a-folder")
    failure = unusable(status)
    if failure is not None:
        raise failure


def _keep_mode_and_owner(descriptor: int, seen: os.stat_result) -> None:
    mode = stat.S_IMODE(seen.st_mode)
    try:
        if (seen.st_uid, seen.st_gid) != (os.geteuid(), os.getegid()):
            os.fchown(descriptor, seen.st_uid, seen.st_gid)
    except PermissionError:
        mode &= 0o777  # this process cannot pass on the rights of another owner
    os.fchmod(descriptor, mode)
