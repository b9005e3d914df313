"""What each provider gets to see, and what it is told that it would refuse."""

from typing import Any

import pytest

from gatewright.base.errors import NotSupported
from gatewright.schema import FORMATS, SchemaChecker, ToolListing, check_schema, format_named

FLAT: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
UNION: dict[str, Any] = {
    "oneOf": [
        {
            "type": "object",
            "properties": {"op": {"const": "read"}, "path": {"type": "string"}},
            "required": ["op", "path"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {"op": {"const": "count"}, "path": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["op", "path"],
            "additionalProperties": False,
        },
    ]
}


def test_each_format_spells_a_tool_its_own_way() -> None:
    listing = ToolListing("file", "Files.", FLAT)
    assert {name: form.render(listing) for name, form in FORMATS.items()} == {
        "mcp": {"name": "file", "description": "Files.", "inputSchema": FLAT},
        "openai": {"type": "function", "function": {"name": "file", "description": "Files.", "parameters": FLAT}},
        "anthropic": {"name": "file", "description": "Files.", "input_schema": FLAT},
    }
    assert all(form.lints(listing) == () for form in FORMATS.values())


def test_a_root_union_is_sent_flat_where_the_provider_refuses_it() -> None:
    listing = ToolListing("file", "", UNION)
    flat = format_named("anthropic").render(listing)["input_schema"]
    assert flat["type"] == "object"
    assert "oneOf" not in flat
    assert flat["properties"]["op"]["enum"] == ["read", "count"]
    assert flat["required"] == ["op", "path"]
    assert check_schema(flat) == ()
    assert [lint.code for lint in format_named("openai").lints(listing)] == ["root-flattened"]
    assert format_named("mcp").render(listing)["inputSchema"] == {"type": "object", **UNION}


@pytest.mark.parametrize("value", [{"op": "read", "path": "a"}, {"op": "count", "path": "a", "limit": 3}])
def test_every_call_of_the_union_is_valid_when_flat(value: dict[str, Any]) -> None:
    flat = format_named("openai").render(ToolListing("file", "", UNION))["function"]["parameters"]
    assert SchemaChecker(UNION).is_valid(value)
    assert SchemaChecker(flat).is_valid(value)


def test_the_flat_form_refuses_unknown_operations_and_keys() -> None:
    flat = format_named("openai").render(ToolListing("file", "", UNION))["function"]["parameters"]
    checker = SchemaChecker(flat)
    assert not checker.is_valid({"op": "burn", "path": "a"})
    assert not checker.is_valid({"op": "read", "path": "a", "other": 1})


def test_a_root_that_cannot_be_rewritten_is_told() -> None:
    schema = {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    (lint,) = format_named("openai").lints(ToolListing("file", "", schema))
    assert (lint.code, lint.pointer) == ("root-keyword", "/anyOf")


@pytest.mark.parametrize("name", ["a b", "x" * 65, "", "файл", "a.b"])
def test_a_name_that_providers_refuse_is_told(name: str) -> None:
    assert [lint.code for lint in format_named("anthropic").lints(ToolListing(name, "", FLAT))] == ["name"]


@pytest.mark.parametrize("name", ["gemini", "genai", "nothing"])
def test_an_unknown_format_is_said_to_be_unsupported(name: str) -> None:
    with pytest.raises(NotSupported, match=f"`{name}` is not supported"):
        format_named(name)
