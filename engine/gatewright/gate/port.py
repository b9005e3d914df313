"""The state port: what the gate asks of the state that its processes share.

Two implementations: SQLite files in a folder (`gate/audit.py`, `gate/history.py`), and a PostgreSQL database
(`gate/shared_log.py`, `gate/shared.py`). The contract tests run over both. Blocks, notes, archives and conversations
are files alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol

from gatewright.base.errors import WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.compile.rule_test import Rate
from gatewright.gate.chain import AuditReport, AuditRow, RowKind
from gatewright.gate.history import Window
from gatewright.gate.session import Reservation, Session
from gatewright.policy.rule import RateLimit
from gatewright.record.sealedtable import SealedRow, Version

Columns = tuple[str, str, str, str, str, str, str]
"""A row without number, time and MAC: kind, call id, agent, session, tool, operation, body."""


class AuditUnavailable(WorkspaceError):
    """The log cannot be written or its key is missing; meanwhile all calls are denied."""


@frozen
class AuditEntry:
    """A row to write. ``body`` contains no argument values; its reason may name a path or an unknown word.

    ``slot``: the row begins a call; if the log forbids that, no row of the call is written.
    """

    kind: RowKind
    call_id: str = ""
    agent: str = ""
    session: str = ""
    tool: str = ""
    operation: str = ""
    body: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue], hash=False)
    slot: Reservation | None = field(default=None, hash=False, compare=False)

    @property
    def is_asked(self) -> bool:
        """True if the log itself must agree to the call that the row begins."""
        return self.slot is not None and (self.slot.test is not None or self.slot.objection is not None)

    def columns(self) -> Columns:
        """The row as text, prepared before anybody has to wait. Raises ValueError or TypeError."""
        body = canonical_json(dict(self.body)).decode()
        return (self.kind.value, self.call_id, self.agent, self.session, self.tool, self.operation, body)


class Life(Protocol):
    """Shows other processes that this one lives, while anything depends on it."""

    def hold(self, what: str) -> str:
        """Return the owner, on whose life ``what`` depends from now on. Raises WorkspaceError."""
        ...

    def release_on_error(self, what: str) -> AbstractContextManager[None]:
        """Release ``what`` if the body fails to store it."""
        ...

    def let_go(self, what: str) -> None:
        """Release ``what``."""
        ...

    def lives(self, owner: str) -> bool:
        """Tell whether the process of that owner lives. Raises WorkspaceError."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...


class Claims(Protocol):
    """The outcomes of calls with an id, and the signs of those that run. Methods raise WorkspaceError."""

    def keep(self, call_id: str, body: str) -> None:
        """Keep an outcome, and drop those whose time is over."""
        ...

    def kept(self, call_id: str) -> str | None:
        """The outcome of the call, if its time is not over."""
        ...

    def life(self) -> Life:
        """Shows that a call of this process runs."""
        ...

    def close(self) -> None:
        """Close what is open."""
        ...


class Log(Protocol):
    """The audit log. Methods that do not say otherwise raise AuditUnavailable if it cannot be read or written."""

    @property
    def path(self) -> Path | None:
        """The file of a log that is one."""
        ...

    @property
    def claims(self) -> Claims | None:
        """The keeper of calls with an id, if that is no file beside the log."""
        ...

    def check(self) -> None:
        """Raise AuditUnavailable for a log that cannot continue, for example because its key is missing."""
        ...

    def append(self, entries: Sequence[AuditEntry], *, wait: bool = True) -> bool:
        """Commit the rows together, all or none; True if it did.

        The rows of a call that may not begin are left out, and its slot gets the reason. Without ``wait`` it returns
        False where it would have to wait.
        """
        ...

    def count(self, session: Session) -> None:
        """Count in a session all its calls in the log."""
        ...

    def claimed(self, call_id: str) -> tuple[AuditRow, ...]:
        """The rows of a call that its program gave an id, oldest first."""
        ...

    def digest(self, value: object) -> str:
        """The keyed digest of a JSON value: equal for equal arguments, and useless without the key."""
        ...

    def proof_key(self, log_id: str | None = None) -> tuple[str, bytes] | None:
        """The key that proves decisions, derived from the key of this log or of the named one, with that log's id.

        None without such a log or key; nothing is created.
        """
        ...

    def rows(self, *, after: int | None = None) -> Iterator[AuditRow]:
        """The rows after number ``after`` (None: all), oldest first; empty without a log."""
        ...

    def verify(self) -> AuditReport:
        """Check the whole log: its faults, and the calls without an end. It writes nothing and never raises."""
        ...

    def verify_in_pieces(self) -> Generator[int, None, AuditReport]:
        """Verify in pieces, for a progress display: every few milliseconds it yields the number of the row that it has
        reached.
        """
        ...

    def close(self) -> None:
        """Close what is open."""
        ...


RowBuilder = Callable[[Log], Sequence[AuditEntry]]
"""Makes audit rows, once the log and so the key for digests exists."""


class Rates(Protocol):
    """The starts under rates. Methods raise RatesUnavailable. ``wall_s``: the gate's clock, where the state has none of
    its own.
    """

    def peek(self, key: str, rule: RateLimit, wall_s: float) -> Window:
        """The starts that count now; nothing is recorded."""
        ...

    def take(self, rates: Sequence[Rate], wall_s: float) -> tuple[Rate, float] | None:
        """Record a start under every rate; or none, and return the first rate without room with the seconds to
        wait.
        """
        ...

    def give_back(self, rates: Iterable[Rate], wall_s: float, ago_s: float) -> None:
        """Undo a `take` of so many seconds ago whose call never ran.

        The oldest counting start is removed, whichever it is: the remaining ones count as long as those that really
        stay.
        """
        ...

    def close(self) -> None:
        """Close what is open."""
        ...


class TableChange(Protocol):
    """An open transaction on a table."""

    @property
    def rows(self) -> tuple[SealedRow, ...]:
        """The rows that counted at its start."""
        ...

    def put(self, row: SealedRow) -> None:
        """Add a row, or replace the one of the same kind and id."""
        ...

    def delete(self, rows: Iterable[SealedRow]) -> None:
        """Delete rows."""
        ...


class Table(Protocol):
    """Rows that come and go, such as questions and answers. Methods raise WorkspaceError."""

    @property
    def notes(self) -> tuple[str, ...]:
        """The faults found so far, for the operator."""
        ...

    def note(self, text: str) -> None:
        """Record a fault for the operator."""
        ...

    def version(self) -> Version:
        """A value that changes with any change of a row; empty before the first."""
        ...

    def rows(self) -> tuple[SealedRow, ...]:
        """Every row that counts, read once for each version."""
        ...

    def changing(self) -> AbstractContextManager[TableChange]:
        """A transaction that excludes other writers, and writes all or nothing."""
        ...

    def close(self) -> None:
        """Close what is open."""
        ...


class Operators(Protocol):
    """The operators who are there to answer, in any process. Methods raise WorkspaceError."""

    def begin(self, operator: str) -> None:
        """Announce an operator, until ``end``, ``close`` or the end of the process."""
        ...

    def end(self, operator: str) -> None:
        """Withdraw the operator."""
        ...

    def is_anybody(self) -> bool:
        """Tell whether an operator is present."""
        ...

    def close(self) -> None:
        """Withdraw every operator of this object."""
        ...


class Tables(Protocol):
    """A state that makes its tables by itself."""

    def table(self, kinds: Collection[str], name: str) -> tuple[Table, Life, Operators]:
        """The table of that name with rows of these kinds, the life of this process, and who is there to answer."""
        ...


class SessionShelf(Protocol):
    """A place that saves sessions. ``name``: that of one session. Methods raise WorkspaceError."""

    step_s: float
    """The time between two tries to lock a session."""
    place: str
    """The place in words, the same for everybody who saves there."""

    def read(self, name: str) -> dict[str, Any] | None:
        """The saved session with its version and agent; None if none is saved."""
        ...

    def write(self, name: str, saved: Mapping[str, Any]) -> bool:
        """Save a session as its next version, if that is still the next."""
        ...

    def names(self) -> Iterable[str]:
        """The names of the saved sessions, perhaps among others."""
        ...

    def has(self, name: str) -> bool:
        """Tell whether a session is saved under that name."""
        ...

    def delete(self, name: str) -> bool:
        """Delete a session; True if it was there."""
        ...

    def try_lock(self, name: str) -> Any | None:
        """Lock the session; None while somebody else holds it."""
        ...

    def let_go(self, name: str, holder: Any) -> None:
        """Release the session."""
        ...
