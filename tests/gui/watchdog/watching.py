"""A watchdog for tests: name what one does, and the test fails when the window was held up meanwhile."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from tests.support.patience import pace, patient
from tests.support.watchdog import BETWEEN, Watchdog

LIMIT_S = 0.1
"""A window that computes for so long without answering, at pace 1, is seen to be stuck."""
WAIT_LIMIT_S = 0.3
"""The same for a window that waits, for a lock or for a thread that keeps it out: machines that run tests are busy."""


class Watching:
    """`during` names an interaction; what comes between them is watched, but fails nothing.

    `pace` is asked at once after what took long: others may be busy for a second only.
    """

    def __init__(
        self, dog: Watchdog, pace: Callable[[], float] = lambda: 1.0, wait_limit_s: float = WAIT_LIMIT_S
    ) -> None:
        self.dog, self._pace, self._wait_limit_s = dog, pace, wait_limit_s
        self._paces: dict[str, float] = {}

    @asynccontextmanager
    async def during(self, interaction: str) -> AsyncGenerator[None]:
        """What is done inside, and what the window does of it until it is left, is of this interaction."""
        await self._caught_up()
        self.dog.begin(interaction)
        yield
        await self._caught_up()
        self.dog.begin(BETWEEN)
        if self._is_long(interaction, 1.0):
            self._paces[interaction] = max(self._paces.get(interaction, 1.0), self._pace())

    async def _caught_up(self) -> None:
        """Until what was before has been answered."""
        rounds = self.dog.rounds
        async with patient():
            while self.dog.rounds < rounds + 2:
                await asyncio.sleep(0.002)

    @property
    def too_long(self) -> tuple[str, ...]:
        """The worst block of each interaction that was over the limit."""
        found = self.dog.worst
        return tuple(
            str(found[one]) for one in found if one != BETWEEN and self._is_long(one, self._paces.get(one, 1.0))
        )

    def _is_long(self, interaction: str, pace: float) -> bool:
        block = self.dog.worst.get(interaction)
        return block is not None and (block.own_s >= LIMIT_S * pace or block.held_s >= self._wait_limit_s * pace)


@pytest_asyncio.fixture
async def gui_watchdog() -> AsyncIterator[Watching]:
    """Fails the test when an interaction held up the window for 100 ms at the pace that the machine has meanwhile."""
    watching = Watching(Watchdog(), pace)
    watching.dog.start()
    try:
        yield watching
    finally:
        watching.dog.stop()
    judge(watching)


def judge(watching: Watching) -> None:
    """Fail when an interaction held up the window."""
    if watching.too_long:
        pytest.fail("the window was held up\n" + "\n".join(watching.too_long))
