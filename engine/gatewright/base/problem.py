"""Findings about files: place, code, message, near miss."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import StrEnum

from gatewright.base.frozen import frozen

Address = tuple[str | int, ...]
"""A key path into the policy in its canonical shape, e.g. ``("agents", "archivist", "tool_rules", 0)``."""
ToolPart = tuple[str, str | None]
"""A tool's name and one of its operations; None: the tool as a whole."""


class Severity(StrEnum):
    """How bad a problem is: an error keeps the policy from being enforced, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@frozen
class Place:
    """A position in a file; line and column count from 1."""

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@frozen
class Subject:
    """What a finding is about: the part of the policy at ``address``, the agents and the tools that it concerns.

    ``agents``: ids; none where it is about no agent more than about others. ``tools``: names without a version, each
    with one operation, or None for the tool as a whole.
    """

    address: Address
    agents: tuple[str, ...] = ()
    tools: tuple[ToolPart, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Shape: address (a list), agents, tools (each with tool and operation)."""
        tools = [{"tool": tool, "operation": operation} for tool, operation in self.tools]
        return {"address": list(self.address), "agents": list(self.agents), "tools": tools}


@frozen
class Problem:
    """One finding. ``code`` is stable and kebab-case; ``near_miss`` is the likely intended word.

    ``subject`` None: it is about the file as a text, or about none.
    """

    severity: Severity
    code: str
    message: str
    place: Place | None = None
    near_miss: str | None = None
    subject: Subject | None = None

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        hint = f" (did you mean `{self.near_miss}`?)" if self.near_miss else ""
        return f"{where}{self.severity}: {self.message}{hint} [{self.code}]"

    @property
    def is_error(self) -> bool:
        """Whether the policy may not be enforced because of it."""
        return self.severity is Severity.ERROR

    def to_json(self) -> dict[str, object]:
        """Shape: severity, code, message, file, line, column, near_miss, subject (each None when unknown)."""
        place = self.place
        return {
            "severity": str(self.severity),
            "code": self.code,
            "message": self.message,
            "file": place.file if place else None,
            "line": place.line if place else None,
            "column": place.column if place else None,
            "near_miss": self.near_miss,
            "subject": self.subject.to_json() if self.subject else None,
        }


def near_miss(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate most like ``word``, or None when nothing is close."""
    options = list(candidates)
    close = difflib.get_close_matches(word, options, n=1, cutoff=0.6)
    if close:
        return close[0]
    folded = {option.casefold(): option for option in options}
    return folded.get(word.casefold())


def near_hint(word: str, candidates: Iterable[str], *, listed: bool = False) -> str:
    """A question in brackets for the end of a message, whether the candidate most like ``word`` was meant.

    Where nothing is close it is empty, or names all candidates if ``listed``.
    """
    options = list(candidates)
    close = near_miss(word, options)
    if close:
        return f" (did you mean `{close}`?)"
    return f" (there are: {', '.join(options) or 'none'})" if listed else ""
