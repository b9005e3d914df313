"""Row "tick": what one tick of a checkbox costs until everything that is shown of the policy is current again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from gatewright.gate import Gate, selfcheck
from gatewright.policy.document import Agent, Policy
from gatewright.policy.edit import AgentChange, Edit, apply, change_set
from gatewright.policy.rule import AllowedOperations, ToolRule
from gatewright.schema.formats import TokenCounter, format_named
from gatewright.tools import ToolRegistry
from tests.bench.matrix import matrix
from tests.bench.measure import Effort, figure, quiet, timer_cost
from tests.bench.row import Bar, Figure, Measured, Row, at_most
from tests.support.manyoperations import EIGHT, EightOperations

_FORMAT = "openai"
_RELOAD, _LIST, _USAGE, _TOKENS, _PROBLEMS = "take over", "tool list", "usage rules", "tokens", "problems"
_ALL, _CHECK = "all of these", "self-check of the agent"


def tick(effort: Effort) -> Row:
    """An operation turned on or off, and what of the policy is shown beside it made current, step by step."""
    agents, tools = (3, 20) if effort.quick else (200, 1_000)
    ticking = _Ticking(agents, tools)
    figures: dict[str, Measured] = dict(ticking.timed(3 if effort.quick else 30))
    every = figures[_ALL]
    bars: tuple[Bar, ...] = (at_most(_ALL, every, 50_000),)
    return Row(
        "tick",
        f"{tools:,} tools of 8 operations, {agents} agents; a rule of one agent changes",
        tuple(figures),
        figures,
        bars,
        notes=(
            f"format {_FORMAT}; tokens by their bytes: the app has them counted by a process of its own",
            "the edit itself is not counted; processor time of the engine, in whatever thread the app has it done",
        ),
    )


class _Ticking:
    """A gate with everything asked for once, so that a tick finds what the one before it left."""

    def __init__(self, agents: int, tools: int) -> None:
        truth = matrix(agents, tools)
        self._agent_id = truth.agents[0]
        self._gate = Gate(truth.policy(), _registry(truth.tools))
        self._counter, self._form = TokenCounter(None), format_named(_FORMAT)
        self._steps: Mapping[str, Callable[[], object]] = {
            _LIST: lambda: self._gate.view(self._agent_id).tools(_FORMAT),
            _USAGE: lambda: self._gate.view(self._agent_id).usage_rules,
            _TOKENS: self._tokens,
            _PROBLEMS: self._gate.problems,
        }

    def timed(self, rounds: int) -> dict[str, Figure]:
        """Each step of each tick, what they take together, and the self-check of the agent behind them."""
        samples: dict[str, list[int]] = {name: [] for name in (_RELOAD, *self._steps, _ALL, _CHECK)}
        for number in range(-2, rounds):
            policy, edit = self._edited(number)
            taken: dict[str, int] = {}
            with quiet():
                taken[_RELOAD] = _time(lambda policy=policy, edit=edit: self._gate.reload(policy, change_set(edit)))
                taken |= {name: _time(step) for name, step in self._steps.items()}
                taken[_ALL] = sum(taken.values())
                taken[_CHECK] = _time(lambda: selfcheck(self._gate, (self._agent_id,)))
            if number >= 0:
                for name, one in taken.items():
                    samples[name].append(one)
        floor = timer_cost(time.process_time_ns)
        return {name: figure(found, floor) for name, found in samples.items()}

    def _edited(self, number: int) -> tuple[Policy, Edit]:
        agent = self._gate.policy.agents[self._agent_id]
        names = agent.tools or ()
        edit = Edit("a tick", (AgentChange(agent, _ticked(agent, names[number % len(names)], number)),))
        return apply(self._gate.policy, edit), edit

    def _tokens(self) -> None:
        view = self._gate.view(self._agent_id)
        for listings in (view.listings(), view.full_listings()):
            self._counter.count(listings, self._form)


def _ticked(agent: Agent, name: str, number: int) -> Agent:
    """The agent with other operations of that tool, the rule where it stands."""
    rule = ToolRule(name, AllowedOperations(frozenset(EIGHT[: 1 + number % 7])))
    held = [one.tool_name for one in agent.tool_rules]
    place = held.index(name) if name in held else len(held)
    return replace(agent, tool_rules=(*agent.tool_rules[:place], rule, *agent.tool_rules[place + 1 :]))


def _registry(names: tuple[str, ...]) -> ToolRegistry:
    made = ToolRegistry()
    for name in names:
        kind = type(name, (EightOperations,), {"name": name, "description": f"Looks after the things of {name}."})
        made.register(kind())
    return made


def _time(action: Callable[[], object]) -> int:
    began = time.process_time_ns()
    action()
    return time.process_time_ns() - began
