"""Schemas made from types, and references made plain."""

import enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from gatewright.base.errors import SchemaError
from gatewright.schema import check_schema, discover_operations, inline_references, schema_of


class Level(enum.StrEnum):
    LOW = "low"
    HIGH = "high"


class Inner(BaseModel):
    level: Level = Level.LOW


class Read(BaseModel):
    operation: Literal["read"]
    path: Annotated[str, Field(description="The file.")]


class Write(BaseModel):
    operation: Literal["write"]
    path: str
    inner: Inner | None = None


class Node(BaseModel):
    name: str
    children: "list[Node]" = []


def test_a_model_becomes_a_plain_object_schema() -> None:
    assert schema_of(Read) == {
        "type": "object",
        "properties": {
            "operation": {"const": "read", "type": "string"},
            "path": {"type": "string", "description": "The file."},
        },
        "required": ["operation", "path"],
    }


def test_nested_models_are_inlined() -> None:
    schema = schema_of(Write)
    assert "$ref" not in str(schema)
    assert "$defs" not in schema
    assert schema["properties"]["inner"]["anyOf"][0]["properties"]["level"]["enum"] == ["low", "high"]


def test_a_parameter_named_title_stays() -> None:
    class Book(BaseModel):
        title: str
        format: Literal["int32", "pdf"]

    assert set(schema_of(Book)["properties"]) == {"title", "format"}
    assert schema_of(Book)["properties"]["format"]["enum"] == ["int32", "pdf"]


def test_a_tagged_union_of_models_is_a_union_of_operations() -> None:
    found = discover_operations(schema_of(Annotated[Read | Write, Field(discriminator="operation")]))
    assert found is not None
    assert found.names == ("read", "write")


def test_a_recursive_model_keeps_its_definition() -> None:
    schema = schema_of(Node)
    assert schema["type"] == "object"
    assert schema["$defs"].keys() == {"Node"}
    assert check_schema(schema) == ()


def test_a_type_without_a_schema_is_an_error() -> None:
    class Opaque:
        pass

    with pytest.raises(SchemaError, match="no JSON Schema"):
        schema_of(Opaque)


def test_references_through_references_and_siblings_are_inlined() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A", "description": "mine"}, "b": {"$ref": "#/$defs/A", "minLength": 2}},
        "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"type": "string", "minLength": 1, "description": "theirs"}},
    }
    assert inline_references(schema) == {
        "type": "object",
        "properties": {
            "a": {"type": "string", "minLength": 1, "description": "mine"},
            "b": {"minLength": 2, "allOf": [{"type": "string", "minLength": 1, "description": "theirs"}]},
        },
    }


def test_a_schema_without_references_is_returned_as_it_is() -> None:
    schema = {"type": "object", "properties": {"$ref": {"type": "string"}}, "default": {"$ref": "#/x"}}
    assert inline_references(schema) is schema


def test_references_in_data_are_left_alone() -> None:
    schema: dict[str, Any] = {
        "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"const": {"$ref": "#/no"}}},
        "$defs": {"A": {}},
    }
    assert inline_references(schema)["properties"]["b"] == {"const": {"$ref": "#/no"}}


@pytest.mark.parametrize(
    ("reference", "words"),
    [("other.json#/x", "leaves the document"), ("#/$defs/no", "leads to no schema"), ("#anchor", "names no anchor")],
)
def test_an_unresolvable_reference_is_an_error_with_its_place(reference: str, words: str) -> None:
    with pytest.raises(SchemaError, match=words) as caught:
        inline_references({"properties": {"a": {"$ref": reference}}})
    assert "/properties/a/$ref" in str(caught.value)


def test_references_that_multiply_are_refused() -> None:
    defs: dict[str, Any] = {"D0": {"type": "string"}}
    for number in range(1, 40):
        defs[f"D{number}"] = {"properties": {side: {"$ref": f"#/$defs/D{number - 1}"} for side in "ab"}}
    with pytest.raises(SchemaError, match="expand to more than"):
        inline_references({"$ref": "#/$defs/D39", "$defs": defs})
