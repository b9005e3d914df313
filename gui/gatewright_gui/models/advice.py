"""What an agent lacks before its ticks can work, and its sources in words. It does not know where that is shown."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from gatewright.policy.document import Agent, Policy
from gatewright.policy.right import ToolRight

NOTHING_TICKED = "Nothing is ticked yet. Tick what this agent may do."
NOTHING_AT_ALL = "Choose a source, then tick what this agent may do."
NO_SOURCE = "No source is attached: what needs one stays off."


@dataclass(frozen=True, slots=True)
class Advice:
    """One line for the operator."""

    tone: Literal["info", "warning"]
    text: str


def advice_for(policy: Policy, agent: Agent, rights: Iterable[ToolRight]) -> Advice | None:
    """The next step for an agent of a policy with these rights; None when there is none to name."""
    ticked = (right for right in rights if right.shown or right.ticked_count)
    first = next(ticked, None)
    stranded = bool(policy.sources) and not policy.sources_of(agent)
    if first is None:
        return Advice("info", NOTHING_AT_ALL if stranded else NOTHING_TICKED)
    if stranded and any(right.facts.needs_source for right in chain((first,), ticked)):
        return Advice("warning", NO_SOURCE)
    return None


def sources_words(policy: Policy, agent: Agent) -> str:
    """The agent's sources in a few words."""
    attached = policy.sources_of(agent)
    if not attached:
        return "none"
    if len(attached) == 1:
        only = attached[0].source_id
        return f"every source ({only})" if agent.sources is None else only
    if agent.sources is None:
        return "every source"
    return f"{len(attached)} of {len(policy.sources)}"
