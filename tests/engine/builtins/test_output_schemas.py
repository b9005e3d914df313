"""The output schemas of the built-in tools: each names its fields, and no agent reads of hidden operations in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, cast

import pytest

from gatewright import Gate, ToolRegistry
from gatewright.builtins import builtin_tools, file_tool, note_tools, root_tools
from gatewright.gate import Status
from gatewright.policyfile import KnownTools, parse_policy
from gatewright.schema import SchemaChecker
from gatewright.tools.declaration import ResultType
from gatewright.tools.registry import tool
from gatewright.tools.tool import Tool

EVERY: tuple[Tool, ...] = (*builtin_tools(), *note_tools(), *root_tools(), file_tool())
IDS = [f"{one.name}@{one.major}" for one in EVERY]
POLICY = 'gatewright = 1\n\n[agents.clerk]\ntools = ["give"]\napprovals = { privileged = "allow" }\n'


BY_TYPE: dict[str, object] = {"string": "tea", "integer": 3, "number": 0.5, "boolean": True, "null": None}


def samples(schema: dict[str, Any]) -> Iterator[Any]:
    """Values that fit: of a union each branch, of an object all fields, one for each value of each."""
    if "anyOf" in schema:
        for branch in schema["anyOf"]:
            yield from samples(branch)
    elif "const" in schema:
        yield schema["const"]
    elif schema["type"] == "object":
        values = {name: list(samples(field)) for name, field in schema.get("properties", {}).items()}
        first = {name: given[0] for name, given in values.items()}
        if isinstance(schema.get("additionalProperties"), dict):
            first["any"] = next(samples(schema["additionalProperties"]))
        yield first
        for name, given in values.items():
            yield from ({**first, name: one} for one in given[1:])
    elif schema["type"] == "array":
        yield from ([one] for one in samples(schema["items"]))
    else:
        said: Any = schema["type"]
        kinds: list[str] = [said] if isinstance(said, str) else said
        yield from map(BY_TYPE.__getitem__, kinds)


def changed(value: Any) -> Iterator[Any]:
    """The value with one of its parts as something of another type, part by part."""
    yield 7 if isinstance(value, str) else "tea"
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        for name, held in table.items():
            yield from ({**table, name: one} for one in changed(held))
    if isinstance(value, list):
        yield from ([one] for one in changed(cast("list[Any]", value)[0]))


@pytest.mark.parametrize("one", EVERY, ids=IDS)
def test_output_schema_of_each_built_in_refuses_every_field_of_another_type(one: Tool) -> None:
    assert one.output_schema is not None
    checker = SchemaChecker(one.output_schema)
    found = list(samples(one.output_schema))
    wrong = [other for value in found for other in changed(value)]

    assert all(map(checker.is_valid, found))
    assert len(wrong) > len(found)
    assert [value for value in wrong if checker.is_valid(value)] == []


@pytest.mark.parametrize("one", EVERY, ids=IDS)
async def test_gate_gives_nobody_a_result_with_a_field_of_another_type(one: Tool) -> None:
    given: list[Any] = []

    async def give() -> object:
        """Give it."""
        return given[0]

    registry = ToolRegistry()
    registry.register(tool(result_type=ResultType.ANY, output_schema=one.output_schema)(give))
    loaded = parse_policy(POLICY, file="policy.toml", known=KnownTools(registry.facts()))
    assert loaded.policy is not None
    gate = Gate(loaded.policy, registry)
    for value in samples(one.output_schema or {}):
        given[:] = [value]
        assert (await gate.call("clerk", "give", {})).status is Status.ALLOWED
        for wrong in changed(value):
            given[:] = [wrong]
            assert (await gate.call("clerk", "give", {})).code == "output-mismatch", wrong


@pytest.mark.parametrize("one", [one for one in EVERY if one.operations], ids=lambda one: f"{one.name}@{one.major}")
def test_no_output_schema_names_an_operation_that_is_hidden(one: Tool) -> None:
    names = [spec.name for spec in one.operations]
    for shown in [{name} for name in names] + [set(names) - {name} for name in names]:
        told = one.model_output(frozenset(shown))
        assert told is not None
        hidden = "|".join(set(names) - shown)
        assert re.search(rf"(?<![a-z])({hidden})(?![a-z])", json.dumps(told)) is None, (shown, told)


@pytest.mark.parametrize("one", [one for one in EVERY if one.operations], ids=lambda one: f"{one.name}@{one.major}")
def test_result_of_an_operation_fits_what_an_agent_that_has_it_is_told(one: Tool) -> None:
    for spec in one.operations:
        told = SchemaChecker(one.model_output(frozenset({spec.name})) or {})
        assert all(map(told.is_valid, samples(spec.output_schema or one.output_schema or {})))
