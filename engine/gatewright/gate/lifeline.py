"""Files that processes hold locked while they live, by which others see that they are there.

The system lets go of the lock when the process ends in whatever way, so nobody has to write a heartbeat.
"""

from __future__ import annotations

import hashlib
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
_SUFFIX = ".alive"


class Lifeline:
    """The life of this process as others see it in ``folder``, a file while anything hangs on it; None: in memory.

    ``mark``: what the name of the file begins with.
    """

    def __init__(self, folder: Path | None, mark: str = "") -> None:
        self._folder = folder
        self._mark = mark
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
        with self._lock:
            try:
                if self._folder is not None and self._descriptor is None:
                    how = os.O_RDWR | os.O_CREAT | os.O_EXCL
                    self._descriptor = PrivateFolder(self._folder).open(self._name, how)
                    lock(self._descriptor, 0)
            except OSError as error:
                raise WorkspaceError(f"the folder `{self._folder}` cannot be written: {error.strerror}") from error
            self._hanging.add(what)
            return "" if self._folder is None else self._owner

    @property
    def is_held(self) -> bool:
        """True where anything hangs on it."""
        return bool(self._hanging)

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
            PrivateFolder(self._folder).end(self._name, self._descriptor)
            self._descriptor = None

    @property
    def _name(self) -> str:
        return f"{self._mark}{self._owner}{_SUFFIX}"


class Presence:
    """The operators of a state folder, there or not: none of them writes into it. Each holds a file in the key folder,
    whose name says which state folder is meant. Without folders they are those of this object.

    Methods may be called from any thread, and raise WorkspaceError.
    """

    def __init__(self, state: Path | None, keys: Path | None) -> None:
        place = "" if state is None else os.path.realpath(state)
        self._mark = f"operator-{hashlib.sha256(os.fsencode(place)).hexdigest()[:16]}-"
        self._is_shared = state is not None
        self._keys = keys if self._is_shared else None
        self._lifeline = Lifeline(self._keys, self._mark)

    def begin(self, operator: str) -> None:
        """The operator is there, until ``end``, ``close`` or the end of the process."""
        if not self._is_shared:
            self._lifeline.hold(operator)
            return
        if self._keys is None:
            raise WorkspaceError("there is no key folder")
        keys = PrivateFolder(self._keys)
        try:
            keys.make()
            with self._lifeline.released_on_error(operator), keys.locked():
                self._lifeline.hold(operator)
        except OSError as error:
            raise WorkspaceError(f"the folder `{self._keys}` cannot be written: {error.strerror}") from error

    def end(self, operator: str) -> None:
        """The operator is gone."""
        self._lifeline.let_go(operator)

    def is_anybody(self) -> bool:
        """Tell whether an operator is there, in whatever process."""
        if self._keys is None:
            return self._lifeline.is_held
        keys = PrivateFolder(self._keys)
        try:
            found = [name for name in keys.names() if name.startswith(self._mark)]
            if not found:
                return False
            with keys.locked():  # nobody is between making the file and holding it
                return any(is_alive(self._keys, name[len(self._mark) : -len(_SUFFIX)], self._mark) for name in found)
        except OSError as error:
            raise WorkspaceError(f"the folder `{self._keys}` cannot be read: {error.strerror}") from error

    def close(self) -> None:
        """Every operator of this object is gone."""
        self._lifeline.close()


def is_alive(folder: Path, owner: str, mark: str = "") -> bool:
    """Whether the owner still holds its file; one left by a process that died is removed."""
    if not _OWNER.fullmatch(owner):
        return False
    own, name = PrivateFolder(folder), f"{mark}{owner}{_SUFFIX}"
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
