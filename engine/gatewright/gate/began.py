"""The calls of a session that began, as the audit log has them: its rows are the one place where calls are counted.

A call begins when its row and the decision that allows it are committed, or, where somebody was asked, the answer's row
and that decision. Only the row of a call that was given up in the very moment before its tool was called takes that
back, and the row of a session's deletion everything. Limits are tested once more in the transaction that writes these
rows, so that neither processes side by side nor ones that were killed overrun them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, cast

from gatewright.base.clock import Clock
from gatewright.base.jsonvalue import JsonValue
from gatewright.compile.finding import Finding
from gatewright.gate.chain import RowKind, read_object
from gatewright.gate.session import NO_USE, Session, SessionFacts, Use, keys_of
from gatewright.policy.verdict import Verdict

if TYPE_CHECKING:
    from gatewright.record.database import Connection

_COUNTS, _SOURCES = "counts", "sources"
_KINDS = "kind = 'ToolInvoked' OR kind = 'ApprovalResolved' OR kind = 'ToolAbandoned' OR kind = 'SessionDeleted'"
INDEX = f"CREATE INDEX IF NOT EXISTS began ON rows (session) WHERE {_KINDS}"
"""Of the few rows that may count: one for each call that asked nobody. A log of an older version gets it."""
_READ = f"""SELECT seq, time, kind, agent, tool, operation, body, (
    SELECT body FROM rows AS later WHERE later.seq > rows.seq AND later.seq < rows.seq + 32
    AND later.call_id = rows.call_id AND later.kind = 'PolicyDecision' ORDER BY later.seq LIMIT 1
  ) FROM rows WHERE session = ? AND seq > ? AND ({_KINDS}) ORDER BY seq"""
"""Each of them with the decision that was committed together with it."""
_MOST_SESSIONS = 1_000
_MOST_TIMES = 2**53

Test = Callable[[SessionFacts], "Finding | None"]


class Slot:
    """What a call takes of its session when it begins. ``test``: what the session's other calls may say against it.

    ``refusal``: what they said when the rows were to be written, which then were not.
    """

    def __init__(
        self, session: Session, operations: Mapping[str, int], sources: tuple[str, ...], test: Test | None
    ) -> None:
        self.session = session
        self.operations = operations
        self.sources = sources
        self.test = test
        self.refusal: Finding | None = None

    def to_json(self, operation: str) -> dict[str, JsonValue]:
        """What the row of the call says of it beside its operation: a batch, and the sources that it goes to."""
        said: dict[str, JsonValue] = {}
        if self.operations != {operation: 1}:
            said[_COUNTS] = dict(self.operations)
        if self.sources:
            said[_SOURCES] = list(self.sources)
        return said


class Counts:
    """The sessions whose calls a writer of the log has counted; those that were asked for last are kept."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], Counted] = OrderedDict()

    def refuses(self, slot: Slot, connection: Connection) -> bool:
        """Whether the log, as it is in this transaction, speaks against a call that is to begin."""
        if slot.test is None:
            return False
        session = slot.session
        key = session.log_name, session.log_agent
        counted = self._kept[key] = self._kept.pop(key, None) or Counted()
        while len(self._kept) > _MOST_SESSIONS:
            self._kept.popitem(last=False)
        counted.read(connection, session)
        slot.refusal = slot.test(SessionFacts(session.session_id, counted.uses))
        session.is_counted = session.is_counted and slot.refusal is None
        return slot.refusal is not None

    def begin(self, slot: Slot, tool: str, seq: int, time: str) -> None:
        """Take in the row of a call that nothing speaks against, as it is written: nobody has to read it again."""
        session = slot.session
        self._kept[session.log_name, session.log_agent].take(seq, tool, slot, time)

    def clear(self) -> None:
        """Forget what was read: it did not come to be written."""
        self._kept.clear()


class Counted:
    """The calls of one session up to a row. ``uses``: their number, and the wall time at which the latest started."""

    def __init__(self) -> None:
        self.uses: dict[str, dict[tuple[str, str], Use]] = {}
        self._seq = 0

    def read(self, connection: Connection, session: Session) -> None:
        """Take in what was written since."""
        for seq, time, kind, agent, tool, operation, body, decision in connection.execute(
            _READ, (session.log_name, self._seq)
        ):
            self._seq = seq
            if session.log_agent and agent != session.log_agent:
                continue
            said = read_object(body) or {}
            if kind == RowKind.SESSION_DELETED:
                self.uses.clear()
            elif kind == RowKind.TOOL_ABANDONED:
                if said.get("started") is False:
                    self._take(tool, *_said(said, operation), None, -1)
            elif (read_object(decision) or {}).get("verdict") == Verdict.ALLOW:
                self._take(tool, *_said(said, operation), _wall_s(time), 1)

    def take(self, seq: int, tool: str, slot: Slot, time: str) -> None:
        """Take in the next row, which lets that call begin."""
        self._seq = seq
        self._take(tool, slot.operations, slot.sources, _wall_s(time), 1)

    def _take(
        self, tool: str, times: Mapping[str, object], sources: Iterable[str], started_s: float | None, sign: int
    ) -> None:
        uses = self.uses.setdefault(tool, {})
        for key in keys_of(times, sources):
            use, count = uses.get(key, NO_USE), times[key[0]]
            if type(count) is int and 0 < count < _MOST_TIMES:
                is_later = started_s is not None and (use.started_s is None or started_s > use.started_s)
                uses[key] = Use(max(0, use.calls + sign * count), started_s=started_s if is_later else use.started_s)


def count_in(session: Session, connection: Connection, clock: Clock) -> None:
    """Have a session know all its calls that the log has."""
    counted = Counted()
    counted.read(connection, session)
    session.count(counted.uses, clock)


def _said(said: Mapping[str, object], operation: str) -> tuple[Mapping[str, object], Iterable[str]]:
    """Read what a row says that its call counts for: how many times each operation, and the sources that it goes to."""
    counts, named = said.get(_COUNTS, {operation: 1}), said.get(_SOURCES)
    times = cast("dict[str, object]", counts) if isinstance(counts, dict) else {}
    return times, map(str, cast("list[object]", named)) if isinstance(named, list) else ()


def _wall_s(time: str) -> float | None:
    try:
        return datetime.fromisoformat(time).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
