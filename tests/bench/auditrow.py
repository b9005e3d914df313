"""Row "audit": rows of the log, one by one and a hundred at a time, beside a bare table in SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from gatewright.gate import AuditEntry, AuditLog, RowKind
from tests.bench.measure import Effort, race_calls
from tests.bench.row import Figure, Measured, Row, at_most

_BATCH = 100
_ONE, _MANY = "one row, committed", f"a row in a batch of {_BATCH}"
_BARE_ONE, _BARE_MANY = "SQLite: one row, committed", f"SQLite: a row in a batch of {_BATCH}"
_ENTRY = AuditEntry(
    RowKind.TOOL_COMPLETED,
    "call-01hx3v7w9g",
    "archivist",
    "session-01hx3v7w9g",
    "file",
    "append",
    {"code": "", "bytes": 117, "hash": "5f" * 32, "elapsed_ms": 0.413},
)
_INSERT = "INSERT INTO rows VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def audit(effort: Effort) -> Row:
    """Appending to the log, chain and key included."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as name, _bare(Path(name, "bare.sqlite3")) as insert:
        log = AuditLog(Path(name, "state"), Path(name, "keys"))
        one, many = [_ENTRY], [_ENTRY] * _BATCH
        singles = race_calls({_ONE: lambda n: log.append(one * n), _BARE_ONE: insert}, [1], effort.scaled(0.15))
        batches = race_calls({_MANY: lambda _n: log.append(many), _BARE_MANY: insert}, [_BATCH], effort.scaled(0.01))
        report = log.verify()
        log.close()
    figures: dict[str, Measured] = {**singles, **{name: _each(found) for name, found in batches.items()}}
    figures[_ONE] = replace(singles[_ONE], wrong=len(report.problems))
    return Row(
        "audit",
        "a row about a completed call, write-ahead log, no wait for the disk",
        (_ONE, _MANY),
        figures,
        (at_most("committed", figures[_ONE], 60), at_most("batched", figures[_MANY], 10)),
        _BARE_ONE,
        ("the chain of all rows written was verified afterwards",) if not report.problems else ("THE CHAIN IS BROKEN",),
    )


def _each(batch: Figure) -> Figure:
    """A batch as the time of one of its rows; the slowest hundredth of batches says nothing about a row."""
    return Figure(batch.median / _BATCH)


@contextmanager
def _bare(path: Path) -> Generator[Callable[[int], object]]:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("CREATE TABLE rows (seq INTEGER PRIMARY KEY, a, b, c, d, e, f, g, h, i)")
    entry = _ENTRY
    body, mac = json.dumps(dict(entry.body)), "0" * 64
    words = (str(entry.kind), entry.call_id, entry.agent, entry.session, entry.tool, entry.operation, body, mac)
    values = ("2026-01-31T09:30:00.000Z", *words)

    def insert(count: int) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(_INSERT, [values] * count)
        connection.execute("COMMIT")

    try:
        yield insert
    finally:
        connection.close()
