"""The self-check over tools of real servers and libraries: listed, valid and passed agree, and a call can be made."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewright.base.errors import RegistrationError
from gatewright.base.jsonvalue import JsonValue
from gatewright.compile import narrowing
from gatewright.compile.narrowing import Limit
from gatewright.compile.plan import ToolShape
from gatewright.compile.view import AgentView
from gatewright.gate import Gate, SelfCheck, selfcheck
from gatewright.gate.call import Stage
from gatewright.gate.selfcheck import Difference, selfcheck_in_pieces
from gatewright.gate.witness import variations, witness
from gatewright.policy.document import Agent, Defaults, Policy
from gatewright.policy.rule import AfterOutside, AllowedOperations, ArgumentConstraints, PolicyRule, ToolRule
from gatewright.policy.verdict import Verdict
from gatewright.schema import SchemaChecker
from gatewright.schema.formats import ToolListing
from gatewright.schema.selector import FieldRules, naming, over
from gatewright.schema.walk import Schema
from gatewright.tools.defined import DefinedTool
from gatewright.tools.definition import ToolDefinition
from gatewright.tools.registry import ToolRegistry

WHOLE = "whole"
ZEBRA: dict[str, Any] = {"type": "string", "pattern": "^zebra{17}$"}
SMALL = ArgumentConstraints({"size": {"maximum": 3}})


@pytest.fixture(scope="module")
def strangers(corpora: Path) -> tuple[DefinedTool, ...]:
    """Every usable tool, under a name of its own."""
    rows: list[dict[str, Any]] = [row["tool"] for row in json.loads((corpora / "mcp_tools.json").read_text("utf-8"))]
    shapes = json.loads((corpora / "library_schema_shapes.json").read_text("utf-8"))
    rows += [{"inputSchema": row["schema"]} for row in shapes]
    found: list[DefinedTool] = []
    for at, row in enumerate(rows):
        definition = ToolDefinition(f"tool{at}", row.get("description") or "", row["inputSchema"])
        try:
            found.append(DefinedTool(definition, origin="there"))
        except RegistrationError:
            continue
    assert len(found) > 1_300
    return tuple(found)


def gate_over(tools: tuple[DefinedTool, ...]) -> Gate:
    """Agents with one operation of each tool, or all but one."""
    registry = ToolRegistry()
    agents = {WHOLE: Agent(WHOLE)}
    for tool in tools:
        registry.register(tool)
        names = frozenset(spec.name for spec in tool.operations)
        for at, name in enumerate(sorted(names)):
            for kind, kept in (("one", frozenset({name})), ("but", names - {name})):
                agent = agents.get(f"{kind}{at}", Agent(f"{kind}{at}", tools=()))
                rules = (*agent.tool_rules, ToolRule(tool.name, AllowedOperations(kept)))
                listed = (*(agent.tools or ()), tool.name)
                agents[agent.agent_id] = replace(agent, tools=listed, tool_rules=rules)
    return Gate(Policy(agents=agents), registry)


def test_views_agree_over_all_real_tools(strangers: tuple[DefinedTool, ...]) -> None:
    result = selfcheck(gate_over(strangers), (WHOLE,))

    assert result.differences == ()
    assert result.checked > 1_600
    assert len(result.no_witness) <= 5, [row.tool for row in result.no_witness]


def test_what_was_checked_is_checked_again_only_when_it_changed_or_on_demand(
    strangers: tuple[DefinedTool, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = gate_over(strangers[:20])
    first = selfcheck(gate, (WHOLE,))

    def wrong(*_: object) -> Iterator[str]:
        return iter(["wrong"])

    monkeypatch.setattr(import_module("gatewright.gate.selfcheck")._Run, "_wrong", wrong)

    assert selfcheck(gate, ("nobody",)) == SelfCheck(0, (), ())
    assert selfcheck(gate, (WHOLE,)) == first
    listings = gate.view(WHOLE).listings()

    def listed(_: AgentView) -> tuple[ToolListing, ...]:
        return replace(listings[3]), *listings[:3], *listings[4:]

    monkeypatch.setattr(AgentView, "listings", listed)
    assert {row.tool for row in selfcheck(gate, (WHOLE,)).differences} == {listings[3].name}
    asks = PolicyRule("asks", Verdict.ASK, tools=(listings[5].name,), when={"required": ["a"]})
    gate.reload(replace(gate.policy, rules=(asks,)))
    assert {row.tool for row in selfcheck(gate, (WHOLE,)).differences} == {listings[3].name, listings[5].name}
    assert len(selfcheck(gate, (WHOLE,), afresh=True).differences) == first.checked


def test_views_agree_for_every_single_operation_and_all_but_one(strangers: tuple[DefinedTool, ...]) -> None:
    several = tuple(tool for tool in strangers if tool.has_operations)
    assert len(several) >= 100
    result = selfcheck(gate_over(several))

    assert result.differences == ()
    assert result.no_witness == ()


def gate_with(
    schemas: dict[str, dict[str, Any]], *rules: ToolRule, agents: int = 1, policy_rules: tuple[PolicyRule, ...] = ()
) -> Gate:
    """Agents of equal rights, `x0` and so on, over tools that select an operation by their field `op`, if any."""
    registry = ToolRegistry()
    for name, schema in schemas.items():
        field = next((field for field in ("op", "request.op") if field.split(".")[0] in schema["properties"]), None)
        definition = ToolDefinition(name, "", {"type": "object", **schema}, operation_field=field)
        registry.register(DefinedTool(definition, origin="there"))
    held = {f"x{at}": Agent(f"x{at}", tool_rules=rules) for at in range(agents)}
    return Gate(Policy(agents=held, rules=policy_rules, defaults=Defaults(check_formats=True)), registry)


TEXT: dict[str, Any] = {"properties": {"a": {"type": "string"}}, "required": ["a"]}
OPS: dict[str, Any] = {"enum": ["a", "b"]}
NESTED: dict[str, Any] = {
    "properties": {
        "request": {"type": "object", "properties": {"op": OPS}, "required": ["op"]},
        "size": {"type": "integer"},
    },
    "required": ["request"],
}
SIZE_OF_B = ("operation:b",)


def test_where_no_call_can_be_made_the_check_says_why() -> None:
    impossible = ArgumentConstraints({"size": {"enum": [5], "maximum": 3}}, required=("size",))
    gate = gate_with(
        {"unknown": {**TEXT, "properties": {"a": ZEBRA}}, "same": TEXT, "hard": TEXT, "ruled": TEXT, "nested": NESTED},
        ToolRule("same", ArgumentConstraints({"a": {"type": "string"}})),
        ToolRule("hard", ArgumentConstraints({"a": ZEBRA})),
        ToolRule("nested", impossible, SIZE_OF_B),
        policy_rules=(PolicyRule("never", Verdict.DENY, tools=("ruled",), when={"required": ["a"]}),),
    )

    assert selfcheck(gate).to_json() == {
        "checked": 6,
        "differences": [],
        "no_witness": [
            {"agent": "x0", "tool": tool, "operation": operation, "what": what}
            for tool, operation, what in (
                ("hard", "", "no call could be made"),
                ("nested", "b", "no call could be made that satisfies the constraints"),
                ("ruled", "", "policy rule `never` denies the call that was made"),
                ("same", "", "no call could be made that only the constraint on `a` denies"),
                ("unknown", "", "no call could be made"),
            )
        ],
    }


def guarded_gate() -> Gate:
    told: dict[str, Any] = {"type": "string"}
    properties = {"op": OPS, "size": {"type": "integer"}, "stranger_0": told, "note": told}
    dated = {**properties, "at": {**told, "format": "date"}, "in": {**told, "format": "colour"}}
    schemas: dict[str, Any] = {"closed": {"properties": {"op": OPS}}, "nested": NESTED, "off": {"properties": {}}}
    return gate_with(
        {**schemas, "shut": TEXT, "t": {"properties": dated}},
        ToolRule("closed", AllowedOperations(frozenset())),
        ToolRule("nested", ArgumentConstraints({"size": {"maximum": 3}}, required=("size",)), SIZE_OF_B),
        ToolRule("off", AfterOutside(Verdict.DENY)),
        ToolRule("t", AllowedOperations(frozenset({"a"}))),
        ToolRule("t", ArgumentConstraints({"size": {"maximum": 3}}, required=("note",))),
        policy_rules=(PolicyRule("shut", Verdict.DENY, tools=("shut",)),),
    )


LISTED = (("nested", "a"), ("nested", "b"), ("off", ""), ("t", "a"))
FITS, HIDDEN = "a call with an argument that the schema does not name fits it", "not listed, not valid, passed"
DENIED = "a call that fits the shown schema is denied"
CLOSED = ("closed", "a", HIDDEN), ("closed", "b", HIDDEN)


@pytest.mark.parametrize(
    ("denying", "wrong"),
    [
        (
            "",
            [
                *CLOSED,
                ("nested", "a", FITS),
                ("nested", "b", FITS),
                ("nested", "b", "a call that the constraint on `size` denies is not denied"),
                ("nested", "b", "a call without `size`, which a rule requires, passes"),
                ("off", "", "a call after a result from outside is judged otherwise"),
                ("shut", "", HIDDEN),
                ("t", "a", FITS),
                ("t", "a", "a call that the constraint on `size` denies fits the shown schema"),
                ("t", "a", "a call without `note`, which a rule requires, passes"),
                ("t", "a", "a call whose `at` breaks its format `date` passes"),
                ("t", "b", HIDDEN),
            ],
        ),
        (
            "schema",
            [
                *CLOSED,
                *((*called, DENIED) for called in LISTED[:3]),
                ("shut", "", HIDDEN),
                ("t", "a", DENIED),
                ("t", "b", HIDDEN),
            ],
        ),
        ("lookup", [(*called, what) for called in LISTED for what in ("listed, valid, not passed", DENIED)]),
    ],
)
def test_gate_that_lets_everything_through_or_nothing_is_found_out_wherever_it_should_not(
    monkeypatch: pytest.MonkeyPatch, denying: str, wrong: list[tuple[str, str, str]]
) -> None:
    gate = guarded_gate()
    assert selfcheck(gate) == SelfCheck(8)

    def stage_said(stage: Stage, _: object) -> SimpleNamespace:
        return SimpleNamespace(findings=(SimpleNamespace(noted=False),) * (stage.name == denying))

    def gate_said(*_: object) -> SimpleNamespace:
        return SimpleNamespace(verdict=Verdict.ALLOW)

    monkeypatch.setattr(import_module("gatewright.gate.selfcheck"), "run_stage", stage_said)
    monkeypatch.setattr(Gate, "decide", gate_said)
    result = selfcheck(gate, afresh=True)

    assert [(row.tool, row.operation, row.what) for row in result.differences] == wrong
    assert result.no_witness == ()


def test_tool_that_is_listed_and_not_known_or_listed_otherwise_than_before_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema = {"type": "object", "properties": {"op": OPS}}
    gate = gate_with({"known": schema}, ToolRule("known", AllowedOperations(frozenset({"a"}))))
    assert selfcheck(gate) == SelfCheck(2)
    (listing,) = gate.view("x0").listings()
    both = replace(listing, schema=schema), replace(listing, name="ghost")

    def listed(_: AgentView) -> tuple[ToolListing, ...]:
        return both

    monkeypatch.setattr(AgentView, "listings", listed)
    rows = ("known", "b", "listed, valid, not passed"), ("ghost", "", "listed, but the tool is unknown")
    assert selfcheck(gate).differences == tuple(Difference("x0", *row) for row in rows)


def test_calls_of_a_tool_are_made_once_for_all_who_see_the_same_and_anew_on_demand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = Counter[str]()

    def counted(schema: dict[str, Any], *given: Any, **more: Any) -> Any:
        made["calls"] += 1
        return witness(schema, *given, **more)

    monkeypatch.setattr(import_module("gatewright.gate.selfcheck"), "witness", counted)
    gate, counts = gate_with({f"t{at}": TEXT for at in range(17)}, agents=2), list[int]()
    for afresh in (False, False, True):
        pieces = len(list(selfcheck_in_pieces(gate, None, afresh=afresh)))
        counts += [pieces, made.total()]

    assert counts == [6, 17, 0, 17, 6, 17 + 2 * 17]


def test_schema_that_still_accepts_what_is_hidden_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    element: dict[str, Any] = {"type": "object", "properties": {"op": {"type": "string", "enum": ["a", "b"]}}}
    schema = {"type": "object", "properties": {"operations": {"type": "array", "items": element}}}
    tool = DefinedTool(ToolDefinition("t", "", schema, operation_field="operations[].op"), origin="there")
    registry = ToolRegistry()
    registry.register(tool)
    rule = ToolRule("t", AllowedOperations(frozenset({"a"})))

    def unfiltered(_: DefinedTool, __: frozenset[str]) -> dict[str, Any]:
        return schema

    monkeypatch.setattr(DefinedTool, "schema_for", unfiltered)
    result = selfcheck(Gate(Policy(agents={"x": Agent("x", tool_rules=(rule,))}), registry))

    whats = ["listed, valid, not passed", "a call that fits the shown schema is denied"]
    rows = [{"agent": "x", "tool": "t", "operation": "b", "what": what} for what in whats]
    assert result.to_json() == {"checked": 2, "differences": rows, "no_witness": []}


def test_constraint_that_the_shown_schema_leaves_out_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {"type": "object", "properties": {"op": {"enum": ["a", "b"]}, "size": {"type": "integer"}}}
    tool = DefinedTool(ToolDefinition("t", "", schema, operation_field="op"), origin="there")
    registry = ToolRegistry()
    registry.register(tool)
    gate = Gate(Policy(agents={"x": Agent("x", tool_rules=(ToolRule("t", SMALL),))}), registry)
    assert selfcheck(gate) == SelfCheck(2)

    def unlimited(shape: ToolShape, _: tuple[Limit, ...], *, closed: bool) -> ToolShape:
        assert closed
        return shape

    monkeypatch.setattr(ToolShape, "with_limits", unlimited)
    result = selfcheck(Gate(Policy(agents={"x": Agent("x", tool_rules=(ToolRule("t", SMALL),))}), registry))

    assert [(row.operation, row.what) for row in result.differences] == [
        ("a", "a call that the constraint on `size` denies fits the shown schema"),
        ("b", "a call that the constraint on `size` denies fits the shown schema"),
    ]


def test_schema_that_takes_unknown_arguments_though_it_should_be_closed_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def still_open(schema: Schema) -> tuple[Schema, str]:
        return schema, ""

    schema: dict[str, Any] = {"type": "object", "properties": {"size": {"type": "integer"}}}
    registry = ToolRegistry()
    registry.register(DefinedTool(ToolDefinition("t", "", schema), origin="there"))
    monkeypatch.setattr(narrowing, "with_closed_arguments", still_open)
    result = selfcheck(Gate(Policy(agents={"x": Agent("x", tool_rules=(ToolRule("t", SMALL),))}), registry))

    assert [row.what for row in result.differences] == ["a call with an argument that the schema does not name fits it"]


def test_field_rules_look_at_the_operation_only() -> None:
    branches = [
        {"properties": {"op": {"const": name}, name: {"type": "string"}}, "required": ["op", name]} for name in "ab"
    ]
    places = (("request", "op"),)
    rules = FieldRules({"type": "object", "properties": {"request": {"oneOf": branches}}}, places)

    assert rules.accept(naming("a", places))
    assert not rules.accept(naming("c", places))
    assert naming("a", (("steps", "[]", "op"), ("mode",))) == {"steps": [{"op": "a"}], "mode": "a"}
    assert naming("a", ()) == {"a": {}}
    assert over({"steps": [{"x": 1}, {"x": 2}]}, {"steps": [{"op": "a"}]}) == {
        "steps": [{"x": 1, "op": "a"}, {"x": 2, "op": "a"}]
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "format": "uuid"},
        {"type": "string", "pattern": "^[0-9]{4}$"},
        {"type": ["null", "string"], "minLength": 3},
        {"type": "number", "minimum": 0.5, "multipleOf": 0.25},
        {"type": "array", "items": {"$ref": "#/$defs/a"}, "minItems": 2, "$defs": {"a": {"enum": [1]}}},
        {"oneOf": [{"type": "string"}, {"type": "string", "maxLength": 0}, {"type": "integer"}]},
        {"type": "object", "required": ["x"], "allOf": [{"properties": {"x": {"type": "integer"}}}]},
        {
            "type": "object",
            "properties": {"x": {"const": 1}, "y": {"type": "string"}},
            "required": ["x"],
            "if": {"properties": {"x": {"const": 1}}},
            "then": {"required": ["y"]},
        },
        {"type": "object", "properties": {"x": {"type": "string", "default": 3}}, "required": ["x"]},
    ],
)
def test_witness_fits_its_schema(schema: dict[str, Any]) -> None:
    assert SchemaChecker(schema).is_valid(witness(schema))


OBJECT: dict[str, Any] = {
    "type": "object",
    "properties": {"x": {"const": 1}, "y": {"type": "integer"}, "z": {"type": "null"}},
}
IF_ONE: dict[str, Any] = {
    "if": {"properties": {"x": {"const": 1}}},
    "then": {"required": ["y"]},
    "else": {"required": ["z"]},
}
X_IS_TWO: dict[str, Any] = {"properties": {**OBJECT["properties"], "x": {"const": 2}}}
LOOP: dict[str, Any] = {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}, "v": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"const": 7}, 7),
        ({"enum": [3, "a"], "type": "string"}, "a"),
        ({"enum": [1, 2], "type": "string"}, 1),
        ({"enum": [*range(39), "a"], "type": "string"}, "a"),
        ({"enum": [*range(40), "a"], "type": "string"}, 0),
        ({"type": "integer", "default": 5, "examples": [6]}, 5),
        ({"type": "integer", "default": "x", "examples": ["y", 6]}, 6),
        ({"type": "integer", "examples": ["a", "b", 6]}, 6),
        ({"type": "integer", "examples": ["a", "b", "c", 6]}, 0),
        ({"type": "integer", "examples": 6}, 0),
        ({"type": "number", "minimum": 0.5}, 0.5),
        ({"type": "integer", "maximum": -3}, -3),
        ({"type": "integer", "maximum": 3}, 0),
        ({"type": "integer", "exclusiveMinimum": 4}, 5),
        ({"type": "integer", "exclusiveMinimum": 4, "multipleOf": 4}, 8),
        ({"type": "integer", "exclusiveMaximum": 4}, 3),
        ({"type": "integer", "exclusiveMaximum": 4, "multipleOf": 4}, 0),
        ({"type": "integer", "exclusiveMaximum": 4, "minimum": 1}, 1),
        ({"type": "integer", "minimum": 5, "multipleOf": 4}, 8),
        ({"type": "integer", "minimum": 8, "multipleOf": 4}, 8),
        ({"type": "boolean"}, False),
        ({"type": ["null", "boolean"]}, False),
        ({"type": ["null"]}, None),
        ({}, "a"),
        ({"type": "string", "maxLength": 0}, ""),
        ({"type": "string", "minLength": 1000}, "a" * 1000),
        ({"type": "string", "pattern": "^a+$", "minLength": 3}, "aaa"),
        ({"type": "string", "format": "date"}, "a"),
        ({"type": "array"}, ["a"]),
        ({"type": "array", "maxItems": 0}, []),
        ({"type": "array", "minItems": 2, "items": {"type": "integer"}}, [0, 0]),
        ({"prefixItems": [{"type": "integer"}, {"const": 2}], "minItems": 3, "items": {"type": "null"}}, [0, 2, None]),
        ({"type": "array", "items": ZEBRA}, []),
        ({"items": {"type": "integer"}}, [0]),
        ({"prefixItems": [{"type": "integer"}]}, [0]),
        ({"properties": {"a": {}}}, {}),
        ({"required": ["a"]}, {"a": "a"}),
        ({**OBJECT, "required": ["y"]}, {"y": 0}),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, 0),
        ({"anyOf": [ZEBRA, {"type": "null"}]}, None),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}, {"const": 0.5}]}, 0),
        ({"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 1}, {"type": "null"}]}, 0),
        ({**OBJECT, **IF_ONE, "required": ["x"]}, {"x": 1, "y": 0}),
        ({**OBJECT, **IF_ONE, **X_IS_TWO, "required": ["x"]}, {"x": 2, "z": None}),
        ({**OBJECT, "required": ["x"], "if": {"required": ["x"]}}, {"x": 1}),
        (
            {
                "allOf": [
                    {**OBJECT, "required": ["y"]},
                    {"properties": {"y": {"minimum": 3}, "b": {"type": "null"}}, "required": ["b"]},
                ]
            },
            {"y": 3, "b": None},
        ),
        ({"allOf": [{"enum": [1, 2, 3]}, {"enum": [2, 3]}]}, 2),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer", "minimum": 2}}}, 2),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "integer", "minimum": 2}}}, 2),
        ({"$ref": "#/$defs/n", "$defs": {"n": {**LOOP, "required": ["v"]}}}, {"v": 0}),
        ({"$ref": "#/$defs/a%25b", "$defs": {"a%b": {"const": 2}}}, 2),
        ({"$ref": "#/$defs/a~0b", "$defs": {"a~b": {"const": 2}}}, 2),
        ({"oneOf": [{"$ref": "#/definitions/a"}, {"enum": [True]}], "definitions": {"a": {"const": 2}}}, 2),
        ({"enum": ["a"], "default": 3}, "a"),
        ({"type": "string", "default": "b", "pattern": "^b$"}, "b"),
        ({"type": "object", "properties": {"a": True}, "required": ["a"]}, {"a": "a"}),
        ({"oneOf": [ZEBRA, {"type": "null"}]}, None),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}, {"type": "null"}]}, None),
        ({"oneOf": [{"type": "string"}, {"items": True, "minItems": 1001}]}, "a"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {}),
        ({"anyOf": [False, {"type": "null"}]}, None),
        ({"anyOf": [True, {"type": "null"}]}, "a"),
        ({"anyOf": [{"const": 1}, {"const": 2}], "allOf": [{"anyOf": [{"const": 2}, {"const": 3}]}]}, 2),
        ({"allOf": [{"anyOf": [{"type": kind}, {"type": "null"}]} for kind in ("integer", "string")]}, None),
        ({"allOf": [{"enum": [1, 2, 3]}, {"enum": [4, 3, 2]}]}, 2),
        (
            {
                "properties": {"a": {"type": "integer"}},
                "allOf": [{"required": ["a"]}, {"properties": {"a": {"const": 1}}}],
            },
            {"a": 1},
        ),
        ({**OBJECT, "if": False, "then": {"required": ["y"]}, "else": {"required": ["z"]}}, {"z": None}),
        ({"type": "array", "maxItems": 0, "items": {"const": 1}}, []),
        ({"prefixItems": [{"const": 1}, {"const": 2}], "minItems": 1}, [1]),
        ({"type": "number", "multipleOf": 0.5, "exclusiveMinimum": 1}, 1.5),
        ({"type": "integer", "minimum": -5, "multipleOf": 3}, -3),
        ({"pattern": "^[0-9]{4}$"}, "1234"),
    ],
    ids=str,
)
def test_witness_is_what_the_schema_itself_gives_or_the_smallest_value(schema: dict[str, Any], value: object) -> None:
    assert witness(schema) == value


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 1001},
        {"type": "array", "minItems": 1001},
        {"type": "string", "minLength": "3"},
        {"$ref": "#/$defs/nowhere"},
        {"properties": {"a": False}, "required": ["a"]},
        {"type": "array", "minItems": 1, "items": ZEBRA},
        {"anyOf": [ZEBRA, ZEBRA]},
        {"$ref": "#/$defs/n", "$defs": {"n": {**LOOP, "required": ["n"]}}},
    ],
    ids=str,
)
def test_where_a_witness_would_take_a_guess_there_is_none(schema: dict[str, Any]) -> None:
    with pytest.raises(LookupError):
        witness(schema)


def test_schema_of_sixteen_levels_is_too_deep_for_a_witness() -> None:
    shapes: tuple[Callable[[Any], Any], ...] = (
        lambda inner: {"type": "object", "required": ["a"], "properties": {"a": inner}},
        lambda inner: {"type": "array", "minItems": 1, "items": inner},
        lambda inner: {"anyOf": [inner]},
        lambda inner: {"allOf": [inner]},
        lambda inner: {"type": "object", "if": {}, "then": inner},
    )
    for deeper in shapes:
        schema: Any = {"type": "object"}
        for _ in range(15):
            schema = deeper(schema)

        assert witness(schema) is not None
        with pytest.raises(LookupError):
            witness(deeper(schema))


def test_witness_of_a_text_is_of_its_known_format_where_that_is_checked() -> None:
    assert witness({"type": "string", "format": "uuid"}) == "a"
    assert witness({"type": "string", "format": "date"}, check_formats=True) == "2024-01-02"
    union = {"oneOf": [{"type": "string", "format": "date"}, {"type": "string", "format": "email"}]}
    assert witness(union, check_formats=True) == "2024-01-02"


def test_variations_are_the_values_that_the_schema_names_near_ones_and_odd_ones() -> None:
    def nested(depth: int) -> dict[str, Any]:
        return {"properties": {"p": nested(depth - 1)}} if depth else {"enum": [5]}

    def first(own: object, value: JsonValue, count: int) -> list[JsonValue]:
        return list(islice(variations({"properties": {"a": own}}, "a", value), count))

    assert first({"enum": [1, 2]}, 1, 4) == [1, 2, None, True]
    assert first({"items": {"enum": ["x", "y"]}}, ["x"], 6) == [["x"] * 2, ["x"] * 3, [], ["x"], ["y"], None]
    assert first({"items": {"enum": ["x"]}}, None, 2) == [["x"], None]
    assert first({"items": {"items": {"items": {"items": {"items": {"enum": ["x"]}}}}}}, None, 1) == [None]
    assert first({"items": {"items": {"items": {"items": {"enum": ["x"]}}}}}, None, 1) == [[[[["x"]]]]]
    assert first({"anyOf": [{"enum": [1]}, {"enum": [2]}]}, None, 3) == [1, 2, None]
    assert first({"enum": list(range(41))}, None, 41) == [*range(40), None]
    assert first({"$ref": "#/nowhere"}, None, 1) == []
    lists = {"items": {"items": {"items": {"items": {"enum": ["x"]}}}}}
    assert [[[["x"]]]] in first(lists, [[[["y"]]]], 99)
    assert [[[[["x"]]]]] not in first({"items": lists}, [[[[["y"]]]]], 99)
    assert len(first(nested(5), {}, 9999)) == len(first(nested(6), {}, 9999)) > len(first(nested(4), {}, 9999))
    assert first(True, None, 1) == [None]
    assert first({"enum": [1]}, None, 99)[1:] == first({}, None, 99)
    near: list[JsonValue] = [{"r": 2}, {"p": 1}, {"p": 5, "r": 2}, {"p": None, "r": 2}]
    assert first({"properties": {"p": {"enum": [5]}}}, {"p": 1, "r": 2}, 4) == near
    assert len(first({"properties": dict.fromkeys("abcdefghijklmnopqrstuvwxyzABCDEFGHIJ", True)}, {}, 9999)) > 2000


def test_witness_fills_the_places_that_are_wanted() -> None:
    schema = {"type": "object", "properties": {"steps": {"anyOf": [{"type": "string"}, {
        "type": "array", "items": {"type": "object", "properties": {"op": {"enum": ["a"]}}}}]}}}  # fmt: skip

    odd = {"$ref": "#/$defs/a~1b%25~0", "minProperties": 1}
    loop = {"type": "object", "properties": {"n": odd, "v": {"type": "integer"}}}
    assert witness({**odd, "$defs": {"a/b%~": loop}}, [("n", "n", "v")]) == {"n": {"n": {"v": 0}}}
    assert witness(schema) == {}
    assert witness(schema, [("steps", "[]", "op")]) == {"steps": [{"op": "a"}]}
    holder = {"type": "object", "properties": {"op": {"const": "a"}}}
    assert witness({"oneOf": [{"type": "string"}, holder]}, [("op",)]) == {"op": "a"}
    assert witness({"oneOf": [{"type": "string"}, {"items": holder}]}, [("[]", "op")]) == [{"op": "a"}]
    assert witness({"type": "object", "additionalProperties": holder}, [("{}", "op")]) == {"a": {"op": "a"}}
    assert witness({"type": "object", "additionalProperties": True}, [("{}", "op")]) == {}
    both = {"type": "object", "properties": {"a": holder, "b": holder}}
    assert witness(both, [("b", "op"), ("a",), ()]) == {"b": {"op": "a"}, "a": {}}
    deep = holder
    for _ in range(14):
        deep = {"type": "object", "additionalProperties": deep}
    assert witness(deep, [("{}",) * 14]) != {}
    with pytest.raises(LookupError):
        witness(
            {"type": "object", "additionalProperties": {"additionalProperties": deep, "type": "object"}}, [("{}",) * 16]
        )


def test_witness_of_what_cannot_be_said_is_none() -> None:
    with pytest.raises(LookupError):
        witness({"type": "string", "pattern": "^zebra-[0-9]{17}$"})
