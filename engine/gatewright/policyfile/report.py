"""The findings of one load as problems with places."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from gatewright.base.problem import Place, Problem
from gatewright.base.report import Finding, RawPath
from gatewright.policy.document import Policy
from gatewright.policyfile.subject import subject_at


class Placing(Protocol):
    """Knows where things stand in one text."""

    def place_of_raw(self, path: RawPath, *, at_value: bool = False) -> Place:
        """Where the key (or the value) at a raw path stands, or its nearest parent."""
        ...


def problems_of(findings: Iterable[Finding], places: Placing, policy: Policy) -> tuple[Problem, ...]:
    """Every finding with its place, in the order of the file; of two at one place first the one that is first here.

    ``policy``: in which they were found, to say what they are about.
    """
    found = [(finding, places.place_of_raw(finding.path, at_value=finding.at_value)) for finding in findings]
    found.sort(key=lambda pair: (pair[1].line, pair[1].column))
    return tuple(_problem(finding, place, policy) for finding, place in found)


def _problem(finding: Finding, place: Place, policy: Policy) -> Problem:
    subject = subject_at(policy, finding.path, finding.agent_id, finding.tools)
    return Problem(finding.severity, finding.code, finding.message, place, finding.near_miss, subject)
