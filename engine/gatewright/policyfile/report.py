"""The findings of one load as problems: where each stands, and what it is about."""

from __future__ import annotations

from collections.abc import Iterable

from gatewright.base.problem import Address, Problem, Subject
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
    problems: list[Problem] = []
    for finding, place in found:
        subject: Subject | None = None
        if address := address_of(policy, finding.path):
            about = subject_of(policy, address)
            agents = about.agents if finding.agent_id is None else (finding.agent_id,)
            subject = Subject(address, agents, finding.tools or about.tools)
        problems.append(Problem(finding.severity, finding.code, finding.message, place, finding.near_miss, subject))
    return tuple(problems)


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
