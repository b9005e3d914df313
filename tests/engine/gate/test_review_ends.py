"""However a call is given up, its log ends; whatever a stage raises, the caller gets an outcome."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from gatewright.gate import Approval, ApprovalRequest, Gate, Remember, Session, Status, pipeline
from gatewright.gate.call import EffectStage
from gatewright.gate.stages.result import OUTPUT
from tests.engine.gate.asking import soon, store_of
from tests.engine.gate.world import Operator, World

ENDS = {"ToolCompleted", "ToolFailed", "ToolTimedOut", "ToolAbandoned", "ToolDenied"}


class SlowLog:
    """A log that another process keeps busy until it may go on."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        assert world.audit is not None
        self.began, self.may_go_on = asyncio.Event(), threading.Event()
        loop, append = asyncio.get_running_loop(), world.audit.append

        def slow(entries: Any, *, wait: bool = True) -> bool:
            if not wait:
                return False
            loop.call_soon_threadsafe(self.began.set)
            assert self.may_go_on.wait()
            return append(entries, wait=wait)

        monkeypatch.setattr(world.audit, "append", slow)


@pytest.mark.parametrize(("tool", "arguments"), [("vault", {}), ("echo", {"text": "x"}), ("nothing", {})])
async def test_call_given_up_while_it_is_recorded_ends_once(
    world: World, monkeypatch: pytest.MonkeyPatch, tool: str, arguments: dict[str, Any]
) -> None:
    log, session = SlowLog(world, monkeypatch), Session()
    call = asyncio.ensure_future(world.call(tool, arguments, session=session, approver=Operator()))
    await log.began.wait()
    call.cancel()
    log.may_go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await soon(call)

    kinds = world.row_kinds()
    assert kinds[0] == "ToolInvoked"
    assert [kind for kind in kinds if kind in ENDS] == kinds[-1:]
    assert session.calls(tool) == 0


async def test_loop_goes_on_while_an_answer_is_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    store, began, may_go_on = store_of(world), asyncio.Event(), threading.Event()
    world.gate = Gate(world.gate.policy, world.registry, audit=world.audit, clock=world.clock, grants=store)
    loop, remember = asyncio.get_running_loop(), store.remember

    def slow(*given: Any) -> Any:
        loop.call_soon_threadsafe(began.set)
        assert may_go_on.wait()
        return remember(*given)

    async def yes(_request: ApprovalRequest) -> Approval:
        return Approval(True, "dana", Remember.DURATION, 600.0)

    monkeypatch.setattr(store, "remember", slow)
    kept, given_up = (asyncio.ensure_future(world.call("vault", {}, approver=yes)) for _ in range(2))
    await began.wait()
    assert (await soon(asyncio.ensure_future(world.call("echo", {"text": "x"})))).output == "x"
    given_up.cancel()
    may_go_on.set()

    assert (await soon(kept)).status is Status.ALLOWED
    with pytest.raises(asyncio.CancelledError):
        await soon(given_up)
    kinds = world.row_kinds()
    assert sorted(kind for kind in kinds if kind in ENDS) == ["ToolAbandoned", "ToolCompleted", "ToolCompleted"]
    store.close()


class Panic(BaseException):
    """What a compiled library raises when it finds its own bug."""


async def test_panic_in_a_stage_after_the_execution_is_a_failed_call(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def panics(_state: Any) -> Any:
        raise Panic("here")

    acting = tuple(EffectStage("output", panics) if stage is OUTPUT else stage for stage in pipeline.ACTING)
    monkeypatch.setattr(pipeline, "ACTING", acting)
    outcome = await world.call("echo", {"text": "x"})

    assert (outcome.status, outcome.code) == (Status.FAILED, "internal-error")
    assert "Panic" not in outcome.output
    assert world.row_kinds()[-1] == "ToolFailed"
