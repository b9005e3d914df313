"""Calls with an id over a shared state: made at several gateways, they run once and tell their outcome everywhere."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from gatewright.gate import Approval, ApprovalStore, Outcome, PermissionBroker, Status
from tests.engine.fleet.conftest import Fleet
from tests.engine.gate.asking import asking_gate
from tests.engine.gate.world import World

TEXT = 'gatewright = 1\n\n[agents.archivist]\ntools = ["counter"]\n'
ASKS = f'{TEXT}approvals = {{ counter = "ask" }}\n'


def worlds_of(fleet: Fleet, folder: Path, text: str) -> list[World]:
    made: list[World] = []
    for name in ("one", "two", "three"):
        (folder / name).mkdir()
        made.append(World(folder / name, text, log=fleet.log(fleet.gateway(name), name)))
    return made


async def up(world: World, call_id: str, **more: Any) -> Outcome:
    return await world.call("counter", {"op": "up"}, call_id=call_id, conversation="talk", **more)


async def test_call_made_at_every_gateway_runs_once_and_its_outcome_is_told_everywhere(
    fleet: Fleet, tmp_path: Path
) -> None:
    worlds = worlds_of(fleet, tmp_path, TEXT)

    ended = await asyncio.gather(*(up(world, f"call-{number}") for number in range(6) for world in worlds))
    again = [await up(world, f"call-{number}") for number in range(6) for world in worlds]

    assert sum(world.counter.value for world in worlds) == 6
    assert {one.status for one in ended} <= {Status.ALLOWED, Status.DENIED}
    assert all(one.decision.code == "call-id-running" for one in ended if one.status is Status.DENIED)
    assert {one.status for one in again} == {Status.ALLOWED}
    assert len({one.output for one in again}) <= 6
    for world in worlds:
        assert world.log is not None
        report = world.log.verify()
        assert (report.problems, report.unended) == ((), ())
        world.gate.close()
        world.close()


async def test_suspended_call_is_answered_elsewhere_and_resumed_at_another_gateway_once(
    fleet: Fleet, tmp_path: Path
) -> None:
    worlds = worlds_of(fleet, tmp_path, ASKS)
    for world, name in zip(worlds, ("one", "two", "three"), strict=True):
        asking_gate(world, store=ApprovalStore(fleet.state(name), clock=world.clock))
    operator = PermissionBroker(ApprovalStore(fleet.member("ada", "answer"), clock=worlds[0].clock))

    waiting = await up(worlds[0], "pay", on_ask="suspend")
    (question,) = operator.pending()
    answered = await asyncio.to_thread(operator.answer, question.request_id, Approval(True, "ada"))
    ended = await asyncio.gather(*(up(world, "pay", on_ask="suspend") for world in worlds[1:]))

    assert waiting.status is Status.WAITING
    assert answered is not None
    assert sum(world.counter.value for world in worlds) == 1
    assert Status.ALLOWED in {one.status for one in ended}
    assert (await up(worlds[0], "pay", on_ask="suspend")).status is Status.ALLOWED
    assert sum(world.counter.value for world in worlds) == 1
    operator.close()
    for world in worlds:
        world.gate.close()
        world.close()
