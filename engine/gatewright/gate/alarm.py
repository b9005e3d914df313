"""The alarm of a policy that could not be put in force: what it is, who is told. It reads no policy."""

from __future__ import annotations

import logging
from collections.abc import Callable

from gatewright.base.clock import iso_utc
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.problem import Problem
from gatewright.record.fork import fork_safe_lock

_log = logging.getLogger(__name__)


@frozen
class Alarm:
    """A policy was not taken over, and the last good one stays in force: since when, why, and which file.

    ``raised_wall_s``: seconds since 1970.
    """

    raised_wall_s: float
    problems: tuple[Problem, ...]
    file: str | None = None

    def __str__(self) -> str:
        count = sum(problem.is_error for problem in self.problems)
        errors = "1 error" if count == 1 else f"{count} errors"
        return f"{f'`{self.file}`' if self.file else 'the policy'} has {errors}; the last good policy stays in force"

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: raised, file, problems."""
        problems: list[JsonValue] = [problem.to_json() for problem in self.problems]  # pyright: ignore[reportAssignmentType]
        return {"raised": iso_utc(self.raised_wall_s), "file": self.file, "problems": problems}


OnAlarm = Callable[[Alarm | None], None]
"""Told the alarm when it is raised, None when it is over; from the thread that reloaded."""


class AlarmBell:
    """Holds the alarm while it lasts and tells those who subscribed."""

    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._alarm: Alarm | None = None
        self._listeners: tuple[OnAlarm, ...] = ()

    @property
    def alarm(self) -> Alarm | None:
        """The alarm that lasts now."""
        return self._alarm

    def subscribe(self, listener: OnAlarm) -> Callable[[], None]:
        """Tell ``listener`` from now on; the answer ends it."""
        with self._lock:
            self._listeners = (*self._listeners, listener)
        return lambda: self._unsubscribe(listener)

    def ring(self, alarm: Alarm) -> None:
        """Raise the alarm, in place of one that lasts."""
        self._set(alarm)

    def clear(self) -> None:
        """A good policy is in force again."""
        if self._alarm is not None:
            self._set(None)

    def _set(self, alarm: Alarm | None) -> None:
        with self._lock:
            self._alarm, listeners = alarm, self._listeners
        for listener in listeners:
            try:
                listener(alarm)
            except Exception:  # noqa: BLE001 the listener is the host's code
                _log.exception("a listener to alarms failed")

    def _unsubscribe(self, listener: OnAlarm) -> None:
        with self._lock:
            self._listeners = tuple(other for other in self._listeners if other is not listener)
