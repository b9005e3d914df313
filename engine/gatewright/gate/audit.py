"""The audit log: rows in SQLite, each chained to the one before by HMAC-SHA-256 (RFC 2104, FIPS 180-4).

The key and an anchor (number and MAC of the last row) lie in the key folder, away from the log: without the key nobody
can change, remove, reorder or cut rows unseen. A person who can also write the key folder can do so (with an old anchor
beside an old log).

A row's MAC covers the MAC before it and the canonical JSON of the row. A killed process loses nothing: rows commit
before the anchor moves, and an anchor behind the log is fine. A loss of power may cost the last rows, which then shows
as a cut; with ``durable`` it costs none. It has more than 450 lines because rows, anchor and key are one promise.
"""

from __future__ import annotations

import errno
import hmac
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from gatewright.base.amount import Clock, SystemClock, iso_utc, new_id
from gatewright.base.jsonvalue import JsonValue, Seal, canonical_json
from gatewright.base.late import last_of
from gatewright.gate.chain import (
    ANCHOR,
    FIRST,
    START_MAC,
    Anchor,
    AuditReport,
    AuditRow,
    KeyRing,
    RowKind,
    Unsealed,
    end_of,
    log_id_of,
    verify,
)
from gatewright.gate.history import INDEX, SESSION_ROWS, Counts, count_in
from gatewright.gate.port import AuditEntry, AuditUnavailable, Columns
from gatewright.gate.session import Session
from gatewright.record.database import FAILURES, Connection, Database
from gatewright.record.folder import Home, PrivateFolder
from gatewright.record.process import renew_after_fork

FILE_NAME = "audit.sqlite3"
_BUSY_S = 1.0
_HIGHEST = 2**62
"""The highest possible number of a row; a higher one is forged."""
_CHECKPOINT_PAGES = 4000
_PAGE = 500
_TABLE = """CREATE TABLE rows (
  seq INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, call_id TEXT NOT NULL, agent TEXT NOT NULL,
  session TEXT NOT NULL, tool TEXT NOT NULL, operation TEXT NOT NULL, body TEXT NOT NULL, mac TEXT NOT NULL
)"""
_INDEX = "CREATE INDEX IF NOT EXISTS claimed ON rows (call_id) WHERE call_id > 'claim-'"
SELECT_ROWS = "SELECT seq, time, kind, call_id, agent, session, tool, operation, body, mac FROM rows"
_CLAIMED = f"{SELECT_ROWS} WHERE call_id > 'claim-' AND call_id = ? ORDER BY seq"
_INSERT = "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

End = tuple[int, str]
"""Number and MAC of the last row."""


class AuditLog:
    """The log of one workspace. Opening writes nothing; the first row creates file, key and anchor.

    Several objects and processes may write one log: the holder of the anchor writes, and rereads the end of the log
    after other writers.
    """

    claims = None

    def __init__(self, state: Path, keys: Path, *, clock: Clock | None = None, durable: bool = False) -> None:
        self.path = state / FILE_NAME
        self._ring = KeyRing(keys)
        self._clock = clock or SystemClock()
        self._database = audit_database(state, durable=durable)
        self._writer: _Writer | None = None
        renew_after_fork(self)

    def renew(self) -> None:
        """Reopen the log in a child."""
        self._writer = None

    def check(self) -> None:
        """Raise AuditUnavailable for a log that cannot continue, for example because its key is missing."""
        with self._database.lock:
            with self._database.failing("opened"):
                is_there = PrivateFolder(self.path.parent).look(FILE_NAME) is not None
            if is_there:
                self._open()

    def append(self, entries: Sequence[AuditEntry], *, wait: bool = True) -> bool:
        """Commit the rows together, all or none; True if it did. Raises AuditUnavailable if they are not safely
        recorded.

        The rows of a call that may not begin are left out, and its slot gets the reason. Without ``wait`` it returns
        False while another thread, or for more than a moment another process, is writing.
        """
        if not self._database.lock.acquire(blocking=wait):
            return False
        try:
            return (self._writer or self._open()).append(entries, iso_utc(self._clock.wall_s()), wait=wait)
        except BaseException:
            self._close()
            raise
        finally:
            self._database.lock.release()

    def count(self, session: Session) -> None:
        """Count in a session all its calls in the log. Raises AuditUnavailable."""
        with self._database.reading() as connection:
            if connection is not None and has_rows(connection):
                count_in(session, _Rows(connection), self._clock)
            else:
                session.count({})

    def claimed(self, call_id: str) -> tuple[AuditRow, ...]:
        """The rows of a call that its program gave an id, oldest first. Raises AuditUnavailable."""
        with self._database.reading() as connection:
            return () if connection is None or not has_rows(connection) else _Rows(connection).of_call(call_id)

    def digest(self, value: object) -> str:
        """The keyed digest of a JSON value: equal for equal arguments, and useless without the key.

        Raises AuditUnavailable.
        """
        writer = self._writer
        if writer is None:
            with self._database.lock:
                writer = self._open()
        return writer.seal.digest(b"digest\0" + canonical_json(value))

    def proof_key(self, log_id: str | None = None) -> tuple[str, bytes] | None:
        """The key that proves decisions, derived from the key of this log or of the named one, with that log's id.

        None without such a log or key; nothing is created.
        """
        with self._database.lock:
            try:
                log_id = log_id or (self._writer.log_id if self._writer is not None else _log_id(self.path.parent))
                key = self._ring.key(log_id) if log_id else None
            except (OSError, AuditUnavailable):
                return None
            return (log_id, hmac.digest(key, b"proof\0", "sha256")) if key is not None else None

    def rows(self, *, after: int | None = None) -> Iterator[AuditRow]:
        """The rows after number ``after`` (None: all), oldest first; empty without a log. Raises AuditUnavailable."""
        yield from _read_rows(self.path.parent, after)

    def verify(self) -> AuditReport:
        """Check the whole chain: its faults, and the calls without an end.

        It writes nothing, and others may write meanwhile.
        """
        return last_of(self.verify_in_pieces())

    def verify_in_pieces(self) -> Generator[int, None, AuditReport]:
        """Verify in pieces, for a progress display: every few milliseconds it yields the number of the row that it has
        reached.
        """
        return self._verify(Home.of(self.path.parent))

    def close(self) -> None:
        """Close the file."""
        with self._database.lock:
            self._close()

    def accept_move(self, who: str) -> None:
        """Continue a log here that lay elsewhere, and record the move. Raises AuditUnavailable.

        It refuses a copy: the log is still at its old place.
        """
        with self._database.lock:
            self._close()
            log_id, home = _log_id(self.path.parent), Home.of(self.path.parent)
            anchor = self._ring.anchor(log_id)
            if anchor is None or anchor.home.is_same(home):
                return
            if _is_copy(anchor):
                raise AuditUnavailable(_place_fault(anchor))
            report = last_of(self._verify(anchor.home))
            if not report.is_sound:
                raise AuditUnavailable(f"the audit log `{self.path}` failed verification: {report.problems[0]}")
            self._open(anchor.home)
        body: dict[str, JsonValue] = {"log": anchor.log_id, "from": anchor.home.folder, "to": home.folder, "who": who}
        self.append([AuditEntry(RowKind.LOG_MOVED, body=body)])

    def _verify(self, home: Home) -> Generator[int, None, AuditReport]:
        try:
            return (yield from self._walk(home))
        except (AuditUnavailable, OSError) as error:
            return AuditReport(0, (str(error),))

    def _walk(self, home: Home) -> Generator[int, None, AuditReport]:
        first = next(self.rows(after=FIRST - 1), None) or next(self.rows(), None)
        anchors = self._ring.anchors_of(home)
        if first is None:
            return AuditReport(0, tuple(_lost(one, home) for one in anchors))
        log_id = log_id_of(first)
        if not log_id:
            return AuditReport(0, ("the first row names no log",))
        key = self._ring.key(log_id)
        if key is None:
            return AuditReport(0, (f"the key of the log `{log_id}` is not in `{self._ring.folder}`",))
        problems = [
            f"another log, `{one.log_id}` with {one.seq} rows, lay here before"
            for one in anchors
            if one.log_id != log_id
        ]
        anchor = self._ring.anchor(log_id)  # before reading the rows, since a writer only adds to them meanwhile
        if anchor is not None and not anchor.home.is_same(home):
            problems.append(_place_fault(anchor))
        return (yield from verify(self.rows(), key, anchor, problems))

    def _open(self, moved: Home | None = None) -> _Writer:
        """The open log. ``moved``: the former home of a log that may continue here."""
        if self._writer is None:
            self._writer = _Writer(self._database, self._ring, iso_utc(self._clock.wall_s()), moved)
        return self._writer

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._database.close()


class _Writer:
    """An open log for writing: the key, the anchor, and the last row written or read here."""

    def __init__(self, database: Database, ring: KeyRing, time: str, moved: Home | None) -> None:
        self._database = database
        self._end: End | None = None
        with database.writing() as connection:
            self._connection = connection
            home = Home.of(database.path.parent)
            self.log_id = _existing_log(connection)
            is_new = not self.log_id
            self.log_id = self.log_id or new_id("log")
            key = ring.create(self.log_id, home) if is_new else ring.key(self.log_id)
            if key is None:
                raise _incomplete(database, ring, "key")
            self.seal = Seal(key)
            if is_new:
                connection.execute(_TABLE)
            connection.execute(INDEX)
            connection.execute(_INDEX)
            if is_new:
                self._insert(connection, (0, START_MAC), [_opening_row(log=self.log_id)], time)
        anchor = ring.anchor(self.log_id)
        if anchor is None:
            raise _incomplete(database, ring, "anchor")
        if not any(anchor.home.is_same(one) for one in (home, moved) if one):
            raise AuditUnavailable(_place_fault(anchor))
        self._frame = replace(anchor, home=home).frame()
        self._file = ring.anchor_file(self.log_id)
        self._known = b""
        self._counts = Counts()

    def append(self, entries: Sequence[AuditEntry], time: str, *, wait: bool) -> bool:
        """Inside the anchor's lock, add the rows, commit, and only then move the anchor."""
        try:
            rows = [(entry, entry.columns()) for entry in entries]
            with self._file.hold(wait=wait) as is_held:
                if is_held:
                    self._add(rows, time)
        except FAILURES as error:
            raise self._database.refusal_of("written", error) from error
        return is_held

    def close(self) -> None:
        """Close the anchor."""
        self._file.close()

    def _add(self, rows: Sequence[tuple[AuditEntry, Columns]], time: str) -> None:
        with self._database.writing() as connection:
            if connection is not self._connection:  # another log than the one whose key and end are known
                raise FileNotFoundError(errno.ENOENT, "it was replaced while open")
            if self._end is None:
                self._end = self._find_end(connection, time)
            elif self._file.text != self._known:  # another writer has checked it
                anchor = self._anchor_now()
                self._end = anchor.seq, anchor.mac
            try:
                end = self._insert_fitting(connection, self._end, rows, time)
            except connection.IntegrityError:  # a process died between commit and anchor
                connection.execute("ROLLBACK")
                connection.execute("BEGIN IMMEDIATE")
                self._counts.clear()
                end = self._insert_fitting(connection, self._find_end(connection, time), rows, time)
        self._file.write(ANCHOR % (self._frame, end[0], end[1].encode()))
        self._end, self._known = end, self._file.text

    def _insert_fitting(
        self, connection: Connection, end: End, rows: Sequence[tuple[AuditEntry, Columns]], time: str
    ) -> End:
        """Add rows, and return the new end of the log. The rows before a call are written before the call may begin."""
        ready: list[Columns] = []
        refused: set[str] = set()
        for entry, columns in rows:
            if entry.slot is not None and entry.is_asked:
                if ready:
                    end, ready = self._insert(connection, end, ready, time), []
                if self._counts.refuses(entry.slot, _Rows(connection)):
                    refused.add(entry.call_id)
                elif entry.slot.test is not None:
                    self._counts.begin(entry.slot, entry.call_id, entry.tool, end[0] + 1, time)
            if entry.call_id not in refused:
                ready.append(columns)
        return self._insert(connection, end, ready, time) if ready else end

    def _insert(self, connection: Connection, end: End, rows: Sequence[Columns], time: str) -> End:
        """Add rows, and return the new end of the log."""
        seq, mac = end
        sealed: list[tuple[int | str, ...]] = []
        for columns in rows:
            seq += 1
            row: Unsealed = (seq, time, *columns)
            mac = self.seal.digest(mac.encode() + canonical_json(row))
            sealed.append((*row, mac))
        connection.executemany(_INSERT, sealed)
        return seq, mac

    def _anchor_now(self) -> Anchor:
        anchor = Anchor.from_text(self._file.text)
        if anchor is None or anchor.log_id != self.log_id:
            raise ValueError("its anchor is unreadable")
        return anchor

    def _find_end(self, connection: Connection, time: str) -> End:
        """Find the end of the log.

        A log that is shorter than its anchor continues from the anchor, with a lasting note, since the next row would
        otherwise hide the cut.
        """
        anchor = self._anchor_now()
        found = connection.execute(f"{SELECT_ROWS} WHERE seq >= ? ORDER BY seq", (anchor.seq,))
        end = end_of((AuditRow(*row) for row in found), anchor, self.seal)
        if end is not None:
            return end
        highest = connection.execute("SELECT ifnull(max(seq), 0) FROM rows").fetchone()[0]
        if not isinstance(highest, int) or highest > _HIGHEST:
            raise ValueError(f"it is damaged: a real log never reaches row {highest}")
        row = _opening_row(log=self.log_id, anchor=anchor.seq, previous=anchor.mac, after=highest)
        return self._insert(connection, (max(highest, anchor.seq), anchor.mac), [row], time)


def audit_database(state: Path, *, durable: bool = False) -> Database:
    """The file of the log in a state folder."""
    pragmas = f"synchronous = {'FULL' if durable else 'NORMAL'}", f"wal_autocheckpoint = {_CHECKPOINT_PAGES}"
    return Database(state / FILE_NAME, what="the audit log", refusal=AuditUnavailable, busy_s=_BUSY_S, pragmas=pragmas)


def _read_rows(state: Path, after: int | None = None) -> Iterator[AuditRow]:
    """Read the rows page by page, without a lock in between."""
    condition, values = ("", ()) if after is None else ("WHERE seq > ?", (after,))
    with closing(audit_database(state)) as database:
        with database.reading() as connection:
            if connection is None or not has_rows(connection):
                return
            found = connection.execute(f"{SELECT_ROWS} {condition} ORDER BY seq", values)
            page = found.fetchmany(_PAGE)
        while page:
            yield from (AuditRow(*row) for row in page)
            with database.reading() as same:
                if same is not connection:  # a child of a fork may not continue either
                    raise ValueError("it was replaced during reading")
                page = found.fetchmany(_PAGE)


def _log_id(state: Path) -> str:
    """The id of the log in the folder; empty for none."""
    first = next(_read_rows(state), None)
    return "" if first is None else log_id_of(first)


class _Rows:
    """The rows of the open file."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of_session(self, session: str, after: int) -> Iterable[tuple[Any, ...]]:
        return self._connection.execute(SESSION_ROWS, (session, after))

    def of_call(self, call_id: str) -> tuple[AuditRow, ...]:
        return tuple(AuditRow(*row) for row in self._connection.execute(_CLAIMED, (call_id,)))


def has_rows(connection: Connection) -> bool:
    """Tell whether the file contains a log."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'rows'").fetchone() is not None


def _existing_log(connection: Connection) -> str:
    """The id in the first row; empty if the file contains no log yet."""
    if not has_rows(connection):
        return ""
    row = connection.execute(f"{SELECT_ROWS} ORDER BY seq LIMIT 1").fetchone()
    first = AuditRow(*row) if row else None
    log_id = log_id_of(first) if first is not None else ""
    if not log_id:
        raise ValueError("its first row names no log")
    if first is not None and first.seq != FIRST:
        raise ValueError(f"it is damaged: its first row has the number {first.seq}")
    return log_id


def _opening_row(**body: JsonValue) -> Columns:
    return AuditEntry(RowKind.LOG_OPENED, body=body).columns()


def _is_copy(anchor: Anchor) -> bool:
    """Tell whether the original is still where the anchor says."""
    try:
        return _log_id(Path(anchor.home.folder)) == anchor.log_id
    except AuditUnavailable:
        return False


def _place_fault(anchor: Anchor) -> str:
    """The fault of a log that is not in its anchor's place, and the remedy."""
    kept = f"`{anchor.home.folder}`"
    if _is_copy(anchor):
        return f"this is a copy of the audit log in {kept}; move it away to begin a new one here"
    return (
        f"the audit log was kept in {kept} until now; if the workspace was moved here, `gatewright audit verify "
        "--moved` continues it; if not, move it away to begin a new one"
    )


def _lost(anchor: Anchor, home: Home) -> str:
    """The message about a missing log."""
    where = "" if anchor.home.folder == home.folder else f", kept in `{anchor.home.folder}` before,"
    return f"the log `{anchor.log_id}` with {anchor.seq} rows{where} is missing"


def _incomplete(database: Database, ring: KeyRing, what: str) -> AuditUnavailable:
    text = f"{database.what} exists but its {what} is not in `{ring.folder}`"
    return AuditUnavailable(f"{text}; put the {what} back, or move the log away to begin a new one")
