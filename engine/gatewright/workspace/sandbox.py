"""A disposable copy of a workspace, to run calls in; its folders are clones if the file system can make them.

It has more than 450 lines because what a copy contains and what it leaves out is one promise.

Copying opens each folder from the one above and never through a link, so that it copies exactly the content of the
sources. Links stay links but never lead out of the copy; a hard link becomes an empty file with a second name; pipes,
sockets and devices are omitted; an unreadable entry becomes an empty, unreadable one.

The copy has the edited policy, the folders of its sources and roots, the manifests of its catalogs, the present blocks
and notes, and its own state and key folder: standing approvals, counts and the log stay behind. Its files have the
names of the original (`Ground`), so paths, labels and decisions are the same. The process that made it keeps a lock on
its folder; without the lock the process has died, and any other may remove the copy.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar

from gatewright.base.errors import ToolFailure, WorkspaceError
from gatewright.base.file import lock
from gatewright.base.frozen import frozen
from gatewright.gate import STATE_FOLDER
from gatewright.memory.block_store import FILE_NAME as BLOCKS
from gatewright.memory.blocktable import copy_store
from gatewright.memory.notes import NoteBook
from gatewright.record.folder import HomeSeal
from gatewright.sources.basefolder import FOLDER, PASS_THROUGH, BaseFolder
from gatewright.sources.ground import Ground, place_file
from gatewright.sources.manager import SourceManager

MAX_COPY_BYTES = 256 * 1024 * 1024
"""The most bytes to really copy; clones share their bytes with the original and do not count."""
MAX_COPY_FILES = 250_000
MAX_COPY_DEPTH = 128
MAX_NAMED = 20
_PIECE = 1024 * 1024
_FICLONE = 0x40049409
_CHANGED = frozenset({errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.EINVAL, errno.ENXIO})
_CANNOT_CLONE = frozenset({errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EPERM})
NOWHERE, _SECOND_NAME = "outside", "second-name"


class CopyCancelled(WorkspaceError):
    """The caller cancelled the copy; nothing of it remains."""


@frozen
class CopyWatch:
    """Follows a copy:

    ``cancelled`` is called before every entry and piece, ``progress`` with files and bytes after every file.
    """

    cancelled: Callable[[], bool] = lambda: False
    progress: Callable[[int, int], None] = lambda files, size: None  # noqa: ARG005 - nobody watches

    def stop_if_cancelled(self) -> None:
        """Raise CopyCancelled if the caller has cancelled the copy."""
        if self.cancelled():
            raise CopyCancelled("the copy was cancelled")


@frozen
class Copied:
    """The result of a copy. ``cloned``: files that share their bytes with the original.

    ``links_cut``: links that led outside and now lead nowhere. ``unread``: unreadable entries, which are empty in the
    copy. Both lists have at most twenty entries, by relative path.
    """

    files: int
    bytes: int
    cloned: int
    links_cut: tuple[str, ...]
    unread: tuple[str, ...]


def clone(source: int, target: int) -> bool:
    """Let an empty file share the bytes of another until a write to either. False if impossible."""
    if sys.platform != "linux":
        return False
    import fcntl

    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError as error:
        if error.errno in _CANNOT_CLONE:
            return False
        raise
    return True


@dataclass(slots=True)
class FolderCopy:
    """One run that copies from below ``origin`` (a real path) to below ``target``, with its limits."""

    origin: Path
    target: Path
    left_out: Collection[str] = ()
    left_out_names: Collection[str] = ()
    watch: CopyWatch = field(default_factory=CopyWatch)
    clone: Callable[[int, int], bool] = clone
    _files: int = 0
    _bytes: int = 0
    _cloned: int = 0
    _tries_clones: bool = True
    _links_cut: list[str] = field(default_factory=list[str])
    _unread: list[str] = field(default_factory=list[str])

    def copy(self, bases: Sequence[BaseFolder]) -> Copied:
        """Copy these folders, each once and whole. Raises WorkspaceError, OSError."""
        paths = {Path(base.path): base for base in bases}
        for path in paths:
            if not path.is_relative_to(self.origin):
                raise WorkspaceError(f"the folder `{path}` is outside the workspace; a copy would not hold it")
        for path, base in paths.items():
            inside_another = any(path != other and path.is_relative_to(other) for other in paths)
            if not inside_another and path.is_dir():
                target = self.target / path.relative_to(self.origin)
                target.parent.mkdir(parents=True, exist_ok=True)
                with _open_base(base) as folder:
                    self._folder(folder, path, target, MAX_COPY_DEPTH)
        return Copied(self._files, self._bytes, self._cloned, tuple(self._links_cut), tuple(self._unread))

    def spend(self, size: int) -> None:
        """Count bytes against the limit. Raises WorkspaceError."""
        self._bytes += size
        if self._bytes > MAX_COPY_BYTES:
            limit = f"{MAX_COPY_BYTES // 1024 // 1024} MiB"
            raise WorkspaceError(
                f"the workspace is too large for a disposable copy: more than {limit}, and this file system cannot "
                "share the bytes of files"
            )

    def _folder(self, folder: int, origin: Path, target: Path, depth: int) -> None:
        """Copy an open folder; ``folder`` is its descriptor, and ``origin`` only names it from now on."""
        if depth == 0:
            raise WorkspaceError(f"folders are nested too deeply for a disposable copy (more than {MAX_COPY_DEPTH})")
        target.mkdir(exist_ok=True)
        mode = stat.S_IMODE(os.fstat(folder).st_mode)
        try:
            readable = os.open(".", FOLDER, dir_fd=folder)
        except PermissionError:
            self._note(self._unread, origin)
            target.chmod(mode)
            return
        try:
            with os.scandir(readable) as entries:
                for entry in entries:
                    self.watch.stop_if_cancelled()
                    self._entry(entry, readable, origin, target, depth)
        finally:
            os.close(readable)
        target.chmod(mode)

    def _entry(self, entry: os.DirEntry[str], folder: int, origin: Path, target: Path, depth: int) -> None:
        here, goal = origin / entry.name, target / entry.name
        if entry.is_symlink():
            self._link(folder, here, goal)
        elif entry.is_dir(follow_symlinks=False):
            if entry.name in self.left_out_names or str(here) in self.left_out:
                return
            deeper = _open(entry.name, PASS_THROUGH, folder)
            if deeper is not None:
                try:
                    self._folder(deeper, here, goal, depth - 1)
                finally:
                    os.close(deeper)
        elif entry.is_file(follow_symlinks=False):
            self._file(folder, here, goal)

    def _file(self, folder: int, origin: Path, goal: Path) -> None:
        self._files += 1
        if self._files > MAX_COPY_FILES:
            limit = f"{MAX_COPY_FILES:,} files"
            raise WorkspaceError(f"the workspace is too large for a disposable copy: more than {limit}")
        try:
            source = _open(origin.name, os.O_RDONLY | _FLAGS, folder)
        except PermissionError:
            self._note(self._unread, origin)
            goal.touch(mode=0)
            return
        if source is None:
            return
        try:
            self._content(source, goal)
        finally:
            os.close(source)
        self.watch.progress(self._files, self._bytes)

    def _content(self, source: int, goal: Path) -> None:
        status = os.fstat(source)
        if not stat.S_ISREG(status.st_mode):
            return  # something else has taken its place meanwhile
        if status.st_nlink > 1:
            self._second_name(goal)
            return
        target = os.open(goal, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
        try:
            if status.st_size and not self._share(source, target):
                while piece := os.read(source, _PIECE):
                    self.watch.stop_if_cancelled()
                    self.spend(len(piece))
                    _write(target, piece)
            os.fchmod(target, stat.S_IMODE(status.st_mode))
            os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
        finally:
            os.close(target)

    def _second_name(self, goal: Path) -> None:
        """Make an empty file with a second name beside the copy, so that tools refuse it like the original."""
        other = self.target.parent / _SECOND_NAME
        try:
            other.touch()
            goal.hardlink_to(other)
        except OSError as error:
            if error.errno != errno.EMLINK:
                raise
            other.unlink()  # the file has its maximum of names
            other.touch()
            goal.hardlink_to(other)

    def _share(self, source: int, target: int) -> bool:
        self._tries_clones = self._tries_clones and self.clone(source, target)
        self._cloned += self._tries_clones
        return self._tries_clones

    def _link(self, folder: int, origin: Path, goal: Path) -> None:
        """Make the same link if it stays inside; else a link to a missing place, outside as well."""
        try:
            written = Path(os.readlink(origin.name, dir_fd=folder))
        except OSError as error:
            if error.errno in _CHANGED:
                return
            raise
        leads_to = Path(os.path.normpath(origin.parent / written))
        if leads_to.is_relative_to(self.origin):
            inside = self.target / leads_to.relative_to(self.origin)
            goal.symlink_to(inside if written.is_absolute() else os.path.relpath(inside, goal.parent))
            return
        self._note(self._links_cut, origin)
        goal.symlink_to(self.target.parent / NOWHERE / str(leads_to).lstrip(os.sep))

    def _note(self, names: list[str], path: Path) -> None:
        if len(names) < MAX_NAMED:
            names.append(path.relative_to(self.origin).as_posix())


def _open(name: str, flags: int, folder: int) -> int | None:
    """Open an entry; None if it vanished or changed its type since its folder was read."""
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno in _CHANGED:
            return None
        raise


@contextmanager
def _open_base(base: BaseFolder) -> Generator[int]:
    try:
        descriptor = base.open()
    except ToolFailure as failure:
        raise WorkspaceError(f"`{base.path}`: {failure}") from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


_FLAGS = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"))


def _write(target: int, piece: bytes) -> None:
    rest = memoryview(piece)
    while rest:
        rest = rest[os.write(target, rest) :]


__all__ = ["CopyCancelled", "CopyWatch", "Sandbox", "remove_dead_copies"]

_PREFIX = "gatewright-sandbox-"
_TRIES = 5


class Original(Protocol):
    """The parts of a workspace that a copy needs."""

    policy_path: Path
    folder: Path

    @property
    def state_folder(self) -> Path:
        """The folder of its blocks."""
        ...

    @property
    def key_folder(self) -> Path:
        """The folder of their keys."""
        ...

    @property
    def notes(self) -> NoteBook:
        """The notes of all users."""
        ...

    @property
    def sources(self) -> SourceManager:
        """The sources behind its blocks."""
        ...

    def close(self) -> None:
        """Close it."""


Opened = TypeVar("Opened", bound=Original)


class Sandbox(Generic[Opened]):
    """A copy in a temporary folder until ``close``; ``copied`` is the result of copying, ``workspace`` the copy.

    ``files``: other files that the policy names, by relative path, as they were read. ``left_out``: folders that are
    never copied (state and keys). ``watch``: follows the progress, and may stop the copy.
    """

    def __init__(
        self,
        origin: Original,
        text: str,
        bases: Sequence[BaseFolder],
        open_copy: Callable[[Ground, Path, Path], Opened],
        *,
        files: Mapping[str, bytes] = MappingProxyType({}),
        left_out: Sequence[Path] = (),
        watch: CopyWatch | None = None,
    ) -> None:
        watch = watch or CopyWatch()
        remove_dead_copies(origin.state_folder)
        self._holder, self._lock = _holder(origin.state_folder, origin.folder)
        try:
            self.folder = self._holder / "workspace"
            self.folder.mkdir()
            real = [os.path.realpath(path) for path in left_out]
            original = os.path.realpath(origin.folder)
            run = FolderCopy(Path(original), self.folder, real, {STATE_FOLDER}, watch)
            self.copied: Copied = run.copy(bases)
            copy = self.folder / origin.policy_path.name
            copy.unlink(missing_ok=True)  # a base may have brought it along, perhaps as a link
            copy.write_bytes(text.encode("utf-8"))
            for name, content in files.items():
                place_file(self.folder, name, content)
            ground = Ground(original, str(self.folder), str(self._holder / NOWHERE))
            self.workspace = open_copy(ground, self._holder / "state", self._holder / "keys")
            self._run = run
            _copy_memory(origin, self.workspace, run)
        except OSError as error:
            self._remove()
            where = f" at `{error.filename}`" if isinstance(error.filename, str) else ""
            raise WorkspaceError(f"cannot copy the workspace{where}: {error.strerror or error}") from None
        except BaseException:
            self._remove()
            raise

    def hand_memory_to(self, other: Original) -> None:
        """Give the copy's blocks and notes to a workspace opened on its folder. Raises WorkspaceError."""
        _copy_memory(self.workspace, other, self._run)

    def close(self) -> None:
        """Delete the copy."""
        self.workspace.close()
        self._remove()

    def _remove(self) -> None:
        _remove_all(self._holder)
        os.close(self._lock)


def remove_dead_copies(state: Path) -> None:
    """Remove the copies of dead processes, among temporary files and beside a workspace's state."""
    for place in (Path(tempfile.gettempdir()), state):
        for folder in sorted(place.glob(f"{_PREFIX}*")):
            held = _lock(folder)
            if held is not None:
                _remove_all(folder)
                os.close(held)


def _copy_memory(origin: Original, copy: Original, run: FolderCopy) -> None:
    """Copy the present blocks and notes; blocks of files get their labels in the copy."""
    store = origin.state_folder / BLOCKS
    run.spend(_size(store) + _size(store.with_name(f"{BLOCKS}-wal")))

    def relabel(_source_id: str, label: str) -> str:
        at = label.find("file:")
        relative = label[at:].split(":", 2)[-1] if at >= 0 else ""
        for source_id in origin.sources.ids if relative else ():
            source, moved = origin.sources.get(source_id), copy.sources.get(source_id)
            if source is not None and moved is not None and source.label(relative) == label[at:]:
                return label[:at] + moved.label(relative)
        return label

    kept, copied = (HomeSeal(one.state_folder, one.key_folder, BLOCKS) for one in (origin, copy))
    copy_store(kept, copied, relabel, run.watch.stop_if_cancelled)
    origin.notes.copy_to(copy.state_folder, copy.key_folder, run.spend, run.watch.stop_if_cancelled)


def _size(path: Path) -> int:
    try:
        return path.stat(follow_symlinks=False).st_size
    except FileNotFoundError:
        return 0


def _holder(state: Path, folder: Path) -> tuple[Path, int]:
    """Make a locked folder for a copy: beside the state if files can be cloned only there, else a temporary one."""
    temporary = Path(tempfile.gettempdir())
    with suppress(OSError):
        if state.is_dir() and not _clones_into(folder, temporary) and _clones_into(folder, state):
            return _new_holder(state)
    return _new_holder(temporary)


def _new_holder(place: Path) -> tuple[Path, int]:
    for _ in range(_TRIES):  # before the lock exists, another process may mistake the folder for a dead one's
        made = Path(os.path.realpath(tempfile.mkdtemp(prefix=_PREFIX, dir=place)))
        held = _lock(made)
        if held is not None:
            return made, held
    raise WorkspaceError(f"cannot lock a folder for the copy of the workspace in `{place}`")


def _lock(folder: Path) -> int | None:
    """Lock a copy's folder and return the descriptor; None if another holds it, or it is not ours."""
    try:
        descriptor = os.open(folder, FOLDER)
    except OSError:
        return None
    try:
        lock(descriptor, 0)
        is_ours = os.fstat(descriptor).st_uid == os.geteuid() and os.path.samestat(os.fstat(descriptor), folder.stat())
    except OSError:
        is_ours = False
    if is_ours:
        return descriptor
    os.close(descriptor)
    return None


def _clones_into(folder: Path, target: Path) -> bool:
    """Tell whether a file of ``folder`` can be cloned into ``target``; try it only on one file system."""
    if folder.stat().st_dev != target.stat().st_dev:
        return False
    with tempfile.TemporaryFile(dir=target) as one, tempfile.TemporaryFile(dir=target) as other:
        one.write(b"x")
        one.flush()
        return clone(one.fileno(), other.fileno())


def _remove_all(folder: Path) -> None:
    """Remove a folder with copies of any mode."""
    for here, names, _ in os.walk(folder):
        for name in names:
            path = Path(here) / name
            if not path.is_symlink() and not os.access(path, os.R_OK | os.W_OK | os.X_OK):
                path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
