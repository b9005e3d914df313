"""Checking of arguments and schemas: exact, bounded, in words that a model can act on."""

import json
import time
from typing import Any, cast

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError as OracleError
from jsonschema.validators import validator_for

from gatewright.base.errors import SchemaError
from gatewright.base.pattern import folder_pattern
from gatewright.schema import SchemaChecker, check_schema
from tests.engine.schema.strategies import calls, property_enums, root_unions
from tests.support.patience import in_time

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "count": {"type": "integer", "minimum": 1},
        "level": {"enum": ["low", "high"]},
        "target": {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"kind": {"const": "file"}, "name": {"type": "string"}},
                    "required": ["kind", "name"],
                },
                {
                    "type": "object",
                    "properties": {"kind": {"const": "row"}, "number": {"type": "integer"}},
                    "required": ["kind", "number"],
                },
            ]
        },
    },
    "required": ["path"],
    "additionalProperties": False,
}


STRATEGY: dict[str, Any] = {
    "oneOf": [
        {"type": "object", "properties": {"kind": {"const": "rolling"}}, "required": ["kind"]},
        {
            "type": "object",
            "properties": {"kind": {"const": "canary"}, "percent": {"type": "number", "maximum": 100}},
            "required": ["kind", "percent"],
        },
        {"type": "null"},
    ]
}


def said(value: Any, schema: dict[str, Any] = SCHEMA) -> list[str]:
    return [str(error) for error in SchemaChecker(schema).errors(value)]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ({"path": "a"}, []),
        ({}, ["/: the required key `path` is missing"]),
        ({"path": 3}, ["/path: must be a string"]),
        ({"path": "a", "level": "mid"}, ['/level: must be one of `"low"`, `"high"`']),
        ({"path": "a", "count": 0}, ["/count: must be at least 1"]),
        (
            {"path": "a", "size": 1},
            ["/: a key that was sent does not exist here; the keys are `path`, `count`, `level`, `target`"],
        ),
        ([], ["/: must be an object"]),
        ({"path": "a", "target": {"kind": "row", "number": "x"}}, ["/target/number: must be an integer"]),
        ({"path": "a", "target": {"kind": "file"}}, ["/target: the required key `name` is missing"]),
        ({"path": "a", "target": {"kind": "disk"}}, ['/target/kind: must be one of `"file"`, `"row"`']),
        ({"path": "a", "target": {}}, ['/target: the required key `kind` is missing; it is one of `"file"`, `"row"`']),
    ],
)
def test_each_error_says_what_to_mend(value: Any, wanted: list[str]) -> None:
    assert said(value) == wanted


def test_every_error_is_reported_with_its_pointer() -> None:
    assert said({"count": "x", "level": 1}) == [
        "/: the required key `path` is missing",
        "/count: must be an integer",
        '/level: must be one of `"low"`, `"high"`',
    ]


def test_a_union_of_plain_types_is_said_in_one_line() -> None:
    schema = {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}
    assert said({"a": 3}, schema) == ["/a: must be a string, or null"]


def test_the_input_is_not_repeated() -> None:
    secret = "s3cret value"
    for value in ({"path": "a", secret: 1}, {"path": "a", "level": secret}, {"path": [secret]}, {"target": secret}):
        assert secret not in " ".join(said(value))


def test_the_number_and_length_of_errors_is_bounded() -> None:
    schema = {"type": "object", "properties": {"level": {"enum": [f"value {number}" * 9 for number in range(500)]}}}
    (error,) = SchemaChecker(schema).errors({"level": 1})
    assert len(error.message) <= 400
    numbers = {"type": "object", "additionalProperties": {"type": "integer"}}
    assert len(SchemaChecker(numbers).errors({f"k{number}": "x" for number in range(500)})) == 20


def deep() -> dict[str, Any]:
    root: dict[str, Any] = {}
    current = root
    for _ in range(100_000):
        current["path"] = {}
        current = current["path"]
    return root


@pytest.mark.parametrize(
    "value",
    [{"level": "\ud800"}, {"\ud800": 1}, {1: 2}, {"path": {1, 2}}, {"count": float("nan")}, {"path": b"x"}, deep()],
    ids=["surrogate", "surrogate key", "number key", "set", "nan", "bytes", "deep"],
)
def test_what_is_no_json_value_is_refused_and_not_raised(value: Any) -> None:
    checker = SchemaChecker(SCHEMA)
    assert not checker.is_valid(value)
    assert checker.errors(value)


@pytest.mark.parametrize(
    "value",
    [
        {"path": "a", "items": ["x"] * 150_000},
        {f"key{number}": number for number in range(150_000)},
        {"path": "x" * 10_000_000, "count": "y" * 10_000_000},
    ],
    ids=["long list", "many keys", "long texts"],
)
def test_a_huge_value_is_refused_without_listing_all_its_errors(value: Any) -> None:
    schema = {**SCHEMA, "properties": {**SCHEMA["properties"], "items": {"items": {"type": "integer"}}}}
    checker = SchemaChecker(schema)
    start = time.process_time()
    errors = checker.errors(value)
    assert 0 < len(errors) <= 20
    assert sum(len(str(error)) for error in errors) < 8_000
    assert in_time(time.process_time() - start, 1)


def test_a_key_beyond_the_looked_at_part_is_not_called_missing() -> None:
    value = {**{f"key{number}": number for number in range(5_000)}, "path": "a"}
    assert not any("missing" in line for line in said(value))


def test_huge_integers_are_integers() -> None:
    assert SchemaChecker(SCHEMA).is_valid({"path": "a", "count": 10**400})


def agrees(schema: dict[str, Any], value: dict[str, Any]) -> bool:
    """Whether the second validator says the same."""
    oracle = cast("Any", Draft202012Validator)(schema)
    return SchemaChecker(schema).is_valid(value) == oracle.is_valid(value)


@given(property_enums(), calls("operation"))
def test_checking_a_flat_schema_agrees_with_a_second_validator(schema: dict[str, Any], value: dict[str, Any]) -> None:
    assert agrees(schema, value)


@given(root_unions(), calls("action"))
def test_errors_are_empty_exactly_when_valid(schema: dict[str, Any], value: dict[str, Any]) -> None:
    checker = SchemaChecker(schema)
    assert agrees(schema, value)
    assert checker.is_valid(value) == (checker.errors(value) == ())
    assert "given schemas" not in " ".join(str(error) for error in checker.errors(value))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(JSON)
def test_no_value_makes_the_checker_raise(value: Any) -> None:
    checker = SchemaChecker(SCHEMA)
    assert checker.is_valid(value) == (checker.errors(value) == ())


@pytest.mark.parametrize(
    ("schema", "pointer", "words"),
    [
        ({"type": "strin"}, "/type", "not a valid schema"),
        ({"type": "string"}, "/type", "must be an object"),
        ({"anyOf": [{"type": "string"}]}, "/type", "must be an object"),
        ({"type": "object", "properties": {"a": {"pattern": "(?=x)"}}}, "/properties/a/pattern", "linear time"),
        ({"type": "object", "properties": {"a": {"pattern": "(a)\\1"}}}, "/properties/a/pattern", "linear time"),
        ({"type": "object", "patternProperties": {"(?!a)": {}}}, "/patternProperties/(?!a)", "linear time"),
        ({"$ref": "https://example.com/x"}, "", "never fetched"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/no"}}}, "", "leads to no schema"),
        ({"$schema": "https://example.com/draft", "type": "object"}, "/$schema", "drafts"),
        ([], "", "must be a JSON object"),
    ],
)
def test_an_unusable_schema_is_a_problem_with_its_place(schema: Any, pointer: str, words: str) -> None:
    (problem,) = check_schema(schema)
    assert problem.pointer == pointer
    assert words in problem.message


def test_a_schema_that_cannot_be_compiled_is_an_error() -> None:
    with pytest.raises(SchemaError, match="linear time"):
        SchemaChecker({"type": "object", "properties": {"a": {"pattern": "(?=x)"}}})
    with pytest.raises(SchemaError, match="never fetched"):
        SchemaChecker({"$ref": "https://example.com/x"})


@pytest.mark.parametrize(
    "draft", ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"]
)
def test_both_drafts_are_taken(draft: str) -> None:
    assert check_schema(json.loads(json.dumps({"$schema": draft, **SCHEMA}))) == ()
    assert SchemaChecker({"$schema": draft, **SCHEMA}).is_valid({"path": "a"})


def test_branch_is_told_by_its_tag_beside_a_branch_that_takes_no_object() -> None:
    schema = {"type": "object", "properties": {"strategy": STRATEGY}}
    assert said({"strategy": {"kind": "canary", "percent": 140}}, schema) == ["/strategy/percent: must be at most 100"]
    assert said({"strategy": {"kind": "blue"}}, schema) == ['/strategy/kind: must be one of `"rolling"`, `"canary"`']
    assert said({"strategy": None}, schema) == []


def test_paths_below_one_folder_are_asked_for_in_words() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string", "pattern": folder_pattern("my notes/a+b")}}}
    checker = SchemaChecker(schema)
    assert checker.is_valid({"path": "my notes/a+b/c/d.md"})
    (error,) = checker.errors({"path": "my notes/a+b/../c"})
    assert error.message == "only in `my notes/a+b/`"


_NAMES = ("type", "enum", "required", "properties", "items", "minLength", "pattern", "anyOf", "not", "$ref", "if", "x")
_DRAFTS = (
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-04/schema#",
)
_LIKE_SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 3), st.sampled_from(["string", "object", "#", "[", ""])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(_NAMES), inner, max_size=4)),
    max_leaves=8,
)


@given(body=st.dictionaries(st.sampled_from(_NAMES), _LIKE_SCHEMAS, max_size=5), draft=st.sampled_from(_DRAFTS))
def test_what_the_engine_takes_for_a_schema_the_oracle_takes_too(body: dict[str, Any], draft: str) -> None:
    schema = {"$schema": draft, **body}
    validator: Any = validator_for(schema)
    try:
        validator.check_schema(schema)
        is_schema = True
    except OracleError:
        is_schema = False
    try:
        taken = jsonschema_rs.meta.is_valid(schema)
    except ValueError:
        taken = False
    assert taken <= is_schema
    assert (not is_schema) <= bool(check_schema(schema))
