"""A clock as a Protocol, so that a caller may bring its own."""

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
    """The machine's clocks, as they are: a decision looks at both."""

    monotonic_s = staticmethod(time.monotonic)
    wall_s = staticmethod(time.time)


def iso_utc(wall_s: float) -> str:
    """RFC 3339 in UTC with milliseconds, e.g. ``2026-01-31T09:30:00.000Z``."""
    moment = datetime.fromtimestamp(wall_s, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
