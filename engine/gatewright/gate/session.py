"""The history of one conversation: executions, starts, successes, and the end of the loop.

Any thread may call every method. The history is one immutable value, replaced at each change, so that reading it costs
nothing and never waits. The module exceeds 450 lines because it holds every fact of a session.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from enum import StrEnum
from itertools import count
from threading import RLock
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from gatewright.base.amount import Clock, SystemClock, new_id
from gatewright.base.errors import WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import once
from gatewright.compile.rule_test import Finding
from gatewright.gate.chain import LogRows
from gatewright.gate.sessiondata import FORMAT, SessionRow, read_facts, read_saved
from gatewright.record.process import fork_safe_lock

T = TypeVar("T")
_LONGEST_ID = 1_000
_LONGEST_IN_LOG = 100
MOST_USERS = 50_000
"""The most users for whom a gate stores sessions of calls that name none; they take some 100 MB."""


class Phase(StrEnum):
    """The state of a conversation: nothing has succeeded yet, something has, or the loop has ended."""

    START = "start"
    OPEN = "open"
    ENDED = "ended"


class Use(NamedTuple):
    """The calls of one operation. ``calls``: begun, or about to begin; ``flying``: the running ones among them.

    Times are seconds of the monotonic clock; ``succeeded_s`` is the start of the last successful call.
    """

    calls: int = 0
    flying: int = 0
    successes: int = 0
    started_s: float | None = None
    succeeded_s: float | None = None


class Mark(NamedTuple):
    """The first result from outside that a session got: of which tool, by which call, when (seconds since 1970)."""

    tool: str
    call_id: str
    wall_s: float


NO_USE = Use()
Uses = Mapping[str, Mapping[tuple[str, str], Use]]
"""Uses by tool, then by operation and source (``""``: all calls, to any source)."""

Operations = str | Mapping[str, int]
"""The operations of a call: one operation once, or a batch with a number for each."""


_NOTHING: Mapping[tuple[str, str], Use] = MappingProxyType({})
_ANY = frozenset({""})


_NO_USES: Uses = MappingProxyType({})


def _none() -> Uses:
    return _NO_USES


@frozen
class SessionFacts:
    """A session at one moment: what the stages decide by, and a part of proofs.

    ``began_s``: when the session first learned the time, by the monotonic clock; reminders count from there. ``uses``
    never changes. ``outside``: the result that marked the session for rules of the kind AfterOutside.
    """

    session_id: str
    uses: Uses = field(default_factory=_none, hash=False)
    ended: bool = False
    began_s: float | None = None
    outside: Mark | None = None

    def calls(self, tool: str, operations: frozenset[str] | None = None, source: str = "") -> int:
        """The number of executions of these operations at that source that began or hold a slot."""
        return sum([use.calls for use in self._perhaps(tool, operations, source)])

    def is_flying(self, tool: str, operations: frozenset[str] | None = None) -> bool:
        """Tell whether a call is running."""
        return any(use.flying for use in self._perhaps(tool, operations, ""))

    def has_succeeded(self, tool: str, operations: frozenset[str] | None = None) -> bool:
        """Tell whether a call of the tool (with one of these operations) succeeded in this conversation."""
        return any(use.successes for use in self._matching(tool, operations, ""))

    def may_have_succeeded(self, tool: str, operations: frozenset[str] | None = None) -> bool:
        """Tell whether a call succeeded that was, or may have been, one of these operations."""
        return any(use.successes for use in self._perhaps(tool, operations, ""))

    def last_start_s(self, tool: str, operations: frozenset[str] | None = None, source: str = "") -> float | None:
        """The start of the latest execution."""
        starts = [use.started_s for use in self._perhaps(tool, operations, source) if use.started_s is not None]
        return max(starts, default=None)

    def last_success_s(self, tool: str, operations: frozenset[str] | None = None) -> float | None:
        """The start of the latest successful call."""
        times = [use.succeeded_s for use in self._matching(tool, operations, "") if use.succeeded_s is not None]
        return max(times, default=None)

    def operations_called(self, tool: str) -> Iterator[str]:
        """The operations of the tool that have succeeded, or still run and may succeed; ``""`` means any of them."""
        uses = self.uses.get(tool, {}).items()
        return (operation for (operation, source), use in uses if not source and (use.successes or use.flying))

    def to_json(self) -> dict[str, JsonValue]:
        """Every fact, times unchanged, for `from_json`."""
        rows: list[JsonValue] = [row.to_json() for row in self.rows()]
        told: dict[str, JsonValue] = {"session": self.session_id, "ended": self.ended, "began_s": self.began_s}
        return {**told, "uses": rows, **_mark_json(self.outside)}

    @classmethod
    def from_json(cls, data: object) -> SessionFacts:
        """The facts that `to_json` wrote. Raises WorkspaceError for anything else."""
        return _facts(*read_facts(data))

    def rows(self) -> list[SessionRow]:
        """Every use as a row, sorted."""
        return [
            SessionRow(tool, operation, source, use.calls, use.flying, use.successes, use.started_s, use.succeeded_s)
            for tool, inner in sorted(self.uses.items())
            for (operation, source), use in sorted(inner.items())
        ]

    def having(self, tool: str, changed: Mapping[tuple[str, str], Use]) -> SessionFacts:
        """The facts with other uses of one tool."""
        uses = {**self.uses, tool: {**self.uses.get(tool, {}), **changed}}
        return SessionFacts(self.session_id, uses, self.ended, self.began_s, self.outside)

    def _matching(self, tool: str, operations: frozenset[str] | None, source: str) -> list[Use]:
        return [
            use
            for (operation, routed), use in self.uses.get(tool, _NOTHING).items()
            if routed == source and (operations is None or operation in operations)
        ]

    def _perhaps(self, tool: str, operations: frozenset[str] | None, source: str) -> list[Use]:
        """The matching uses, and those of unknown operations."""
        return self._matching(tool, operations if operations is None else operations | _ANY, source)


UNCOUNTED = -1
"""The serial of a slot that takes nothing."""


class Reservation:
    """A slot for one execution, with a number of uses of each operation. ``before``: the starts to restore on release.

    ``test`` may object because of the session's other calls, including those in the log. ``refusal``: its objection
    when the rows were about to be written, and so were not.
    """

    def __init__(
        self,
        session: Session,
        tool: str,
        operations: Mapping[str, int],
        sources: tuple[str, ...],
        start_s: float,
        serial: int,
    ) -> None:
        self.session = session
        self.tool = tool
        self.operations = operations
        self.sources = sources
        self.start_s = start_s
        self.serial = serial
        self.before: dict[tuple[str, str], float | None] = {}
        self.test: Callable[[SessionFacts], Finding | None] | None = None
        self.refusal: Finding | None = None
        self.objection: Callable[[LogRows], Finding | None] | None = None


class Session:
    """One conversation of one agent. A call takes a slot before execution and returns it only if execution never began.

    ``agent_id``: the only agent that may use it; if empty, its creator takes care of that. ``version``: the number of
    saves when it was last loaded or saved; ``is_held``: nobody else may save it now. Both belong to the store.
    ``is_counted``: it knows its calls in the log, like a session with a new id. Most decisions make a session and use
    little of it, so the first use makes its locks and its names in the log.
    """

    def __init__(self, session_id: str | None = None, agent_id: str = "") -> None:
        self.session_id = _writable(session_id) if session_id else new_id("session")
        self.agent_id = agent_id
        self.is_counted = session_id is None
        self.version = 0
        self.is_held = False
        self._facts = SessionFacts(self.session_id, _NO_USES)
        self._serials = count()
        self._open: set[int] = set()
        self._starters: dict[tuple[str, str, str], int] = {}

    @once
    def saving(self) -> RLock:
        """A lock for whoever saves the session."""
        return fork_safe_lock()

    @once
    def _lock(self) -> RLock:
        return fork_safe_lock()

    @once
    def log_name(self) -> str:
        """The name of the session in the log."""
        return log_text(self.session_id)

    @once
    def log_agent(self) -> str:
        """The name of its agent in the log."""
        return log_text(self.agent_id)

    @classmethod
    def resume(cls, data: object, clock: Clock | None = None, *, agent_id: str = "") -> Session:
        """The session that `to_saved` wrote: it continues to count, and gaps continue by the wall clock.

        Running calls count as made and ended. Setting the wall clock back makes gaps longer, never shorter. Raises
        WorkspaceError for anything but a saved session.
        """
        clock = clock or SystemClock()
        read = read_saved(data, clock.wall_s() - clock.monotonic_s(), clock.monotonic_s())
        session = cls(read[0], agent_id)
        session._facts = _facts(session.session_id, *read[1:])
        return session

    @property
    def should_continue(self) -> bool:
        """True while the agent's loop goes on; False from the success of an exit tool until ``begin_turn``."""
        return not self._facts.ended

    @property
    def phase(self) -> Phase:
        """The state of the conversation."""
        facts = self._facts
        if facts.ended:
            return Phase.ENDED
        succeeded = any(use.successes for inner in facts.uses.values() for use in inner.values())
        return Phase.OPEN if succeeded else Phase.START

    def facts(self) -> SessionFacts:
        """The session at this moment."""
        return self._facts

    def begin(self, now_s: float) -> None:
        """Tell the session the time; only the first call of this counts."""
        with self._lock:
            if self._facts.began_s is None:
                self._facts = replace(self._facts, began_s=now_s)

    def begin_turn(self) -> None:
        """Begin a new loop in the same conversation; counts and successes stay."""
        with self._lock:
            self._facts = replace(self._facts, ended=False)

    def calls(self, tool: str, operations: frozenset[str] | None = None) -> int:
        """The number of executions that began, or hold a slot."""
        return self._facts.calls(tool, operations)

    def has_succeeded(self, tool: str, operations: frozenset[str] | None = None) -> bool:
        """Tell whether a call of the tool (with one of these operations) succeeded in this conversation."""
        return self._facts.has_succeeded(tool, operations)

    def reserve(
        self,
        tool: str,
        operations: Operations,
        now_s: float,
        *,
        sources: Iterable[str] = (),
        test: Callable[[SessionFacts], T | None] | None = None,
    ) -> Reservation | T:
        """Take a slot unless ``test`` objects; testing and taking are one step, for a whole batch."""
        with self._lock:
            facts = self._facts
            objection = test(facts) if test is not None else None
            if objection is not None:
                return objection
            serial = next(self._serials)
            self._open.add(serial)
            times = {operations: 1} if isinstance(operations, str) else operations
            taken = Reservation(self, tool, times, tuple(sources), now_s, serial)
            uses = facts.uses.get(tool, _NOTHING)
            changed: dict[tuple[str, str], Use] = {}
            for key in keys_of(times, taken.sources):
                use, more = uses.get(key, NO_USE), times[key[0]]
                taken.before[key] = use.started_s
                started_s = now_s if use.started_s is None else max(use.started_s, now_s)
                changed[key] = Use(use.calls + more, use.flying + more, use.successes, started_s, use.succeeded_s)
                self._starters[tool, *key] = serial
            self._facts = facts.having(tool, changed)
            if self._facts.began_s is None:
                self._facts = replace(self._facts, began_s=now_s)
            return taken

    def release(self, reservation: Reservation) -> None:
        """Return a slot because execution never began; repeating this changes nothing."""
        with self._lock:
            if reservation.serial not in self._open:
                return
            self._open.discard(reservation.serial)
            uses = self._facts.uses.get(reservation.tool, _NOTHING)
            changed: dict[tuple[str, str], Use] = {}
            for key, before in reservation.before.items():
                use = uses.get(key, NO_USE)
                is_last = self._starters.get((reservation.tool, *key)) == reservation.serial
                started_s = before if is_last else use.started_s
                times = reservation.operations[key[0]]
                changed[key] = Use(use.calls - times, use.flying - times, use.successes, started_s, use.succeeded_s)
            self._facts = self._facts.having(reservation.tool, changed)

    def settle(self, reservation: Reservation) -> None:
        """Record the end of an execution, however it ended; the slot stays used. Repeating this changes nothing."""
        with self._lock:
            if reservation.serial not in self._open:
                return
            self._open.discard(reservation.serial)
            uses = self._facts.uses.get(reservation.tool, _NOTHING)
            landed: dict[tuple[str, str], Use] = {}
            for key in reservation.before:
                use, ended = uses.get(key, NO_USE), reservation.operations[key[0]]
                landed[key] = Use(use.calls, use.flying - ended, use.successes, use.started_s, use.succeeded_s)
            self._facts = self._facts.having(reservation.tool, landed)

    def add_success(
        self, tool: str, operations: Operations, *, ends_loop: bool = False, sources: Iterable[str] = ()
    ) -> None:
        """Record a successful call: one success of each operation."""
        with self._lock:
            uses = self._facts.uses.get(tool, _NOTHING)
            changed: dict[tuple[str, str], Use] = {}
            for key in keys_of((operations,) if isinstance(operations, str) else operations, sources):
                use = uses.get(key, NO_USE)
                changed[key] = Use(use.calls, use.flying, use.successes + 1, use.started_s, use.started_s)
            self._facts = self._facts.having(tool, changed)
            if ends_loop:
                self._facts = replace(self._facts, ended=True)

    def mark(self, mark: Mark) -> None:
        """Note a result from outside; the first one stays."""
        with self._lock:
            if self._facts.outside is None:
                self._facts = replace(self._facts, outside=mark)

    def count(self, uses: Uses, clock: Clock | None = None, mark: Mark | None = None) -> None:
        """Add calls and a mark from the log that this session does not know; their starts by the wall clock."""
        if mark is not None:
            self.mark(mark)
        clock = clock or SystemClock()
        now_s = clock.monotonic_s()
        ahead_s = clock.wall_s() - now_s
        with self._lock:
            for tool, inner in uses.items():
                known = self._facts.uses.get(tool, _NOTHING)
                changed: dict[tuple[str, str], Use] = {}
                for key, more in inner.items():
                    use = known.get(key, NO_USE)
                    began_s = None if more.started_s is None else min(more.started_s - ahead_s, now_s)
                    starts = [start for start in (use.started_s, began_s) if start is not None]
                    started_s = max(starts, default=None)
                    changed[key] = use._replace(calls=max(use.calls, more.calls), started_s=started_s)
                self._facts = self._facts.having(tool, changed)
            self.is_counted = True

    def to_saved(self, clock: Clock | None = None) -> dict[str, JsonValue]:
        """The session as JSON, for `resume`; ``clock`` is the gate's clock. Times become wall times."""
        clock, facts = clock or SystemClock(), self._facts
        ahead_s = clock.wall_s() - clock.monotonic_s()
        rows: list[JsonValue] = [row.shift(ahead_s).land().to_json() for row in facts.rows()]
        began = None if facts.began_s is None else facts.began_s + ahead_s
        told: dict[str, JsonValue] = {"format": FORMAT, "session": self.session_id, "ended": facts.ended}
        return {**told, "began_s": began, "uses": rows, **_mark_json(facts.outside)}

    def to_json(self) -> dict[str, JsonValue]:
        """The facts that the app shows: session, phase, should_continue, calls and successes by ``tool.operation``, the
        mark.
        """
        facts = self._facts
        return {
            "session": self.session_id,
            "phase": str(self.phase),
            "should_continue": not facts.ended,
            "calls": _by_name((row.name, row.calls) for row in facts.rows() if not row.source),
            "successes": _by_name((row.name, row.successes) for row in facts.rows() if not row.source),
            **_mark_json(facts.outside),
        }


class OwnSessions:
    """The sessions for calls that name none, one for each agent and user (None: no user), while this object lives.

    Sessions are never forgotten, since their limits would go with them: beyond `MOST_USERS` new users are refused.
    """

    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._kept: dict[tuple[str, str | None], Session] = {}

    def find(self, agent_id: str, user_id: str | None, *, keep: bool) -> Session:
        """The session of that agent and user; a new one is stored if ``keep`` is True.

        Raises WorkspaceError for too many users.
        """
        with self._lock:
            held = self._kept.get((agent_id, user_id))
            if held is not None:
                return held
            if user_id is not None and len(self._kept) >= MOST_USERS:
                why = f"the gate keeps sessions of at most {MOST_USERS:,} users"
                raise WorkspaceError(f"{why}: name one with `session`")
            fresh = Session(agent_id=agent_id)
            if keep:
                self._kept[agent_id, user_id] = fresh
            return fresh


def keys_of(operations: Iterable[str], sources: Iterable[str]) -> list[tuple[str, str]]:
    """The keys that a call counts for: each operation alone, and each at every source that the call goes to."""
    keys: list[tuple[str, str]] = []
    for operation in operations:
        keys.append((operation, ""))
        keys += [(operation, source) for source in dict.fromkeys(sources) if source]
    return keys


def _writable(session_id: str) -> str:
    """The id as it can be stored: whole characters, a very long one shortened with a digest."""
    given = session_id.encode("utf-8", "backslashreplace")
    text = given.decode()
    return text if len(text) <= _LONGEST_ID else f"{text[:64]}-{hashlib.sha256(given).hexdigest()}"


def log_text(name: str) -> str:
    """A name as the log stores it: itself or, if long or unprintable, a part with a digest."""
    if len(name) <= _LONGEST_IN_LOG and name.isprintable():
        return name
    plain = "".join(sign if sign.isprintable() else "\ufffd" for sign in name[:32])
    return f"{plain}-{hashlib.sha256(name.encode('utf-8', 'backslashreplace')).hexdigest()}"


def _mark_json(mark: Mark | None) -> dict[str, JsonValue]:
    return {} if mark is None else {"outside": list(mark)}


def _facts(
    session_id: str,
    ended: bool,
    began_s: float | None,
    rows: Iterable[SessionRow],
    outside: tuple[str, str, float] | None,
) -> SessionFacts:
    uses: dict[str, dict[tuple[str, str], Use]] = {}
    for row in rows:
        use = Use(row.calls, row.flying, row.successes, row.started_s, row.succeeded_s)
        uses.setdefault(row.tool, {})[row.operation, row.source] = use
    return SessionFacts(session_id, uses, ended, began_s, None if outside is None else Mark(*outside))


def _by_name(counts: Iterable[tuple[str, int]]) -> dict[str, JsonValue]:
    return {name: number for name, number in counts if number}
