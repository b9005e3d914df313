"""Processes that share state: locks that a fork leaves free for its child, and files that show which processes live.

Before a fork all locks made here are taken, so that other threads are outside whatever these guard, and no module of
ours is half loaded; afterwards both processes let go of the locks. A thread that keeps one for longer than `PATIENCE_S`
does not stop the fork: the child gets new locks and may not open state files, since it cannot know what SQLite was in
the middle of.

A process holds its `Lifeline` locked while it lives. The system lets go of the lock when the process ends in whatever
way, so nobody has to write a heartbeat.
"""

from __future__ import annotations

import _frozen_importlib
import _imp
import errno
import hashlib
import os
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Protocol, TypeVar
from weakref import ref

from gatewright.base.errors import WorkspaceError
from gatewright.base.file import lock
from gatewright.base.ids import new_id
from gatewright.base.late import late_regex
from gatewright.record.folder import PrivateFolder

PATIENCE_S = 5.0
_STEP_S = 0.001
T = TypeVar("T")


class Renewable(Protocol):
    """An object that has threads, descriptors or connections, which belong to one process."""

    def renew(self) -> None:
        """Be as new, in a child whose only thread this is."""


class _Fork:
    """The locks and objects of this process, and whether it is a child that came in the middle of something."""

    def __init__(self) -> None:
        self.locks: set[ref[threading.RLock]] = set()
        self.objects: set[ref[Renewable]] = set()
        self.is_torn = False
        self._one_at_a_time = threading.RLock()
        self._taken: list[threading.RLock] = []
        self._has_all = False
        if hasattr(os, "register_at_fork"):  # where processes fork
            os.register_at_fork(before=self._take, after_in_parent=self._release, after_in_child=self._begin)

    def _take(self) -> None:
        """Wait for one lock at a time and hold no other meanwhile, so that threads may nest them in any order."""
        self._one_at_a_time.acquire()
        self._has_all = False
        deadline = time.monotonic() + PATIENCE_S
        busy: threading.RLock | None = None
        while busy is None or busy.acquire(timeout=max(0.0, deadline - time.monotonic())):
            self._taken = [] if busy is None else [busy]
            known = _living(self.locks)
            busy = next((lock for lock in known if not self._try(lock)), None)
            if busy is None and len(known) == len(_living(self.locks)):
                _imp.acquire_lock()  # the fork does so too, and while it waited imports would begin
                self._has_all = not _is_importing()
                if self._has_all:
                    return
                _imp.release_lock()
            self._let_go()
            if busy is None:
                time.sleep(_STEP_S)

    def _try(self, lock: threading.RLock) -> bool:
        is_free = lock.acquire(blocking=False)
        if is_free:
            self._taken.append(lock)
        return is_free

    def _let_go(self) -> None:
        for one in self._taken:
            one.release()
        self._taken = []

    def _release(self) -> None:
        if self._has_all:
            _imp.release_lock()
        self._let_go()
        self._one_at_a_time.release()

    def _begin(self) -> None:
        """In the child. A lock that was not taken is of a thread that is not here."""
        self.is_torn = self.is_torn or not self._has_all
        _frozen_importlib._module_locks.clear()  # pyright: ignore  # one that a thread took before it looked for a file
        taken = set(map(id, self._taken))
        for one in _living(self.locks):
            if id(one) not in taken:
                one._at_fork_reinit()  # pyright: ignore  # as the standard library does with its own
        self._release()
        for held in _living(self.objects):
            held.renew()


def _is_importing() -> bool:
    """Whether a module of ours is half loaded: a child would wait for ever for the thread that loads it."""
    specs = (module.__spec__ for name, module in sys.modules.copy().items() if name.startswith("gatewright"))
    return any(getattr(spec, "_initializing", False) for spec in specs)


def _living(refs: set[ref[T]]) -> list[T]:
    return [one for held in refs.copy() if (one := held()) is not None]


@cache
def _fork() -> _Fork:
    return _Fork()


def fork_safe_lock() -> threading.RLock:
    """A lock that no child of a fork finds taken by a thread of its parent."""
    lock, locks = threading.RLock(), _fork().locks
    locks.add(ref(lock, locks.discard))
    return lock


def renew_after_fork(one: Renewable) -> None:
    """Have ``one.renew()`` called in every child, for as long as the object lives."""
    objects = _fork().objects
    objects.add(ref(one, objects.discard))


def require_whole() -> None:
    """Raises OSError in a child that was forked while another thread was using a state file."""
    if _fork().is_torn:
        words = "the process was forked while another thread was at work; fork before threads work, or use spawn"
        raise OSError(errno.EDEADLK, words)


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
