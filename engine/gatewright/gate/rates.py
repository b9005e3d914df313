"""When calls under a rate were started, per agent and rule, shared by all sessions and, in the state folder, processes.

A rate of ``calls`` per ``per_s`` seconds never lets more than ``calls`` start in any stretch of that length: a start
counts for ``per_s`` seconds. Time is the wall clock, which survives a restart. One that goes back opens nothing: a
start that lies ahead of it counts as one of now. Up to 200 calls every start is kept; of a rate with more, starts are
kept in 200 steps of the period, and those of one step count until the last of them is over, so that the file stays
small and a call may have to wait for half a percent of the period longer. A start that is over is kept too, since an
edit may ask for a longer period; beyond 1,000 of them, neighbours are kept as one that is as old as the latest, within
a few percent of its age.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from gatewright.base.errors import WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.compile.rule_test import Rate
from gatewright.policy.rule import RateLimit
from gatewright.record.database import Connection, Database

FILE_NAME = "rates.sqlite"
_BUSY_S = 1.0
_FOR_EVER_S = 1e10
_STEPS = 200
_MOST_OVER = 1_000
_NEAR = 1 / 50
"""Of its age: how near to a start that is over an earlier one may lie to be kept with it."""
_TABLE = """CREATE TABLE IF NOT EXISTS starts (
  key TEXT NOT NULL, step_s REAL NOT NULL, last_s REAL NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (key, step_s)
) WITHOUT ROWID"""
_COUNTING = "SELECT step_s, last_s, count FROM starts WHERE key = ? AND last_s > ? ORDER BY last_s"
_OVER = "SELECT step_s, last_s, count FROM starts WHERE key = ? AND last_s <= ? ORDER BY last_s DESC"
_ADD = """INSERT INTO starts VALUES (?1, ?2, ?3, ?4)
  ON CONFLICT DO UPDATE SET count = count + ?4, last_s = max(last_s, ?3)"""


class RatesUnavailable(WorkspaceError):
    """The starts cannot be read or written; calls under a rate are denied while it lasts."""


@frozen
class Window:
    """What counts against a rate of ``calls`` at some moment: pairs of seconds yet and how many, soonest over first."""

    calls: int
    starts: tuple[tuple[float, int], ...] = ()

    @property
    def left(self) -> int:
        """How many calls fit now."""
        return max(0, self.calls - sum(count for _, count in self.starts))

    def wait_s(self, calls: int = 1) -> float:
        """How long until so many calls fit together, 0 when they do now; as good as for ever when they never will."""
        over = calls - self.calls + sum(count for _, count in self.starts)
        if over <= 0:
            return 0.0
        if calls <= self.calls:
            for left_s, count in self.starts:
                over -= count
                if over <= 0:
                    return min(left_s, _FOR_EVER_S)
        return _FOR_EVER_S

    def after(self, seconds: float) -> Window:
        """The same a while later, if nothing is started meanwhile."""
        return Window(self.calls, tuple((left_s - seconds, count) for left_s, count in self.starts if left_s > seconds))


class RateBook:
    """The rates of one workspace; ``path`` None: in memory only. The file appears with the first call taken."""

    def __init__(self, path: Path | None = None) -> None:
        self._database = Database(
            path,
            what="the rates in",
            refusal=RatesUnavailable,
            busy_s=_BUSY_S,
            pragmas=("synchronous = NORMAL",),
            make=lambda connection: connection.execute(_TABLE),
        )

    def peek(self, key: str, rule: RateLimit, wall_s: float) -> Window:
        """What counts now; takes nothing and makes no file. Raises RatesUnavailable."""
        with self._database.reading() as connection:
            return Window(rule.calls) if connection is None else _window(connection, key, rule, wall_s)

    def take(self, rates: Sequence[Rate], wall_s: float) -> tuple[Rate, float] | None:
        """Record a start under every rate, or nothing and the first one without room, with the seconds to wait.

        Raises RatesUnavailable.
        """
        with self._database.writing() as connection:
            for rate in rates:
                wait_s = _window(connection, rate.key, rate.rule, wall_s).wait_s(rate.calls)
                if wait_s > 0:
                    return rate, wait_s
            for rate in {rate.key: rate for rate in rates}.values():
                _tidy(connection, rate, wall_s)
                connection.execute(_ADD, (rate.key, _step_s(rate.rule, wall_s), wall_s, rate.calls))
        return None

    def give_back(self, rates: Iterable[Rate], wall_s: float, ago_s: float) -> None:
        """Undo a `take` of so many seconds ago whose call was never executed. Raises RatesUnavailable.

        What goes is the oldest start that counts, whoever's: the others count for as long as those that stay in truth.
        """
        with self._database.writing() as connection:
            for rate in {rate.key: rate for rate in rates}.values():
                if 0 < rate.rule.per_s <= ago_s:
                    continue
                _tidy(connection, rate, wall_s)
                _remove(connection, rate, wall_s)

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()


def _window(connection: Connection, key: str, rule: RateLimit, wall_s: float) -> Window:
    """A start that lies ahead of the clock is one of now."""
    lasts_s = _lasts_s(rule)
    found: list[tuple[float, int]] = []
    has_starts = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'starts'").fetchone() is not None
    # not in a file of an older version that was only looked at so far
    for _, last_s, count in connection.execute(_COUNTING, (key, wall_s - lasts_s)) if has_starts else ():
        if not (isinstance(last_s, float) and math.isfinite(last_s) and isinstance(count, int) and count >= 0):
            raise ValueError("it holds a start that nobody made")
        left_s = min(last_s, wall_s) + lasts_s - wall_s
        if left_s > 0:
            found.append((left_s, count))
    return Window(rule.calls, tuple(found))


def _lasts_s(rule: RateLimit) -> float:
    """How long a start counts."""
    return rule.per_s if rule.per_s > 0 else math.inf


def _step_s(rule: RateLimit, wall_s: float) -> float:
    """What starts are kept together by."""
    if rule.calls <= _STEPS or rule.per_s <= 0:
        return wall_s
    step_s = rule.per_s / _STEPS
    return wall_s // step_s * step_s


def _tidy(connection: Connection, rate: Rate, wall_s: float) -> None:
    """Bring what lies ahead of the clock to now, so that it ends, and have few rows of what is over."""
    connection.execute("UPDATE starts SET last_s = ?2 WHERE key = ?1 AND last_s > ?2", (rate.key, wall_s))
    over = rate.key, wall_s - _lasts_s(rate.rule)
    (rows,) = connection.execute("SELECT count(*) FROM starts WHERE key = ? AND last_s <= ?", over).fetchone()
    if rows <= _MOST_OVER:
        return
    (into_s, latest_s, _), *earlier = connection.execute(_OVER, over).fetchall()
    for step_s, last_s, count in earlier:
        if latest_s - last_s > (wall_s - latest_s) * _NEAR:
            into_s, latest_s = step_s, last_s
            continue
        connection.execute("DELETE FROM starts WHERE key = ? AND step_s = ?", (rate.key, step_s))
        connection.execute(
            "UPDATE starts SET count = count + ? WHERE key = ? AND step_s = ?", (count, rate.key, into_s)
        )


def _remove(connection: Connection, rate: Rate, wall_s: float) -> None:
    left = rate.calls
    for step_s, _, count in connection.execute(_COUNTING, (rate.key, wall_s - _lasts_s(rate.rule))).fetchall():
        gone = min(left, count)
        connection.execute("UPDATE starts SET count = count - ? WHERE key = ? AND step_s = ?", (gone, rate.key, step_s))
        left -= gone
    connection.execute("DELETE FROM starts WHERE key = ? AND count <= 0", (rate.key,))
