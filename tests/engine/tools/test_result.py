"""What a tool may return, and the bytes that stand for it."""

from collections.abc import Iterator, Mapping
from itertools import count, repeat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.tools import Normalization, ResultType, Tool, operation, tool
from gatewright.tools.result import MAX_RESULT_BYTES, MAX_RESULT_VALUES, check_result, kind_problem
from tests.engine.tools.declared import CONTEXT

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=10,
)


@given(JSON)
def test_json_comes_back_as_it_is(value: Any) -> None:
    assert check_result(value, Normalization.JSON) == value


class Found(BaseModel):
    hits: tuple[int, ...] = (1, 2)


def test_models_and_tuples_become_objects_and_arrays() -> None:
    assert check_result({"found": Found(), "pair": (1, "a")}, Normalization.JSON) == {
        "found": {"hits": [1, 2]},
        "pair": [1, "a"],
    }


def deep() -> object:
    value: list[object] = []
    for _ in range(1000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [object(), {1: "a"}, {"a": float("nan")}, [float("inf")], "\ud800", {"\udfff": 1}, {1, 2}, 1j, b"bytes", deep()],
)
def test_anything_else_is_a_failure(value: object) -> None:
    with pytest.raises(ToolFailure, match=r"the tool ran, but returned .*; do not make this call again") as failed:
        check_result(value, Normalization.JSON)

    assert failed.value.code == "bad-result"


class Ring(BaseModel):
    next: "Ring | None" = None
    held: Any = None


def test_model_without_json_form_is_a_failure() -> None:
    ring = Ring()
    ring.next = ring

    for value in (ring, Ring(held=object())):
        with pytest.raises(ToolFailure, match="a `Ring` that has no JSON form"):
            check_result(value, Normalization.JSON)


def test_value_that_holds_itself_is_a_failure() -> None:
    ring: list[object] = []
    ring.append(ring)

    with pytest.raises(ToolFailure, match="nested deeper"):
        check_result(ring, Normalization.JSON)


def test_binary_tool_returns_bytes_and_nothing_else() -> None:
    assert check_result(bytearray(b"\x00\xff"), Normalization.BINARY) == b"\x00\xff"
    with pytest.raises(ToolFailure, match="`str` where bytes were declared"):
        check_result("text", Normalization.BINARY)


async def test_result_that_is_no_json_fails_the_call() -> None:
    @tool(result_type=ResultType.OBJECT)
    async def leak() -> Any:
        """Return what it should not."""
        return {"connection": object()}

    with pytest.raises(ToolFailure, match="`object`, which is no JSON value"):
        await leak.execute("", {}, CONTEXT)


async def test_normal_bytes_do_not_depend_on_the_order_of_keys() -> None:
    @tool
    async def pair(flip: bool) -> dict[str, int]:
        """Give a pair."""
        return {"b": 1, "a": 2} if flip else {"a": 2, "b": 1}

    results = [await pair.execute("", {"flip": flip}, CONTEXT) for flip in (True, False)]

    assert {pair.normalize(result) for result in results} == {b'{"a":2,"b":1}'}


def test_custom_normalisation_is_the_tools_own() -> None:
    class Loud(Tool):
        name = "loud"
        description = "Says things loudly."
        result_type = ResultType.STRING
        normalization = Normalization.CUSTOM

        @operation
        async def say(self, text: str) -> str:
            """Say it."""
            return text

        def normalize(self, result: JsonValue | bytes) -> bytes:
            return str(result).upper().encode()

    assert Loud().normalize("hey") == b"HEY"


@pytest.mark.parametrize(
    "value", ["x" * (MAX_RESULT_BYTES + 1), b"x" * (MAX_RESULT_BYTES + 1), [0] * (MAX_RESULT_VALUES + 1)]
)
def test_result_that_is_too_large_is_a_failure(value: Any) -> None:
    with pytest.raises(ToolFailure, match="ask for less") as failed:
        check_result(value, None)

    assert failed.value.code == "result-too-large"


class EndlessList(list[int]):
    def __iter__(self) -> Iterator[int]:
        return repeat(1)


class EndlessObject(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        return 1

    def __iter__(self) -> Iterator[str]:
        return map(str, count())

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize("value", [EndlessList(), EndlessObject()], ids=["list", "object"])
def test_result_that_never_ends_is_a_failure(value: Any) -> None:
    with pytest.raises(ToolFailure) as failure:
        check_result(value, Normalization.JSON)
    assert failure.value.code == "result-too-large"


def test_integer_of_thousands_of_digits_is_a_failure() -> None:
    with pytest.raises(ToolFailure, match="bits"):
        check_result({"n": 1 << 100_000}, Normalization.JSON)


@pytest.mark.parametrize(
    ("result", "kind"),
    [({}, ResultType.OBJECT), ([], ResultType.ARRAY), ("", ResultType.STRING), (b"", ResultType.BINARY)],
)
def test_kind_of_a_result_is_told_from_every_other(result: Any, kind: ResultType) -> None:
    assert kind_problem(result, kind) is None
    others = [other for other in ResultType if other not in (kind, ResultType.STREAM, ResultType.ANY)]
    assert all(f"a result of type {kind}" in str(kind_problem(result, other)) for other in others)
