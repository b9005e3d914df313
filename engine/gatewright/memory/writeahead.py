"""SQLite files that several processes share: how they are switched to a write-ahead log. It knows no table."""

from __future__ import annotations

import sqlite3
import time

_STEP_S = 0.002


def write_ahead(connection: sqlite3.Connection, patience_s: float) -> None:
    """Switch the file to a write-ahead log.

    Two connections that do so with a new file at once get an error at once, whatever their time-out, so that whoever
    comes second has to wait here. Raises sqlite3.OperationalError when that takes too long.
    """
    deadline = time.monotonic() + patience_s
    while connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_STEP_S)
        else:
            if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                return  # a file that has none: in memory, or on a file system that cannot
