"""Collects the findings of one reading, by where they are in what is read."""

from __future__ import annotations

from collections.abc import Iterable

from gatewright.base.frozen import frozen
from gatewright.base.printable import printable
from gatewright.base.problem import Severity, ToolPart, near_miss

BOM = "\ufeff"
"""What a file in UTF-8 may begin with."""
RawPath = tuple[str | int, ...]
"""A path in what is read as it nests there, e.g. ``("sources", 0, "id")``."""
MAX_COMPARISONS = 20_000
MAX_WORD = 64
MAX_SHOWN = 200


@frozen
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
        return near_miss(word, options)

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


def shown(word: str) -> str:
    """``word`` in backticks on one line, shortened when it is very long."""
    text = printable(word[:MAX_SHOWN])
    return f"`{text}…`" if len(word) > MAX_SHOWN else f"`{text}`"
