"""Blocks in the operator's hand: read and changed beside the window, told as values.

Every method raises GatewrightError with a sentence where something cannot be read or done.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Literal, TypeVar

from gatewright.workspace.api import (
    Action,
    Append,
    BlockInfo,
    BlockRecord,
    BlockSchema,
    BlockService,
    BlockType,
    CompositeSchema,
    ForeignStore,
    GatewrightError,
    JsonValue,
    LogSchema,
    Overwrite,
    Permission,
    Redo,
    Replace,
    Step,
    TextSchema,
    ToolFailure,
    Undo,
    Workspace,
    diff_text,
    frozen,
    type_name,
    whole_value,
)
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.session.block_access import BlockAccess, BlockRight, access
from gatewright_gui.session.calls import cut
from gatewright_gui.session.document import Document

T = TypeVar("T")
__all__ = [
    "BlockChanged",
    "BlockContent",
    "BlockList",
    "BlockRow",
    "BlockSettings",
    "BlockType",
    "Blocks",
    "NewBlock",
    "author_words",
    "json_fault",
]
WHO = "the operator in the app"
"""Who changes blocks here, as their history keeps it."""
MOST_TYPED, MOST_LINES, LONGEST_TYPED = 100_000, 5_000, 10_000
"""Characters and lines of a text, and characters of a line, that can be laid out at once to be typed over."""
STEPS = 500
"""So many of the last steps are shown."""
NoteKind = Literal["pin", "unpin", "archive", "unarchive"]


class BlockChanged(GatewrightError):
    """Somebody else changed the block since it was read: nothing was written."""


@frozen
class BlockRow:
    """One block in the list. ``position``: its place in the agent's context, from 1; None when it is not in it.

    ``problem``: why it cannot be opened, and then size and level are not known.
    """

    record: BlockRecord
    info: BlockInfo | None
    position: int | None = None
    problem: str = ""

    @property
    def label(self) -> str:
        """The label, by which agents know it."""
        return self.record.label

    @property
    def kind(self) -> str:
        """The kind of what it holds: text, map, list, log or composite."""
        return type_name(self.record.schema)

    @property
    def kind_words(self) -> str:
        """Type and kind, `core text`; of a log once."""
        return self.kind if self.record.type == self.kind else f"{self.record.type} {self.kind}"

    @property
    def size_words(self) -> str:
        """`1,203 of 2,000 characters`, or without a limit `1,203 characters`."""
        if self.info is None:
            return tr("cannot be opened")
        chars, limit = self.info.size.chars, self.record.char_limit
        if not limit:
            return counted(chars, "character", "characters")
        return tr("{count:,} of {limit:,} characters", count=chars, limit=limit)

    def access_of(self, agent_id: str, rights: Mapping[str, tuple[BlockRight, ...]], sources: set[str]) -> BlockAccess:
        """The access of an agent to it; ``sources``: the ids of those that the agent has."""
        return access(
            agent_id,
            rights.get(agent_id, ()),
            self.info.permission if self.info is not None else Permission.NONE,
            is_reachable=not self.record.source_id or self.record.source_id in sources,
            archived=self.record.type is BlockType.ARCHIVAL,
        )


@frozen
class BlockList:
    """The blocks of an agent and the shared ones, or with ``agent_id`` "" the shared ones alone."""

    agent_id: str
    rows: tuple[BlockRow, ...]
    in_context: int = 0


@frozen
class BlockContent:
    """All of a block at one moment. ``text``: its value, JSON where it is no text.

    ``to_read``: as much of it as can be laid out. ``shown``: the same of what the model sees. ``can_type``: whether all
    of it can be laid out to be typed over.
    """

    agent_id: str
    info: BlockInfo
    text: str
    to_read: str
    shown: str
    can_type: bool
    steps: tuple[Step, ...]

    @property
    def label(self) -> str:
        """The label."""
        return self.info.record.label

    @property
    def is_text(self) -> bool:
        """Tell whether it holds one text."""
        return isinstance(self.info.record.schema, TextSchema)

    @property
    def is_log(self) -> bool:
        """Tell whether entries are only ever added."""
        return isinstance(self.info.record.schema, LogSchema)

    def is_same(self, text: str) -> bool:
        """True if a text stands for the value that was read: of JSON neither spaces nor the order of keys count."""
        return text == self.text or (not self.is_text and self._plain(text) == self._plain(self.text))

    def value(self, text: str) -> JsonValue:
        """The value that a text stands for. Raises ValueError where it is no JSON."""
        return text if self.is_text else whole_value(self.info.record.schema, json.loads(text))

    def _plain(self, text: str) -> str:
        return text if json_fault(text) else json.dumps(self.value(text), sort_keys=True)


@frozen
class BlockSettings:
    """The settings that the operator may change besides the content; None stays as it is."""

    type: BlockType | None = None
    permission: Permission | None = None
    char_limit: int | None = None
    description: str | None = None
    pinned: bool | None = None


@frozen
class NewBlock:
    """A block to be made. ``content`` None: empty, or as its schema says."""

    label: str
    schema: BlockSchema
    content: JsonValue = None
    type: BlockType = BlockType.WORKING
    permission: Permission = Permission.READ_WRITE
    char_limit: int = 0
    pinned: bool = False
    description: str = ""


def way_out(error: GatewrightError) -> str | None:
    """Words for a button, where something can be done about memory that cannot be read."""
    return tr("Take over...") if isinstance(error, ForeignStore) else None


def author_words(author: str) -> str:
    """The maker of a step: `you`, the id of an agent, or the name as it was given."""
    return tr("you") if author == WHO else author.removeprefix("agent:") or tr("nobody said who")


def value_text(value: JsonValue) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def json_fault(text: str) -> str:
    """Why a text is no JSON; empty where it is."""
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        return tr("it is no JSON: {reason}", reason=error)
    return ""


def new_value(schema: BlockSchema, text: str) -> JsonValue:
    """The value that a new block begins with; None where nothing was filled in."""
    return (text if isinstance(schema, TextSchema) else json.loads(text)) or None


class Blocks:
    """Follows the document: what is asked is asked of the workspace that is open now."""

    def __init__(self, document: Document) -> None:
        self._document = document

    # reading

    async def list(self, agent_id: str) -> BlockList:
        """The blocks, by label; a damaged one is among them with its problem."""
        return await asyncio.to_thread(_list, self._document.workspace, agent_id)

    async def content(self, agent_id: str, label: str) -> BlockContent:
        """All of a block."""
        return await self._do(agent_id, lambda blocks: _content(blocks, agent_id, label))

    async def difference(self, content: BlockContent, step: Step) -> str:
        """The changes of a step, as a diff; empty where it changed no content."""
        label = content.label

        def work(blocks: BlockService) -> str:
            if not step.has_changes:
                return ""
            before = "" if step.number == 1 else value_text(blocks.value_at(label, step.number - 1))
            return cut(diff_text(label, before, value_text(blocks.value_at(label, step.number))))

        return await self._do_to(content, work)

    async def text_at(self, content: BlockContent, number: int) -> str:
        """The part that can be laid out of the value as it was after a step."""
        return await self._do_to(content, lambda blocks: cut(value_text(blocks.value_at(content.label, number))))

    # writing: what is there is named by the content that was read, and is that block or none

    async def create(self, agent_id: str, new: NewBlock) -> None:
        """Make a block of the agent's, or a shared one."""
        await self._do(
            agent_id,
            lambda blocks: blocks.create(
                new.label,
                new.schema,
                author=WHO,
                content=new.content,
                type=new.type,
                permission=new.permission,
                pinned=new.pinned,
                description=new.description,
                char_limit=new.char_limit,
            ),
        )

    async def save(self, content: BlockContent, text: str) -> None:
        """Put another value in the place of the one that was read. Raises BlockChanged when that is gone."""
        await self._do_to(content, lambda blocks: _overwrite(blocks, content, content.value(text)))

    async def bring_back(self, content: BlockContent, number: int) -> None:
        """Make the value as it was after a step the present one, as an edit. Raises BlockChanged as ``save``."""
        await self._do_to(content, lambda blocks: _overwrite(blocks, content, blocks.value_at(content.label, number)))

    async def append(self, content: BlockContent, text: str) -> None:
        """Add at the end of a text, list or log."""
        await self._edit(content, Append(text))

    async def replace(self, content: BlockContent, old: str, new: str, *, everywhere: bool) -> None:
        """Put one text in the place of another."""
        await self._edit(content, Replace(old, new, everywhere=everywhere))

    async def undo(self, content: BlockContent) -> None:
        """Take back the operator's own last edit; what others did stays."""
        await self._edit(content, Undo())

    async def redo(self, content: BlockContent) -> None:
        """Do again what was taken back last."""
        await self._edit(content, Redo())

    async def set(self, content: BlockContent, new: BlockSettings) -> None:
        """Change type, level, limit, description, and whether it is pinned."""
        label = content.label

        def work(blocks: BlockService) -> None:
            blocks.settings(
                label,
                author=WHO,
                permission=new.permission,
                description=new.description,
                char_limit=new.char_limit,
                type=new.type,
            )
            if new.pinned is not None:
                blocks.note(label, "pin" if new.pinned else "unpin", author=WHO, granted=Action.DELETE)

        await self._do_to(content, work)

    async def note(self, content: BlockContent, kind: NoteKind) -> None:
        """Pin, unpin, archive or take out of the archive."""
        label = content.label
        await self._do_to(content, lambda blocks: blocks.note(label, kind, author=WHO, granted=Action.DELETE))

    async def delete(self, content: BlockContent) -> None:
        """Forget a block with its history."""
        await self._do_to(content, lambda blocks: blocks.delete(content.label, granted=Action.DELETE))

    # inside

    async def _edit(self, content: BlockContent, edit: Append | Replace | Undo | Redo) -> None:
        label = content.label
        await self._do_to(content, lambda blocks: blocks.edit(label, edit, author=WHO, granted=Action.DELETE))

    async def _do_to(self, content: BlockContent, work: Callable[[BlockService], T]) -> T:
        block_id = content.info.record.block_id
        return await self._do(content.agent_id, lambda blocks: work(blocks.only(block_id)))

    async def _do(self, agent_id: str, work: Callable[[BlockService], T]) -> T:
        blocks = self._document.workspace.blocks(agent_id)
        return await asyncio.to_thread(work, blocks)


def _list(workspace: Workspace, agent_id: str) -> BlockList:
    blocks = workspace.blocks(agent_id)
    places: dict[str, int] = {}
    if agent_id:
        try:
            found = workspace.context(agent_id).blocks
            places = {block.info.record.block_id: at for at, block in enumerate(found, 1)}
        except GatewrightError:
            places = {}  # a damaged block is told in its own row
    return BlockList(agent_id, tuple(_row(blocks, record, places) for record in blocks.list()), len(places))


def _row(blocks: BlockService, record: BlockRecord, places: Mapping[str, int]) -> BlockRow:
    try:
        info = blocks.info(record.label, WHO)
    except GatewrightError as error:
        return BlockRow(record, None, problem=str(error))
    return BlockRow(info.record, info, places.get(info.record.block_id))


def _content(blocks: BlockService, agent_id: str, label: str) -> BlockContent:
    info = blocks.info(label, WHO)
    text, shown, steps = value_text(blocks.value(label)), blocks.render(label), blocks.history(label, limit=STEPS)
    again = blocks.info(label, WHO)
    if again.steps != info.steps:  # somebody wrote in between
        return _content(blocks, agent_id, label)
    lines = text.split("\n")
    can_type = len(text) <= MOST_TYPED and len(lines) <= MOST_LINES and max(map(len, lines)) <= LONGEST_TYPED
    return BlockContent(agent_id, info, text, "" if can_type else cut(text), cut(shown), can_type, steps)


def _overwrite(blocks: BlockService, content: BlockContent, value: JsonValue) -> None:
    """Write over exactly what was read: whoever writes in between makes this nothing."""
    label, before = content.label, blocks.value(content.label)
    if isinstance(content.info.record.schema, CompositeSchema) and isinstance(value, dict) and isinstance(before, dict):
        value = {name: part for name, part in value.items() if part != before.get(name)}
    edit = Overwrite(value)
    changed = BlockChanged(tr("`{block}` was changed by somebody else meanwhile; nothing was written", block=label))
    diff = blocks.preview(label, edit, WHO)
    if blocks.info(label, WHO).steps != content.info.steps:
        raise changed
    try:
        blocks.edit(label, edit, author=WHO, granted=Action.DELETE, approved_change=lambda: diff)
    except ToolFailure as failure:
        raise changed if failure.code == "approval-stale" else failure from None
