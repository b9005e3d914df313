"""Asking through a broker: who waits, who answers, and what ends a question."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewright.base.errors import NobodyAnswered
from gatewright.gate import Approval, ApprovalLimits, ApprovalRequest, ApprovalStore, PermissionBroker, Remember
from gatewright.gate.approvalstore import MOST_BYTES
from tests.engine.gate.asking import ANSWER_S, Desk, a_request, small_store, soon
from tests.support.clock import ManualClock

YES = Approval(True, "dana")
WIDE = ApprovalLimits(waiting=1000, per_minute=1000)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def broker(tmp_path: Path, clock: ManualClock) -> AsyncIterator[PermissionBroker]:
    made = PermissionBroker(small_store(tmp_path, clock), clock, limits=WIDE)
    yield made
    made.close()


def refused(code: str, reason: str) -> Approval:
    return Approval(False, "nobody", code=f"approval-{code}", reason=reason)


def asked(broker: PermissionBroker, **more: Any) -> asyncio.Task[Approval]:
    return asyncio.ensure_future(broker(a_request(**more)))


async def test_question_waits_and_its_answer_comes_back(broker: PermissionBroker, clock: ManualClock) -> None:
    desk = Desk(broker)
    call = asked(broker)
    question = await desk.question()
    answered = broker.answer(question.request_id, YES)

    assert question.expires_wall_s == clock.wall_s() + 45.0
    assert (question.arguments, question.waiting) == ({"text": "please"}, 1)
    assert await soon(call) == answered
    await desk.empty()
    assert broker.pending() == ()


async def test_broker_without_a_store_asks_in_its_process() -> None:
    broker = PermissionBroker()
    desk = Desk(broker)
    call = asked(broker)
    broker.answer((await desk.question()).request_id, Approval(True, "dana", Remember.DURATION, 60.0))

    assert (await soon(call)).remember is Remember.DURATION
    assert len(broker.standing()) == 1
    broker.close()


async def test_nobody_is_asked_where_no_operator_is_attached(tmp_path: Path, broker: PermissionBroker) -> None:
    with pytest.raises(NobodyAnswered):
        await soon(broker(a_request()))
    desk = Desk(broker)
    desk.leave()
    with pytest.raises(NobodyAnswered):
        await soon(broker(a_request()))
    assert not await broker.is_attended()


async def test_operator_of_another_process_counts_as_attached(tmp_path: Path, clock: ManualClock) -> None:
    here = PermissionBroker(small_store(tmp_path, clock), clock)
    elsewhere = PermissionBroker(small_store(tmp_path, clock), clock)
    desk = Desk(elsewhere)
    call = asked(here)
    question = await desk.question()
    elsewhere.answer(question.request_id, YES)

    assert (await soon(call)).approved
    await desk.empty()
    here.close()
    elsewhere.close()


async def test_unannounced_operator_is_attached_here_alone(tmp_path: Path, clock: ManualClock) -> None:
    here = PermissionBroker(small_store(tmp_path, clock), clock)
    elsewhere = PermissionBroker(small_store(tmp_path, clock), clock)
    leave = elsewhere.subscribe(lambda _: None, announce=False)

    assert await elsewhere.is_attended()
    assert not await here.is_attended()
    leave()
    assert list(tmp_path.iterdir()) == []
    elsewhere.close()


async def test_operator_whom_other_processes_cannot_see_is_attached_here_and_told_so(
    tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "keys").write_text("a file where the folder should be", "utf-8")
    broker = PermissionBroker(small_store(tmp_path, clock), clock)
    leave = broker.subscribe(lambda _: None)

    assert await broker.is_attended()
    assert caplog.messages[0].startswith("other processes cannot see the operator here: ")
    leave()
    assert not await broker.is_attended()
    broker.close()


async def test_answers_and_news_wait_for_no_tick(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewright.gate.broker.TICK_S", 60.0)
    broker = PermissionBroker(small_store(tmp_path, clock), clock)
    first = Desk(broker)
    await first.until(lambda questions: questions == ())
    call = asked(broker)
    question = await Desk(broker).question()
    broker.answer(question.request_id, YES)

    assert (await soon(call)).approved
    broker.close()


async def test_question_of_a_process_that_died_leaves_the_desk(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewright.gate.broker.TICK_S", 0.001)
    dead, broker = small_store(tmp_path, clock), PermissionBroker(small_store(tmp_path, clock), clock)
    desk = Desk(broker)
    dead.post(a_request(request_id="ask-1"), 10)
    await desk.question()
    dead.close()
    await desk.empty()
    broker.close()


async def test_broker_may_be_closed_by_whom_it_tells(tmp_path: Path, clock: ManualClock) -> None:
    broker, told = PermissionBroker(small_store(tmp_path, clock), clock), asyncio.Event()
    loop = asyncio.get_running_loop()

    def close(_: tuple[ApprovalRequest, ...]) -> None:
        broker.close()
        loop.call_soon_threadsafe(told.set)

    broker.subscribe(close)
    await soon(told.wait())

    assert not await broker.is_attended()


async def test_time_that_is_over_is_a_refusal(broker: PermissionBroker, clock: ManualClock) -> None:
    desk = Desk(broker)
    call = asked(broker)
    await desk.question()
    clock.advance(45.0)
    approval = await soon(call)

    assert approval == refused("timed-out", "nobody answered within 45 s")
    assert broker.pending() == ()


async def test_call_that_is_given_up_takes_its_question_along(broker: PermissionBroker) -> None:
    desk = Desk(broker)
    call = asked(broker)
    question = await desk.question()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert broker.pending() == ()
    assert broker.answer(question.request_id, YES) is None


async def test_call_given_up_before_its_question_is_posted_leaves_none(broker: PermissionBroker) -> None:
    Desk(broker)
    for _ in range(20):
        call = asked(broker)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    assert broker.pending() == ()


async def test_identical_calls_are_one_question_with_one_answer(broker: PermissionBroker) -> None:
    desk = Desk(broker)
    calls = [asked(broker) for _ in range(5)]
    question = await desk.waiting(5)
    assert len(broker.pending()) == 1
    broker.answer(question.request_id, Approval(False, "dana"))

    assert [(await soon(call)).approved for call in calls] == [False] * 5
    assert broker.pending() == ()


async def test_identical_calls_of_two_processes_are_one_question(tmp_path: Path, clock: ManualClock) -> None:
    brokers = [PermissionBroker(small_store(tmp_path, clock), clock) for _ in range(2)]
    desk = Desk(brokers[0])
    calls = [asked(broker) for broker in brokers]
    question = await desk.waiting(2)
    brokers[0].answer(question.request_id, Approval(True, "dana", Remember.SCOPE))

    assert [(await soon(call)).approved for call in calls] == [True, True]
    assert len(brokers[1].standing()) == 1
    for broker in brokers:
        broker.close()


async def test_once_for_identical_calls_is_one_grant(broker: PermissionBroker) -> None:
    desk = Desk(broker)
    calls = [asked(broker) for _ in range(3)]
    broker.answer((await desk.waiting(3)).request_id, YES)
    grants = {(await soon(call)).grant_id for call in calls}

    assert len(grants) == 1
    grant = broker.grants.get(grants.pop())
    assert grant is not None
    assert [broker.grants.spend(grant) for _ in calls] == [True, False, False]


async def test_fifty_questions_at_once_each_get_their_own_answer(broker: PermissionBroker) -> None:
    desk = Desk(broker)
    calls = {n: asked(broker, digest=f"d{n}", agent=f"agent-{n % 7}") for n in range(50)}
    for question in await desk.until(lambda questions: len(questions) == 50):
        number = int(question.digest[1:])
        broker.answer(question.request_id, Approval(number % 2 == 0, f"operator {number}"))
    answers = {n: await soon(call) for n, call in calls.items()}

    assert {n for n, answer in answers.items() if answer.approved} == set(range(0, 50, 2))
    assert [answers[n].who for n in range(50)] == [f"operator {n}" for n in range(50)]
    assert broker.pending() == ()


async def test_too_many_waiting_calls_of_an_agent_are_refused_at_once(tmp_path: Path, clock: ManualClock) -> None:
    broker = PermissionBroker(small_store(tmp_path, clock), clock, limits=ApprovalLimits(waiting=2))
    desk = Desk(broker)
    calls = [asked(broker, digest=f"d{n}") for n in range(2)]
    await desk.until(lambda questions: len(questions) == 2)
    third = await soon(broker(a_request(digest="d3")))
    other = asked(broker, agent="another", digest="d9")

    assert third == refused("rate", "2 calls of the agent wait for an answer already")
    await desk.until(lambda questions: len(questions) == 3)
    broker.close()
    assert [(await soon(call)).approved for call in (*calls, other)] == [False] * 3


async def test_too_many_questions_in_a_minute_are_refused_at_once(tmp_path: Path, clock: ManualClock) -> None:
    clock.advance(100.0)
    broker = PermissionBroker(small_store(tmp_path, clock), clock, limits=ApprovalLimits(per_minute=3))
    desk = Desk(broker)

    async def code_of_another() -> str:
        call = asked(broker)
        waiting = asyncio.ensure_future(desk.question())
        await asyncio.wait({call, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if not call.done():
            broker.answer(waiting.result().request_id, Approval(False, "dana"))
        waiting.cancel()
        code = (await soon(call)).code
        await desk.empty()
        return code

    codes = [await code_of_another() for _ in range(4)]
    last = await soon(broker(a_request()))
    clock.advance(60.0)

    assert codes == ["approval-refused"] * 3 + ["approval-rate"]
    assert last == refused("rate", "more than 3 questions of the agent in a minute")
    assert await code_of_another() == "approval-refused"
    broker.close()


async def test_state_that_cannot_be_written_is_a_refusal_with_the_reason(tmp_path: Path, clock: ManualClock) -> None:
    (tmp_path / "state").write_text("a file where the folder should be", "utf-8")
    broker = PermissionBroker(small_store(tmp_path, clock), clock, waits_alone=True)
    approval = await soon(broker(a_request()))

    assert approval == refused("unavailable", approval.reason)
    assert "cannot be" in approval.reason


async def test_question_too_large_to_look_through_is_a_refusal(broker: PermissionBroker) -> None:
    desk = Desk(broker)
    approval = await soon(broker(a_request(arguments={"text": "x" * MOST_BYTES})))

    size = r"the question has 1,04\d,\d{3} bytes, more than the 1,048,576 that an operator may see"
    assert re.fullmatch(size, approval.reason)
    assert approval == refused("too-large", approval.reason)
    assert desk.questions == ()


async def test_failing_listener_stops_no_question(broker: PermissionBroker, caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: tuple[ApprovalRequest, ...]) -> None:
        raise RuntimeError("the window is gone")

    broker.subscribe(broken)
    desk = Desk(broker)
    call = asked(broker)
    broker.answer((await desk.question()).request_id, YES)

    assert (await soon(call)).approved
    assert "listener" in caplog.text


async def test_closing_lets_every_waiting_call_go_unapproved(broker: PermissionBroker) -> None:
    desk = Desk(broker)
    call = asked(broker)
    await desk.question()
    broker.close()

    assert await soon(call) == refused("unavailable", "the broker has closed")
    assert not await broker.is_attended()


async def test_broker_serves_several_event_loops(broker: PermissionBroker) -> None:
    desk = Desk(broker)
    answers: list[Approval] = []

    async def elsewhere(number: int) -> Approval:
        return await broker(a_request(digest=f"d{number}"))

    def other_loop(number: int) -> None:
        answers.append(asyncio.run(elsewhere(number)))

    threads = [threading.Thread(target=other_loop, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for question in await desk.until(lambda questions: len(questions) == 3):
        broker.answer(question.request_id, YES)
    for thread in threads:
        await asyncio.to_thread(thread.join)

    assert [answer.approved for answer in answers] == [True] * 3


async def test_watching_thread_ends_when_nobody_waits_or_listens(broker: PermissionBroker) -> None:
    before = set(threading.enumerate())
    desk = Desk(broker)
    watch = next(thread for thread in set(threading.enumerate()) - before if thread.name == "approvals")
    call = asked(broker)
    broker.answer((await desk.question()).request_id, YES)
    await soon(call)
    assert watch.is_alive()
    desk.leave()
    await asyncio.to_thread(watch.join, ANSWER_S)

    assert not watch.is_alive()


async def test_answer_in_the_last_moment_counts(tmp_path: Path, clock: ManualClock) -> None:
    class Late(ApprovalStore):
        """Answers the question in the moment in which it is withdrawn."""

        def withdraw(self, request_id: str) -> Approval | None:
            self.answer(request_id, YES)
            return super().withdraw(request_id)

    broker = PermissionBroker(Late(clock=ManualClock()), clock)
    desk = Desk(broker)
    call = asked(broker)
    await desk.question()
    clock.advance(45.0)

    assert (await soon(call)).approved
    broker.close()


@pytest.mark.parametrize(
    ("answer", "left"),
    [(YES, 0), (Approval(True, "dana", Remember.SCOPE), 1), (Approval(False, "dana", Remember.DURATION, 60.0), 1)],
    ids=["once", "scope", "refusal"],
)
async def test_once_for_a_call_that_is_given_up_is_not_left_lying_and_what_lasts_stands(
    clock: ManualClock, answer: Approval, left: int
) -> None:
    class Late(ApprovalStore):
        def withdraw(self, request_id: str) -> Approval | None:
            self.answer(request_id, answer)
            return super().withdraw(request_id)

    broker = PermissionBroker(Late(clock=clock), clock)
    desk = Desk(broker)
    call = asked(broker)
    await desk.question()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert len(broker.standing()) == left
    broker.close()


async def test_answer_used_up_by_an_identical_call_is_a_refusal(broker: PermissionBroker) -> None:
    grant = broker.grants.remember(a_request(), YES)
    given = replace(YES, grant_id=grant.grant_id)

    assert broker.spend(given) == YES
    withdrawn = refused("withdrawn", "the approval was revoked, or used by an identical call")
    assert [broker.spend(one) for one in (given, YES)] == [withdrawn] * 2


async def test_limits_are_those_of_an_agent_with_one_user(tmp_path: Path, clock: ManualClock) -> None:
    broker = PermissionBroker(small_store(tmp_path, clock), clock, limits=ApprovalLimits(waiting=1, per_minute=2))
    desk = Desk(broker)
    calls = [asked(broker, digest=f"d{n}", user_id=f"user-{n}") for n in range(20)]
    await desk.until(lambda questions: len(questions) == 20)
    second = await soon(broker(a_request(digest="d20", user_id="user-3")))
    third = await soon(broker(a_request(digest="d21", user_id="user-3")))

    assert second == refused("rate", "1 calls of the agent wait for an answer already")
    assert third == refused("rate", "more than 2 questions of the agent in a minute")
    broker.close()
    assert [(await soon(call)).approved for call in calls] == [False] * 20


async def test_question_waits_as_long_as_the_program_says(tmp_path: Path, clock: ManualClock) -> None:
    broker = PermissionBroker(small_store(tmp_path, clock), clock, limits=ApprovalLimits(timeout_s=600.0))
    desk = Desk(broker)
    call = asked(broker)
    question = await desk.question()
    clock.advance(599.0)
    assert broker.pending() == (question,)
    clock.advance(1.0)

    assert await soon(call) == refused("timed-out", "nobody answered within 600 s")
    broker.close()


@pytest.mark.parametrize(
    "wrong", [{"timeout_s": 0.0}, {"timeout_s": float("nan")}, {"waiting": -1}, {"per_minute": -1}]
)
def test_limits_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"timeout_s|waiting"):
        ApprovalLimits(**wrong)


async def test_no_more_than_a_thousand_calls_wait_whoever_asks(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewright.gate.approvalstore.MOST_QUESTIONS", 5)
    store = small_store(tmp_path, clock)
    posted = [store.post(a_request(digest=f"d{n}", request_id=f"ask-{n}", user_id=f"u{n}"), 10) for n in range(8)]

    assert posted == [True] * 5 + [False] * 3
    assert len(store.pending()) == 5
    store.close()
