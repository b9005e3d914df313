"""Waiting without a clock, for tests and `./check`: it lasts as long as something moves.

    await until(lambda: page.is_ready)
    async with patient(): ...

A call that just waits needs no limit of its own: `Guard` ends the test in which nothing moves. As a program it runs a
command, and ends that once nothing moves in it: `python -m tests.support.patience COMMAND`.
"""

import asyncio
import faulthandler
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import cache

from gatewright_gui.app.patience import LOOK_S, Patience

BEAT_S = 0.005
TEST_IDLE_S, TEST_BUSY_S = 60.0, 600.0
"""How long a test may sleep, and compute, with the processes that it starts."""
STEP_IDLE_S, STEP_BUSY_S = 300.0, 7_200.0
"""The same for a step of `./check`."""
STUCK_S = 600
"""By the clock, since nothing else goes on: how long a test may let no other thread of its process run."""
PACE_1_S = 0.3e-6
"""The time for one look-up of `pace` at pace 1."""
OUT_OF_TIME = 124
"""The status of `timeout` when it ended the command."""


class InVainError(AssertionError):
    """The awaited event did not come."""


async def until(holds: Callable[[], object], what: str = "something") -> None:
    """Let the loop run until something holds. Raises InVainError."""
    patience = Patience()
    while not holds():
        if patience.is_over:
            raise InVainError(f"waited in vain for {what}: {patience.vain}")
        await asyncio.sleep(BEAT_S)


def pause_until(holds: Callable[[], object], what: str = "something") -> None:
    """Wait, without a loop, until something holds. Raises InVainError."""
    patience, pause = Patience(), threading.Event()
    while not holds():
        if patience.is_over:
            raise InVainError(f"waited in vain for {what}: {patience.vain}")
        pause.wait(BEAT_S)


@asynccontextmanager
async def patient() -> AsyncGenerator[None]:
    """Like `asyncio.timeout`, but without a limit as long as something moves. Raises TimeoutError."""
    patience, loop = Patience(), asyncio.get_running_loop()
    async with asyncio.timeout(None) as limit:

        def look() -> None:
            nonlocal turn
            if patience.is_over:
                limit.reschedule(loop.time())
            turn = loop.call_later(LOOK_S, look)

        turn = loop.call_later(LOOK_S, look)
        try:
            yield
        finally:
            turn.cancel()


def pace() -> float:
    """How many times as long as the machine of the figures this one needs to compute now; at least 1.

    A limit of computing is multiplied by it. Others on a busy machine take the caches too, so it looks things up in
    more memory than stays in them, as a window does.
    """
    table, keys = _table()
    took: list[float] = []
    for _ in range(5):
        began = time.thread_time()
        for agent, tool in keys:
            _ = "read" in table[agent, tool]
        took.append((time.thread_time() - began) / len(keys))
    return max(sorted(took)[2] / PACE_1_S, 1.0)


def in_time(took_s: float, limit_s: float) -> bool:
    """It took less than the limit at the pace of the machine, which is measured only where it would take more."""
    return took_s < limit_s or took_s < limit_s * pace()


@cache
def _table() -> tuple[dict[tuple[str, str], frozenset[str]], list[tuple[str, str]]]:
    """Return the rights of 200 agents on 60 tools, and every question about them once, in random order."""
    names = [(f"agent_{agent:03}", f"tool_{tool:02}") for agent in range(200) for tool in range(60)]
    table = {name: frozenset((f"op_{at % 7}", f"op_{at % 5}")) for at, name in enumerate(names)}
    return table, random.Random(1).sample(names, len(names))


class Guard:
    """Ends the process of a test in which nothing moves any more, and says where it stands.

    A thread of its own looks. Where that cannot run, because the test lets none, the clock of `faulthandler` goes on.
    """

    def __init__(self, told_at: int) -> None:
        self._told_at = told_at
        self._patience: Patience | None = None
        threading.Thread(target=self._watch, name="guard of tests", daemon=True).start()

    def begin(self) -> None:
        """Begin to guard a test."""
        self._patience = Patience(TEST_IDLE_S, TEST_BUSY_S)

    def end(self) -> None:
        """Stop guarding: the test has ended, or a debugger stopped it."""
        self._patience = None
        faulthandler.cancel_dump_traceback_later()

    def _watch(self) -> None:
        pause = threading.Event()
        while not pause.wait(1.0):
            patience = self._patience
            if patience is None:
                continue
            faulthandler.dump_traceback_later(STUCK_S, exit=True, file=self._told_at)
            if patience.is_over:
                os.write(self._told_at, f"\nthe test is ended: {patience.vain}\n".encode())
                faulthandler.dump_traceback(self._told_at, all_threads=True)
                os._exit(OUT_OF_TIME)


def main(command: list[str]) -> int:
    """Run a command as long as something moves in it, and return its status."""
    process = subprocess.Popen(command, process_group=0)
    patience = Patience(STEP_IDLE_S, STEP_BUSY_S, process.pid)
    while True:
        try:
            return process.wait(LOOK_S * 5)
        except subprocess.TimeoutExpired:
            if not patience.is_over:
                continue
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGINT)
            return process.wait()
        print(f"\nended: {patience.vain}", flush=True)
        os.killpg(process.pid, signal.SIGABRT)  # Python says where it stands
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        return OUT_OF_TIME


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
