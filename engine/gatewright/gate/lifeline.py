"""Whether a process is still there: a file that it holds locked while it lives.

The system lets go of the lock when the process ends in whatever way, so nobody has to write a heartbeat.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from gatewright.base.errors import WorkspaceError
from gatewright.base.filelock import lock
from gatewright.base.ids import new_id
from gatewright.base.regex import late_regex
from gatewright.record.folder import PrivateFolder
from gatewright.record.fork import fork_safe_lock, renew_after_fork

_OWNER = late_regex(r"owner-[0-9a-f]{16}")


class Lifeline:
    """The life of this process as others see it in ``folder``, a file while anything hangs on it; None: in memory."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._lock = fork_safe_lock()
        self._descriptor: int | None = None
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """A child is another owner, keeps its parent not alive, and has nothing of what hangs on it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._owner, self._descriptor = new_id("owner"), None
        self._hanging: set[str] = set()

    def hold(self, what: str) -> str:
        """The owner that ``what`` hangs on from now on. Raises WorkspaceError."""
        if self._folder is None:
            return ""
        with self._lock:
            try:
                if self._descriptor is None:
                    how = os.O_RDWR | os.O_CREAT | os.O_EXCL
                    self._descriptor = PrivateFolder(self._folder).open(f"{self._owner}.alive", how)
                    lock(self._descriptor, 0)
            except OSError as error:
                text = f"the state folder `{self._folder}` cannot be written: {error.strerror}"
                raise WorkspaceError(text) from error
            self._hanging.add(what)
            return self._owner

    @contextmanager
    def released_on_error(self, what: str) -> Generator[None]:
        """What could not be written hangs on nobody's life."""
        try:
            yield
        except BaseException:
            self.let_go(what)
            raise

    def let_go(self, what: str) -> None:
        """``what`` needs no life any more; with the last of all the file goes."""
        with self._lock:
            self._hanging.discard(what)
            if not self._hanging:
                self._end()

    def close(self) -> None:
        """Whatever hangs on it is over."""
        with self._lock:
            self._hanging.clear()
            self._end()

    def _end(self) -> None:
        if self._folder is not None and self._descriptor is not None:
            PrivateFolder(self._folder).end(f"{self._owner}.alive", self._descriptor)
            self._descriptor = None


def is_alive(folder: Path, owner: str) -> bool:
    """Whether the owner still holds its file; one left by a process that died is removed."""
    if not _OWNER.fullmatch(owner):
        return False
    own, name = PrivateFolder(folder), f"{owner}.alive"
    try:
        descriptor = own.open(name)
    except OSError:
        return False
    try:
        lock(descriptor, 0, shared=True)
    except OSError as error:
        os.close(descriptor)
        return isinstance(error, BlockingIOError)
    own.end(name, descriptor)
    return False
