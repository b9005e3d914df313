"""What earlier calls mean for the next one: calls of the session, starts under a rate, results of pure tools.

A call begins when the audit log commits its row together with the decision that allows it or, after a question, the
answer's row with that decision; only such rows count. If a call is given up just before its tool runs, a row takes its
count back; the row of a session's deletion takes back all of them. The transaction that writes these rows tests the
limits once more, so that neither concurrent nor killed processes exceed them.

A rate of ``calls`` per ``per_s`` seconds, for all sessions and, in the state folder, processes, never lets more than
``calls`` start in any stretch of that length. Time is the wall clock, which survives a restart. Setting the clock back
opens nothing, since a future start counts as present. Up to 200 calls every start is stored; a larger rate stores
starts in 200 steps of the period, and those of one step count until the last of them expires, so that the file stays
small and a call may wait half a percent of the period longer. Expired starts stay too, since an edit may lengthen the
period; beyond 1,000 of them, neighbours merge into one as old as the latest, within a few percent of its age.

A result of a pure tool, scrubbed and normalised but not cut, is used again for the same tool (the same registered
object), operation, agent, user, way of scrubbing and canonical arguments. Failures are not stored.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import cast
from weakref import WeakKeyDictionary

from gatewright.base.amount import Clock
from gatewright.base.errors import WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.compile.rule_test import Rate
from gatewright.gate.chain import LogRows, RowKind, read_object
from gatewright.gate.session import NO_USE, Mark, Reservation, Session, SessionFacts, Use, keys_of
from gatewright.gate.sessiondata import call_words
from gatewright.policy.rule import RateLimit
from gatewright.policy.verdict import Verdict
from gatewright.record.database import Connection, Database
from gatewright.record.process import fork_safe_lock

COUNTS, SOURCES, OUTSIDE = "counts", "sources", "outside"
"""The fields in a call's row for its uses of the session: the number for each operation, the sources, the mark."""
QUESTION = "question"
"""The field that names the question of a suspended call; a row with the answer to it begins no call."""
_KINDS = "kind = 'ToolInvoked' OR kind = 'ApprovalResolved' OR kind = 'ToolAbandoned' OR kind = 'SessionDeleted'"
INDEX = f"CREATE INDEX IF NOT EXISTS began ON rows (session) WHERE {_KINDS}"
"""An index of the few rows that may count: one for each call without a question.

A log of an older version gets it later.
"""
SESSION_ROWS = f"""SELECT seq, time, kind, agent, tool, operation, call_id, body, (
    SELECT body FROM rows AS later WHERE later.seq > rows.seq AND later.seq < rows.seq + 32
    AND later.call_id = rows.call_id AND later.kind = 'PolicyDecision' ORDER BY later.seq LIMIT 1
  ) FROM rows WHERE session = ? AND seq > ? AND ({_KINDS}) ORDER BY seq"""
"""Each of them with the decision committed together with it."""
_MOST_SESSIONS = 1_000
_MOST_TIMES = 2**53


class Counts:
    """The sessions whose calls a writer of the log has counted; the most recent ones stay."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], Counted] = OrderedDict()

    def refuses(self, slot: Reservation, rows: LogRows) -> bool:
        """Tell whether the log, as of this transaction, objects to a call that is about to begin."""
        if slot.objection is not None:
            slot.refusal = slot.objection(rows)
        if slot.test is None or slot.refusal is not None:
            return slot.refusal is not None
        session = slot.session
        key = session.log_name, session.log_agent
        counted = self._kept[key] = self._kept.pop(key, None) or Counted()
        while len(self._kept) > _MOST_SESSIONS:
            self._kept.popitem(last=False)
        counted.read(rows, session)
        slot.refusal = slot.test(SessionFacts(session.session_id, counted.uses))
        session.is_counted = session.is_counted and slot.refusal is None
        return slot.refusal is not None

    def begin(self, slot: Reservation, call_id: str, tool: str, seq: int, time: str) -> None:
        """Count the new row of a call without objections, so that it need not be read again."""
        session = slot.session
        self._kept[session.log_name, session.log_agent].take(seq, call_id, tool, slot, time)

    def clear(self) -> None:
        """Forget everything: the counted rows were not written."""
        self._kept.clear()


class Counted:
    """The calls of one session up to a row. ``uses``: their number, and the wall time of the latest start.

    A call of an outside tool counts as one that brought its result, unless it was abandoned: after a crash nobody
    knows.
    """

    def __init__(self) -> None:
        self.uses: dict[str, dict[tuple[str, str], Use]] = {}
        self._marks: dict[str, Mark] = {}
        self._last: dict[tuple[str, tuple[str, str]], tuple[str, float | None]] = {}
        """The call of each latest start, and the start before it."""
        self._seq = 0

    def read(self, rows: LogRows, session: Session) -> None:
        """Count the rows that were written since."""
        found = rows.of_session(session.log_name, self._seq)
        for seq, time, kind, agent, tool, operation, call_id, body, decision in found:
            self._seq = seq
            if session.log_agent and agent != session.log_agent:
                continue
            said = read_object(body) or {}
            if kind == RowKind.SESSION_DELETED:
                self.uses.clear()
                self._marks.clear()
                self._last.clear()
            elif kind == RowKind.TOOL_ABANDONED:
                self._marks.pop(call_id, None)
                if said.get("started") is False:
                    self._take(call_id, tool, *_uses_in(said, operation), None)
            elif QUESTION not in said and _begins(read_object(decision) or {}):
                self._take(call_id, tool, *_uses_in(said, operation), _wall_s(time) or 0.0)
                if said.get(OUTSIDE) is True:
                    self._marks[call_id] = Mark(call_words(tool, operation), call_id, _wall_s(time) or 0.0)

    @property
    def mark(self) -> Mark | None:
        """The first result from outside."""
        return next(iter(self._marks.values()), None)

    def take(self, seq: int, call_id: str, tool: str, slot: Reservation, time: str) -> None:
        """Count the next row, which begins that call."""
        self._seq = seq
        self._take(call_id, tool, slot.operations, slot.sources, _wall_s(time) or 0.0)

    def _take(
        self, call_id: str, tool: str, times: Mapping[str, object], sources: Iterable[str], started_s: float | None
    ) -> None:
        """Count the uses of a call that starts; without a start, take them back."""
        uses = self.uses.setdefault(tool, {})
        for key in keys_of(times, sources):
            use, count = uses.get(key, NO_USE), times[key[0]]
            if type(count) is int and 0 < count < _MOST_TIMES:
                if started_s is None:
                    last, before_s = self._last.get((tool, key), ("", None))
                    uses[key] = Use(max(0, use.calls - count), started_s=before_s if last == call_id else use.started_s)
                    continue
                if is_later := use.started_s is None or started_s > use.started_s:
                    self._last[tool, key] = call_id, use.started_s
                uses[key] = Use(use.calls + count, started_s=started_s if is_later else use.started_s)


def _begins(decision: Mapping[str, object]) -> bool:
    """Tell whether a call that got the decision counts: allowed, or asked in observe mode, which nobody answers."""
    verdict = decision.get("verdict")
    return verdict == Verdict.ALLOW or (verdict == Verdict.ASK and decision.get("enforced") is False)


def count_in(session: Session, rows: LogRows, clock: Clock) -> None:
    """Count in a session all its calls in the log."""
    counted = Counted()
    counted.read(rows, session)
    session.count(counted.uses, clock, counted.mark)


def _uses_in(said: Mapping[str, object], operation: str) -> tuple[Mapping[str, object], Iterable[str]]:
    """Read the uses that a row records for its call: the number for each operation, and the sources that it goes to."""
    counts, named = said.get(COUNTS, {operation: 1}), said.get(SOURCES)
    times = cast("dict[str, object]", counts) if isinstance(counts, dict) else {}
    return times, map(str, cast("list[object]", named)) if isinstance(named, list) else ()


def _wall_s(time: str) -> float | None:
    try:
        return datetime.fromisoformat(time).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


FILE_NAME = "rates.sqlite"
_BUSY_S = 1.0
_FOR_EVER_S = 1e10
_STEPS = 200
_MOST_OVER = 1_000
_NEAR = 1 / 50
"""The share of its age within which an earlier expired start is merged into the next."""
_TABLE = """CREATE TABLE IF NOT EXISTS starts (
  key TEXT NOT NULL, step_s REAL NOT NULL, last_s REAL NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (key, step_s)
) WITHOUT ROWID"""
_COUNTING = "SELECT step_s, last_s, count FROM starts WHERE key = ? AND last_s > ? ORDER BY last_s"
_OVER = "SELECT step_s, last_s, count FROM starts WHERE key = ? AND last_s <= ? ORDER BY last_s DESC"
_ADD = """INSERT INTO starts VALUES (?1, ?2, ?3, ?4)
  ON CONFLICT DO UPDATE SET count = count + ?4, last_s = max(last_s, ?3)"""


class RatesUnavailable(WorkspaceError):
    """The starts cannot be read or written; meanwhile calls under a rate are denied."""


@frozen
class Window:
    """The starts that count against a rate of ``calls`` at some moment: pairs of remaining seconds and number.

    The soonest end comes first.
    """

    calls: int
    starts: tuple[tuple[float, int], ...] = ()

    @property
    def left(self) -> int:
        """The number of calls that fit now."""
        return max(0, self.calls - sum(count for _, count in self.starts))

    def wait_s(self, calls: int = 1) -> float:
        """The seconds until so many calls fit together; 0 if they fit now, almost infinite if they never will."""
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
        """The window a while later, without further starts."""
        return Window(self.calls, tuple((left_s - seconds, count) for left_s, count in self.starts if left_s > seconds))


class RateBook:
    """The rates of one workspace; ``path`` None: in memory only. The first start creates the file."""

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
        """The starts that count now; nothing is recorded, and no file is created. Raises RatesUnavailable."""
        with self._database.reading() as connection:
            return Window(rule.calls) if connection is None else _window(connection, key, rule, wall_s)

    def take(self, rates: Sequence[Rate], wall_s: float) -> tuple[Rate, float] | None:
        """Record a start under every rate; or none, and return the first rate without room with the seconds to wait.

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
        """Undo a `take` of so many seconds ago whose call never ran. Raises RatesUnavailable.

        The oldest counting start is removed, whichever it is: the remaining ones count as long as those that really
        stay.
        """
        with self._database.writing() as connection:
            for rate in {rate.key: rate for rate in rates}.values():
                if 0 < rate.rule.per_s <= ago_s:
                    continue
                _tidy(connection, rate, wall_s)
                _remove(connection, rate, wall_s)

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _window(connection: Connection, key: str, rule: RateLimit, wall_s: float) -> Window:
    """Read the starts that count; a future start is treated as present."""
    lasts_s = _lasts_s(rule)
    found: list[tuple[float, int]] = []
    has_starts = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'starts'").fetchone() is not None
    # an older version's file that was never written has no table
    for _, last_s, count in connection.execute(_COUNTING, (key, wall_s - lasts_s)) if has_starts else ():
        if not (isinstance(last_s, float) and math.isfinite(last_s) and isinstance(count, int) and count >= 0):
            raise ValueError("it contains an impossible start")
        left_s = min(last_s, wall_s) + lasts_s - wall_s
        if left_s > 0:
            found.append((left_s, count))
    return Window(rule.calls, tuple(found))


def _lasts_s(rule: RateLimit) -> float:
    """The seconds for which a start counts."""
    return rule.per_s if rule.per_s > 0 else math.inf


def _step_s(rule: RateLimit, wall_s: float) -> float:
    """The step that a start is merged into."""
    if rule.calls <= _STEPS or rule.per_s <= 0:
        return wall_s
    step_s = rule.per_s / _STEPS
    return wall_s // step_s * step_s


def _tidy(connection: Connection, rate: Rate, wall_s: float) -> None:
    """Move future starts to now, so that they expire, and merge expired ones."""
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


MAX_RESULTS = 128
MAX_BYTES = 4 * 1024 * 1024

Key = tuple[object, ...]
"""The key by which two calls of a session are equal."""


@frozen
class KeptResult:
    """A result: the text for the model before cutting, its bytes, their hash.

    ``raw``: the tool's own value.
    """

    output: str
    normal: bytes
    output_hash: str
    output_bytes: int
    raw: JsonValue | bytes = None

    @property
    def size(self) -> int:
        """Its approximate size in bytes."""
        return len(self.output) + 2 * len(self.normal)


class _Shelf:
    """The results of one session, the least recently used first."""

    def __init__(self) -> None:
        self.rows: OrderedDict[Key, KeptResult] = OrderedDict()
        self.size = 0

    def put(self, key: Key, kept: KeptResult) -> None:
        old = self.rows.pop(key, None)
        self.size += kept.size - (old.size if old else 0)
        self.rows[key] = kept
        while len(self.rows) > MAX_RESULTS or self.size > MAX_BYTES:
            self.size -= self.rows.popitem(last=False)[1].size


class PureResults:
    """The results of all sessions of one gate; they end with their session."""

    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._shelves: WeakKeyDictionary[Session, _Shelf] = WeakKeyDictionary()

    def find(self, session: Session, key: Key) -> KeptResult | None:
        """The result of an earlier, equal call of the session."""
        with self._lock:
            shelf = self._shelves.get(session)
            kept = shelf.rows.get(key) if shelf is not None else None
            if shelf is not None and kept is not None:
                shelf.rows.move_to_end(key)
            return kept

    def keep(self, session: Session, key: Key, kept: KeptResult) -> None:
        """Store the result of a successful call, unless it is too large."""
        if kept.size > MAX_BYTES // 4:
            return
        with self._lock:
            self._shelves.setdefault(session, _Shelf()).put(key, kept)
