"""The folder that a source or root opened, held open, so that no other folder ever passes for it.

A path alone says little: a folder above may become a link; the folder itself may be renamed, made anew or mounted over.
So this module remembers the folder by device and inode, and keeps it open as long as somebody uses it, since only then
the file system gives its inode to no other one.
"""

from __future__ import annotations

import os
import stat
import weakref
from contextlib import suppress
from pathlib import Path

from gatewright.base.errors import ToolFailure
from gatewright.record.process import fork_safe_lock
from gatewright.sources.failure import words_of
from gatewright.sources.spelling import as_on_disk

FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
PASS_THROUGH = FOLDER | getattr(os, "O_PATH", 0)
REPLACED, UNTRUSTED = "source-replaced", "not-trusted"
"""Codes of failures: another folder stands in the place of this one; nobody may use this one."""
READ_AGAIN = "reading the policy again attaches the folder that is there now"


class BaseFolder:
    """The folder called ``path`` (absolute, without links).

    ``refused``: the reason why nothing in it may be used; empty: it may. ``place``: its path on disk, in a disposable
    copy; None: its own. A missing folder counts once it first stands there, if no link leads to it. Callable from any
    thread.
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
        """Return device and inode. Raises ToolFailure where the folder may not be used or was never there."""
        if self.refused:
            raise ToolFailure(self.refused, code=UNTRUSTED)
        with self._taking:
            if self.known_identity is None:
                self.known_identity = self._take()
            return self.known_identity

    def check(self, status: os.stat_result) -> None:
        """Refuse the metadata of another folder with a ToolFailure."""
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
        """True while nothing else stands at its path: it may be used, is refused as it was, or was never there."""
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
        """Open the folder, component by component and through no link, and hold it."""
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
    """Tell whether the platform opens files relative to a folder's descriptor and without following links."""
    needed = {os.open, os.stat, os.mkdir, os.unlink, os.rename}
    return needed <= os.supports_dir_fd and hasattr(os, "O_NOFOLLOW") and hasattr(os, "O_DIRECTORY")


def base_folder(path: str | Path) -> BaseFolder:
    """Open the folder that a path leads to now, links resolved and spelled as on disk: one path for each folder."""
    return BaseFolder(as_on_disk(os.path.realpath(path)))


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _replacement_failure() -> ToolFailure:
    return ToolFailure("another folder stands in the place of this source's", code=REPLACED)
