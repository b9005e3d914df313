"""Operations in rarer spellings, behind a gate: found, shown as far as allowed, and shown exactly when let through."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from gatewright.base.errors import SchemaError
from gatewright.gate import Gate, selfcheck
from gatewright.policy.document import Agent, Policy
from gatewright.policy.rule import AllowedOperations, ArgumentConstraints, MaxCalls, ToolRule
from gatewright.policy.verdict import SafetyTier, Verdict
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


OTHERS: list[Any] = [3, -0.5, True, False, {"k": 1}, ["read"], [], None]
"""Values that are no texts, which name no operation."""
MIXED: dict[str, Callable[[list[str], list[Any]], Json]] = {
    "enum": lambda names, more: obj("op", op={"enum": [*names, *more]}, path={}),
    "enum left out": lambda names, more: obj(op={"enum": [*more, *names], "default": names[-1]}),
    "constants": lambda names, more: obj("op", op={"oneOf": [{"const": one} for one in [*names, *more]]}),
    "two lists": lambda names, more: obj("op", op={"anyOf": [{"enum": names}, {"enum": more}]}),
    "of some types": lambda names, more: obj("op", op={"type": ["string", "integer"], "enum": [*names, *more]}),
    "variants": lambda names, more: {"oneOf": [obj("op", op={"const": one}) for one in [*names, *more]]},
    "variant of both": lambda names, more: {
        "oneOf": [*(obj("op", op={"const": one}) for one in names[1:]), obj("op", "x", op={"enum": [names[0], *more]})]
    },
    "batch": lambda names, more: obj("ops", ops={"type": "array", "items": obj("op", op={"enum": [*names, *more]})}),
    "map": lambda names, more: obj("ops", ops=map_of(obj("op", op={"enum": [*names, *more]}))),
    "further inside too": lambda names, more: obj(
        "op", op={"enum": names}, then=obj("op", op={"enum": [*names, *more]})
    ),
    "list": lambda names, more: obj("actions", actions={"type": "array", "items": {"enum": [*names, *more]}}),
    "list or null": lambda names, _: obj(
        operations={"anyOf": [{"type": "array", "items": {"enum": names}, "minItems": 1}, {"type": "null"}]}, dry={}
    ),
    "list left out": lambda names, _: obj(
        commands={"type": ["array", "null"], "items": {"type": "string", "enum": names}, "default": names}
    ),
    "list in an open variant": lambda names, _: {
        "anyOf": [obj("op_list", op_list={}), obj("action", action={"type": "array", "items": {"enum": names}})]
    },
}


def values_of(call: Json) -> Any:
    """The value that a call made here has where operations are named."""
    return next(
        value for key, value in call.items() if key in {"op", "ops", "actions", "operations", "commands", "action"}
    )


@pytest.mark.parametrize("how", MIXED)
def test_lists_with_values_that_are_no_texts_and_lists_of_names_are_found_and_gated(how: str) -> None:
    for seed in range(6):
        dice = random.Random(f"{how} {seed}")
        names = dice.sample(["read", "write", "delete", "list_all", "purge"], dice.randint(2, 4))
        more = dice.sample(OTHERS, dice.randint(1, 4))
        stranger = Stranger(ToolDefinition("t", "Does things.", MIXED[how](names, more)), f"there {seed}")

        assert {spec.name for spec in stranger.tool.operations} == set(names)
        tally = compared(((stranger, number) for number in range(len(stranger.limits))), 40)

        assert tally.disagreements == []
        assert tally.valid > tally.calls / 20
        for cell in stranger.cells:
            hidden = set(names) - cell.limit.shown
            if hidden and not cell.is_hidden and not cell.limit.fields:
                assert not [one for one in hidden if one in json.dumps(cell.listing.schema)]


def test_a_value_that_is_no_text_counts_as_each_operation_and_goes_with_the_first_that_is_hidden() -> None:
    schema = MIXED["enum"](["read", "write"], [3, {"k": 1}])
    once = ToolRule("t", MaxCalls(0), conditions=("operation:write",))
    reading = ToolRule("t", AllowedOperations(frozenset({"read"})))

    calls: list[Json] = [{"op": 3}, {"op": {"k": 1}}]
    for call in calls:
        assert gate_of(schema).decide("a", "t", call).verdict is Verdict.ALLOW
        assert gate_of(schema, once).decide("a", "t", call).code == "max-calls"
        denied = gate_of(schema, reading).decide("a", "t", call)
        assert (denied.verdict, denied.code) == (Verdict.DENY, "operation-unknown")
    assert gate_of(schema).decide("a", "t", {"op": 4}).verdict is Verdict.DENY
    assert gate_of(schema, once).decide("a", "t", {"op": "read"}).verdict is Verdict.ALLOW


def test_every_name_in_a_list_is_called_and_a_list_of_something_else_is_denied() -> None:
    schema = MIXED["list"](["read", "write", "delete"], [3])
    gate = gate_of(schema, ONLY, ToolRule("t", MaxCalls(1), conditions=("operation:write",)))

    assert gate.decide("a", "t", {"actions": ["read", "write"]}).verdict is Verdict.ALLOW
    assert gate.decide("a", "t", {"actions": ["write", "read", "write"]}).code == "max-calls"
    assert gate.decide("a", "t", {"actions": []}).verdict is Verdict.ALLOW
    others: list[Any] = [["read", "delete"], ["read", 3], [["read"]], [None], "delete", "read", {"0": "read"}, 3]
    for wrong in others:
        assert gate.decide("a", "t", {"actions": wrong}).verdict is Verdict.DENY
    assert gate_of(schema).decide("a", "t", {"actions": ["read", 3]}).verdict is Verdict.ALLOW


@pytest.mark.parametrize("items", [{"enum": ["red", "blue"]}, {"type": "string"}, {"enum": ["read", "write", 3]}])
def test_the_elements_of_a_list_are_declared_by_the_field_with_brackets(items: Json) -> None:
    schema = obj("marks", marks={"type": "array", "items": items})
    tool = DefinedTool(ToolDefinition("t", "Does things.", schema), origin="there")
    names = tuple(one for one in items.get("enum", ["red", "blue"]) if isinstance(one, str))

    for declared in (
        tool.with_operations("marks[]", names),
        *([tool.with_operations("marks[]", None)] if "enum" in items else []),
    ):
        assert declared.operation_field == "marks[]"
        assert tuple(spec.name for spec in declared.operations) == names
        assert declared.operations_of({"marks": [names[1], names[0]]}) == (names[1], names[0])
        assert declared.operations_of({"marks": [3]}) is None
    with pytest.raises(SchemaError, match=r"for its elements, `marks\[\]`"):
        tool.with_operations("marks", names)


@pytest.mark.parametrize("listed", [{"enum": [1, 2]}, {"const": 3}, {"enum": [None, True]}])
def test_a_list_without_any_text_takes_no_operations(listed: Json) -> None:
    tool = DefinedTool(ToolDefinition("t", "Does things.", obj("op", op=listed)), origin="there")

    assert not tool.has_operations
    with pytest.raises(SchemaError, match="for a text field only"):
        tool.with_operations("op", ("read",))
    with pytest.raises(SchemaError, match="no operations"):
        tool.with_operations("op", None)


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
