"""Tool calls rebuilt from streamed pieces, whatever a model streams."""

from __future__ import annotations

import tracemalloc
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from gatewright.base.jsonvalue import MAX_BYTES
from gatewright.gate.turn import MAX_CALLS, BrokenCall, ToolCall, ToolCallAccumulator, several_objects
from tests.engine.gate.world import World


def accumulated(*deltas: dict[str, Any]) -> tuple[ToolCall | BrokenCall, ...]:
    accumulator = ToolCallAccumulator()
    for delta in deltas:
        accumulator.add(delta.pop("index", 0), **delta)
    return accumulator.calls()


def test_pieces_of_two_calls_are_put_together_by_index() -> None:
    calls = accumulated(
        {"index": 1, "id": "b", "name": "echo", "arguments": '{"te'},
        {"index": 0, "id": "a", "name": "vault"},
        {"index": 1, "id": "", "name": None, "arguments": 'xt":"hi"}'},
    )

    assert calls == (ToolCall("vault", "{}", "a"), ToolCall("echo", '{"text":"hi"}', "b"))


def test_last_id_and_name_that_are_not_empty_count() -> None:
    deltas = {"id": "a", "name": "x"}, {"id": "b", "name": "y"}, {"id": "", "name": ""}, {"id": 7, "name": 7}

    assert accumulated(*deltas) == (ToolCall("y", "{}", "b"),)
    assert accumulated({"id": "i" * 1025, "name": "n" * 1025}) == (ToolCall("n" * 1024, "{}", "i" * 1024),)


def test_several_objects_in_one_fan_out() -> None:
    text = '{"a": "}{"} \n{"b": {"c": [1]}}{}'

    assert accumulated({"id": "x", "name": "echo", "arguments": text}) == (
        ToolCall("echo", '{"a": "}{"}', "x_0"),
        ToolCall("echo", '{"b": {"c": [1]}}', "x_1"),
        ToolCall("echo", "{}", "x_2"),
    )
    assert several_objects(' {"a":1}{}\n') == ('{"a":1}', "{}")


def test_what_is_not_only_objects_stays_one_text() -> None:
    for text in (
        '{"a":1}',
        '{"a":1}{"b":',
        '{"a":1} and {"b":2}',
        '[{"a":1},{"b":2}]',
        '{"a":1}{b}',
        '{"a":1},{"b":2}',
        "}{",
        "{}{}}{",
        "{}{}{",
        '{"a":1}{"b":2}x',
        '"a"{}{}',
    ):
        assert several_objects(text) == ()
        assert accumulated({"id": "x", "name": "echo", "arguments": text}) == (ToolCall("echo", text, "x"),)


async def test_broken_call_is_denied_in_its_place_and_recorded(world: World) -> None:
    broken = BrokenCall(1, "the call has no id", "vault")
    calls = [ToolCall("echo", {"text": "1"}, "a"), broken, ToolCall("echo", {"text": "2"}, "b")]
    outcomes = await world.gate.call_many("archivist", calls)

    assert [outcome.status for outcome in outcomes] == ["allowed", "denied", "allowed"]
    assert (outcomes[1].decision.stage, outcomes[1].code, outcomes[1].decision.reason) == (
        "parse",
        "broken-call",
        "the call has no id",
    )
    assert (outcomes[1].output or "").startswith("Tool execution failed: invalid arguments")


async def test_broken_json_is_denied_by_the_gate_with_the_reason(world: World) -> None:
    (call,) = accumulated({"id": "x", "name": "echo", "arguments": '{"text": "hi'})
    assert isinstance(call, ToolCall)
    (outcome,) = await world.gate.call_many("archivist", [call])

    assert (outcome.decision.stage, outcome.code) == ("parse", "not-json")
    assert outcome.decision.reason


def test_missing_id_or_name_is_said() -> None:
    assert accumulated({"name": "echo"}) == (BrokenCall(0, "the call has no id", "echo"),)
    assert accumulated({"id": "x"}) == (BrokenCall(0, "the call has no name", "", "x"),)
    assert accumulated({"arguments": "{}"}) == (BrokenCall(0, "the call has no id and no name"),)


def test_flood_of_pieces_is_bounded() -> None:
    accumulator = ToolCallAccumulator()
    for _ in range(40):
        accumulator.add(0, id="x", name="echo", arguments="a" * 1_000_000)
    for index in range(1, 3 * MAX_CALLS):
        accumulator.add(index, id=str(index), name="echo")
    calls = accumulator.calls()

    assert calls[0] == BrokenCall(0, f"the arguments are larger than {MAX_BYTES:,} bytes", "echo", "x")
    assert len(calls) == 129
    assert calls[-1] == BrokenCall(128, "more than 128 calls in one answer")


def test_arguments_are_as_large_as_the_gate_takes_and_four_times_that_in_all() -> None:
    accumulator = ToolCallAccumulator()
    for index in range(4):
        accumulator.add(index, id="x", name="echo", arguments="a" * (MAX_BYTES - 1))
        accumulator.add(index, arguments="a")
    for index, text in ((0, "a"), (4, "a"), (5, "")):
        accumulator.add(index, id="x", name="echo", arguments=text)
    first, *whole, fifth, last = accumulator.calls()

    reason = f"the arguments are larger than {MAX_BYTES:,} bytes"
    assert (first, fifth) == (BrokenCall(0, reason, "echo", "x"), BrokenCall(4, reason, "echo", "x"))
    assert ([type(call) for call in whole], last) == ([ToolCall] * 3, ToolCall("echo", "{}", "x"))


def test_fan_out_is_bounded() -> None:
    (call,) = accumulated({"id": "x", "name": "echo", "arguments": "{}" * (MAX_CALLS + 1)})

    assert isinstance(call, ToolCall)
    assert call.tool_call_id == "x"


def test_openai_deltas_are_read() -> None:
    accumulator = ToolCallAccumulator()
    accumulator.add_openai({"role": "assistant", "content": None})
    first = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "echo", "arguments": ""}}
    accumulator.add_openai({"tool_calls": [first]})
    accumulator.add_openai({"tool_calls": [{"index": 0, "function": {"arguments": '{"text":"x"}'}}]})

    assert accumulator.calls() == (ToolCall("echo", '{"text":"x"}', "call_1"),)


def test_openai_rows_without_an_index_are_told_apart_by_their_place() -> None:
    accumulator = ToolCallAccumulator()
    accumulator.add_openai({"tool_calls": [{"id": "a", "function": {"name": "x"}}, {"id": "b"}]})
    accumulator.add_openai({"tool_calls": [{"index": 1, "function": {"name": "y"}}]})

    assert accumulator.calls() == (ToolCall("x", "{}", "a"), ToolCall("y", "{}", "b"))


def test_anthropic_events_are_read() -> None:
    accumulator = ToolCallAccumulator()
    use: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "echo", "input": {}}
    accumulator.add_anthropic(
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    )
    accumulator.add_anthropic({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta"}})
    accumulator.add_anthropic({"type": "other", "index": 0, "content_block": use})
    accumulator.add_anthropic({"type": "other", "index": 0, "delta": {"type": "input_json_delta"}})
    whole = {**use, "id": "toolu_2", "input": {"text": "y"}}
    accumulator.add_anthropic({"type": "content_block_start", "index": 2, "content_block": whole})
    accumulator.add_anthropic({"type": "content_block_start", "index": 1, "content_block": use})
    for piece in ('{"text"', ':"x"}'):
        delta = {"type": "input_json_delta", "partial_json": piece}
        accumulator.add_anthropic({"type": "content_block_delta", "index": 1, "delta": delta})

    assert accumulator.calls() == (
        ToolCall("echo", '{"text":"x"}', "toolu_1"),
        ToolCall("echo", '{"text": "y"}', "toolu_2"),
    )


def sdk(value: Any) -> Any:
    """The same as objects with attributes, as the SDKs of the providers have them."""
    if isinstance(value, dict):
        return SimpleNamespace(**{key: sdk(one) for key, one in value.items()})  # pyright: ignore[reportUnknownVariableType]
    return [sdk(one) for one in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]


class Function(BaseModel):
    name: str | None = None
    arguments: str | None = None


class Row(BaseModel):
    index: int
    id: str | None = None
    function: Function


class Delta(BaseModel):
    content: str | None = None
    tool_calls: list[Row] | None = None


def test_openai_deltas_given_as_objects_are_read() -> None:
    accumulator = ToolCallAccumulator()
    accumulator.add_openai(Delta(content="well"))
    accumulator.add_openai(None)
    accumulator.add_openai(Delta(tool_calls=[Row(index=0, id="call_1", function=Function(name="echo"))]))
    accumulator.add_openai(sdk({"tool_calls": [{"index": 0, "function": {"arguments": '{"text":"x"}'}}]}))

    assert accumulator.calls() == (ToolCall("echo", '{"text":"x"}', "call_1"),)


def test_anthropic_events_given_as_objects_are_read() -> None:
    accumulator = ToolCallAccumulator()
    use = SimpleNamespace(type="tool_use", id="toolu_1", name="echo", input={})
    accumulator.add_anthropic(SimpleNamespace(type="content_block_start", index=0, content_block=use))
    delta = {"type": "input_json_delta", "partial_json": '{"text":"x"}'}
    accumulator.add_anthropic(sdk({"type": "content_block_delta", "index": 0, "delta": delta}))
    accumulator.add_anthropic(SimpleNamespace(type="message_stop"))

    assert accumulator.calls() == (ToolCall("echo", '{"text":"x"}', "toolu_1"),)


@pytest.mark.parametrize("shape", [dict[str, Any], sdk])
@pytest.mark.parametrize(("is_streamed", "is_done"), [(True, True), (True, False), (False, True)])
def test_events_of_a_responses_stream_are_read(shape: Any, is_streamed: bool, is_done: bool) -> None:
    item = {"type": "function_call", "call_id": "call_1", "name": "echo", "arguments": ""}
    piece = {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '{"text":"x"}'}
    done = {**item, "arguments": '{"text":"x"}'}
    accumulator = ToolCallAccumulator()
    for event in (
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}},
        {"type": "response.output_item.added", "output_index": 1, "item": item},
        {"type": "response.other", "output_index": 2, "item": item},
        *([piece] if is_streamed else []),
        *([{"type": "response.output_item.done", "output_index": 1, "item": done}] if is_done else []),
        {"type": "response.completed"},
    ):
        accumulator.add_openai_response(shape(event))

    assert accumulator.calls() == (ToolCall("echo", '{"text":"x"}', "call_1"),)


def test_function_calls_of_gemini_are_read() -> None:
    call = SimpleNamespace(id=None, name="echo", args={"text": "x"})
    parts = [SimpleNamespace(function_call=None, text="well"), SimpleNamespace(function_call=call)]
    accumulator = ToolCallAccumulator()
    accumulator.add_gemini(SimpleNamespace(candidates=[SimpleNamespace(content=SimpleNamespace(parts=parts))]))
    named: dict[str, Any] = {"functionCall": {"id": "g1", "name": "echo", "args": {}}}
    accumulator.add_gemini({"candidates": [{"content": {"parts": [named]}}]})
    accumulator.add_gemini({"candidates": None})

    assert accumulator.calls() == (ToolCall("echo", '{"text": "x"}', "call_0"), ToolCall("echo", "{}", "g1"))


@pytest.mark.parametrize("piece", ["text", 7, ["tool_calls"], SimpleNamespace(choices=[]), object()])
def test_piece_that_cannot_be_read_is_an_error_and_not_lost_in_silence(piece: object) -> None:
    accumulator = ToolCallAccumulator()
    for add in (
        accumulator.add_openai,
        accumulator.add_openai_response,
        accumulator.add_anthropic,
        accumulator.add_gemini,
    ):
        with pytest.raises(TypeError, match=f"a `{type(piece).__name__}` is not a piece of a stream"):
            add(piece)


def test_arguments_given_whole_are_taken() -> None:
    whole = {"id": "x", "name": "echo", "arguments": {"text": "hé"}}
    unreadable = "an object that is not JSON, or too large"

    assert accumulated(whole, {"arguments": {}}) == (ToolCall("echo", '{"text": "hé"}', "x"),)
    assert accumulated({**whole, "arguments": {"text": object()}}) == (ToolCall("echo", unreadable, "x"),)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.binary(),
    lambda one: (
        st.lists(one, max_size=4)
        | st.dictionaries(
            st.sampled_from(["index", "id", "type", "function", "name", "arguments", "delta", "input"]), one
        )
    ),
    max_leaves=12,
)


@given(ANYTHING, ANYTHING, ANYTHING, ANYTHING)
def test_nothing_that_is_streamed_raises(index: Any, id_: Any, name: Any, arguments: Any) -> None:
    accumulator = ToolCallAccumulator()
    accumulator.add(index, id=id_, name=name, arguments=arguments)
    accumulator.add(0, id="x", name="echo", arguments=arguments)
    accumulator.add_openai({"tool_calls": [index, {"index": id_, "function": arguments}]})
    accumulator.add_anthropic({"type": "content_block_start", "index": index, "content_block": arguments})

    assert all(isinstance(call, ToolCall | BrokenCall) for call in accumulator.calls())


def test_as_many_calls_as_may_be_are_whole_and_what_is_above_is_told_once() -> None:
    accumulator = ToolCallAccumulator()
    for index in range(MAX_CALLS):
        accumulator.add(10 * index, id=str(index), name="echo")
    assert [type(one) for one in accumulator.calls()] == [ToolCall] * MAX_CALLS
    accumulator.add(7, id="more", name="echo")
    assert accumulator.calls()[MAX_CALLS:] == (BrokenCall(MAX_CALLS, f"more than {MAX_CALLS} calls in one answer"),)


def test_objects_of_one_index_count_towards_the_bound() -> None:
    accumulator = ToolCallAccumulator()
    for index in range(MAX_CALLS - 1):
        accumulator.add(index, id=str(index), name="echo")
    accumulator.add(MAX_CALLS, id="x", name="echo", arguments="{}{}{}")
    *whole, last = accumulator.calls()
    assert len(whole) == MAX_CALLS
    assert last == BrokenCall(MAX_CALLS, f"more than {MAX_CALLS} calls in one answer")


def test_deltas_with_nothing_in_them_are_not_kept() -> None:
    streamed = ToolCallAccumulator()
    tracemalloc.start()
    try:
        for _ in range(50_000):
            streamed.add(0, arguments="")
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert held < 50_000
