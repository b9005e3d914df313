"""The blocks of one source at rest, and the text that each was last in step with.

That text (the base) is what a three-way merge starts from. It is kept beside the block under a label of its own that
holds its digest, written before the block and dropped after it: a block whose digest has no base never comes from a
crash between the two.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from gatewright.base.errors import DamagedBlock, ToolFailure, WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.sources.filetext import decode_text, digest_of

if TYPE_CHECKING:
    from gatewright.blocks.text import TextBlock

ABSENT = "absent"
"""In the place of a digest: when block and disk were last in step, there was no file."""

_BASES = "#disk"
_BASE_LABEL = "disk:"
_HISTORY_FACTOR = 4
_HISTORY_BYTES = 262_144


class StoredBlock(Protocol):
    """A block at rest."""

    @property
    def snapshot(self) -> bytes:
        """The block with its history."""
        ...

    @property
    def disk_digest(self) -> str:
        """SHA-256 of the file's bytes when block and file were last in step."""
        ...


class BlockStorePort(Protocol):
    """Where blocks are kept, by label. Callable from any thread."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Keeps everybody else, in any process, from changing a block meanwhile."""
        ...

    def get(self, label: str) -> StoredBlock | None:
        """The block with that label, or None."""
        ...

    def put(self, label: str, *, source_id: str, snapshot: bytes, disk_digest: str) -> None:
        """Keep a block durably."""
        ...

    def delete(self, label: str) -> bool:
        """Forget a block; whether there was one."""
        ...

    def labels(self, source_id: str | None = None) -> tuple[str, ...]:
        """The labels of a source's blocks."""
        ...


@frozen
class HeldBlock:
    """A block at hand and the digest of the file that it was last in step with."""

    text: TextBlock
    disk_digest: str

    @property
    def digest(self) -> str:
        """The digest that the file would have with this text."""
        return digest_of(self.text.text.encode())

    @property
    def unsaved(self) -> bool:
        """Whether the block holds something that the file did not when both were in step."""
        return self.digest != self.disk_digest


def is_base_label(label: str) -> bool:
    """Whether a label is one under which a base is kept: no block of anybody's."""
    return label.startswith(_BASE_LABEL)


@frozen
class HeldBlocks:
    """The blocks of one source. ``label_of`` makes the label of a relative path."""

    store: BlockStorePort
    source_id: str
    label_of: Callable[[str], str]

    def get(self, relative: str) -> HeldBlock | None:
        """The block of a file, or None. Raises WorkspaceError for a damaged one."""
        stored = self.store.get(self.label_of(relative))
        if stored is None:
            return None
        from gatewright.blocks.text import TextBlock

        try:
            return HeldBlock(TextBlock.from_snapshot(stored.snapshot), stored.disk_digest)
        except DamagedBlock:
            raise DamagedBlock("load the file to make it anew from disk") from None

    def has(self, relative: str) -> bool:
        """Whether there is a block of a file, damaged or not."""
        return self.store.get(self.label_of(relative)) is not None

    def keep(self, relative: str, text: TextBlock, disk_digest: str, *, limit: int) -> HeldBlock:
        """Store a block; a history much longer than a file may be is dropped, so that it cannot fill the disk."""
        from gatewright.blocks.text import TextBlock

        snapshot = text.snapshot()
        if len(snapshot) > _HISTORY_FACTOR * limit + _HISTORY_BYTES:
            text = TextBlock.from_text(text.text)
            snapshot = text.snapshot()
        self.store.put(self.label_of(relative), source_id=self.source_id, snapshot=snapshot, disk_digest=disk_digest)
        return HeldBlock(text, disk_digest)

    def keep_in_step(self, relative: str, text: TextBlock, content: bytes, *, limit: int) -> HeldBlock:
        """Store a block that is now compared with a file of that content."""
        from gatewright.blocks.text import TextBlock

        label, digest = self.label_of(relative), digest_of(content)
        before = self.store.get(label)
        base = _base_label(label, digest)
        if self.store.get(base) is None:
            snapshot = TextBlock.from_text(decode_text(content)).snapshot()
            self.store.put(base, source_id=self.source_id + _BASES, snapshot=snapshot, disk_digest=digest)
        kept = self.keep(relative, text, digest, limit=limit)
        if before is not None and before.disk_digest != digest:
            self.store.delete(_base_label(label, before.disk_digest))
        return kept

    def keep_as_new(self, relative: str, block: HeldBlock, *, limit: int) -> None:
        """Store a block of which the disk has no file any more."""
        self.keep(relative, block.text, ABSENT, limit=limit)
        self.store.delete(_base_label(self.label_of(relative), block.disk_digest))

    def base_of(self, relative: str, block: HeldBlock) -> str | None:
        """The text that block and file were last in step with; None where it is not known."""
        from gatewright.blocks.text import TextBlock

        if block.disk_digest == ABSENT:
            return ""
        if not block.unsaved:
            return block.text.text
        stored = self.store.get(_base_label(self.label_of(relative), block.disk_digest))
        if stored is None:
            return None
        try:
            text = TextBlock.from_snapshot(stored.snapshot).text
        except WorkspaceError:
            return None
        return text if digest_of(text.encode()) == block.disk_digest else None

    def forget(self, relative: str) -> bool:
        """Forget a block and its base; whether there was a block."""
        label = self.label_of(relative)
        stored = self.store.get(label)
        if stored is None:
            return False
        self.store.delete(label)
        self.store.delete(_base_label(label, stored.disk_digest))
        return True

    def labels(self) -> frozenset[str]:
        """The labels of the blocks."""
        return frozenset(self.store.labels(self.source_id))

    def places(self) -> tuple[str, ...]:
        """The relative paths of the files that have a block, sorted."""
        return tuple(sorted(label.split(":", 2)[2] for label in self.store.labels(self.source_id)))


def _base_label(label: str, digest: str) -> str:
    return f"{_BASE_LABEL}{digest[:16]}:{label}"


def no_block() -> ToolFailure:
    """What is said where a block is needed and there is none."""
    return ToolFailure("there is no block for this path", code="no-block")
