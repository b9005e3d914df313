"""Patterns from outside, matched in linear time by RE2: one by itself, or the first match of many.

pathspec (``PathSpec``) reports the last pattern that matches, so it gets them in reverse order, behind one that matches
every text: if even that fails, RE2 gave up, which must never count as "no match". This module imports pathspec, so only
code that compares levels loads it: no command waits for it at its start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from re import Pattern
from typing import Any, Protocol, cast

import re2  # pyright: ignore[reportMissingTypeStubs]
from pathspec import PathSpec, RegexPattern

_ENGINE: Any = cast("Any", re2)


class LinearMatch(Protocol):
    """One match."""

    def group(self, group: int = 0) -> str:
        """The text of a group."""
        ...

    def span(self, group: int = 0) -> tuple[int, int]:
        """Begin and end of a group, in characters; (-1, -1) for a group that took no part."""
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


def linear_test(pattern: str) -> Callable[[bytes], list[int]]:
    """Return a fast test for a match of the pattern: 0 is in its answer then, which is empty where RE2 gives up."""
    options = _ENGINE.Options()
    options.log_errors = False
    found = _ENGINE.Set.SearchSet(options)
    for one in (pattern, ""):  # the empty one matches every text
        found.Add(one)
    found.Compile()
    match: Callable[[bytes], list[int]] = found.Match
    return match


_TOO_LARGE = cast("type[Exception]", cast("Any", re2).error)
_Match = Callable[[str], tuple[bool | None, int | None]]


class _LinearPattern(RegexPattern):
    """A regular expression that RE2 alone compiles: Python's own engine may take time without bound."""

    __slots__ = ()

    def __init__(self, regex: str) -> None:
        compiled = cast("Pattern[str]", compile_linear(f"(?s){regex}"))
        super().__init__(compiled, include=True)  # pyright: ignore[reportUnknownMemberType]


class _LastMatch(PathSpec[_LinearPattern]):
    """A list of patterns whose last match counts."""

    @property
    def match(self) -> _Match:
        """RE2's own answer: ``check_file``, which wraps it for each text, takes nearly twice the time."""
        return self._backend.match_file


class FirstMatch:
    """Patterns in RE2 syntax, in order; ``.`` matches line breaks too. Raises ValueError for syntax beyond RE2."""

    def __init__(self, regexes: Sequence[str]) -> None:
        parts = _parts([_LinearPattern(one) for one in regexes])
        ends = accumulate(count for count, _ in parts)
        self._parts = [(end, match) for end, (_, match) in zip(ends, parts, strict=True)]
        self._count = len(regexes)

    def first(self, text: str) -> int:
        """Return the index of the first pattern found in ``text``, or the number of patterns.

        Takes time linear in the text. Raises RuntimeError if RE2 runs out of memory.
        """
        for end, match in self._parts:
            last = match(text)[1]
            if last:
                return end - last
            if last is None:
                raise RuntimeError("RE2 ran out of its memory while it matched")
        return self._count


def _parts(patterns: Sequence[_LinearPattern]) -> list[tuple[int, _Match]]:
    """Split the patterns, in order, into sets that each fit into RE2's memory, which matching may exhaust as well."""
    try:
        match = _LastMatch([_LinearPattern(""), *reversed(patterns)], backend="re2").match
        if match("")[1] is not None:
            return [(len(patterns), match)]
    except _TOO_LARGE:
        pass
    if len(patterns) < 2:
        raise ValueError("a pattern is too large for RE2")
    half = len(patterns) // 2
    return _parts(patterns[:half]) + _parts(patterns[half:])
