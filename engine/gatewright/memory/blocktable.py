"""The tables of blocks in SQLite, their records and the rules for these, and a copy of all stored blocks.

A block is a snapshot and the steps since then; a step contains its update until a fold puts that into the snapshot. All
statements run inside the caller's transaction. SQLite itself copies the file; the caller decides how labels change.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from enum import StrEnum
from typing import Any, Literal

from gatewright import blocks
from gatewright.base.amount import new_id
from gatewright.base.errors import SchemaError, ToolFailure, WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import is_text
from gatewright.base.printable import is_visible
from gatewright.memory import entrytable
from gatewright.memory.entrytable import VIRTUAL
from gatewright.policy.verdict import Action, Permission
from gatewright.record.database import Database, copy_database
from gatewright.record.folder import HomeSeal


class BlockType(StrEnum):
    """The purpose of a block: always in context, in use, archived, or a running record."""

    CORE = "core"
    WORKING = "working"
    ARCHIVAL = "archival"
    LOG = "log"


def _plain_text() -> blocks.BlockSchema:
    return blocks.TextSchema()


@frozen
class BlockRecord:
    """One block. ``owner``: ``agent:ID``, ``user:ID``, or "" for shared blocks, files included.

    ``source_id``: the source of its file, "" for none. ``permission``: its own level; a source's block has the source's
    level instead. Times in s since 1970; ``archived_at`` is None unless archived.
    """

    block_id: str
    label: str
    owner: str = ""
    source_id: str = ""
    type: BlockType = BlockType.WORKING
    schema: blocks.BlockSchema = field(default_factory=_plain_text)
    permission: Permission = Permission.READ_WRITE
    pinned: bool = False
    description: str = ""
    char_limit: int | None = None
    created_at: float = 0.0
    updated_at: float = 0.0
    archived_at: float | None = None


Note = Literal["pin", "unpin", "archive", "unarchive"]
PIN, ARCHIVE, UNARCHIVE, SETTINGS = "pin", "archive", "unarchive", "settings"
_MAX_LABEL = 512
_MAX_DESCRIPTION = 4096


def action_of(edit: blocks.Edit) -> Action:
    """Return the action of an edit: an append adds, everything else (even undo and redo) overwrites."""
    return Action.APPEND if blocks.is_addition(edit) else Action.OVERWRITE


def record_after(record: BlockRecord, kind: Note, now: float) -> BlockRecord:
    """Return the record after a pin, unpin, archive or unarchive. Raises ToolFailure."""
    if kind == ARCHIVE:
        if record.source_id:
            raise ToolFailure("this block stands for a file, which cannot be archived", code="of-a-source")
        if record.type is BlockType.CORE:
            raise ToolFailure("a core block stays in context: it cannot be archived", code="core-block")
        if record.type is not BlockType.WORKING:
            raise ToolFailure(
                f"only working blocks are archived, and this is a block of type {record.type}", code="wrong-type"
            )
        return replace(record, type=BlockType.ARCHIVAL, pinned=False, archived_at=now)
    if kind == UNARCHIVE:
        require_archived(record)
        return replace(record, type=BlockType.WORKING, archived_at=None)
    if kind == PIN:
        refuse_archived(record)
    return replace(record, pinned=kind == PIN)


def refuse_archived(record: BlockRecord) -> None:
    """Raise ToolFailure for an archived block."""
    if record.type is BlockType.ARCHIVAL:
        raise ToolFailure("this block is archived: you can read it, but not change it", code="archived")


def require_archived(record: BlockRecord) -> None:
    """Raise ToolFailure for any but an archived block."""
    if record.type is not BlockType.ARCHIVAL:
        raise ToolFailure(f"this block is not archived: it is of type {record.type}", code="wrong-type")


def is_label(text: str) -> bool:
    """Tell whether a block may have that label, files aside."""
    return 0 < len(text) <= _MAX_LABEL and is_visible(text) and text == text.strip()


NO_LABEL = f"a label is 1 to {_MAX_LABEL} visible characters"


def limit_of(limit: int | None) -> int | None:
    """Check a limit of characters, and return it; None for no limit. Raises ToolFailure."""
    if limit is not None and not 0 <= limit <= blocks.MAX_CHARS:
        raise ToolFailure(
            f"a limit is 1 to {blocks.MAX_CHARS:,} characters, or 0 for none of its own", code="bad-limit"
        )
    return limit or None


def check_description(text: str) -> None:
    """Raise ToolFailure (``bad-description``) for text that cannot describe a block."""
    if len(text) > _MAX_DESCRIPTION or not is_text(text):
        raise ToolFailure(f"a description is text of at most {_MAX_DESCRIPTION:,} characters", code="bad-description")


VERSION = 3
FIRST_READ = 2
"""Oldest version that reading accepts; the first write brings an older file up to date."""
STORED = "stored"
_WITHOUT_ENTRIES = 2
_INDEXED_CHARS = 256 * 1024
"""Limit of the indexed text of an archived block."""
KEPT_STEPS = 1000
"""Limit of steps in a block's history."""

_TABLES = (
    """
CREATE TABLE IF NOT EXISTS block (
    block_id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    label TEXT NOT NULL,
    source_id TEXT NOT NULL,
    type TEXT NOT NULL,
    schema TEXT NOT NULL,
    permission TEXT NOT NULL,
    pinned INTEGER NOT NULL,
    description TEXT NOT NULL,
    char_limit INTEGER,
    snapshot BLOB NOT NULL,
    snapshot_step INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    disk_digest TEXT NOT NULL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    archived_at REAL,
    UNIQUE (owner, label)
)""",
    """
CREATE TABLE IF NOT EXISTS block_step (
    block_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    at REAL NOT NULL,
    author TEXT NOT NULL,
    kind TEXT NOT NULL,
    after BLOB NOT NULL,
    target INTEGER,
    has_changes INTEGER NOT NULL,
    undoable INTEGER NOT NULL,
    changes BLOB,
    PRIMARY KEY (block_id, number)
)""",
)
_RECORD = (
    "block_id, label, owner, source_id, type, schema, permission, pinned, description, char_limit, "
    "created_at, updated_at, archived_at"
)
_STEP = "number, at, author, kind, after, target, has_changes, undoable"


def make_tables(connection: sqlite3.Connection) -> None:
    """Make the present tables, or bring an older file to them, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        old = version == 1 and connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'block'").fetchone()
        if old:
            connection.execute("ALTER TABLE block RENAME TO block_1")
        for statement in (*_TABLES, *entrytable.TABLES):
            connection.execute(statement)
        if old:
            for row in connection.execute("SELECT label, source_id, disk_digest, updated_at FROM block_1").fetchall():
                _move(connection, *row)
            connection.execute("DROP TABLE block_1")
        if version == _WITHOUT_ENTRIES:
            query = f"SELECT snapshot, snapshot_step, {_RECORD} FROM block WHERE type = ?"
            for snapshot, last, *row in connection.execute(query, (BlockType.ARCHIVAL,)).fetchall():
                record = record_of(tuple(row))
                updates = [
                    changes for _, changes in step_rows(connection, record.block_id, last) if changes is not None
                ]
                index_block(connection, record, blocks.Block.restore(record.schema, snapshot, updates))
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _move(connection: sqlite3.Connection, label: str, source_id: str, disk_digest: str, updated_at: float) -> None:
    record = BlockRecord(new_id("mem"), label, source_id=source_id, created_at=updated_at, updated_at=updated_at)
    snapshot = connection.execute("SELECT snapshot FROM block_1 WHERE label = ?", (label,)).fetchone()[0]
    insert_block(connection, record, snapshot, disk_digest, blocks.Step(1, updated_at, "", STORED, undoable=False))


def index_block(connection: sqlite3.Connection, record: BlockRecord, block: blocks.Block) -> None:
    """Index the present words of an archived block; remove the words of any other block."""
    entrytable.delete_entry(connection, record.block_id)
    if record.type is BlockType.ARCHIVAL:
        text = block.value if isinstance(block.value, str) else block.render()
        kind, said = entrytable.EntryKind.BLOCK, {"label": record.label}
        kept = text[:_INDEXED_CHARS]
        entry = entrytable.Entry(record.block_id, kind, record.owner, kept, dict(said), record.archived_at or 0.0)
        entrytable.insert_entry(connection, entry)


def insert_block(
    connection: sqlite3.Connection, record: BlockRecord, snapshot: bytes, disk_digest: str, step: blocks.Step
) -> None:
    """Insert a new block and its first step. Raises sqlite3.IntegrityError if the label is taken."""
    row = (
        record.block_id,
        record.owner,
        record.label,
        record.source_id,
        record.type,
        json.dumps(blocks.schema_to_json(record.schema)),
        record.permission,
        record.pinned,
        record.description,
        record.char_limit,
        snapshot,
        step.number,
        1,
        disk_digest,
        record.created_at,
        record.updated_at,
        record.archived_at,
    )
    connection.execute(f"INSERT INTO block VALUES ({', '.join('?' * len(row))})", row)
    insert_step(connection, record.block_id, step, None)


def put_snapshot(connection: sqlite3.Connection, record: BlockRecord, snapshot: bytes, disk_digest: str) -> None:
    """Store a snapshot from outside in place of a text block's content; make the block if absent."""
    found = connection.execute(
        "SELECT block_id FROM block WHERE owner = ? AND label = ?", (record.owner, record.label)
    ).fetchone()
    if found is None:
        step = blocks.Step(1, record.updated_at, "", STORED, undoable=False)
        insert_block(connection, record, snapshot, disk_digest, step)
        return
    block_id = str(found[0])
    number = last_number(connection, block_id) + 1
    connection.execute("UPDATE block_step SET changes = NULL WHERE block_id = ? AND changes NOT NULL", (block_id,))
    insert_step(connection, block_id, blocks.Step(number, record.updated_at, "", STORED, undoable=False), None)
    connection.execute(
        "UPDATE block SET source_id = ?, schema = ?, snapshot = ?, snapshot_step = ?, generation = generation + 1, "
        "disk_digest = ?, updated_at = ? WHERE block_id = ?",
        (
            record.source_id,
            json.dumps(blocks.schema_to_json(blocks.TextSchema())),
            snapshot,
            number,
            disk_digest,
            record.updated_at,
            block_id,
        ),
    )
    forget_steps(connection, block_id, number - KEPT_STEPS)


def insert_step(connection: sqlite3.Connection, block_id: str, step: blocks.Step, changes: bytes | None) -> None:
    """Insert a step; ``changes``: its update, None if the snapshot holds it."""
    connection.execute(
        "INSERT INTO block_step VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            block_id,
            step.number,
            step.at_s,
            step.author,
            step.kind,
            step.after,
            step.target,
            step.has_changes,
            step.undoable,
            changes,
        ),
    )


def fold(connection: sqlite3.Connection, block_id: str, number: int, snapshot: bytes) -> None:
    """Store a snapshot with every step up to ``number``, and drop the oldest steps above the limit."""
    connection.execute(
        "UPDATE block SET snapshot = ?, snapshot_step = ? WHERE block_id = ?", (snapshot, number, block_id)
    )
    connection.execute("UPDATE block_step SET changes = NULL WHERE block_id = ? AND changes NOT NULL", (block_id,))
    forget_steps(connection, block_id, number - KEPT_STEPS)


def forget_steps(connection: sqlite3.Connection, block_id: str, up_to: int) -> None:
    """Drop the oldest steps."""
    if up_to > 0:
        connection.execute("DELETE FROM block_step WHERE block_id = ? AND number <= ?", (block_id, up_to))


def forget_states(connection: sqlite3.Connection, block_id: str, before: int) -> None:
    """Drop the states of the steps before that number."""
    connection.execute("UPDATE block_step SET after = x'' WHERE block_id = ? AND number < ?", (block_id, before))


def set_state(connection: sqlite3.Connection, block_id: str, step: blocks.Step) -> None:
    """Store the state after a step, unknown so far."""
    connection.execute(
        "UPDATE block_step SET after = ? WHERE block_id = ? AND number = ?", (step.after, block_id, step.number)
    )


def update_record(connection: sqlite3.Connection, record: BlockRecord) -> None:
    """Store a block's facts beside its content."""
    connection.execute(
        "UPDATE block SET type = ?, permission = ?, pinned = ?, description = ?, char_limit = ?, updated_at = ?, "
        "archived_at = ? WHERE block_id = ?",
        (
            record.type,
            record.permission,
            record.pinned,
            record.description,
            record.char_limit,
            record.updated_at,
            record.archived_at,
            record.block_id,
        ),
    )


def delete_block(connection: sqlite3.Connection, block_id: str) -> None:
    """Delete a block and its history."""
    connection.execute("DELETE FROM block_step WHERE block_id = ?", (block_id,))
    connection.execute("DELETE FROM block WHERE block_id = ?", (block_id,))
    entrytable.delete_entry(connection, block_id)


def find_record(connection: sqlite3.Connection, owner: str, label: str) -> BlockRecord | None:
    """Find the block of that owner and label."""
    query = f"SELECT {_RECORD} FROM block WHERE owner = ? AND label = ?"
    row = connection.execute(query, (owner, label)).fetchone()
    return record_of(row) if row else None


def all_records(connection: sqlite3.Connection, owners: Sequence[str]) -> list[BlockRecord]:
    """List the blocks of those owners, by label."""
    marks = ", ".join("?" * len(owners))
    query = f"SELECT {_RECORD} FROM block WHERE owner IN ({marks}) ORDER BY label, owner"
    return [record_of(row) for row in connection.execute(query, tuple(owners))]


def record_of(row: tuple[Any, ...]) -> BlockRecord:
    """Turn a row into a value. Raises WorkspaceError for a row that is not ours."""
    (block_id, label, owner, source_id, kind, schema, permission, pinned, description, limit, *times) = row
    try:
        return BlockRecord(
            block_id,
            label,
            owner,
            source_id,
            BlockType(kind),
            blocks.schema_from_json(json.loads(schema)),
            Permission(permission),
            bool(pinned),
            description,
            limit,
            *times,
        )
    except (ValueError, SchemaError) as error:
        raise WorkspaceError(f"the stored block `{label}` is damaged: {error}") from error


def step_rows(connection: sqlite3.Connection, block_id: str, after: int) -> list[tuple[blocks.Step, bytes | None]]:
    """List the steps behind that number with their updates, in order."""
    query = f"SELECT {_STEP}, changes FROM block_step WHERE block_id = ? AND number > ? ORDER BY number"
    return [(_step(row[:-1]), row[-1]) for row in connection.execute(query, (block_id, after))]


def last_number(connection: sqlite3.Connection, block_id: str) -> int:
    """Return the number of the last step."""
    found = connection.execute("SELECT MAX(number) FROM block_step WHERE block_id = ?", (block_id,)).fetchone()[0]
    return int(found or 0)


def _step(row: tuple[Any, ...]) -> blocks.Step:
    number, at_s, author, kind, after, target, has_changes, undoable = row
    return blocks.Step(number, at_s, author, kind, bytes(after), target, bool(has_changes), bool(undoable))


_BUSY_S = 5.0


def copy_store(
    origin: HomeSeal, target: HomeSeal, relabel: Callable[[str, str], str], stop_if_cancelled: Callable[[], None]
) -> bool:
    """Copy the block store of one state folder into another, as it is at one moment; false without a store.

    ``relabel(source_id, label)`` returns a shared block's label in the copy; ``stop_if_cancelled`` is called between
    pieces and may raise. Raises WorkspaceError, ForeignStore if the store is not of the first folder.
    """

    database = Database(origin.path, what="the block store", busy_s=_BUSY_S, virtual=VIRTUAL, home_seal=origin)
    return copy_database(database, target, stop_if_cancelled, lambda copy: _relabel(copy, relabel))


def _relabel(copy: sqlite3.Connection, relabel: Callable[[str, str], str]) -> None:
    """Change the labels in one transaction; a store without blocks has none to change."""
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
