"""Each table of the policy has one description, and the reader, the values and the JSON Schema say the same."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema_rs import Draft7Validator

from gatewright.base.errors import Report
from gatewright.base.row import Row
from gatewright.policyfile.reader import PolicyFile
from gatewright.policyfile.table import Key, Table, keys_of, read_keys


def tables(model: type[Table] = PolicyFile) -> dict[str, type[Table]]:
    """The tables of the file, by the names of their models."""
    found = {model.__name__: model}
    for one in keys_of(model).values():
        if one.form.table is not None and one.form.table.__name__ not in found:
            found |= tables(one.form.table)
    return found


KEYS = [(model, key, one) for model in tables().values() for key, one in keys_of(model).items()]
WORDS = st.text("abc-. 1", min_size=1).filter(str.strip)
VALUES = st.recursive(
    WORDS | st.integers(-(2**40), 2**40) | st.floats(-1e6, 1e6) | st.booleans(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=3,
)


@pytest.mark.parametrize("model", [pytest.param(model, id=name) for name, model in tables().items()])
def test_a_value_made_without_a_key_has_what_the_table_says(model: type[Table]) -> None:
    own = {one.name: one for one in fields(model.made_of)} if model.made_of is not None else {}
    for one in keys_of(model).values():
        if one.name in own and not one.is_needed:
            field: Any = own[one.name]
            made = field.default if field.default_factory is MISSING else field.default_factory()
            assert (made if made is not MISSING else one.usual) == one.usual, one.name


def test_every_key_but_those_of_the_tables_that_are_parts_of_the_policy_fills_a_field_of_the_value() -> None:
    known = {(model, one.name) for model in tables().values() if model.made_of for one in fields(model.made_of)}
    lost = [(model.__name__, key) for model, key, one in KEYS if model.made_of and (model, one.name) not in known]
    assert lost == [("SourceTable", "follow_symlinks")]


@given(st.sampled_from(KEYS), VALUES)
def test_a_value_that_the_schema_refuses_is_refused_by_the_reader(
    case: tuple[type[Table], str, Key], value: object
) -> None:
    model, key, one = case
    if one.form.read is None or Draft7Validator(one.shape).is_valid(value):
        return
    report = Report()
    found = read_keys(Row({key: value}, (), report), model, "this table")
    assert key in {str(path[0]) for path in report.error_paths if path} or not found[one.name]
