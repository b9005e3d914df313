"""Token buckets per agent and rule, shared by all sessions and, kept in the state folder, by all processes.

It does not know sessions or calls. A bucket of ``calls`` per ``per_s`` seconds starts full and refills steadily. Time
is the wall clock, which survives a restart: one that goes back refills nothing, and one that was ahead by more than the
bucket's period empties it, so that it is never refilled twice for the same time nor stopped for longer than a period.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from gatewright.base.errors import WorkspaceError
from gatewright.record import Database, PrivateFolder

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from gatewright.policy.rule import RateLimit

FILE_NAME = "rates.sqlite"
_BUSY_S = 1.0
_EPSILON = 1e-9
_FOR_EVER_S = 1e10
_TABLE = """CREATE TABLE IF NOT EXISTS buckets (
  key TEXT PRIMARY KEY, level REAL NOT NULL, at_s REAL NOT NULL
) WITHOUT ROWID"""


class RatesUnavailable(WorkspaceError):
    """The buckets cannot be read or written; calls under a rate are denied while it lasts."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """A level as it was at a moment of the wall clock."""

    level: float
    at_s: float

    def at(self, rule: RateLimit, wall_s: float) -> Bucket:
        """The bucket later, refilled for the time between."""
        passed = wall_s - self.at_s
        if passed < -rule.per_s:
            return Bucket(0.0, wall_s)
        if passed <= 0:
            return self
        return Bucket(min(float(rule.calls), self.level + passed * _pace(rule)), wall_s)


@dataclass(frozen=True, slots=True)
class Rate:
    """One bucket by its key, with its size and pace. ``calls``: how many of them the call takes; a batch takes more."""

    key: str
    rule: RateLimit
    calls: int = 1


def has_room(level: float, calls: int = 1) -> bool:
    """Whether a call, or a batch of so many, fits."""
    return level >= calls - _EPSILON


def wait_s(level: float, rule: RateLimit, calls: int = 1) -> float:
    """How long until it fits; for a bucket that never holds so much, as good as for ever."""
    if rule.calls < calls or _pace(rule) <= 0:
        return _FOR_EVER_S
    return min(max(0.0, (calls - level) / _pace(rule)), _FOR_EVER_S)


def _pace(rule: RateLimit) -> float:
    """Calls per second; a period that is no time refills nothing."""
    return rule.calls / rule.per_s if rule.per_s > 0 else 0.0


class RateBook:
    """The buckets of one workspace; ``path`` None: in memory only. The file appears with the first call taken."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._memory: dict[str, Bucket] = {}
        self._database = None if path is None else _database(path)

    def peek(self, key: str, rule: RateLimit, wall_s: float) -> float:
        """The level now; takes nothing and makes no file. Raises RatesUnavailable."""
        with self._lock:
            if self._database is None:
                held = self._memory.get(key)
            else:
                with self._failing_closed(self._database):
                    connection = self._database.connection(write=False)
                    held = None if connection is None else _read(connection, key)
            return (held or Bucket(float(rule.calls), wall_s)).at(rule, wall_s).level

    def take(self, rates: Sequence[Rate], wall_s: float) -> tuple[Rate, float] | None:
        """Take from every bucket what the call needs, or nothing and the first bucket without room, with its level.

        Raises RatesUnavailable.
        """
        return self._changed(rates, wall_s, -1.0)

    def give_back(self, rates: Sequence[Rate], wall_s: float) -> None:
        """Undo a `take` whose call was never executed. Raises RatesUnavailable."""
        self._changed(rates, wall_s, 1.0)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._database is not None:
                self._database.close()

    def _changed(self, rates: Sequence[Rate], wall_s: float, by: float) -> tuple[Rate, float] | None:
        rates = list({rate.key: rate for rate in rates}.values())
        with self._lock:
            if self._database is None:
                held = {rate.key: self._memory.get(rate.key) for rate in rates}
                changed, short = _moved(rates, held, wall_s, by)
                self._memory.update((rate.key, bucket) for rate, bucket in changed)
                return short
            with self._failing_closed(self._database):
                connection = self._database.connection(write=True)
                assert connection is not None
                connection.execute("BEGIN IMMEDIATE")
                held = {rate.key: _read(connection, rate.key) for rate in rates}
                changed, short = _moved(rates, held, wall_s, by)
                _write(connection, changed)
                connection.execute("COMMIT")
                return short

    @contextmanager
    def _failing_closed(self, database: Database) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, TypeError, ValueError) as error:
            database.close()
            raise RatesUnavailable(f"the rates in `{self._path}` cannot be used: {error}") from error
        except BaseException:
            database.close()  # an open transaction would keep every other process out
            raise


def _database(path: Path) -> Database:
    return Database(
        PrivateFolder(path.parent),
        path.name,
        busy_s=_BUSY_S,
        pragmas=("synchronous = NORMAL",),
        make=lambda connection: connection.execute(_TABLE),
    )


def _moved(
    rates: Iterable[Rate], held: dict[str, Bucket | None], wall_s: float, by: float
) -> tuple[list[tuple[Rate, Bucket]], tuple[Rate, float] | None]:
    """Every bucket a call emptier or fuller; nothing and the first one without room when one of them has none."""
    changed: list[tuple[Rate, Bucket]] = []
    for rate in rates:
        bucket = (held[rate.key] or Bucket(float(rate.rule.calls), wall_s)).at(rate.rule, wall_s)
        if by < 0 and not has_room(bucket.level, rate.calls):
            return [], (rate, bucket.level)
        level = min(float(rate.rule.calls), max(0.0, bucket.level + by * rate.calls))
        changed.append((rate, Bucket(level, bucket.at_s)))
    return changed, None


def _read(connection: sqlite3.Connection, key: str) -> Bucket | None:
    row = connection.execute("SELECT level, at_s FROM buckets WHERE key = ?", (key,)).fetchone()
    return None if row is None else Bucket(*(float(value) for value in cast("tuple[float, float]", row)))


def _write(connection: sqlite3.Connection, changed: Iterable[tuple[Rate, Bucket]]) -> None:
    rows = [(rate.key, bucket.level, bucket.at_s) for rate, bucket in changed]
    connection.executemany("INSERT OR REPLACE INTO buckets VALUES (?, ?, ?)", rows)
