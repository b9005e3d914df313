"""A clock that tests move by hand."""

from __future__ import annotations


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
