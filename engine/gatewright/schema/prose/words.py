"""Which tokens of a text are hidden names. It does not know grammar."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

_NEVER = re.compile(r"(?!)")


class Words:
    """The hidden names, and the names that something allowed bears and that may therefore stay.

    A token is compared without regard to case, since prose writes `Delete` and `DELETE` for `delete`; a kept name is
    compared exactly. ``operations`` are the allowed operations among the kept names, all of them when not given.
    Letters, digits and underscores belong to a token, so `list` does not occur in `list_items`.
    """

    def __init__(self, hidden: Iterable[str], kept: Iterable[str], operations: Iterable[str] | None = None) -> None:
        self.kept = frozenset(kept)
        self.hidden = frozenset(name for name in hidden if name.strip())
        self.operations = self.kept if operations is None else frozenset(operations)
        self._strict = frozenset(name.casefold() for name in self.hidden - self.kept)
        self._all = frozenset(name.casefold() for name in self.hidden | self.operations)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        compound = {name for name in self.kept if not re.fullmatch(r"\w+", name)}
        names = sorted((self.hidden - self.kept) | compound, key=len, reverse=True)
        if not self._strict:
            return _NEVER
        return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)", re.IGNORECASE)

    def hits(self, text: str) -> bool:
        """Whether a hidden name that nothing allowed bears stands in ``text``."""
        return any(self.is_strict(match.group()) for match in self._pattern.finditer(text))

    def is_strict(self, word: str) -> bool:
        """Whether ``word`` itself is such a name."""
        return word not in self.kept and word.casefold() in self._strict

    def is_hidden(self, word: str) -> bool:
        """Whether ``word`` is a hidden name, one that something allowed bears as well included."""
        return self.is_strict(word) or word in self.hidden

    def is_name(self, word: str) -> bool:
        """Whether ``word`` names an operation, hidden or allowed."""
        return word.casefold() in self._all

    def borne(self, text: str) -> frozenset[str]:
        """The hidden names left standing in ``text`` because something allowed bears them."""
        shared = sorted(self.hidden & self.kept, key=len, reverse=True)
        if not shared:
            return frozenset()
        pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, shared))})(?!\w)")
        return frozenset(match.group() for match in pattern.finditer(text))
