"""Attributes that are worked out at the first look and kept. Nobody waits for anybody; it does not know what is kept.

``functools.cached_property`` holds one lock for all objects of a class while it works: a thread that wants a small one
waits for a large one of another object, and a process forked meanwhile waits for ever. Here two threads may work out
the same; the first answer is everybody's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

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
