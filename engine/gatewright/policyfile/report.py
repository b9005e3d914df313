"""Collects the findings of one load and gives them places at the end. It does not know what is checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from gatewright.base.printable import printable
from gatewright.base.problem import Problem, Severity, near_miss
from gatewright.policyfile.subject import subject_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gatewright.base.problem import Place, ToolPart
    from gatewright.policy.document import Policy
    from gatewright.policyfile.scan import RawPath

MAX_COMPARISONS = 20_000
MAX_WORD = 64
MAX_SHOWN = 200


class Placing(Protocol):
    """Knows where things stand in one text."""

    def place_of_raw(self, path: RawPath, *, at_value: bool = False) -> Place:
        """Where the key (or the value) at a raw path stands, or its nearest parent."""
        ...


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with a part of a text, wherever that stands.

    ``agent_id``, ``tools``: whom it concerns, where the policy does not say so at that path.
    """

    path: RawPath
    at_value: bool
    severity: Severity
    code: str
    message: str
    near_miss: str | None
    agent_id: str | None = None
    tools: tuple[ToolPart, ...] = ()


class Report:
    """The findings so far; ``has_errors`` once there is one. Near misses are sought while they cost little time."""

    def __init__(self) -> None:
        self._findings: list[Finding] = []
        self._comparisons = 0
        self.has_errors = False

    def error(self, path: RawPath, code: str, message: str, *, near: str | None = None, at_value: bool = True) -> None:
        """An error at the value of ``path`` (or at its key)."""
        self.has_errors = True
        self._findings.append(Finding(path, at_value, Severity.ERROR, code, message, near))

    def warning(
        self,
        path: RawPath,
        code: str,
        message: str,
        *,
        near: str | None = None,
        at_value: bool = False,
        agent_id: str | None = None,
        tools: tuple[ToolPart, ...] = (),
    ) -> None:
        """A warning at the key of ``path`` (or at its value); ``agent_id``, ``tools``: see ``Finding``."""
        self._findings.append(Finding(path, at_value, Severity.WARNING, code, message, near, agent_id, tools))

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

    @property
    def error_paths(self) -> tuple[RawPath, ...]:
        """Where errors were found."""
        return tuple(finding.path for finding in self._findings if finding.severity is Severity.ERROR)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All of them, in the order in which they were found."""
        return tuple(self._findings)

    @property
    def sought(self) -> int:
        """How many words were looked at for near misses; from `MAX_COMPARISONS` on none are sought."""
        return self._comparisons


def problems_of(findings: Iterable[Finding], places: Placing, policy: Policy) -> tuple[Problem, ...]:
    """Every finding with its place, in the order of the file; of two at one place first the one that is first here.

    ``policy``: in which they were found, to say what they are about.
    """
    found = [(finding, places.place_of_raw(finding.path, at_value=finding.at_value)) for finding in findings]
    found.sort(key=lambda pair: (pair[1].line, pair[1].column))
    return tuple(_problem(finding, place, policy) for finding, place in found)


def shown(word: str) -> str:
    """``word`` in backticks on one line, shortened when it is very long."""
    text = printable(word[:MAX_SHOWN])
    return f"`{text}…`" if len(word) > MAX_SHOWN else f"`{text}`"


def _problem(finding: Finding, place: Place, policy: Policy) -> Problem:
    subject = subject_at(policy, finding.path, finding.agent_id, finding.tools)
    return Problem(finding.severity, finding.code, finding.message, place, finding.near_miss, subject)


def _folded(word: str) -> str:
    return word.replace("_", "").replace("-", "").replace(" ", "").casefold()
