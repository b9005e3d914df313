"""New tables and values as tomlkit writes them: they are read back as they are, and the time grows as they do."""

from __future__ import annotations

import time
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.base.errors import NotSupported
from gatewright.policyfile.render import block, literal, statements

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(TEXTS, st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)
TABLES = st.dictionaries(TEXTS, VALUES, max_size=4)


@given(value=VALUES)
def test_a_value_stands_on_one_line_and_is_read_back(value: Any) -> None:
    written = literal(value)
    assert "\n" not in written
    assert tomllib.loads(f"x = {written}") == {"x": value}


@given(name=TEXTS, data=TABLES)
def test_a_table_a_row_and_statements_are_read_back(name: str, data: dict[str, Any]) -> None:
    assert tomllib.loads(statements(data)) == data
    assert tomllib.loads(block(("agents", name), data)) == {"agents": {name: data}}
    assert tomllib.loads(block(("agents", name, "tool_rules", 0), data)) == {"agents": {name: {"tool_rules": [data]}}}
    first, _, rest = block(("sources", 3, "permission_rules", 7), data).partition("\n")
    assert first == "[[sources.permission_rules]]"
    assert rest == statements(data)


@pytest.mark.parametrize("value", ["\ud800", {"\udfff": 1}, [b"x"], None, {"x": {1, 2}}])
def test_what_toml_cannot_say_is_refused(value: Any) -> None:
    with pytest.raises(NotSupported):
        literal(value)


def _block(data: dict[str, Any]) -> str:
    return block(("a",), data)


def _list(data: dict[str, Any]) -> str:
    return literal([*data])


@pytest.mark.parametrize("write", [literal, statements, _block, _list])
def test_ten_times_as_much_takes_not_a_hundred_times_as_long(write: Any) -> None:
    def spent(count: int) -> float:
        data = {f"key{number}": number for number in range(count)}
        before = time.process_time()
        write(data)
        return time.process_time() - before

    spent(10)
    assert spent(4_000) < 40 * (spent(400) + 0.01)
