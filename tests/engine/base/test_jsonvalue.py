"""Strict reading of what a model sends."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.base.errors import JsonRefused
from gatewright.base.jsonvalue import JsonValue, canonical_json, check_object, digest, parse_object
from tests.support.patience import in_time

finite = st.floats(allow_nan=False, allow_infinity=False)
json_values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | finite | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"a": 1, "a": 2}', "duplicate-key"),
        ('{"a": NaN}', "not-finite"),
        ('{"a": 1e999}', "not-finite"),
        ('{"a": -Infinity}', "not-finite"),
        ('{"a": 9223372036854775808}', "integer-range"),
        ('{"a": ' + "9" * 5000 + "}", "integer-range"),
        ('{"a": "\\ud800"}', "lone-surrogate"),
        ('{"\\udfff": 1}', "lone-surrogate"),
        ('{"a": 1} {"b": 2}', "not-json"),
        ("[1]", "not-an-object"),
        ("null", "not-an-object"),
        ('{"a": ' + "[" * 100 + "]" * 100 + "}", "too-deep"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "too-deep"),
        ('{"a": "' + "x" * 10_000_000 + '"}', "too-large"),
        ('{"a": [' + "1," * 300_000 + "1]}", "too-many-values"),
        ('{"a": [' + "[]," * 1_000_000 + "1]}", "too-many-values"),
        ("{'a': 1}", "not-json"),
    ],
    ids=lambda value: value[:24],  # not the megabytes, which pytest puts into the environment
)
def test_hostile_text_is_refused_with_its_code_and_quickly(text: str, code: str) -> None:
    begun = time.process_time()
    with pytest.raises(JsonRefused) as caught:
        parse_object(text)
    assert caught.value.code == code
    assert in_time(time.process_time() - begun, 2)


def test_commas_inside_a_long_text_are_no_values() -> None:
    assert parse_object(json.dumps({"content": '1,2,3\n",' * 100_000}))


def test_bytes_that_are_not_utf8_are_refused() -> None:
    with pytest.raises(JsonRefused) as caught:
        parse_object(b'{"a": "\xff"}')
    assert caught.value.code == "not-utf8"


@pytest.mark.parametrize("text", ["", "   \n", b""])
def test_blank_text_is_an_empty_object(text: str | bytes) -> None:
    assert parse_object(text) == {}


@pytest.mark.parametrize("value", [{"a": {1, 2}}, {1: 2}, {"a": object()}, {"a": (1, 2)}])
def test_python_values_that_are_no_json_are_refused(value: object) -> None:
    with pytest.raises(JsonRefused):
        check_object(value)


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: dict[str, object] = {}
    loop["again"] = loop
    with pytest.raises(JsonRefused):
        check_object(loop)


@given(st.dictionaries(st.text(), json_values, max_size=5))
def test_ordinary_objects_come_through_unchanged(value: dict[str, JsonValue]) -> None:
    assert parse_object(json.dumps(value)) == value


@given(st.dictionaries(st.text(), json_values, max_size=5))
def test_equal_objects_have_equal_digests_whatever_their_order(value: dict[str, JsonValue]) -> None:
    turned = dict(reversed(value.items()))
    assert canonical_json(turned) == canonical_json(value)
    assert digest(turned) == digest(value)


def test_corpus_documents_are_refused_or_read_as_the_suite_expects(corpora: Path) -> None:
    rows: list[dict[str, str]] = json.loads((corpora / "json_parsing_test_suite.json").read_text(encoding="utf-8"))
    verdicts = {row["file"]: (row["expect"], _outcome(base64.b64decode(row["b64"]))) for row in rows}
    assert len(verdicts) > 80
    read_though_broken = [name for name, (expect, code) in verdicts.items() if expect == "reject" and code is None]
    assert read_though_broken == []
    refused = {name: code for name, (expect, code) in verdicts.items() if expect == "accept" and code is not None}
    assert set(refused.values()) <= {"not-an-object", "duplicate-key", "lone-surrogate"}


def _outcome(document: bytes) -> str | None:
    try:
        parse_object(document)
    except JsonRefused as refusal:
        return refusal.code
    return None
