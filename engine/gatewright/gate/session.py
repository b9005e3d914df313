"""What happened so far in one conversation: counts, last starts, successes, whether the loop goes on.

It does not know the policy: limits are given to it. Every method may be called from any thread.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from gatewright.base.ids import new_id
from gatewright.base.jsonvalue import JsonValue


class Phase(StrEnum):
    """Nothing succeeded yet, something did, or the loop has ended."""

    START = "start"
    OPEN = "open"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Limit:
    """A cap on the calls, or a gap in seconds between the starts, of one tool.

    ``operations`` None: every call of the tool counts; else only those of these operations.
    """

    tool: str
    operations: frozenset[str] | None = None
    calls: int | None = None
    gap_s: float | None = None


@dataclass(frozen=True, slots=True)
class Breach:
    """The limit that a call would break. ``calls``: executed so far. ``wait_s``: how long until it may start."""

    limit: Limit
    calls: int = 0
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Reservation:
    """A slot taken for one execution; ``previous_start_s`` is what releasing it restores."""

    tool: str
    operation: str
    start_s: float
    previous_start_s: float | None


class Session:
    """One conversation of one agent. A slot is taken before execution and given back only if execution never began."""

    def __init__(self, session_id: str | None = None) -> None:
        self.session_id = session_id or new_id("session")
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._starts: dict[tuple[str, str], float] = {}
        self._successes: Counter[tuple[str, str]] = Counter()
        self._ended = False

    @property
    def should_continue(self) -> bool:
        """Whether the agent's loop goes on; False once an exit tool succeeded, until ``begin_turn``."""
        return not self._ended

    @property
    def phase(self) -> Phase:
        """Where the conversation stands."""
        if self._ended:
            return Phase.ENDED
        return Phase.OPEN if self._successes else Phase.START

    def begin_turn(self) -> None:
        """A new loop begins in the same conversation; counts and successes stay."""
        self._ended = False

    def calls(self, tool: str, operations: frozenset[str] | None = None) -> int:
        """How many executions began, or hold a slot."""
        with self._lock:
            return self._count(self._counts, tool, operations)

    def has_succeeded(self, tool: str, operations: frozenset[str] | None = None) -> bool:
        """Whether a call of the tool (with one of these operations) succeeded in this conversation."""
        with self._lock:
            return self._count(self._successes, tool, operations) > 0

    def breach(self, limits: tuple[Limit, ...], now_s: float) -> Breach | None:
        """The first of ``limits`` that a call starting now would break; takes nothing."""
        with self._lock:
            return self._breach(limits, now_s)

    def reserve(self, tool: str, operation: str, limits: tuple[Limit, ...], now_s: float) -> Reservation | Breach:
        """Take a slot unless a limit is broken; test and taking are one step."""
        with self._lock:
            breach = self._breach(limits, now_s)
            if breach is not None:
                return breach
            key = (tool, operation)
            reservation = Reservation(tool, operation, now_s, self._starts.get(key))
            self._counts[key] += 1
            self._starts[key] = now_s
            return reservation

    def release(self, reservation: Reservation) -> None:
        """Give a slot back because execution never began."""
        key = (reservation.tool, reservation.operation)
        with self._lock:
            self._counts[key] -= 1
            if self._starts.get(key) != reservation.start_s:
                return
            if reservation.previous_start_s is None:
                del self._starts[key]
            else:
                self._starts[key] = reservation.previous_start_s

    def succeeded(self, tool: str, operation: str, *, ends_loop: bool = False) -> None:
        """Record a successful call."""
        with self._lock:
            self._successes[tool, operation] += 1
            self._ended = self._ended or ends_loop

    def to_json(self) -> dict[str, JsonValue]:
        """What the app shows: session, phase, should_continue, calls and successes by ``tool.operation``."""
        with self._lock:
            return {
                "session": self.session_id,
                "phase": str(self.phase),
                "should_continue": not self._ended,
                "calls": _by_name(self._counts),
                "successes": _by_name(self._successes),
            }

    def _breach(self, limits: tuple[Limit, ...], now_s: float) -> Breach | None:
        for limit in limits:
            if limit.calls is not None:
                calls = self._count(self._counts, limit.tool, limit.operations)
                if calls >= limit.calls:
                    return Breach(limit, calls=calls)
            if limit.gap_s is not None:
                started = self._last_start(limit)
                if started is not None and now_s - started < limit.gap_s:
                    return Breach(limit, wait_s=limit.gap_s - (now_s - started))
        return None

    def _count(self, counts: Mapping[tuple[str, str], int], tool: str, operations: frozenset[str] | None) -> int:
        return sum(
            count
            for (name, operation), count in counts.items()
            if name == tool and (operations is None or operation in operations)
        )

    def _last_start(self, limit: Limit) -> float | None:
        starts = [
            start
            for (name, operation), start in self._starts.items()
            if name == limit.tool and (limit.operations is None or operation in limit.operations)
        ]
        return max(starts, default=None)


def _by_name(counts: Mapping[tuple[str, str], int]) -> dict[str, JsonValue]:
    return {f"{tool}.{operation}" if operation else tool: n for (tool, operation), n in sorted(counts.items()) if n}
