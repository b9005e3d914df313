"""A constraint closes the types of which it says nothing; shown, gate and loading say the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewright.base.errors import SchemaError
from gatewright.gate import Gate, selfcheck
from gatewright.policy.document import Agent, Policy
from gatewright.policy.rule import ArgumentConstraints, ToolRule
from gatewright.policy.verdict import Verdict
from gatewright.policyfile import KnownTools, parse_policy
from gatewright.schema.check import SchemaChecker
from gatewright.schema.constraint import close_constraint
from gatewright.tools.defined import DefinedTool
from gatewright.tools.definition import ToolDefinition
from gatewright.tools.registry import ToolRegistry
from gatewright.tools.tool import Tool
from tests.engine.gate.constrained_calls import passes

VALUES: dict[str, list[Any]] = {
    "string": ["ok", "eve", "", "notes/a", "1000"],
    "number": [0, 5, 1000],
    "boolean": [True, False],
    "null": [None],
    "array": [[], ["ok"], ["eve@evil.org"], [1000], [["eve"]], [{"to": "eve"}]],
    "object": [{}, {"to": "ok"}, {"to": "eve"}, {"to": ["eve"]}, {"to": 1000}],
}
SPEAKS: dict[str, list[dict[str, Any]]] = {
    "string": [{"pattern": "^ok"}, {"maxLength": 2}, {"minLength": 1}, {"not": {"enum": ["eve"]}}],
    "number": [{"maximum": 5}, {"exclusiveMinimum": 0}, {"multipleOf": 5}, {"not": {"const": 0}}],
    "array": [{"maxItems": 1}, {"items": {"pattern": "^ok"}}, {"uniqueItems": True}, {"items": {"maximum": 5}}],
    "object": [{"properties": {"to": {"pattern": "^ok"}}}, {"required": ["to"]}, {"maxProperties": 0}],
}
"""Constraints by the one type that each speaks of."""
ALL_VALUES = [value for values in VALUES.values() for value in values]


def kind_of(value: object) -> str:
    text = json.dumps(value)
    return next(kind for kind, values in VALUES.items() if text in map(json.dumps, values))


def tool_with(own: dict[str, Any]) -> Tool:
    schema = {"type": "object", "properties": {"x": own}}
    return DefinedTool(ToolDefinition("send", "", schema), origin="stranger")


def gate_of(tool: Tool, *constraints: Any) -> Gate:
    registry = ToolRegistry()
    registry.register(tool)
    rules = tuple(ToolRule(tool.name, ArgumentConstraints({"x": one})) for one in constraints)
    return Gate(Policy(agents={"a": Agent("a", tool_rules=rules)}), registry)


def is_denied(gate: Gate, call: dict[str, Any]) -> bool:
    return gate.decide("a", "send", call).verdict is Verdict.DENY


def shown_checker(gate: Gate) -> SchemaChecker:
    (row,) = gate.view("a").listings()
    return SchemaChecker(row.schema)


@st.composite
def unions(draw: st.DrawFn) -> tuple[dict[str, Any], frozenset[str]]:
    """A schema of some types, spelt in one of the ways of real tools, and these types."""
    kinds = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=2, max_size=4, unique=True))
    spelling = draw(st.sampled_from(["list", "anyOf", "oneOf", "parts", "none"]))
    if spelling == "none":
        return {}, frozenset(VALUES)
    if spelling == "list":
        return {"type": kinds}, frozenset(kinds)
    parts: dict[str, Any] = (
        {"array": {"items": {}}, "object": {"properties": {"to": {}}}} if spelling == "parts" else {}
    )
    branches = [{"type": kind, **parts.get(kind, {})} for kind in kinds]
    return {"oneOf" if spelling == "oneOf" else "anyOf": branches}, frozenset(kinds)


@st.composite
def constraints(draw: st.DrawFn) -> tuple[dict[str, Any], frozenset[str], Callable[[Any], bool]]:
    """A constraint, the types that it speaks of, and what it asks of a value of one of these."""
    kinds = draw(st.lists(st.sampled_from(sorted(SPEAKS)), min_size=1, max_size=2, unique=True))
    parts = [draw(st.sampled_from(SPEAKS[kind])) for kind in kinds]
    explicit = draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=1))
    spoken = frozenset({*kinds, *explicit})
    by_kind = {kind: SchemaChecker(close_constraint(part)) for kind, part in zip(kinds, parts, strict=True)}

    def takes(value: Any) -> bool:
        kind = kind_of(value)
        return kind in spoken and (kind not in by_kind or by_kind[kind].is_valid(value))

    way = draw(st.sampled_from(["together", "allOf", "anyOf", "$ref"]))
    said: dict[str, Any]
    if way == "anyOf":
        said = {"anyOf": [*parts, *({"type": kind} for kind in explicit if kind not in kinds)]}
    elif way == "allOf":
        said = {"allOf": list(parts)} | ({"type": sorted(spoken)} if explicit else {})
    else:
        nots = [part["not"] for part in parts if "not" in part]
        said = {} if len(nots) < 2 else {"allOf": [{"not": one} for one in nots]}
        for part in parts:
            said |= {key: value for key, value in part.items() if key != "not" or len(nots) < 2}
        said |= {"type": sorted(spoken)} if explicit else {}
        if way == "$ref":
            said = {"$defs": {"k": said}, "$ref": "#/$defs/k"}
    return said, spoken, takes


@settings(max_examples=150, deadline=None)
@given(unions(), constraints())
def test_shown_gate_and_constraint_agree_about_every_type(
    union: tuple[dict[str, Any], frozenset[str]], made: tuple[dict[str, Any], frozenset[str], Callable[[Any], bool]]
) -> None:
    own, kinds = union
    said, spoken, takes = made
    gate = gate_of(tool_with(own), said)
    shown, plain = shown_checker(gate), SchemaChecker(own)
    for value in ALL_VALUES:
        call = {"x": value}
        wanted = plain.is_valid(value) and takes(value)
        assert shown.is_valid(call) == wanted, (own, said, value)
        assert passes(gate, "send", call) == wanted, (own, said, value)
        assert is_denied(gate, call) != wanted, (own, said, value)
        if kinds >= frozenset(VALUES) and kind_of(value) not in spoken:
            assert not wanted


PLACES: dict[str, Callable[[Any], tuple[dict[str, Any], Callable[[Any], Any]]]] = {
    "property": lambda said: ({"properties": {"to": said}}, lambda value: {"to": value}),
    "item": lambda said: ({"items": said}, lambda value: [value]),
    "branch": lambda said: ({"anyOf": [said, {"const": "never"}]}, lambda value: value),
    "then": lambda said: ({"if": {"not": {"const": "never"}}, "then": said}, lambda value: value),
    "deep": lambda said: (
        {"properties": {"to": {"items": {"additionalProperties": said}}}},
        lambda value: {"to": [{"key": value}]},
    ),
}
"""A constraint put somewhere inside another, and the value that has a value there."""


@settings(max_examples=80, deadline=None)
@given(constraints(), st.sampled_from(sorted(PLACES)))
def test_types_are_closed_at_every_place_inside(
    made: tuple[dict[str, Any], frozenset[str], Callable[[Any], bool]], place: str
) -> None:
    said, _, takes = made
    definitions = {"$defs": said.pop("$defs")} if "$defs" in said else {}
    wrapped, put = PLACES[place](said)
    gate = gate_of(tool_with({}), {**definitions, **wrapped})
    shown = shown_checker(gate)
    for value in ALL_VALUES:
        call = {"x": put(value)}
        assert shown.is_valid(call) == takes(value) == (not is_denied(gate, call)), (wrapped, value)


NESTED = st.recursive(
    st.sampled_from([part for parts in SPEAKS.values() for part in parts] + [{"type": "null"}, {"enum": ["eve", 5]}]),
    lambda inner: st.one_of(
        inner.map(lambda one: {"not": one}),
        inner.map(lambda one: {"properties": {"to": one}}),
        inner.map(lambda one: {"contains": one}),
        inner.map(lambda one: {"contains": one, "maxContains": 1}),
        st.tuples(inner, inner).map(lambda two: {"oneOf": list(two)}),
        st.tuples(inner, inner).map(lambda two: {"allOf": list(two)}),
        st.tuples(inner, inner).map(lambda two: {"anyOf": list(two)}),
        st.tuples(inner, inner, inner).map(lambda all_: dict(zip(("if", "then", "else"), all_, strict=True))),
    ),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(NESTED)
def test_a_closed_constraint_takes_nothing_that_it_does_not_take_as_written(said: dict[str, Any]) -> None:
    raw, closed = SchemaChecker(said), SchemaChecker(close_constraint(said))
    for value in ALL_VALUES:
        assert raw.is_valid(value) or not closed.is_valid(value), (said, close_constraint(said), value)


WAYS_AROUND: list[tuple[dict[str, Any], Any, Any]] = [
    ({"type": ["string", "array"]}, {"pattern": "@ours.org$"}, ["eve@evil.org"]),
    ({"anyOf": [{"type": "string"}, {"type": "array", "items": {}}]}, {"in_folder": "notes/"}, ["/etc/passwd"]),
    ({"type": ["number", "string"]}, {"maximum": 5}, "1000"),
    ({}, {"maximum": 5}, "1000"),
    ({"type": ["object", "string"]}, {"properties": {"to": {"pattern": "^ok"}}}, '{"to": "eve"}'),
    ({"type": ["string", "array"]}, {"items": {"pattern": "^ok"}}, "eve"),
    ({"type": ["string", "array"]}, {"not": {"enum": ["eve"]}}, ["eve"]),
    ({}, {"not": {"properties": {"to": {"const": "eve"}}, "required": ["to"]}}, {"to": ["eve"]}),
    ({}, {"properties": {"to": {"pattern": "^ok"}}}, {"to": ["eve"]}),
    ({"type": ["string", "null"]}, {"pattern": "^ok"}, None),
    ({}, {"oneOf": [{"pattern": "^ok"}, {"items": {"pattern": "^ok"}, "minItems": 1}]}, ["eve"]),
]


@pytest.mark.parametrize(("own", "said", "call"), WAYS_AROUND)
def test_another_type_is_no_way_around_a_constraint(own: dict[str, Any], said: Any, call: Any) -> None:
    gate = gate_of(tool_with(own), said)

    assert is_denied(gate, {"x": call})
    assert not shown_checker(gate).is_valid({"x": call})
    assert selfcheck(gate).differences == ()


def test_the_shown_schema_loses_closed_types_and_branches() -> None:
    lists = {"type": "array", "items": {"type": "string"}, "maxItems": 3}
    spelt: list[dict[str, Any]] = [{"anyOf": [{"type": "string"}, lists]}, {**lists, "type": ["string", "array"]}]
    for own in spelt:
        (row,) = gate_of(tool_with(own), {"pattern": "^ok"}).view("a").listings()
        assert row.schema["properties"]["x"] == {"type": "string", "pattern": "^ok"}


def test_null_passes_where_the_constraint_names_it_and_a_default_of_null_counts_as_given() -> None:
    nullable: dict[str, Any] = {"type": ["string", "null"]}
    closed, opened = {"pattern": "^ok"}, {"type": ["string", "null"], "pattern": "^ok"}
    tool = tool_with({**nullable, "default": None})

    assert is_denied(gate_of(tool, closed), {})
    assert not shown_checker(gate_of(tool, closed)).is_valid({})
    assert not is_denied(gate_of(tool, opened), {})
    assert not is_denied(gate_of(tool, {"anyOf": [closed, {"type": "null"}]}), {"x": None})
    assert not is_denied(gate_of(tool_with(nullable), closed), {})


def test_constraints_of_which_each_closes_what_the_other_speaks_of_are_an_error_with_its_place() -> None:
    tool = tool_with({"type": ["string", "array"]})
    rule = '[[agents.a.tool_rules]]\ntool_name = "send"\nrule_type = {{ ArgumentConstraints = {{ x = {} }} }}\n'
    text = 'gatewright = 1\n[agents.a]\ntools = ["send"]\n'
    text += rule.format('{ pattern = "^ok" }') + rule.format("{ maxItems = 1 }")

    (problem,) = parse_policy(text, file="policy.toml", known=KnownTools((tool.facts(),))).problems
    assert problem.code == "no-value-left"
    assert problem.place is not None
    assert problem.place.line == 9


def test_a_constraint_that_is_no_schema_has_no_meaning() -> None:
    for said in (3, None, float("nan"), {"$ref": "#/$defs/gone"}):
        with pytest.raises(SchemaError):
            close_constraint(said)


def test_a_constraint_that_refers_to_itself_many_times_is_closed_at_once() -> None:
    again = {"$ref": "#/$defs/k"}
    inner: dict[str, Any] = {
        "anyOf": [again, again, again, {"pattern": "^ok"}],
        "not": {"allOf": [again, again, again]},
    }
    said: dict[str, Any] = {
        "$defs": {"k": {"properties": {"to": inner, "more": {"items": again}}}},
        "properties": {"to": again},
    }
    for _ in range(4):
        said = {"anyOf": [said, said, {"maximum": 3}]} | {"$defs": said.pop("$defs")}

    closed = SchemaChecker(close_constraint(said))
    assert closed.is_valid(3)
    assert not closed.is_valid("3")
