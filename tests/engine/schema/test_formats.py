"""What each provider gets to see, what it is told about, and how calls come back."""

import json
from typing import Any

import pytest

from gatewright.base.errors import NotSupported
from gatewright.schema import FORMATS, Schema, SchemaChecker, ToolListing, format_named
from tests.engine.schema.provider_rules import refusals

FLAT: Schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
CLOSED: Schema = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "limit": {"type": "integer", "default": 5},
        "mode": {"enum": ["fast", "slow"]},
        "filter": {
            "type": "object",
            "properties": {"kind": {"const": "file"}, "size": {"type": "number", "minimum": 0}},
            "required": ["kind"],
            "additionalProperties": False,
        },
    },
    "required": ["path"],
    "additionalProperties": False,
}
UNION: Schema = {
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
REFUSING = ["openai", "openai-responses", "anthropic", "gemini", "genai"]


def sent(name: str, schema: Schema) -> Schema:
    body = format_named(name).render(ToolListing("file", "Files.", schema))
    match name:
        case "openai":
            return body["function"]["parameters"]
        case "openai-responses" | "gemini":
            return body["parameters"]
        case "anthropic":
            return body["input_schema"]
        case "genai":
            return body["schema"]
        case _:
            return body["inputSchema"]


def codes(name: str, schema: Schema) -> list[str]:
    return [lint.code for lint in format_named(name).lints(ToolListing("file", "", schema))]


def there_and_back(name: str, schema: Schema, arguments: Schema) -> tuple[Schema, Any]:
    reader = format_named(name).reader([ToolListing("file", "", schema)])
    spelled = reader.spell("file", arguments)[1]
    return spelled, reader.restore("file", spelled)[1]


def test_each_format_spells_a_tool_its_own_way() -> None:
    listing = ToolListing("file", "Files.", FLAT)
    openapi = {"type": "OBJECT", "properties": {"path": {"type": "STRING"}}, "required": ["path"]}
    said = {"name": "file", "description": "Files."}
    assert {name: form.render(listing) for name, form in FORMATS.items()} == {
        "mcp": {**said, "inputSchema": FLAT},
        "openai": {"type": "function", "function": {**said, "parameters": FLAT}},
        "openai-responses": {"type": "function", **said, "parameters": FLAT, "strict": False},
        "anthropic": {**said, "input_schema": FLAT},
        "gemini": {**said, "parameters": openapi},
        "genai": {**said, "schema": FLAT},
    }


def test_a_closed_tool_goes_out_strict_with_nulls_for_what_may_be_left_out() -> None:
    function = format_named("openai").render(ToolListing("file", "", CLOSED))["function"]
    parameters = function["parameters"]
    assert function["strict"] is True
    assert parameters["required"] == ["path", "limit", "mode", "filter"]
    assert parameters["properties"]["limit"] == {"type": ["integer", "null"], "description": "Default: 5."}
    assert parameters["properties"]["mode"] == {"type": ["string", "null"], "enum": ["fast", "slow", None]}
    assert parameters["properties"]["filter"]["anyOf"][1] == {"type": "null"}


def test_the_nulls_of_strict_mode_are_left_out_again_at_every_depth() -> None:
    call = {"path": "a", "filter": {"kind": "file"}}
    spelled, back = there_and_back("openai", CLOSED, call)
    assert spelled == {"path": "a", "limit": None, "mode": None, "filter": {"kind": "file", "size": None}}
    assert back == call


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        (FLAT, ""),
        ({**CLOSED, "properties": {"path": {"type": "string", "minLength": 1}}}, "/properties/path/minLength"),
        ({**CLOSED, "properties": {"path": {}}}, "/properties/path"),
        (
            {**CLOSED, "properties": {"path": {"type": "string"}, "tag": {"type": ["string", "null"]}}},
            "/properties/tag",
        ),
    ],
)
def test_what_strict_mode_cannot_say_exactly_is_sent_without_it_and_told(schema: Schema, pointer: str) -> None:
    listing = ToolListing("file", "", schema)
    assert "strict" not in format_named("openai").render(listing)["function"]
    (lint,) = format_named("openai").lints(listing)
    assert (lint.code, lint.level, lint.pointer) == ("not-strict", "note", pointer)
    assert lint.message.startswith("not in strict mode: ")


@pytest.mark.parametrize("name", REFUSING)
def test_a_root_union_is_sent_as_one_parameter_and_comes_back_unwrapped(name: str) -> None:
    schema = sent(name, UNION)
    assert list(schema["properties"]) == ["input"]
    assert "oneOf" not in schema
    assert "root-wrapped" in codes(name, UNION)
    call = {"op": "count", "path": "a"}
    spelled, back = there_and_back(name, UNION, call)
    assert set(spelled) == {"input"}
    assert back == call


def test_a_root_union_is_sent_as_it_is_over_mcp() -> None:
    assert sent("mcp", UNION) == {**UNION, "type": "object"}
    assert codes("mcp", UNION) == []


def test_arguments_that_came_unwrapped_are_taken_as_they_are() -> None:
    reader = format_named("anthropic").reader([ToolListing("file", "", UNION)])
    assert reader.restore("file", {"op": "read", "path": "a"}) == ("file", {"op": "read", "path": "a"})


@pytest.mark.parametrize("name", REFUSING)
def test_a_union_of_one_alternative_is_no_union(name: str) -> None:
    schema = sent(name, {"oneOf": UNION["oneOf"][:1]})
    assert set(schema["properties"]) == {"op", "path"}
    assert "root-wrapped" not in codes(name, {"oneOf": UNION["oneOf"][:1]})


def test_an_enum_beside_alternatives_becomes_one_enum_with_what_they_said() -> None:
    field: Schema = {
        "enum": ["read", "burn"],
        "oneOf": [{"const": "read", "description": "Reads."}, {"const": "write", "description": "Writes."}],
    }
    for name in ("openai", "anthropic", "genai"):
        schema = sent(name, {"type": "object", "properties": {"op": field}})
        assert schema["properties"]["op"] == {"enum": ["read"], "description": "`read`: Reads."}


def test_gemini_gets_one_type_each_texts_as_enums_and_nullable() -> None:
    schema: Schema = {
        "type": "object",
        "properties": {
            "level": {"enum": [1, 2]},
            "mode": {"type": ["string", "null"], "const": "fast"},
            "size": {"type": "integer", "exclusiveMinimum": 0},
            "any": {},
            "$filter": {"type": "string"},
            "either": {"type": ["string", "integer"]},
        },
    }
    properties = sent("gemini", schema)["properties"]
    assert properties["level"] == {"type": "STRING", "format": "enum", "enum": ["1", "2"]}
    assert properties["size"] == {"type": "INTEGER", "minimum": 1}
    assert properties["any"] == {"type": "STRING", "description": "Any JSON value, as JSON text."}
    assert properties["either"] == {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]}
    call = {"level": 2, "any": {"a": [1]}, "$filter": "x", "either": 7}
    spelled, back = there_and_back("gemini", schema, call)
    assert spelled["level"] == "2"
    assert spelled["any"] == '{"a": [1]}'
    assert "$filter" not in spelled
    assert back == call


def test_what_is_said_of_a_union_stands_inside_it_for_gemini() -> None:
    union = {"title": "Key", "description": "What to look for.", "default": 7, "type": ["string", "integer", "null"]}
    key = sent("gemini", {"type": "object", "properties": {"key": union}})["properties"]["key"]
    assert list(key) == ["anyOf"]
    assert key["anyOf"][0] == {
        "type": "STRING",
        "nullable": True,
        "title": "Key",
        "description": "What to look for.\nDefault: 7.",
    }


@pytest.mark.parametrize(("name", "kind"), [("gemini", "STRING"), ("openai", "string")])
@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"description": "Whom to write to.", "format": "email"}, "Whom to write to.\nFormat: email."),
        ({"format": "email", "description": "Whom to write to."}, "Whom to write to.\nFormat: email."),
        ({"format": "email", "description": "A mail. Format: email."}, "A mail. Format: email."),
        ({"format": "email"}, "Format: email."),
        ({"format": "email", "description": ""}, "Format: email."),
    ],
)
def test_format_that_a_provider_does_not_take_is_said_once_behind_the_description(
    name: str, kind: str, said: Schema, told: str
) -> None:
    key: Schema = {"type": "string", **said}
    schema = {"type": "object", "properties": {"key": key}, "required": ["key"], "additionalProperties": False}
    assert sent(name, schema)["properties"]["key"] == {"type": kind, "description": told}


@pytest.mark.parametrize(
    ("outer", "inner", "told"),
    [
        ("", "", {}),
        ("", "The key.", {"description": "The key."}),
        ("The key.", "The key. Or none.", {"description": "The key. Or none."}),
        ("The key.", "A text.", {"description": "A text.\nThe key."}),
    ],
)
def test_only_alternative_beside_null_says_what_the_whole_says_once(
    outer: str, inner: str, told: dict[str, str]
) -> None:
    text: Schema = {"type": "string", **({"description": inner} if inner else {})}
    key = {"anyOf": [text, {"type": "null"}], **({"description": outer} if outer else {})}
    found = sent("gemini", {"type": "object", "properties": {"key": key}})["properties"]["key"]
    assert found == {"type": "STRING", "nullable": True, **told}


def test_description_that_is_no_text_is_left_out_where_the_values_are_described() -> None:
    key = {"description": 5, "oneOf": [{"const": "a", "description": "A."}, {"const": "b", "description": "B."}]}
    found = sent("gemini", {"type": "object", "properties": {"key": key}})["properties"]["key"]
    assert found["description"] == "`a`: A.\n`b`: B."


def test_nesting_that_gemini_may_refuse_is_told() -> None:
    deep: Schema = {"type": "string"}
    for _ in range(4):
        deep = {"type": "object", "properties": {"a": deep}}
    assert "deep" not in codes("gemini", deep)
    assert "deep" in codes("gemini", {"type": "object", "properties": {"all": {"type": "array", "items": deep}}})


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "address", ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"]
)
@pytest.mark.parametrize("kind", ["date-time", "uri", "colour"])
def test_a_format_is_a_note_that_no_provider_is_said_to_lose_and_no_gate_to_check(
    name: str, address: str, kind: str
) -> None:
    text: Schema = {"type": "string", "format": kind}
    inner: Schema = {"type": "object", "properties": {"at": text}, "additionalProperties": False, "required": ["at"]}
    schema: Schema = {
        "$schema": address,
        "type": "object",
        "properties": {"when": text, "pair": {"type": "array", "items": inner}},
        "required": ["when", "pair"],
        "additionalProperties": False,
    }
    said = [lint.message for lint in format_named(name).lints(ToolListing("file", "", schema))]
    assert not [message for message in said if "format" in message or kind in message]
    assert json.dumps(sent(name, schema)).count(kind) == 2
    assert SchemaChecker(schema).is_valid({"when": "soon", "pair": []})


def test_a_schema_whose_definitions_hold_each_other_stays_small_for_gemini_and_says_where_it_ends() -> None:
    names = [f"part{number}" for number in range(20)]
    inner = {name: {"$ref": f"#/$defs/{name}"} for name in names}
    web: Schema = {
        "type": "object",
        "properties": {"whole": {"$ref": "#/$defs/part0"}},
        "$defs": {name: {"type": "object", "properties": {"text": {"type": "string"}, **inner}} for name in names},
    }
    assert len(json.dumps(sent("gemini", web))) < 100_000
    call: Schema = {"whole": {"part1": {"part2": {"part3": {"part4": {"part5": {"text": "deep"}}}}}}}
    assert there_and_back("gemini", web, call)[1] == call
    said = [lint.reason for lint in format_named("gemini").lints(ToolListing("file", "", web))]
    assert any("here is level 4 of it" in reason or "1,000 schemas" in reason for reason in said)


def test_a_recursive_tool_is_unrolled_for_gemini_and_its_depth_sent_as_text() -> None:
    tree: Schema = {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/node"}},
        "required": ["tree"],
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "inner": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                },
                "required": ["name"],
                "additionalProperties": False,
            }
        },
        "additionalProperties": False,
    }
    deep: Schema = {"tree": {"name": "a", "inner": [{"name": "b", "inner": [{"name": "c", "inner": [{"name": "d"}]}]}]}}
    assert "json-text" in codes("gemini", tree)
    assert there_and_back("gemini", tree, deep)[1] == deep
    assert codes("openai", tree) == []
    spelled, back = there_and_back("openai", tree, deep)
    assert back == deep
    assert SchemaChecker(sent("openai", tree)).is_valid(spelled)


def test_a_parameter_name_that_anthropic_refuses_is_fitted_and_comes_back() -> None:
    schema: Schema = {"type": "object", "properties": {"{{user}}": {"type": "string"}}, "required": ["{{user}}"]}
    (key,) = sent("anthropic", schema)["properties"]
    assert key.startswith("user_")
    assert sent("anthropic", schema)["required"] == [key]
    assert there_and_back("anthropic", schema, {"{{user}}": "x"}) == ({key: "x"}, {"{{user}}": "x"})


def test_a_parameter_name_that_cannot_be_fitted_is_told_as_refused() -> None:
    schema: Schema = {"type": "object", "properties": {"a": {"additionalProperties": {"properties": {"$x": {}}}}}}
    (lint,) = format_named("anthropic").lints(ToolListing("file", "", schema))
    assert (lint.code, lint.level) == ("key", "refused")
    assert refusals("anthropic", format_named("anthropic").render(ToolListing("file", "", schema)))


def test_arguments_as_text_and_as_an_object_come_back_the_same() -> None:
    reader = format_named("openai").reader([ToolListing("file", "", CLOSED)])
    assert reader.restore("file", '{"path": "a", "limit": null}') == ("file", {"path": "a"})
    assert reader.restore("file", {"path": "a", "limit": None}) == ("file", {"path": "a"})


@pytest.mark.parametrize("arguments", ["{", "[]", '{"a": 1, "a": 2}', "x" * 9, 7, None, [1]])
def test_arguments_that_cannot_be_read_are_handed_through_for_the_gate(arguments: Any) -> None:
    reader = format_named("openai").reader([ToolListing("file", "", CLOSED)])
    assert reader.restore("file", arguments) == ("file", arguments)


def test_arguments_nested_without_end_do_not_raise() -> None:
    deep: Any = {}
    for _ in range(5_000):
        deep = {"filter": deep}
    reader = format_named("openai").reader([ToolListing("file", "", CLOSED)])
    assert reader.restore("file", deep)[1] is deep


def test_an_unknown_tool_is_handed_through() -> None:
    reader = format_named("openai").reader([ToolListing("file", "", CLOSED)])
    assert reader.restore("other", {"path": None}) == ("other", {"path": None})


def test_a_long_description_goes_on_before_the_parameters() -> None:
    text = "word " * 400
    function = format_named("openai").render(ToolListing("file", text, FLAT))["function"]
    assert len(function["description"]) <= 1024
    assert function["description"] + function["parameters"]["description"] == text
    lints = format_named("openai").lints(ToolListing("file", text, FLAT))
    assert "description" in [lint.code for lint in lints]


def test_more_tools_than_openai_takes_are_told() -> None:
    many = [ToolListing(f"tool{index}", "", FLAT) for index in range(129)]
    (lint,) = format_named("openai").lints_all(many)[""]
    assert (lint.code, lint.level) == ("too-many-tools", "refused")
    assert "" not in format_named("openai").lints_all(many[:128])


def test_the_rules_refuse_what_providers_refuse() -> None:
    bad: Schema = {"type": "object", "properties": {"a": {"type": "array"}}, "anyOf": [{"required": ["a"]}]}
    said = {"name": "file", "description": ""}
    assert refusals("openai", {"type": "function", "function": {**said, "parameters": bad}})
    assert refusals("openai", {"type": "function", "function": {**said, "parameters": FLAT, "strict": True}})
    assert refusals("openai-responses", {"type": "function", **said, "parameters": bad, "strict": False})
    assert refusals("anthropic", {**said, "input_schema": bad})
    assert refusals("gemini", {**said, "parameters": FLAT})
    assert refusals("genai", {**said, "schema": bad})
    assert refusals("mcp", {**said, "inputSchema": UNION})
    assert refusals("mcp", {"name": "a b", "inputSchema": FLAT})


@pytest.mark.parametrize("name", ["nothing", "OpenAI", ""])
def test_an_unknown_format_is_said_to_be_unsupported(name: str) -> None:
    with pytest.raises(NotSupported, match=f"`{name}` is not supported"):
        format_named(name)


def test_more_parameters_than_strict_mode_takes_are_sent_without_it() -> None:
    names = [f"p{number}" for number in range(5_001)]
    many = {**CLOSED, "properties": {name: {"type": "string"} for name in names}, "required": names}
    (lint,) = format_named("openai").lints(ToolListing("file", "", many))
    assert lint.message.startswith(
        "not in strict mode: strict mode takes at most 5,000 parameters, and these are 5,001"
    )


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_a_parameter_that_no_value_fits_is_told(name: str) -> None:
    schema: Schema = {
        "type": "object",
        "properties": {"way": {"type": "string", "enum": []}},
        "additionalProperties": False,
    }

    said = [lint for lint in format_named(name).lints(ToolListing("file", "", schema)) if lint.code == "no-value"]

    assert [lint.pointer for lint in said] == ["/properties/way"]
