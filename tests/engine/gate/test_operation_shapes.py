"""Operations in rarer spellings, behind a gate: found, shown as far as allowed, and shown exactly when let through."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gatewright.gate import Gate, selfcheck
from gatewright.policy.document import Agent, Policy
from gatewright.policy.rule import AllowedOperations, ArgumentConstraints, MaxCalls, ToolRule
from gatewright.policy.tier import SafetyTier
from gatewright.policy.verdict import Verdict
from gatewright.schema import SchemaChecker
from gatewright.tools import DefinedTool, ToolDefinition, ToolRegistry
from tests.agreement.compare import compared
from tests.agreement.world import Stranger

Json = dict[str, Any]
CALM = SafetyTier.READ_ONLY


def obj(*required: str, **properties: Any) -> Json:
    return {"type": "object", "properties": properties, "required": list(required)}


def one_of(*names: str) -> Json:
    return {"type": "string", "pattern": f"^({'|'.join(names)})$"}


OP = one_of("read", "write", "delete")
PATTERNS: dict[str, Json] = {
    "at the root": obj("op", op=OP, path={"type": "string"}),
    "pattern left out": obj(op={**OP, "default": "delete"}),
    "pattern or null": obj(op={**OP, "type": ["string", "null"]}),
    "with a list": obj("op", op={**one_of("read", "write"), "enum": ["write", "read"]}),
    "pattern of each variant": {
        "oneOf": [obj("op", op=one_of("read")), obj("op", "text", op=one_of("write", "delete"), text={})]
    },
    "in a batch": obj("ops", ops={"type": "array", "items": obj("op", op=OP)}),
    "in elements": obj("commands", commands={"type": "array", "items": {"anyOf": [obj("op", op=OP)]}}),
    "further inside too": obj("op", op=OP, then=obj("op", op=OP)),
    "in a batch, beside texts": obj(
        "ops", ops={"type": "array", "items": {"anyOf": [obj("op", op=OP), {"type": "string"}]}}
    ),
}
ENUM = {"enum": ["read", "write", "delete"]}


def map_of(schema: Json, **more: Any) -> Json:
    return {"type": "object", "additionalProperties": schema, **more}


MAPS: dict[str, Json] = {
    "required in each": obj("ops", ops=map_of(obj("operation", operation=ENUM, path={"type": "string"}))),
    "left out": obj(ops=map_of(obj(operation={**ENUM, "default": "delete"}))),
    "by pattern": obj(ops=map_of(obj("operation", operation=OP))),
    "beside texts": obj(ops=map_of({"anyOf": [obj("operation", operation=ENUM), {"type": "string"}]})),
    "one for each variant": obj(
        ops=map_of(
            {"oneOf": [obj("op", op={"const": "read"}), obj("op", "to", op={"enum": ["write", "delete"]}, to={})]}
        )
    ),
    "or null": obj(ops={"anyOf": [map_of(obj("op", op=ENUM)), {"type": "null"}]}),
    "behind a reference": {
        **obj(ops={"$ref": "#/$defs/Ops"}),
        "$defs": {"Ops": map_of({"$ref": "#/$defs/One"}), "One": obj("op", op=ENUM)},
    },
    "in a request": obj("request", request=obj("commands", commands=map_of(obj("action", action=ENUM)), dry={})),
    "steps that hold steps": {
        **obj(steps=map_of({"$ref": "#/$defs/step"})),
        "$defs": {"step": obj("op", op=ENUM, steps=map_of({"$ref": "#/$defs/step"}))},
    },
    "beside one": obj(request=obj("op", op=ENUM), more=map_of(obj("op", op=ENUM))),
}


IN_LISTS: dict[str, Json] = {
    "runs[].ops{}.op": obj(runs={"type": "array", "items": obj(ops=map_of(obj("op", op=ENUM)))}),
    "ops{}[].op": obj(ops=map_of({"type": "array", "items": obj("op", op=ENUM)})),
    "ops{}{}.op": obj(ops=map_of(map_of(obj("op", op=ENUM)))),
}


@pytest.mark.parametrize("name", [*PATTERNS, *MAPS, *IN_LISTS])
def test_operations_in_patterns_and_in_maps_are_found_and_gated(name: str) -> None:
    schema = {**PATTERNS, **MAPS, **IN_LISTS}[name]
    said = (name, tuple(ENUM["enum"])) if name in IN_LISTS else None
    stranger = Stranger(ToolDefinition("t", "Does things.", schema), "there", said)

    names = {spec.name for spec in stranger.tool.operations}
    tally = compared(((stranger, number) for number in range(len(stranger.limits))), 60)

    assert names >= {"read", "write"}
    assert tally.disagreements == []
    assert tally.valid > tally.calls / 20
    for cell in stranger.cells:
        if cell.limit.shown and not cell.is_hidden:
            assert not [one for one in names - cell.limit.shown if one in json.dumps(cell.listing.schema)]


def gate_of(schema: Json, *rules: ToolRule) -> Gate:
    registry = ToolRegistry()
    registry.register(
        DefinedTool(ToolDefinition("t", "Does things.", schema, safety_tier=CALM), origin="there", trusted=True)
    )
    return Gate(Policy(agents={"a": Agent("a", tool_rules=rules)}), registry)


ONLY = ToolRule("t", AllowedOperations(frozenset({"read", "write"})))


@pytest.mark.parametrize("name", [*PATTERNS, *MAPS])
def test_self_check_finds_views_and_calls_of_patterns_and_maps_alike(name: str) -> None:
    schema = {**PATTERNS, **MAPS}[name]
    for rules in ((), (ONLY,), (ToolRule("t", AllowedOperations(frozenset({"read"}))),)):
        result = selfcheck(gate_of(schema, *rules))

        assert [str(one) for one in result.differences] == []
        assert [one for one in result.no_witness if "read" in str(one)] == []


COMMANDS = MAPS["required in each"]


def test_every_command_of_a_map_comes_under_the_rules_of_its_operation() -> None:
    gate = gate_of(COMMANDS, ONLY, ToolRule("t", MaxCalls(1), conditions=("operation:write",)))
    read: Json = {"operation": "read"}
    write: Json = {"operation": "write"}

    assert gate.decide("a", "t", {"ops": {"x": read, "y": write}}).verdict is Verdict.ALLOW
    assert gate.decide("a", "t", {"ops": {"x": write, "y": write}}).code == "max-calls"
    assert gate.decide("a", "t", {"ops": {}}).verdict is Verdict.ALLOW
    assert gate.decide("a", "t", {"ops": {"x": read, "y": "write"}}).verdict is Verdict.DENY


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ({"operation": "delete"}, "must be one of"),
        ({"operation": "x"}, "must be one of"),
        ({}, "is missing: it must be one of"),
    ],
)
def test_the_refusal_of_a_command_of_a_map_says_where_and_repeats_no_key(command: Json, words: str) -> None:
    decision = gate_of(COMMANDS, ONLY).decide("a", "t", {"ops": {"good": {"operation": "read"}, "delete": command}})

    assert (decision.verdict, decision.stage) == (Verdict.DENY, "operation")
    assert decision.model_message == f"Tool execution failed: `/ops/*/operation` {words} `read`, `write`"


@pytest.mark.parametrize(
    ("constraint", "hidden"),
    [
        ({"additionalProperties": {"properties": {"operation": {"enum": ["read"]}}}}, {"write", "delete"}),
        ({"properties": {"a": {"properties": {"operation": {"const": "read"}}}}}, set[str]()),
        (
            {"additionalProperties": False, "properties": {"x": {"properties": {"operation": {"const": "read"}}}}},
            {"write", "delete"},
        ),
        ({"enum": [{"x": {"operation": "read"}}, {"y": {"operation": "write"}}, {}]}, {"delete"}),
        ({"maxProperties": 1}, set[str]()),
    ],
)
def test_a_constraint_on_the_map_hides_what_no_command_can_name_any_more(constraint: Json, hidden: set[str]) -> None:
    gate = gate_of(COMMANDS, ToolRule("t", ArgumentConstraints({"ops": constraint})))

    shown = json.dumps(gate.view("a").tools("mcp"))

    assert {name for name in ("read", "write", "delete") if name not in shown} == hidden
    assert [str(one) for one in selfcheck(gate).differences] == []
    for name in ("read", "write", "delete"):
        for key in ("a", "x", "y"):
            call: Json = {"ops": {key: {"operation": name}}}
            valid = SchemaChecker(gate.view("a").listings()[0].schema).is_valid(call)
            assert valid == (gate.decide("a", "t", call).verdict is Verdict.ALLOW)


@pytest.mark.parametrize(
    ("ops", "value"),
    [
        (map_of(obj("op", op=ENUM), properties={"name": {"type": "string"}}), {"name": "x"}),
        (map_of(obj("op", op=ENUM), patternProperties={"^x-": {}}), {"x-y": 1}),
        ({"anyOf": [map_of(obj("op", op=ENUM)), obj(name={"type": "string"})]}, {"name": "x"}),
    ],
)
def test_an_object_with_fields_of_its_own_is_no_map_of_commands(ops: Json, value: Json) -> None:
    assert gate_of(obj(ops=ops)).decide("a", "t", {"ops": value}).verdict is Verdict.ALLOW


def test_an_element_that_names_no_operation_counts_as_each_of_them() -> None:
    schema = PATTERNS["in a batch, beside texts"]
    once = ToolRule("t", MaxCalls(1), conditions=("operation:write",))
    free, limited, restricted = gate_of(schema), gate_of(schema, once), gate_of(schema, ONLY)
    write: Json = {"op": "write"}

    assert free.decide("a", "t", {"ops": [write, "later"]}).verdict is Verdict.ALLOW
    assert limited.decide("a", "t", {"ops": ["later"]}).verdict is Verdict.ALLOW
    assert limited.decide("a", "t", {"ops": [write, "later"]}).code == "max-calls"
    assert restricted.decide("a", "t", {"ops": [write, "later"]}).verdict is Verdict.DENY
    assert free.decide("a", "t", {"ops": [write, 7]}).verdict is Verdict.DENY
