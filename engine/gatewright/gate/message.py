"""The words for the model: what to do next, nothing hidden, no echo of what it sent. They do not decide anything."""

from __future__ import annotations

import re
from collections.abc import Iterable

PREFIX = "Tool execution failed:"

NO_SUCH_TOOL = "no tool of that name is available to you; use one of the tools that you were given"
INTERNAL = "the call could not be checked; try something else"
PLACE = "that path is not available to you; choose another one"
PLACE_FIXED = "that path may not be changed in this way; choose another one or another way"
NO_SOURCE = "no file source is available to you"
UNANSWERED = "this call needs the approval of an operator, and nobody answered; go on without it"
REFUSED = "an operator did not approve this call; go on without it"
STALE = "what this call would do has changed since an operator approved it; make the call again"
UNRECORDED = "the call could not be recorded and was not made; try again later"
RESULT_UNRECORDED = "the call was made, but its result could not be recorded and is withheld"
TIMED_OUT = "the tool took too long and was stopped"
ABANDONED = "the tool took too long and its result was discarded"
CRASHED = "the tool had an internal error; try other arguments or go on without it"
BINARY = "the result is binary, which is not supported"
EMPTY = "the tool could not do what it was asked"

_CLAUSE = re.compile(r"(?<=[,;:.])\s+|\n+")


def to_model(text: str) -> str:
    """``text`` with the prefix that tells the model that its call was not done."""
    return f"{PREFIX} {text}"


class Redactor:
    """Takes what names a hidden operation or tool out of a tool's own failure message.

    A clause goes as a whole when a hidden operation stands in it as a word, or a hidden tool in backticks: advice that
    the model cannot follow is of no use to it.
    """

    def __init__(self, operations: Iterable[str], tools: Iterable[str] = ()) -> None:
        words = [rf"(?<![^\W_]){re.escape(name)}(?![^\W_])" for name in sorted(operations) if name]
        quoted = [f"`{re.escape(name)}`" for name in sorted(tools) if name]
        self._hidden = re.compile("|".join([*words, *quoted]), re.IGNORECASE) if words or quoted else None

    def __call__(self, text: str) -> str:
        """``text`` without the clauses that name something hidden; a general sentence when none is left."""
        hidden = self._hidden
        if hidden is None or hidden.search(text) is None:
            return text
        kept = [clause for clause in _CLAUSE.split(text) if hidden.search(clause) is None]
        return " ".join(kept).rstrip(" ,;:") or EMPTY
