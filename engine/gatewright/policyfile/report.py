"""Collects the findings of one load and gives them places at the end. It does not know what is checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gatewright.base.problem import Problem, Severity, near_miss

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gatewright.base.problem import Place
    from gatewright.policyfile.place import Places
    from gatewright.policyfile.scan import RawPath

MAX_COMPARISONS = 20_000
MAX_WORD = 64
MAX_SHOWN = 200


@dataclass(frozen=True, slots=True)
class _Finding:
    path: RawPath
    at_value: bool
    severity: Severity
    code: str
    message: str
    near_miss: str | None


class Report:
    """The findings so far; ``has_errors`` once there is one. Near misses are sought while they cost little time."""

    def __init__(self) -> None:
        self._findings: list[_Finding] = []
        self._comparisons = 0
        self.has_errors = False

    def error(self, path: RawPath, code: str, message: str, *, near: str | None = None, at_value: bool = True) -> None:
        """An error at the value of ``path`` (or at its key)."""
        self.has_errors = True
        self._findings.append(_Finding(path, at_value, Severity.ERROR, code, message, near))

    def warning(
        self, path: RawPath, code: str, message: str, *, near: str | None = None, at_value: bool = False
    ) -> None:
        """A warning at the key of ``path`` (or at its value)."""
        self._findings.append(_Finding(path, at_value, Severity.WARNING, code, message, near))

    def near(self, word: str, candidates: Iterable[str]) -> str | None:
        """The candidate that ``word`` was probably meant to be."""
        if self._comparisons >= MAX_COMPARISONS or len(word) > MAX_WORD:
            return None
        options = sorted(candidates)[: MAX_COMPARISONS - self._comparisons]
        self._comparisons += len(options)
        same = {_folded(option): option for option in options}
        return same.get(_folded(word)) or near_miss(word, options)

    @property
    def first_error(self) -> tuple[RawPath, str] | None:
        """Where the first error was found, and what it says; None without one."""
        found = (finding for finding in self._findings if finding.severity is Severity.ERROR)
        return next(((finding.path, finding.message) for finding in found), None)

    def problems(self, places: Places) -> tuple[Problem, ...]:
        """Every finding with its place, in the order of the file."""
        found = [
            (finding, places.place_of_raw(f.path, at_value=f.at_value)) for finding in self._findings for f in [finding]
        ]
        found.sort(key=lambda pair: (pair[1].line, pair[1].column))
        return tuple(_problem(finding, place) for finding, place in found)


def shown(word: str) -> str:
    """``word`` in backticks on one line, shortened when it is very long."""
    text = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in word[:MAX_SHOWN])
    return f"`{text}…`" if len(word) > MAX_SHOWN else f"`{text}`"


def _problem(finding: _Finding, place: Place) -> Problem:
    return Problem(finding.severity, finding.code, finding.message, place, finding.near_miss)


def _folded(word: str) -> str:
    return word.replace("_", "").replace("-", "").replace(" ", "").casefold()
