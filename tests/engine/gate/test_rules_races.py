"""Many callers at once: no cap, rate, group or order is overrun, and what never began costs nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gatewright.gate import Gate, Outcome, Session, Status
from gatewright.gate.breach import OrderingViolation, violation_of
from gatewright.gate.history import RateBook
from gatewright.gate.port import AuditUnavailable
from tests.engine.gate.conftest import MakeWorld
from tests.engine.gate.test_rules import DOWN, HELLO, UP, denied, done, policy, rule
from tests.engine.gate.world import GateTool, Operator, World

RATE = '{ RateLimit = { calls = 20, per = "1h" } }'
GROUP = '{ ExclusiveGroups = [["echo", "counter", "vault"]] }'


async def together(world: World, session: Session, *calls: tuple[str, object]) -> list[Outcome]:
    return list(await asyncio.gather(*(world.call(tool, given, session=session) for tool, given in calls)))


def statuses(outcomes: list[Outcome]) -> Counter[str]:
    return Counter(str(outcome.status) for outcome in outcomes)


async def test_hundred_callers_do_not_overrun_a_cap(make_world: MakeWorld) -> None:
    world, session = make_world(policy(rule("counter", "{ MaxCalls = 7 }"))), Session()
    outcomes = await together(world, session, *[("counter", UP)] * 100)

    assert statuses(outcomes) == {"allowed": 7, "denied": 93}
    assert world.counter.value == 7
    assert {outcome.code for outcome in outcomes if outcome.status is Status.DENIED} == {"max-calls"}


async def test_hundred_callers_in_hundred_sessions_do_not_overrun_a_rate(make_world: MakeWorld) -> None:
    world = make_world(policy(rule("counter", RATE)))
    outcomes = await asyncio.gather(*(world.call("counter", UP, session=Session()) for _ in range(100)))

    assert statuses(list(outcomes)) == {"allowed": 20, "denied": 80}
    assert world.counter.value == 20


async def test_hundred_callers_use_one_tool_of_a_group(make_world: MakeWorld) -> None:
    world, session = make_world(policy(rule("*", GROUP))), Session()
    calls = [("echo", HELLO), ("counter", UP), ("vault", HELLO)] * 33
    outcomes = await together(world, session, *calls)
    used = {tool for (tool, _), outcome in zip(calls, outcomes, strict=True) if outcome.status is Status.ALLOWED}

    assert len(used) == 1
    assert statuses(outcomes)["allowed"] == 33


def test_threads_overrun_neither_cap_nor_rate(make_world: MakeWorld) -> None:
    world = make_world(policy(rule("counter", "{ MaxCalls = 7 }"), rule("echo", RATE)))
    seen = from_threads(world, ("counter", UP), ("echo", HELLO))

    assert seen["counter", Status.ALLOWED] == 7
    assert seen["echo", Status.ALLOWED] == 20


def test_threads_use_one_tool_of_a_group(make_world: MakeWorld) -> None:
    world = make_world(policy(rule("*", GROUP)))
    seen = from_threads(world, ("echo", HELLO), ("counter", UP), ("vault", HELLO))

    assert sorted(seen[tool, Status.ALLOWED] for tool in ("echo", "counter", "vault")) == [0, 0, 25]


def from_threads(world: World, *each: tuple[str, object]) -> Counter[tuple[str, Status]]:
    """How the calls ended, each made 25 times in one session, from 16 threads."""
    session = Session()

    def call(one: tuple[str, object]) -> tuple[str, Status]:
        return one[0], asyncio.run(world.call(one[0], one[1], session=session)).status

    with ThreadPoolExecutor(16) as pool:
        return Counter(pool.map(call, [*each] * 25))


async def test_tool_that_must_come_first_is_too_late_while_the_other_runs(make_world: MakeWorld) -> None:
    tool = GateTool()
    text = policy(rule("echo", '"RequiresFollowingTools"', "wait"), tools='"echo", "wait"')
    world, session = make_world(text, tool), Session()
    running = asyncio.ensure_future(world.call("wait", {"op": "politely"}, session=session))
    await tool.began.wait()

    assert violation_of(denied(world, session, "echo")) == OrderingViolation("echo", ("wait",), ("wait",))
    tool.let_go.set()
    assert (await running).status is Status.ALLOWED
    assert denied(world, session, "echo").code == "too-late"


async def test_other_tool_that_failed_does_not_make_it_too_late(make_world: MakeWorld) -> None:
    world, session = make_world(policy(rule("echo", '"RequiresFollowingTools"', "fail"))), Session()
    await world.call("fail", HELLO, session=session)

    await done(world, session, "echo")


async def test_slot_is_tested_again_after_an_approval(make_world: MakeWorld) -> None:
    text = policy(rule("counter", "{ MaxCalls = 1 }"), rule("counter", "{ RequiresConsent = {} }", "operation:down"))
    world, session, operator = make_world(text), Session(), Operator()
    operator.may_answer.clear()
    waiting = asyncio.ensure_future(world.call("counter", DOWN, session=session, approver=operator))
    await operator.asked.wait()
    await done(world, session, "counter", UP)
    operator.may_answer.set()
    outcome = await waiting

    assert (outcome.status, outcome.code) == (Status.DENIED, "max-calls")
    assert world.counter.value == 1


async def test_rate_is_tested_again_after_an_approval(make_world: MakeWorld) -> None:
    once = rule("counter", '{ RateLimit = { calls = 1, per = "1h" } }')
    text = policy(
        once, rule("counter", "{ MaxCalls = 2 }"), rule("counter", "{ RequiresConsent = {} }", "operation:down")
    )
    world, session, operator = make_world(text), Session(), Operator()
    operator.may_answer.clear()
    waiting = asyncio.ensure_future(world.call("counter", DOWN, session=session, approver=operator))
    await operator.asked.wait()
    await done(world, session, "counter", UP)
    operator.may_answer.set()
    outcome = await waiting

    assert (outcome.status, outcome.code) == (Status.DENIED, "rate-limit")
    assert world.counter.value == 1
    assert session.facts().calls("counter") == 1, "the slot is given back"


async def test_call_that_cannot_be_recorded_gives_slot_and_token_back(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = (rule("echo", "{ MaxCalls = 1 }"), rule("echo", '{ RateLimit = { calls = 1, per = "1h" } }'))
    world, session = make_world(policy(*rules)), Session()
    assert world.audit is not None
    with monkeypatch.context() as broken:

        def unwritable(_entries: object) -> None:
            raise AuditUnavailable("the disk is full")

        broken.setattr(world.audit, "append", unwritable)
        assert (await world.call("echo", HELLO, session=session)).code == "audit-unavailable"
    await done(world, session, "echo")

    assert denied(world, session, "echo").code in {"max-calls", "rate-limit"}


async def test_sessions_do_not_see_each_other(make_world: MakeWorld) -> None:
    world = make_world(policy(rule("counter", "{ MaxCalls = 3 }")))
    outcomes = await asyncio.gather(
        *(world.call("counter", UP, session=session) for session in [Session() for _ in range(20)] for _ in range(5))
    )

    assert statuses(list(outcomes)) == {"allowed": 60, "denied": 40}


async def test_call_is_denied_when_its_rate_cannot_be_read(make_world: MakeWorld, tmp_path: Path) -> None:
    path = tmp_path / "rates.sqlite"
    path.write_bytes(b"no database at all" * 100)
    world = make_world(policy(rule("counter", RATE)))
    gate = Gate(world.gate.policy, world.registry, clock=world.clock, rates=RateBook(path))
    outcome = await gate.call("archivist", "counter", UP)

    assert (outcome.status, outcome.code) == (Status.DENIED, "rates-unavailable")
    assert outcome.decision.stage == "rules"
    assert world.counter.value == 0
