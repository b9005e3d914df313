"""What a finding at a path of the TOML is about: the canonical address, the agents, the tools. It finds no fault."""

from __future__ import annotations

from gatewright.base.problem import Address, Subject, ToolPart
from gatewright.base.report import RawPath
from gatewright.policy.document import Dialect, Policy
from gatewright.policy.subject import subject_of


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
