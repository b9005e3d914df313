"""With constraints too, a call passes operation and schema exactly when it is valid against the shown schema."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import validators

from gatewright.builtins import builtin_tools, file_tool
from gatewright.schema.check import SchemaChecker
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

BUILT_IN: tuple[Tool, ...] = (*builtin_tools(), file_tool())


@cache
def strangers(corpora: Path) -> tuple[Tool, ...]:
    return tuple(corpora_tools(corpora))


def oracle_for(schema: Schema) -> Any:
    kinds: Any = validators
    return kinds.validator_for(schema, validators.Draft202012Validator)(schema)


def counts_of(maker: Maker, tool: Tool, calls: int) -> tuple[int, int]:
    """How many calls of ``tool`` under random constraints passed, and how many the constraints alone refused."""
    shown = maker.shown(tool)
    whole = gate_for(tool, shown).view("a").listings()[0].schema
    names = {one.name: one.schema for name in shown for one in tool.parameters(name) if one.role is Role.PLAIN}
    if not names:
        return 0, 0
    rules = maker.rules(tool, names)
    gate = gate_for(tool, shown, *rules)
    listings = gate.view("a").listings()
    narrowed, before, after = listings[0].schema, oracle_for(whole), oracle_for(listings[0].schema)
    checkers = {
        json.dumps(schema): SchemaChecker(schema).is_valid for rule in rules for schema in fields_of(rule).values()
    }
    passed = refused = 0
    for _ in range(calls):
        call: Call = maker.call(whole)
        told = f"{tool.name} {sorted(shown)} {rules} {json.dumps(call)} {json.dumps(narrowed)}"
        fits, passing = before.is_valid(call), passes(gate, tool.name, call)
        assert passing == after.is_valid(call), told
        if says_all(tool):
            assert passing == (fits and satisfies(tool, rules, checkers, call)), told
        passed += passing
        refused += fits and not passing
    return passed, refused


def says_all(tool: Tool) -> bool:
    """Whether the schema can say every constraint: the operation stands in a field of the root's own."""
    field = tool.operation_field
    return not tool.has_operations or tool.operations_of({field: "?"}) == ("?",)


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
