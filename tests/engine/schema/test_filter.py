"""Filtering by operation: what goes, what stays, what becomes required."""

import copy
import json
from typing import Any

import pytest

from gatewright.base.errors import SchemaError
from gatewright.schema import SchemaChecker, check_schema, filter_operations, filter_with_lints


def tool(**more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "operation": {
                "type": "string",
                "enum": ["read", "append", "delete"],
                "description": "What to do: read the file, append to it, or delete it.",
            },
            "path": {"type": "string", "description": "The file. Required for read, append and delete."},
            "content": {"type": "string", "description": "Text to add (append only)."},
        },
        "required": ["operation", "path"],
        **more,
    }


def filtered(schema: dict[str, Any], *allowed: str) -> dict[str, Any]:
    result = filter_operations(schema, allowed)
    assert result is not None
    assert check_schema(result) == ()
    return result


def test_hidden_operations_leave_values_and_texts() -> None:
    result = filtered(tool(), "read", "append")
    assert result["properties"]["operation"]["enum"] == ["read", "append"]
    assert "delete" not in json.dumps(result)
    assert result["properties"]["path"]["description"] == "The file. Required for read and append."


def test_the_input_is_untouched() -> None:
    schema = tool()
    before = copy.deepcopy(schema)
    filter_operations(schema, ["read"])
    assert schema == before


def test_all_allowed_gives_the_very_same_schema() -> None:
    schema = tool()
    assert filter_operations(schema, ["delete", "append", "read"]) is schema


def test_none_allowed_gives_nothing() -> None:
    assert filter_operations(tool(), []) is None
    assert filter_operations(tool(), ["READ", " read"]) is None


def test_a_schema_without_operations_is_an_error() -> None:
    with pytest.raises(SchemaError, match="no operations"):
        filter_operations({"type": "object", "properties": {"path": {}}}, ["read"])
    with pytest.raises(SchemaError, match="`path`"):
        filter_operations(tool(), ["read"], field="path")


def test_an_unknown_allowed_name_is_told() -> None:
    result = filter_with_lints(tool(), ["read", "reed"])
    assert [lint.code for lint in result.lints] == ["unknown-operation"]


def test_absent_additional_properties_become_false_and_explicit_ones_stay() -> None:
    assert filtered(tool(), "read")["additionalProperties"] is False
    result = filter_with_lints(tool(additionalProperties=True), ["read"])
    assert result.schema is not None
    assert result.schema["additionalProperties"] is True
    assert "open-properties" in [lint.code for lint in result.lints]


def test_a_hidden_default_makes_the_field_required() -> None:
    field = {"enum": ["list", "push"], "default": "push"}
    result = filtered({"type": "object", "properties": {"mode": field}}, "list")
    assert result["required"] == ["mode"]
    assert "default" not in result["properties"]["mode"]


def test_an_unstated_default_makes_the_field_required() -> None:
    result = filtered({"type": "object", "properties": {"action": {"enum": ["list", "push"]}}}, "list")
    assert result["required"] == ["action"]


def test_an_allowed_default_keeps_the_field_optional() -> None:
    field = {"enum": ["list", "push"], "default": "push"}
    result = filtered({"type": "object", "properties": {"mode": field}}, "push")
    assert "required" not in result
    assert result["properties"]["mode"]["default"] == "push"


def test_null_goes_with_a_hidden_default_since_it_may_mean_it() -> None:
    field = {"anyOf": [{"enum": ["read", "write"], "type": "string"}, {"type": "null"}], "default": None}
    result = filtered({"type": "object", "properties": {"operation": field}}, "read")
    checker = SchemaChecker(result)
    assert checker.is_valid({"operation": "read"})
    assert not checker.is_valid({"operation": None})
    assert not checker.is_valid({})


def test_a_hidden_variant_takes_its_parameters_along() -> None:
    schema = {
        "type": "object",
        "oneOf": [
            {"properties": {"action": {"const": "read"}, "path": {}}, "required": ["action", "path"]},
            {"properties": {"action": {"const": "burn"}, "fuel": {}}, "required": ["action", "fuel"]},
            {"properties": {"action": {"const": "list"}, "depth": {}}, "required": ["action"]},
        ],
        "discriminator": {"propertyName": "action", "mapping": {"burn": "x", "read": "y", "list": "z"}},
    }
    two = filtered(schema, "read", "list")
    assert [branch["properties"]["action"]["const"] for branch in two["oneOf"]] == ["read", "list"]
    assert all(branch["additionalProperties"] is False for branch in two["oneOf"])
    assert "burn" not in json.dumps(two)
    assert "fuel" not in json.dumps(two)


def test_a_single_variant_becomes_one_plain_object() -> None:
    schema = {
        "oneOf": [
            {"type": "object", "properties": {"action": {"const": "read"}, "path": {}}, "required": ["action"]},
            {"type": "object", "properties": {"action": {"const": "burn"}}, "required": ["action"]},
        ]
    }
    assert filtered(schema, "read") == {
        "type": "object",
        "properties": {"action": {"const": "read"}, "path": {}},
        "required": ["action"],
        "additionalProperties": False,
    }


def test_shared_root_parameters_stay_usable_in_closed_variants() -> None:
    branches = [{"properties": {"op": {"const": name}}, "required": ["op"]} for name in ("read", "list", "burn")]
    schema = {"type": "object", "properties": {"label": {"type": "string"}}, "oneOf": branches}
    checker = SchemaChecker(filtered(schema, "read", "list"))
    assert checker.is_valid({"op": "read", "label": "x"})
    assert not checker.is_valid({"op": "read", "label": 3})
    assert not checker.is_valid({"op": "read", "other": 3})


def test_unused_definitions_go_and_recursive_ones_stay() -> None:
    schema = {
        "oneOf": [{"$ref": "#/$defs/Walk"}, {"$ref": "#/$defs/Burn"}],
        "$defs": {
            "Tree": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Tree"}}},
            "Fuel": {"type": "object", "properties": {"more": {"$ref": "#/$defs/Fuel"}}},
            "Walk": {
                "type": "object",
                "properties": {"op": {"const": "walk"}, "tree": {"$ref": "#/$defs/Tree"}},
                "required": ["op"],
            },
            "Burn": {
                "type": "object",
                "properties": {"op": {"const": "burn"}, "fuel": {"$ref": "#/$defs/Fuel"}},
                "required": ["op"],
            },
        },
    }
    assert set(filtered(schema, "walk")["$defs"]) == {"Tree"}


def test_conditional_branches_of_hidden_operations_go() -> None:
    def rule(name: str, parameter: str) -> dict[str, Any]:
        condition = {"properties": {"operation": {"const": name}}, "required": ["operation"]}
        return {"if": condition, "then": {"required": [parameter]}}

    result = filtered(tool(allOf=[rule("append", "content"), rule("delete", "reason")]), "read", "append")
    assert result["allOf"] == [rule("append", "content")]
    checker = SchemaChecker(result)
    assert checker.is_valid({"operation": "append", "path": "a", "content": "x"})
    assert not checker.is_valid({"operation": "append", "path": "a"})


def test_examples_that_call_a_hidden_operation_go() -> None:
    samples = [{"operation": "read", "path": "a"}, {"operation": "delete", "path": "a"}]
    assert filtered(tool(examples=samples), "read")["examples"] == samples[:1]


def test_a_name_that_a_parameter_bears_may_stay_and_is_told() -> None:
    schema = {
        "type": "object",
        "properties": {
            "action": {"enum": ["reply", "comment"]},
            "comment": {"type": "string", "description": "The comment to send."},
        },
        "required": ["action"],
    }
    result = filter_with_lints(schema, ["reply"])
    assert result.schema is not None
    assert "comment" in result.schema["properties"]
    assert [lint.code for lint in result.lints] == ["kept-word"]


def test_labels_beside_an_enum_are_trimmed_with_it() -> None:
    field = {"enum": ["read", "drop"], "enumNames": ["Reading", "Dropping"], "x-enumDescriptions": {"drop": "!"}}
    schema = {"type": "object", "properties": {"operation": field}, "required": ["operation"]}
    own = filtered(schema, "read")["properties"]["operation"]
    assert own["enumNames"] == ["Reading"]
    assert "drop" not in json.dumps(own)


def test_the_result_cleans_texts_outside_the_schema_alike() -> None:
    result = filter_with_lints(tool(), ["read"])
    assert result.clean("Files: read, append, or delete. Delete is final.") == "Files: read."


def test_a_hidden_name_that_is_another_parameters_legal_value_is_told() -> None:
    schema = {
        "type": "object",
        "properties": {"action": {"enum": ["reply", "comment"]}, "to": {"enum": ["comment", "thread"]}},
        "required": ["action"],
    }
    result = filter_with_lints(schema, ["reply"])
    assert [(lint.code, "`comment`" in lint.message) for lint in result.lints] == [("kept-word", True)]
