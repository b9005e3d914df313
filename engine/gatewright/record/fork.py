"""What objects do first in a forked child, where the locks that threads of its parent held are nobody's."""

from __future__ import annotations

import os
from functools import cache
from typing import Protocol
from weakref import WeakSet


class Renewable(Protocol):
    """An object whose locks, threads or descriptors belong to one process."""

    def renew(self) -> None:
        """Be as new, in a child whose only thread this is."""


_objects: WeakSet[Renewable] = WeakSet()


def renew_after_fork(one: Renewable) -> None:
    """Have ``one.renew()`` called in every child, for as long as the object lives."""
    _watch()
    _objects.add(one)


@cache
def _watch() -> None:
    os.register_at_fork(after_in_child=_renew_all)


def _renew_all() -> None:
    for one in tuple(_objects):
        one.renew()
