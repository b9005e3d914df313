import asyncio
import threading
import time
from collections.abc import AsyncIterator

import pytest

from tests.gui.watchdog.watching import LIMIT_S, Watching, judge
from tests.support.watchdog import BETWEEN, Block, Watchdog


@pytest.fixture
async def watching() -> AsyncIterator[Watching]:
    """The watchdog of the fixture, without its verdict."""
    found = Watching(Watchdog())
    found.dog.start()
    yield found
    found.dog.stop()


def compute(seconds: float) -> None:
    """Use up processor time of this thread."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


async def test_computing_in_the_windows_thread_is_found_and_named_with_its_lines(watching: Watching) -> None:
    async with watching.during("a deliberate block"):
        compute(0.2)

    block = watching.dog.worst["a deliberate block"]
    assert block.own_s == pytest.approx(0.2, abs=0.1)
    assert block.held_s >= 0.15
    assert any("compute" in line for line in block.where)
    assert watching.too_long[0].startswith("a deliberate block: ")


async def test_sleeping_in_the_windows_thread_is_found_though_it_computes_nothing(watching: Watching) -> None:
    async with watching.during("sleeping"):
        await asyncio.sleep(0)
        threading.Event().wait(0.3)

    block = watching.dog.worst["sleeping"]
    assert block.held_s >= LIMIT_S
    assert block.own_s < 0.1


async def test_work_in_pieces_with_the_loop_between_them_is_no_block(watching: Watching) -> None:
    async with watching.during("in pieces"):
        for _ in range(30):
            compute(0.01)
            await asyncio.sleep(0.006)

    assert "in pieces" not in {block.interaction for block in watching.dog.over(LIMIT_S)}


async def test_what_is_between_interactions_is_of_none_of_them(watching: Watching) -> None:
    async with watching.during("before"):
        pass
    compute(0.2)
    async with watching.during("after"):
        pass

    assert {block.interaction for block in watching.dog.over(LIMIT_S)} == {BETWEEN}
    assert watching.too_long == ()


def test_a_watchdog_is_started_in_the_windows_thread_only(qapp: object) -> None:
    del qapp
    refused: list[RuntimeError] = []

    def start() -> None:
        try:
            Watchdog().start()
        except RuntimeError as error:
            refused.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()

    assert [str(error) for error in refused] == ["a watchdog is started in the thread of the application"]


def test_a_block_says_what_it_was_and_how_long_it_took() -> None:
    block = Block("a tick", 0.31, 0.2, 0.25, ("page.py:3 show", "model.py:9 data"))

    assert str(block) == "a tick: 250 ms, 200 ms of it computing\n  page.py:3 show\n  model.py:9 data"


async def test_the_verdict_of_the_fixture_fails_on_a_block_and_on_nothing_else(watching: Watching) -> None:
    async with watching.during("nothing"):
        pass
    judge(watching)

    async with watching.during("a long look"):
        compute(0.25)

    with pytest.raises(pytest.fail.Exception, match=r"the window was held up\na long look: \d+ ms"):
        judge(watching)
