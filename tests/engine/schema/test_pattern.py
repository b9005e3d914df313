"""Patterns that the linear engine cannot run: said otherwise where that means the same, else left out with why."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gatewright.schema.check import SchemaChecker, check_schema
from gatewright.schema.walk import linear_part, pattern_fault

EMAIL = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"
HOSTNAME = r"^(?=.{1,253}\.?$)[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$"
ATOMS = {r"\S": "é", r"[\s\S]": "\n", r"[\p{L}\p{N}]": "ß", r"[^a]": "b", ".": "x", r"(?:[\p{L}_])": "_", r"\w": "n"}
"""Atoms that grow large when they are repeated, with a letter that each takes."""


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from(sorted(ATOMS)),
    st.integers(0, 40),
    st.integers(1500, 6000),
    st.sampled_from(["", "k", "k-", "kk{3}"]),
)
def test_a_long_repetition_takes_exactly_the_texts_that_it_names(atom: str, least: int, most: int, before: str) -> None:
    pattern = f"^{before}{atom}{{{least},{most}}}$"
    start = before.replace("k{3}", "kkk")
    checker = SchemaChecker({"pattern": pattern})

    assert pattern_fault(pattern) is None
    for count in {0, least - 1, least, least + 1, most - 1, most, most + 1} - {-1}:
        assert checker.is_valid(start + ATOMS[atom] * count) == (least <= count <= most), (pattern, count)
    assert checker.is_valid(7)
    if atom == "[^a]":
        assert not checker.is_valid(start + "a" * max(least, 1))


@pytest.mark.parametrize(
    "pattern",
    [r"^.{1,1000}$", r"^\S{1,500}$", r"^[\s\S]{1,1024}$", r"^[a-zA-Z0-9\s]{1,4096}$", r"^[\p{L}\p{N}]{1,64}$"],
)
def test_patterns_of_real_tools_with_long_repetitions_run(pattern: str) -> None:
    assert check_schema({"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}}) == ()
    refused = SchemaChecker({"not": {"pattern": pattern}})
    assert not refused.is_valid("a")
    assert refused.is_valid("")


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (EMAIL, "look-around"),
        (HOSTNAME, "look-around"),
        (r"(?<!a)b", "look-around"),
        (r"(a)\1", "back-reference"),
        (r"(?P<q>a)\k<q>", "back-reference"),
        (r"^(\p{L}{1,900}\n){1,90}$", "repetitions"),
        (r"[(?=x)", "no regular expression"),
        (r"(", "no regular expression"),
        (r"^[(?=]\p{L}{1,900}-\p{L}{1,900}$", "repetitions"),
    ],
)
def test_the_reason_is_the_true_one(pattern: str, why: str) -> None:
    fault = pattern_fault(pattern)
    assert fault is not None
    assert why in fault[1]


NEVER = [r"(?=a)a", r"^(?!b)", r"(?<=a)b"]
TEXTS = ["a", "b", "ab", ""]
VALUES: list[Any] = [*TEXTS, 1, None, {}, {"a": "a"}, {"a": "b"}, {"b": 1}, [], ["a"], ["b", "a"]]
ONE_NAME: dict[str, Any] = {"patternProperties": {NEVER[0]: {"type": "string"}}, "additionalProperties": False}
RUNNING: list[dict[str, Any]] = [{"pattern": "^a"}, {"type": "string"}, {"const": "a"}]
LEAVES: list[dict[str, Any]] = [*({"pattern": one} for one in NEVER), *RUNNING, ONE_NAME]


def _around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    two = st.tuples(inner, inner).map(list)
    return st.one_of(
        inner.map(lambda one: {"not": one}),
        inner.map(lambda one: {"properties": {"a": one}, "unevaluatedProperties": False}),
        inner.map(lambda one: {"contains": one, "maxContains": 1}),
        inner.map(lambda one: {"items": one}),
        inner.map(lambda one: {"propertyNames": one}),
        two.map(lambda all_: {"oneOf": all_}),
        two.map(lambda all_: {"anyOf": all_, "unevaluatedProperties": False}),
        two.map(lambda all_: {"oneOf": all_, "anyOf": [True]}),
        two.map(lambda all_: {"allOf": all_}),
        st.tuples(inner, inner, inner).map(lambda all_: dict(zip(("if", "then", "else"), all_, strict=True))),
    )


@settings(max_examples=400, deadline=None)
@given(st.recursive(st.sampled_from(LEAVES), _around, max_leaves=5))
def test_what_is_left_runs_and_takes_whatever_the_whole_takes(schema: dict[str, Any]) -> None:
    whole: Any = Draft202012Validator(schema)
    left = SchemaChecker(linear_part(schema))
    for value in VALUES:
        assert left.is_valid(value) or not whole.is_valid(value), (schema, linear_part(schema), value)


@given(st.recursive(st.sampled_from(RUNNING), _around, max_leaves=5))
def test_a_schema_whose_patterns_run_stays_as_it_is(schema: dict[str, Any]) -> None:
    assert linear_part(schema) is schema


def test_only_what_holds_such_a_pattern_is_left_out() -> None:
    variants = [{"properties": {"op": {"const": name}}, "required": ["op"]} for name in ("get", "put")]
    mail = {"to": {"type": "string", "pattern": EMAIL, "maxLength": 90}}
    schema = {"type": "object", "properties": mail, "oneOf": variants, "not": {"required": ["bcc"]}}

    assert linear_part(schema) == {**schema, "properties": {"to": {"type": "string", "maxLength": 90}}}
    assert re.search(EMAIL, "ann@example.org")
