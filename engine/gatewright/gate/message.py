"""The words for the model: what to do next, nothing hidden, no echo of what it sent. They do not decide anything."""

from __future__ import annotations

import re
from collections.abc import Iterable

PREFIX = "Tool execution failed:"

NO_SUCH_TOOL = "no tool of that name is available to you; use one of the tools that you were given"
INTERNAL = "the call could not be checked; try something else"
PLACE = "that path is not available to you; choose another one"
PLACE_FIXED = "that path may not be changed in this way; choose another one or another way"
NO_BLOCK = "there is no block with that label"
BLOCK_FIXED = "that block may not be changed in this way; choose another one or another way"
NO_SOURCE = "no file source is available to you"
UNANSWERED = "this call needs the approval of an operator, and nobody answered; go on without it"
REFUSED = "an operator did not approve this call; go on without it"
STALE = "what this call would do has changed since an operator approved it; make the call again"
NOT_IN_TIME = "this call needs the approval of an operator, and none came in time; go on without it"
TOO_MANY_ASKS = "too many calls wait for an operator already; go on without this one, or try it again later"
NOT_ASKABLE = "this call needs the approval of an operator, who could not be asked; go on without it"
WITHDRAWN = "the approval was taken back, or an equal call used it; make the call again if it is still needed"
UNRECORDED = "the call could not be recorded and was not made; try again later"
RESULT_UNRECORDED = "the call was made, but its result could not be recorded and is withheld"
TIMED_OUT = "the tool took too long and was stopped"
ABANDONED = "the tool took too long and its result was discarded"
CRASHED = "the tool had an internal error; try other arguments or go on without it"
MISMATCH = "the tool ran, but its result is not what it should be and was not taken; do not make this call again"
NO_USER = "this tool works for one user, and this session belongs to none; go on without it"
MARKED = "the text holds `[REDACTED]`, the mark of something that you were not shown; write without it"
EMPTY = "the tool could not do what it was asked"

_CLAUSE = re.compile(r"(?<=[,;:.])\s+|\n+")


def to_model(text: str) -> str:
    """``text`` with the prefix that tells the model that its call was not done."""
    return f"{PREFIX} {text}"


class Redactor:
    """Takes what names a hidden operation or tool out of a tool's own message.

    A clause goes as a whole when a hidden operation stands in it as a word, or a hidden tool in backticks (without them
    too, where its name is no plain word): advice that the model cannot follow is of no use to it.
    """

    def __init__(self, operations: Iterable[str], tools: Iterable[str] = ()) -> None:
        words = [rf"(?<![^\W_]){re.escape(name)}(?![^\W_])" for name in sorted(operations) if name]
        self._operations = re.compile("|".join(words), re.IGNORECASE) if words else None
        self._tools = frozenset(name.casefold() for name in tools if name)

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
        return word in self._tools or ("." in word and any(word[:at] in self._tools for at in _dots(word)))


def _dots(word: str) -> list[int]:
    return [at for at, letter in enumerate(word) if letter == "."]


_QUOTED = re.compile(r"`([^`]{1,300})`")
_TAIL = re.compile(r"[@(\s]")
_MADE_UP = re.compile(r"(?<![\w.-])[^\W_]+(?:[_.-][^\W_]+)+(?![\w-])")
