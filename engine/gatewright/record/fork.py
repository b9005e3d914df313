"""Forking while other threads work: a child finds every lock of ours free and no state file in the middle of a change.

Before a fork all locks made here are taken, so that other threads are outside whatever these guard, and no module of
ours is half loaded; afterwards both processes let go of the locks. A thread that keeps one for longer than `PATIENCE_S`
does not stop the fork: the child gets new locks and may not open state files, since it cannot know what SQLite was in
the middle of.
"""

from __future__ import annotations

import _frozen_importlib
import _imp
import errno
import os
import sys
import threading
import time
from functools import cache
from typing import Protocol, TypeVar
from weakref import ref

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
        for lock in self._taken:
            lock.release()
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
        for lock in _living(self.locks):
            if id(lock) not in taken:
                lock._at_fork_reinit()  # pyright: ignore  # as the standard library does with its own
        self._release()
        for one in _living(self.objects):
            one.renew()


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
