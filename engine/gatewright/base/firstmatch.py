"""Finds the first of many patterns that a text matches, by pathspec on RE2, in time linear in the text.

pathspec (``PathSpec``) reports the last pattern that matches, so it gets them in reverse order, behind a pattern that
matches every text: if even that fails, RE2 gave up, which must never count as "no match". Only code that compares
levels loads this module, so no command and no window waits for pathspec at its start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from re import Pattern
from typing import Any, cast

import re2  # pyright: ignore[reportMissingTypeStubs]
from pathspec import PathSpec, RegexPattern

from gatewright.base.pattern import compile_linear

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
        """The answer of RE2 itself: ``check_file``, which wraps it for each text, takes nearly twice the time."""
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
    """Split the patterns, in order, into sets that each fit into RE2's memory, which matching can exhaust too."""
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
