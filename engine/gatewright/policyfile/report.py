"""The findings of one load as problems: where each stands, and what it is about."""

from __future__ import annotations

from collections.abc import Iterable

from gatewright.base.problem import Address, Place, Problem, Subject, ToolPart
from gatewright.base.report import Finding, RawPath
from gatewright.policy.document import Dialect, Policy
from gatewright.policy.subject import subject_of
from gatewright.policyfile.place import Places


def problems_of(findings: Iterable[Finding], places: Places, policy: Policy) -> tuple[Problem, ...]:
    """Every finding with its place, in the order of the file; of two at one place first the one that is first here.

    ``policy``: in which they were found, to say what they are about.
    """
    found = [(finding, places.place_of_raw(finding.path, at_value=finding.at_value)) for finding in findings]
    found.sort(key=lambda pair: (pair[1].line, pair[1].column))
    return tuple(_problem(finding, place, policy) for finding, place in found)


def _problem(finding: Finding, place: Place, policy: Policy) -> Problem:
    subject = subject_at(policy, finding.path, finding.agent_id, finding.tools)
    return Problem(finding.severity, finding.code, finding.message, place, finding.near_miss, subject)


def subject_at(
    policy: Policy, path: RawPath, agent_id: str | None = None, tools: tuple[ToolPart, ...] = ()
) -> Subject | None:
    """``agent_id``, ``tools``: whom it concerns, where the policy does not say so there. None of a text as a whole."""
    address = address_of(policy, path)
    if not address:
        return None
    found = subject_of(policy, address)
    return Subject(address, found.agents if agent_id is None else (agent_id,), tools or found.tools)


def address_of(policy: Policy, path: RawPath) -> Address:
    """The canonical address; empty where it has none, as in the data sources of Pattern."""
    match path:
        case ("data_sources", *_):
            return ()
        case ("sources", int(index), *rest):
            return ("sources", policy.sources[index].source_id, *rest) if index < len(policy.sources) else path[:1]
        case ("catalogs", int(index), *rest):
            return ("catalogs", policy.catalogs[index].catalog_id, *rest) if index < len(policy.catalogs) else path[:1]
        case ("sources" | "defaults", *_):
            return path
        case _ if policy.dialect is Dialect.PATTERN:
            return ("agents", *list(policy.agents)[:1], *path)
        case _:
            return path
