"""Filtering against generated schemas: exactly the allowed calls pass, and nothing else changes."""

import copy
import re
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gatewright.schema import SchemaChecker, check_schema, clean_text, discover_operations, filter_operations
from tests.engine.schema.strategies import calls, property_enums, root_unions

Json = dict[str, Any]


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():  # pyright: ignore[reportUnknownVariableType]
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from texts(item)


def known_keys(schema: Json, operation: str) -> set[str]:
    """What the schema declares for one operation; filtering closes the rest."""
    found = discover_operations(schema)
    assert found is not None
    own = next(item for item in found.operations if item.name == operation)
    return {found.field, *own.required, *own.optional}


def check_exactness(schema: Json, allowed: set[str], call: Json) -> None:
    before = copy.deepcopy(schema)
    found = discover_operations(schema)
    assert found is not None
    shown = filter_operations(schema, allowed)
    assert schema == before
    wanted = allowed & set(found.names)
    if not wanted:
        assert shown is None
        return
    assert shown is not None
    assert check_schema(shown) == ()
    if wanted == set(found.names):
        assert shown is schema
        return
    called = set(found.of(call) or ())
    operation = called.pop() if len(called) == 1 else ""
    passes = operation in wanted and call.keys() <= known_keys(schema, operation)
    assert SchemaChecker(shown).is_valid(call) == (SchemaChecker(schema).is_valid(call) and passes)
    for text in texts(shown):
        for name in set(found.names) - wanted:
            assert not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text), (name, text)


@settings(deadline=None)
@given(property_enums(), st.data())
def test_a_filtered_flat_schema_takes_exactly_the_allowed_calls(schema: Json, data: st.DataObject) -> None:
    names = discover_operations(schema)
    assert names is not None
    allowed = data.draw(st.sets(st.sampled_from(names.names)))
    check_exactness(schema, allowed, data.draw(calls("operation")))


@settings(deadline=None)
@given(root_unions(), st.data())
def test_a_filtered_root_union_takes_exactly_the_allowed_calls(schema: Json, data: st.DataObject) -> None:
    names = discover_operations(schema)
    assert names is not None
    allowed = data.draw(st.sets(st.sampled_from(names.names)))
    check_exactness(schema, allowed, data.draw(calls("action")))


NAMED = ["list", "get", "delete", "'get'", "`delete`", "Delete"]
JOINTS = ["and", "or", ",", "/", "(", ")", ":", ";", "—", ".", "|", "both", "except", "\n", "- ", "# ", "1. ", "```"]
PLAIN = ["the", "file", "Required for", "e.g.", "operations", "are", "use"]
WORDS = st.sampled_from([*NAMED, *JOINTS, *PLAIN])


@settings(deadline=None)
@given(st.lists(WORDS, max_size=40), st.sets(st.sampled_from(["list", "get", "delete"]), min_size=1))
def test_cleaned_text_never_names_what_is_hidden(parts: list[str], hidden: set[str]) -> None:
    kept = {"list", "get", "delete", "file"} - hidden
    cleaned = clean_text(" ".join(parts), hidden, kept)
    for name in hidden:
        assert not re.search(rf"(?<!\w){name}(?!\w)", cleaned, re.IGNORECASE)


@settings(deadline=None)
@given(st.text(max_size=200), st.sets(st.text(min_size=1, max_size=5), max_size=4))
def test_any_text_and_any_names_are_taken(text: str, hidden: set[str]) -> None:
    cleaned = clean_text(text, hidden)
    for name in hidden:
        if name.strip():
            assert not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", cleaned)
