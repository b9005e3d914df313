"""The chain of audit rows: the key that seals them, the anchor with their last number, and the proof of the chain.

A row's MAC is HMAC-SHA-256 (RFC 2104, FIPS 180-4) over the MAC before it and the canonical JSON of the row. The key of
a log and its anchor (number and MAC of the last row) lie away from the log.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, cast

from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, Seal
from gatewright.base.late import late_regex
from gatewright.record.folder import Home, PrivateFolder, find_key, have_key
from gatewright.record.sealedtable import AnchorFile

START_MAC = "0" * 64
"""The MAC before the first row of a log."""
ANCHOR = b'%s%19d, "mac": "%s"}'
"""The text of an anchor: its frame, the number and the MAC of the row; equally long for every row."""
_LOG_ID = late_regex(r"log-[0-9a-f]{16}")


@frozen
class Anchor:
    """The anchor of a log: the log's id and home, and number and MAC (hexadecimal) of its last row.

    Number 0 and the MAC of zeros mean that the log was about to begin.
    """

    log_id: str
    home: Home
    seq: int = 0
    mac: str = START_MAC

    def frame(self) -> bytes:
        """The text of the anchor before the number of the row."""
        kept = json.dumps({"log": self.log_id, "folder": self.home.folder, "around": self.home.around})
        return f'{kept[:-1]}, "seq": '.encode()

    @classmethod
    def from_text(cls, text: bytes) -> Anchor | None:
        """Parse an anchor; None for an unreadable one."""
        try:
            fields: Any = json.loads(text)
            home = Home(str(fields["folder"]), str(fields.get("around", "")))
            return cls(str(fields["log"]), home, int(fields["seq"]), str(fields["mac"]))
        except (ValueError, TypeError, KeyError, AttributeError):
            return None


class KeyRing:
    """The key folder as the audit log uses it. ``create`` makes the first file. Methods raise OSError."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files = PrivateFolder(folder)

    def create(self, log_id: str, home: Home) -> bytes:
        """A new random key, readable by its owner only, and the anchor of a log that begins there."""
        key = have_key(self._files, _name(log_id, "key"))
        text = ANCHOR % (Anchor(log_id, home).frame(), 0, START_MAC.encode())
        self._files.replace(_name(log_id, "anchor"), text)
        return key

    def key(self, log_id: str) -> bytes | None:
        """The key of a log, or None if it is missing."""
        return find_key(self._files, _name(log_id, "key")) if _LOG_ID.fullmatch(log_id) else None

    def anchor_file(self, log_id: str) -> AnchorFile:
        """The anchor of a log, to hold."""
        return AnchorFile(self._files, _name(log_id, "anchor"))

    def anchor(self, log_id: str) -> Anchor | None:
        """The anchor of a log, or None for a missing or unreadable one."""
        return self._read(_name(log_id, "anchor")) if _LOG_ID.fullmatch(log_id) else None

    def anchors_of(self, home: Home) -> tuple[Anchor, ...]:
        """Every anchor of a log with rows in that state folder, whatever the folder's name."""
        names = [name for name in self._files.names() if name.startswith("audit-") and name.endswith(".anchor")]
        return tuple(one for one in map(self._read, names) if one is not None and one.home.is_same(home) and one.seq)

    def _read(self, name: str) -> Anchor | None:
        with closing(AnchorFile(self._files, name)) as file, suppress(OSError):
            return Anchor.from_text(file.read())
        return None


def _name(log_id: str, what: str) -> str:
    return f"audit-{log_id}.{what}"


FIRST = 1
"""The number of the first row of a log."""
_MOST_PROBLEMS = 50
_PIECE = 250
Unsealed = tuple[int, str, str, str, str, str, str, str, str]
"""A row without its MAC: seq, time, kind, call_id, agent, session, tool, operation, body."""


class RowKind(StrEnum):
    """What a row is about; a call ends in exactly one of the last five."""

    LOG_OPENED = "LogOpened"
    LOG_MOVED = "LogMoved"
    POLICY_CHANGED = "PolicyChanged"
    GRANT_REVOKED = "GrantRevoked"
    CATALOG_ACCEPTED = "CatalogAccepted"
    MEMORY_ADOPTED = "MemoryAdopted"
    SESSION_DELETED = "SessionDeleted"
    CONNECTION = "Connection"
    COPY_RETURNED = "CopyReturned"
    STOP_PULLED = "StopPulled"
    STOP_LIFTED = "StopLifted"
    TOOL_INVOKED = "ToolInvoked"
    CAPABILITY_CHECK = "CapabilityCheck"
    POLICY_DECISION = "PolicyDecision"
    APPROVAL_REQUESTED = "ApprovalRequested"
    APPROVAL_RESOLVED = "ApprovalResolved"
    CALL_WAITS = "CallWaits"
    TOOL_COMPLETED = "ToolCompleted"
    TOOL_FAILED = "ToolFailed"
    TOOL_TIMED_OUT = "ToolTimedOut"
    TOOL_ABANDONED = "ToolAbandoned"
    TOOL_DENIED = "ToolDenied"


CALL_ENDS = tuple(RowKind)[-5:]


@frozen
class AuditRow:
    """A row as stored in the log; ``time`` is RFC 3339 in UTC, ``body`` is JSON text."""

    seq: int
    time: str
    kind: str
    call_id: str
    agent: str
    session: str
    tool: str
    operation: str
    body: str
    mac: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The row without number, time and MAC."""
        return self.kind, self.call_id, self.agent, self.session, self.tool, self.operation, self.body

    def to_json(self) -> dict[str, JsonValue]:
        """Every column by its name, ``body`` as its object; a damaged body appears as text."""
        fields = {name: _as_json(getattr(self, name)) for name in AuditRow.__match_args__}
        body = read_object(self.body)
        return fields if body is None else {**fields, "body": cast("JsonValue", body)}

    def to_line(self) -> str:
        """`to_json` as one line of JSON."""
        return json.dumps(self.to_json(), ensure_ascii=False)


class LogRows(Protocol):
    """The rows of a log as one transaction of its writer sees them."""

    def of_session(self, session: str, after: int) -> Iterable[tuple[Any, ...]]:
        """The rows of a session that may count, after a position, in their order: position, time, kind, agent, tool,
        operation, call id, body, and the body of the decision committed with it or None.
        """
        ...

    def of_call(self, call_id: str) -> tuple[AuditRow, ...]:
        """The rows of a call that its program named, oldest first."""
        ...


@frozen
class AuditReport:
    """The result of a verification: the number of proved rows, the problems in words, and the calls without an end.

    Such a call, given by its first row, still runs, here or in another process, or was killed. ``proved_to``: the
    number of the row up to which every row is proved.
    """

    rows: int
    problems: tuple[str, ...]
    unended: tuple[AuditRow, ...] = ()
    proved_to: int = 0

    @property
    def is_sound(self) -> bool:
        """True if the verification found no problem."""
        return not self.problems

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: rows, sound, problems, unended: id, agent, tool and time of each call without an end."""
        calls: list[JsonValue] = [
            {"call_id": row.call_id, "agent": row.agent, "tool": row.tool, "time": row.time} for row in self.unended
        ]
        return {"rows": self.rows, "sound": self.is_sound, "problems": list(self.problems), "unended": calls}


def verify(
    rows: Iterator[AuditRow], key: bytes, anchor: Anchor | None, problems: list[str]
) -> Generator[int, None, AuditReport]:
    """Check the rows and compare the end with the anchor; ``problems`` are those known before.

    It continues after a problem, so that one lost row does not leave all later ones unproved, and yields its progress
    now and then.
    """
    walk = _Walk(Seal(key), problems)
    anchored = anchor is not None and anchor.seq == 0
    for count, row in enumerate(rows):
        walk.step(row)
        if count % _PIECE == 0:
            yield walk.last
        anchored = anchored or (anchor is not None and anchor.seq == row.seq and anchor.mac == row.mac)
    if anchor is None:
        walk.object("the anchor of the log is missing")
    elif not anchored:
        walk.object(f"the log ends after row {walk.last}, but its anchor is at row {anchor.seq}")
    return walk.report()


class _Walk:
    """One walk along a chain: the proved rows, the MAC before the next row (None: unknown), the problems."""

    def __init__(self, seal: Seal, problems: list[str]) -> None:
        self.last = 0
        self._seal = seal
        self._previous: str | None = START_MAC
        self._proved = self._proved_to = 0
        self._problems = problems
        self._more = 0
        self._begun: dict[str, AuditRow] = {}

    def step(self, row: AuditRow) -> None:
        if type(row.seq) is not int:  # somebody changed the table itself
            self.object("a row has no number")
            return
        if row.seq < FIRST:
            self.object(f"row {row.seq} was added: the first row of a log has the number {FIRST}")
            return
        resumed = resumption_of(row)
        if resumed is not None:
            self.object(f"row {row.seq} continues from an anchor at row {resumed.seq} beyond the end of the log")
            self._previous = resumed.mac
        elif row.seq != self.last + 1:
            first, last = self.last + 1, row.seq - 1
            lost = f"row {first} is" if first >= last else f"rows {first} to {last} are"
            self.object(f"{lost} missing, so row {row.seq} is not proved")
            self._previous = None
        problem = _row_problem(row, self._seal, self._previous) if self._previous is not None else ""
        if problem:
            self.object(problem)
        if problem is None:
            self._proved += 1
            self._proved_to += row.seq == self._proved_to + 1
            if row.kind == RowKind.TOOL_INVOKED:
                self._begun[row.call_id] = row
            elif row.kind in CALL_ENDS or row.kind == RowKind.CALL_WAITS:
                self._begun.pop(row.call_id, None)
        self.last, self._previous = row.seq, row.mac if isinstance(row.mac, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]

    def object(self, problem: str) -> None:
        if len(self._problems) < _MOST_PROBLEMS:
            self._problems.append(problem)
        else:
            self._more += 1

    def report(self) -> AuditReport:
        more = (f"and {self._more:,} more problems",) if self._more else ()
        return AuditReport(self._proved, (*self._problems, *more), tuple(self._begun.values()), self._proved_to)


@frozen
class Resumption:
    """Continues a log that was shorter than its anchor: the anchor's row and MAC."""

    seq: int
    mac: str


def resumption_of(row: AuditRow) -> Resumption | None:
    """The resumption that a row records; None for every other row."""
    if row.kind != RowKind.LOG_OPENED or row.seq == 1:
        return None
    body = read_object(row.body) or {}
    seq, mac = body.get("anchor"), body.get("previous")
    return Resumption(seq, mac) if isinstance(seq, int) and isinstance(mac, str) else None


def fields_of(row: AuditRow) -> Unsealed:
    """The sealed fields of the row."""
    return (row.seq, row.time, row.kind, row.call_id, row.agent, row.session, row.tool, row.operation, row.body)


def end_of(rows: Iterator[AuditRow], anchor: Anchor, seal: Seal) -> tuple[int, str] | None:
    """The last row, if the log reaches its anchor and continues from it correctly; None otherwise."""
    end: tuple[int, str] = (0, START_MAC)
    if anchor.seq > 0:
        at_anchor = next(rows, None)
        if at_anchor is None or (at_anchor.seq, at_anchor.mac) != (anchor.seq, anchor.mac):
            return None
        end = (anchor.seq, anchor.mac)
    for row in rows:
        if row.seq != end[0] + 1 or _row_problem(row, seal, end[1]) is not None:
            return None
        end = (row.seq, row.mac)
    return end


def _row_problem(row: AuditRow, seal: Seal, previous: str) -> str | None:
    try:
        is_ours = seal.is_on(fields_of(row), row.mac, previous)
    except (TypeError, ValueError):
        return f"row {row.seq} is unreadable"
    return None if is_ours else f"row {row.seq} was changed, moved or added"


def log_id_of(first: AuditRow) -> str:
    """The id of the log that begins with that row; empty if it names none."""
    return str((read_object(first.body) or {}).get("log", ""))


def _as_json(value: object) -> JsonValue:
    return value if value is None or isinstance(value, int | str) else repr(value)


def read_object(text: object) -> dict[str, object] | None:
    """The JSON object in a row's body; None for anything else."""
    try:
        body = cast("object", json.loads(cast("str", text)))
    except (ValueError, TypeError, RecursionError):
        return None
    return cast("dict[str, object]", body) if isinstance(body, dict) else None
