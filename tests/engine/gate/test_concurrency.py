"""A hundred callers while the policy changes under them: no cap and no rate is overrun, and no call falls between."""

from __future__ import annotations

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from gatewright.gate import Session, Status
from tests.engine.gate.conftest import MakeWorld
from tests.engine.gate.test_rules import UP, policy, rule
from tests.engine.gate.world import World

CALLERS = 100


def capped(calls: int) -> str:
    return policy(rule("counter", f"{{ MaxCalls = {calls} }}"))


def rated(calls: int) -> str:
    return policy(rule("counter", f'{{ RateLimit = {{ calls = {calls}, per = "1h" }} }}'))


async def test_callers_and_reloads_of_one_loop_never_overrun_a_cap(make_world: MakeWorld) -> None:
    world, session = make_world(capped(9)), Session()

    async def reloads() -> None:
        for turn in range(50):
            world.reload(capped(7 + turn % 3))
            await asyncio.sleep(0)

    calls = [world.call("counter", UP, session=session) for _ in range(CALLERS)]
    *outcomes, _ = await asyncio.gather(*calls, reloads())
    seen = Counter(outcome.code for outcome in outcomes if outcome is not None)

    assert 7 <= seen["allowed"] <= 9
    assert seen == {"allowed": world.counter.value, "max-calls": CALLERS - world.counter.value}
    assert session.facts().calls("counter") == world.counter.value


async def test_lower_cap_counts_what_was_called_under_the_higher_one(make_world: MakeWorld) -> None:
    world, session = make_world(capped(9)), Session()
    for _ in range(5):
        await world.call("counter", UP, session=session)
    world.reload(capped(6))
    outcomes = await asyncio.gather(*(world.call("counter", UP, session=session) for _ in range(CALLERS)))

    assert Counter(str(outcome.status) for outcome in outcomes) == {"allowed": 1, "denied": CALLERS - 1}


def called(world: World, session: Session) -> Status:
    return asyncio.run(world.call("counter", UP, session=session)).status


def test_threads_and_reloads_never_overrun_cap_or_rate(make_world: MakeWorld) -> None:
    for text in (capped, rated):
        world, session = make_world(text(7)), Session()

        with ThreadPoolExecutor(16) as pool:
            futures = [pool.submit(called, world, session) for _ in range(CALLERS)]
            for turn in range(40):
                world.reload("# again\n" * (turn % 2) + text(7))
            seen = Counter(future.result() for future in futures)

        assert seen == {Status.ALLOWED: 7, Status.DENIED: CALLERS - 7}
        assert world.counter.value == 7
