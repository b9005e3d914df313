"""The SQLite file (WAL) of the blocks, and the shelf of blocks that are open.

It has more than 450 lines because opening, writing and closing a block must agree with the file.

The file opens at the first use: reading an absent store finds nothing and creates no file. An acknowledged write
survives the end of the process and of the machine. Any thread may call any method, also after a fork: the child opens
the file anew. The first writable opening brings an older file to the newest version.

Two processes that edit one block take turns: each first takes in the other's updates, which merges their edits. A
cached document counts only as far as the store agrees with it.
"""

from __future__ import annotations

import os
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from gatewright import blocks
from gatewright.base.amount import Clock, SystemClock, new_id
from gatewright.base.errors import ForeignStore, ToolFailure, WorkspaceError
from gatewright.base.file import lock
from gatewright.base.frozen import frozen
from gatewright.memory import blocktable, entrytable, notes
from gatewright.memory.blocktable import BlockRecord
from gatewright.memory.entrytable import VIRTUAL
from gatewright.record.database import Connection, Database
from gatewright.record.folder import HomeSeal, PrivateFolder
from gatewright.record.process import fork_safe_lock

FILE_NAME = "memory.sqlite"
_BUSY_S = 5.0


@frozen
class StoredBlock:
    """A stored block. ``disk_digest``: SHA-256 of the file's bytes when both agreed; ``updated_at``: s since 1970."""

    label: str
    source_id: str
    snapshot: bytes
    disk_digest: str
    updated_at: float


class BlockStore:
    """The blocks of one workspace. Raises WorkspaceError for an unusable file.

    ``keys``: the key folder; the store refuses a file made with other keys. None: the file is in no state folder.
    """

    def __init__(self, path: Path, *, keys: Path | None = None, clock: Clock | None = None) -> None:
        self._path = path
        self._folder = PrivateFolder(path.parent)
        seal = None if keys is None else HomeSeal(path.parent, keys, path.name)
        self._database, self._marking = _database(path, seal, self._make), _database(path, seal)
        self._clock = clock or SystemClock()
        self._changing = fork_safe_lock()
        self._depth = 0

    @property
    def clock(self) -> Clock:
        """The clock of the blocks."""
        return self._clock

    def __enter__(self) -> BlockStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def exclusive(self) -> Generator[None]:
        """Exclude all others, in this process and elsewhere, from changing a block meanwhile; reading stays possible.

        It is for a caller that reads a block, changes it and puts it back. The same thread may enter it again. Raises
        WorkspaceError.
        """
        with self._changing:
            self._depth += 1
            try:
                with self._lock_file() if self._depth == 1 else nullcontext():
                    yield
            finally:
                self._depth -= 1

    @contextmanager
    def transaction(self) -> Generator[Connection]:
        """Store all writes of the body durably, or none. Raises WorkspaceError."""
        with self.exclusive(), self._database.writing() as connection:
            self._check_version(connection)
            yield connection

    @contextmanager
    def reading(self) -> Generator[Connection | None]:
        """Show one state of the store to several queries; None if the store is absent or of an older version."""
        with self._open() as (connection, version):
            if connection is None or version < blocktable.FIRST_READ:
                yield None
                return
            with _one_state(connection):
                yield connection

    @contextmanager
    def _lock_file(self) -> Generator[None]:
        with self._database.failing("written"):
            self._folder.make()
            descriptor = self._folder.open(self._path.with_suffix(".lock").name, os.O_RDWR | os.O_CREAT)
        try:
            try:
                lock(descriptor, _BUSY_S)
            except OSError as error:
                raise WorkspaceError(f"the block store `{self._path}` is locked by another process") from error
            yield
        finally:
            os.close(descriptor)

    def put(self, label: str, *, source_id: str, snapshot: bytes, disk_digest: str) -> None:
        """Store the text block of a source in place of the one with that label."""
        now = self._clock.wall_s()
        record = BlockRecord(new_id("mem"), label, source_id=source_id, created_at=now, updated_at=now)
        with self.transaction() as connection:
            blocktable.put_snapshot(connection, record, snapshot, disk_digest)

    def get(self, label: str) -> StoredBlock | None:
        """Return the shared block with that label, whoever changed it last; None if absent."""
        query = "SELECT label, source_id, snapshot, disk_digest, updated_at FROM block WHERE label = ?"
        with self._open() as (connection, version):
            if connection is None:
                return None
            if version < blocktable.FIRST_READ:
                row = connection.execute(query, (label,)).fetchone()
                return StoredBlock(*row) if row else None
            with _one_state(connection):
                return self._whole(connection, label)

    def _whole(self, connection: Connection, label: str) -> StoredBlock | None:
        row = connection.execute(
            "SELECT block_id, snapshot_step, label, source_id, snapshot, disk_digest, updated_at FROM block "
            "WHERE owner = '' AND label = ?",
            (label,),
        ).fetchone()
        if row is None:
            return None
        found = StoredBlock(*row[2:])
        updates = [changes for _, changes in blocktable.step_rows(connection, row[0], row[1]) if changes is not None]
        if not updates:
            return found
        return replace(found, snapshot=blocks.Block.restore(blocks.TextSchema(), found.snapshot, updates).snapshot())

    def delete(self, label: str) -> bool:
        """Delete a shared block; false if absent."""
        if self.get(label) is None:
            return False
        with self.transaction() as connection:
            record = blocktable.find_record(connection, "", label)
            if record is None:
                return False
            blocktable.delete_block(connection, record.block_id)
            return True

    def labels(self, source_id: str | None = None) -> tuple[str, ...]:
        """List the labels of all shared blocks, or of those of one source, sorted."""
        with self._open() as (connection, version):
            shared = "owner = '' AND " if version >= blocktable.FIRST_READ else ""
            query = f"SELECT label FROM block WHERE {shared}(?1 IS NULL OR source_id = ?1) ORDER BY label"
            return tuple(row[0] for row in connection.execute(query, (source_id,))) if connection else ()

    def mark(self) -> object:
        """Return a value that differs after any visible change of blocks, archive or conversations, whoever made it."""
        return self._marking.mark()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._marking.close()
        self._database.close()

    @contextmanager
    def _open(self) -> Generator[tuple[Connection | None, int]]:
        """Open the store for reading, with its version; None and 0 if absent."""
        with self._database.reading() as connection:
            yield connection, 0 if connection is None else self._check_version(connection)

    def _check_version(self, connection: Connection) -> int:
        version = _version(connection)
        if version > blocktable.VERSION:
            raise WorkspaceError(f"the block store `{self._path}` was written by a newer version of the program")
        return version

    def _make(self, connection: Connection) -> None:
        if _version(connection) < blocktable.VERSION:
            blocktable.make_tables(connection)


def _database(path: Path, seal: HomeSeal | None, make: Callable[[Connection], object] | None = None) -> Database:
    pragmas, what = ("synchronous = FULL",), "the block store"
    return Database(path, what=what, busy_s=_BUSY_S, pragmas=pragmas, make=make, virtual=VIRTUAL, home_seal=seal)


@contextmanager
def _one_state(connection: Connection) -> Generator[None]:
    """Keep all queries of the body on one state of the store."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _version(connection: Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def foreign_stores(state: Path, keys: Path) -> Iterator[Path]:
    """Find memory files in the folder ``state`` without the seal of this user and workspace."""
    for name in _names(state):
        try:
            with closing(_database_of(HomeSeal(state, keys, name))) as database, database.reading():
                pass
        except WorkspaceError:
            yield state / name


def adopt_memory(state: Path, keys: Path) -> tuple[Path, ...]:
    """Adopt every foreign store with its content, and return the files. Raises WorkspaceError for a damaged one."""
    adopted: list[Path] = []
    for name in _names(state):
        try:
            with closing(_database_of(HomeSeal(state, keys, name))) as database, database.reading():
                pass
        except ForeignStore:
            with closing(_database_of(HomeSeal(state, keys, name, adopts=True))) as database, database.writing():
                adopted.append(state / name)
    return tuple(adopted)


def _names(state: Path) -> list[str]:
    folder = PrivateFolder(state)
    try:
        found = [FILE_NAME] * (folder.look(FILE_NAME) is not None)
        kept = [name for name in folder.folder(notes.FOLDER).names() if name.endswith(notes.SUFFIX)]
    except OSError as error:
        raise WorkspaceError(f"the memory in `{state}` cannot be read: {error.strerror or error}") from None
    return found + [f"{notes.FOLDER}/{name}" for name in kept]


def _database_of(seal: HomeSeal) -> Database:
    virtual = {**entrytable.VIRTUAL, **notes.VIRTUAL}
    return Database(seal.path, what="the memory", busy_s=_BUSY_S, virtual=virtual, home_seal=seal)


_AT_HAND = 16
_FOLD_STEPS = 64
_FOLD_BYTES = 1024 * 1024
_HISTORY_FACTOR = 8
_HISTORY_BYTES = 4 * 1024 * 1024


@dataclass(slots=True)
class Opened:
    """A cached block. ``unfolded``: bytes of the updates that no snapshot contains yet.

    ``settled``: it agrees with the store; False during a change and after a failed one.
    """

    record: BlockRecord
    block: blocks.Block
    generation: int
    snapshot_step: int
    unfolded: int = 0
    settled: bool = True

    @property
    def last(self) -> int:
        """The number of the block's last step."""
        steps = self.block.steps
        return steps[-1].number if steps else self.snapshot_step


class Shelf:
    """The open blocks of one store; every use is inside the store's own lock."""

    def __init__(self, store: BlockStore) -> None:
        self.store = store
        self._at_hand: OrderedDict[str, Opened] = OrderedDict()
        self._process = 0

    @contextmanager
    def reading(self, owners: Sequence[str], label: str) -> Generator[Opened | None]:
        """Open the present block of the first owner that has the label; None if no owner has it."""
        with self.store.reading() as connection:
            yield None if connection is None else self._open(connection, owners, label)

    @contextmanager
    def changing(self, owners: Sequence[str], label: str) -> Generator[tuple[sqlite3.Connection, Opened | None]]:
        """Open the block for a change; the end of the context stores all changes durably, or none."""
        with self.store.transaction() as connection:
            opened = self._open(connection, owners, label)
            if opened is None:
                yield connection, None
                return
            version, last = opened.block.version, opened.last
            opened.settled = False
            try:
                yield connection, opened
            except ToolFailure:
                opened.settled = opened.last == last
                raise
            if opened.last > last:
                self._write(connection, opened, version, last)
        opened.settled = True

    def records(self, owners: Sequence[str]) -> list[BlockRecord]:
        """List the blocks of these owners."""
        with self.store.reading() as connection:
            return [] if connection is None else blocktable.all_records(connection, owners)

    def record(self, owners: Sequence[str], label: str) -> BlockRecord | None:
        """Return the record of the block of the first owner that has the label, without opening it."""
        with self.store.reading() as connection:
            if connection is None:
                return None
            return next((r for owner in owners if (r := blocktable.find_record(connection, owner, label))), None)

    def forget(self, block_id: str) -> None:
        """Drop a block, so that the next use reads it anew."""
        self._at_hand.pop(block_id, None)

    # inside

    def _open(self, connection: sqlite3.Connection, owners: Sequence[str], label: str) -> Opened | None:
        found = (blocktable.find_record(connection, owner, label) for owner in owners)
        record = next(filter(None, found), None)
        if record is None:
            return None
        if self._process != os.getpid():
            self._at_hand.clear()  # after a fork two holders of one document would give different edits the same name
            self._process = os.getpid()
        generation, snapshot_step = connection.execute(
            "SELECT generation, snapshot_step FROM block WHERE block_id = ?", (record.block_id,)
        ).fetchone()
        held = self._at_hand.pop(record.block_id, None)
        if held is not None and held.settled and held.generation == generation and held.last >= snapshot_step:
            held.record, held.snapshot_step = record, snapshot_step
            held.block.char_limit = record.char_limit
            rows = blocktable.step_rows(connection, record.block_id, held.last)
            if rows:
                updates = [changes for _, changes in rows if changes is not None]
                held.block.take_in(updates, [step for step, _ in rows])
                held.unfolded += sum(map(len, updates))
        else:
            held = self._load(connection, record, generation, snapshot_step)
        self._at_hand[record.block_id] = held
        while len(self._at_hand) > _AT_HAND:
            self._at_hand.popitem(last=False)
        return held

    def _load(self, connection: sqlite3.Connection, record: BlockRecord, generation: int, snapshot_step: int) -> Opened:
        snapshot = connection.execute("SELECT snapshot FROM block WHERE block_id = ?", (record.block_id,)).fetchone()
        rows = blocktable.step_rows(connection, record.block_id, 0)
        inside = [step for step, _ in rows if step.number <= snapshot_step]
        block = blocks.Block.restore(record.schema, snapshot[0], (), (), char_limit=record.char_limit)
        if inside and not inside[-1].after:
            inside[-1] = replace(inside[-1], after=block.frontier)
        updates = [changes for step, changes in rows if step.number > snapshot_step and changes is not None]
        block.take_in(updates, [*inside, *(step for step, _ in rows if step.number > snapshot_step)])
        return Opened(record, block, generation, snapshot_step, sum(map(len, updates)))

    def _write(self, connection: sqlite3.Connection, opened: Opened, version: bytes, last: int) -> None:
        """Write the new steps, the first change with the whole update. Fold them into a snapshot when they are many."""
        block, block_id = opened.block, opened.record.block_id
        changes: bytes | None = block.updates_since(version)
        for step in block.steps:
            if step.number <= last:
                continue
            held = changes if step.has_changes else None
            blocktable.insert_step(connection, block_id, step, held)
            if held is not None:
                opened.unfolded += len(held)
                changes = b""
        if last == opened.snapshot_step:
            self._set_state(connection, opened)
        blocktable.update_record(connection, opened.record)
        blocktable.index_block(connection, opened.record, block)
        if opened.last - opened.snapshot_step >= _FOLD_STEPS or opened.unfolded >= _FOLD_BYTES:
            self._fold(connection, opened)

    def _fold(self, connection: sqlite3.Connection, opened: Opened) -> None:
        """Replace the updates by one snapshot; cut a history much longer than the block."""
        block, block_id = opened.block, opened.record.block_id
        snapshot = block.snapshot()
        if len(snapshot) > _HISTORY_FACTOR * block.size().chars + _HISTORY_BYTES:
            snapshot = block.shallow_snapshot()
            blocktable.forget_states(connection, block_id, opened.last)
            self._at_hand.pop(block_id, None)
            opened.snapshot_step = 0
        self._set_state(connection, opened)
        blocktable.fold(connection, block_id, opened.last, snapshot)
        block.forget_steps(opened.last - blocktable.KEPT_STEPS)
        opened.snapshot_step, opened.unfolded = opened.last, 0

    def _set_state(self, connection: sqlite3.Connection, opened: Opened) -> None:
        """Record the state of a snapshot from outside, which was unknown: an undo may begin there."""
        for step in opened.block.steps:
            if step.number == opened.snapshot_step:
                blocktable.set_state(connection, opened.record.block_id, step)
