"""Words for values that do not fit: the place that matters, found in steps that grow no faster than the value."""

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewright.base.errors import RegistrationError, SchemaError
from gatewright.schema import SchemaChecker
from gatewright.tools import tool
from tests.engine.schema.test_check import said
from tests.support.patience import in_time

INNER: dict[str, Any] = {"$ref": "#/$defs/E"}
KINDS = ("and", "or", "not")
CONDITIONS: dict[str, Any] = {
    "type": "object",
    "properties": {"where": INNER},
    "$defs": {
        "E": {
            "anyOf": [
                *[
                    {
                        "type": "object",
                        "properties": {"args": {"type": "array", "items": INNER}, "type": {"const": kind}},
                        "required": ["type", "args"],
                    }
                    for kind in KINDS
                ],
                {
                    "type": "object",
                    "properties": {"type": {"const": "eq"}, "field": {"type": "string"}},
                    "required": ["type", "field"],
                },
            ]
        }
    },
}
UNTAGGED: dict[str, Any] = {
    "type": "object",
    "properties": {"where": INNER},
    "$defs": {
        "E": {
            "anyOf": [
                {"type": "object", "properties": {"a": INNER, name: {"type": "string"}}, "required": [name]}
                for name in ("b", "c", "d")
            ]
        }
    },
}
BOTH: dict[str, Any] = {
    "type": "object",
    "properties": {"where": INNER},
    "$defs": {"E": {"allOf": [{"properties": {"a": INNER}}, {"properties": {"a": INNER}}, {"type": "object"}]}},
}


def nested(depth: int, innermost: object, held: Callable[[object], object]) -> dict[str, Any]:
    for _ in range(depth):
        innermost = held(innermost)
    return {"where": innermost}


def steps_of(work: Callable[[], object]) -> int:
    """How many calls ``work`` makes, those of the interpreter into libraries counted too."""
    count = 0

    def seen(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize(
    ("innermost", "words"),
    [
        ({"type": "like"}, '/type: must be one of `"and"`, `"or"`, `"not"`, `"eq"`'),
        ({}, ': the required key `type` is missing; it is one of `"and"`, `"or"`, `"not"`, `"eq"`'),
        ({"type": "eq"}, ": the required key `field` is missing"),
        ({"type": "or", "args": 3}, "/args: must be an array"),
        (3, ": must be an object"),
    ],
)
def test_what_is_wrong_in_a_nested_condition_is_named_at_its_place(innermost: object, words: str) -> None:
    value = nested(12, innermost, conjunction)
    assert said(value, CONDITIONS) == ["/where" + "/args/0" * 12 + words]


def conjunction(inner: object) -> object:
    return {"type": "and", "args": [inner]}


def kindless(inner: object) -> object:
    return {"args": [inner]}


def held_by_all(inner: object) -> object:
    return {"a": inner, "b": "", "c": "", "d": ""}


def member(inner: object) -> object:
    return {"a": inner}


def pair(inner: object) -> object:
    return {"a": inner, "b": inner}


def fork(inner: object) -> object:
    return {"type": "and", "args": [inner, inner]}


def item(inner: object) -> object:
    return [inner]


def item_in_member(inner: object) -> object:
    return {"b": [inner]}


@pytest.mark.parametrize(
    ("schema", "held", "innermost"),
    [
        (CONDITIONS, conjunction, {"type": "like"}),
        (CONDITIONS, conjunction, {}),
        (CONDITIONS, kindless, {}),
        (UNTAGGED, held_by_all, {"a": 3}),
        (UNTAGGED, member, 3),
        (BOTH, member, 3),
    ],
    ids=["tag unknown", "tag missing", "tags missing", "no tag", "nothing fits", "all of"],
)
def test_the_work_for_a_misfit_grows_as_the_value_does(
    schema: dict[str, Any], held: Callable[[object], object], innermost: object
) -> None:
    checker = SchemaChecker(schema)
    values = [nested(depth, innermost, held) for depth in (3, 8, 16, 30)]
    assert all(checker.errors(value) for value in values)
    _, one, two, four = (steps_of(partial(checker.errors, value)) for value in values)
    assert two < 3 * one
    assert four < 3 * two


def test_many_misfits_in_a_tree_are_told_up_to_the_limit() -> None:
    value = nested(9, {"type": "like"}, fork)
    checker = SchemaChecker(CONDITIONS)
    assert len(checker.errors(value)) == 20
    assert steps_of(lambda: checker.errors(value)) < 20_000


def test_unions_inside_unions_that_share_nothing_are_bounded_too() -> None:
    union: dict[str, Any] = {"type": "string"}
    for _ in range(12):
        union = {"anyOf": [{"allOf": [union]}, {"allOf": [union]}]}
    checker = SchemaChecker({"type": "object", "properties": {"rows": {"items": union}}})
    value = {"rows": [1] * 400}
    assert checker.errors(value)
    assert steps_of(lambda: checker.errors(value)) < 100_000


NAMES = ("a", "b")
REFERENCES = st.sampled_from(({"$ref": "#/$defs/E"}, {"$ref": "#/$defs/F"}))


def recursive_parts(held: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    members = st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, held))
    return st.one_of(
        st.fixed_dictionaries({"properties": members}, optional={"required": st.just(["a"])}),
        st.fixed_dictionaries({"items": held}, optional={"maxItems": st.just(1)}),
        st.fixed_dictionaries({"additionalProperties": held}),
        st.fixed_dictionaries({"type": st.sampled_from(["object", "array", "string", "null"])}),
        st.fixed_dictionaries({"not": held}),
        st.fixed_dictionaries({"if": held, "then": held, "else": held}),
        *[st.fixed_dictionaries({key: st.lists(held, min_size=1, max_size=3)}) for key in ("anyOf", "oneOf", "allOf")],
    )


BODIES = st.recursive(REFERENCES, recursive_parts, max_leaves=8).filter(lambda body: "$ref" not in body)
RECURSIVE = st.fixed_dictionaries(
    {
        "type": st.just("object"),
        "properties": st.just({"where": {"$ref": "#/$defs/E"}}),
        "$defs": st.fixed_dictionaries({"E": BODIES, "F": BODIES}),
    }
)


@given(
    RECURSIVE,
    st.lists(st.sampled_from([member, pair, item, item_in_member]), min_size=1, max_size=8),
    st.sampled_from([3, "x", None, {}]),
)
@settings(max_examples=300)
def test_no_recursive_schema_makes_a_misfit_costly(
    schema: dict[str, Any], holders: list[Callable[[object], object]], innermost: object
) -> None:
    checker = SchemaChecker(schema)
    value = innermost
    for held in holders:
        value = held(value)
    deep = {"where": value}
    began = time.process_time()
    errors = checker.errors(deep)
    took_s = time.process_time() - began
    assert checker.is_valid(deep) == (errors == ())
    assert steps_of(lambda: checker.errors(deep)) < 200_000
    assert in_time(took_s, 1)


def doubled(times: int) -> dict[str, Any]:
    defs: dict[str, Any] = {
        f"f{number}": {"anyOf": [{"$ref": f"#/$defs/f{number + 1}"}, {"$ref": f"#/$defs/f{number + 1}"}]}
        for number in range(times)
    }
    properties = {"a": {"$ref": "#/$defs/f0"}}
    return {"type": "object", "properties": properties, "$defs": {**defs, f"f{times}": {"type": "string"}}}


def test_references_that_double_are_refused_before_anything_is_checked() -> None:
    assert said({"a": 3}, doubled(10)) == ["/a: must be a string"]
    for times in (16, 60, 2_000):
        with pytest.raises(SchemaError, match="expand to more than 50,000 schemas"):
            SchemaChecker(doubled(times))


def test_a_tool_whose_output_schema_doubles_is_refused_where_it_is_defined() -> None:
    with pytest.raises(RegistrationError, match="`output_schema` cannot be used: references expand"):

        @tool(output_schema=doubled(60))
        async def peek() -> dict[str, str]:
            """Look."""
            return {}
