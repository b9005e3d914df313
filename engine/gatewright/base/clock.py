"""Time as a value that tests move. It does not know what is timed."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Two readings: seconds that only go forward, and the wall clock in seconds since 1970."""

    def monotonic_s(self) -> float:
        """Seconds since an arbitrary start, never going back."""
        ...

    def wall_s(self) -> float:
        """Seconds since 1970-01-01 UTC."""
        ...


class SystemClock:
    """The machine's clocks."""

    def monotonic_s(self) -> float:
        """Seconds since an arbitrary start, never going back."""
        return time.monotonic()

    def wall_s(self) -> float:
        """Seconds since 1970-01-01 UTC."""
        return time.time()


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


def iso_utc(wall_s: float) -> str:
    """RFC 3339 in UTC with milliseconds, e.g. ``2026-01-31T09:30:00.000Z``."""
    moment = datetime.fromtimestamp(wall_s, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
