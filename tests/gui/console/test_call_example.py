import json

import pytest

from gatewright_gui.pages.trial.call_example import MAX_CHARS, example_of

ROW = {
    "type": "object",
    "properties": {"op": {"const": "append_row"}, "row": {"type": "integer"}, "note": {"type": "string"}},
    "required": ["op", "row"],
}


def test_example_of_a_batch_names_an_operation_and_what_it_needs() -> None:
    said = example_of({"type": "array", "items": {"oneOf": [ROW, {"const": 1}]}})

    assert json.loads(said.removeprefix("JSON, such as ")) == [{"op": "append_row", "row": 1}]


@pytest.mark.parametrize("shape", [{}, {"type": "object"}, {"type": "array"}, {"type": "null"}, {"items": []}])
def test_shape_that_says_too_little_has_no_example(shape: dict[str, object]) -> None:
    assert example_of(shape) == ""


def test_long_and_endless_examples_are_left_out() -> None:
    wide: dict[str, object] = {
        "type": "object",
        "properties": {},
        "required": [f"name{number}" for number in range(80)],
    }
    deep: dict[str, object] = {"type": "array"}
    deep["items"] = deep

    assert example_of(wide) == ""
    assert len(example_of(deep)) <= MAX_CHARS
