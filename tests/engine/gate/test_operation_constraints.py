"""Constraints on what carries the operation, and of some operations only: all views agree however they are spelt."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest

from gatewright.gate import Gate, selfcheck
from gatewright.policy.document import Agent, Policy
from gatewright.policy.rule import ArgumentConstraints, ToolRule
from gatewright.policy.verdict import Verdict
from gatewright.schema.check import SchemaChecker
from gatewright.tools.defined import DefinedTool
from gatewright.tools.definition import ToolDefinition
from gatewright.tools.registry import ToolRegistry

NAMES = ("read", "write", "delete")
Spelling = Callable[[tuple[str, ...]], dict[str, Any]]
SPELLINGS: list[Spelling] = [
    lambda kept: {"enum": list(kept)},
    lambda kept: {"$defs": {"k": {"enum": list(kept)}}, "$ref": "#/$defs/k"},
    lambda kept: {"definitions": {"k": {"enum": list(kept)}}, "allOf": [{"$ref": "#/definitions/k"}]},
    lambda kept: {"$defs": {"k": {"$anchor": "here", "enum": list(kept)}}, "$ref": "#here"},
    lambda kept: {"$defs": {"a/b": {"$ref": "#/$defs/c"}, "c": {"enum": list(kept)}}, "$ref": "#/$defs/a~1b"},
    lambda kept: {"$defs": {n: {"const": n} for n in kept}, "anyOf": [{"$ref": f"#/$defs/{n}"} for n in kept]},
    lambda kept: {"not": {"enum": [name for name in NAMES if name not in kept]}},
    lambda kept: {"pattern": f"^({'|'.join(kept)})$"},
    lambda kept: {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"k": {"enum": list(kept)}},
        "$ref": "#/definitions/k",
    },
]


def gate_of(schema: dict[str, Any], *rules: ToolRule) -> Gate:
    registry = ToolRegistry()
    registry.register(DefinedTool(ToolDefinition("store", "", schema), origin="stranger"))
    return Gate(Policy(agents={"a": Agent("a", tool_rules=rules)}), registry)


def constrained(*, operations: tuple[str, ...] = (), **fields: Any) -> ToolRule:
    return ToolRule("store", ArgumentConstraints(fields), tuple(f"operation:{name}" for name in operations))


def shown_of(gate: Gate) -> dict[str, Any]:
    (row,) = gate.view("a").listings()
    return row.schema


def is_denied(gate: Gate, call: dict[str, Any]) -> bool:
    return gate.decide("a", "store", call).verdict is Verdict.DENY


def on(gate: Gate) -> set[str]:
    return {row.operation for right in gate.view("a").rights.values() for row in right.operations if not row.is_hidden}


FLAT: dict[str, Any] = {
    "type": "object",
    "properties": {"op": {"type": "string", "enum": list(NAMES)}, "key": {"type": "string"}},
    "required": ["op"],
}
DEEP: dict[str, Any] = {
    "type": "object",
    "properties": {
        "request": {"type": "object", "properties": {"operation": {"enum": list(NAMES)}}, "required": ["operation"]}
    },
    "required": ["request"],
}


@pytest.mark.parametrize("spelling", range(len(SPELLINGS)))
@pytest.mark.parametrize("deep", [False, True])
def test_however_a_constraint_on_the_operation_is_spelt_it_hides_the_same(spelling: int, deep: bool) -> None:
    for kept in [*combinations(NAMES, 1), *combinations(NAMES, 2)]:
        said = SPELLINGS[spelling](kept)
        if deep:
            outer = {key: said.pop(key) for key in ("$schema", "$defs", "definitions") if key in said}
            gate = gate_of(DEEP, constrained(request={**outer, "properties": {"operation": said}}))
        else:
            gate = gate_of(FLAT, constrained(op=said))
        checker = SchemaChecker(shown_of(gate))
        for name in NAMES:
            call: dict[str, Any] = {"request": {"operation": name}} if deep else {"op": name}
            decision = gate.decide("a", "store", call)
            assert checker.is_valid(call) == (name in kept) == (decision.verdict is not Verdict.DENY), (said, name)
            assert name in kept or decision.stage == "operation"
        assert on(gate) == set(kept)
        assert selfcheck(gate).differences == ()


def test_a_constraint_that_refers_to_itself_is_held_against_the_operation() -> None:
    again = {"k": {"anyOf": [{"$ref": "#/$defs/k"}, {"const": "read"}]}}
    gate = gate_of(FLAT, constrained(op={"enum": ["read"], "$defs": again, "$ref": "#/$defs/k"}))

    assert on(gate) <= {"read"}
    assert selfcheck(gate).differences == ()
    assert is_denied(gate, {"op": "delete"})


OPTIONAL: list[dict[str, Any]] = [
    {"anyOf": [{"type": "string", "enum": list(NAMES)}, {"type": "null"}], "default": None},
    {"type": ["string", "null"], "enum": [*NAMES, None], "default": None},
]


@pytest.mark.parametrize("own", OPTIONAL)
@pytest.mark.parametrize(
    ("said", "takes"),
    [
        ({"type": "string"}, False),
        ({"enum": list(NAMES)}, False),
        ({"not": {"type": "null"}}, False),
        ({"pattern": "."}, False),
        ({"minLength": 1}, False),
        ({"$defs": {"k": {"type": "string"}}, "$ref": "#/$defs/k"}, False),
        ({"type": ["string", "null"]}, True),
        ({"anyOf": [{"enum": list(NAMES)}, {"type": "null"}]}, True),
        ({"maxLength": 9, "type": ["string", "null"]}, True),
    ],
)
def test_an_operation_field_left_out_counts_as_its_default(
    own: dict[str, Any], said: dict[str, Any], takes: bool
) -> None:
    schema = {"type": "object", "properties": {"op": own, "key": {"type": "string"}}}
    gate = gate_of(schema, constrained(op=said))
    checker = SchemaChecker(shown_of(gate))

    for call in ({}, {"op": None}, {"key": "k"}):
        assert checker.is_valid(call) == takes == (not is_denied(gate, call)), call
    assert not is_denied(gate, {"op": "read"})
    assert on(gate) == set(NAMES)
    assert selfcheck(gate).differences == ()


def test_an_optional_operation_field_without_default_may_be_left_out() -> None:
    gate = gate_of({**FLAT, "required": []}, constrained(op={"type": "string"}))

    assert SchemaChecker(shown_of(gate)).is_valid({}) == (not is_denied(gate, {}))


def test_a_request_with_a_default_counts_as_given() -> None:
    request = {**DEEP["properties"]["request"], "default": {"operation": "read"}}
    request["properties"] = {**request["properties"], "limit": {"type": "integer"}}
    schema = {"type": "object", "properties": {"request": request}}
    for said, takes in (({"required": ["limit"]}, False), ({"maxProperties": 1}, True)):
        gate = gate_of(schema, constrained(request=said))
        assert SchemaChecker(shown_of(gate)).is_valid({}) == takes == (not is_denied(gate, {}))


NOT_DEPENDING: list[dict[str, Any]] = [
    {**FLAT, "properties": {**FLAT["properties"], "path": {"type": "string"}}, "unevaluatedProperties": False},
    {**DEEP, "properties": {**DEEP["properties"], "path": {"type": "string"}}},
]


@pytest.mark.parametrize("schema", NOT_DEPENDING)
def test_what_the_schema_cannot_say_of_a_folder_is_a_lint(schema: dict[str, Any]) -> None:
    gate = gate_of(schema, constrained(path={"in_folder": "notes/"}, operations=("write",)))
    chosen = {"op": "write"} if "op" in schema["properties"] else {"request": {"operation": "write"}}
    call = {"path": "other/a", **chosen}

    assert is_denied(gate, call)
    assert SchemaChecker(shown_of(gate)).is_valid(call)
    assert "constraint-not-shown" in {lint.code for lint in gate.view("a").lints("mcp")["store"]}
