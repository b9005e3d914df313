"""Work that waits for its first use: names to load, patterns to compile, attributes to work out.

There are two ways, and no third:

- A package that gathers names of its modules, or a module that gathers them from several packages, is a *door*:
  importing it loads nothing, a name loads its module when it is first asked for. It imports its names for the type
  checker only and says here which module has which; a module of a package is a name like any other.
- What a module needs only to do something rare (a dialog, a call, a save) is imported in the function that does it.

`tests/architecture` keeps the two lists of a door in step and says what a start may load.

``functools.cached_property`` holds one lock for all objects of a class while it works: a thread that wants a small one
waits for a large one of another object, and a process forked meanwhile waits for ever. Here two threads may work out
the same; the first answer is everybody's.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Generic, TypeVar, cast, overload


def door(name: str, names: Mapping[str, tuple[str, ...]]) -> None:
    """Make the package or module (its ``__name__``) a door. ``names``: by full name of the module, what it gives."""
    module = sys.modules[name]
    module.__class__ = _Door
    vars(module)["_homes"] = {one: home for home, given in names.items() for one in given}


class _Door(ModuleType):
    """A name that is a module and also one of ours is ours: ``package.survey`` is the function, whoever was first."""

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
    """What the method answers, put into the object's ``__dict__`` under the method's name."""

    def __init__(self, make: Callable[[Any], T_co]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> once[T_co]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T_co: ...
    def __get__(self, instance: object | None, owner: type) -> once[T_co] | T_co:
        """Work it out: it is asked only while the object holds nothing under the name."""
        if instance is None:
            return self
        made: T_co = self._make(instance)
        return instance.__dict__.setdefault(self._name, made)


def late_regex(pattern: str, flags: re.RegexFlag | int = 0) -> re.Pattern[str]:
    """What ``re.compile`` gives, made at the first use: a process that starts has hundreds and uses a few."""
    return cast("re.Pattern[str]", _Late(pattern, flags))


class _Late:
    def __init__(self, pattern: str, flags: re.RegexFlag | int) -> None:
        self._written = pattern, flags

    def __getattr__(self, name: str) -> object:
        """Asked once for each method: from then on the object has it."""
        found: object = getattr(re.compile(*self._written), name)
        setattr(self, name, found)
        return found
