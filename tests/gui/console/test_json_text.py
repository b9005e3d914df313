"""Where the parts of a text stand, what is wrong with it, what could be typed in it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright_gui.pages.trial.argument_check import ArgumentChecker, text_faults
from gatewright_gui.pages.trial.json_completion import completion_at
from gatewright_gui.pages.trial.json_places import JsonPlaces
from gatewright_gui.pages.trial.pasted_call import call_from_text
from gatewright_gui.session.calls import OperationShape, ShownTool

SCHEMA = {
    "type": "object",
    "properties": {
        "op": {"enum": ["read", "write"]},
        "path": {"type": "string"},
        "rows": {"type": "array", "items": {"type": "object", "properties": {"kind": {"enum": ["a", "b"]}}}},
        "deep": {"type": "boolean"},
    },
    "required": ["op"],
    "additionalProperties": False,
}
TOOL = ShownTool(
    "t",
    "",
    SCHEMA,
    "op",
    (
        OperationShape("read", "", frozenset({"path"}), frozenset({"path"})),
        OperationShape("write", "", frozenset({"path", "rows", "deep"}), frozenset({"path"})),
    ),
)


def offered(marked: str) -> list[str]:
    at = marked.index("|")
    return [one.label for one in completion_at(TOOL, marked.replace("|", ""), at).offered]


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ('{"op": "|"}', ["read", "write"]),
        ('{"op": "wr|"}', ["write"]),
        ('{"op": |}', ["read", "write"]),
        ('{"op": "read", |}', ["path"]),
        ('{"op": "write", |}', ["path", "rows", "deep"]),
        ('{"op": "write", "d|": true}', ["deep"]),
        ('{"op": "write", "rows": [{"kind": "a"}, {"|', ["kind"]),
        ('{"op": "write", "rows": [{"kind": |', ["a", "b"]),
        ('{"op": "write", "deep": |', ["true", "false"]),
        ('{"op" |', []),
        ('{"odd": {"|"}}', []),
    ],
)
def test_what_can_stand_at_the_cursor_is_offered(text: str, labels: list[str]) -> None:
    assert offered(text) == labels


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"op": "read",\n "path": 7}', "line 2:10, `path`: "),
        ('{"op": "write",\n "rows": [{"kind": "c"}]}', "line 2:20, `rows[0].kind`: "),
        ('{"op": "read",\n "op": "write"}', "an object has the same key twice: `op` at line 2 column 2"),
        ('{"op":\n "read" "path"}', "Expecting ',' delimiter at line 2 column 9"),
        ('{"op": "read"', "Expecting ',' delimiter at line 1 column 14"),
        ("[1]", "arguments must be one JSON object"),
    ],
)
def test_fault_is_told_with_its_place(text: str, said: str) -> None:
    faults = text_faults(text, ArgumentChecker(SCHEMA))
    assert str(faults[0]).startswith(said)


def test_valid_arguments_have_no_fault() -> None:
    assert text_faults('{"op": "read", "path": "x"}', ArgumentChecker(SCHEMA)) == ()
    assert text_faults('{"anything": 1}', None) == ()
    assert text_faults('{"anything": 1}', ArgumentChecker({"type": 7})) == ()


VALUES: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=4), st.sampled_from([None, 2]))
def test_every_value_is_found_where_it_stands(values: dict[str, object], indent: int | None) -> None:
    text = json.dumps(values, indent=indent, ensure_ascii=False)
    for path, place in JsonPlaces(text).places.items():
        held: Any = values
        for step in path:
            held = held[step]
        assert json.loads(text[place.start : place.end]) == held


@given(st.text(st.sampled_from('{}[]:,"\\ \nab1'), max_size=60), st.integers(0, 60))
def test_no_text_upsets_what_looks_at_it(text: str, at: int) -> None:
    completion = completion_at(TOOL, text, min(at, len(text)))
    assert 0 <= completion.start <= completion.end <= len(text)
    text_faults(text, ArgumentChecker(SCHEMA))
    call_from_text(text)


CALLS: list[tuple[dict[str, Any], str]] = [
    ({"choices": [{"message": {"tool_calls": [{"function": {"name": "t", "arguments": "{}"}}]}}]}, "openai"),
    ({"output": [{"type": "function_call", "name": "t", "arguments": "{}"}]}, "openai-responses"),
    ({"role": "assistant", "content": [{"type": "tool_use", "name": "t", "input": {}}]}, "anthropic"),
    ({"candidates": [{"content": {"parts": [{"functionCall": {"name": "t", "args": {}}}]}}]}, "gemini"),
    ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t", "arguments": {}}}, "mcp"),
]


@pytest.mark.parametrize(("call", "form"), CALLS)
def test_call_is_found_in_what_surrounds_it(call: dict[str, Any], form: str) -> None:
    found = call_from_text(json.dumps(call))
    assert found is not None
    assert (found.name, found.format, found.more) == ("t", form, 0)


def test_arguments_that_look_like_a_call_are_left_alone_where_the_tool_has_such_properties() -> None:
    text = '{"name": "t", "arguments": {}}'
    assert call_from_text(text, frozenset({"name", "arguments"})) is None
    assert call_from_text(text) is not None
    assert call_from_text('{"name": 7, "arguments": {}}') is None
    assert call_from_text('{"op": "read"}') is None
