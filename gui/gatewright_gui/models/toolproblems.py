"""Which tools and agents the problems of a policy are about, as each says. It finds no problem itself."""

from collections.abc import Iterable, Mapping, Sequence

from gatewright.base.problem import Problem
from gatewright.policy.right import Layer, ToolRight

_MISFITS = frozenset({"rule-unknown-operation"})


def tools_with_problems(
    problems: Sequence[Problem], agent_id: str, rights: Mapping[str, ToolRight]
) -> dict[str, tuple[str, ...]]:
    """Tool -> what is wrong with it for one agent: problems that are about it, and rules that close it."""
    found: dict[str, list[str]] = {}
    for problem in problems:
        subject = problem.subject
        if subject is not None and (not subject.agents or agent_id in subject.agents):
            for name in dict.fromkeys(tool for tool, _ in subject.tools if tool in rights):
                found.setdefault(name, []).append(problem.message)
    for name, right in rights.items():
        closing = [r.text for r in right.reasons if r.layer is not Layer.TOOLS and r.code in _MISFITS]
        if closing:
            found.setdefault(name, []).extend(closing)
    return {name: tuple(dict.fromkeys(said)) for name, said in found.items()}


def agents_with_problems(problems: Sequence[Problem], agents: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Agent -> the problems that are about it by name."""
    known = set(agents)
    found: dict[str, list[str]] = {}
    for problem in problems:
        for name in problem.subject.agents if problem.subject is not None else ():
            if name in known:
                found.setdefault(name, []).append(problem.message)
    return {name: tuple(said) for name, said in found.items()}
