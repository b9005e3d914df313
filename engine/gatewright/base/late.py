"""Puts work off until it is needed: loads names and asyncio, compiles patterns, computes attributes at the first use,
and runs work in threads.

Modules are loaded late in two ways only:

- A package that gathers names of its modules, or a module that gathers them from several packages, is a *door*:
  importing it loads nothing; the first use of a name loads the module behind it. It imports its names for the type
  checker only, and lists here which module has which; a submodule counts as a name like any other.
- A module imports what only a rare act needs (a dialog, a call, a save) inside the function of that act.

`tests/architecture` keeps the two lists of a door in step and limits the modules that a start loads.

``functools.cached_property`` holds one lock for all objects of a class while it computes: a thread that wants a small
value waits for a large one of another object, and a process forked meanwhile waits for ever. Here two threads may
compute the same value; the first result serves both.
"""

from __future__ import annotations

import contextvars
import importlib
import re
import sys
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast, overload


def door(name: str, names: Mapping[str, tuple[str, ...]]) -> None:
    """Turn the module called ``name`` into a door. ``names``: for each full module name the names that it gives."""
    module = sys.modules[name]
    module.__class__ = _Door
    vars(module)["_homes"] = {one: home for home, given in names.items() for one in given}


class _Door(ModuleType):
    """A module that prefers its exported names to submodules: ``package.survey`` stays the function after an import."""

    _homes: Mapping[str, str]

    def __getattr__(self, name: str) -> object:
        home = self._homes.get(name)
        if home is None:
            raise AttributeError(f"module `{self.__name__}` has no attribute `{name}`")
        value: object = getattr(__import__(home, fromlist=(name,)), name)
        vars(self)[name] = value
        return value

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in self._homes):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *self._homes})


T_co = TypeVar("T_co", covariant=True)


class once(Generic[T_co]):  # noqa: N801 a decorator, as `property` is
    """A property that stores its first value in the object's ``__dict__``."""

    def __init__(self, make: Callable[[Any], T_co]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> once[T_co]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T_co: ...
    def __get__(self, instance: object | None, owner: type) -> once[T_co] | T_co:
        """Compute and store the value; Python comes here only while the object's ``__dict__`` lacks the name."""
        if instance is None:
            return self
        made: T_co = self._make(instance)
        return instance.__dict__.setdefault(self._name, made)


def late_regex(pattern: str, flags: re.RegexFlag | int = 0) -> re.Pattern[str]:
    """Return a pattern that compiles at its first use; a process defines hundreds at its start and uses a few."""
    return cast("re.Pattern[str]", _Late(pattern, flags))


class _Late:
    def __init__(self, pattern: str, flags: re.RegexFlag | int) -> None:
        self._written = pattern, flags

    def __getattr__(self, name: str) -> object:
        """Compile the pattern, and store the method on the object, so that Python comes here once for each."""
        found: object = getattr(re.compile(*self._written), name)
        setattr(self, name, found)
        return found


P = ParamSpec("P")
T = TypeVar("T")


if TYPE_CHECKING:
    import asyncio as aio
else:

    class _LateModule:
        """A module that is loaded at the first use of one of its names."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> object:
            found: object = getattr(importlib.import_module(self._name), name)
            setattr(self, name, found)
            return found

    aio = _LateModule("asyncio")
    """asyncio: a decision needs none of it, and it brings TLS with it."""


def in_own_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> aio.Future[T]:
    """Run ``function`` in a new thread, in the caller's context; cancelling the future only ends the wait."""
    loop = aio.get_running_loop()
    future: aio.Future[T] = loop.create_future()
    call = partial(contextvars.copy_context().run, function, *args, **kwargs)

    def work() -> None:
        try:
            tell = partial(future.set_result, call())
        except BaseException as error:  # noqa: BLE001 the waiter raises it
            kind = type(error)  # a future refuses StopIteration
            is_fit = issubclass(kind, Exception) and not issubclass(kind, StopIteration)
            raised = error if is_fit else RuntimeError(kind.__name__)
            tell = partial(future.set_exception, raised)
        with suppress(RuntimeError):  # the loop is closed, so nobody waits
            loop.call_soon_threadsafe(lambda: None if future.done() else tell())

    threading.Thread(target=work, name="gatewright-work", daemon=True).start()
    return future


async def unbroken(future: aio.Future[T]) -> T:
    """Wait for ``future`` to its end and return its result; a cancellation is raised only then, from its exception."""
    cancelled = False
    while not future.done():
        try:
            await aio.wait({future})
        except aio.CancelledError:
            cancelled = True
    if cancelled:
        raise aio.CancelledError from future.exception()
    return future.result()


def last_of(pieces: Generator[object, None, T]) -> T:
    """Run a generator to its end and return its result."""
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            found: T = end.value
            return found
