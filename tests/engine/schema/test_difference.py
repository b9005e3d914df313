"""Differences between the full schema and the one shown."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gatewright.schema import Change, schema_difference, text_difference


def test_changes_have_pointer_kind_and_both_values() -> None:
    full: dict[str, Any] = {"a": {"enum": ["x", "y", "z"]}, "b/c": 1, "d": "old"}
    shown: dict[str, Any] = {"a": {"enum": ["x", "z"]}, "d": "new", "e": False}
    assert schema_difference(full, shown) == (
        Change("/a/enum/1", "removed", "y", None),
        Change("/b~1c", "removed", 1, None),
        Change("/d", "changed", "old", "new"),
        Change("/e", "added", None, False),
    )


def test_text_difference_shows_lines_of_indented_json() -> None:
    lines = text_difference({"a": 1, "b": 2}, {"a": 1, "b": 3})
    assert '-  "b": 2' in lines
    assert '+  "b": 3' in lines


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["x", "y"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
)


@given(JSON)
def test_equal_values_have_no_difference(value: Any) -> None:
    assert schema_difference(value, value) == ()
    assert text_difference(value, value) == ()


@given(st.dictionaries(st.sampled_from(["a", "b"]), JSON), st.dictionaries(st.sampled_from(["a", "b"]), JSON))
def test_different_objects_have_a_text_difference(full: Any, shown: Any) -> None:
    assert (text_difference(full, shown) != ()) == (repr(full) != repr(shown))
