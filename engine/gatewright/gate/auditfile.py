"""The file that a log's rows lie in: its table, reading it, and whether it lies where its anchor says."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from gatewright.gate.chain import AuditRow, log_id_of
from gatewright.record import Database, PrivateFolder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gatewright.gate.keys import Anchor, Home

FILE_NAME = "audit.sqlite3"
_BUSY_S = 1.0
_CHECKPOINT_PAGES = 4000
TABLE = """CREATE TABLE rows (
  seq INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, call_id TEXT NOT NULL, agent TEXT NOT NULL,
  session TEXT NOT NULL, tool TEXT NOT NULL, operation TEXT NOT NULL, body TEXT NOT NULL, mac TEXT NOT NULL
)"""
COLUMNS = "seq, time, kind, call_id, agent, session, tool, operation, body, mac"
INSERT = f"INSERT INTO rows ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def read_rows(folder: PrivateFolder, after: int = 0) -> Iterator[AuditRow]:
    """The rows after that number, oldest first. Raises OSError, sqlite3.Error."""
    with closing(audit_database(folder)) as database:
        connection = database.connection(write=False)
        if connection is not None and _has_rows(connection):
            found = connection.execute(f"SELECT {COLUMNS} FROM rows WHERE seq > ? ORDER BY seq", (after,))
            yield from (AuditRow(*row) for row in found)


def is_copy(anchor: Anchor) -> bool:
    """Whether the log still lies where its anchor says."""
    try:
        first = next(read_rows(PrivateFolder(Path(anchor.home.folder))), None)
    except (sqlite3.Error, OSError, ValueError):
        return False
    return first is not None and log_id_of(first) == anchor.log_id


def misplaced(anchor: Anchor) -> str:
    """What is wrong with a log that does not lie where its anchor says, and what to do."""
    kept = f"`{anchor.home.folder}`"
    if is_copy(anchor):
        return f"this is a copy of the audit log in {kept}; move it away to begin a new one here"
    return (
        f"the audit log was kept in {kept} until now; if the workspace was moved here, `gatewright audit verify "
        "--moved` has it go on; if not, move it away to begin a new one"
    )


def lost(anchor: Anchor, home: Home) -> str:
    """That a log is not there any more."""
    where = "" if anchor.home.folder == home.folder else f", kept in `{anchor.home.folder}` before,"
    return f"the log `{anchor.log_id}` with {anchor.seq} rows{where} is gone"


def audit_database(folder: PrivateFolder, *, durable: bool = False) -> Database:
    """The file, to be opened."""
    pragmas = f"synchronous = {'FULL' if durable else 'NORMAL'}", f"wal_autocheckpoint = {_CHECKPOINT_PAGES}"
    return Database(folder, FILE_NAME, busy_s=_BUSY_S, pragmas=pragmas)


def _has_rows(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'rows'").fetchone() is not None


def existing_log(connection: sqlite3.Connection) -> str:
    """The id in the first row; empty when the file holds no log yet."""
    if not _has_rows(connection):
        return ""
    row = connection.execute(f"SELECT {COLUMNS} FROM rows ORDER BY seq LIMIT 1").fetchone()
    log_id = log_id_of(AuditRow(*row)) if row else ""
    if not log_id:
        raise sqlite3.DatabaseError("its first row does not name a log")
    return log_id
