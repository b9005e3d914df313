"""One folder of files with an overlay of blocks: edits stand in a block until they are written. It knows no agent.

Everything here is synchronous and works on paths relative to the base (``/``, ``.`` for the base itself); the manager
calls it in a thread, one call per file at a time. Levels are looked up by the manager; the overlay here trusts it.
A block is out of step (``unsaved``) when its text is not what the file held when both were last in step.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from gatewright.base.errors import ToolFailure, WorkspaceError
from gatewright.blocks import TextBlock
from gatewright.policy.permission import Action
from gatewright.policy.target import Assessment, FileText
from gatewright.sources import descriptor
from gatewright.sources.descriptor import CONFLICT, Standing
from gatewright.sources.difftext import diff_text
from gatewright.sources.filetext import decode_text, digest_of, encode_text, in_line_ending_of, line_count

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from gatewright.base.jsonvalue import JsonValue
    from gatewright.policy.document import Source
    from gatewright.policy.glob import PermissionRules
    from gatewright.sources.protection import Protection

BASE = "."
_HISTORY_FACTOR = 4
_HISTORY_BYTES = 262_144
_COMPARED_CHARS = 4 * 1024 * 1024


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


class FileSource:
    """The files below ``base`` under ``rules``, with blocks in ``blocks``. ``base`` may be missing for now."""

    def __init__(
        self, source: Source, base: Path, rules: PermissionRules, blocks: BlockStorePort, protected: Protection
    ) -> None:
        self.source = source
        self.rules = rules
        self.protected = protected
        self.written_base = os.path.abspath(base)  # noqa: PTH100 - as written, links not resolved
        self.base = os.path.realpath(base)
        self._blocks = blocks

    @property
    def source_id(self) -> str:
        """The id in the policy."""
        return self.source.source_id

    def with_rules(self, source: Source, rules: PermissionRules) -> FileSource:
        """The same folder and blocks under other rules; the base stays the one that was looked at when it started."""
        other = copy(self)
        other.source, other.rules = source, rules
        return other

    def absolute(self, relative: str) -> str:
        """The absolute path of a place."""
        return self.base if relative == BASE else f"{self.base.rstrip('/')}/{relative}"

    def relative_of(self, absolute: str) -> str | None:
        """The relative path of a canonical absolute one, None outside the base."""
        for base in (self.base, self.written_base):
            if absolute == base:
                return BASE
            prefix = base.rstrip("/") + "/"
            if absolute.startswith(prefix):
                return absolute[len(prefix) :]
        return None

    def label(self, relative: str) -> str:
        """``file:{hash8}:{relative}``; hash8: first 8 hex digits of SHA-256 of the file's absolute path."""
        return f"file:{hashlib.sha256(os.fsencode(self.absolute(relative))).hexdigest()[:8]}:{relative}"

    def look(self, relative: str) -> Standing:
        """What stands at a place. Raises ToolFailure where the way there is no plain folder."""
        return descriptor.look_along(self.steps(relative))

    def steps(self, relative: str) -> tuple[str, ...]:
        """The absolute paths of the base and of everything on the way to a place, itself last. Raises ToolFailure."""
        return descriptor.steps_of(self.base, _parts(relative))

    def loaded_labels(self) -> frozenset[str]:
        """The labels of the blocks of this source."""
        return frozenset(self._blocks.labels(self.source_id))

    # what a call would do

    def assess_save(self, relative: str) -> Assessment:
        """Append if the block only extends the file as it is on disk, else overwrite; with the diff."""
        block = self._block(relative)
        if block is None:
            return Assessment(Action.OVERWRITE)
        new = block.text.text
        try:
            old = decode_text(self._bytes(relative)[0])
        except ToolFailure:
            return Assessment(Action.OVERWRITE, diff=diff_text(relative, "", new))
        action = Action.APPEND if new.startswith(old) else Action.OVERWRITE
        return Assessment(action, diff=diff_text(relative, old, new))

    def assess_load(self, relative: str) -> Assessment:
        """Read, asking when edits in the block would be lost."""
        try:
            block = self._block(relative)
        except WorkspaceError:
            return Assessment(Action.READ, ask="the block is damaged and would be made anew from disk")
        if block is None or not block.unsaved:
            return Assessment(Action.READ)
        return Assessment(Action.READ, ask="edits that were not written to disk would be thrown away")

    def text_of(self, relative: str) -> str | None:
        """The text that stands there now; None where there is none, or more than a person could compare."""
        try:
            text = self.read(relative).content
        except (ToolFailure, WorkspaceError):
            return None
        return text if len(text) <= _COMPARED_CHARS else None

    def assess_text(self, relative: str, new_text: str) -> Assessment:
        """The diff from what stands there now, without an action."""
        try:
            old = self.read(relative).content
        except ToolFailure:
            old = ""
        return Assessment(diff=diff_text(relative, old, new_text))

    # the operations

    def read(self, relative: str) -> FileText:
        """The block's text if there is a block, else the disk's."""
        block = self._block(relative)
        if block is not None:
            return FileText(block.text.text, "block", block.unsaved)
        return FileText(decode_text(self._bytes(relative)[0]), "disk")

    def load(self, relative: str) -> JsonValue:
        """Read the disk into the block; what the block held is gone."""
        return self._told(relative, self._from_disk(relative))

    def save(self, relative: str, granted: Action) -> JsonValue:
        """Write the block to disk if that is granted and the disk is as the block knows it."""
        block = self._block(relative)
        if block is None:
            raise ToolFailure("there are no edits for this file: it has no block", code="no-block")
        new = encode_text(block.text.text, self.source.max_file_bytes)
        with self._folder_of(relative) as (folder, name):
            try:
                old, seen = descriptor.read_bytes(folder, name, self.source.max_file_bytes)
            except ToolFailure as failure:
                if failure.code in {"not-found", "too-large"}:
                    raise ToolFailure(CONFLICT, code="conflict") from None
                raise
            self._refuse_protected(relative, seen)
            if digest_of(old) not in {block.disk_digest, digest_of(new)}:
                raise ToolFailure(CONFLICT, code="conflict")
            if granted is not Action.OVERWRITE and not (granted is Action.APPEND and new.startswith(old)):
                raise ToolFailure(
                    "this changes what the file holds, and only more text at its end was granted", code="not-granted"
                )
            if old != new:
                descriptor.replace_bytes(folder, name, new, seen)
        return self._told(relative, self._keep(relative, block.text, digest_of(new)))

    def append(self, relative: str, content: str) -> JsonValue:
        """Add text at the end of the block, in the file's line ending."""
        block = self._block(relative) or self._from_disk(relative)
        text = block.text.text
        added = in_line_ending_of(text, content)
        encode_text(text + added, self.source.max_file_bytes)
        block.text.append(added)
        return self._told(relative, self._keep(relative, block.text, block.disk_digest))

    def replace(self, relative: str, old: str, new: str) -> JsonValue:
        """Replace the one place where ``old`` stands in the block."""
        block = self._block(relative) or self._from_disk(relative)
        text = block.text.text
        if old not in text:
            old = in_line_ending_of(text, old)
        new = in_line_ending_of(text, new)
        encode_text(new, self.source.max_file_bytes)
        count = block.text.replace_once(old, new)
        if count == 0:
            raise ToolFailure("the old text does not stand in the file (0 places)", code="no-match")
        if count > 1:
            raise ToolFailure(
                f"the old text stands in the file at {count} places: give more of its surroundings", code="many-matches"
            )
        encode_text(block.text.text, self.source.max_file_bytes)
        return self._told(relative, self._keep(relative, block.text, block.disk_digest))

    def create(self, relative: str, content: str) -> JsonValue:
        """Make a new file and its block, and the folders above it."""
        parts = _file_parts(relative)
        block = self._block(relative)
        if block is not None and block.unsaved:
            raise ToolFailure("a block with edits that were not written stands at that path", code="exists")
        written = encode_text(content, self.source.max_file_bytes)
        with descriptor.open_folder(self.base, parts[:-1], make=True) as folder:
            descriptor.write_new(folder, parts[-1], written)
        return self._told(relative, self._keep(relative, TextBlock.from_text(content), digest_of(written)))

    def delete(self, relative: str) -> JsonValue:
        """Remove a file from disk, and its block."""
        with self._folder_of(relative) as (folder, name):
            on_disk = descriptor.remove(folder, name)
        had_block = self._blocks.delete(self.label(relative))
        if not on_disk and not had_block:
            raise ToolFailure("there is no such file", code="not-found")
        return {"label": self.label(relative), "file": on_disk, "block": had_block}

    def block_info(self, relative: str) -> JsonValue:
        """Label, size, lines and whether there are edits that were not written."""
        block = self._block(relative)
        if block is None:
            raise ToolFailure("there is no block for this path", code="no-block")
        return self._told(relative, block)

    # inside

    def _block(self, relative: str) -> _Block | None:
        stored = self._blocks.get(self.label(relative))
        return None if stored is None else _Block(TextBlock.from_snapshot(stored.snapshot), stored.disk_digest)

    def _keep(self, relative: str, text: TextBlock, disk_digest: str) -> _Block:
        """Store a block; a history much longer than a file may be is dropped, so that it cannot fill the disk."""
        snapshot = text.snapshot()
        if len(snapshot) > _HISTORY_FACTOR * self.source.max_file_bytes + _HISTORY_BYTES:
            text = TextBlock.from_text(text.text)
            snapshot = text.snapshot()
        self._blocks.put(self.label(relative), source_id=self.source_id, snapshot=snapshot, disk_digest=disk_digest)
        return _Block(text, disk_digest)

    def _from_disk(self, relative: str) -> _Block:
        content, _ = self._bytes(relative)
        text = decode_text(content)
        try:
            stored = self._block(relative)
        except WorkspaceError:
            stored = None  # a damaged block is mended by what is on disk
        block = stored.text if stored else TextBlock.from_text(text)
        if stored:
            block.set_text(text)
        return self._keep(relative, block, digest_of(content))

    def _bytes(self, relative: str) -> tuple[bytes, os.stat_result]:
        with self._folder_of(relative) as (folder, name):
            content, status = descriptor.read_bytes(folder, name, self.source.max_file_bytes)
        self._refuse_protected(relative, status)
        return content, status

    def _refuse_protected(self, relative: str, status: os.stat_result) -> None:
        if self.protected.now().covers(self.absolute(relative), (descriptor.identity_of(status),)):
            raise ToolFailure("this path is not available", code="not-available")

    @contextmanager
    def _folder_of(self, relative: str) -> Generator[tuple[int, str]]:
        """The descriptor of the folder that a file is in, and the file's name there."""
        parts = _file_parts(relative)
        with descriptor.open_folder(self.base, parts[:-1]) as folder:
            yield folder, parts[-1]

    def _told(self, relative: str, block: _Block) -> JsonValue:
        text = block.text.text
        size = len(text.encode("utf-8", "replace"))
        return {"label": self.label(relative), "size": size, "lines": line_count(text), "unsaved": block.unsaved}


@dataclass(frozen=True, slots=True)
class _Block:
    """A block at hand and the digest of the file that it was last in step with."""

    text: TextBlock
    disk_digest: str

    @property
    def unsaved(self) -> bool:
        return digest_of(self.text.text.encode("utf-8", "replace")) != self.disk_digest


def _parts(relative: str) -> tuple[str, ...]:
    """The components of a canonical relative path; anything else is refused, whoever made it."""
    if relative == BASE:
        return ()
    parts = tuple(relative.split("/"))
    if any(part in {"", ".", ".."} or "\0" in part for part in parts):
        raise ToolFailure("the path is not canonical", code="not-canonical")
    return parts


def _file_parts(relative: str) -> tuple[str, ...]:
    parts = _parts(relative)
    if not parts:
        raise ToolFailure("this is the top folder, not a file", code="is-a-folder")
    return parts
