"""Where one can go in the open workspace: agents, tools, operations, sources, problems. It shows none of them."""

from typing import Literal, NamedTuple, TypeAlias

from gatewright.workspace.api import Problem
from gatewright_gui.session.document import Document
from gatewright_gui.session.navigator import DEFAULT_LEVEL, Navigator
from gatewright_gui.session.ruleplace import LinePlace, RulePlace, place_of_subject
from gatewright_gui.session.selection import Selection

Kind: TypeAlias = Literal["agent", "tool", "operation", "source", "problem"]
MAX_PROBLEMS = 200
"""The Problems page lists the rest."""


class Place(NamedTuple):
    """`name` is an id or a tool's name; of a problem its words, `at` where to. A tuple: there are tens of thousands."""

    kind: Kind
    name: str
    operation: str = ""
    detail: str = ""
    at: RulePlace | None = None


def places_of(document: Document) -> tuple[Place, ...]:
    """All of them, agents first; empty when nothing is open."""
    agents = [Place("agent", agent.agent_id, detail=agent.description) for agent in document.agents]
    sources = [Place("source", source.source_id, detail=source.base_path) for source in document.policy.file_sources]
    tools: list[Place] = []
    operations: list[Place] = []
    for facts in document.catalog:
        tools.append(Place("tool", facts.name, detail=facts.description))
        if facts.has_operations:
            operations += [Place("operation", facts.name, op.name, op.description) for op in facts.operations]
    problems = [
        Place("problem", problem.message, detail=problem.code, at=place_of_problem(document, problem))
        for problem in document.problems[:MAX_PROBLEMS]
    ]
    return (*agents, *tools, *operations, *sources, *problems)


def place_of_problem(document: Document, problem: Problem) -> RulePlace | None:
    """The place to look at a problem.

    Its line where there is no better place, and always of a file that is not in force; None without a line.
    """
    is_in_force = document.is_open and (document.alarm is None or problem not in document.alarm.problems)
    subject = problem.subject if is_in_force else None
    better = place_of_subject(document.policy, subject) if subject is not None else None
    return better or (LinePlace(problem.place.line) if problem.place is not None else None)


def go_to(place: Place, navigator: Navigator, selection: Selection) -> None:
    """Show a place. A tool is shown for the agent that is chosen."""
    match place.kind:
        case "agent":
            selection.choose_agent(place.name)
            navigator.go_to_page("tools")
        case "tool" | "operation":
            navigator.go_to_tool(selection.agent_id or "", place.name, place.operation or None)
        case "source":
            navigator.go_to_level(place.name, DEFAULT_LEVEL)
        case "problem":
            if place.at is not None:
                navigator.go_to_rule(place.at)
            else:
                navigator.go_to_page("problems")
