"""What may be done with the blocks of one owner: every writing goes through the one table of levels.

A caller first asks ``find`` and ``preview`` (no effect), lets the gate decide, and then calls the operation with the
action that was ``granted``. An operation is refused and changes nothing when it turns out to need more, when the level
denies it by now, or asks about it and nobody ``approved`` the call. What is acknowledged is durable. Unknown labels and
those of level none get the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from gatewright.base.clock import iso_utc
from gatewright.base.errors import ToolFailure, WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.ids import new_id
from gatewright.base.jsonvalue import JsonValue
from gatewright.blocks.block import Block, BlockSize
from gatewright.blocks.edit import Edit
from gatewright.blocks.history import Step
from gatewright.blocks.plan import Hand
from gatewright.blocks.schema import BlockSchema, TextSchema
from gatewright.memory import blocktable
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
    noted,
    refuse_archived,
    require_archived,
)
from gatewright.memory.shelf import Opened, Shelf
from gatewright.policy.verdict import Action, Permission, Verdict, verdict_for

if TYPE_CHECKING:
    import sqlite3

    from gatewright.memory.block_store import BlockStore

_ORDER = tuple(Action)


@frozen
class Changed:
    """What an operation did: the block afterwards and the step; None when there was nothing to change."""

    record: BlockRecord
    step: Step | None


@frozen
class BlockInfo:
    """A block without its content. ``can_undo`` and ``can_redo`` are of the author who asked.

    ``permission``: the level that holds for agents; for the block of a file that is the one of the file.
    """

    record: BlockRecord
    size: BlockSize
    permission: Permission
    steps: int
    can_undo: bool
    can_redo: bool


class FileTexts(Protocol):
    """What sources ask of the text of a block that stands for one of their files."""

    def fitted(self, text: str, edit: Edit) -> Edit:
        """The edit as it is to be done to that text, with its line ends."""
        ...

    def check(self, record: BlockRecord, text: str) -> None:
        """Raises ToolFailure for a text that could not be written to the file."""
        ...

    def is_inner(self, record: BlockRecord) -> bool:
        """Whether the sources keep it for themselves, so that it is no block of anybody's."""
        ...


class BlockService:
    """The blocks of ``owner`` and the shared ones. Of the same label the owner's own is meant.

    ``levels`` says the level of a block that belongs to a source, NONE without it; ``files`` is asked about its text.
    ``operator``: acts for a person who may do everything, read-only fields included. Raises ToolFailure for what cannot
    be done, WorkspaceError for a store that cannot be used. Callable from any thread.
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
        """The same blocks, of which no other than this one is opened.

        What is asked of another block, which has its label by now, raises ToolFailure: ``another-block``.
        """
        made = copy(self)
        made._meant = block_id
        return made

    # no effect

    def find(self, label: str) -> tuple[BlockRecord, Permission] | None:
        """What is known of a block and its level, also when that is none; None when there is no such block."""
        record = self._shelf.record(self._owners, label)
        return None if record is None else (record, self._level_of(record))

    def preview(self, label: str, edit: Edit, author: str) -> str | None:
        """The diff that an edit would make now; None when the block cannot be opened.

        Raises ToolFailure when it cannot be done.
        """
        try:
            with self._reading(label) as opened:
                self._refuse_archived(opened)
                return self._shown(opened, edit, author)
        except WorkspaceError:
            return None

    def get(self, label: str) -> BlockRecord:
        """What is known about a block."""
        with self._reading(label) as opened:
            return opened.record

    def list(self) -> tuple[BlockRecord, ...]:
        """The blocks that may be read, by label."""
        found: dict[str, BlockRecord] = {}
        for record in self._shelf.records(self._owners):
            if self._files is not None and self._files.is_inner(record):
                continue
            if record.label not in found or record.owner:
                found[record.label] = record
        return tuple(record for record in found.values() if self._binding(record) is not Permission.NONE)

    def value(self, label: str) -> JsonValue:
        """All of a block's content."""
        with self._reading(label) as opened:
            return opened.block.value

    def render(self, label: str) -> str:
        """What is shown of a block to the model."""
        with self._reading(label) as opened:
            return opened.block.render()

    def info(self, label: str, author: str = "") -> BlockInfo:
        """A block's record, size and what could be undone."""
        with self._reading(label) as opened:
            block = opened.block
            undo, redo = block.undo_target(author), block.redo_target(author)
            level = self._level_of(opened.record)
            return BlockInfo(opened.record, block.size(), level, opened.last, undo is not None, redo is not None)

    def history(self, label: str, *, limit: int = 100) -> tuple[Step, ...]:
        """The last steps of a block, oldest first."""
        with self._reading(label) as opened:
            return opened.block.steps[-limit:] if limit > 0 else ()

    def value_at(self, label: str, number: int) -> JsonValue:
        """The content as it was after a step."""
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
        """Make a new block of this owner; its own level has to let something be added to it.

        ``content``: text, object of fields, list, or object of sections, by the schema. ``char_limit``: 0 and None are
        no limit of its own. Raises ToolFailure: ``bad-label``, ``exists``, ``bad-limit``, ``bad-description``,
        ``archived`` (and pinned), and for the content ``wrong-type``, ``bad-value``, ``not-text``, ``no-field``,
        ``required-field``, ``too-large``, ``too-many-items``.
        """
        if not is_label(label):
            raise ToolFailure(NO_LABEL, code="bad-label")
        is_inner = self._files is not None and self._files.is_inner(BlockRecord("", label))
        if is_inner or label.casefold().startswith("file:"):
            raise ToolFailure("labels that begin like this one are those of files", code="bad-label")
        char_limit = limit_of(char_limit)
        check_description(description)
        if pinned and type is BlockType.ARCHIVAL:
            raise ToolFailure("an archived block is not kept in context: it cannot be pinned", code="archived")
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
                raise ToolFailure("there is a block with that label already", code="exists")
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
        """Do an edit, undo and redo among them. ``approved_change`` gives the one diff that somebody agreed to.

        ``archived``: an archived block is meant, and no other.
        """
        with self._changing(label, action_of(edit), granted, approved) as (_, opened):
            if approved_change is not None and self._shown(opened, edit, author) != approved_change():
                raise ToolFailure("the block was changed since somebody agreed to this", code="approval-stale")
            self._refuse_archived(opened, meant=archived)
            hand = self._hand(author)
            step = opened.block.edit(self._fitted(opened, edit), hand)
            if step is not None:
                self._check(opened)
                opened.record = replace(opened.record, updated_at=hand.at_s)
            return Changed(opened.record, step)

    def note(self, label: str, note: Note, *, author: str, granted: Action, approved: bool = False) -> Changed:
        """Pin, unpin, archive or unarchive a block: what it holds stays.

        Archived, a working block is not pinned, and agents change it no more. Raises ToolFailure: ``archived``,
        ``core-block``, ``of-a-source``, ``wrong-type``, and what every writing raises.
        """
        return self._changed(label, note, author, granted, lambda record, now: noted(record, note, now), approved)

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
        """Change a block's own level, description, limit or type: the operator's alone.

        ``char_limit`` 0: no limit of its own. Level and size of a block that stands for a file are its source's to say.
        To and from ``archival`` is for `note`. Raises ToolFailure: ``bad-limit``, ``bad-description``, ``of-a-source``,
        ``wrong-type``, ``unknown-block``, ``not-permitted``.
        """
        if not self._operator:
            raise ToolFailure("only the operator changes a block's settings", code="not-permitted")
        check_description(description or "")
        limit = limit_of(char_limit)

        def changed(record: BlockRecord, _: float) -> BlockRecord:
            if record.source_id and (permission is not None or char_limit is not None):
                raise ToolFailure("this block stands for a file: its source says level and size", code="of-a-source")
            if type is not None and BlockType.ARCHIVAL in {type, record.type}:
                raise ToolFailure("a block is archived, or taken out again, by that name", code="wrong-type")
            return replace(
                record,
                type=type or record.type,
                permission=permission or record.permission,
                description=record.description if description is None else description,
                char_limit=record.char_limit if char_limit is None else limit,
            )

        return self._changed(label, SETTINGS, author, Action.DELETE, changed)

    def delete(self, label: str, *, granted: Action, approved: bool = False, archived: bool = False) -> BlockRecord:
        """Forget a block with its history; ``archived``: an archived one, and no other."""
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

    def _changed(
        self,
        label: str,
        kind: str,
        author: str,
        granted: Action,
        changed: Callable[[BlockRecord, float], BlockRecord],
        approved: bool = False,
    ) -> Changed:
        """A change of the record alone, with a step that says so."""
        with self._changing(label, Action.OVERWRITE, granted, approved) as (_, opened):
            hand = self._hand(author)
            record = changed(opened.record, hand.at_s)
            if record == opened.record:
                return Changed(record, None)
            opened.record = replace(record, updated_at=hand.at_s)
            return Changed(opened.record, opened.block.note(hand, kind))

    def _refuse_archived(self, opened: Opened, *, meant: bool = False) -> None:
        if meant:
            require_archived(opened.record)
        elif not self._operator:
            refuse_archived(opened.record)

    def _shown(self, opened: Opened, edit: Edit, author: str) -> str:
        """The diff of an edit, the same whenever it is asked for. Raises ToolFailure when it cannot be done."""
        hand = Hand(author, may_all=self._operator)
        diff = opened.block.diff(self._fitted(opened, edit), hand, opened.record.label)
        return diff.replace(iso_utc(hand.at_s), "(time of writing)")

    def _fitted(self, opened: Opened, edit: Edit) -> Edit:
        text = opened.block.value
        if self._files is None or not opened.record.source_id or not isinstance(text, str):
            return edit
        return self._files.fitted(text, edit)

    def _check(self, opened: Opened) -> None:
        """Raises ToolFailure, which takes the edit back, where a file could not hold the text."""
        text = opened.block.value
        if self._files is not None and opened.record.source_id and isinstance(text, str):
            self._files.check(opened.record, text)

    @contextmanager
    def _changing(
        self, label: str, action: Action, granted: Action, approved: bool
    ) -> Generator[tuple[sqlite3.Connection, Opened]]:
        """The one door of every writing: the block is there, its level lets it, and it was granted."""
        with self._shelf.changing(self._owners, label) as (connection, opened):
            found = self._known(opened)
            self._permit(found.record, action, granted, approved=approved)
            yield connection, found

    @contextmanager
    def _reading(self, label: str) -> Generator[Opened]:
        with self._shelf.reading(self._owners, label) as opened:
            yield self._known(opened)

    def _known(self, opened: Opened | None) -> Opened:
        if opened is None or self._binding(opened.record) is Permission.NONE:
            raise ToolFailure("there is no block with that label", code="unknown-block")
        if self._meant and opened.record.block_id != self._meant:
            raise ToolFailure("the block that was meant is gone, and another one has its label", code="another-block")
        return opened

    def _level_of(self, record: BlockRecord) -> Permission:
        """The level as agents have it."""
        if not record.source_id:
            return record.permission
        return Permission.NONE if self._levels is None else self._levels(record)

    def _binding(self, record: BlockRecord) -> Permission:
        """The level that binds whoever acts here."""
        return Permission.ADMIN if self._operator else self._level_of(record)

    def _permit(self, record: BlockRecord, action: Action, granted: Action, *, approved: bool) -> None:
        """The table of levels, what was granted, and whether somebody agreed where the level asks."""
        level = self._binding(record)
        verdict = verdict_for(level, action)
        if verdict is Verdict.DENY:
            raise ToolFailure(
                f"the level `{level}` of this block does not let you {_WORDS[action]}", code="not-permitted"
            )
        if _ORDER.index(action) > _ORDER.index(granted):
            raise ToolFailure(f"this would {_WORDS[action]}, and that was not granted", code="not-granted")
        if verdict is Verdict.ASK and not approved:
            raise ToolFailure("this is done only when somebody agrees, and nobody was asked", code="not-granted")

    def _hand(self, author: str) -> Hand:
        return Hand(author, self._clock.wall_s(), may_all=self._operator)


_WORDS = {
    Action.READ: "read it",
    Action.APPEND: "add to it",
    Action.OVERWRITE: "change what it holds",
    Action.DELETE: "delete it",
}
