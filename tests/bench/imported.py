"""Row "imported tools": tools of real servers, from definitions to what a model is shown, and an edit after that."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from gatewright.gate import Gate
from gatewright.policy.document import Agent, Policy
from gatewright.policy.edit import AgentChange, Edit, apply, change_set
from gatewright.policy.rule import AllowedOperations, ToolRule
from gatewright.schema import check_schema
from gatewright.tools.defined import DefinedTool
from gatewright.tools.definition import ToolDefinition
from gatewright.tools.registry import ToolRegistry
from tests.bench.measure import Effort, quiet
from tests.bench.row import Figure, Measured, Missing, Row, at_most

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpora" / "mcp_tools.json"
_FORMAT = "openai"
_AGENTS = 3
_PARTS = ("definitions to registered tools", "registered tools to a gate's first list", "all of it")
_EDIT = "one edit to the new list and usage rules"


def imported_tools(effort: Effort) -> Row:
    """Compiled from nothing a few times, then edited tool by tool."""
    count, rounds, edits = (40, 1, 3) if effort.quick else (2_000, 3, 40)
    figures: dict[str, Measured] = dict.fromkeys((*_PARTS, _EDIT), Missing("the corpora are not here"))
    if CORPUS.is_file():
        figures |= _figures(count, rounds, edits)
    return Row(
        "imported tools",
        f"{count:,} tools of real servers, {_AGENTS} agents; every tool with operations has some turned off",
        tuple(figures),
        figures,
        (at_most("all of it", figures["all of it"], 3_000, "ms"), at_most(_EDIT, figures[_EDIT], 50, "ms")),
        notes=("each schema is a copy of its own; processor time",),
    )


def _figures(count: int, rounds: int, edits: int) -> dict[str, Measured]:
    samples: dict[str, list[int]] = {name: [] for name in (*_PARTS, _EDIT)}
    for _ in range(rounds):
        definitions = _definitions(count)
        with quiet():
            began = time.process_time_ns()
            tools = registry(definitions)
            registered = time.process_time_ns()
            gate = Gate(policy(tools), tools)
            gate.view("agent_0").tools(_FORMAT)
            done = time.process_time_ns()
        for name, spent in zip(_PARTS, (registered - began, done - registered, done - began), strict=True):
            samples[name].append(spent)
        samples[_EDIT] = _edits(gate, edits)
    return {name: _in_ms(taken) for name, taken in samples.items()}


def _definitions(count: int) -> list[ToolDefinition]:
    """Copies under names of their own, as if from different servers; none shares an object with another."""
    text = CORPUS.read_text("utf-8")
    usable = [row["tool"] for row in json.loads(text) if not check_schema(row["tool"]["inputSchema"])]
    made: list[ToolDefinition] = []
    while len(made) < count:
        tool: dict[str, Any] = json.loads(json.dumps(usable[len(made) % len(usable)]))
        name = f"s{len(made)}_{tool['name']}"[:64]
        made.append(ToolDefinition(name, tool.get("description") or "", tool["inputSchema"]))
    return made


def registry(definitions: list[ToolDefinition]) -> ToolRegistry:
    """What a workspace does with a manifest."""
    tools = ToolRegistry()
    for definition in definitions:
        tools.register(DefinedTool(definition, origin="imported"))
    return tools


def policy(tools: ToolRegistry) -> Policy:
    """Each agent has another part of the operations of each tool."""
    agents = [f"agent_{number}" for number in range(_AGENTS)]
    return Policy(agents={name: Agent(name, tool_rules=_rules(tools, number)) for number, name in enumerate(agents)})


def _rules(tools: ToolRegistry, number: int) -> tuple[ToolRule, ...]:
    limited = [(facts.name, facts.operation_names) for facts in tools.facts() if len(facts.operation_names) > 1]
    return tuple(
        ToolRule(name, AllowedOperations(frozenset(names) - {names[number % len(names)]})) for name, names in limited
    )


def _edits(gate: Gate, count: int) -> list[int]:
    """Each turns the operations of one tool round, as a tick does."""
    samples: list[int] = []
    gate.view("agent_0").usage_rules  # noqa: B018 made once before
    for number in range(count):
        agent = gate.policy.agents["agent_0"]
        index = number % len(agent.tool_rules)
        rule = agent.tool_rules[index]
        names = gate.view("agent_0").rights[rule.tool_name].facts.operation_names
        turned = replace(rule, rule_type=AllowedOperations(frozenset(names[: 1 + number % (len(names) - 1)])))
        rules = (*agent.tool_rules[:index], turned, *agent.tool_rules[index + 1 :])
        edit = Edit("turn some off", (AgentChange(agent, replace(agent, tool_rules=rules)),))
        with quiet():
            began = time.process_time_ns()
            gate.reload(apply(gate.policy, edit), change_set(edit))
            view = gate.view("agent_0")
            view.tools(_FORMAT)
            view.usage_rules  # noqa: B018 made when it is read
            samples.append(time.process_time_ns() - began)
    return samples


def _in_ms(samples: list[int]) -> Figure:
    ordered = sorted(samples)
    return Figure(
        ordered[len(ordered) // 2] / 1e6, ordered[min(len(ordered) * 99 // 100, len(ordered) - 1)] / 1e6, "ms"
    )
