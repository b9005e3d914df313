"""A standing approval that takes time to be used up: the loop goes on, and giving up leaves nothing behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gatewright.gate import Status
from gatewright.policy.verdict import Verdict
from tests.engine.gate.asking import asking_gate, soon
from tests.engine.gate.test_approval_calls import YES, Office
from tests.engine.gate.world import World


@pytest.fixture
async def office(world: World) -> AsyncIterator[Office]:
    broker = asking_gate(world)
    yield Office(world, broker)
    broker.close()


class SlowBook:
    """Holds every use of a grant up until it may go on."""

    def __init__(self, office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
        self.began, self.may_go_on = asyncio.Event(), threading.Event()
        loop, spend = asyncio.get_running_loop(), office.broker.grants.spend

        def slow(grant: Any) -> bool:
            loop.call_soon_threadsafe(self.began.set)
            assert self.may_go_on.wait()
            return spend(grant)

        monkeypatch.setattr(office.broker.grants, "spend", slow)


async def asked_and_answered(office: Office) -> asyncio.Task[Any]:
    call = office.start("vault", {"text": "please"})
    question = await office.desk.question()
    office.broker.answer(question.request_id, YES)
    return call


async def test_loop_goes_on_while_an_approval_is_used_up(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    book = SlowBook(office, monkeypatch)
    call = await asked_and_answered(office)
    await book.began.wait()

    other = await soon(office.start("echo", {"text": "meanwhile"}))
    assert (other.output, call.done()) == ("meanwhile", False)

    book.may_go_on.set()
    assert (await soon(call)).status is Status.ALLOWED


async def test_call_given_up_while_its_approval_is_used_up_is_not_made(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = SlowBook(office, monkeypatch)
    call = await asked_and_answered(office)
    await book.began.wait()
    call.cancel()
    book.may_go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await soon(call)

    kinds = office.world.row_kinds()
    assert kinds[-1] == "ToolAbandoned"
    assert [kind for kind in kinds if kind in {"ApprovalRequested", "ApprovalResolved"}] == [
        "ApprovalRequested",
        "ApprovalResolved",
    ]
    assert office.session.calls("vault") == 0
    assert office.world.decide("vault", {"text": "please"}, session=office.session).verdict is Verdict.ASK


async def test_looking_for_a_grant_never_waits_for_a_writer(office: Office) -> None:
    store = office.broker.grants
    writing, done = threading.Event(), threading.Event()

    def hold() -> None:
        with store._rows.changing():  # type: ignore[attr-defined] # what no caller can hold for so long
            writing.set()
            assert done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert writing.wait()
        answers: list[Verdict] = []
        asking = threading.Thread(target=lambda: answers.append(office.world.decide("vault", {}).verdict))
        asking.start()
        asking.join()
        assert answers == [Verdict.ASK]
    finally:
        done.set()
        thread.join()
