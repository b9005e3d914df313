"""Outcomes as a program's listener gets them: of every call, however it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from gatewright.gate import Outcome, Status
from tests.engine.gate.conftest import MakeWorld
from tests.engine.gate.world import POLICY, GateTool, Operator, World

MORE = POLICY.replace('"vault"]', '"vault", "fail", "crash", "wait"]')


def raise_at(_: Outcome) -> None:
    raise RuntimeError("the listener is broken")


OF_NAMED_CALLS = (Status.WAITING, Status.UNKNOWN)
"""Calls with an id alone end so."""


async def test_listener_gets_what_the_caller_gets_of_every_call(make_world: MakeWorld) -> None:
    world = make_world(MORE + "\n[tools.wait]\ntimeout = 0.01\n", GateTool())
    heard: list[Outcome] = []
    world.gate.on_outcome(heard.append)
    made = [
        await world.call("echo", {"text": "a"}),
        await world.call("nothing", {}),
        await world.call("file", {"op": "delete", "path": "a.md"}),
        await world.call("file", {"op": "read", "path": "secret/a.md"}),
        await world.call("echo", "no JSON"),
        await world.call("fail", {"text": "a"}),
        await world.call("crash", {"text": "a"}),
        await world.call("wait", {"op": "politely"}),
        await world.call("vault", {}),
        await world.call("vault", {}, approver=Operator()),
        await world.call("vault", {}, approver=Operator(approves=False)),
        await world.call("echo", {"text": "a"}, agent="stranger"),
    ]

    assert [id(one) for one in heard] == [id(one) for one in made]
    assert {one.status for one in heard} == set(Status) - {Status.ABANDONED, *OF_NAMED_CALLS}
    assert [(one.agent_id, one.tool, one.operation) for one in (heard[0], heard[3], heard[-1])] == [
        ("archivist", "echo", ""),
        ("archivist", "file", "read"),
        ("stranger", "echo", ""),
    ]


@pytest.mark.parametrize("place", ["waits for an answer", "runs"])
async def test_listener_hears_of_a_call_that_its_caller_gave_up(make_world: MakeWorld, place: str) -> None:
    tool, operator = GateTool(), Operator()
    operator.may_answer.clear()
    world, heard = make_world(MORE, tool), list[Outcome]()
    world.gate.on_outcome(heard.append)
    if place == "runs":
        call = asyncio.ensure_future(world.call("wait", {"op": "politely"}))
        await tool.began.wait()
    else:
        call = asyncio.ensure_future(world.call("vault", {}, approver=operator))
        await operator.asked.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    (one,) = heard
    assert (one.status, one.code, one.output, one.data) == (Status.ABANDONED, "cancelled", "", None)
    assert world.row_kinds()[-1] == "ToolAbandoned"


async def test_failing_listener_stops_no_call_and_no_other_listener(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Outcome] = []
    world.gate.on_outcome(heard.append)
    world.gate.on_outcome(raise_at)
    world.gate.on_outcome(heard.append)
    outcome = await world.call("echo", {"text": "a"})

    assert (outcome.status, heard) == (Status.ALLOWED, [outcome, outcome])
    assert "the listener is broken" in caplog.text


async def test_stopped_listener_hears_no_more_and_the_others_stay_over_a_reload(world: World) -> None:
    first, second = list[Outcome](), list[Outcome]()
    stop: Callable[[], None] = world.gate.on_outcome(first.append)
    world.gate.on_outcome(second.append)
    await world.call("echo", {"text": "a"})
    stop()
    world.reload(POLICY.replace('"block", ', ""))
    await world.call("echo", {"text": "a"})

    assert (len(first), len(second)) == (1, 2)
