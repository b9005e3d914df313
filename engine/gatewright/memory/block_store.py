"""Snapshots of blocks by label, in one SQLite file (WAL). It knows neither what a snapshot holds nor the gate.

Opened when first needed: asking an absent store finds nothing and makes no file. An acknowledged ``put`` survives the
end of the process and of the machine. All methods may be called from any thread.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from gatewright.base.clock import SystemClock
from gatewright.base.errors import WorkspaceError
from gatewright.base.filelock import lock
from gatewright.memory.writeahead import write_ahead

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import TracebackType

    from gatewright.base.clock import Clock

_SCHEMA_VERSION = 1
_TABLE = """
CREATE TABLE IF NOT EXISTS block (
    label TEXT PRIMARY KEY,
    source_id TEXT NOT NULL,
    snapshot BLOB NOT NULL,
    disk_digest TEXT NOT NULL,
    updated_at REAL NOT NULL
) WITHOUT ROWID
"""
_BUSY_S = 5.0


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """A block at rest. ``disk_digest``: SHA-256 of the file's bytes when in step; ``updated_at``: s since 1970."""

    label: str
    source_id: str
    snapshot: bytes
    disk_digest: str
    updated_at: float


class BlockStore:
    """The blocks of one workspace. Raises WorkspaceError when the file cannot be used."""

    def __init__(self, path: Path, *, clock: Clock | None = None) -> None:
        self._path = path
        self._clock = clock or SystemClock()
        self._lock = threading.RLock()
        self._changing = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._read_only = False

    def __enter__(self) -> BlockStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def exclusive(self) -> Generator[None]:
        """Nobody else, in this process or another, changes a block meanwhile; reading stays possible.

        For whoever reads a block, changes it and puts it back. Not to be entered twice. Raises WorkspaceError.
        """
        with self._changing, self._locked_file():
            yield

    @contextmanager
    def _locked_file(self) -> Generator[None]:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise WorkspaceError(f"the block store `{self._path}` cannot be used: {error.strerror}") from error
        try:
            self._hold(descriptor)
            yield
        finally:
            os.close(descriptor)

    def _hold(self, descriptor: int) -> None:
        try:
            lock(descriptor, _BUSY_S)
        except OSError as error:
            raise WorkspaceError(f"the block store `{self._path}` is held by another process") from error

    def put(self, label: str, *, source_id: str, snapshot: bytes, disk_digest: str) -> None:
        """Keep a block, in the place of the one with that label."""
        row = (label, source_id, snapshot, disk_digest, self._clock.wall_s())
        with self._using(write=True) as connection:
            if connection is not None:
                connection.execute("INSERT OR REPLACE INTO block VALUES (?, ?, ?, ?, ?)", row)

    def get(self, label: str) -> StoredBlock | None:
        """The block with that label, or None."""
        query = "SELECT label, source_id, snapshot, disk_digest, updated_at FROM block WHERE label = ?"
        with self._using(write=False) as connection:
            row = connection.execute(query, (label,)).fetchone() if connection else None
        return StoredBlock(*row) if row else None

    def delete(self, label: str) -> bool:
        """Forget a block; whether there was one."""
        with self._using(write=False) as connection:
            known = connection and connection.execute("SELECT 1 FROM block WHERE label = ?", (label,)).fetchone()
        if not known:
            return False
        with self._using(write=True) as connection:
            return (
                connection is not None
                and connection.execute("DELETE FROM block WHERE label = ?", (label,)).rowcount > 0
            )

    def labels(self, source_id: str | None = None) -> tuple[str, ...]:
        """The labels of all blocks, or of those of one source, sorted."""
        query = "SELECT label FROM block WHERE ?1 IS NULL OR source_id = ?1 ORDER BY label"
        with self._using(write=False) as connection:
            return tuple(row[0] for row in connection.execute(query, (source_id,))) if connection else ()

    def close(self) -> None:
        """Close the file; the store opens it again when it is used again."""
        with self._lock:
            self._drop()

    @contextmanager
    def _using(self, *, write: bool) -> Generator[sqlite3.Connection | None]:
        """The open store, one user at a time; None when there is none and nothing is to be written."""
        with self._lock:
            try:
                yield self._open(write=write)
            except sqlite3.OperationalError as error:
                self._drop()
                raise WorkspaceError(f"the block store `{self._path}` cannot be used: {error}") from error
            except (sqlite3.DatabaseError, OSError) as error:
                self._drop()
                raise WorkspaceError(f"the block store `{self._path}` is damaged or cannot be used: {error}") from error

    def _open(self, *, write: bool) -> sqlite3.Connection | None:
        if self._connection is not None and not (write and self._read_only):
            return self._connection
        self._drop()
        if self._path.is_symlink():
            raise WorkspaceError(f"the block store `{self._path}` is a symbolic link, which is not followed")
        if not write and not self._path.exists():
            return None
        if write:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return self._adopt("rw" if not write else "rwc", read_only=False)
        except sqlite3.OperationalError:
            if write:
                raise
            wal = self._path.with_name(self._path.name + "-wal")
            unfinished = wal.exists() and wal.stat().st_size > 0
            return self._adopt("ro" if unfinished else "ro&immutable=1", read_only=True)

    def _adopt(self, mode: str, *, read_only: bool) -> sqlite3.Connection:
        address = f"file:{quote(str(self._path.absolute()))}?mode={mode}"
        connection = sqlite3.connect(address, uri=True, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(connection, read_only=read_only)
        except BaseException:
            connection.close()
            raise
        self._connection, self._read_only = connection, read_only
        return connection

    def _prepare(self, connection: sqlite3.Connection, *, read_only: bool) -> None:
        with closing(connection.execute("PRAGMA user_version")) as cursor:
            version = int(cursor.fetchone()[0])
        if version > _SCHEMA_VERSION:
            raise WorkspaceError(f"the block store `{self._path}` was written by a newer version of the program")
        if connection.execute("SELECT 1 FROM sqlite_schema WHERE type NOT IN ('table', 'index')").fetchone():
            raise WorkspaceError(f"the block store `{self._path}` holds views or triggers: it is none of ours")
        if read_only:
            return
        write_ahead(connection, _BUSY_S)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(_TABLE)
        connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")

    def _drop(self) -> None:
        connection, self._connection, self._read_only = self._connection, None, False
        if connection is not None:
            connection.close()
