"""What becomes of a result: checked, scrubbed, normalised, hashed, cut."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from gatewright.base.errors import RegistrationError, ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import Status
from gatewright.gate.scrub import LARGE, is_large
from gatewright.policy.verdict import SafetyTier
from gatewright.tools.declaration import Determinism, Normalization, ResultType, SideEffect
from gatewright.tools.registry import FunctionTool, operation, tool
from gatewright.tools.tool import Tool
from tests.engine.gate.conftest import MakeWorld
from tests.engine.gate.world import POLICY

TOKEN = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"
SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 0}},
    "required": ["n"],
    "additionalProperties": False,
}


def listing(name: str, more: str = "") -> str:
    return POLICY.replace('"vault"]', f'"vault", "{name}"]') + more


def giving(value: Any, **declared: Any) -> FunctionTool:
    async def give() -> Any:
        """Give it."""
        return value

    given: dict[str, Any] = {
        "safety_tier": SafetyTier.READ_ONLY,
        "result_type": ResultType.OBJECT,
        "normalization": Normalization.JSON,
    }
    return tool(**{**given, **declared})(give)


async def test_result_that_fits_its_schema_passes(make_world: MakeWorld) -> None:
    outcome = await make_world(listing("give"), giving({"n": 1}, output_schema=SCHEMA)).call("give", {})

    assert (outcome.status, outcome.output) == (Status.ALLOWED, '{"n":1}')


@pytest.mark.parametrize("value", [{"n": -1}, {}, {"n": 1, "hidden_sesame": 2}])
async def test_result_that_does_not_fit_fails_and_only_the_operator_reads_why(
    make_world: MakeWorld, value: JsonValue
) -> None:
    world = make_world(listing("give"), giving(value, output_schema=SCHEMA))
    outcome = await world.call("give", {})

    assert (outcome.status, outcome.code) == (Status.FAILED, "output-mismatch")
    assert "does not fit the output schema" in outcome.detail
    assert outcome.detail in [row.reason for row in outcome.decision.trace if row.stage == "output"]
    assert "sesame" not in outcome.output
    assert outcome.output.startswith("Tool execution failed:")
    assert world.row_kinds()[-1] == "ToolFailed"


@pytest.mark.parametrize("check", ["strict", "warn", "off"])
@pytest.mark.parametrize("value", [{"n": 1}, {"n": -1}, {}, {"n": 1, "more": 2}])
async def test_the_policy_says_what_becomes_of_a_result_that_misfits(
    make_world: MakeWorld, value: dict[str, JsonValue], check: str
) -> None:
    world = make_world(listing("give", f'\n[tools.give]\noutput = "{check}"\n'), giving(value, output_schema=SCHEMA))
    outcome = await world.call("give", {})

    fits, is_noted = value == {"n": 1}, value != {"n": 1} and check == "warn"
    assert (outcome.status is Status.FAILED) == (check == "strict" and not fits)
    if outcome.status is not Status.FAILED:
        assert json.loads(outcome.output) == value
        assert world.row_kinds()[-1] == "ToolCompleted"
    assert world.audit is not None
    (*_, end) = world.audit.rows()
    assert ("misfit" in end.body) == is_noted


async def test_a_kept_result_that_misfits_is_not_reused_once_the_policy_is_strict(make_world: MakeWorld) -> None:
    declared: dict[str, Any] = {"output_schema": SCHEMA, "determinism": Determinism.PURE}
    world = make_world(listing("give", '\n[tools.give]\noutput = "warn"\n'), giving({}, **declared))
    assert (await world.call("give", {})).status is Status.ALLOWED
    world.reload(listing("give", '\n[tools.give]\noutput = "strict"\n'))

    assert (await world.call("give", {})).code == "output-mismatch"


@pytest.mark.parametrize(
    ("value", "kind"),
    [([1], ResultType.OBJECT), ("x", ResultType.ARRAY), ({}, ResultType.STRING), (5, ResultType.OBJECT)],
)
async def test_result_of_another_kind_than_declared_fails(
    make_world: MakeWorld, value: JsonValue, kind: ResultType
) -> None:
    outcome = await make_world(listing("give"), giving(value, result_type=kind)).call("give", {})

    assert (outcome.status, outcome.code) == (Status.FAILED, "output-mismatch")


def test_output_schema_that_cannot_be_used_is_refused_at_definition() -> None:
    with pytest.raises(RegistrationError, match="output_schema"):
        giving({}, output_schema={"type": "nonsense"})


async def test_secrets_are_taken_out_before_the_hash(make_world: MakeWorld) -> None:
    value = {"note": f"use {TOKEN} here", "password": "letmein", "n": 1}
    outcome = await make_world(listing("give"), giving(value)).call("give", {})
    scrubbed = {"n": 1, "note": "use [REDACTED] here", "password": "[REDACTED]"}

    assert json.loads(outcome.output) == scrubbed
    assert outcome.data is not None
    assert outcome.output_hash == hashlib.sha256(outcome.data).hexdigest()
    assert json.loads(outcome.data) == scrubbed
    assert "2 secrets removed" in next(row.reason for row in outcome.decision.trace if row.stage == "normalise")


async def test_operator_may_turn_scrubbing_off_for_a_tool(make_world: MakeWorld) -> None:
    world = make_world(listing("give", "\n[tools.give]\nscrub = false\n"), giving({"note": TOKEN}))

    assert json.loads((await world.call("give", {})).output) == {"note": TOKEN}


async def test_secret_in_a_failure_message_is_taken_out(make_world: MakeWorld) -> None:
    world = make_world(listing("fail"))
    outcome = await world.call("fail", {"text": "cannot reach postgres://dana:s3same@db/x"})

    assert "s3same" not in outcome.output
    assert "[REDACTED]" in outcome.output


async def test_hash_does_not_depend_on_the_order_of_keys(make_world: MakeWorld) -> None:
    one = await make_world(listing("give"), giving({"b": 1, "a": [2, {"d": 3, "c": 4}]})).call("give", {})

    assert one.output == '{"a":[2,{"c":4,"d":3}],"b":1}'
    assert one.output_hash == hashlib.sha256(one.output.encode()).hexdigest()


async def test_text_is_shown_as_it_stands_and_hashed_as_json(make_world: MakeWorld) -> None:
    outcome = await make_world(listing("give"), giving('say "hi"', result_type=ResultType.STRING)).call("give", {})

    assert (outcome.output, outcome.data) == ('say "hi"', b'"say \\"hi\\""')


@pytest.mark.parametrize("data", [b"\x89PNG\xff", b"\x00\x01", b"a\x00b"])
async def test_binary_result_keeps_its_bytes_for_the_host(make_world: MakeWorld, data: bytes) -> None:
    binary = giving(data, result_type=ResultType.BINARY, normalization=Normalization.BINARY)
    outcome = await make_world(listing("give"), binary).call("give", {})

    assert (outcome.status, outcome.data, outcome.output_bytes) == (Status.ALLOWED, data, len(data))
    assert f"binary result of {len(data)} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}" in outcome.output


async def test_bytes_that_are_text_are_shown_as_text_without_secrets(make_world: MakeWorld) -> None:
    binary = giving(f"töken {TOKEN}\n".encode(), result_type=ResultType.BINARY, normalization=Normalization.BINARY)
    outcome = await make_world(listing("give"), binary).call("give", {})

    assert (outcome.output, outcome.data) == ("töken [REDACTED]\n", "töken [REDACTED]\n".encode())


class Own(Tool):
    """Normalises in its own way."""

    name = "own"
    description = "Gives a result."
    safety_tier = SafetyTier.READ_ONLY
    result_type = ResultType.OBJECT
    normalization = Normalization.CUSTOM

    def __init__(self, normal: Callable[[Any], Any]) -> None:
        self.normal = normal

    @operation
    async def give(self) -> JsonValue:
        """Give it."""
        return {"at": "12:00", "n": 1}

    def normalize(self, result: JsonValue | bytes) -> bytes:
        return self.normal(result)


async def test_custom_normalisation_is_what_is_shown_and_hashed(make_world: MakeWorld) -> None:
    world = make_world(listing("own"), Own(lambda value: str(value["n"]).encode()))
    outcome = await world.call("own", {"op": "give"})

    assert (outcome.output, outcome.data, outcome.output_hash) == ("1", b"1", hashlib.sha256(b"1").hexdigest())


async def test_custom_normaliser_of_a_function_is_a_callable(make_world: MakeWorld) -> None:
    def without_time(value: JsonValue | bytes) -> bytes:
        return (
            json.dumps({key: held for key, held in value.items() if key != "at"}).encode()
            if isinstance(value, dict)
            else b""
        )

    times = iter(("12:00", "12:01"))

    @tool(safety_tier=SafetyTier.READ_ONLY, normalization=without_time, determinism=Determinism.DETERMINISTIC)
    async def give() -> dict[str, object]:
        """Give it."""
        return {"at": next(times), "n": 1}

    world = make_world(listing("give"), give)
    first, second = await world.call("give", {}), await world.call("give", {})

    assert first.raw != second.raw
    assert (first.data, first.output_hash) == (second.data, second.output_hash)
    assert first.output_hash == hashlib.sha256(b'{"n": 1}').hexdigest()
    assert give.normalization is Normalization.CUSTOM


def broken(_value: Any) -> Any:
    raise KeyError("at")


def wordy(_value: Any) -> Any:
    return "text"


@pytest.mark.parametrize("normal", [broken, wordy])
async def test_custom_normalisation_that_fails_fails_the_call(
    make_world: MakeWorld, normal: Callable[[Any], Any]
) -> None:
    world = make_world(listing("own"), Own(normal))
    outcome = await world.call("own", {"op": "give"})

    assert (outcome.status, outcome.data) == (Status.FAILED, None)
    assert outcome.detail
    assert world.row_kinds()[-1] == "ToolFailed"


async def test_custom_normalisation_that_does_not_end_in_time_fails_the_call_and_holds_nothing_up(
    make_world: MakeWorld,
) -> None:
    began, let_go = threading.Event(), threading.Event()

    def endless(_value: Any) -> bytes:
        began.set()
        let_go.wait(30)
        return b"late"

    world = make_world(listing("own") + "\n[tools.own]\ntimeout = 1\n", Own(endless))
    call = asyncio.ensure_future(world.call("own", {"op": "give"}))
    while not began.is_set():
        await asyncio.sleep(0)
    assert (await world.call("echo", {"text": "meanwhile"})).output == "meanwhile"
    outcome = await call
    let_go.set()

    assert (outcome.status, outcome.code, outcome.data) == (Status.TIMED_OUT, "result-timed-out", None)
    assert "the tool ran, but its result could not be read in time" in outcome.output
    assert world.row_kinds()[-1] == "ToolTimedOut"


async def test_custom_normalisation_that_raises_what_never_says_what_it_is_fails_the_call(
    make_world: MakeWorld,
) -> None:
    let_go = threading.Event()

    class Slow(Exception):
        def __str__(self) -> str:
            let_go.wait(30)
            return "late"

    def raising(_value: Any) -> bytes:
        raise Slow

    outcome = await make_world(listing("own"), Own(raising)).call("own", {"op": "give"})

    assert not let_go.is_set()
    let_go.set()
    assert (outcome.status, outcome.code, outcome.data) == (Status.FAILED, "tool-crashed", None)


async def test_large_result_is_whole_for_the_host_and_cut_for_the_model(make_world: MakeWorld) -> None:
    value = {"rows": ["lorem ipsum " * 10 for _ in range(5_000)], "token": TOKEN}
    outcome = await make_world(listing("give"), giving(value)).call("give", {})

    assert is_large(value)
    assert outcome.truncated
    assert outcome.data is not None
    assert json.loads(outcome.data) == {**value, "token": "[REDACTED]"}
    assert outcome.output.endswith(f"[output truncated — original size: {outcome.output_bytes:,} bytes]")
    assert outcome.output_bytes == len(outcome.data)


def test_only_what_takes_long_is_large() -> None:
    assert not is_large({"a": ["b" * 100, 1, None]})
    assert is_large("x" * LARGE)
    assert is_large([0] * LARGE)
    limits: list[tuple[Callable[[int], Any], int]] = [
        (lambda size: b"x" * size, LARGE),
        (lambda size: ["x" * size], LARGE - 32 - 1 - 32),
        (lambda size: {"a": "x" * size}, LARGE - 32 - 32 - 32),
        (lambda size: [0] * size, (LARGE - 32) // 33 + 1),
        (lambda size: dict.fromkeys(range(size), 0), LARGE // 64),
    ]
    for make, size in limits:
        assert (is_large(make(size - 1)), is_large(make(size))) == (False, True)


async def test_program_gets_what_the_tool_gave_and_no_json_has_it(make_world: MakeWorld) -> None:
    effects = {SideEffect.FS_WRITE, SideEffect.DB_READ}
    world = make_world(
        listing("give"),
        giving({"password": TOKEN}, side_effects=effects, required_capabilities=()),
    )

    outcome = await world.call("give", {})
    denied = await world.call("give", {"no": 1})

    assert outcome.raw == {"password": TOKEN}
    assert outcome.side_effects == effects
    assert outcome.to_json()["side_effects"] == ["DbRead", "FsWrite"]
    assert TOKEN not in json.dumps(outcome.to_json())
    assert TOKEN not in repr(outcome)
    assert (denied.raw, denied.data, denied.side_effects) == (None, None, frozenset())


async def test_reused_result_is_as_the_tool_gave_it_whatever_the_program_did_to_the_first(
    make_world: MakeWorld,
) -> None:
    world = make_world(listing("give"), giving({"rows": [1, 2]}, determinism=Determinism.PURE))

    first = await world.call("give", {})
    assert isinstance(first.raw, dict)
    first.raw["rows"] = "gone"
    again = await world.call("give", {})

    assert (again.reused, again.raw) == (True, {"rows": [1, 2]})


async def test_tool_that_fails_touched_what_it_declares_and_gave_nothing(make_world: MakeWorld) -> None:
    async def half() -> str:
        """Do half of it."""
        raise ToolFailure("half of it is done", code="half")

    made = tool(
        safety_tier=SafetyTier.READ_ONLY,
        result_type=ResultType.STRING,
        normalization=Normalization.JSON,
        side_effects={SideEffect.NET_WRITE},
        required_capabilities=(),
    )(half)

    outcome = await make_world(listing("half"), made).call("half", {})

    assert (outcome.status, outcome.raw, outcome.side_effects) == (Status.FAILED, None, {SideEffect.NET_WRITE})
