"""The stored blocks of one source, and four strategies to bring a file and its block back into step.

A three-way merge starts from their last common text, the base. The store keeps the base beside the block, under a label
of its own with its digest; it is written before the block and dropped after it, so that a crash in between never leaves
a block without its base. The strategies: ``ours`` takes the block's text, ``theirs`` the disk's, ``merge`` joins both
if they do not conflict, ``ask`` only reports. All of them change the block, never the disk; afterwards the block counts
as compared with the disk as it is now.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Protocol

from gatewright import blocks
from gatewright.base.errors import DamagedBlock, ToolFailure, WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.sources.filetext import decode_text, digest_of

ABSENT = "absent"
"""The digest of a missing file: when block and disk last agreed, both knew that it was absent."""

_BASES = "#disk"
_BASE_LABEL = "disk:"
_HISTORY_FACTOR = 4
_HISTORY_BYTES = 262_144


class StoredBlock(Protocol):
    """A block in the store."""

    @property
    def snapshot(self) -> bytes:
        """The block with its history."""
        ...

    @property
    def disk_digest(self) -> str:
        """SHA-256 of the file's bytes when block and file were last in step."""
        ...


class BlockStorePort(Protocol):
    """The store of blocks, by label. Any thread may call."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Keep all others, in any process, from changing a block meanwhile."""
        ...

    def get(self, label: str) -> StoredBlock | None:
        """Return the block with that label, or None."""
        ...

    def put(self, label: str, *, source_id: str, snapshot: bytes, disk_digest: str) -> None:
        """Store a block durably."""
        ...

    def delete(self, label: str) -> bool:
        """Forget a block, and return True if it existed."""
        ...

    def labels(self, source_id: str | None = None) -> tuple[str, ...]:
        """Return the labels of a source's blocks."""
        ...


@frozen
class HeldBlock:
    """A block in memory and the digest of the file that it last agreed with."""

    text: blocks.TextBlock
    disk_digest: str

    @property
    def digest(self) -> str:
        """The digest of a file with this text."""
        return digest_of(self.text.text.encode())

    @property
    def unsaved(self) -> bool:
        """True if the block's text differs from the file as it was when both last agreed."""
        return self.digest != self.disk_digest


def is_base_label(label: str) -> bool:
    """Tell whether a label belongs to a base rather than to a block."""
    return label.startswith(_BASE_LABEL)


@frozen
class HeldBlocks:
    """The blocks of one source. ``label_of`` makes the label of a relative path."""

    store: BlockStorePort
    source_id: str
    label_of: Callable[[str], str]

    def get(self, relative: str) -> HeldBlock | None:
        """Return the block of a file, or None. Raises WorkspaceError for a damaged one."""
        stored = self.store.get(self.label_of(relative))
        if stored is None:
            return None
        try:
            return HeldBlock(blocks.TextBlock.from_snapshot(stored.snapshot), stored.disk_digest)
        except DamagedBlock:
            raise DamagedBlock("load the file to make it anew from disk") from None

    def has(self, relative: str) -> bool:
        """Tell whether a file has a block, damaged or not."""
        return self.store.get(self.label_of(relative)) is not None

    def keep(self, relative: str, text: blocks.TextBlock, disk_digest: str, *, limit: int) -> HeldBlock:
        """Store a block, and drop a history much longer than a file may be, so that it cannot fill the disk."""
        snapshot = text.snapshot()
        if len(snapshot) > _HISTORY_FACTOR * limit + _HISTORY_BYTES:
            text = blocks.TextBlock.from_text(text.text)
            snapshot = text.snapshot()
        self.store.put(self.label_of(relative), source_id=self.source_id, snapshot=snapshot, disk_digest=disk_digest)
        return HeldBlock(text, disk_digest)

    def keep_in_step(self, relative: str, text: blocks.TextBlock, content: bytes, *, limit: int) -> HeldBlock:
        """Store a block that agrees with a file of that content."""
        label, digest = self.label_of(relative), digest_of(content)
        before = self.store.get(label)
        base = _base_label(label, digest)
        if self.store.get(base) is None:
            snapshot = blocks.TextBlock.from_text(decode_text(content)).snapshot()
            self.store.put(base, source_id=self.source_id + _BASES, snapshot=snapshot, disk_digest=digest)
        kept = self.keep(relative, text, digest, limit=limit)
        if before is not None and before.disk_digest != digest:
            self.store.delete(_base_label(label, before.disk_digest))
        return kept

    def keep_as_new(self, relative: str, block: HeldBlock, *, limit: int) -> None:
        """Store a block whose file was deleted on disk."""
        self.keep(relative, block.text, ABSENT, limit=limit)
        self.store.delete(_base_label(self.label_of(relative), block.disk_digest))

    def base_of(self, relative: str, block: HeldBlock) -> str | None:
        """Return the last text common to block and file; None if it is unknown."""
        if block.disk_digest == ABSENT:
            return ""
        if not block.unsaved:
            return block.text.text
        stored = self.store.get(_base_label(self.label_of(relative), block.disk_digest))
        if stored is None:
            return None
        try:
            text = blocks.TextBlock.from_snapshot(stored.snapshot).text
        except WorkspaceError:
            return None
        return text if digest_of(text.encode()) == block.disk_digest else None

    def forget(self, relative: str) -> bool:
        """Forget a block and its base; return True if the block existed."""
        label = self.label_of(relative)
        stored = self.store.get(label)
        if stored is None:
            return False
        self.store.delete(label)
        self.store.delete(_base_label(label, stored.disk_digest))
        return True

    def labels(self) -> frozenset[str]:
        """Return the labels of the blocks."""
        return frozenset(self.store.labels(self.source_id))

    def places(self) -> tuple[str, ...]:
        """Return the relative paths of the files that have a block, sorted."""
        return tuple(sorted(label.split(":", 2)[2] for label in self.store.labels(self.source_id)))


def _base_label(label: str, digest: str) -> str:
    return f"{_BASE_LABEL}{digest[:16]}:{label}"


def no_block() -> ToolFailure:
    """Return the failure for a missing block."""
    return ToolFailure("there is no block for this path", code="no-block")


class FileState(StrEnum):
    """The state of a file and its block. ``not_loaded``: the file has no block."""

    SYNCED = "synced"
    BLOCK_MODIFIED = "block_modified"
    DISK_MODIFIED = "disk_modified"
    CONFLICT = "conflict"
    DISK_DELETED = "disk_deleted"
    NOT_LOADED = "not_loaded"


@frozen
class OnDisk:
    """The file on disk: its bytes, or None with a ``problem`` if it is unreadable, or None alone if it is gone."""

    content: bytes | None = None
    problem: str | None = None

    @property
    def is_gone(self) -> bool:
        """True if the file is missing."""
        return self.content is None and self.problem is None


@frozen
class OutsideChange:
    """One changed path. ``state``: of block and file before; ``merged``: the block now holds the new text."""

    relative: str
    state: FileState
    merged: bool


def state_of(block: HeldBlock, disk: OnDisk) -> FileState:
    """Compare block and file; equal texts are in step, however they became equal."""
    if disk.is_gone:
        return FileState.BLOCK_MODIFIED if block.disk_digest == ABSENT else FileState.DISK_DELETED
    on_disk = "" if disk.content is None else digest_of(disk.content)
    mine = block.digest
    if mine == on_disk:
        return FileState.SYNCED
    if on_disk == block.disk_digest:
        return FileState.BLOCK_MODIFIED
    return FileState.CONFLICT if mine != block.disk_digest else FileState.DISK_MODIFIED


_SHOWN_CONFLICTS = 20
_SHOWN_CHARS = 2_000
_MERGED_CHARS = 8 * 1024 * 1024


class Strategy(StrEnum):
    """The strategies for a file and block that differ."""

    OURS = "ours"
    THEIRS = "theirs"
    MERGE = "merge"
    ASK = "ask"


class Outcome(StrEnum):
    """The effect of a reconciliation. ``forgotten``: the file is gone, and its block with it."""

    NOTHING = "nothing"
    KEPT_BLOCK = "kept_block"
    TOOK_DISK = "took_disk"
    MERGED = "merged"
    CONFLICT = "conflict"
    FORGOTTEN = "forgotten"


@frozen
class Sides:
    """The three texts: ``base`` None if unknown, ``disk`` None if the file is missing."""

    base: str | None
    block: str
    disk: str | None


@frozen
class Decision:
    """The result of a strategy: ``text`` is the block's new text (None: as it is)."""

    outcome: Outcome
    text: str | None = None
    conflicts: tuple[blocks.MergeConflict, ...] = ()
    why: str | None = None


def decide(state: FileState, strategy: Strategy, sides: Sides) -> Decision:
    """Apply a strategy to a state."""
    if state in {FileState.SYNCED, FileState.BLOCK_MODIFIED}:
        return Decision(Outcome.NOTHING)
    if strategy is Strategy.ASK:
        return Decision(Outcome.CONFLICT, why="nothing was done: whoever decides names a strategy")
    if strategy is Strategy.OURS:
        return Decision(Outcome.KEPT_BLOCK)
    if strategy is Strategy.THEIRS:
        return Decision(Outcome.FORGOTTEN) if sides.disk is None else Decision(Outcome.TOOK_DISK, sides.disk)
    return _merge(sides)


def _merge(sides: Sides) -> Decision:
    if sides.disk is None:
        if sides.block == sides.base:
            return Decision(Outcome.FORGOTTEN)
        return Decision(Outcome.CONFLICT, why="the file is gone and its block holds edits")
    if sides.base is None:
        return Decision(Outcome.CONFLICT, why="the text that both began with is not known")
    if sides.block == sides.base:
        return Decision(Outcome.TOOK_DISK, sides.disk)
    if len(sides.base) + len(sides.block) + len(sides.disk) > _MERGED_CHARS:
        return Decision(Outcome.CONFLICT, why="the texts are too long to be put together")
    found = blocks.merge_texts(sides.base, sides.block, sides.disk)
    if found.text is None:
        return Decision(Outcome.CONFLICT, conflicts=found.conflicts, why="both changed the same places")
    return Decision(Outcome.MERGED, found.text)


def describe_decision(
    relative: str, state: FileState, strategy: Strategy, decision: Decision, sides: Sides
) -> dict[str, JsonValue]:
    """Describe the decision for the caller, with both diffs of a conflict. Bounded."""
    row: dict[str, JsonValue] = {"path": relative, "state": str(state), "strategy": str(strategy)}
    row["outcome"] = str(decision.outcome)
    if decision.why is not None:
        row["why"] = decision.why
    if decision.outcome is Outcome.CONFLICT:
        row["conflicts"] = [_place(conflict) for conflict in decision.conflicts[:_SHOWN_CONFLICTS]]
        row["conflict_count"] = len(decision.conflicts)
        row["block_diff"] = None if sides.base is None else blocks.diff_text(relative, sides.base, sides.block)
        row["disk_diff"] = None if sides.base is None else blocks.diff_text(relative, sides.base, sides.disk or "")
    return row


def _place(conflict: blocks.MergeConflict) -> JsonValue:
    return {
        "base_line": conflict.base_line,
        "block_line": conflict.mine_line,
        "disk_line": conflict.other_line,
        "base": _cut(conflict.base),
        "block": _cut(conflict.mine),
        "disk": _cut(conflict.other),
    }


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}[cut, {len(text):,} characters]"
