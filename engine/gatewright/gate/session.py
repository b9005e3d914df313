"""What happened so far in one conversation: executions, starts, successes, whether the loop goes on.

Every method may be called from any thread. What
happened is one immutable value, replaced at each change, so that looking at it costs nothing and never waits.
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

from gatewright.base.clock import Clock, SystemClock
from gatewright.base.errors import WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.ids import new_id
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import once
from gatewright.compile.rule_test import Finding
from gatewright.gate.sessiondata import FORMAT, SessionRow, read_facts, read_saved
from gatewright.record.process import fork_safe_lock

T = TypeVar("T")
_LONGEST_ID = 1_000
_LONGEST_IN_LOG = 100
MOST_USERS = 50_000
"""Of how many users a gate keeps the session of calls that name none: some 100 MB."""


class Phase(StrEnum):
    """Nothing succeeded yet, something did, or the loop has ended."""

    START = "start"
    OPEN = "open"
    ENDED = "ended"


class Use(NamedTuple):
    """The calls of one operation. ``calls``: begun, or about to be; ``flying``: those of them that have not ended.

    Times are seconds of the monotonic clock; ``succeeded_s`` is when the last successful call started.
    """

    calls: int = 0
    flying: int = 0
    successes: int = 0
    started_s: float | None = None
    succeeded_s: float | None = None


NO_USE = Use()
Uses = Mapping[str, Mapping[tuple[str, str], Use]]
"""By tool, then by operation and source (``""``: all calls, wherever they went).

The operation ``""`` is the one of a tool without operations; at a tool that has some, calls of which nobody can tell
the operation (an empty batch): they count for every limit, and fulfil no requirement of one operation.
"""

Operations = str | Mapping[str, int]
"""What a call uses: one operation once, or a batch of them, each so many times."""


_NOTHING: Mapping[tuple[str, str], Use] = MappingProxyType({})
_ANY = frozenset({""})


_NO_USES: Uses = MappingProxyType({})


def _none() -> Uses:
    return _NO_USES


@frozen
class SessionFacts:
    """A session as it was at one moment: what the stages decide by and what a proof carries.

    ``began_s``: when it was first told the time, by the monotonic clock; reminders count from there. ``uses`` is never
    changed once it is here.
    """

    session_id: str
    uses: Uses = field(default_factory=_none, hash=False)
    ended: bool = False
    began_s: float | None = None

    def calls(self, tool: str, operations: frozenset[str] | None = None, source: str = "") -> int:
        """How many executions began or hold a slot: of these operations, routed to that source."""
        return sum([use.calls for use in self._perhaps(tool, operations, source)])

    def is_flying(self, tool: str, operations: frozenset[str] | None = None) -> bool:
        """Whether a call is being executed."""
        return any(use.flying for use in self._perhaps(tool, operations, ""))

    def has_succeeded(self, tool: str, operations: frozenset[str] | None = None) -> bool:
        """Whether a call succeeded in this conversation."""
        return any(use.successes for use in self._matching(tool, operations, ""))

    def may_have_succeeded(self, tool: str, operations: frozenset[str] | None = None) -> bool:
        """Whether a call succeeded that was, or may have been, one of these operations."""
        return any(use.successes for use in self._perhaps(tool, operations, ""))

    def last_start_s(self, tool: str, operations: frozenset[str] | None = None, source: str = "") -> float | None:
        """When the latest execution started."""
        starts = [use.started_s for use in self._perhaps(tool, operations, source) if use.started_s is not None]
        return max(starts, default=None)

    def last_success_s(self, tool: str, operations: frozenset[str] | None = None) -> float | None:
        """When the latest call that succeeded started."""
        times = [use.succeeded_s for use in self._matching(tool, operations, "") if use.succeeded_s is not None]
        return max(times, default=None)

    def called(self, tool: str) -> Iterator[str]:
        """The operations of the tool that have succeeded, or are being executed and may yet; ``""``: any of them."""
        uses = self.uses.get(tool, {}).items()
        return (operation for (operation, source), use in uses if not source and (use.successes or use.flying))

    def to_json(self) -> dict[str, JsonValue]:
        """Every fact, times as they are; `from_json` takes it back."""
        rows: list[JsonValue] = [row.to_json() for row in self.rows()]
        return {"session": self.session_id, "ended": self.ended, "began_s": self.began_s, "uses": rows}

    @classmethod
    def from_json(cls, data: object) -> SessionFacts:
        """The facts that `to_json` gave. Raises WorkspaceError for anything else."""
        return _facts(*read_facts(data))

    def rows(self) -> list[SessionRow]:
        """Every use by itself, sorted."""
        return [
            SessionRow(tool, operation, source, use.calls, use.flying, use.successes, use.started_s, use.succeeded_s)
            for tool, inner in sorted(self.uses.items())
            for (operation, source), use in sorted(inner.items())
        ]

    def having(self, tool: str, changed: Mapping[tuple[str, str], Use]) -> SessionFacts:
        """The facts with other uses of one tool."""
        uses = {**self.uses, tool: {**self.uses.get(tool, {}), **changed}}
        return SessionFacts(self.session_id, uses, self.ended, self.began_s)

    def _matching(self, tool: str, operations: frozenset[str] | None, source: str) -> list[Use]:
        return [
            use
            for (operation, routed), use in self.uses.get(tool, _NOTHING).items()
            if routed == source and (operations is None or operation in operations)
        ]

    def _perhaps(self, tool: str, operations: frozenset[str] | None, source: str) -> list[Use]:
        """Those that match, and those of which nobody can tell the operation."""
        return self._matching(tool, operations if operations is None else operations | _ANY, source)


class Reservation:
    """A slot taken for one execution: so many uses of each operation.

    ``before``: the starts that releasing it restores. ``test``: what the session's other calls, those of the log too,
    may say against it; ``refusal``: what they said when the rows were to be written, which then were not.
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


class Session:
    """One conversation of one agent. A slot is taken before execution and given back only if execution never began.

    ``agent_id``: the one agent that may use it; empty: whoever made it sees to that. ``version``: how often it had been
    saved when it was loaded or saved last; ``is_held``: whether nobody else may save it now. Both are the store's.
    ``is_counted``: whether it knows the calls that the log has of it, as one that has just been given an id does. Most
    decisions make one and ask for little of it: locks and names in the log are made at the first use.
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
        """Held by whoever saves the session."""
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
    def resumed(cls, data: object, clock: Clock | None = None, *, agent_id: str = "") -> Session:
        """The session that `saved` gave: it keeps counting, and gaps go on by the wall clock.

        Calls that were being executed count as made and as ended. A wall clock that went back makes gaps longer, never
        shorter. Raises WorkspaceError for data that is no saved session.
        """
        clock = clock or SystemClock()
        session_id, ended, began_s, rows = read_saved(data, clock.wall_s() - clock.monotonic_s(), clock.monotonic_s())
        session = cls(session_id, agent_id)
        session._facts = _facts(session.session_id, ended, began_s, rows)
        return session

    @property
    def should_continue(self) -> bool:
        """Whether the agent's loop goes on; False once an exit tool succeeded, until ``begin_turn``."""
        return not self._facts.ended

    @property
    def phase(self) -> Phase:
        """Where the conversation stands."""
        facts = self._facts
        if facts.ended:
            return Phase.ENDED
        succeeded = any(use.successes for inner in facts.uses.values() for use in inner.values())
        return Phase.OPEN if succeeded else Phase.START

    def facts(self) -> SessionFacts:
        """The session as it is now."""
        return self._facts

    def begin(self, now_s: float) -> None:
        """Tell the session the time; only the first time counts."""
        with self._lock:
            if self._facts.began_s is None:
                self._facts = replace(self._facts, began_s=now_s)

    def begin_turn(self) -> None:
        """A new loop begins in the same conversation; counts and successes stay."""
        with self._lock:
            self._facts = replace(self._facts, ended=False)

    def calls(self, tool: str, operations: frozenset[str] | None = None) -> int:
        """How many executions began, or hold a slot."""
        return self._facts.calls(tool, operations)

    def has_succeeded(self, tool: str, operations: frozenset[str] | None = None) -> bool:
        """Whether a call of the tool (with one of these operations) succeeded in this conversation."""
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
        """Take a slot unless ``test`` objects; test and taking are one step, for all of a batch."""
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
        """Give a slot back because execution never began. Doing it twice changes nothing."""
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
        """The execution ended, however it did; the slot stays used. Doing it twice changes nothing."""
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

    def succeeded(
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

    def count(self, uses: Uses, clock: Clock | None = None) -> None:
        """Take over calls that the log has and this session does not know; their starts by the wall clock."""
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

    def saved(self, clock: Clock | None = None) -> dict[str, JsonValue]:
        """The session as JSON, for `resumed`; ``clock`` is the one that the gate counts by. Times become wall times."""
        clock, facts = clock or SystemClock(), self._facts
        ahead_s = clock.wall_s() - clock.monotonic_s()
        rows: list[JsonValue] = [row.shifted(ahead_s).landed().to_json() for row in facts.rows()]
        began = None if facts.began_s is None else facts.began_s + ahead_s
        return {"format": FORMAT, "session": self.session_id, "ended": facts.ended, "began_s": began, "uses": rows}

    def to_json(self) -> dict[str, JsonValue]:
        """What the app shows: session, phase, should_continue, calls and successes by ``tool.operation``."""
        facts = self._facts
        return {
            "session": self.session_id,
            "phase": str(self.phase),
            "should_continue": not facts.ended,
            "calls": _by_name((row.name, row.calls) for row in facts.rows() if not row.source),
            "successes": _by_name((row.name, row.successes) for row in facts.rows() if not row.source),
        }


class OwnSessions:
    """The sessions of calls that name none, one for each agent and user (None: no user), for as long as this lives.

    None is ever forgotten, since its limits would be forgotten with it: where those of `MOST_USERS` are kept, the next
    user is refused.
    """

    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._kept: dict[tuple[str, str | None], Session] = {}

    def find(self, agent_id: str, user_id: str | None, *, keep: bool) -> Session:
        """The one of that agent and user; a new one is kept from now on where ``keep`` says so.

        Raises WorkspaceError for a user too many.
        """
        with self._lock:
            held = self._kept.get((agent_id, user_id))
            if held is not None:
                return held
            if user_id is not None and len(self._kept) >= MOST_USERS:
                why = f"the sessions of {MOST_USERS:,} users are kept and the limits of none may be forgotten"
                raise WorkspaceError(f"{why}: name one with `session`")
            fresh = Session(agent_id=agent_id)
            if keep:
                self._kept[agent_id, user_id] = fresh
            return fresh


def keys_of(operations: Iterable[str], sources: Iterable[str]) -> list[tuple[str, str]]:
    """What a call counts for: each operation as such, and at each source that the call goes to."""
    keys: list[tuple[str, str]] = []
    for operation in operations:
        keys.append((operation, ""))
        keys += [(operation, source) for source in dict.fromkeys(sources) if source]
    return keys


def _writable(session_id: str) -> str:
    """The id as it can be kept: whole characters, and of a very long one the beginning and a digest."""
    given = session_id.encode("utf-8", "backslashreplace")
    text = given.decode()
    return text if len(text) <= _LONGEST_ID else f"{text[:64]}-{hashlib.sha256(given).hexdigest()}"


def log_text(name: str) -> str:
    """A name as the log takes it: itself, or of one that is long or holds unseen signs a part and a digest."""
    if len(name) <= _LONGEST_IN_LOG and name.isprintable():
        return name
    plain = "".join(sign if sign.isprintable() else "\ufffd" for sign in name[:32])
    return f"{plain}-{hashlib.sha256(name.encode('utf-8', 'backslashreplace')).hexdigest()}"


def _facts(session_id: str, ended: bool, began_s: float | None, rows: Iterable[SessionRow]) -> SessionFacts:
    uses: dict[str, dict[tuple[str, str], Use]] = {}
    for row in rows:
        use = Use(row.calls, row.flying, row.successes, row.started_s, row.succeeded_s)
        uses.setdefault(row.tool, {})[row.operation, row.source] = use
    return SessionFacts(session_id, uses, ended, began_s)


def _by_name(counts: Iterable[tuple[str, int]]) -> dict[str, JsonValue]:
    return {name: number for name, number in counts if number}
