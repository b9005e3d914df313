"""Rows in an SQLite file that several processes share, each under a seal, and the anchor that lists the valid ones.

Key and anchor lie in the key folder, away from the file, so nobody can forge a row without the key. The key is bound to
the file's folder: a row copied from another workspace is as worthless as an invented one. The anchor lists the ids of
valid rows: a deleted row that somebody puts back is not on the list, and added rows, however many, are not even read. A
process lists an id after it writes the row and removes it before it deletes the row, so a crash in between loses the
row and never gains one. A missing or damaged list is empty, and the next change begins a new one. Only one process at a
time holds the anchor, for one change of the store. Without a folder the rows live in memory and end with the object.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import json
import logging
import os
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import cast

from gatewright.base.file import MOMENT_S, lock, unlock
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, Seal
from gatewright.record.database import Connection, Database
from gatewright.record.folder import KEY_BYTES, SHARED_KEY, PrivateFolder, find_key, have_key
from gatewright.record.process import fork_safe_lock, renew_after_fork

_PATIENCE_S = 2.0


class AnchorFile:
    """The anchor of that name. ``is_whole`` tells whether a text is complete; without it, reading waits for a writer.

    One thread at a time may use it. Methods raise OSError.
    """

    def __init__(self, folder: PrivateFolder, name: str, is_whole: Callable[[bytes], bool] | None = None) -> None:
        self.text = b""
        """Its text as this object last read, held or wrote it."""
        self._folder = folder
        self._name = name
        self._is_whole = is_whole
        self._descriptor: int | None = None
        self._is_writable = False
        renew_after_fork(self)

    def renew(self) -> None:
        """Close the descriptor, by which a child would hold the anchor together with its parent."""
        self.close()

    def read(self) -> bytes:
        """Its present text; empty if the file does not exist."""
        try:
            descriptor, facts = self._open(os.O_RDWR if self._is_writable else os.O_RDONLY)
        except FileNotFoundError:
            self.text = b""
            return b""
        text = _text(descriptor, facts.st_size)
        if text != self.text and not (self._is_whole and self._is_whole(text)):
            lock(descriptor, _PATIENCE_S, shared=True)
            text = _text(descriptor, os.fstat(descriptor).st_size)
            unlock(descriptor)
        self.text = text
        return text

    @contextmanager
    def hold(self, *, wait: bool = True, create: bool = False) -> Generator[bool]:
        """Exclude others and read ``text``.

        Without ``wait``, yields False if another process holds it for more than a moment. Raises BlockingIOError after
        too long a wait, FileNotFoundError for a missing anchor.
        """
        while True:
            descriptor, _ = self._open(os.O_RDWR | (os.O_CREAT if create else 0))
            try:
                lock(descriptor, _PATIENCE_S if wait else MOMENT_S)
            except BlockingIOError:
                if wait:
                    raise
                yield False
                return
            facts = os.fstat(descriptor)
            if facts.st_nlink:
                break
        try:
            self.text = _text(descriptor, facts.st_size)
            yield True
        finally:
            unlock(descriptor)

    def write(self, text: bytes) -> None:
        """Overwrite the text, usually in one write; only while holding the anchor."""
        text = text.ljust(len(self.text))
        assert self._descriptor is not None
        at = os.lseek(self._descriptor, 0, os.SEEK_SET)
        while at < len(text):
            at += os.write(self._descriptor, text[at:])
        self.text = text

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self, how: int) -> tuple[int, os.stat_result]:
        """The file and its facts, reopened if it was removed."""
        is_writable = how != os.O_RDONLY
        if self._descriptor is not None and is_writable <= self._is_writable:
            facts = os.fstat(self._descriptor)
            if facts.st_nlink:
                return self._descriptor, facts
        was_there = self._descriptor is not None
        self.close()
        try:
            self._descriptor, self._is_writable = self._folder.open(self._name, how), is_writable
        except FileNotFoundError:
            if was_there:
                raise FileNotFoundError(errno.ENOENT, "its anchor was removed while it was open") from None
            raise
        return self._descriptor, os.fstat(self._descriptor)


def _text(descriptor: int, most_bytes: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.read(descriptor, most_bytes)


_BUSY_S = 2.0
_MOST_BYTES = 1 << 22
_MOST_NOTES = 20
_MAC_BYTES = 64
_NONE: frozenset[str] = frozenset()
_TABLE = """CREATE TABLE IF NOT EXISTS sealed (
  kind TEXT NOT NULL, row_id TEXT NOT NULL, agent TEXT NOT NULL, digest TEXT NOT NULL, owner TEXT NOT NULL,
  until_s REAL, body TEXT NOT NULL, mac TEXT NOT NULL, PRIMARY KEY (kind, row_id)
) WITHOUT ROWID
"""
_SELECT = "SELECT kind, row_id, agent, digest, owner, until_s, body, mac FROM sealed"
_LISTED = f"""{_SELECT} WHERE kind IN (SELECT value FROM json_each(?1)) AND row_id IN (SELECT value FROM json_each(?2))
  ORDER BY kind, row_id"""
_STRANGE = f"{_SELECT} WHERE row_id NOT IN (SELECT value FROM json_each(?)) LIMIT {_MOST_NOTES}"
_INSERT = "INSERT OR REPLACE INTO sealed VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_DELETE = "DELETE FROM sealed WHERE kind = ? AND row_id = ?"
_log = logging.getLogger(__name__)

Version = tuple[int, ...]


@frozen
class SealedRow:
    """A row. ``until_s``: its expiry, seconds since 1970; ``owner``: the process that it depends on; ``body``: JSON."""

    kind: str
    row_id: str
    agent: str
    digest: str
    owner: str
    until_s: float | None
    body: str


class Change:
    """An open transaction; ``rows``: the rows that were valid at its start."""

    def __init__(self, connection: Connection, seal: Seal, rows: tuple[SealedRow, ...]) -> None:
        self.rows = rows
        self._connection = connection
        self._seal = seal
        self._there = {(row.kind, row.row_id) for row in rows}

    @property
    def ids(self) -> frozenset[str]:
        """The ids of the rows as changed so far."""
        return frozenset(row_id for _, row_id in self._there)

    def put(self, row: SealedRow) -> None:
        """Add a row, or replace the one of the same kind and id."""
        fields = astuple(row)
        self._connection.execute(_INSERT, (*fields, self._seal(fields)))
        self._there.add((row.kind, row.row_id))

    def delete(self, rows: Iterable[SealedRow]) -> None:
        """Delete rows."""
        keys = [(row.kind, row.row_id) for row in rows]
        self._connection.executemany(_DELETE, keys)
        self._there.difference_update(keys)


class _Side:
    """One connection to the file, with its key and its list of ids."""

    def __init__(self, path: Path | None, keys: Path | None, what: str) -> None:
        self.database = Database(
            path,
            what=f"the {what} in",
            busy_s=_BUSY_S,
            pragmas=("synchronous = NORMAL", "secure_delete = ON"),
            make=lambda connection: connection.execute(_TABLE),
            most_bytes=_MOST_BYTES,
        )
        self.seal: Seal | None = Seal(os.urandom(KEY_BYTES)) if path is None else None
        self.list: AnchorFile | None = None
        self._path = path
        self._keys = keys
        self._what = what
        self._key = b""
        self._opened: Connection | None = None
        self._listed = b"", _NONE

    def ids(self, *, is_held: bool = False) -> frozenset[str]:
        """The ids of valid rows."""
        if self.list is None:
            return _NONE
        text = self.list.text if is_held else self.list.read()
        if text != self._listed[0]:
            self._listed = text, self._parse(text) or _NONE
        return self._listed[1]

    def write_ids(self, ids: Iterable[str]) -> None:
        """Replace the list; only while holding the anchor."""
        text = json.dumps(sorted(ids)).encode()
        if self.list is not None:
            self.list.write(self._mac(text) + text)

    def find_key(self, connection: Connection, *, create: bool) -> None:
        """Find key and list of the file that is open now. Raises OSError."""
        if self._path is None or (self.seal is not None and connection is self._opened):
            return
        if self._keys is None:
            raise OSError(errno.EINVAL, "there is no key folder")
        self.close_list()
        keys = PrivateFolder(self._keys)
        shared = (have_key if create else find_key)(keys, SHARED_KEY)
        if shared is not None:
            folder = os.fsencode(self._path.parent.resolve())
            self._key = hmac.digest(shared, self._what.encode() + b"\0" + folder, "sha256")
            name = f"{self._what}-{hashlib.sha256(folder).hexdigest()[:16]}.anchor"
            self.list = AnchorFile(keys, name, lambda text: self._parse(text) is not None)
            self.seal, self._opened = Seal(self._key), connection

    def close_list(self) -> None:
        """Drop key and list from memory."""
        if self.list is not None:
            self.list.close()
            self.list = self.seal = None

    def _parse(self, text: bytes) -> frozenset[str] | None:
        mac, listed = text[:_MAC_BYTES], text[_MAC_BYTES:].rstrip()
        if not hmac.compare_digest(mac, self._mac(listed)):
            return None
        return frozenset(cast("list[str]", json.loads(listed)))

    def _mac(self, listed: bytes) -> bytes:
        return hmac.digest(self._key, b"rows\0" + listed, "sha256").hex().encode()


class FaultNotes:
    """The faults of a table that were found so far, for the operator. Any thread may call the methods."""

    def __init__(self) -> None:
        self._noting = fork_safe_lock()
        self._notes: dict[str, None] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """The faults found so far."""
        with self._noting:
            return tuple(self._notes)

    def note(self, text: str) -> None:
        """Record a fault for the operator."""
        with self._noting:
            if text not in self._notes and len(self._notes) < _MOST_NOTES:
                self._notes[text] = None
                _log.warning("a state file has a fault: %s", text)


class SealedTable(FaultNotes):
    """The rows of the file at ``path``, which the first change creates; None means in memory.

    ``kinds``: the kinds of the rows; ``what``: a word for them, which is also part of the key. Any thread may call the
    methods, which raise WorkspaceError. Reading has its own connection and never waits for a writer.
    """

    def __init__(self, path: Path | None, keys: Path | None, kinds: Collection[str], what: str) -> None:
        super().__init__()
        self._path = path
        self._kinds = json.dumps(sorted(kinds))
        self._writer = _Side(path, keys, what)
        self._reader = self._writer if path is None else _Side(path, keys, what)
        self._read: tuple[Version, tuple[SealedRow, ...]] = (), ()

    def version(self) -> Version:
        """A value that changes with any change of a row; empty without a file."""
        with self._reader.database.reading() as connection:
            return () if connection is None else self._version(connection)

    def rows(self) -> tuple[SealedRow, ...]:
        """Every valid row, read once for each version."""
        with self._reader.database.reading() as connection:
            version = () if connection is None else self._version(connection)
            if connection is not None and self._read[0] != version:
                self._read = version, self._counting(self._reader, connection, self._reader.ids())
            return self._read[1] if connection is not None else ()

    @contextmanager
    def changing(self) -> Generator[Change]:
        """A transaction that excludes other writers, and writes all or nothing."""
        writer = self._writer
        with writer.database.writing() as connection:
            writer.find_key(connection, create=True)
            assert writer.seal is not None
            if writer.list is None:
                yield Change(connection, writer.seal, self._counting(writer, connection, _NONE))
                return
            with writer.list.hold(create=True):
                listed = writer.ids(is_held=True)
                change = Change(connection, writer.seal, self._counting(writer, connection, listed))
                yield change
                if not listed <= change.ids:
                    writer.write_ids(listed & change.ids)
                connection.execute("COMMIT")
                if not change.ids <= listed:
                    writer.write_ids(change.ids)

    def close(self) -> None:
        """Close the file."""
        for side in (self._writer, self._reader):
            with side.database.lock:
                side.database.close()
                side.close_list()

    def _version(self, connection: Connection) -> Version:
        reader = self._reader
        reader.find_key(connection, create=False)
        listed = 0 if reader.list is None else hash(reader.list.read())
        return (*reader.database.version(connection), listed)

    def _counting(self, side: _Side, connection: Connection, listed: frozenset[str]) -> tuple[SealedRow, ...]:
        """The rows that the list names and a seal proves; in memory all rows."""
        if self._path is None:
            return tuple(SealedRow(*fields) for *fields, _ in connection.execute(f"{_SELECT} ORDER BY kind, row_id"))
        ids, good = json.dumps(sorted(listed)), list[SealedRow]()
        for *fields, mac in connection.execute(_LISTED, (self._kinds, ids)).fetchall():
            if _is_sealed(side.seal, fields, mac):
                good.append(SealedRow(*fields))
            else:
                self._note_row(fields, "was not written by Gatewright")
        for *fields, mac in connection.execute(_STRANGE, (ids,)).fetchall():
            if not _is_sealed(side.seal, fields, mac):
                self._note_row(fields, "was not written by Gatewright")
            elif connection.in_transaction:  # else another process may be about to list it
                self._note_row(fields, "was put back or never finished")
                connection.execute(_DELETE, fields[:2])
        return tuple(good)

    def _note_row(self, fields: Sequence[object], why: str) -> None:
        self.note(f"the row `{str(fields[1])[:40]}` in `{self._path}` {why} and does not count")


def _is_sealed(seal: Seal | None, fields: Sequence[JsonValue], mac: object) -> bool:
    try:
        return seal is not None and seal.is_on(fields, mac)
    except (TypeError, ValueError):
        return False
