"""Long work in pieces: a generator that has its turn now and then, and returns what came of it."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")


def last_of(pieces: Generator[object, None, T]) -> T:
    """Go through all pieces; what the generator returns."""
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            found: T = end.value
            return found
