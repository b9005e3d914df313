"""Patterns from outside, matched in linear time by RE2."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, cast

import re2  # pyright: ignore[reportMissingTypeStubs]

_ENGINE: Any = cast("Any", re2)


class LinearMatch(Protocol):
    """One match."""

    def group(self, group: int = 0) -> str:
        """The text of a group."""
        ...

    def span(self, group: int = 0) -> tuple[int, int]:
        """Where a group begins and ends, in characters; (-1, -1) when it took no part."""
        ...


class LinearPattern(Protocol):
    """A compiled pattern; matching takes time linear in the text."""

    def search(self, text: str) -> object | None:
        """A match anywhere in ``text``, or None."""
        ...

    def fullmatch(self, text: str) -> object | None:
        """A match of the whole of ``text``, or None."""
        ...

    def finditer(self, text: str) -> Iterator[LinearMatch]:
        """Every match, from left to right; they do not overlap."""
        ...


def compile_linear(pattern: str) -> LinearPattern:
    """Compile with RE2 syntax; raises ValueError for what RE2 cannot do (look-around, back-references)."""
    options = _ENGINE.Options()
    options.log_errors = False
    try:
        return cast("LinearPattern", _ENGINE.compile(pattern, options=options))
    except _ENGINE.error as error:
        detail = error.args[0] if error.args else error
        text = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
        raise ValueError(text) from None


def linear_test(pattern: str) -> Callable[[str], bool]:
    """Whether RE2 may find the pattern in a text, for less than what finding it costs; true where RE2 gives up."""
    options = _ENGINE.Options()
    options.log_errors = False
    found = _ENGINE.Set.SearchSet(options)
    for one in (pattern, ""):  # the empty one stands in every text
        found.Add(one)
    found.Compile()
    match: Callable[[bytes], list[int]] = found.Match

    def is_there(text: str) -> bool:
        places = match(text.encode())
        return not places or 0 in places

    return is_there
