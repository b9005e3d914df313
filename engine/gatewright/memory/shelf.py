"""Open blocks of the store: cached, updated with the writes of others, and written back step by step.

Two processes that edit one block take turns: each first takes in the other's updates, which merges their edits. A
cached document counts only as far as the store agrees with it.
"""

from __future__ import annotations

import os
import sqlite3
from collections import OrderedDict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from gatewright.base.errors import ToolFailure
from gatewright.blocks.block import Block
from gatewright.memory import blocktable
from gatewright.memory.block_store import BlockStore
from gatewright.memory.blocktable import BlockRecord

_AT_HAND = 16
_FOLD_STEPS = 64
_FOLD_BYTES = 1024 * 1024
_HISTORY_FACTOR = 8
_HISTORY_BYTES = 4 * 1024 * 1024


@dataclass(slots=True)
class Opened:
    """A cached block. ``unfolded``: bytes of the updates that no snapshot holds yet.

    ``settled``: it agrees with the store; False during a change and after a failed one.
    """

    record: BlockRecord
    block: Block
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
        """Open the present block of the first owner that has the label; None if nobody has it."""
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
            self._at_hand.clear()  # after a fork: two holders of one document would give different edits one name
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
        block = Block.restore(record.schema, snapshot[0], (), (), char_limit=record.char_limit)
        if inside and not inside[-1].after:
            inside[-1] = replace(inside[-1], after=block.frontier)
        updates = [changes for step, changes in rows if step.number > snapshot_step and changes is not None]
        block.take_in(updates, [*inside, *(step for step, _ in rows if step.number > snapshot_step)])
        return Opened(record, block, generation, snapshot_step, sum(map(len, updates)))

    def _write(self, connection: sqlite3.Connection, opened: Opened, version: bytes, last: int) -> None:
        """Write the new steps, the first change with the update; now and then fold them into a snapshot."""
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
        """Record the state of the snapshot: for a foreign one it was unknown, and an undo may begin there."""
        for step in opened.block.steps:
            if step.number == opened.snapshot_step:
                blocktable.set_state(connection, opened.record.block_id, step)
