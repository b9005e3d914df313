"""Agents x tools x operations with a truth table, from a seed; and the same as a policy, a registry, a gate of ours."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from gatewright.gate import Gate
from gatewright.policy.document import Agent, Defaults, Policy
from gatewright.policy.rule import AllowedOperations, ToolRule
from gatewright.policy.verdict import Verdict
from gatewright.tools import ToolRegistry
from tests.bench.measure import Ask, Triple
from tests.support.manyoperations import SIX, SixOperations

_SEED = 20_240_611


@dataclass(frozen=True, slots=True)
class Matrix:
    """Who may do what: agent to tool to operations; a tool that is missing is not allowed at all."""

    agents: tuple[str, ...]
    tools: tuple[str, ...]
    allowed: Mapping[str, Mapping[str, frozenset[str]]]

    @property
    def rules(self) -> int:
        """How many agent-tool rules there are."""
        return sum(map(len, self.allowed.values()))

    def truth(self, agent: str, tool: str, operation_name: str) -> bool:
        """Whether it is allowed."""
        return operation_name in self.allowed[agent].get(tool, frozenset())

    def queries(self, count: int) -> list[Triple]:
        """Random questions, from the same seed every time."""
        draw = random.Random(_SEED + count)
        return [(draw.choice(self.agents), draw.choice(self.tools), draw.choice(SIX)) for _ in range(count)]

    def policy(self) -> Policy:
        """The same as a policy: tools listed, operations limited by AllowedOperations."""
        agents = {agent: _agent(agent, tools) for agent, tools in self.allowed.items()}
        return Policy(defaults=Defaults(unlisted_tools=Verdict.DENY), agents=agents)


def matrix(agents: int = 200, tools: int = 60) -> Matrix:
    """A matrix in which every agent has about half of the tools, each with some of its operations."""
    draw = random.Random(_SEED)
    names = tuple(f"tool_{i:04}" for i in range(tools))
    ids = tuple(f"agent_{i:04}" for i in range(agents))
    return Matrix(ids, names, {agent: _some(draw, names) for agent in ids})


@lru_cache
def registry(tools: tuple[str, ...]) -> ToolRegistry:
    """A registry with a tool of six operations for every name; one for all who ask, nobody changes it."""
    made = ToolRegistry()
    for name in tools:
        kind = type(name, (SixOperations,), {"name": name, "description": f"Looks after the things of {name}."})
        made.register(kind())
    return made


def gate_of(truth: Matrix) -> Gate:
    """The matrix in force."""
    return Gate(truth.policy(), registry(truth.tools))


def plain_dict(truth: Matrix) -> Ask:
    """The least that can be done: a dict of dicts of frozensets."""
    table, nothing = {agent: dict(tools) for agent, tools in truth.allowed.items()}, frozenset[str]()

    def ask(agent: str, tool: str, operation_name: str) -> bool:
        return operation_name in table[agent].get(tool, nothing)

    return ask


def wrong_answers(truth: Matrix, ask: Ask, queries: Sequence[Triple]) -> int:
    """How many answers differ from the truth table; also what warms a contestant up."""
    return sum(_says_yes(ask(*query)) != truth.truth(*query) for query in queries)


def _says_yes(answer: object) -> bool:
    verdict = getattr(answer, "verdict", answer)
    return verdict is True or verdict is Verdict.ALLOW


def _agent(agent: str, tools: Mapping[str, frozenset[str]]) -> Agent:
    rules = tuple(ToolRule(name, AllowedOperations(some)) for name, some in tools.items() if len(some) < len(SIX))
    return Agent(agent, tools=tuple(tools), tool_rules=rules)


def _some(draw: random.Random, tools: Sequence[str]) -> dict[str, frozenset[str]]:
    chosen = [name for name in tools if draw.random() < 0.51]
    return {name: frozenset(draw.sample(SIX, draw.randint(1, len(SIX)))) for name in chosen}
