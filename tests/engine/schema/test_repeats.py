"""The operation field once more, further inside: no hidden operation is called by nesting it."""

import copy
import json
from typing import Any

import pytest

from gatewright.schema import SchemaChecker, check_schema, discover_operations, filter_operations

Json = dict[str, Any]
NAMES = ["read", "update", "delete"]
READ, DELETE = {"op": "read"}, {"op": "delete"}


def flat(*required: str, **properties: Any) -> Json:
    return {"type": "object", "properties": properties, "required": list(required)}


OP = {"enum": NAMES}
NODE = flat("op", op=OP, children={"type": "array", "items": {"$ref": "#/$defs/node"}}, one={"$ref": "#/$defs/node"})
VARIANTS = {"oneOf": [flat("op", op={"const": name}) for name in ("read", "delete")]}

NESTED: dict[str, tuple[Json, list[Json]]] = {
    "a recursive definition": (
        {**NODE, "$defs": {"node": NODE}},
        [{**READ, "children": [DELETE]}, {**READ, "one": {**READ, "children": [{**READ, "one": DELETE}]}}],
    ),
    "steps that hold steps": (
        {**flat("steps", steps={"type": "array", "items": {"$ref": "#/$defs/node"}}), "$defs": {"node": NODE}},
        [{"steps": [{**READ, "one": {**READ, "one": DELETE}}]}],
    ),
    "the root again": (
        flat("op", op=OP, then={"$ref": "#"}),
        [{**READ, "then": DELETE}, {**READ, "then": {**READ, "then": DELETE}}],
    ),
    "a request with its own": (flat("op", op=OP, request=flat("op", op=OP)), [{**READ, "request": DELETE}]),
    "a map of requests": (
        flat("op", op=OP, more={"type": "object", "additionalProperties": flat("op", op=OP)}),
        [{**READ, "more": {"a": READ, "b": DELETE}}],
    ),
    "a map by patterns": (
        flat("op", op=OP, more={"type": "object", "patternProperties": {"^b": flat("op", op=OP)}}),
        [{**READ, "more": {"b": DELETE}}],
    ),
    "a batch of some of them": (
        flat("op", op={"enum": [*NAMES, "batch"]}, items={"type": "array", "items": flat("op", op=OP)}),
        [{"op": "batch", "items": [READ, DELETE]}],
    ),
    "a batch of variants": (
        flat("op", op={"enum": ["read", "delete", "batch"]}, items={"type": "array", "items": VARIANTS}),
        [{"op": "batch", "items": [READ, DELETE]}],
    ),
    "far below": (
        flat("op", op=OP, a=flat(b=flat(c=flat(d=flat(e=flat(f=flat(g=flat("op", op=OP)))))))),
        [{**READ, "a": {"b": {"c": {"d": {"e": {"f": {"g": DELETE}}}}}}}],
    ),
    "the only one is hidden": (flat("op", op=OP, sub=flat("op", op={"const": "delete"})), [{**READ, "sub": DELETE}]),
}


@pytest.mark.parametrize("name", NESTED)
def test_an_operation_that_is_nested_is_called(name: str) -> None:
    schema, calls = NESTED[name]
    found = discover_operations(schema)

    assert found is not None
    for call in calls:
        assert SchemaChecker(schema).is_valid(call)
        assert "delete" in (found.of(call) or ())
        assert "delete" not in (found.of(json.loads(json.dumps(call).replace("delete", "update"))) or ())


@pytest.mark.parametrize("name", NESTED)
def test_a_hidden_operation_fits_nowhere_and_is_named_nowhere(name: str) -> None:
    schema, calls = NESTED[name]
    untouched = copy.deepcopy(schema)
    found = discover_operations(schema)
    assert found is not None

    shown = filter_operations(schema, set(found.names) - {"delete"})

    assert shown is not None
    assert schema == untouched
    assert check_schema(shown) == ()
    assert "delete" not in json.dumps(shown)
    assert not any(SchemaChecker(shown).is_valid(call) for call in calls)
    if name != "the only one is hidden":
        assert all(SchemaChecker(shown).is_valid(json.loads(json.dumps(c).replace("delete", "read"))) for c in calls)


@pytest.mark.parametrize(
    ("own", "called"),
    [(OP, ("read", *NAMES)), ({**OP, "default": "update"}, ("read", "update"))],
)
def test_a_nested_field_that_is_left_out_calls_its_default_or_any(own: Json, called: tuple[str, ...]) -> None:
    found = discover_operations(flat("op", op=OP, request=flat(op=own)))

    assert found is not None
    assert found.of({**READ, "request": {}}) == called
    assert found.of(READ) == ("read",)


def test_a_filter_by_operation_is_no_repetition() -> None:
    by = flat(action={"enum": ["create", "delete"], "description": "only show these"})
    schema = flat("action", action={"enum": ["search", "create", "delete"]}, filters=by)

    shown = filter_operations(schema, ["search"])

    assert shown is not None
    assert shown["properties"]["filters"] == by


def test_a_declared_list_closes_the_text_in_a_recursive_definition_too() -> None:
    node = flat("do", do={"type": "string"}, sub={"$ref": "#/$defs/node"})
    schema = {**node, "$defs": {"node": node}}
    found = discover_operations(schema, field="do", operations=["read", "delete"])
    shown = filter_operations(schema, ["read"], field="do", operations=["read", "delete"])

    assert found is not None
    assert shown is not None
    assert found.of({"do": "read", "sub": {"do": "delete"}}) == ("read", "delete")
    assert SchemaChecker(shown).is_valid({"do": "read", "sub": {"do": "read"}})
    assert not SchemaChecker(shown).is_valid({"do": "read", "sub": {"do": "delete"}})
    assert not SchemaChecker(shown).is_valid({"do": "read", "sub": {"do": "raze"}})
