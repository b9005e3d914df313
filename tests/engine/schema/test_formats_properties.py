"""Generated schemas of every shape: the provider's schema, with the way back, accepts what the shown one accepts."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gatewright.schema import FORMATS, Schema, ToolListing, check_schema
from tests.engine.schema.provider_calls import calls_for, disagreements
from tests.engine.schema.provider_rules import refusals
from tests.engine.schema.strategies import property_enums, root_unions

KEYS = st.sampled_from(["op", "path", "count", "label", "input", "$sort", "{{user}}", "a b"])
SAID = st.fixed_dictionaries({}, optional={"description": st.sampled_from(["A thing.", ""]), "title": st.just("T")})


@st.composite
def scalars(draw: st.DrawFn) -> Schema:
    said = draw(SAID)
    match draw(st.sampled_from(["string", "integer", "number", "boolean", "enum", "const", "mixed", "list", "format"])):
        case "string":
            limits = {"minLength": st.integers(0, 3), "maxLength": st.integers(1, 9), "pattern": st.just("^[a-z ]*$")}
            own: Schema = {"type": "string", **draw(st.fixed_dictionaries({}, optional=limits))}
        case "integer" | "number" as kind:
            bounds = {
                "minimum": st.integers(-2, 2),
                "exclusiveMinimum": st.integers(-2, 2),
                "maximum": st.integers(2, 6),
                "exclusiveMaximum": st.integers(3, 6),
                "multipleOf": st.just(2),
            }
            own = {"type": kind, **draw(st.fixed_dictionaries({}, optional=bounds))}
        case "enum":
            own = {
                "enum": draw(
                    st.lists(
                        st.sampled_from(["read", "write", "", "null", 1, 2.5, True, None]), min_size=1, unique_by=repr
                    )
                )
            }
        case "const":
            own = {"const": draw(st.sampled_from(["read", 1, None, False, {"a": 1}, [1]]))}
        case "mixed":
            own = {
                "type": draw(
                    st.lists(
                        st.sampled_from(["string", "null", "integer", "array", "object"]),
                        min_size=1,
                        max_size=3,
                        unique=True,
                    )
                )
            }
        case "list":
            values = draw(st.lists(st.sampled_from(["read", "write", "move"]), min_size=1, unique=True))
            own = {
                draw(st.sampled_from(["oneOf", "anyOf"])): [
                    {"const": value, "description": f"Does {value}."} for value in values
                ]
            }
            own |= {"enum": ["read", "move"]} if draw(st.booleans()) else {}
        case "format":
            own = {"type": "string", "format": draw(st.sampled_from(["date", "uri", "email", "date-time"]))}
        case _:
            own = {"type": "boolean"}
    if draw(st.integers(0, 3)) == 0:
        own["default"] = draw(st.sampled_from([None, "read", 1]))
    return {**own, **said}


def objects(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    @st.composite
    def made(draw: st.DrawFn) -> Schema:
        properties: Schema = draw(st.dictionaries(KEYS, inner, max_size=4))
        required = [name for name in properties if draw(st.booleans())]
        own: Schema = {"type": "object", "properties": properties, "required": required}
        extra: Any = draw(st.sampled_from([None, False, False, False, True, {"type": "string"}]))
        own |= {} if extra is None else {"additionalProperties": extra}
        match draw(st.integers(0, 12)):
            case 0:
                own["minProperties"] = 1
            case 1:
                own["propertyNames"] = {"type": "string", "maxLength": 12}
            case 2 if len(properties) > 1:
                own["dependentRequired"] = {next(iter(properties)): [list(properties)[1]]}
            case 3 if properties:
                own["allOf"] = [{"required": [next(iter(properties))]}]
            case 4 if properties:
                own["anyOf"] = [{"required": [name]} for name in properties]
            case 5 if properties:
                name = next(iter(properties))
                own |= {"if": {"required": [name]}, "then": {"minProperties": 2}}
            case _:
                pass
        return {**own, **draw(SAID)}

    return made()


def wider(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    arrays: st.SearchStrategy[Schema] = st.fixed_dictionaries(
        {"type": st.just("array")},
        optional={
            "items": inner,
            "minItems": st.integers(0, 2),
            "uniqueItems": st.booleans(),
            "maxItems": st.integers(2, 4),
        },
    )
    anything: st.SearchStrategy[Schema] = st.builds(Schema)
    return st.one_of(objects(inner), arrays, unions(inner), anything, st.builds(conjunction, inner))


@st.composite
def unions(draw: st.DrawFn, inner: st.SearchStrategy[Schema]) -> Schema:
    return {draw(st.sampled_from(["anyOf", "oneOf"])): draw(st.lists(inner, min_size=1, max_size=3))}


def conjunction(one: Schema) -> Schema:
    return {"allOf": [one]}


SCHEMAS = objects(st.recursive(scalars(), wider, max_leaves=5))
ROOTS = st.one_of(SCHEMAS, SCHEMAS, property_enums(), root_unions())
DRAFTS = st.sampled_from(
    [None, "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"]
)


NEWER_THAN_ITS_DRAFT: Schema = {
    "type": "object",
    "properties": {"op": {"type": "boolean"}, "path": {"type": "array", "items": {}}},
    "dependentRequired": {"op": ["path"]},
}


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=80, deadline=None)
@given(schema=ROOTS, draft=DRAFTS, seed=st.integers(0, 10**6))
@example(schema=NEWER_THAN_ITS_DRAFT, draft="http://json-schema.org/draft-07/schema#", seed=0)
def test_calls_mean_the_same_in_the_providers_schema_and_back(
    name: str, schema: Schema, draft: str | None, seed: int
) -> None:
    shown = schema if draft is None else {"$schema": draft, **schema}
    if check_schema(shown):
        return
    rng = random.Random(seed)
    assert disagreements(FORMATS[name], ToolListing("tool", "", shown), calls_for(shown, rng, 6), rng) == []


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=80, deadline=None)
@given(schema=ROOTS, draft=DRAFTS)
def test_the_provider_takes_it_or_a_lint_says_it_is_refused(name: str, schema: Schema, draft: str | None) -> None:
    listing = ToolListing("tool", "", schema if draft is None else {"$schema": draft, **schema})
    if check_schema(listing.schema):
        return
    if not any(lint.level == "refused" for lint in FORMATS[name].lints(listing)):
        assert refusals(name, FORMATS[name].render(listing)) == []


KINDS = ("string", "integer", "number", "boolean", "array", "object", "null")
WORDS: list[Schema] = [
    *({"minLength": 1}, {"maximum": 3}, {"multipleOf": 2}, {"format": "date"}, {"uniqueItems": True}, {"minItems": 1}),
    *({"items": {"type": "string"}}, {"items": {}}, {"items": True}, {"items": {"type": ["array", "null"]}}),
    *({"prefixItems": [{"type": "string"}]}, {"contains": {"type": ["array", "string"]}}, {"maxItems": 2}),
    *({"properties": {"a": {"type": ["array", "object"]}}}, {"required": ["a"]}, {"additionalProperties": False}),
    *(
        {"additionalProperties": {"type": ["null", "array"]}},
        {"patternProperties": {"^a": {"type": ["array", "null"]}}},
    ),
    *(
        {"enum": ["a", None, 1, [], {}]},
        {"const": "a"},
        {"default": None},
        {"enum": [None, "a"]},
        {"not": {"const": 1}},
        {"enum": ["", "a", True, 2.5]},
    ),
    *({"if": {"const": "a"}, "then": False}, {"if": True, "then": {"minLength": 2}, "else": False}, {"not": False}),
    *({"contains": False, "minContains": 0}, {"patternProperties": {"^a": False}}, {"propertyNames": True}),
    *({"anyOf": [{"type": ["array", "null"]}, {"type": "string"}]}, {"oneOf": [{"type": ["array", "string"]}, True]}),
    *({"if": {"type": ["array", "null"]}, "then": {"type": ["array"]}}, {"nullable": True}, {"examples": [[]]}),
]
HOMES: dict[str, Callable[[Schema], Schema]] = {
    "property": lambda own: {"properties": {"x": own}},
    "required": lambda own: {"properties": {"x": own}, "required": ["x"], "additionalProperties": False},
    "item": lambda own: {"properties": {"x": {"type": "array", "items": own}}},
    "deep": lambda own: {"properties": {"x": {"type": ["object", "array"], "properties": {"y": own}}}},
    "branch": lambda own: {"properties": {"x": {"anyOf": [own, {"type": "boolean"}]}}},
    "reference": lambda own: {"properties": {"x": {"$ref": "#/$defs/k"}}, "$defs": {"k": own}},
    "member": lambda own: {"properties": {}, "additionalProperties": own},
}


NULL_BUT_NOT: Schema = {"if": {"type": ["array", "null"]}, "then": {"type": ["array"]}, "type": ["null"]}
SOME_BUT_NOT: Schema = {**NULL_BUT_NOT, "enum": ["a", None], "type": ["string", "null"]}
OTHERS_LISTED: Schema = {"type": ["string"], "enum": ["a", None, 1, [], {}]}


@st.composite
def type_lists(draw: st.DrawFn) -> Schema:
    """Some types as one list with keywords for some of them, somewhere in the arguments of a tool."""
    own: Schema = {"type": draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=7, unique=True))}
    for words in draw(st.lists(st.sampled_from(WORDS), max_size=3)):
        own = {**words, **own}
    return {"type": "object", **HOMES[draw(st.sampled_from(sorted(HOMES)))](own)}


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=250, deadline=None)
@given(schema=type_lists(), seed=st.integers(0, 10**6))
@example(schema={"type": "object", "properties": {"x": {"type": ["array", "null"]}}}, seed=0)
@example(schema={"type": "object", "properties": {"x": {"type": [*KINDS]}}}, seed=0)
@example(schema={"type": "object", "properties": {"x": {"anyOf": [NULL_BUT_NOT, {"type": "boolean"}]}}}, seed=1)
@example(schema={"type": "object", "properties": {"x": {"anyOf": [SOME_BUT_NOT, {"type": "boolean"}]}}}, seed=0)
@example(schema={"type": "object", **HOMES["required"](OTHERS_LISTED)}, seed=0)
def test_type_lists_are_spelt_so_that_each_provider_takes_them(name: str, schema: Schema, seed: int) -> None:
    listing, rng = ToolListing("tool", "", schema), random.Random(seed)
    assert check_schema(schema) == ()
    lints = FORMATS[name].lints(listing)
    assert len(set(lints)) == len(lints)

    if not any(lint.level == "refused" for lint in lints):
        assert refusals(name, FORMATS[name].render(listing)) == []
    assert disagreements(FORMATS[name], listing, calls_for(schema, rng, 4), rng) == []
