"""Clocks that tests move by hand."""

from __future__ import annotations

import asyncio

import pytest


class ManualClock:
    """A clock that stands still until ``advance``."""

    def __init__(self, wall_s: float = 1_700_000_000.0) -> None:
        self._monotonic_s = 0.0
        self._wall_s = wall_s

    def monotonic_s(self) -> float:
        """Seconds advanced so far."""
        return self._monotonic_s

    def wall_s(self) -> float:
        """The start plus the seconds advanced so far."""
        return self._wall_s

    def advance(self, seconds: float) -> None:
        """Move both readings forward by ``seconds``."""
        self._monotonic_s += seconds
        self._wall_s += seconds


class LoopClock:
    """The time of a loop, which a test lets pass by: a limit of minutes is tried in no time, on a busy machine too."""

    def __init__(self, loop: asyncio.AbstractEventLoop, patch: pytest.MonkeyPatch) -> None:
        self._real, self._passed_s = loop.time, 0.0
        patch.setattr(loop, "time", self.now)

    def now(self) -> float:
        """The time for the loop."""
        return self._real() + self._passed_s

    def pass_by(self, seconds: float) -> None:
        """Move the time forward."""
        self._passed_s += seconds
