"""The audit log: rows in SQLite, each chained to the one before by HMAC-SHA-256 (RFC 2104, FIPS 180-4).

The key and an anchor (number and MAC of the last row) lie in the key folder, away from the log, so that whoever can
write the log but has no key can change, remove, reorder or cut nothing unseen. It does not know what a call is.
Not found: what somebody does who can write the key folder too (an old anchor put back beside an old log).

A row's MAC covers the MAC before it and the canonical JSON of the row. A killed process loses nothing: rows commit
before the anchor moves, and an anchor behind the log is fine. Losing power may cost the last rows, which then shows as
a cut; with ``durable`` it does not.
"""

from __future__ import annotations

import hmac
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gatewright.base.clock import SystemClock, iso_utc
from gatewright.base.errors import WorkspaceError
from gatewright.base.ids import new_id
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.gate.auditfile import (
    COLUMNS,
    FILE_NAME,
    INSERT,
    TABLE,
    audit_database,
    existing_log,
    is_copy,
    lost,
    misplaced,
    read_rows,
)
from gatewright.gate.chain import (
    START_MAC,
    AuditReport,
    AuditRow,
    RowKind,
    Seal,
    Unsealed,
    end_of,
    log_id_of,
    verified,
)
from gatewright.gate.keys import AnchorFile, Home, KeyRing
from gatewright.record import PrivateFolder, renew_after_fork

if TYPE_CHECKING:
    from gatewright.base.clock import Clock


class AuditUnavailable(WorkspaceError):
    """The log cannot be written or its key is not here; calls are denied while it lasts."""


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
    """The log of one workspace. Opening writes nothing; file, key and anchor appear with the first row.

    Several objects and processes may write one log: who holds the anchor writes, and reads the end of the log again
    when somebody else wrote meanwhile.
    """

    def __init__(self, state: Path, keys: Path, *, clock: Clock | None = None, durable: bool = False) -> None:
        self.path = state / FILE_NAME
        self._folder = PrivateFolder(state)
        self._ring = KeyRing(keys)
        self._clock = clock or SystemClock()
        self._durable = durable
        self._open_log: _OpenLog | None = None
        self._forked: list[_OpenLog] = []
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """A free lock."""
        self._lock = threading.Lock()

    def check(self) -> None:
        """Raises AuditUnavailable when a log exists that cannot be continued, above all because its key is missing."""
        with self._lock:
            if self._is_there():
                self._open()

    def append(self, entries: Sequence[AuditEntry], *, wait: bool = True) -> bool:
        """Commit the rows together, all or none; whether it did. Raises AuditUnavailable when they are not safely
        recorded.

        Without ``wait`` it answers False at once when another thread or process is writing.
        """
        if not self._lock.acquire(blocking=wait):
            return False
        try:
            log = self._open()
            try:
                return log.append(entries, iso_utc(self._clock.wall_s()), wait=wait)
            except (sqlite3.Error, OSError, ValueError) as error:
                self._close()
                raise AuditUnavailable(f"the audit log `{self.path}` cannot be written: {_words(error)}") from error
            except BaseException:
                self._close()  # an open transaction would keep every other writer out
                raise
        finally:
            self._lock.release()

    def digest(self, value: object) -> str:
        """The keyed digest of a JSON value: equal arguments show as equal, and nobody without the key can guess them.

        Raises AuditUnavailable.
        """
        log = self._open_log
        if log is None:
            with self._lock:
                log = self._open()
        return hmac.digest(log.key, b"digest\0" + canonical_json(value), "sha256").hex()

    def proof_key(self, log_id: str | None = None) -> tuple[str, bytes] | None:
        """The key that decisions are proved with, made from the key of this log or of the named one, and whose it is.

        None where there is no such log or key; nothing is made.
        """
        with self._lock:
            log_id = log_id or (self._open_log.log_id if self._open_log is not None else self._log_id_on_disk())
            try:
                key = self._ring.key(log_id) if log_id else None
            except OSError:
                return None
            return (log_id, hmac.digest(key, b"proof\0", "sha256")) if key is not None else None

    def _log_id_on_disk(self) -> str:
        try:
            first = next(self.rows(), None)
        except AuditUnavailable:
            return ""
        return log_id_of(first) if first is not None else ""

    def rows(self, *, after: int = 0) -> Iterator[AuditRow]:
        """The rows after number ``after``, oldest first; nothing when there is no log. Raises AuditUnavailable."""
        try:
            yield from read_rows(self._folder, after)
        except (sqlite3.Error, OSError, ValueError) as error:  # sqlite3 may not even say what is wrong with a file
            raise AuditUnavailable(f"the audit log `{self.path}` cannot be read: {_words(error)}") from error

    def verify(self) -> AuditReport:
        """Go through the whole chain: what is wrong with it, and which calls have no end.

        It writes nothing, and may be called while others write.
        """
        try:
            return self._verified(Home.of(self.path.parent))
        except (AuditUnavailable, OSError) as error:
            return AuditReport(0, (str(error),))

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._close()

    def accept_move(self, who: str) -> None:
        """Have a log go on here that was kept elsewhere, which the log then says. Raises AuditUnavailable.

        Not for a copy: one whose original is still where it was is not the log.
        """
        with self._lock:
            self._close()
            first, home = next(self.rows(), None), Home.of(self.path.parent)
            anchor = self._ring.anchor(log_id_of(first)) if first is not None else None
            if anchor is None or anchor.home.is_same(home):
                return
            if is_copy(anchor):
                raise AuditUnavailable(misplaced(anchor))
            report = self._verified(anchor.home)
            if not report.is_sound:
                raise AuditUnavailable(f"the audit log `{self.path}` does not hold: {report.problems[0]}")
            self._open(anchor.home)
        body: dict[str, JsonValue] = {"log": anchor.log_id, "from": anchor.home.folder, "to": home.folder, "who": who}
        self.append([AuditEntry(RowKind.LOG_MOVED, body=body)])

    def _is_there(self) -> bool:
        try:
            return self._folder.look(FILE_NAME) is not None
        except OSError as error:
            raise AuditUnavailable(f"the audit log `{self.path}` cannot be opened: {_words(error)}") from error

    def _verified(self, home: Home) -> AuditReport:
        first = next(self.rows(), None)
        anchors = self._ring.anchors_of(home)
        if first is None:
            return AuditReport(0, tuple(lost(one, home) for one in anchors))
        log_id = log_id_of(first)
        if not log_id:
            return AuditReport(0, ("the first row does not name a log",))
        key = self._ring.key(log_id)
        if key is None:
            return AuditReport(0, (f"the key of the log `{log_id}` is not in `{self._ring.folder}`",))
        problems = [
            f"another log, `{one.log_id}` with {one.seq} rows, lay here before"
            for one in anchors
            if one.log_id != log_id
        ]
        anchor = self._ring.anchor(log_id)  # before the rows are read: who writes now only adds to them
        if anchor is not None and not anchor.home.is_same(home):
            problems.append(misplaced(anchor))
        return verified(self.rows(), key, anchor, problems)

    def _open(self, home: Home | None = None) -> _OpenLog:
        """``home``: where the log was kept until now, when it may go on here although that is elsewhere."""
        if self._open_log is not None:
            if self._open_log.process == os.getpid():
                return self._open_log
            self._forked.append(self._open_log)  # the parent's: to close it here would disturb it
            self._open_log = None
        try:
            now = iso_utc(self._clock.wall_s())
            self._open_log = _OpenLog(self._folder, self._ring, self._durable, now, home)
        except (sqlite3.Error, OSError, ValueError) as error:
            raise AuditUnavailable(f"the audit log `{self.path}` cannot be opened: {_words(error)}") from error
        return self._open_log

    def _close(self) -> None:
        if self._open_log is not None:
            self._open_log.close()
            self._open_log = None


class _OpenLog:
    """A log that is being written: connection, key, anchor, and the last row as it was written or read here."""

    key: bytes
    _seal: Seal
    _anchor: AnchorFile

    def __init__(self, folder: PrivateFolder, ring: KeyRing, durable: bool, time: str, moved: Home | None) -> None:
        self.process = os.getpid()
        self._moved = moved
        self._database = audit_database(folder, durable=durable)
        self._path = str(self._database.path)
        self._last: tuple[int, str] | None = None
        self.log_id = ""
        try:
            connection = self._database.connection(write=True)
            assert connection is not None
            self._connection, self._home = connection, Home.of(folder.path)
            self._identify(ring, time)
        except BaseException:
            self._database.close()
            raise

    def append(self, entries: Sequence[AuditEntry], time: str, *, wait: bool) -> bool:
        """Within the anchor's lock: add the rows, commit, and only then move the anchor."""
        if not self._database.is_current():  # rows for a log that was removed or replaced would go nowhere
            raise FileNotFoundError("it was replaced while it was open")
        if not self._anchor.hold(wait=wait):
            return False
        try:
            if self._last is None or not self._anchor.is_known():
                self._find_end(time)
            try:
                self._insert(entries, time)
            except sqlite3.IntegrityError:  # somebody died between commit and anchor
                self._roll_back()
                self._find_end(time)
                self._insert(entries, time)
        finally:
            self._anchor.let_go()
        return True

    def close(self) -> None:
        """Let go of both files."""
        self._database.close()
        self._anchor.close()

    def _insert(self, entries: Sequence[AuditEntry], time: str) -> None:
        seq, mac = self._last or (0, START_MAC)
        rows: list[tuple[int | str, ...]] = []
        for entry in entries:
            seq += 1
            row = _unsealed(seq, time, entry)
            mac = self._seal(mac, row)
            rows.append((*row, mac))
        self._add(rows)
        self._anchor.write(seq, mac)
        self._last = (seq, mac)

    def _add(self, rows: list[tuple[int | str, ...]]) -> None:
        if len(rows) == 1:
            self._connection.execute(INSERT, rows[0])  # a transaction of its own
            return
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(INSERT, rows)
        self._connection.execute("COMMIT")

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _find_end(self, time: str) -> None:
        """Read where the log goes on. One that did not reach its anchor goes on from the anchor, and says so for good.

        Otherwise what was cut off would be forgotten with the next row.
        """
        anchor = self._anchor.read()
        if anchor is None or anchor.log_id != self.log_id:
            raise ValueError("its anchor is not readable")
        found = self._connection.execute(f"SELECT {COLUMNS} FROM rows WHERE seq >= ? ORDER BY seq", (anchor.seq,))
        end = end_of((AuditRow(*row) for row in found), anchor, self._seal)
        if end is not None:
            self._last = end
            return
        highest = self._connection.execute("SELECT max(seq) FROM rows").fetchone()[0] or 0
        self._last = (max(highest, anchor.seq), anchor.mac)
        body: dict[str, JsonValue] = {"log": self.log_id, "anchor": anchor.seq, "previous": anchor.mac}
        self._insert([AuditEntry(RowKind.LOG_OPENED, body={**body, "after": highest})], time)

    def _identify(self, ring: KeyRing, time: str) -> None:
        """Read which log this is, or begin a new one: key and anchor first, then the first row."""
        self._connection.execute("BEGIN IMMEDIATE")
        self.log_id = existing_log(self._connection)
        if not self.log_id:
            self._begin(ring, time)
            return
        self._connection.execute("ROLLBACK")
        key = ring.key(self.log_id)
        if key is None:
            text = f"the audit log `{self._path}` exists and its key is not in `{ring.folder}`"
            raise AuditUnavailable(f"{text}; put the key back, or move the log away to begin a new one")
        self._take(key)
        anchor = ring.anchor(self.log_id)
        if anchor is not None and not any(anchor.home.is_same(one) for one in (self._home, self._moved) if one):
            raise AuditUnavailable(misplaced(anchor))
        try:
            self._anchor = AnchorFile(ring.anchor_path(self.log_id), self.log_id, self._home)
        except FileNotFoundError:
            text = f"the audit log `{self._path}` exists and its anchor is not in `{ring.folder}`"
            raise AuditUnavailable(f"{text}; put the anchor back, or move the log away to begin a new one") from None

    def _take(self, key: bytes) -> None:
        self.key = key
        self._seal = Seal(key)

    def _begin(self, ring: KeyRing, time: str) -> None:
        self.log_id = new_id("log")
        self._take(ring.create(self.log_id, self._home))
        self._anchor = AnchorFile(ring.anchor_path(self.log_id), self.log_id, self._home)
        row = _unsealed(1, time, AuditEntry(RowKind.LOG_OPENED, body={"log": self.log_id}))
        mac = self._seal(START_MAC, row)
        self._connection.execute(TABLE)
        self._connection.execute(INSERT, (*row, mac))
        self._connection.execute("COMMIT")


def _unsealed(seq: int, time: str, entry: AuditEntry) -> Unsealed:
    body = canonical_json(dict(entry.body)).decode()
    return (seq, time, entry.kind.value, entry.call_id, entry.agent, entry.session, entry.tool, entry.operation, body)


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower() + (f" (`{error.filename}`)" if error.filename else "")
    return str(error)
