"""The engine that checks arguments against the official suite, and against the reference implementation in Python.

Every difference is listed here as data. In each the suite sides with the engine, so nothing is let through that the
standard refuses.
"""

import json
from pathlib import Path
from typing import Any, cast

import jsonschema
import pytest
import referencing.jsonschema
from referencing import Registry, Resource

from gatewright.schema import SchemaChecker
from gatewright.schema.walk import CHECKED_FORMATS

Json = dict[str, Any]
ADDRESSES = {
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
REFERENCE: dict[str, Any] = {"draft7": jsonschema.Draft7Validator, "draft2020-12": jsonschema.Draft202012Validator}

FORMATS_ARE_NOTES = ("draft2020-12/optional/format/", "draft7/optional/format/")
"""`format` is an annotation unless asked for; the suite's optional tests ask for it, we do not, whichever the draft."""

OTHERWISE_IN_THE_REFERENCE = {
    "draft7/optional/ecmascript-regex.json": "the reference matches with Python's own regular expressions",
    "draft2020-12/optional/ecmascript-regex.json": "the reference matches with Python's own regular expressions",
    "draft2020-12/pattern.json": "Python has no Unicode property escapes",
    "draft2020-12/optional/dependencies-compatibility.json": "the reference drops `dependencies` after draft 7",
}


@pytest.fixture(scope="module")
def suite(corpora: Path) -> Json:
    return json.loads((corpora / "json_schema_test_suite.json").read_text(encoding="utf-8"))


def cases(suite: Json) -> list[Json]:
    """The cases whose schema could be a tool's: no bare booleans."""
    return [
        {**case, "schema": {"$schema": ADDRESSES[case["draft"]], **cast("Json", case["schema"])}}
        for case in suite["cases"]
        if isinstance(case["schema"], dict)
    ]


def reference(case: Json, suite: Json) -> Any:
    kind = referencing.jsonschema.DRAFT7 if case["draft"] == "draft7" else referencing.jsonschema.DRAFT202012
    remotes = [
        (f"http://localhost:1234/{name}", Resource[Any].from_contents(value, default_specification=kind))
        for name, value in suite["remotes"].items()
    ]
    return REFERENCE[case["draft"]](case["schema"], registry=Registry[Any]().with_resources(remotes))


def says(validator: Any, value: object) -> bool | str:
    try:
        return validator.is_valid(value)
    except Exception as error:  # noqa: BLE001 - the reference raises whatever its parts raise
        return type(error).__name__


def test_the_engine_agrees_with_the_suite_but_for_formats_that_are_notes(suite: Json) -> None:
    wrong: list[str] = []
    count = 0
    for case in cases(suite):
        checker = SchemaChecker(case["schema"])
        for test in case["tests"]:
            count += 1
            if checker.is_valid(test["data"]) != test["valid"] and not case["file"].startswith(FORMATS_ARE_NOTES):
                wrong.append(f"{case['file']}: {case['description']}: {test['description']}")
    assert wrong == []
    assert count > 1_000


def test_a_format_that_is_a_note_refuses_nothing_in_either(suite: Json) -> None:
    for case in cases(suite):
        if case["file"].startswith(FORMATS_ARE_NOTES) and "format" in case["schema"]:
            checker = SchemaChecker(case["schema"])
            assert all(checker.is_valid(test["data"]) for test in case["tests"]), case["description"]
            assert all(reference(case, suite).is_valid(test["data"]) for test in case["tests"]), case["description"]


def test_formats_that_are_asked_for_are_what_the_suite_says_and_the_others_stay_notes(suite: Json) -> None:
    rows = [case for case in cases(suite) if case["file"].startswith(FORMATS_ARE_NOTES)]
    found = [
        (
            case["schema"].get("format") in CHECKED_FORMATS,
            test["valid"],
            SchemaChecker(case["schema"], check_formats=True),
            test,
        )
        for case in rows
        for test in case["tests"]
    ]

    assert all(checker.is_valid(test["data"]) == (valid or not known) for known, valid, checker, test in found)
    assert sum(known and not valid for known, valid, *_ in found) > 50


@pytest.mark.parametrize("address", ADDRESSES.values())
@pytest.mark.parametrize(
    "note",
    [
        {"format": "email"},
        {"format": "date-time"},
        {"format": "regex"},
        {"contentEncoding": "base64"},
        {"contentMediaType": "application/json"},
    ],
)
def test_what_a_text_should_hold_is_a_note_in_every_draft(address: str, note: Json) -> None:
    text = {"type": "string", **note}
    schema = {"$schema": address, "type": "object", "properties": {"texts": {"type": "array", "items": text}}}

    checker = SchemaChecker(schema)

    assert checker.is_valid({"texts": ["(!!"]})
    assert not checker.is_valid({"texts": [1]})
    assert text == {"type": "string", **note}


def test_every_difference_to_the_reference_is_listed_and_the_suite_sides_with_the_engine(suite: Json) -> None:
    seen: set[str] = set()
    for case in cases(suite):
        checker, other = SchemaChecker(case["schema"]), reference(case, suite)
        for test in case["tests"]:
            ours = checker.is_valid(test["data"])
            if ours == says(other, test["data"]):
                continue
            listed = [start for start in OTHERWISE_IN_THE_REFERENCE if case["file"].startswith(start)]
            assert listed, f"{case['file']}: {case['description']}: {test['description']}"
            assert ours == test["valid"], f"{case['file']}: {case['description']}: {test['description']}"
            seen.update(listed)
    assert seen == set(OTHERWISE_IN_THE_REFERENCE)
