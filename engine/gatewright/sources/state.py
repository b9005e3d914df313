"""How a file and its block stand to each other, by content alone."""

from __future__ import annotations

from enum import StrEnum

from gatewright.base.frozen import frozen
from gatewright.sources.filetext import digest_of
from gatewright.sources.held import ABSENT, HeldBlock


class FileState(StrEnum):
    """Of a file with a block. ``not_loaded``: it has none."""

    SYNCED = "synced"
    BLOCK_MODIFIED = "block_modified"
    DISK_MODIFIED = "disk_modified"
    CONFLICT = "conflict"
    DISK_DELETED = "disk_deleted"
    NOT_LOADED = "not_loaded"


@frozen
class OnDisk:
    """What stands on disk: its bytes; None with a ``problem`` where they cannot be had, None alone where it is gone."""

    content: bytes | None = None
    problem: str | None = None

    @property
    def is_gone(self) -> bool:
        """Whether there is no file."""
        return self.content is None and self.problem is None


@frozen
class OutsideChange:
    """One path that changed. ``state``: of block and file before; ``merged``: the block now holds the new text."""

    relative: str
    state: FileState
    merged: bool


def state_of(block: HeldBlock, disk: OnDisk) -> FileState:
    """A file that holds the block's very text is in step, however it came to hold it."""
    if disk.is_gone:
        return FileState.BLOCK_MODIFIED if block.disk_digest == ABSENT else FileState.DISK_DELETED
    on_disk = "" if disk.content is None else digest_of(disk.content)
    mine = block.digest
    if mine == on_disk:
        return FileState.SYNCED
    if on_disk == block.disk_digest:
        return FileState.BLOCK_MODIFIED
    return FileState.CONFLICT if mine != block.disk_digest else FileState.DISK_MODIFIED
