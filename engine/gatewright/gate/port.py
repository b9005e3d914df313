"""The state port: what the gate asks of the state that its processes share.

Two implementations: SQLite files in a folder (`gate/audit.py`, `gate/history.py`), and a PostgreSQL database
(`gate/shared.py`). The contract tests run over both. Blocks, notes, archives and conversations are files alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Protocol

from gatewright.base.errors import WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.compile.rule_test import Rate
from gatewright.gate.chain import AuditReport, AuditRow, RowKind
from gatewright.gate.history import Window
from gatewright.gate.session import Reservation, Session
from gatewright.policy.rule import RateLimit

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


class Log(Protocol):
    """The audit log. Methods that do not say otherwise raise AuditUnavailable if it cannot be read or written."""

    @property
    def path(self) -> Path | None:
        """The file of a log that is one."""
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
