"""Timing: contestants in turns on the same inputs, single calls, the cost of the timer taken off.

Garbage is collected between blocks and not within.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from tests.bench.row import Figure

T = TypeVar("T")

Ask = Callable[[str, str, str], object]
"""A decision on agent, tool, operation."""

Triple = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Effort:
    """How much to measure. ``cap_s``: what one contestant may take in all; ``quick``: just enough to see it work.

    ``peers``: whether libraries that are no part of the project are measured as well.
    """

    calls: int = 20_000
    block: int = 500
    cap_s: float = 4.0
    quick: bool = False
    peers: bool = True

    def scaled(self, share: float) -> Effort:
        """The same for calls that cost more: fewer of them."""
        calls = max(int(self.calls * share), 20)
        return replace(self, calls=calls, block=max(min(self.block, calls // 4), 5))


FULL = Effort()
QUICK = Effort(calls=200, block=50, cap_s=0.3, quick=True)


@contextmanager
def quiet() -> Generator[None]:
    """No collection of garbage while something is timed."""
    gc.collect()
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def timer_cost(now: Callable[[], int] = time.perf_counter_ns) -> int:
    """What an empty measurement shows, in nanoseconds."""
    samples: list[int] = []
    for _ in range(2_000):
        began = now()
        samples.append(now() - began)
    return sorted(samples)[len(samples) // 2]


def figure(samples: Sequence[int], floor: int = 0) -> Figure:
    """Median and p99 in microseconds of samples in nanoseconds."""
    ordered = sorted(samples)
    median, p99 = ordered[len(ordered) // 2], ordered[min(len(ordered) * 99 // 100, len(ordered) - 1)]
    return Figure(max(median - floor, 1) / 1000, max(p99 - floor, 1) / 1000)


def race(contestants: Mapping[str, Ask], queries: Sequence[Triple], effort: Effort) -> dict[str, Figure]:
    """Decisions of all contestants, block by block in turns; wall time of every single one."""
    return _turns({name: _asking(ask) for name, ask in contestants.items()}, queries, effort, time.perf_counter_ns)


def race_calls(
    contestants: Mapping[str, Callable[[T], object]],
    inputs: Sequence[T],
    effort: Effort,
    now: Callable[[], int] = time.perf_counter_ns,
) -> dict[str, Figure]:
    """Calls with one argument, in turns like ``race``; ``now`` may count the thread's own time instead."""
    return _turns({name: _calling(call) for name, call in contestants.items()}, inputs, effort, now)


def once(action: Callable[[], object], rounds: int = 5) -> Figure:
    """The median of a few rounds of something long, in milliseconds of the process's own time."""
    samples: list[int] = []
    for _ in range(rounds):
        with quiet():
            began = time.process_time_ns()
            action()
            samples.append(time.process_time_ns() - began)
    return Figure(sorted(samples)[len(samples) // 2] / 1e6, None, "ms")


def run(work: Callable[[], Awaitable[T]]) -> T:
    """Run a measurement that awaits."""

    async def main() -> T:
        return await work()

    return asyncio.run(main())


Timed = Callable[[Iterable[T], Callable[[], int], list[int]], None]


def _asking(ask: Ask) -> Timed[Triple]:
    def timed(queries: Iterable[Triple], now: Callable[[], int], samples: list[int]) -> None:
        add = samples.append
        for agent, tool, operation in queries:
            began = now()
            ask(agent, tool, operation)
            add(now() - began)

    return timed


def _calling(call: Callable[[T], object]) -> Timed[T]:
    def timed(inputs: Iterable[T], now: Callable[[], int], samples: list[int]) -> None:
        add = samples.append
        for given in inputs:
            began = now()
            call(given)
            add(now() - began)

    return timed


def _turns(
    contestants: Mapping[str, Timed[T]], inputs: Sequence[T], effort: Effort, now: Callable[[], int]
) -> dict[str, Figure]:
    samples: dict[str, list[int]] = {name: [] for name in contestants}
    spent = dict.fromkeys(contestants, 0)
    names = list(contestants)
    for name in names:
        contestants[name](inputs[: effort.block], now, [])
    for turn, start in enumerate(range(0, effort.calls, effort.block)):
        part = [inputs[i % len(inputs)] for i in range(start, start + effort.block)]
        for name in (*names[turn % len(names) :], *names[: turn % len(names)]):
            if spent[name] > effort.cap_s * 1e9:
                continue
            with quiet():
                began = now()
                contestants[name](part, now, samples[name])
                spent[name] += now() - began
    floor = timer_cost(now)
    return {name: figure(taken, floor) for name, taken in samples.items()}
