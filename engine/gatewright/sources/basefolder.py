"""The folder of a source or root, which stays open: the spelling of its names on disk, its errors in words.

A file system may treat two spellings as one name: `A` and `a`, composed and decomposed letters. Levels go by the text,
so a spelling that reaches an entry under another name is refused. To learn whether a folder does so, this module looks
for the same entry under another spelling; the answer holds until the folder changes.

A path alone proves little: a folder above may become a link; the folder itself may be renamed, replaced or mounted
over. So this module remembers the folder by device and inode, and keeps it open as long as somebody uses it, since only
then the file system gives its inode to no other folder.
"""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
import weakref
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.late import late_regex
from gatewright.record.process import fork_safe_lock


@contextmanager
def failures(*passed: type[OSError]) -> Generator[None]:
    """Turn an OSError into a ToolFailure, except errors of the ``passed`` kinds."""
    try:
        yield
    except passed:
        raise
    except OSError as error:
        raise failure_of(error) from None


def failure_of(error: OSError) -> ToolFailure:
    """Return the failure for an error, with one of our codes."""
    match error.errno:
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return ToolFailure(f"the file system refuses it ({words_of(error)})", code="no-access")
        case errno.EEXIST:
            return ToolFailure("there is something at that path", code="exists")
        case errno.ENOENT:
            return ToolFailure("there is no such file or folder", code="not-found")
        case errno.ELOOP:
            return ToolFailure("the path leads through a symbolic link, which is not followed", code="symlink")
        case errno.ENOTDIR:
            return ToolFailure("a part of the path is not a folder", code="not-a-folder")
        case errno.EISDIR:
            return ToolFailure("this is a folder, not a file", code="is-a-folder")
        case errno.ENOTEMPTY:
            return ToolFailure("the folder is not empty", code="not-empty")
        case errno.ENXIO | errno.EAGAIN:
            return ToolFailure("this is neither a file nor a folder but a device, pipe or socket", code="special-file")
        case errno.ENAMETOOLONG:
            return ToolFailure("the path is too long for this file system", code="path-too-long")
        case _:
            return ToolFailure(f"the file system failed ({words_of(error)})", code="io")


def words_of(error: OSError) -> str:
    """Return the system's own words, without the path."""
    if error.errno == errno.EROFS:
        return "write-protected"
    return os.strerror(error.errno).lower() if error.errno else "unknown error"


_KEPT = 8_192
_MOST_LINKS = 40
_OF_A_PROCESS = late_regex(r"/proc/(?:thread-)?self(?:/.*)?/(?:cwd|root|exe|(?:fd|map_files)/[^/]+)")
_SELF = frozenset({"/proc/self", "/proc/thread-self"})
_STREAMS = frozenset({"/dev/stdin", "/dev/stdout", "/dev/stderr"})
_UPPER, _LOWER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
_SWAPPED = str.maketrans(_UPPER + _LOWER, _LOWER + _UPPER)

plain: dict[tuple[int, int], int] = {}
"""Folders that distinguish spellings, by device and inode, with the time of their last change; bounded."""


def refuse_other_spelling(path: str, status: os.stat_result, above: os.stat_result) -> None:
    """Raise ToolFailure if the entry at ``path``, in the folder ``above``, has another name on disk."""
    folder, _, name = path.rpartition("/")
    key = (above.st_dev, above.st_ino)
    if name.isascii() and (name.isdigit() or plain.get(key) == above.st_ctime_ns):
        return
    if not any(_is_same(f"{folder}/{other}", status) for other in _others(name)):
        if name.translate(_SWAPPED) != name:
            _remember(key, above.st_ctime_ns)
    elif name not in _names(folder):
        raise ToolFailure("on disk this name is spelled in another way", code="other-spelling")


def as_on_disk(path: str) -> str:
    """Spell an absolute path without links as the disk does, as far as the folders are readable."""
    spelled = ""
    for name in path.split("/")[1:]:
        spelled = f"{spelled}/{_spelling_on_disk(spelled or '/', name)}"
    return spelled


def _spelling_on_disk(folder: str, name: str) -> str:
    try:
        status = os.lstat(f"{folder}/{name}")
        if not any(_is_same(f"{folder}/{other}", status) for other in _others(name)):
            return name
        names = _names(folder)
    except (OSError, ToolFailure):
        return name
    if name in names:
        return name
    return next((other for other in names if _is_same(f"{folder}/{other}", status)), name)


def _others(name: str) -> Iterator[str]:
    """Yield spellings of a name that some file systems treat as the same."""
    others = [name.translate(_SWAPPED), name.rstrip(". ")]
    if not name.isascii():
        others += [name.swapcase(), unicodedata.normalize("NFC", name), unicodedata.normalize("NFD", name)]
    return (other for other in dict.fromkeys(others) if other not in {name, ""})


def _is_same(path: str, status: os.stat_result) -> bool:
    try:
        other = os.lstat(path)
    except (OSError, ValueError):
        return False
    return (other.st_dev, other.st_ino, stat.S_IFMT(other.st_mode)) == (
        status.st_dev,
        status.st_ino,
        stat.S_IFMT(status.st_mode),
    )


def _names(folder: str) -> list[str]:
    """List the names in a folder. Raises ToolFailure if it is unreadable, so that nobody knows its spellings."""
    try:
        return os.listdir(folder or "/")  # noqa: PTH208 - names alone, of a folder that may be large
    except OSError:
        raise ToolFailure("how this name is spelled on disk cannot be looked at", code="other-spelling") from None


def _remember(key: tuple[int, int], changed_ns: int) -> None:
    if len(plain) >= _KEPT:
        plain.clear()
    plain[key] = changed_ns


def differs_by_process(path: str) -> bool:
    """Tell whether an absolute path leads through a link that differs by process, as `/dev/fd` does.

    The standard streams do not count: shell commands name them, and they belong to the program's caller.
    """
    if path in _STREAMS:
        return False
    left, at, links = path.split("/")[::-1], "", 0
    while left:
        part = left.pop()
        if part in {"", "."}:
            continue
        if part == "..":
            at = at.rpartition("/")[0]
            continue
        above, at = at, f"{at}/{part}"
        if _OF_A_PROCESS.fullmatch(at):
            return True
        if at in _SELF:
            continue
        try:
            target = os.readlink(at)  # noqa: PTH115
        except OSError:
            continue
        links += 1
        if links > _MOST_LINKS:
            return True
        at = "" if target.startswith("/") else above
        left += target.split("/")[::-1]
    return False


FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
PASS_THROUGH = FOLDER | getattr(os, "O_PATH", 0)
REPLACED, UNTRUSTED = "source-replaced", "not-trusted"
"""Codes of failures: another folder is in the place of this one; this one must not be used."""
READ_AGAIN = "reading the policy again attaches the folder that is there now"


class BaseFolder:
    """The folder called ``path`` (absolute, without links).

    ``refused``: the reason why nothing in it may be used; empty if it may. ``place``: its path on disk if it differs,
    in a disposable copy. A missing folder counts from the moment when it exists, if no link leads to it. Any thread may
    call.
    """

    def __init__(self, path: str, refused: str = "", *, place: str | None = None) -> None:
        self.path = path
        self.place = path if place is None else place
        self.refused = refused
        self._taking = fork_safe_lock()
        self.known_identity: tuple[int, int] | None = None
        with suppress(ToolFailure):
            self.identity()

    def identity(self) -> tuple[int, int]:
        """Return device and inode. Raises ToolFailure if the folder must not be used or has never existed."""
        if self.refused:
            raise ToolFailure(self.refused, code=UNTRUSTED)
        with self._taking:
            if self.known_identity is None:
                self.known_identity = self._take()
            return self.known_identity

    def check(self, status: os.stat_result) -> None:
        """Raise ToolFailure if these are the metadata of another folder."""
        if (status.st_dev, status.st_ino) != self.identity():
            raise _replacement_failure()

    def open(self) -> int:
        """Open a new descriptor of the folder, while its path leads there. Raises ToolFailure."""
        self.identity()
        try:
            descriptor = os.open(self.place, PASS_THROUGH)
        except OSError as error:
            raise self.failure(error) from None
        try:
            self.check(os.fstat(descriptor))
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def fault(self) -> ToolFailure | None:
        """Return the reason why the folder cannot be used now, or None."""
        try:
            os.close(self.open())
        except ToolFailure as failure:
            return failure
        return None

    @property
    def stands(self) -> bool:
        """True while its path does not lead to anything else: the folder is there, was refused before, or has never
        existed.
        """
        return self.known_identity is None or self.fault() is None

    def place_of(self, path: str) -> str:
        """Return the path on disk of this folder, or of something below it."""
        return path if self.place is self.path else f"{self.place}{path[len(self.path) :]}"

    def failure(self, error: OSError) -> ToolFailure:
        """Return the refusal for an error of the file system."""
        match error:
            case FileNotFoundError():
                return ToolFailure("the folder of this source is missing", code="source-missing")
            case NotADirectoryError() if self.known_identity is not None:
                return _replacement_failure()
            case NotADirectoryError():
                return ToolFailure("the base of this source is not a folder", code="source-missing")
            case PermissionError():
                return ToolFailure("the folder of this source cannot be opened (no permission)", code="no-access")
            case _:
                return ToolFailure(f"the folder of this source cannot be opened ({words_of(error)})", code="io")

    def _take(self) -> tuple[int, int]:
        """Open the folder component by component, through no link, and keep it open."""
        if not _holds_folders():
            raise ToolFailure(
                "files cannot be used on this system, which cannot hold a folder open", code="not-supported"
            )
        try:
            descriptor = os.open("/", PASS_THROUGH)
            for name in filter(None, self.place.split("/")):
                above = descriptor
                try:
                    descriptor = os.open(name, PASS_THROUGH, dir_fd=above)
                except OSError:
                    if _is_link(name, above):
                        raise _replacement_failure() from None
                    raise
                finally:
                    os.close(above)
        except OSError as error:
            raise self.failure(error) from None
        weakref.finalize(self, os.close, descriptor).atexit = False
        status = os.fstat(descriptor)
        return status.st_dev, status.st_ino


def _holds_folders() -> bool:
    """Tell whether the platform can open files by a folder's descriptor, without following links."""
    needed = {os.open, os.stat, os.mkdir, os.unlink, os.rename}
    return needed <= os.supports_dir_fd and hasattr(os, "O_NOFOLLOW") and hasattr(os, "O_DIRECTORY")


def base_folder(path: str | Path) -> BaseFolder:
    """Open the folder to which a path leads now, without links and spelled as on disk: one path for each folder."""
    return BaseFolder(as_on_disk(os.path.realpath(path)))


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _replacement_failure() -> ToolFailure:
    return ToolFailure("another folder stands in the place of this source's", code=REPLACED)


@frozen
class RootPlace:
    """A place in a root: ``base`` is the root's folder, ``parts`` the names below it."""

    root: str
    base: BaseFolder
    parts: tuple[str, ...]

    @property
    def absolute(self) -> str:
        """The absolute path."""
        return "/".join((self.base.path.rstrip("/"), *self.parts)) or "/"

    @property
    def shown(self) -> str:
        """The path in the form for conditions and models."""
        return "/".join((self.root, *self.parts))

    def below(self, *names: str) -> RootPlace:
        """Return a place inside this one."""
        return RootPlace(self.root, self.base, (*self.parts, *names))
