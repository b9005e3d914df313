"""Which tools and agents the problems of a policy speak of, by the names in their messages. It finds no problem itself.

A problem that names an agent is that agent's alone.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from gatewright.base.problem import Problem
from gatewright.policy.right import Layer, ToolRight
from gatewright.policy.toolname import split_name

_QUOTED = re.compile(r"`([^`]+)`")
_MISFITS = frozenset({"rule-unknown-operation"})


def tools_with_problems(
    problems: Sequence[Problem], agent_id: str, agents: Iterable[str], rights: Mapping[str, ToolRight]
) -> dict[str, tuple[str, ...]]:
    """Tool -> what is wrong with it for one agent: problems that name it, and rules that close it."""
    others = set(agents) - {agent_id}
    found: dict[str, list[str]] = {}
    for problem in problems:
        names = _QUOTED.findall(problem.message)
        if agent_id in names or others.isdisjoint(names):
            for name in dict.fromkeys(filter(None, (_tool(name, rights) for name in names))):
                found.setdefault(name, []).append(problem.message)
    for name, right in rights.items():
        closing = [r.text for r in right.reasons if r.layer is not Layer.TOOLS and r.code in _MISFITS]
        if closing:
            found.setdefault(name, []).extend(closing)
    return {name: tuple(dict.fromkeys(said)) for name, said in found.items()}


def agents_with_problems(problems: Sequence[Problem], agents: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Agent -> the problems that name it."""
    known = set(agents)
    found: dict[str, list[str]] = {}
    for problem in problems:
        for name in dict.fromkeys(_QUOTED.findall(problem.message)):
            if name in known:
                found.setdefault(name, []).append(problem.message)
    return {name: tuple(said) for name, said in found.items()}


def _tool(written: str, rights: Mapping[str, ToolRight]) -> str | None:
    """`name`, `name@2` or `name.operation`: the longest name that there is."""
    bare = split_name(written)[0]
    while bare not in rights:
        bare, dot, _ = bare.rpartition(".")
        if not dot:
            return None
    return bare
