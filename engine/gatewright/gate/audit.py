"""The audit log: rows in SQLite, each chained to the one before by HMAC-SHA-256 (RFC 2104, FIPS 180-4).

The key and an anchor (number and MAC of the last row) lie in the key folder, away from the log, so that whoever can
write the log but has no key can change, remove, reorder or cut nothing unseen. It does not know what a call is.

A row's MAC covers the MAC before it and the canonical JSON of the row. Durable against a killed process (WAL), with
``durable`` against loss of power too.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, cast

from gatewright.base.clock import SystemClock, iso_utc
from gatewright.base.errors import WorkspaceError
from gatewright.base.ids import new_id
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.gate.chain import START_MAC, AuditReport, AuditRow, Unsealed, log_id_of, seal, verified
from gatewright.gate.keys import Anchor, KeyRing, write_anchor

if TYPE_CHECKING:
    from gatewright.base.clock import Clock

FILE_NAME = "audit.sqlite3"
_BUSY_S = 1.0
_TABLE = """CREATE TABLE rows (
  seq INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, call_id TEXT NOT NULL, agent TEXT NOT NULL,
  session TEXT NOT NULL, tool TEXT NOT NULL, operation TEXT NOT NULL, body TEXT NOT NULL, mac TEXT NOT NULL
)"""
_COLUMNS = "seq, time, kind, call_id, agent, session, tool, operation, body, mac"
_INSERT = f"INSERT INTO rows ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class AuditUnavailable(WorkspaceError):
    """The log cannot be written or its key is not here; calls are denied while it lasts."""


class RowKind(StrEnum):
    """What a row records; a call ends in exactly one of the last five."""

    LOG_OPENED = "LogOpened"
    TOOL_INVOKED = "ToolInvoked"
    POLICY_DECISION = "PolicyDecision"
    APPROVAL_REQUESTED = "ApprovalRequested"
    APPROVAL_RESOLVED = "ApprovalResolved"
    TOOL_COMPLETED = "ToolCompleted"
    TOOL_FAILED = "ToolFailed"
    TOOL_TIMED_OUT = "ToolTimedOut"
    TOOL_ABANDONED = "ToolAbandoned"
    TOOL_DENIED = "ToolDenied"


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A row before it is written. ``body`` holds no argument values; its reason may name a path or an unknown word."""

    kind: RowKind
    call_id: str = ""
    agent: str = ""
    session: str = ""
    tool: str = ""
    operation: str = ""
    body: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue], hash=False)


class AuditLog:
    """The log of one workspace. Opening writes nothing; file, key and anchor appear with the first row."""

    def __init__(self, state: Path, keys: Path, *, clock: Clock | None = None, durable: bool = False) -> None:
        self.path = state / FILE_NAME
        self._ring = KeyRing(keys)
        self._clock = clock or SystemClock()
        self._durable = durable
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._log_id = ""
        self._key = b""
        self._folder = ""
        self._file = (0, 0)

    def check(self) -> None:
        """Raises AuditUnavailable when a log exists that cannot be continued, above all because its key is missing."""
        with self._lock:
            if self.path.exists():
                self._open()

    def append(self, entries: Sequence[AuditEntry]) -> None:
        """Commit the rows together, all or none. Raises AuditUnavailable when they are not safely recorded."""
        with self._lock:
            connection = self._open()
            try:
                _check_in_place(self.path, self._file)
                with self._ring.locked(self._log_id) as anchor:
                    connection.execute("BEGIN IMMEDIATE")
                    self._insert(connection, anchor, entries)
            except (sqlite3.Error, OSError, ValueError) as error:
                self._close()
                raise AuditUnavailable(f"the audit log `{self.path}` cannot be written: {_words(error)}") from error
            except BaseException:
                self._close()  # an open transaction would keep every other writer out
                raise

    def digest(self, value: object) -> str:
        """The keyed digest of a JSON value: equal arguments show as equal, and nobody without the key can guess them.

        Raises AuditUnavailable.
        """
        with self._lock:
            self._open()
            return hmac.new(self._key, b"digest\0" + canonical_json(value), hashlib.sha256).hexdigest()

    def rows(self, *, after: int = 0) -> Iterator[AuditRow]:
        """The rows after number ``after``, oldest first; nothing when there is no log. Raises AuditUnavailable."""
        if not self.path.exists():
            return
        try:
            connection = _read_only(self.path)
            try:
                found = connection.execute(f"SELECT {_COLUMNS} FROM rows WHERE seq > ? ORDER BY seq", (after,))
                yield from (AuditRow(*row) for row in found)
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise AuditUnavailable(f"the audit log `{self.path}` cannot be read: {_words(error)}") from error

    def verify(self) -> AuditReport:
        """Go through the whole chain. It writes nothing."""
        folder = str(self.path.parent.resolve())
        if not self.path.exists():
            lost = [
                f"the log `{anchor.log_id}` with {anchor.seq} rows is gone" for anchor in self._ring.anchors_of(folder)
            ]
            return AuditReport(0, tuple(lost))
        try:
            return self._verified(folder)
        except (AuditUnavailable, OSError) as error:
            return AuditReport(0, (str(error),))

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._close()

    def _verified(self, folder: str) -> AuditReport:
        rows = self.rows()
        first = next(rows, None)
        if first is None:
            return AuditReport(0, ("the log has no first row",))
        log_id = log_id_of(first)
        if not log_id:
            return AuditReport(0, ("the first row does not name a log",))
        key = self._ring.key(log_id)
        if key is None:
            return AuditReport(0, (f"the key of the log `{log_id}` is not in `{self._ring.folder}`",))
        others = [a for a in self._ring.anchors_of(folder) if a.log_id != log_id]
        problems = [f"another log, `{other.log_id}` with {other.seq} rows, lay here before" for other in others]
        return verified(first, rows, key, self._ring.anchor(log_id), problems)

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None:
            return self._connection
        try:
            connection = self._opened()
        except (sqlite3.Error, OSError) as error:
            raise AuditUnavailable(f"the audit log `{self.path}` cannot be opened: {_words(error)}") from error
        self._connection = connection
        return connection

    def _opened(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        connection = _writable(self.path, durable=self._durable)
        try:
            self._folder = str(self.path.parent.resolve())
            self._file = _identity(self.path)
            self._identify(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _identify(self, connection: sqlite3.Connection) -> None:
        """Read which log this is, or begin a new one: key first, then the first row and the anchor."""
        connection.execute("BEGIN IMMEDIATE")
        self._log_id = _existing_log(connection)
        if not self._log_id:
            self._begin(connection)
            return
        connection.execute("ROLLBACK")
        key = self._ring.key(self._log_id)
        if key is None:
            text = f"the audit log `{self.path}` exists and its key is not in `{self._ring.folder}`"
            raise AuditUnavailable(f"{text}; put the key back, or move the log away to begin a new one")
        self._key = key

    def _begin(self, connection: sqlite3.Connection) -> None:
        self._log_id = new_id("log")
        self._key = self._ring.create(self._log_id)
        connection.execute(_TABLE)
        with self._ring.locked(self._log_id) as anchor:
            self._insert(connection, anchor, [AuditEntry(RowKind.LOG_OPENED, body={"log": self._log_id})])

    def _insert(self, connection: sqlite3.Connection, anchor: int, entries: Sequence[AuditEntry]) -> None:
        """Within an open transaction: add the rows, commit, and only then move the anchor."""
        last = connection.execute("SELECT seq, mac FROM rows ORDER BY seq DESC LIMIT 1").fetchone()
        seq, mac = cast("tuple[int, str]", last) if last else (0, START_MAC)
        time = iso_utc(self._clock.wall_s())
        for entry in entries:
            seq += 1
            row = _unsealed(seq, time, entry)
            mac = seal(self._key, mac, row)
            connection.execute(_INSERT, (*row, mac))
        connection.execute("COMMIT")
        write_anchor(anchor, Anchor(self._log_id, self._folder, seq, mac))

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _unsealed(seq: int, time: str, entry: AuditEntry) -> Unsealed:
    body = canonical_json(dict(entry.body)).decode()
    return (seq, time, str(entry.kind), entry.call_id, entry.agent, entry.session, entry.tool, entry.operation, body)


def _existing_log(connection: sqlite3.Connection) -> str:
    """The id in the first row; empty when the file holds no log yet."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'rows'").fetchone() is None:
        return ""
    row = connection.execute(f"SELECT {_COLUMNS} FROM rows ORDER BY seq LIMIT 1").fetchone()
    log_id = log_id_of(AuditRow(*row)) if row else ""
    if not log_id:
        raise sqlite3.DatabaseError("its first row does not name a log")
    return log_id


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower() + (f" (`{error.filename}`)" if error.filename else "")
    return str(error)


def _identity(path: Path) -> tuple[int, int]:
    facts = path.stat()
    return facts.st_dev, facts.st_ino


def _check_in_place(path: Path, known: tuple[int, int]) -> None:
    """An open file outlives its name: rows for a log that was removed or replaced would go nowhere."""
    if _identity(path) != known:
        raise FileNotFoundError("it was replaced while it was open")


def _writable(path: Path, *, durable: bool) -> sqlite3.Connection:
    if path.is_symlink():
        raise OSError(errno.ELOOP, "it is a symbolic link, which is not followed", str(path))
    if not path.exists():
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
    return connection


def _read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_BUSY_S)
