"""A copy of the stored blocks, taken while others may write, for a workspace with its files elsewhere.

SQLite itself copies the file; the caller decides how labels change.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing

from gatewright.memory.entrytable import VIRTUAL
from gatewright.record.database import Database
from gatewright.record.folder import HomeSeal

_PAGES = 256
_BUSY_S = 5.0


def copy_store(
    origin: HomeSeal, target: HomeSeal, relabel: Callable[[str, str], str], stop_if_cancelled: Callable[[], None]
) -> bool:
    """Copy the block store of one state folder into another as of one moment; false without a store.

    ``relabel(source_id, label)`` returns a shared block's label in the copy; the copy calls ``stop_if_cancelled``
    between pieces, and it may raise. Raises WorkspaceError, ForeignStore if the store is not of the first folder.
    """

    database = Database(origin.path, what="the block store", busy_s=_BUSY_S, virtual=VIRTUAL, home_seal=origin)
    return copy_database(database, target, stop_if_cancelled, lambda copy: _relabel(copy, relabel))


def copy_database(
    database: Database,
    target: HomeSeal,
    stop_if_cancelled: Callable[[], None],
    finish: Callable[[sqlite3.Connection], object] = bool,
) -> bool:
    """Copy a file to the place of the copy's seal, and close it; false without a file.

    ``finish`` gets the copy. Raises WorkspaceError.
    """

    def goes_on(_status: int, _rest: int, _all: int) -> None:
        stop_if_cancelled()

    with closing(database), database.reading() as source, database.failing("copied"):
        if source is None:
            return False
        target.path.parent.mkdir(parents=True, exist_ok=True)
        put_seal = target.maker()
        with closing(sqlite3.connect(target.path)) as copy:
            source.backup(copy, pages=_PAGES, progress=goes_on, sleep=0)
            finish(copy)
            with copy:
                put_seal(copy)
    return True


def _relabel(copy: sqlite3.Connection, relabel: Callable[[str, str], str]) -> None:
    """Change the labels in one transaction; ask nothing about a store without blocks."""
    if copy.execute("SELECT 1 FROM sqlite_schema WHERE name = 'block'").fetchone() is None:
        return
    columns = {row[1] for row in copy.execute("PRAGMA table_info(block)")}
    shared = "owner = '' AND " if "owner" in columns else ""
    rows = copy.execute(f"SELECT rowid, source_id, label FROM block WHERE {shared}source_id != ''").fetchall()
    with copy:
        for row, source_id, label in rows:
            other = relabel(str(source_id), str(label))
            if other != label:
                copy.execute("UPDATE block SET label = ? WHERE rowid = ?", (other, row))
