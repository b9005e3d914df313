"""One folder of files with an overlay of blocks: edits stay in a block until somebody writes them.

Everything here is synchronous and works on paths relative to the base (``/``, ``.`` for the base itself); the manager
calls it in a thread, one call per file at a time, after it looked up the levels. A block is out of step (``unsaved``)
if its text differs from the file as it was when both last agreed. It has more than 450 lines because all operations
share the same few steps between block and disk, which read best together.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial

from gatewright import blocks
from gatewright.base.errors import ToolFailure, WorkspaceError
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.document import Source
from gatewright.policy.glob import PermissionRules
from gatewright.policy.target import Assessment, FileText, Later
from gatewright.policy.verdict import Action
from gatewright.sources import descriptor
from gatewright.sources.basefolder import BaseFolder
from gatewright.sources.descriptor import CONFLICT, Standing
from gatewright.sources.filetext import (
    decode_text,
    digest_of,
    encode_text,
    in_line_ending_of,
    line_count,
    with_change,
    with_lines,
    with_patch,
)
from gatewright.sources.ground import Protection
from gatewright.sources.held import (
    ABSENT,
    BlockStorePort,
    Decision,
    FileState,
    HeldBlock,
    HeldBlocks,
    OnDisk,
    Outcome,
    OutsideChange,
    Sides,
    Strategy,
    decide,
    describe_decision,
    no_block,
    state_of,
)

MAX_LISTED = 5_000
"""The most entries in one listing of a folder."""
BASE = "."
_COMPARED_CHARS = 4 * 1024 * 1024
_WRITES_AGAIN = "the file was deleted on disk since, and would be written again"


class FileSource:
    """The files below ``folder``, with blocks in ``blocks``. The folder may be missing. Raises ValueError for a bad
    pattern.
    """

    def __init__(self, source: Source, folder: BaseFolder, blocks: BlockStorePort, protected: Protection) -> None:
        self.source = source
        self.rules = PermissionRules(source.permission_rules, source.default_permission)
        self.protected = protected
        self.folder = folder
        self._blocks = HeldBlocks(blocks, source.source_id, self.label)

    @property
    def source_id(self) -> str:
        """The id in the policy."""
        return self.source.source_id

    @property
    def base(self) -> str:
        """The path of the folder, links resolved."""
        return self.folder.path

    def absolute(self, relative: str) -> str:
        """Return the absolute path of a place."""
        return self.base if relative == BASE else f"{self.base.rstrip('/')}/{relative}"

    def relative_of(self, absolute: str) -> str | None:
        """Return the relative path of a canonical absolute one, None outside the base."""
        if absolute == self.base:
            return BASE
        prefix = self.base.rstrip("/") + "/"
        return absolute[len(prefix) :] if absolute.startswith(prefix) else None

    def label(self, relative: str) -> str:
        """Return ``file:{hash8}:{relative}``; hash8: the first 8 hex digits of SHA-256 of the file's absolute path."""
        return f"file:{hashlib.sha256(os.fsencode(self.absolute(relative))).hexdigest()[:8]}:{relative}"

    def look(self, relative: str) -> Standing:
        """Look at a place. Raises ToolFailure if the way does not consist of plain folders."""
        return descriptor.look_along(self.steps(relative), self.folder)

    def steps(self, relative: str) -> tuple[str, ...]:
        """Return the absolute paths of the base and of every step to a place, the place last. Raises ToolFailure."""
        return descriptor.steps_of(self.base, _parts(relative))

    def block_labels(self) -> frozenset[str]:
        """Return the labels of the blocks of this source."""
        return self._blocks.labels()

    def block_places(self) -> tuple[str, ...]:
        """Return the relative paths of the files of this source that have a block, sorted."""
        return self._blocks.places()

    # assessments

    def assess_save(self, relative: str) -> Assessment:
        """Assess a save: append if the block only extends the file on disk, else overwrite; with the diff.

        Saving a file that somebody has deleted meanwhile would create it again, so the call asks.
        """
        block = self._blocks.get(relative)
        if block is None:
            return Assessment.failing(Action.OVERWRITE, _no_edits())
        new = block.text.text
        try:
            content = self._bytes(relative)[0]
            old = decode_text(content)
        except ToolFailure as failure:
            if failure.code != "not-found":
                return Assessment.failing(Action.OVERWRITE, failure)
            ask = None if block.disk_digest == ABSENT else _WRITES_AGAIN
            return Assessment(Action.APPEND, ask, blocks.diff_text(relative, "", new))
        action = Action.APPEND if new.startswith(old) else Action.OVERWRITE
        if block.disk_digest != digest_of(content) and new != old:
            return Assessment.failing(action, ToolFailure(CONFLICT, code="conflict"))
        return Assessment(action, diff=blocks.diff_text(relative, old, new))

    def assess_load(self, relative: str) -> Assessment:
        """Assess a load: read, and ask if it would lose edits in the block, with the diff from them to the disk."""
        try:
            block = self._blocks.get(relative)
        except WorkspaceError:
            ask, mine = "the block is damaged and would be made anew from disk", None
        else:
            mine = block.text.text if block is not None and block.unsaved else None
            ask = None if mine is None else "edits that were not written to disk would be thrown away"
        return Assessment(Action.READ, ask, later=Later(partial(self._lost, relative, mine)))

    def assess_reload(self, relative: str) -> Assessment:
        """Assess a load into an existing block, and ask if it would lose edits."""
        if self._blocks.has(relative):
            return self.assess_load(relative)
        return Assessment.failing(Action.READ, no_block())

    def _lost(self, relative: str, mine: str | None) -> str | None:
        on_disk = decode_text(self._bytes_to_take(relative))
        return None if mine is None else blocks.diff_text(relative, mine, on_disk)

    def text_of(self, relative: str) -> str | None:
        """Return the current text; None if it is too long for a person to compare. Raises ToolFailure."""
        try:
            text = self.read(relative).content
        except WorkspaceError:
            return None
        return text if len(text) <= _COMPARED_CHARS else None

    def assess_text(self, relative: str, new_text: str) -> Assessment:
        """Return the diff from the current text, without an action.

        Raises ToolFailure for a text that the file cannot store.
        """
        encode_text(new_text, self.source.max_file_bytes)
        try:
            old = self.read(relative).content
        except ToolFailure:
            old = ""
        return Assessment(diff=blocks.diff_text(relative, old, new_text))

    def assess_create(self, relative: str, content: str) -> Assessment:
        """Assess a new file: append, with its text."""
        return Assessment(Action.APPEND, later=Later(partial(self._text_new, relative, content)))

    def _text_new(self, relative: str, content: str) -> str:
        self._refuse_edits(relative)
        if self.look(relative).exists:
            raise descriptor.exists_failure()
        encode_text(content, self.source.max_file_bytes)
        return blocks.diff_text(relative, "", content)

    def text_gone(self, relative: str) -> str | None:
        """Return the diff that removes the text of a file; None if it is not text, or too long to compare.

        Raises ToolFailure for a missing file.
        """
        standing = self.look(relative)
        if standing.is_folder:
            raise descriptor.folder_failure()
        if not standing.exists and not self._blocks.has(relative):
            raise _no_file()
        try:
            text = self.text_of(relative)
        except ToolFailure:
            return None
        return blocks.diff_text(relative, text, "") if text else None

    # the operations

    def read(self, relative: str) -> FileText:
        """Read the block's text if the file has a block, else the file on disk."""
        block = self._blocks.get(relative)
        if block is not None:
            return FileText(block.text.text, "block", block.unsaved)
        return FileText(decode_text(self._bytes(relative)[0]), "disk")

    def load(self, relative: str) -> JsonValue:
        """Read the disk into the block, which loses its own text."""
        content = self._bytes_to_take(relative)
        text = decode_text(content)
        try:
            stored = self._blocks.get(relative)
        except WorkspaceError:
            stored = None  # the text on disk replaces a damaged block
        block = stored.text if stored else blocks.TextBlock.from_text(text)
        if stored:
            block.set_text(text)
        return self._info(relative, self._keep_in_step(relative, block, content))

    def reload(self, relative: str) -> JsonValue:
        """Read the disk into an existing block, which loses its own text."""
        if not self._blocks.has(relative):  # even a damaged block counts
            raise no_block()
        return self.load(relative)

    def save(self, relative: str, granted: Action, *, asked: bool = False) -> JsonValue:
        """Write the block to disk if that is granted and the disk is as the block knows it.

        A file that somebody deleted meanwhile is written again only if somebody was ``asked``.
        """
        block = self._blocks.get(relative)
        if block is None:
            raise _no_edits()
        new = encode_text(block.text.text, self.source.max_file_bytes)
        if not self.look(relative).exists:
            if block.disk_digest != ABSENT and not asked:
                raise ToolFailure(f"{_WRITES_AGAIN}, and nobody was asked", code="not-granted")
            if granted not in {Action.APPEND, Action.OVERWRITE}:
                raise ToolFailure("a new file was not granted", code="not-granted")
            self._write_new(relative, new)
        else:
            self._write_over(relative, new, block.disk_digest, granted)
        return self._info(relative, self._keep_in_step(relative, block.text, new))

    def _write_new(self, relative: str, new: bytes) -> None:
        parts = _file_parts(relative)
        with descriptor.open_folder(self.folder, parts[:-1], make=True) as folder:
            descriptor.write_new(folder, parts[-1], new)

    def _write_over(self, relative: str, new: bytes, disk_digest: str, granted: Action) -> None:
        with self._folder_of(relative) as (folder, name), descriptor.alone_in(folder):
            try:
                old, seen = descriptor.read_bytes(folder, name, self.source.max_file_bytes)
            except ToolFailure as failure:
                if failure.code == "too-large":
                    raise ToolFailure(CONFLICT, code="conflict") from None
                raise
            self._refuse_protected(relative, seen)
            if digest_of(old) not in {disk_digest, digest_of(new)}:
                raise ToolFailure(CONFLICT, code="conflict")
            if granted is not Action.OVERWRITE and not (granted is Action.APPEND and new.startswith(old)):
                raise ToolFailure(
                    "this changes what the file holds, and only more text at its end was granted", code="not-granted"
                )
            if old != new:
                descriptor.replace_bytes(folder, name, new, seen)

    def append(self, relative: str, content: str) -> JsonValue:
        """Add text at the end of the block, in the file's line ending."""
        return self._edit(relative, lambda text: text + in_line_ending_of(text, content))

    def replace(self, relative: str, old: str, new: str) -> JsonValue:
        """Replace ``old`` in the block, where it must occur exactly once."""
        return self._edit(relative, lambda text: with_change(text, old, new))

    def insert(self, relative: str, line: int, content: str) -> JsonValue:
        """Insert whole lines before a line of the block (from 1; one past the last: at the end)."""
        return self._edit(relative, lambda text: with_lines(text, line, content))

    def patch(self, relative: str, patch: str) -> JsonValue:
        """Apply a unified diff to the block; all of it, or nothing."""
        return self._edit(relative, lambda text: with_patch(text, patch))

    def _edit(self, relative: str, change: Callable[[str], str]) -> JsonValue:
        """Edit the block's text if the edit succeeds and the file can store the result; only then load the block."""
        block, content = self._blocks.get(relative), None
        if block is None:
            content = self._bytes(relative)[0]
            block = HeldBlock(blocks.TextBlock.from_text(decode_text(content)), digest_of(content))
        after = change(block.text.text)
        encode_text(after, self.source.max_file_bytes)
        if content is not None:
            self._keep_in_step(relative, block.text, content)
        block.text.set_text(after)
        return self._info(relative, self._keep(relative, block.text, block.disk_digest))

    def create(self, relative: str, content: str) -> JsonValue:
        """Create a file, its block, and the folders above it."""
        self._refuse_edits(relative)
        written = encode_text(content, self.source.max_file_bytes)
        self._write_new(relative, written)
        return self._info(relative, self._keep_in_step(relative, blocks.TextBlock.from_text(content), written))

    def _refuse_edits(self, relative: str) -> None:
        block = self._blocks.get(relative)
        if block is not None and block.unsaved:
            raise ToolFailure("a block with edits that were not written stands at that path", code="exists")

    def delete(self, relative: str) -> JsonValue:
        """Remove a file from disk, and its block."""
        with self._folder_of(relative) as (folder, name):
            on_disk = descriptor.remove(folder, name)
        had_block = self._blocks.forget(relative)
        if not on_disk and not had_block:
            raise _no_file()
        return {"label": self.label(relative), "file": on_disk, "block": had_block}

    def block_info(self, relative: str) -> JsonValue:
        """Return label, size, lines, and True for unwritten edits."""
        return self._info(relative, self._block(relative))

    # block and disk

    def status(self, relative: str) -> dict[str, JsonValue]:
        """Return path, state, True for unwritten edits, and the problem of an unreadable file."""
        return self.standing(relative)[0]

    def standing(self, relative: str) -> tuple[dict[str, JsonValue], str]:
        """Return the status with a mark that changes with the text of the block, or of the file."""
        row: dict[str, JsonValue] = {"path": relative}
        try:
            block = self._blocks.get(relative)
        except WorkspaceError as error:
            return {**row, "state": str(FileState.CONFLICT), "unsaved": True, "problem": str(error)}, ""
        if block is None:
            self._bytes(relative)
            return {**row, "state": str(FileState.NOT_LOADED), "unsaved": False}, ""
        state, disk = self._state_of(relative, block)
        row |= {"state": str(state), "unsaved": state is not FileState.SYNCED and block.unsaved}
        row |= {} if disk.problem is None else {"problem": disk.problem}
        return row, self._mark(block, disk)

    def diff(self, relative: str) -> dict[str, JsonValue]:
        """Return what writing the block would change on disk, as a unified diff of bounded size; empty for nothing."""
        block = self._block(relative)
        state, disk = self._state_of(relative, block)
        if disk.problem is not None:
            raise ToolFailure(disk.problem, code="not-text")
        on_disk = "" if disk.content is None else decode_text(disk.content)
        return {"path": relative, "state": str(state), "diff": blocks.diff_text(relative, on_disk, block.text.text)}

    def reconcile(self, relative: str, strategy: Strategy, mark: str | None = None) -> dict[str, JsonValue]:
        """Bring block and disk into step; a conflict changes nothing, and the answer has its places and both diffs.

        With the ``mark`` of a standing it raises ToolFailure if block or file has changed since.
        """
        block = self._block(relative)
        state, disk = self._state_of(relative, block)
        if disk.problem is not None:
            raise ToolFailure(disk.problem, code="not-text")
        if mark is not None and mark != self._mark(block, disk):
            raise ToolFailure("block or file was changed meanwhile: look at it again", code="changed")
        decision, sides = self._apply(relative, strategy, block, state, disk)
        return describe_decision(relative, state, strategy, decision, sides)

    def take_in(self, relative: str) -> OutsideChange | None:
        """Put an outside change into the block if that loses nothing; return the outcome, None without a block."""
        block = self._blocks.get(relative)
        if block is None:
            return None
        state, disk = self._state_of(relative, block)
        outcome = Outcome.NOTHING
        if state in {FileState.DISK_MODIFIED, FileState.CONFLICT} and disk.content is not None:
            try:
                outcome = self._apply(relative, Strategy.MERGE, block, state, disk)[0].outcome
            except ToolFailure:
                outcome = Outcome.CONFLICT  # together they exceed the limit of a file
        return OutsideChange(relative, state, outcome in {Outcome.TOOK_DISK, Outcome.MERGED})

    def _apply(
        self, relative: str, strategy: Strategy, block: HeldBlock, state: FileState, disk: OnDisk
    ) -> tuple[Decision, Sides]:
        """Decide by the strategy, and give the block the resulting text."""
        on_disk = None if disk.content is None else decode_text(disk.content)
        sides = Sides(self._blocks.base_of(relative, block), block.text.text, on_disk)
        decision = decide(state, strategy, sides)
        if decision.outcome is Outcome.FORGOTTEN:
            self._blocks.forget(relative)
        elif decision.outcome not in {Outcome.NOTHING, Outcome.CONFLICT}:
            if decision.text is not None:
                encode_text(decision.text, self.source.max_file_bytes)
                block.text.set_text(decision.text)
            if disk.content is None:
                self._blocks.keep_as_new(relative, block, limit=self.source.max_file_bytes)
            else:
                self._keep_in_step(relative, block.text, disk.content)
        return decision, sides

    def forget(self, relative: str) -> bool:
        """Forget the block of a place and leave the disk alone; return True if a block existed."""
        return self._blocks.forget(relative)

    # helpers

    def _block(self, relative: str) -> HeldBlock:
        block = self._blocks.get(relative)
        if block is None:
            raise no_block()
        return block

    def _state_of(self, relative: str, block: HeldBlock) -> tuple[FileState, OnDisk]:
        try:
            content = self._bytes(relative)[0]
            decode_text(content)
            disk = OnDisk(content)
        except ToolFailure as failure:
            disk = OnDisk() if failure.code == "not-found" else OnDisk(problem=str(failure))
        return state_of(block, disk), disk

    def _mark(self, block: HeldBlock, disk: OnDisk) -> str:
        return " ".join((block.digest, "" if disk.content is None else digest_of(disk.content), self.base))

    def _keep(self, relative: str, text: blocks.TextBlock, disk_digest: str) -> HeldBlock:
        return self._blocks.keep(relative, text, disk_digest, limit=self.source.max_file_bytes)

    def _keep_in_step(self, relative: str, text: blocks.TextBlock, content: bytes) -> HeldBlock:
        return self._blocks.keep_in_step(relative, text, content, limit=self.source.max_file_bytes)

    def _bytes_to_take(self, relative: str) -> bytes:
        """Read the file for its block. Raises ToolFailure, which mentions the block if the file was deleted."""
        try:
            return self._bytes(relative)[0]
        except ToolFailure as failure:
            if failure.code == "not-found" and self._blocks.has(relative):
                raise ToolFailure("the file is gone from disk: only its block is left", code="not-found") from None
            raise

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
        """Open the folder of a file, and return its descriptor and the file's name there."""
        parts = _file_parts(relative)
        with descriptor.open_folder(self.folder, parts[:-1]) as folder:
            yield folder, parts[-1]

    def _info(self, relative: str, block: HeldBlock) -> JsonValue:
        text = block.text.text
        size = len(text.encode())
        return {"label": self.label(relative), "size": size, "lines": line_count(text), "unsaved": block.unsaved}


def _no_file() -> ToolFailure:
    return ToolFailure("there is no such file", code="not-found")


def _no_edits() -> ToolFailure:
    return ToolFailure("there are no edits for this file: it has no block", code="no-block")


def _parts(relative: str) -> tuple[str, ...]:
    """Split a canonical relative path; raise ToolFailure for any other, wherever it came from."""
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
