"""Row "tool list": what one agent's model is shown, as JSON objects."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from gatewright.gate import Gate
from gatewright.policy.edit import AgentChange, Edit, apply, change_set
from gatewright.policy.rule import AllowedOperations, ToolRule
from tests.bench.matrix import Matrix, matrix, registry
from tests.bench.measure import Effort, figure, quiet, timer_cost
from tests.bench.row import Bar, Figure, Measured, Row, at_most
from tests.support.manyoperations import SIX

_FORMAT = "mcp"
_FIRST, _EDITED, _AGAIN = "first of a new gate", "after an edit of the agent", "again"


def tool_list(effort: Effort) -> Row:
    """The first list, the one after an edit of the agent, and the one that is asked for again."""
    figures: dict[str, Measured] = {}
    bars: list[Bar] = []
    small, large = (5, 10) if effort.quick else (60, 1_000)
    for tools, first_ms, edited_ms, again_us in ((small, 1, 0.2, 20), (large, 15, 1, 500)):
        found = _lists(matrix(1, tools), 3 if effort.quick else 30)
        figures |= {f"{name}, {tools:,} tools": one for name, one in found.items()}
        bars += [
            at_most(f"{_FIRST}, {tools:,} tools", found[_FIRST], first_ms * 1000),
            at_most(f"{_EDITED}, {tools:,} tools", found[_EDITED], edited_ms * 1000),
            at_most(f"{_AGAIN}, {tools:,} tools", found[_AGAIN], again_us),
        ]
    return Row(
        "tool list",
        f"one agent that sees half of the tools, most with operations turned off; format {_FORMAT}",
        tuple(figures),
        figures,
        tuple(bars),
        notes=(
            "a new gate finds the tools registered and nothing else done: every schema is made and filtered anew",
            "an edit changes a rule where it stands, as the app does; the edit itself is not counted; processor time",
            "`again` is asked ten times in a row: its p99 is the first of them, behind a collection of garbage",
        ),
    )


def _lists(truth: Matrix, rounds: int) -> dict[str, Figure]:
    policy, tools, agent_id = truth.policy(), registry(truth.tools), truth.agents[0]
    gate = Gate(policy, tools)

    def fresh(_round: int) -> Callable[[], object]:
        new = Gate(policy, tools)
        return lambda: new.view(agent_id).tools(_FORMAT)

    def edited(number: int) -> Callable[[], object]:
        agent = gate.policy.agents[agent_id]
        name = (agent.tools or ())[number % len(agent.tools or ())]
        some = frozenset(SIX[: 1 + number % 5])
        fresh_rule = ToolRule(name, AllowedOperations(some))
        held = [rule.tool_name for rule in agent.tool_rules]
        place = held.index(name) if name in held else len(held)
        rules = (*agent.tool_rules[:place], fresh_rule, *agent.tool_rules[place + 1 :])
        edit = Edit("turn some off", (AgentChange(agent, replace(agent, tool_rules=rules)),))
        gate.reload(apply(gate.policy, edit), change_set(edit))
        return lambda: gate.view(agent_id).tools(_FORMAT)

    def again(_round: int) -> Callable[[], object]:
        return lambda: gate.view(agent_id).tools(_FORMAT)

    once = {name: _timed(prepare, rounds) for name, prepare in ((_FIRST, fresh), (_EDITED, edited))}
    return {**once, _AGAIN: _timed(again, rounds, 10)}


def _timed(prepare: Callable[[int], Callable[[], object]], rounds: int, times: int = 1) -> Figure:
    """Each time prepared anew, and then asked ``times`` in a row; the first time warms up."""
    samples: list[int] = []
    for number in range(rounds + 1):
        action = prepare(number)
        with quiet():
            for _ in range(times):
                began = time.process_time_ns()
                action()
                samples.append(time.process_time_ns() - began)
    return figure(samples[times:], timer_cost(time.process_time_ns))
