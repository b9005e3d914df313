"""With constraints too, a call passes operation and schema exactly when it is valid against the shown schema."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import validators

from gatewright.builtins import builtin_tools, file_tool
from gatewright.gate import Gate, selfcheck
from gatewright.schema.check import SchemaChecker
from gatewright.schema.constraint import close_constraint
from gatewright.schema.walk import in_place, properties_of
from gatewright.tools.parameter import Role
from gatewright.tools.tool import Tool
from tests.engine.gate.constrained_calls import (
    Call,
    Maker,
    Schema,
    corpora_tools,
    fields_of,
    gate_for,
    passes,
    satisfies,
)

NOTHING: Schema = {"not": {}}
BUILT_IN: tuple[Tool, ...] = (*builtin_tools(), file_tool())


@cache
def strangers(corpora: Path) -> tuple[Tool, ...]:
    return tuple(corpora_tools(corpora))


def oracle_for(schema: Schema) -> Any:
    kinds: Any = validators
    return kinds.validator_for(schema, validators.Draft202012Validator)(schema)


def counts_of(maker: Maker, tool: Tool, calls: int) -> tuple[int, int]:
    """How many calls of ``tool`` under random constraints passed, and how many the constraints alone refused."""
    listed = maker.shown(tool)
    whole = schema_for(gate_for(tool, listed))
    parameters = [one for name in listed for one in tool.parameters(name)]
    marked = {one.name for one in parameters if one.role is not Role.PLAIN}
    names = {**{one.name: one.schema for one in parameters}, **properties_of(whole)}
    names = {name: schema for name, schema in names.items() if name not in marked}
    if not names:
        return 0, 0
    rules = maker.rules(tool, names)
    gate = gate_for(tool, listed, *rules)
    left = gate.view("a").rights[tool.name].shown
    narrowed = schema_for(gate)
    unlimited, after = oracle_for(whole), oracle_for(narrowed)
    before = unlimited if left == listed else oracle_for(schema_for(gate_for(tool, left)) if left else NOTHING)
    checkers = {
        json.dumps(schema): SchemaChecker(close_constraint(schema)).is_valid
        for rule in rules
        for schema in fields_of(rule).values()
    }
    named = {name for part in in_place(whole) for name in properties_of(part)}
    passed = refused = 0
    for _ in range(calls):
        call: Call = maker.call(whole)
        told = f"{tool.name} {sorted(listed)} {rules} {json.dumps(call)} {json.dumps(narrowed)}"
        fits, passing, satisfied = (
            before.is_valid(call),
            passes(gate, tool.name, call),
            satisfies(tool, left, rules, checkers, call),
        )
        assert passing == after.is_valid(call), told
        if says_all(gate, tool):
            assert passing == (fits and satisfied and call.keys() <= named), told
        if satisfied and unlimited.is_valid(call):
            assert left.issuperset(tool.operations_of(call) or ()), told
        passed += passing
        refused += fits and not passing
    return passed, refused


def schema_for(gate: Gate) -> Schema:
    """What the model is shown; nothing fits where the tool is hidden."""
    return next((listing.schema for listing in gate.view("a").listings()), NOTHING)


def says_all(gate: Gate, tool: Tool) -> bool:
    """Whether no lint says that the schema leaves a constraint out."""
    return not gate.view("a").lints("mcp").get(tool.name)


@pytest.mark.parametrize("seed", range(6))
def test_call_of_a_real_tool_passes_exactly_when_the_schema_and_every_constraint_allow_it(
    corpora: Path, seed: int
) -> None:
    maker, tools = Maker(seed), strangers(corpora)
    several = [tool for tool in tools if tool.has_operations]
    passed = refused = 0
    for _ in range(250):
        tool = maker.random.choice(tools if maker.random.random() < 0.5 else several)
        one = counts_of(maker, tool, 8)
        passed, refused = passed + one[0], refused + one[1]

    assert passed > 200
    assert refused > 100


@pytest.mark.parametrize("seed", range(4))
def test_call_of_a_built_in_tool_passes_exactly_when_the_schema_and_every_constraint_allow_it(seed: int) -> None:
    maker = Maker(seed)
    passed = refused = 0
    for _ in range(80):
        one = counts_of(maker, maker.random.choice(BUILT_IN), 8)
        passed, refused = passed + one[0], refused + one[1]

    assert passed > 50
    assert refused > 15


@pytest.mark.parametrize("seed", range(3))
def test_self_check_of_real_tools_under_random_constraints_finds_no_difference(corpora: Path, seed: int) -> None:
    maker, tools = Maker(seed), strangers(corpora)
    several = [tool for tool in tools if tool.has_operations]
    tried = untried = 0
    for _ in range(120):
        tool = maker.random.choice(tools if maker.random.random() < 0.5 else several)
        listed = maker.shown(tool)
        names = properties_of(schema_for(gate_for(tool, listed)))
        if not names:
            continue
        rules = maker.rules(tool, names)
        result = selfcheck(gate_for(tool, listed, *rules))
        assert result.differences == (), f"{tool.name} {sorted(listed)} {rules}"
        tried, untried = tried + result.checked, untried + len(result.no_witness)

    assert untried < tried / 2
