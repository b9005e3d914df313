"""Long work in pieces: a generator that yields between two pieces and returns the result."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")


def last_of(pieces: Generator[object, None, T]) -> T:
    """Run a generator to its end and return its result."""
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            found: T = end.value
            return found
