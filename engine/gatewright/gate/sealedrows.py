"""Rows in an SQLite file (WAL) that several processes share, each row under an HMAC. It does not know what they mean.

The key lies in the key folder, away from the file, so whoever can write the file but has no key can make no row that
counts; a row whose MAC is wrong is absent, and a note says so. The MAC binds the row to its file's folder: a row copied
from another workspace counts no more than an invented one. Rows of the kinds that are ``anchored`` count only while the
key folder lists them too (see ``rowanchor``), so that a deleted one that is put back counts no more; of other kinds a
row that was deleted and put back does count. Without a path the rows live in memory and die with the object.

Reading never waits for a writer: it has a connection of its own.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import sqlite3
import threading
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

from gatewright.base.errors import WorkspaceError
from gatewright.base.jsonvalue import canonical_json
from gatewright.gate.sealedfile import SealedFile
from gatewright.record import renew_after_fork

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from pathlib import Path

_MOST_NOTES = 20
_COLUMNS = "kind, row_id, agent, digest, owner, until_s, body"
_INSERT = f"INSERT OR REPLACE INTO sealed ({_COLUMNS}, mac) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_log = logging.getLogger(__name__)

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SealedRow:
    """``until_s``: when it stops to count, seconds since 1970; ``owner``: whose life it hangs on; ``body``: JSON."""

    kind: str
    row_id: str
    agent: str
    digest: str
    owner: str
    until_s: float | None
    body: str


class Change:
    """An open transaction."""

    def __init__(self, connection: sqlite3.Connection, key: bytes, rows: tuple[SealedRow, ...]) -> None:
        self._connection = connection
        self._key = key
        self._there = {(row.kind, row.row_id) for row in rows}
        self.rows = rows

    def put(self, row: SealedRow) -> None:
        """Add a row, in the place of the one of that kind and id."""
        self._connection.execute(_INSERT, (*astuple(row), _mac(self._key, row)))
        self._there.add((row.kind, row.row_id))

    def delete(self, rows: Iterable[SealedRow]) -> None:
        """Take rows away."""
        keys = [(row.kind, row.row_id) for row in rows]
        self._connection.executemany("DELETE FROM sealed WHERE kind = ? AND row_id = ?", keys)
        self._there.difference_update(keys)

    def ids(self, kinds: frozenset[str]) -> frozenset[str]:
        """The ids of the rows of these kinds that are there now."""
        return frozenset(row_id for kind, row_id in self._there if kind in kinds)


class SealedRows:
    """The rows of one file. Nothing is made before the first change. All methods may be called from any thread.

    ``anchored``: the kinds of rows that may not come back once they were deleted; an id belongs to one kind.
    """

    def __init__(self, path: Path | None, keys: Path | None, anchored: Iterable[str] = ()) -> None:
        self.path = path
        self._anchored = frozenset(anchored)
        self._writer = SealedFile(path, keys, is_anchored=bool(self._anchored))
        self._reader = self._writer if path is None else SealedFile(path, keys, is_anchored=bool(self._anchored))
        self._own_changes = 0
        self._read: tuple[Version, tuple[SealedRow, ...]] | None = None
        self._notes: dict[str, None] = {}
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Free locks."""
        self._writing, self._noting = threading.RLock(), threading.Lock()
        self._reading = self._writing if self.path is None else threading.RLock()

    @property
    def notes(self) -> tuple[str, ...]:
        """What was found wrong so far, for the operator."""
        with self._noting:
            return tuple(self._notes)

    def note(self, text: str) -> None:
        """Keep something for the operator to see."""
        with self._noting:
            if text not in self._notes and len(self._notes) < _MOST_NOTES:
                self._notes[text] = None
                _log.warning("%s", text)

    def version(self) -> Version:
        """Differs once anybody changed a row; empty while there is no file. Raises WorkspaceError."""
        with self._reading, self._failing("read", self._reader):
            connection = self._reader.connection(create=False)
            return self._version(connection) if connection is not None else ()

    def rows(self) -> tuple[SealedRow, ...]:
        """Every row that counts; read once per version. Raises WorkspaceError."""
        with self._reading, self._failing("read", self._reader):
            connection = self._reader.connection(create=False)
            if connection is None:
                return ()
            version = self._version(connection)
            if self._read is None or self._read[0] != version:
                self._read = version, self._verified(self._reader, connection, self._reader.listed())
            return self._read[1]

    @contextmanager
    def changing(self) -> Generator[Change]:
        """A transaction that no other process writes beside: all of it or nothing. Raises WorkspaceError."""
        with self._writing, self._failing("written", self._writer):
            connection = self._writer.connection(create=True)
            if connection is None or self._writer.key is None:
                raise sqlite3.DatabaseError("it cannot be opened")
            connection.execute("BEGIN IMMEDIATE")
            try:
                with self._writer.holding_list() as listed:
                    change = Change(connection, self._writer.key, self._verified(self._writer, connection, listed))
                    yield change
                    self._commit(connection, change, listed)
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
            finally:
                self._own_changes += 1

    def close(self) -> None:
        """Let go of the file."""
        with self._writing, self._reading:
            self._read = None
            self._writer.close()
            self._reader.close()

    def _commit(self, connection: sqlite3.Connection, change: Change, listed: frozenset[str] | None) -> None:
        """Commit; what goes leaves the list before, what comes enters it after, so that dying here gains nothing."""
        after = change.ids(self._anchored)
        if listed is not None and not listed <= after:
            self._writer.write_list(listed & after)
        connection.execute("COMMIT")
        if listed is not None and not after <= listed:
            self._writer.write_list(after)

    @contextmanager
    def _failing(self, how: str, file: SealedFile) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            if self.path is not None:
                file.close()
            words = (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)
            raise WorkspaceError(f"the approvals in `{self.path}` cannot be {how}: {words}") from error

    def _version(self, connection: sqlite3.Connection) -> Version:
        seen: tuple[int] = connection.execute("PRAGMA data_version").fetchone()
        return (*self._reader.identity, seen[0], self._own_changes, self._reader.list_revision())

    def _verified(
        self, file: SealedFile, connection: sqlite3.Connection, listed: frozenset[str] | None
    ) -> tuple[SealedRow, ...]:
        found = connection.execute(f"SELECT {_COLUMNS}, mac FROM sealed ORDER BY kind, row_id").fetchall()
        good: list[SealedRow] = []
        for *fields, mac in found:
            row = SealedRow(*fields)
            name = str(row.row_id)[:40]
            if not _is_sealed(file.key, row, mac):
                self.note(f"the row `{name}` in `{self.path}` was not written by Gatewright and does not count")
            elif listed is None or row.kind not in self._anchored or row.row_id in listed:
                good.append(row)
            elif connection.in_transaction:  # else another process may be about to list it
                self.note(f"the row `{name}` in `{self.path}` was put back or never finished and does not count")
        return tuple(good)


def _is_sealed(key: bytes | None, row: SealedRow, mac: object) -> bool:
    if key is None or not isinstance(mac, str) or not mac.isascii():
        return False
    try:
        return hmac.compare_digest(_mac(key, row), mac)
    except (TypeError, ValueError):
        return False


def _mac(key: bytes, row: SealedRow) -> str:
    return hmac.new(key, canonical_json(astuple(row)), hashlib.sha256).hexdigest()
