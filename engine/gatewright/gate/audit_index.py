"""The calls of an audit log, searchable by filter; even a million rows are scanned only once.

The reader builds the index, in memory and by SQLite alone, newest rows first. So writing a row costs no more, it works
on any existing log, and nobody can make it omit a row. More than 450 lines, since one table answers every question.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from gatewright.base.amount import iso_utc
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.printable import printable
from gatewright.gate.audit import SELECT_ROWS, audit_database, has_rows
from gatewright.gate.chain import CALL_ENDS, AuditRow, RowKind
from gatewright.policy.observe import Comparison, NotedCount
from gatewright.record.database import Connection

AT_ONCE = 50_000
"""The number of rows to read at a time, which takes about an eighth of a second."""
_AT_A_TIME = 500
_FEW, _SHORT, _COMMAND = 8, 100, 1_000
_COMMANDS = frozenset({"command", "cmd"})
"""The names of the argument by which tools run a command."""
_TELLING = ("path", "file", "file_path", "url", "name", "label", "query", "pattern")
"""The names of arguments that tell a call from others of its tool, the most telling first."""
_ENDS = ", ".join(f"'{kind}'" for kind in CALL_ENDS)
_BODY = "CASE WHEN json_valid(body) THEN body ELSE '{}' END"
_WALL_S = "CASE WHEN time GLOB '????-??-??T*' THEN round((julianday(time) - 2440587.5) * 86400.0, 3) END"
_IS_STEP = "kind = 'ToolInvoked' AND instr(CAST(body AS TEXT), '\"within\"')"
_IS_CHILD = "kind = 'ToolInvoked' AND instr(CAST(body AS TEXT), '\"callers\"')"
_BESIDE = "\n"
_WAITS = "kind = 'ToolAbandoned' AND instr(CAST(body AS TEXT), '\"question\"')"
_LATER = "CASE WHEN excluded.seq > last THEN coalesce(excluded.{0}, {0}) ELSE coalesce({0}, excluded.{0}) END"
_IS_NOTED = f"kind = 'PolicyDecision' AND instr(CAST(body AS TEXT), '\"enforced\"') AND {_BODY} ->> '$.enforced' = 0"
_TABLE = """CREATE TEMP TABLE calls (
  seq INTEGER PRIMARY KEY, last INTEGER, wall_s REAL, kind TEXT, call_id TEXT UNIQUE, agent TEXT, session TEXT,
  tool TEXT, operation TEXT, decided INTEGER, verdict TEXT, reason TEXT, client TEXT, ended TEXT, elapsed_ms REAL,
  within TEXT, step INTEGER, noted TEXT, callers TEXT, answer TEXT, grant_id TEXT
)"""
_BY_WITHIN = "CREATE INDEX temp.calls_within ON calls (within) WHERE within IS NOT NULL"
_READ = f"""INSERT INTO calls
  SELECT seq, seq, {_WALL_S}, kind, CASE call_id WHEN '' THEN '#' || seq ELSE call_id END,
    CAST(agent AS TEXT), CAST(session AS TEXT), CAST(tool AS TEXT), CAST(operation AS TEXT),
    CASE kind WHEN 'PolicyDecision' THEN seq ELSE 0 END,
    CASE kind WHEN 'PolicyDecision' THEN CAST({_BODY} ->> '$.verdict' AS TEXT) END,
    CASE WHEN call_id = '' THEN CAST(body AS TEXT)
      WHEN kind = 'PolicyDecision' THEN CAST({_BODY} ->> '$.reason' AS TEXT) END,
    CASE kind WHEN 'ToolInvoked' THEN CAST({_BODY} ->> '$.client' AS TEXT) END,
    CASE WHEN kind IN ({_ENDS}) THEN CASE WHEN {_WAITS} THEN '' ELSE kind END END,
    CASE WHEN kind IN ({_ENDS}) THEN CAST({_BODY} ->> '$.elapsed_ms' AS REAL) END,
    CASE WHEN {_IS_STEP} THEN CAST({_BODY} ->> '$.within' AS TEXT) END,
    CASE WHEN {_IS_STEP} THEN CAST({_BODY} ->> '$.step' AS INTEGER) END,
    CASE WHEN {_IS_NOTED} THEN json_array({_BODY} ->> '$.stage', coalesce({_BODY} ->> '$.rule', '')) END,
    CASE WHEN {_IS_CHILD} THEN (SELECT group_concat(value, '{_BESIDE}') FROM json_each({_BODY}, '$.callers')) END,
    CASE kind WHEN 'ApprovalRequested' THEN '' WHEN 'ApprovalResolved' THEN CAST(body AS TEXT) END,
    CASE WHEN kind = 'PolicyDecision' AND instr(CAST(body AS TEXT), '"grant"')
      THEN CAST({_BODY} ->> '$.grant' AS TEXT) END
  FROM main.rows WHERE seq BETWEEN ? AND ? ORDER BY seq
  ON CONFLICT (call_id) DO UPDATE SET seq = min(seq, excluded.seq), last = max(last, excluded.seq),
    wall_s = min(wall_s, excluded.wall_s), kind = CASE WHEN excluded.seq < seq THEN excluded.kind ELSE kind END,
    decided = max(decided, excluded.decided),
    verdict = CASE WHEN excluded.decided > decided THEN excluded.verdict ELSE verdict END,
    reason = CASE WHEN excluded.decided > decided THEN excluded.reason ELSE reason END,
    client = coalesce(excluded.client, client), ended = {_LATER.format("ended")},
    elapsed_ms = {_LATER.format("elapsed_ms")},
    within = coalesce(excluded.within, within), step = coalesce(excluded.step, step),
    noted = coalesce(noted, excluded.noted), callers = coalesce(excluded.callers, callers),
    answer = {_LATER.format("answer")}, grant_id = coalesce(excluded.grant_id, grant_id)"""
"""A call's first row represents it, and a row without a call represents itself; a call that asked is decided twice, and
the last decision counts. A composition that waits with a step has no end.
"""
_OLDER = """SELECT min(seq), count(*) FROM (
  SELECT seq FROM main.rows WHERE seq < ?1 OR (?2 AND seq = ?1) ORDER BY seq DESC LIMIT ?3)"""
_CALLS = """SELECT calls.seq, last, wall_s, CAST(calls.kind AS TEXT), calls.call_id, calls.agent, calls.session,
    calls.tool, calls.operation, coalesce(verdict, ''), coalesce(reason, ''), coalesce(client, ''),
    coalesce(ended, ''), elapsed_ms, coalesce(within, ''), step,
    (SELECT count(step) FROM calls AS steps WHERE steps.within = calls.call_id), coalesce(callers, ''),
    (SELECT count(*) - count(step) FROM calls AS started WHERE started.within = calls.call_id),
    answer, CASE rows.kind WHEN 'ToolInvoked' THEN CAST(rows.body AS TEXT) END
  FROM calls LEFT JOIN main.rows ON rows.seq = calls.seq
  WHERE calls.seq IN (SELECT value FROM json_each(?)) ORDER BY calls.seq DESC"""
_CHANGED = """SELECT min(ifnull(min(calls.seq), ?1), ?1) FROM main.rows JOIN calls ON calls.call_id = rows.call_id
  WHERE rows.seq >= ?1"""
_NUMBER = "SELECT seq FROM calls WHERE call_id = ?"
_WITH_STEPS = """calls.call_id IN (WITH RECURSIVE family (id) AS (
  VALUES (?) UNION SELECT calls.call_id FROM calls JOIN family ON calls.within = family.id) SELECT id FROM family)"""
_TALLY = "SELECT agent, verdict, count(*) FROM calls WHERE wall_s >= ? AND verdict <> '' GROUP BY 1, 2"
_USED = "SELECT DISTINCT agent, tool, operation FROM calls WHERE wall_s >= ? AND verdict IN ('allow', 'ask')"
_BY_TOOL = """SELECT agent, tool, coalesce(client, '') <> '', max(wall_s), sum(wall_s >= ?1) FROM calls
  WHERE wall_s >= ?2 AND verdict <> '' GROUP BY 1, 2, 3"""
_NOTED = """SELECT verdict, noted ->> 0, noted ->> 1, count(*) FROM calls WHERE noted IS NOT NULL AND {}
  GROUP BY 1, 2, 3 ORDER BY 4 DESC, 1, 2, 3"""
_GRANTS = "SELECT grant_id, count(*) FROM calls WHERE wall_s >= ? AND grant_id <> '' GROUP BY 1"
_TOLD = """instr(lower(calls.agent || ' ' || calls.tool || '.' || calls.operation || ' ' || coalesce(calls.reason, '')
  || ' ' || coalesce(calls.client, '') || ' ' || coalesce(calls.answer, '')), ?)"""
_SENT = "SELECT 1 FROM main.rows WHERE rows.seq = calls.seq AND instr(lower(CAST(rows.body AS TEXT)), ?)"
_STATES = {
    "asked": "(calls.answer IS NOT NULL OR calls.verdict = 'ask')",
    "failed": "calls.verdict = 'allow' AND calls.ended IN ('ToolFailed', 'ToolTimedOut', 'ToolAbandoned')",
    "unreached": "calls.verdict = 'ask' AND calls.answer IS NULL AND calls.ended = 'ToolDenied'",
}
_CHOICES = "SELECT DISTINCT agent, tool, operation, client FROM calls"


@frozen
class AuditFilter:
    """A filter of calls; an empty part fits every call.

    ``tool``: a tool, or one operation as in ``file.append``; ``words``: each must appear in the reason, in any case;
    ``since_s`` and ``until_s``: seconds since 1970, the first included, the second not; ``within``: the id of a call,
    to find it with its steps at any depth; ``noted``: what observe mode passed, ``*`` or the `NotedCount.key` of some;
    ``text``: words that each appear anywhere in what the log tells of the call, its arguments too; ``state``: ``asked``
    for what asked first, ``failed`` for what ran to no good end, ``unreached`` for what asked with nobody to answer.
    """

    agent: str = ""
    tool: str = ""
    verdict: str = ""
    client: str = ""
    words: tuple[str, ...] = ()
    since_s: float | None = None
    until_s: float | None = None
    within: str = ""
    noted: str = ""
    text: tuple[str, ...] = ()
    state: str = ""

    def condition(self) -> tuple[str, list[str | float]]:
        """The filter as SQL over the index, with its values."""
        parts, values = ["1"], list[str | float]()
        if self.tool:
            parts.append("? IN (calls.tool, calls.tool || '.' || calls.operation)")
            values.append(self.tool)
        for column in ("agent", "verdict", "client"):
            if wanted := getattr(self, column):
                parts.append(f"calls.{column} = ?")
                values.append(wanted)
        for word in self.words:
            parts.append("instr(lower(calls.reason), ?)")
            values.append(word.lower())
        for word in self.text:
            parts.append(f"({_TOLD} OR EXISTS ({_SENT}))")
            values += [word.lower()] * 2
        if self.state:
            parts.append(_STATES[self.state])
        for moment, test in ((self.since_s, ">="), (self.until_s, "<")):
            if moment is not None:
                parts.append(f"calls.wall_s {test} ?")
                values.append(moment)
        if self.noted == "*":
            parts.append("calls.noted IS NOT NULL")
        elif self.noted:
            parts.append("calls.verdict || calls.noted = ?")
            values.append(self.noted)
        if self.within:
            parts.append(_WITH_STEPS)
            values.append(self.within)
        return " AND ".join(parts), values


@frozen
class LoggedCall:
    """A call in the log, or a row without a call (``kind`` says which).

    ``seq`` and ``last``: its first and its last row so far; ``wall_s``: seconds since 1970, None if unreadable;
    ``verdict``: allow, ask, deny, or empty; ``ended``: the kind of its final row, or empty; ``elapsed_ms``: the time of
    the tool; ``within`` and ``step``: for a step of a composition, the id of the outer call and the step's number from
    0, otherwise empty and None; ``steps``: the number of its own steps, in the rows read so far; ``callers``: of a
    sub-agent, the outermost first, and ``within`` then the call that started it; ``started``: the number of calls that
    a sub-agent made which this call started; ``answer``: for a call that asked the JSON text of the operator's answer,
    empty until then, otherwise None; ``arguments``: those that the log keeps, shortened.
    """

    seq: int
    last: int
    wall_s: float | None
    kind: str
    call_id: str
    agent: str
    session: str
    tool: str
    operation: str
    verdict: str
    reason: str
    client: str
    ended: str
    elapsed_ms: float | None
    within: str = ""
    step: int | None = None
    steps: int = 0
    callers: tuple[str, ...] = ()
    started: int = 0
    answer: str | None = None
    arguments: str = ""

    @property
    def is_call(self) -> bool:
        """True for a call."""
        return bool(self.call_id)

    @property
    def called(self) -> str:
        """`tool.operation`, for a batch `tool.one, other`; for a row without a call, its kind."""
        if not self.is_call:
            return self.kind
        operation = self.operation
        if operation.startswith("["):
            with suppress(ValueError, RecursionError):
                operation = printable(", ".join(map(str, json.loads(operation))))
        return f"{self.tool}.{operation}" if operation else self.tool

    @property
    def whose(self) -> str:
        """The agent in words, with those that started it."""
        return ", started by ".join((self.agent, *reversed(self.callers)))

    def to_json(self) -> dict[str, JsonValue]:
        """Every field by its name, the time as RFC 3339 in UTC."""
        fields = {name: getattr(self, name) for name in LoggedCall.__match_args__ if name != "wall_s"}
        fields["callers"] = [*self.callers]
        return {"time": None if self.wall_s is None else iso_utc(self.wall_s), **fields}


@frozen
class AuditChoices:
    """The agents, the tools with their operations, and the clients that a log names."""

    agents: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()


@frozen
class CallCount:
    """The number of calls with a verdict in one stretch of time, counted from 0."""

    stretch: int
    verdict: str
    count: int


@frozen
class ToolCalls:
    """The calls of a tool by an agent. ``by_client``: those that a client sent; ``last_s``: the time of the last one,
    in seconds since 1970; ``today``: their number since the begin of the day.
    """

    agent: str
    tool: str
    by_client: bool
    last_s: float
    today: int


class AuditIndex:
    """The index of the log in a state folder; fill it with `read_older` until that returns False, update it with
    `read_newer`.

    One thread at a time may use it. Methods raise AuditUnavailable for an unreadable log.
    """

    def __init__(self, state: Path) -> None:
        self._database = audit_database(state)
        self._connection: Connection | None = None
        self._oldest = self._newest = self._count = 0
        """The numbers of the rows read, from the first up to the second; 0 and a number: all below it are unread."""
        self._has_older = False

    @property
    def read_rows(self) -> tuple[int, int]:
        """The number of rows read, and the number that exist as far as known."""
        return self._count, max(self._count, self._newest) if self._has_older else self._count

    def read_older(self, most: int = AT_ONCE) -> bool:
        """Read so many older rows, from the newest down; True if more remain."""
        with self._database.reading() as found:
            connection = self._follow(found)
            if connection is not None and self._has_older:
                from_newest = self._count == 0
                begin, count = connection.execute(_OLDER, (self._oldest, from_newest, most)).fetchone()
                if count:
                    end = self._oldest if from_newest else self._oldest - 1
                    connection.execute(_READ, (begin, end))
                    self._oldest, self._count = begin, self._count + count
                self._has_older = count == most
            return self._has_older

    def read_newer(self) -> int | None:
        """Read the rows written since; every call before the returned number is unchanged. None if nothing is new."""
        with self._database.reading() as found:
            was, connection = self._connection, self._follow(found)
            if connection is None:
                return None if was is None else 0
            end, begin = _end_of(connection), self._newest
            if was is not connection:
                return 0
            if end == begin:
                return None
            if end < begin:  # somebody cut rows off the end: show the present rows
                connection.execute("DELETE FROM calls")
                self._begin_at(end)
                return 0
            if self._count == 0 and self._has_older:
                self._begin_at(end)  # all of it is still unread
                return 0
            connection.execute(_READ, (begin + 1, end))
            (count,) = connection.execute("SELECT count(*) FROM main.rows WHERE seq > ?", (begin,)).fetchone()
            self._newest, self._count = end, self._count + count
            (changed,) = connection.execute(_CHANGED, (begin + 1,)).fetchone()
            return int(changed)

    def numbers(self, wanted: AuditFilter, *, begin: int = 0) -> array[int]:
        """The numbers of the calls that fit, from ``begin`` on, newest first: 8 bytes each."""
        condition, values = wanted.condition()
        question = f"SELECT seq FROM calls WHERE {condition} AND seq >= ? ORDER BY seq DESC"
        return array("q", (number for (number,) in self._select(question, *values, begin)))

    def split(self, wanted: AuditFilter, *, begin: int = 0) -> tuple[array[int], array[int]]:
        """The same, and those of them that are rows of no call."""
        condition, values = wanted.condition()
        question = f"SELECT seq, call_id LIKE '#%' FROM calls WHERE {condition} AND seq >= ? ORDER BY seq DESC"
        numbers, others = array("q"), array("q")
        for number, is_other in self._select(question, *values, begin):
            numbers.append(number)
            if is_other:
                others.append(number)
        return numbers, others

    def calls(self, numbers: Iterable[int]) -> tuple[LoggedCall, ...]:
        """The calls with these numbers, newest first; unknown numbers are left out."""
        return tuple(_call_of(row) for row in self._select(_CALLS, json.dumps(list(numbers))))

    def compare(self, wanted: AuditFilter) -> Comparison:
        """Compare the calls that fit with what enforcing would have made of those that observe mode passed."""
        condition, values = wanted.condition()
        rows = tuple(NotedCount(*row) for row in self._select(_NOTED.format(condition), *values))
        ((calls,),) = self._select(f"SELECT count(*) FROM calls WHERE verdict <> '' AND {condition}", *values)
        return Comparison(calls, rows)

    def counts(self, wanted: AuditFilter, begin_s: float, stretch_s: float) -> tuple[CallCount, ...]:
        """The number of fitting calls in each stretch of time from ``begin_s`` on, by verdict."""
        condition, values = wanted.condition()
        question = (
            f"SELECT CAST((wall_s - ?) / ? AS INTEGER), verdict, count(*) FROM calls "
            f"WHERE {condition} AND wall_s >= ? AND verdict <> '' GROUP BY 1, 2"
        )
        return tuple(CallCount(*row) for row in self._select(question, begin_s, stretch_s, *values, begin_s))

    def tally(self, since_s: float) -> dict[str, dict[str, int]]:
        """The number of calls of each agent since a moment, by verdict; only the necessary part of the log is read."""
        self._read_since(since_s)
        found: dict[str, dict[str, int]] = {}
        for agent, verdict, count in self._select(_TALLY, since_s):
            found.setdefault(agent, {})[verdict] = count
        return found

    def used(self, since_s: float) -> frozenset[tuple[str, str, str]]:
        """The agents, tools and operations of the calls since a moment that were allowed or asked for."""
        self._read_since(since_s)
        return frozenset(self._select(_USED, since_s))

    def by_tool(self, since_s: float, today_s: float) -> tuple[ToolCalls, ...]:
        """The last call of each tool by each agent since a moment, and the number of its calls since ``today_s``."""
        self._read_since(since_s)
        found = self._select(_BY_TOOL, today_s, since_s)
        return tuple(ToolCalls(agent, tool, bool(sent), last_s, today) for agent, tool, sent, last_s, today in found)

    def grants(self, since_s: float) -> dict[str, int]:
        """How many calls since a moment each standing approval has answered, by its id."""
        return dict(self._select(_GRANTS, since_s))

    def _read_since(self, since_s: float) -> None:
        while ((span := self.span()) is None or span[0] >= since_s) and self.read_older():
            pass

    def span(self) -> tuple[float, float] | None:
        """The times of the first and the last row, in seconds since 1970; None without rows."""
        found = list(self._select("SELECT min(wall_s), max(wall_s) FROM calls"))
        return found[0] if found and found[0][0] is not None else None

    def choices(self) -> AuditChoices:
        """The values by which calls can be filtered."""
        found = list(self._select(_CHOICES))
        agents, tools, clients = {row[0] for row in found}, {row[1] for row in found}, {row[3] or "" for row in found}
        tools |= {f"{tool}.{operation}" for _, tool, operation, _ in found if operation}
        return AuditChoices(*(tuple(sorted(names - {""})) for names in (agents, tools, clients)))

    def number_of(self, call_id: str) -> int | None:
        """The number of the call with that id; None if it is unknown or unread."""
        return next((int(number) for (number,) in self._select(_NUMBER, call_id)), None)

    def rows_of(self, call: LoggedCall) -> tuple[AuditRow, ...]:
        """The rows of one call, oldest first."""
        question = f"{SELECT_ROWS} WHERE seq BETWEEN ? AND ? AND (call_id = ? OR seq = ?) ORDER BY seq"
        return tuple(AuditRow(*row) for row in self._select(question, call.seq, call.last, call.call_id, call.seq))

    def rows(self, wanted: AuditFilter) -> Iterator[AuditRow]:
        """Every row of the calls that fit, oldest first, page by page, so that others may query in between."""
        condition, values = wanted.condition()
        question = (
            f"{SELECT_ROWS} WHERE CASE call_id WHEN '' THEN '#' || seq ELSE call_id END IN "
            f"(SELECT call_id FROM calls WHERE {condition}) ORDER BY seq"
        )
        with self._database.reading() as connection:
            found = connection.execute(question, values) if connection and connection is self._connection else None
            page = found.fetchmany(_AT_A_TIME) if found is not None else []
        while page and found is not None:
            yield from (AuditRow(*row) for row in page)
            with self._database.reading() as same:
                if same is not connection:
                    raise ValueError("it was replaced during reading")
                page = found.fetchmany(_AT_A_TIME)

    def close(self) -> None:
        """Close the file and drop the index."""
        with self._database.lock:
            self._database.close()
            self._connection = None

    def _select(self, question: str, *values: str | float) -> Iterator[tuple[Any, ...]]:
        """Query the file with its index; no rows before the first read."""
        with self._database.reading() as connection:
            if connection is not None and connection is self._connection:
                yield from connection.execute(question, values)

    def _follow(self, connection: Connection | None) -> Connection | None:
        """Start anew if another file has replaced the one read so far; None without a log."""
        if connection is None or not has_rows(connection):
            self._connection = None
            self._begin_at(0)
            self._has_older = False
            return None
        if connection is not self._connection:
            connection.text_factory = _text
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute(_TABLE)
            connection.execute(_BY_WITHIN)
            self._connection = connection
            self._begin_at(_end_of(connection))
        return connection

    def _begin_at(self, end: int) -> None:
        self._oldest = self._newest = end
        self._count, self._has_older = 0, True


def _end_of(connection: Connection) -> int:
    (end,) = connection.execute("SELECT max(seq) FROM main.rows").fetchone()
    if not isinstance(end, int):  # somebody changed the table
        question = "SELECT max(seq) FROM main.rows WHERE typeof(seq) = 'integer'"
        (end,) = connection.execute(question).fetchone()
    return end if isinstance(end, int) else 0


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def _call_of(row: Sequence[Any]) -> LoggedCall:
    *fields, callers, started, answer, sent = row
    beside = tuple(callers.split(_BESIDE)) if callers else ()
    call = LoggedCall(*fields, callers=beside, started=started, answer=answer)
    if call.call_id.startswith("#"):
        return replace(call, call_id="", reason=words_of(call.kind, call.reason))
    return replace(call, arguments=_in_short(sent, call.operation))


def _in_short(body: str | None, operation: str) -> str:
    """The arguments of a call in short, without the one that names the operation: first the value of the one that tells
    most, then the others as `name=value`. A command stands alone, since the rest only describes it.
    """
    given = _object(body or "").get("arguments")
    if not isinstance(given, dict):
        return ""
    arguments = {name: value for name, value in cast("dict[str, object]", given).items() if value != operation}
    command = next((value for name, value in arguments.items() if name in _COMMANDS and isinstance(value, str)), "")
    if command:
        return command if len(command) <= _COMMAND else f"{command[:_COMMAND]}…"
    first = next((name for name in _TELLING if isinstance(arguments.get(name), str) and arguments[name]), "")
    told = [str(arguments.pop(first))] if first else []
    told += [f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in arguments.items()]
    return "  ".join(one if len(one) <= _SHORT else f"{one[:_SHORT]}…" for one in told[:_FEW])


def _object(text: str) -> dict[str, Any]:
    try:
        found = cast("object", json.loads(text))
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def words_of(kind: str, body: str) -> str:
    """The meaning of a row without a call, in a sentence; ``body`` is its JSON text."""
    told = _object(body)
    who = told.get("who") or "somebody"
    match kind:
        case _ if not told:
            return "unreadable"
        case RowKind.POLICY_CHANGED if told.get("refused"):
            return f"refused: {_join(told.get('problems'))}"
        case RowKind.POLICY_CHANGED:
            return _join(told.get("changes"))
        case RowKind.GRANT_REVOKED:
            return f"{who} revoked a standing answer of {told.get('given_by') or 'somebody'}"
        case RowKind.CATALOG_ACCEPTED:
            return f"{who} accepted tools of catalog `{told.get('catalog', '')}`: {told.get('accepted', 0)}"
        case RowKind.MEMORY_ADOPTED:
            return f"{who} adopted memory from elsewhere: {_join(told.get('files'))}"
        case RowKind.SESSION_DELETED:
            return f"the session `{told.get('session', '')}` was deleted with all its counts"
        case RowKind.CONNECTION:
            return _connection_words(told)
        case RowKind.COPY_RETURNED:
            return _copy_words(told)
        case RowKind.STOP_PULLED:
            whom = "all agents" if told.get("all") else "the agent"
            return f"{who} stopped {whom}" + (f": {told['why']}" if told.get("why") else "")
        case RowKind.STOP_LIFTED:
            return f"{who} ended the stop of {told.get('pulled_by') or 'somebody'}"
        case RowKind.LOG_MOVED:
            return f"{who} moved the log from `{told.get('from', '')}` to `{told.get('to', '')}`"
        case RowKind.LOG_OPENED if "anchor" in told:
            return f"the log ended before row {told['anchor']} of its anchor, and continues here"
        case RowKind.LOG_OPENED:
            return "the log begins"
        case _:
            return ""


def _connection_words(told: dict[str, Any]) -> str:
    host, port = told.get("host") or "a host without a name", told.get("port")
    place = f"`{host}:{port}`" if port else f"`{host}`" if told.get("host") else host
    count, why = told.get("count"), told.get("why")
    times = f", {count:,} times" if isinstance(count, int) else ""
    because = f": {why}" if why else ""
    if not told.get("allowed"):
        return f"refused {place}{times}{because}"
    sizes = [told[name] if isinstance(told.get(name), int) else 0 for name in ("sent", "received")]
    return f"connected to {place}{times}, {sizes[0]:,} bytes sent and {sizes[1]:,} received{because}"


def _copy_words(told: dict[str, Any]) -> str:
    if told.get("unread"):
        return f"nothing was written back from the private copy in `{told.get('folder', '')}`: {told['unread']}"
    written, kept = told.get("written_count") or 0, told.get("kept_back_count") or 0
    where = f", in `{told['folder']}`" if told.get("folder") else ""
    if taken := told.get("taken_back_count"):
        made = cast("list[dict[str, str]]", told.get("taken_back") or [])
        names = [f"{one['path']}: {one['why']}" for one in made]
        return f"{taken} that a command made against the levels were taken back{where}: {_join(names)}"
    return f"{written} changes in a private copy were written back" + (f" and {kept} held back{where}" if kept else "")


def _join(words: object) -> str:
    return "; ".join(map(str, cast("list[object]", words))) if isinstance(words, list) else ""
