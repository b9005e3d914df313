"""Operations below the root: where they are found, what calls name them, how each spelling is filtered."""

from typing import Any

import pytest

from gatewright.schema import SchemaChecker, discover_operations, filter_operations, filter_with_lints, survey
from gatewright.schema.operation import path_text, steps_of

Json = dict[str, Any]


def obj(required: list[str] | None = None, **properties: Any) -> Json:
    return {"type": "object", "properties": properties, "required": required or []}


SELECTOR = obj(
    ["select"],
    select={
        "anyOf": [
            obj(["operation", "id"], operation={"const": "read"}, id={"type": "string"}),
            obj(["operation"], operation={"const": "purge"}, force={"type": "boolean"}),
            {"type": "null"},
        ],
        "default": {"operation": "purge"},
    },
    note={"type": "string", "description": "A note. Ignored by purge."},
)
BATCH = obj(
    ops={"type": "array", "items": obj(["op"], op={"enum": ["add", "remove"]}, name={"type": "string"})},
)


def found(schema: Json, **said: Any) -> Any:
    result = discover_operations(schema, **said)
    assert result is not None
    return result


def test_a_selector_object_is_found_with_its_parameters() -> None:
    operations = found(SELECTOR)
    assert (operations.field, operations.names, operations.shape) == (
        "select.operation",
        ("read", "purge"),
        "nested-union",
    )
    assert operations.confidence == "high"
    first = operations.operations[0]
    assert (first.required, first.optional) == (("select",), ("note",))
    assert (first.inner_required, first.inner_optional) == (("select.id",), ())


def test_a_selector_filtered_loses_variants_null_and_hidden_default() -> None:
    shown = filter_operations(SELECTOR, ["read"])
    assert shown is not None
    assert shown["additionalProperties"] is False
    select = shown["properties"]["select"]
    assert "default" not in select
    checker = SchemaChecker(shown)
    assert checker.is_valid({"select": {"operation": "read", "id": "1"}})
    for sent in ({"operation": "purge"}, {"operation": "READ", "id": "1"}, {"id": "1"}, None, {}):
        assert not checker.is_valid({"select": sent})
    assert not checker.is_valid({})
    assert "purge" not in str(shown)


def test_every_element_of_a_batch_must_be_allowed() -> None:
    operations = found(BATCH)
    assert (operations.field, operations.shape) == ("ops[].op", "batch-enum")
    assert operations.of({"ops": [{"op": "add"}, {"op": "remove"}]}) == ("add", "remove")
    assert operations.of({"ops": []}) == ()
    assert operations.of({}) == ()
    assert operations.of({"ops": [{"op": "add"}, "remove"]}) is None
    assert operations.of({"ops": [{"op": 7}]}) is None
    checker = SchemaChecker(filter_operations(BATCH, ["add"]) or {})
    assert checker.is_valid({"ops": [{"op": "add"}, {"op": "add", "name": "a"}]})
    assert checker.is_valid({})
    assert not checker.is_valid({"ops": [{"op": "add"}, {"op": "remove"}]})
    assert not checker.is_valid({"ops": [{"op": "add"}, {}]})


def test_what_is_left_out_with_no_stated_default_could_be_any_of_them() -> None:
    schema = obj(op={"enum": ["read", "write"]})
    assert found(schema).of({}) == ("read", "write")
    assert found(schema).of({"op": None}) == ("read", "write")
    assert found(obj(op={"enum": ["read", "write"], "default": "read"})).of({}) == ("read",)
    assert found(schema).of({"op": " read"}) == (" read",)
    assert found(schema).of({"op": ["read"]}) is None


def test_one_definition_used_in_two_places_is_one_set_of_operations() -> None:
    line = obj(["action"], action={"enum": ["hide", "show", "group"]})
    rows: Json = {"type": "array", "items": {"$ref": "#/$defs/Line"}}
    schema = {**obj(layout=obj(rows=rows, columns=rows)), "$defs": {"Line": line}}
    operations = found(schema)
    assert (operations.field, operations.also) == ("layout.rows[].action", ("layout.columns[].action",))
    checker = SchemaChecker(filter_operations(schema, ["show"]) or {})
    assert checker.is_valid({"layout": {"rows": [{"action": "show"}]}})
    assert not checker.is_valid({"layout": {"columns": [{"action": "hide"}]}})


@pytest.mark.parametrize("field", ["layout.rows[].action", "layout.columns[].action"])
def test_naming_one_of_two_places_binds_the_other_as_well(field: str) -> None:
    lines: Json = {"type": "array", "items": obj(["action"], action={"enum": ["hide", "show", "group"]})}
    schema = obj(layout=obj(rows=lines, columns=lines), other=obj(action={"enum": ["hide", "show"]}))
    operations = found(schema, field=field)
    assert {operations.field, *operations.also} == {"layout.rows[].action", "layout.columns[].action"}
    assert operations.field == field
    checker = SchemaChecker(filter_operations(schema, ["show"], field=field) or {})
    for place in ("rows", "columns"):
        assert checker.is_valid({"layout": {place: [{"action": "show"}]}})
        assert not checker.is_valid({"layout": {place: [{"action": "hide"}]}})
    assert checker.is_valid({"other": {"action": "hide"}})


def test_recursive_batches_are_bound_at_every_depth() -> None:
    step = obj(
        ["action"], action={"enum": ["run", "delete"]}, steps={"type": "array", "items": {"$ref": "#/$defs/Step"}}
    )
    schema = {**obj(steps={"type": "array", "items": {"$ref": "#/$defs/Step"}}), "$defs": {"Step": step}}
    shown = filter_operations(schema, ["run"])
    checker = SchemaChecker(shown or {})
    assert checker.is_valid({"steps": [{"action": "run", "steps": [{"action": "run"}]}]})
    assert not checker.is_valid({"steps": [{"action": "run", "steps": [{"action": "delete"}]}]})
    assert "delete" not in str(shown)


def test_a_field_behind_all_of_and_reference_is_found_and_bound() -> None:
    schema = {
        "type": "object",
        "allOf": [{"$ref": "#/$defs/Base"}, {"properties": {"path": {"type": "string"}}}],
        "$defs": {"Base": obj(["command"], command={"enum": ["start", "stop"]})},
    }
    operations = found(schema)
    assert (operations.field, operations.names) == ("command", ("start", "stop"))
    checker = SchemaChecker(filter_operations(schema, ["start"]) or {})
    assert checker.is_valid({"command": "start", "path": "a"})
    assert not checker.is_valid({"command": "stop"})
    assert not checker.is_valid({"command": "start", "other": 1})


def test_a_variant_without_a_tag_cannot_smuggle_a_hidden_operation() -> None:
    schema = {
        "type": "object",
        "anyOf": [
            obj(["action"], action={"const": "read"}),
            obj(["action"], action={"const": "drop"}),
            obj(["raw"], raw={}),
        ],
    }
    shown = filter_operations(schema, ["read"], field="action")
    checker = SchemaChecker(shown or {})
    assert checker.is_valid({"action": "read"})
    assert not checker.is_valid({"action": "drop", "raw": 1})
    assert not checker.is_valid({"raw": 1})


def test_conditions_of_hidden_operations_go() -> None:
    schema = {
        **obj(["action"], action={"enum": ["read", "drop"]}, force={"type": "boolean"}),
        "allOf": [{"if": {"properties": {"action": {"const": "drop"}}}, "then": {"required": ["force"]}}],
    }
    assert "drop" not in str(filter_operations(schema, ["read"]))


def test_variants_told_apart_by_their_only_key_are_operations() -> None:
    variants = [
        {**obj([name], **{name: obj(path={"type": "string"})}), "additionalProperties": False}
        for name in ("copy", "drop")
    ]
    schema = {"oneOf": [*variants, {"type": "string", "const": "nothing"}]}
    operations = found(schema)
    assert (operations.shape, operations.names) == ("keyed-union", ("copy", "drop"))
    assert operations.of({"copy": {}, "drop": {}}) == ("copy", "drop")
    shown = filter_operations(schema, ["copy"])
    checker = SchemaChecker(shown or {})
    assert checker.is_valid({"copy": {}})
    assert not checker.is_valid({"drop": {}})
    assert not checker.is_valid({})
    assert "drop" not in str(shown)


def test_the_named_field_overrides_the_guess() -> None:
    schema = obj(
        ["action"], action={"enum": ["get", "set"]}, edits={"type": "array", "items": obj(kind={"enum": ["a", "b"]})}
    )
    assert found(schema).field == "action"
    assert found(schema, field="edits[].kind").names == ("a", "b")
    assert discover_operations(schema, field="edits.kind") is None


@pytest.mark.parametrize(
    "schema",
    [
        obj(filter=obj(type={"enum": ["open", "closed", "merged"]})),
        obj(sort=obj(action={"enum": ["newest", "oldest", "top"]})),
        obj(
            blocks={"type": "array", "items": {"oneOf": [obj(["type"], type={"const": n}) for n in ("text", "image")]}}
        ),
        obj(where=obj(op={"enum": ["eq", "ne", "lt", "gt"]})),
        obj(request=obj(method={"enum": ["GET", "POST", "DELETE"]})),
    ],
)
def test_filters_blocks_and_comparisons_below_the_root_are_off_by_default(schema: Json) -> None:
    assert survey(schema).found is None


def test_paths_are_written_and_read_alike() -> None:
    for steps in (("a",), ("a", "[]", "b"), ("a", "b", "[]", "[]", "c"), ("ops", "[]")):
        assert steps_of(path_text(steps)) == steps


def test_an_example_that_calls_something_hidden_goes() -> None:
    schema = {**BATCH, "examples": [{"ops": [{"op": "add"}]}, {"ops": [{"op": "remove"}]}]}
    result = filter_with_lints(schema, ["add"])
    assert result.schema is not None
    assert result.schema["examples"] == [{"ops": [{"op": "add"}]}]
