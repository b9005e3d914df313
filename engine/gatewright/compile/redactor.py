"""Takes what names hidden operations and tools out of a text for the model."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gatewright.base.regex import late_regex

EMPTY = "the tool could not do what it was asked"

_CLAUSE = late_regex(r"(?<=[,;:.])\s+|\n+")


class Redactor:
    """Takes what names a hidden operation or tool out of a tool's own message.

    A clause goes as a whole when a hidden operation stands in it as a word, or a hidden tool in backticks (without them
    too, where its name is no plain word): advice that the model cannot follow is of no use to it.
    """

    def __init__(self, operations: Iterable[str], tools: Iterable[str] = ()) -> None:
        words = [rf"(?<![^\W_]){re.escape(name)}(?![^\W_])" for name in sorted(operations) if name]
        self._operations = re.compile("|".join(words), re.IGNORECASE) if words else None
        self._tools = frozenset(name.casefold() for name in tools if name)
        self._longest = max(map(len, self._tools), default=0)

    def __call__(self, text: str) -> str:
        """``text`` without the clauses that name something hidden; a general sentence when none is left."""
        return self.kept(text) or EMPTY

    def kept(self, text: str) -> str:
        """``text`` without the clauses that name something hidden."""
        if not self._names_hidden(text):
            return text
        kept = [clause for clause in _CLAUSE.split(text) if not self._names_hidden(clause)]
        return " ".join(kept).rstrip(" ,;:")

    def _names_hidden(self, text: str) -> bool:
        if self._operations is not None and self._operations.search(text) is not None:
            return True
        if not self._tools:
            return False
        quoted = (_TAIL.split(found.strip(), maxsplit=1)[0] for found in _QUOTED.findall(text))
        return any(map(self._is_hidden, quoted)) or any(map(self._is_hidden, _MADE_UP.findall(text)))

    def _is_hidden(self, word: str) -> bool:
        """Whether it is a hidden tool, or an operation of one."""
        word = word.casefold()
        head = word[: self._longest + 1]  # no longer one can begin with a tool's name and a dot
        return word in self._tools or any(head[:at] in self._tools for at, letter in enumerate(head) if letter == ".")


_QUOTED = late_regex(r"`([^`]{1,300})`")
_TAIL = late_regex(r"[@(\s]")
_MADE_UP = late_regex(r"(?<![\w.-])[^\W_]+(?:[_.-][^\W_]+)+(?![\w-])")
