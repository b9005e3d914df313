"""A secret in what a call says of itself is told nobody, whichever way it goes out: each secret, each way."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import StageTrace, Status
from gatewright.gate.scrub import scrub_text
from gatewright.policy.verdict import SafetyTier
from gatewright.schema.walk import Schema
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import Normalization, ResultType
from gatewright.tools.registry import operation
from gatewright.tools.tool import Tool
from tests.engine.gate.conftest import MakeWorld
from tests.engine.gate.test_scrub import SECRETS
from tests.engine.gate.world import POLICY, World, context_for

MORE = POLICY.replace('"vault"]', '"vault", "leak", "odd"]')
PROSE = ("cannot log in: {}", "no {}", "  | KeyError: 'one: {}'", "`{}` is none", '{{"a": "it said {}"}}')
KINDS = [
    (text, secret)
    for text, secret in SECRETS
    if "\n" not in text and all(secret not in scrub_text(words.format(text))[0] for words in PROSE)
]
"""Those that are known for what they are wherever they stand."""
WAYS = ("failure", "detail", "code", "crash", "late", "group", "progress", "misfit")


def test_there_are_enough_kinds_of_secrets() -> None:
    assert len(KINDS) >= 32


class Leak(Tool):
    """Says what it knows in one of many ways."""

    name = "leak"
    description = "Leaks."
    safety_tier = SafetyTier.READ_ONLY
    result_type = ResultType.OBJECT
    normalization = Normalization.JSON
    output_schema: Schema | None = {  # noqa: RUF012
        "type": "object",
        "properties": {"kind": {"enum": ["fine"]}},
    }
    told = ""

    @operation
    async def say(self, way: str, context: ToolExecutionContext) -> JsonValue:
        """Say it."""
        match way:
            case "failure":
                raise ToolFailure(f"cannot log in: {self.told}")
            case "detail":
                raise ToolFailure("cannot log in", detail=f"it said: {self.told}")
            case "code":
                raise ToolFailure("cannot log in", code=f"no {self.told}")
            case "crash":
                raise ValueError(f"cannot log in: {self.told}")
            case "late":
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    raise ToolFailure(f"cut off: {self.told}") from None
            case "group":
                raise ExceptionGroup(f"several: {self.told}", [KeyError(f"one: {self.told}")])
            case "progress":
                assert context.progress is not None
                context.progress(1, None, f"logs in: {self.told}")
                if context.on_piece is not None:
                    context.on_piece(f"logs in: {self.told}")
            case _:
                return {"kind": f"logs in: {self.told}"}
        return {"kind": "fine"}


class Odd(Tool):
    """Is made into bytes by code that fails."""

    name = "odd"
    description = "Fails late."
    safety_tier = SafetyTier.READ_ONLY
    result_type = ResultType.OBJECT
    normalization = Normalization.CUSTOM
    told = ""

    @operation
    async def say(self) -> JsonValue:
        """Say it."""
        return {}

    def normalize(self, result: JsonValue | bytes) -> bytes:
        raise ToolFailure(f"cannot be made: {self.told}", detail=self.told)


async def everything_told(world: World, caplog: pytest.LogCaptureFixture, call: tuple[str, Any]) -> tuple[str, Status]:
    """All that is handed on of one call, as one text."""
    stages: list[StageTrace] = []
    heard: list[str] = []

    def hear(_amount: float, _whole: float | None, words: str | None) -> None:
        heard.append(words or "")

    outcome = await world.call(
        *call, on_stage=stages.append, on_piece=heard.append, context=replace(context_for("ann"), progress=hear)
    )
    rows = [row.to_line() for row in world.audit.rows()] if world.audit is not None else []
    told = [outcome.output, outcome.detail, outcome.code, outcome.decision.reason, *heard, *rows, caplog.text]
    told += [
        json.dumps(outcome.to_json(), ensure_ascii=False),
        repr(replace(outcome, decision=replace(outcome.decision, arguments={}))),
        *map(repr, stages),
    ]
    told += [repr(record.exc_info) for record in caplog.records]
    caplog.clear()
    return "\n".join(told), outcome.status


@pytest.mark.parametrize("way", WAYS)
async def test_secret_is_in_nothing_that_is_told_of_a_call(
    make_world: MakeWorld, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    leak = Leak()
    text = MORE + '\n[tools.leak]\ntimeout = "0.2s"\n' if way == "late" else MORE
    world = make_world(text, leak, Odd())
    for text, secret in KINDS[:: 4 if way == "late" else 1]:
        leak.told = text
        told, status = await everything_told(world, caplog, ("leak", {"op": "say", "way": way}))
        assert (status is Status.ALLOWED) is (way == "progress")
        assert secret not in told, (way, secret)


async def test_secret_is_in_nothing_that_is_told_of_what_fails_later(
    make_world: MakeWorld, caplog: pytest.LogCaptureFixture
) -> None:
    odd = Odd()
    world = make_world(MORE, Leak(), odd)
    for text, secret in KINDS:
        odd.told = text
        told, status = await everything_told(world, caplog, ("odd", {"op": "say"}))
        assert status is Status.FAILED
        assert secret not in told, secret


def sent_in(way: str, text: str) -> tuple[str, Any]:
    calls: dict[str, Callable[[], tuple[str, Any]]] = {
        "value": lambda: ("leak", {"op": text, "way": "x"}),
        "key": lambda: ("echo", {"text": "a", text: 1}),
        "type": lambda: ("counter", {"op": "up", "by": text}),
        "raw": lambda: ("echo", f'{{"text": {text}'),
    }
    return calls[way]()


@pytest.mark.parametrize("way", ["value", "key", "type", "raw"])
async def test_secret_that_was_sent_is_not_repeated_in_a_denial(
    make_world: MakeWorld, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    caplog.set_level(logging.DEBUG)
    world = make_world(MORE, Leak(), Odd())
    for text, secret in KINDS:
        told, status = await everything_told(world, caplog, sent_in(way, text))
        assert status is Status.DENIED
        assert secret not in told, (way, secret)
