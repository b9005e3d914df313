"""Narrowing a schema by constraints: exactly what both accept, in the simplest words that say so."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewright.base.errors import SchemaError
from gatewright.schema import SchemaChecker, check_schema, narrow

Json = dict[str, Any]


def flat(**properties: Any) -> Json:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def test_a_pattern_joins_the_type_in_one_schema() -> None:
    narrowed = narrow(flat(path={"type": "string", "description": "where"}), {"path": {"pattern": "^notes/"}})
    assert narrowed["properties"]["path"] == {"type": "string", "description": "where", "pattern": "^notes/"}


def test_closed_lists_are_cut_to_what_fits() -> None:
    schema = flat(mode={"type": "string", "enum": ["a", "b", "long"], "enumNames": ["A", "B", "Long"]})
    assert narrow(schema, {"mode": {"enum": ["b", "c"]}})["properties"]["mode"]["enum"] == ["b"]
    by_length = narrow(schema, {"mode": {"maxLength": 1}})["properties"]["mode"]
    assert (by_length["enum"], by_length["enumNames"]) == (["a", "b"], ["A", "B"])


def test_a_list_of_values_replaces_an_open_field() -> None:
    narrowed = narrow(flat(size={"type": "integer", "minimum": 2}), {"size": {"enum": [1, 2, 3, "x"]}})
    assert narrowed["properties"]["size"] == {"type": "integer", "enum": [2, 3]}


def test_the_tighter_bound_wins() -> None:
    narrowed = narrow(flat(n={"type": "integer", "minimum": 1, "maximum": 9}), {"n": {"minimum": 0, "maximum": 5}})
    assert narrowed["properties"]["n"] == {"type": "integer", "minimum": 1, "maximum": 5}


def test_two_patterns_stand_side_by_side() -> None:
    narrowed = narrow(flat(path={"type": "string", "pattern": "a"}), {"path": {"pattern": "b"}})
    assert narrowed["properties"]["path"] == {"type": "string", "pattern": "a", "allOf": [{"pattern": "b"}]}


def test_types_without_a_common_one_leave_nothing() -> None:
    narrowed = narrow(flat(n={"type": "integer", "title": "n"}), {"n": {"type": "string"}})
    assert narrowed["properties"]["n"] == {"title": "n", "not": {}}
    assert SchemaChecker(narrowed).is_valid({})


def test_a_default_that_is_refused_goes_and_the_field_is_required() -> None:
    schema = flat(path={"type": "string", "default": "/"})
    narrowed = narrow(schema, {"path": {"pattern": "^notes/"}})
    assert narrowed["required"] == ["path"]
    assert "default" not in narrowed["properties"]["path"]
    assert "required" not in narrow(schema, {"path": {"pattern": "^/"}})


def test_defaults_given_from_outside_count_instead_of_those_shown() -> None:
    schema = flat(path={"type": "string"})
    assert narrow(schema, {"path": {"pattern": "^notes/"}}, defaults={"path": "/"})["required"] == ["path"]
    assert "required" not in narrow(schema, {"path": {"pattern": "^notes/"}}, defaults={})


def test_a_field_left_out_without_default_is_not_bound() -> None:
    assert SchemaChecker(narrow(flat(path={"type": "string"}), {"path": {"pattern": "^notes/"}})).is_valid({})


def test_a_field_that_the_schema_refuses_stays_refused() -> None:
    schema = flat(path={"type": "string"})
    assert narrow(schema, {"other": {"type": "string"}}) == schema


def test_an_undeclared_field_of_an_open_schema_is_bound_too() -> None:
    checker = SchemaChecker(narrow({"type": "object"}, {"other": {"type": "string"}}))
    assert checker.is_valid({"other": "a"})
    assert not checker.is_valid({"other": 1})


def test_a_schema_for_further_properties_still_holds_for_the_bound_one() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "string"}}
    narrowed = narrow(schema, {"other": {"minLength": 2}})
    assert narrowed["properties"]["other"] == {"type": "string", "minLength": 2}


def test_variants_of_a_union_are_narrowed_where_they_stand() -> None:
    variants = [{**flat(op={"const": "read"}, path={"type": "string"}), "required": ["op"]},
                {**flat(op={"const": "list"}), "required": ["op"]}]  # fmt: skip
    narrowed = narrow({"type": "object", "oneOf": variants}, {"path": {"pattern": "^notes/"}})
    assert narrowed["oneOf"][0]["properties"]["path"] == {"type": "string", "pattern": "^notes/"}
    assert narrowed["oneOf"][1] == variants[1]
    assert "properties" not in narrowed


def test_a_narrowing_for_some_operations_leaves_the_others() -> None:
    schema = {**flat(op={"enum": ["read", "write"]}, path={"type": "string", "default": "/"}), "required": ["op"]}
    checker = SchemaChecker(narrow(schema, {"path": {"pattern": "^notes/"}}, when=("op", ["write"])))
    assert checker.is_valid({"op": "read", "path": "/etc"})
    assert checker.is_valid({"op": "write", "path": "notes/a"})
    assert not checker.is_valid({"op": "write", "path": "/etc"})
    assert not checker.is_valid({"op": "write"})


def test_references_of_a_constraint_are_its_own() -> None:
    schema = {**flat(tree={"$ref": "#/$defs/Node"}), "$defs": {"Node": {"type": ["array", "string"]}}}
    node: Json = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/Node"}}]}
    checker = SchemaChecker(narrow(schema, {"tree": {"$ref": "#/$defs/Node", "$defs": {"Node": node}}}))
    assert checker.is_valid({"tree": [["a"], "b"]})
    assert not checker.is_valid({"tree": [[1]]})
    assert not checker.is_valid({"tree": 1})
    recursive: Json = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#"}}]}
    again = SchemaChecker(narrow(schema, {"tree": recursive}))
    assert again.is_valid({"tree": [["a"]]})
    assert not again.is_valid({"tree": [[1]]})


def test_a_newer_constraint_lifts_a_schema_of_draft_7_that_means_the_same() -> None:
    schema = {**flat(pair={"type": "array"}), "$schema": "http://json-schema.org/draft-07/schema#"}
    narrowed = narrow(schema, {"pair": {"prefixItems": [{"type": "string"}]}})
    assert not SchemaChecker(narrowed).is_valid({"pair": [1]})
    tuples = {**flat(pair={"type": "array", "items": [{"type": "string"}]}), "$schema": schema["$schema"]}
    with pytest.raises(SchemaError, match="another draft"):
        narrow(tuples, {"pair": {"prefixItems": [{"type": "string"}]}})


def test_a_constraint_of_some_operations_lets_no_undeclared_parameter_in() -> None:
    branches = [
        {"properties": {"op": {"const": "a"}, "x": {"type": "integer"}}, "required": ["op"]},
        {"properties": {"op": {"const": "b"}}, "required": ["op"]},
    ]
    schema = {"type": "object", "oneOf": branches, "unevaluatedProperties": False}
    before, after = SchemaChecker(schema), SchemaChecker(narrow(schema, {"x": {"maximum": 3}}, when=("op", ["b"])))
    calls = [{"op": "b", "x": 1}, {"op": "b"}, {"op": "a", "x": 9}, {"op": "a", "y": 1}, {"x": 1}]

    assert [after.is_valid(call) for call in calls] == [before.is_valid(call) for call in calls]
    assert not SchemaChecker(narrow(schema, {"x": {"maximum": 3}}, when=("op", ["a"]))).is_valid({"op": "a", "x": 9})


def test_unevaluated_properties_see_what_they_saw() -> None:
    schema: Json = {
        "type": "object",
        "oneOf": [{"properties": {"a": {"const": 1}, "x": {}}, "required": ["a"]}, {"required": ["b"]}],
        "properties": {"b": {}},
        "unevaluatedProperties": False,
    }
    for name in ("x", "y"):
        checker = SchemaChecker(narrow(schema, {name: {"type": "string"}}))
        assert not checker.is_valid({"b": 1, name: "text"})
    assert SchemaChecker(narrow(schema, {"x": {"type": "string"}})).is_valid({"a": 1, "x": "text"})
    assert not SchemaChecker(narrow(schema, {"x": {"type": "string"}})).is_valid({"a": 1, "x": 2})


def test_a_boolean_constraint_forbids_the_field_or_says_nothing() -> None:
    schema = flat(path={"type": "string"})
    assert narrow(schema, {"path": True}) is schema
    assert not SchemaChecker(narrow(schema, {"path": False})).is_valid({"path": "a"})


SCALARS = st.one_of(
    st.sampled_from(["a", "ab", "notes/a", ""]), st.integers(-2, 4), st.booleans(), st.none(), st.just(1.5)
)
VALUES = st.one_of(
    SCALARS,
    st.lists(SCALARS, max_size=3),
    st.dictionaries(st.sampled_from(["k", "l"]), SCALARS, max_size=2),
)
_LEAVES: list[Json] = [
    {"type": "number", "minimum": 2},
    {"minimum": -1, "maximum": 1, "minLength": 1, "maxLength": 1, "maxItems": 1},
    {"type": "string"},
    {"type": ["string", "null"]},
    {"type": "integer"},
    {"type": "number"},
    {"enum": ["a", 1, None]},
    {"enum": ["a", "ab"]},
    {"const": "a"},
    {"const": 1},
    {"minimum": 1},
    {"maximum": 2, "type": "integer"},
    {"minLength": 2},
    {"maxLength": 2, "type": "string"},
    {"pattern": "^notes/"},
    {"pattern": "a"},
    {"not": {"const": 1}},
    {"not": {"const": True}},
    {"anyOf": [{"type": "string"}, {"type": "null"}]},
    {"oneOf": [{"const": "a"}, {"type": "integer"}]},
    {"type": "array", "items": {"type": "string"}},
    {"items": {"type": "integer"}},
    {"minItems": 1, "uniqueItems": True},
    {"contains": {"const": "a"}},
    {"type": "object", "properties": {"k": {"type": "string"}}, "additionalProperties": False},
    {"properties": {"l": {}}, "additionalProperties": False},
    {"required": ["k"]},
    {"required": []},
    {"type": "object", "unevaluatedProperties": False, "properties": {"k": {}}},
    {},
    {"allOf": [{"minLength": 1}]},
    {"if": {"type": "string"}, "then": {"maxLength": 1}},
    {"$ref": "#/$defs/Short"},
]
LEAVES = st.sampled_from(_LEAVES)
CONSTRAINTS = LEAVES.filter(lambda leaf: "$ref" not in leaf)


@st.composite
def shown_schemas(draw: st.DrawFn) -> Json:
    schema: Json = {"type": "object", "$defs": {"Short": {"type": "string", "maxLength": 2}}}
    properties: Json = {}
    for name in draw(st.lists(st.sampled_from(["x", "y"]), unique=True)):
        properties[name] = dict(draw(LEAVES))
        if draw(st.booleans()):
            properties[name]["default"] = draw(SCALARS)
    schema["properties"] = properties
    extra = draw(st.sampled_from([None, False, {"type": "string"}]))
    if extra is not None:
        schema["additionalProperties"] = extra
    if draw(st.booleans()):
        schema["patternProperties"] = {"^y": {"type": ["string", "integer"]}}
    if draw(st.booleans()):
        schema["oneOf"] = [
            {
                "properties": {"op": {"const": name}, draw(st.sampled_from("xyz")): dict(draw(LEAVES))},
                "required": ["op"],
            }
            for name in ("read", "write")
        ]
    return schema


@settings(max_examples=500)
@given(shown_schemas(), st.dictionaries(st.sampled_from(["x", "y", "z"]), CONSTRAINTS, max_size=2), st.data())
def test_what_is_narrowed_accepts_exactly_what_both_accept(
    schema: Json, constraints: Json, data: st.DataObject
) -> None:
    before = copy.deepcopy(schema)
    narrowed = narrow(schema, constraints)
    assert schema == before
    assert check_schema(narrowed) == ()
    call = data.draw(st.dictionaries(st.sampled_from(["x", "y", "z"]), VALUES, max_size=3))
    if data.draw(st.booleans()):
        call["op"] = data.draw(st.sampled_from(["read", "write"]))
    fits = True
    for name, constraint in constraints.items():
        declared = [schema, *schema.get("oneOf", [])]
        own = [node["properties"][name] for node in declared if name in node["properties"]]
        held = [call[name]] if name in call else [one["default"] for one in own if "default" in one][:1]
        fits &= all(map(SchemaChecker(constraint).is_valid, held))
    assert SchemaChecker(narrowed).is_valid(call) == (SchemaChecker(schema).is_valid(call) and fits), narrowed
