"""The operations on one owner's blocks: each write goes through the one table of levels.

A caller first asks ``find`` and ``preview``, which have no effect, lets the gate decide, and then calls the operation
with the ``granted`` action. The operation refuses, without any change, if it needs another action, if the level denies
it by now, or if the level asks and nobody ``approved`` the call. An acknowledged write is durable. Unknown labels and
those of level none get the same words.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Protocol

from gatewright.base.amount import iso_utc, new_id
from gatewright.base.errors import ToolFailure, WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.blocks.block import Block, BlockSize
from gatewright.blocks.history import Step
from gatewright.blocks.plan import Hand
from gatewright.blocks.schema import BlockSchema, Edit, TextSchema
from gatewright.memory import blocktable
from gatewright.memory.block_store import BlockStore, Opened, Shelf
from gatewright.memory.blocktable import (
    NO_LABEL,
    SETTINGS,
    BlockRecord,
    BlockType,
    Note,
    action_of,
    check_description,
    is_label,
    limit_of,
    record_after,
    refuse_archived,
    require_archived,
)
from gatewright.policy.target import levels_pass
from gatewright.policy.verdict import Action, Permission, Verdict, verdict_for

_ORDER = tuple(Action)


@frozen
class Changed:
    """The result of an operation: the block afterwards and the step; None if nothing changed."""

    record: BlockRecord
    step: Step | None


@frozen
class BlockInfo:
    """A block without its content. ``can_undo`` and ``can_redo`` are for the author who asks.

    ``permission``: the level for agents; a file's block has the level of the file.
    """

    record: BlockRecord
    size: BlockSize
    permission: Permission
    steps: int
    can_undo: bool
    can_redo: bool


class FileTexts(Protocol):
    """The rules of the sources for the text of a block that stands for one of their files."""

    def fit_line_ends(self, text: str, edit: Edit) -> Edit:
        """Adapt the edit to the line ends of that text."""
        ...

    def check(self, record: BlockRecord, text: str) -> None:
        """Raise ToolFailure for a text that the file cannot store."""
        ...

    def is_inner(self, record: BlockRecord) -> bool:
        """Tell whether the sources use the block for themselves, so that nobody else sees it."""
        ...


class BlockService:
    """The blocks of ``owner`` and the shared ones; of two with the same label the owner's own counts.

    ``levels`` returns the level of a source's block, NONE for an unknown one; ``files`` judges its text. ``operator``:
    acts for a person who may do everything, even change read-only fields. Raises ToolFailure for an impossible request,
    WorkspaceError for an unusable store. Any thread may call.
    """

    def __init__(
        self,
        store: BlockStore,
        *,
        owner: str = "",
        levels: Callable[[BlockRecord], Permission] | None = None,
        operator: bool = False,
        shelf: Shelf | None = None,
        files: FileTexts | None = None,
    ) -> None:
        self._shelf = shelf or Shelf(store)
        self._clock = store.clock
        self._owner = owner
        self._owners = (owner, "") if owner else ("",)
        self._levels = levels
        self._operator = operator
        self._files = files
        self._meant = ""

    def only(self, block_id: str) -> BlockService:
        """Return the same service, limited to this one block.

        If another block has its label by now, a request raises ToolFailure: ``another-block``.
        """
        made = copy(self)
        made._meant = block_id
        return made

    # no effect

    def find(self, label: str) -> tuple[BlockRecord, Permission] | None:
        """Return a block's record and level, even level none; None if no block has that label."""
        record = self._shelf.record(self._owners, label)
        return None if record is None else (record, self._level_of(record))

    def preview(self, label: str, edit: Edit, author: str) -> str | None:
        """Return the diff that an edit would make now; None if the block cannot be opened.

        Raises ToolFailure for an impossible edit.
        """
        try:
            with self._reading(label) as opened:
                self._refuse_archived(opened)
                return self._diff(opened, edit, author)
        except WorkspaceError:
            return None

    def get(self, label: str) -> BlockRecord:
        """Return a block's record."""
        with self._reading(label) as opened:
            return opened.record

    def list(self) -> tuple[BlockRecord, ...]:
        """List the readable blocks, by label."""
        found: dict[str, BlockRecord] = {}
        for record in self._shelf.records(self._owners):
            if self._files is not None and self._files.is_inner(record):
                continue
            if record.label not in found or record.owner:
                found[record.label] = record
        return tuple(record for record in found.values() if self._binding(record) is not Permission.NONE)

    def value(self, label: str) -> JsonValue:
        """Return a block's whole content."""
        with self._reading(label) as opened:
            return opened.block.value

    def render(self, label: str) -> str:
        """Return a block's content as the model sees it."""
        with self._reading(label) as opened:
            return opened.block.render()

    def info(self, label: str, author: str = "") -> BlockInfo:
        """Return a block's record, size and possible undo."""
        with self._reading(label) as opened:
            block = opened.block
            undo, redo = block.undo_target(author), block.redo_target(author)
            level = self._level_of(opened.record)
            return BlockInfo(opened.record, block.size(), level, opened.last, undo is not None, redo is not None)

    def history(self, label: str, *, limit: int = 100) -> tuple[Step, ...]:
        """Return the last steps of a block, oldest first."""
        with self._reading(label) as opened:
            return opened.block.steps[-limit:] if limit > 0 else ()

    def value_at(self, label: str, number: int) -> JsonValue:
        """Return the content after a step."""
        with self._reading(label) as opened:
            return opened.block.at(number).value

    # writing

    def create(
        self,
        label: str,
        schema: BlockSchema | None = None,
        *,
        author: str,
        granted: Action = Action.APPEND,
        approved: bool = False,
        content: JsonValue = None,
        type: BlockType = BlockType.WORKING,  # noqa: A002 - the field's own name
        permission: Permission = Permission.READ_WRITE,
        pinned: bool = False,
        description: str = "",
        char_limit: int | None = None,
    ) -> BlockRecord:
        """Make a new block of this owner; its own level has to allow additions.

        ``content``: text, object of fields, list, or object of sections, by the schema. ``char_limit``: 0 and None mean
        no limit of its own. Raises ToolFailure: ``bad-label``, ``exists``, ``bad-limit``, ``bad-description``,
        ``archived`` (and pinned), and for the content ``wrong-type``, ``bad-value``, ``not-text``, ``no-field``,
        ``required-field``, ``too-large``, ``too-many-items``.
        """
        if not is_label(label):
            raise ToolFailure(NO_LABEL, code="bad-label")
        is_inner = self._files is not None and self._files.is_inner(BlockRecord("", label))
        if is_inner or label.casefold().startswith("file:"):
            raise ToolFailure("labels with this beginning belong to files", code="bad-label")
        char_limit = limit_of(char_limit)
        check_description(description)
        if pinned and type is BlockType.ARCHIVAL:
            raise ToolFailure("an archived block is never in context and cannot be pinned", code="archived")
        schema = schema or TextSchema()
        hand = self._hand(author)
        now = hand.at_s
        record = BlockRecord(
            new_id("mem"),
            label,
            self._owner,
            "",
            type,
            schema,
            permission,
            pinned,
            description,
            char_limit,
            now,
            now,
            now if type is BlockType.ARCHIVAL else None,
        )
        self._permit(record, Action.APPEND, granted, approved=approved)
        with self._shelf.changing((self._owner,), label) as (connection, opened):
            if opened is not None:
                raise ToolFailure("a block with that label exists already", code="exists")
            block = Block.create(schema, content, hand=hand, char_limit=char_limit)
            blocktable.insert_block(connection, record, block.snapshot(), "", block.steps[-1])
            blocktable.index_block(connection, record, block)
        return record

    def edit(
        self,
        label: str,
        edit: Edit,
        *,
        author: str,
        granted: Action,
        approved: bool = False,
        approved_change: Callable[[], str | None] | None = None,
        archived: bool = False,
    ) -> Changed:
        """Execute an edit, an undo or a redo.

        ``approved_change`` returns the one diff that somebody approved. ``archived``: accept only archived blocks.
        """
        with self._changing(label, action_of(edit), granted, approved) as (_, opened):
            if approved_change is not None and self._diff(opened, edit, author) != approved_change():
                raise ToolFailure("the block changed after somebody approved this", code="approval-stale")
            self._refuse_archived(opened, meant=archived)
            hand = self._hand(author)
            step = opened.block.edit(self._fit(opened, edit), hand)
            if step is not None:
                self._check(opened)
                opened.record = replace(opened.record, updated_at=hand.at_s)
            return Changed(opened.record, step)

    def note(self, label: str, note: Note, *, author: str, granted: Action, approved: bool = False) -> Changed:
        """Pin, unpin, archive or unarchive a block; its content stays.

        Archiving unpins a working block and closes it to agents. Raises ToolFailure: ``archived``, ``core-block``,
        ``of-a-source``, ``wrong-type``, and the failures of every write.
        """
        return self._change_record(
            label, note, author, granted, lambda record, now: record_after(record, note, now), approved
        )

    def settings(
        self,
        label: str,
        *,
        author: str,
        permission: Permission | None = None,
        description: str | None = None,
        char_limit: int | None = None,
        type: BlockType | None = None,  # noqa: A002 - the field's own name
    ) -> Changed:
        """Change a block's own level, description, limit or type; only the operator may.

        ``char_limit`` 0: no limit of its own. A file's block takes level and size from its source. `note` changes the
        type to and from ``archival``. Raises ToolFailure: ``bad-limit``, ``bad-description``, ``of-a-source``,
        ``wrong-type``, ``unknown-block``, ``not-permitted``.
        """
        if not self._operator:
            raise ToolFailure("only the operator changes a block's settings", code="not-permitted")
        check_description(description or "")
        limit = limit_of(char_limit)

        def change(record: BlockRecord, _: float) -> BlockRecord:
            if record.source_id and (permission is not None or char_limit is not None):
                raise ToolFailure("this block stands for a file: its source sets level and size", code="of-a-source")
            if type is not None and BlockType.ARCHIVAL in {type, record.type}:
                raise ToolFailure("`archive` and `unarchive` change this type", code="wrong-type")
            return replace(
                record,
                type=type or record.type,
                permission=permission or record.permission,
                description=record.description if description is None else description,
                char_limit=record.char_limit if char_limit is None else limit,
            )

        return self._change_record(label, SETTINGS, author, Action.DELETE, change)

    def delete(self, label: str, *, granted: Action, approved: bool = False, archived: bool = False) -> BlockRecord:
        """Delete a block with its history; ``archived``: accept only archived blocks."""
        with self._changing(label, Action.DELETE, granted, approved) as (connection, opened):
            if archived:
                require_archived(opened.record)
            if opened.record.source_id and not self._operator:
                raise ToolFailure("this block stands for a file: files are deleted with `file`", code="of-a-source")
            blocktable.delete_block(connection, opened.record.block_id)
            record = opened.record
        self._shelf.forget(record.block_id)
        return record

    # inside

    def _change_record(
        self,
        label: str,
        kind: str,
        author: str,
        granted: Action,
        change: Callable[[BlockRecord, float], BlockRecord],
        approved: bool = False,
    ) -> Changed:
        """Change the record alone, and record a step for it."""
        with self._changing(label, Action.OVERWRITE, granted, approved) as (_, opened):
            hand = self._hand(author)
            record = change(opened.record, hand.at_s)
            if record == opened.record:
                return Changed(record, None)
            opened.record = replace(record, updated_at=hand.at_s)
            return Changed(opened.record, opened.block.note(hand, kind))

    def _refuse_archived(self, opened: Opened, *, meant: bool = False) -> None:
        if meant:
            require_archived(opened.record)
        elif not self._operator:
            refuse_archived(opened.record)

    def _diff(self, opened: Opened, edit: Edit, author: str) -> str:
        """Return the diff of an edit, which is the same at every call. Raises ToolFailure for an impossible edit."""
        hand = Hand(author, may_all=self._operator)
        diff = opened.block.diff(self._fit(opened, edit), hand, opened.record.label)
        return diff.replace(iso_utc(hand.at_s), "(time of writing)")

    def _fit(self, opened: Opened, edit: Edit) -> Edit:
        text = opened.block.value
        if self._files is None or not opened.record.source_id or not isinstance(text, str):
            return edit
        return self._files.fit_line_ends(text, edit)

    def _check(self, opened: Opened) -> None:
        """Raise ToolFailure, which undoes the edit, if the file could not store the text."""
        text = opened.block.value
        if self._files is not None and opened.record.source_id and isinstance(text, str):
            self._files.check(opened.record, text)

    @contextmanager
    def _changing(
        self, label: str, action: Action, granted: Action, approved: bool
    ) -> Generator[tuple[sqlite3.Connection, Opened]]:
        """Check that the block exists, that its level allows the action, and that the gate granted it; every write
        comes through here.
        """
        with self._shelf.changing(self._owners, label) as (connection, opened):
            found = self._check_known(opened)
            self._permit(found.record, action, granted, approved=approved)
            yield connection, found

    @contextmanager
    def _reading(self, label: str) -> Generator[Opened]:
        with self._shelf.reading(self._owners, label) as opened:
            yield self._check_known(opened)

    def _check_known(self, opened: Opened | None) -> Opened:
        if opened is None or self._binding(opened.record) is Permission.NONE:
            raise ToolFailure("no block has that label", code="unknown-block")
        if self._meant and opened.record.block_id != self._meant:
            raise ToolFailure("the block of this call is gone, and another one has its label", code="another-block")
        return opened

    def _level_of(self, record: BlockRecord) -> Permission:
        """Return the level for agents."""
        if not record.source_id:
            return record.permission
        return Permission.NONE if self._levels is None else self._levels(record)

    def _binding(self, record: BlockRecord) -> Permission:
        """Return the level that limits the present caller."""
        return Permission.ADMIN if self._operator or levels_pass.get() else self._level_of(record)

    def _permit(self, record: BlockRecord, action: Action, granted: Action, *, approved: bool) -> None:
        """Check the table of levels, the granted action, and the approval if the level asks for one."""
        level = self._binding(record)
        verdict = verdict_for(level, action)
        if verdict is Verdict.DENY:
            raise ToolFailure(
                f"the level `{level}` of this block does not let you {_WORDS[action]}", code="not-permitted"
            )
        if _ORDER.index(action) > _ORDER.index(granted):
            raise ToolFailure(f"this would {_WORDS[action]}, which was not granted", code="not-granted")
        if verdict is Verdict.ASK and not approved:
            raise ToolFailure("this needs an approval, and nobody was asked", code="not-granted")

    def _hand(self, author: str) -> Hand:
        return Hand(author, self._clock.wall_s(), may_all=self._operator)


_WORDS = {
    Action.READ: "read it",
    Action.APPEND: "add to it",
    Action.OVERWRITE: "change its content",
    Action.DELETE: "delete it",
}
