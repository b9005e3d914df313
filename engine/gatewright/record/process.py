"""Processes that share state: locks that survive a fork, and files that show which processes live.

Before a fork the parent takes all locks made here and waits until no module of ours is half loaded, so that no thread
is in the middle of guarded work; afterwards both processes release the locks. If a thread keeps a lock for longer than
`PATIENCE_S`, the fork happens nevertheless: the child gets new locks and may not open state files, since SQLite may
have been at work.

A process holds its `Lifeline` locked while it lives. The system releases the lock when the process ends in any way, so
nobody needs a heartbeat.
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
from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Protocol, TypeVar
from weakref import ref

from gatewright.base.amount import new_id
from gatewright.base.errors import WorkspaceError
from gatewright.base.file import lock
from gatewright.base.late import late_regex
from gatewright.record.folder import PrivateFolder

PATIENCE_S = 5.0
_STEP_S = 0.001
T = TypeVar("T")


class Renewable(Protocol):
    """An object whose threads, descriptors or connections belong to one process."""

    def renew(self) -> None:
        """Start anew in a child process, whose only thread this is."""


class _Fork:
    """The locks and objects of this process; ``is_torn``: a child of a fork that interrupted another thread."""

    def __init__(self) -> None:
        self.locks: set[ref[threading.RLock]] = set()
        self.objects: set[ref[Renewable]] = set()
        self.is_torn = False
        self._one_at_a_time = threading.RLock()
        self._taken: list[threading.RLock] = []
        self._has_all = False
        if hasattr(os, "register_at_fork"):  # on systems that fork
            os.register_at_fork(before=self._take, after_in_parent=self._release, after_in_child=self._begin)

    def _take(self) -> None:
        """Take all locks.

        It waits for one lock at a time while holding none, so that threads may nest them in any order.
        """
        self._one_at_a_time.acquire()
        self._has_all = False
        deadline = time.monotonic() + PATIENCE_S
        busy: threading.RLock | None = None
        while busy is None or busy.acquire(timeout=max(0.0, deadline - time.monotonic())):
            self._taken = [] if busy is None else [busy]
            known = _living(self.locks)
            busy = next((lock for lock in known if not self._try(lock)), None)
            if busy is None and len(known) == len(_living(self.locks)):
                _imp.acquire_lock()  # the fork takes this lock too, and modules could start to load while it waits
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
        """Continue in the child; a lock that the parent did not take belongs to a thread that does not exist here."""
        self.is_torn = self.is_torn or not self._has_all
        _frozen_importlib._module_locks.clear()  # pyright: ignore  # pyright: ignore  # a thread takes one before it looks for a file
        taken = set(map(id, self._taken))
        for one in _living(self.locks):
            if id(one) not in taken:
                one._at_fork_reinit()  # pyright: ignore  # pyright: ignore  # as the standard library does with its own
        self._release()
        for held in _living(self.objects):
            held.renew()


def _is_importing() -> bool:
    """Tell whether a module of ours is half loaded: a child would wait for ever for the thread that loads it."""
    specs = (module.__spec__ for name, module in sys.modules.copy().items() if name.startswith("gatewright"))
    return any(getattr(spec, "_initializing", False) for spec in specs)


def _living(refs: set[ref[T]]) -> list[T]:
    return [one for held in refs.copy() if (one := held()) is not None]


@cache
def _fork() -> _Fork:
    return _Fork()


def fork_safe_lock() -> threading.RLock:
    """A lock that is free in every child of a fork."""
    lock, locks = threading.RLock(), _fork().locks
    locks.add(ref(lock, locks.discard))
    return lock


def renew_after_fork(one: Renewable) -> None:
    """Call ``one.renew()`` in every child, as long as the object lives."""
    objects = _fork().objects
    objects.add(ref(one, objects.discard))


def require_whole() -> None:
    """Raise OSError in a child of a fork that interrupted the use of a state file."""
    if _fork().is_torn:
        words = "the process was forked while another thread was at work; fork before threads work, or use spawn"
        raise OSError(errno.EDEADLK, words)


_OWNER = late_regex(r"owner-[0-9a-f]{16}")
_SUFFIX = ".alive"


class Releasing(ABC):
    """Something on which others depend until it lets them go."""

    @abstractmethod
    def let_go(self, what: str) -> None:
        """Release ``what``."""

    @contextmanager
    def release_on_error(self, what: str) -> Generator[None]:
        """Release ``what`` if the body fails to store it."""
        try:
            yield
        except BaseException:
            self.let_go(what)
            raise


class Lifeline(Releasing):
    """Shows other processes that this one lives, by a locked file in ``folder`` while anything depends on it; None: in
    memory.

    ``mark``: the prefix of the file's name.
    """

    def __init__(self, folder: Path | None, mark: str = "") -> None:
        self._folder = folder
        self._mark = mark
        self._lock = fork_safe_lock()
        self._descriptor: int | None = None
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Become another owner in a child: without dependents, and without keeping the parent's file locked."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._owner, self._descriptor = new_id("owner"), None
        self._hanging: set[str] = set()

    def hold(self, what: str) -> str:
        """Return the owner, on whose life ``what`` depends from now on. Raises WorkspaceError."""
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

    def lives(self, owner: str) -> bool:
        """Tell whether the process of that owner lives; never in memory, where no owner is another."""
        return self._folder is not None and is_alive(self._folder, owner, self._mark)

    @property
    def is_held(self) -> bool:
        """True while anything depends on it."""
        return bool(self._hanging)

    def let_go(self, what: str) -> None:
        """Release ``what``; the last dependent takes the file with it."""
        with self._lock:
            self._hanging.discard(what)
            if not self._hanging:
                self._end()

    def close(self) -> None:
        """Release everything."""
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
    """The operators of a state folder, which need not exist and gets no file.

    Each operator holds a file in the key folder, whose name identifies the state folder. Without folders the operators
    are those of this object. Any thread may call the methods, which raise WorkspaceError.
    """

    def __init__(self, state: Path | None, keys: Path | None) -> None:
        place = "" if state is None else os.path.realpath(state)
        self._mark = f"operator-{hashlib.sha256(os.fsencode(place)).hexdigest()[:16]}-"
        self._is_shared = state is not None
        self._keys = keys if self._is_shared else None
        self._lifeline = Lifeline(self._keys, self._mark)

    def begin(self, operator: str) -> None:
        """Announce the operator, until ``end``, ``close`` or the end of the process."""
        if not self._is_shared:
            self._lifeline.hold(operator)
            return
        if self._keys is None:
            raise WorkspaceError("there is no key folder")
        keys = PrivateFolder(self._keys)
        try:
            keys.make()
            with self._lifeline.release_on_error(operator), keys.exclusive():
                self._lifeline.hold(operator)
        except OSError as error:
            raise WorkspaceError(f"the folder `{self._keys}` cannot be written: {error.strerror}") from error

    def end(self, operator: str) -> None:
        """Withdraw the operator."""
        self._lifeline.let_go(operator)

    def is_anybody(self) -> bool:
        """Tell whether an operator is present, in any process."""
        if self._keys is None:
            return self._lifeline.is_held
        keys = PrivateFolder(self._keys)
        try:
            found = [name for name in keys.names() if name.startswith(self._mark)]
            if not found:
                return False
            with keys.exclusive():  # no operator is between making its file and locking it
                return any(is_alive(self._keys, name[len(self._mark) : -len(_SUFFIX)], self._mark) for name in found)
        except OSError as error:
            raise WorkspaceError(f"the folder `{self._keys}` cannot be read: {error.strerror}") from error

    def close(self) -> None:
        """Withdraw every operator of this object."""
        self._lifeline.close()


def is_alive(folder: Path, owner: str, mark: str = "") -> bool:
    """Tell whether the owner still locks its file; remove the file of a dead process."""
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
