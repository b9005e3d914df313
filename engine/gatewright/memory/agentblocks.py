"""The workspace's memory for agents, who reach it through tools, and for hosts, who put it into the prompt.

Answers are plain JSON. A record is read at once; a thread opens and writes blocks. Each operation checks the level
again when it runs: it refuses an action that the level denies by then, that the gate did not grant, or that needs an
approval which nobody gave.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from gatewright import blocks
from gatewright.base.amount import iso_utc
from gatewright.base.errors import ToolFailure, WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import aio
from gatewright.memory.archive import Archive
from gatewright.memory.block_store import Shelf
from gatewright.memory.blocktable import NO_LABEL, BlockRecord, BlockType, Note, action_of, is_label, record_after
from gatewright.memory.entrytable import EntryFilter, EntryKind, Hit
from gatewright.policy.target import Assessment, BlockTarget, Later, Refusal
from gatewright.policy.verdict import Action, Permission, reads_freely

if TYPE_CHECKING:
    from gatewright.memory.blocks import BlockInfo, BlockService, Changed, FileTexts


_FENCE = "```"


@frozen
class ContextBlock:
    """A block in context. ``content``: the text for the model; of a text with a viewport only those lines."""

    info: BlockInfo
    content: str

    def to_json(self) -> dict[str, JsonValue]:
        """The block as JSON; ``chars`` counts the whole content, ``char_limit`` null means no limit of its own."""
        record = self.info.record
        return {
            "label": record.label,
            "type": str(record.type),
            "shared": not record.owner,
            "pinned": record.pinned,
            "permission": str(self.info.permission),
            "description": record.description,
            "chars": self.info.size.chars,
            "char_limit": record.char_limit,
            "content": self.content,
        }

    @property
    def text(self) -> str:
        """The block as Markdown: heading, facts, description, and the content in a fence that it cannot close."""
        record, chars = self.info.record, f"{self.info.size.chars:,}"
        size = f"{chars} of {record.char_limit:,} characters" if record.char_limit else f"{chars} characters"
        shared = "" if record.owner else ", shared"
        fence = max([_FENCE, *(found + "`" for found in re.findall("`{3,}", self.content))], key=len)
        lines = [f"### {record.label}", "", f"{record.type}, {self.info.permission}{shared}, {size}"]
        lines += [" ".join(record.description.split())] if record.description else []
        return "\n".join([*lines, "", fence, self.content, fence])


@frozen
class AgentContext:
    """An agent's blocks in context: core blocks, then pinned ones, each sorted by label."""

    agent_id: str
    blocks: tuple[ContextBlock, ...]

    @property
    def text(self) -> str:
        """All blocks as Markdown; empty without a block."""
        return "\n\n".join(["## Memory", *(block.text for block in self.blocks)]) if self.blocks else ""

    def to_json(self) -> dict[str, JsonValue]:
        """``agent`` and ``blocks``."""
        return {"agent": self.agent_id, "blocks": [block.to_json() for block in self.blocks]}


def context_of(agent_id: str, service: BlockService, source_ids: Collection[str]) -> AgentContext:
    """Collect the blocks in the agent's context that it may read unasked; file blocks only from its own sources."""
    held = [record for record in service.list() if not record.source_id or record.source_id in source_ids]
    found = [record for record in held if reads_freely(service.info(record.label).permission)]
    core = [record for record in found if record.type is BlockType.CORE]
    pinned = [record for record in found if record.pinned and record.type is not BlockType.CORE]
    blocks = (ContextBlock(service.info(one.label), service.render(one.label)) for one in (*core, *pinned))
    return AgentContext(agent_id, tuple(blocks))


_ROOM_CHARS = 12_000
_KINDS = {
    EntryKind.ARCHIVE: "entry",
    EntryKind.BLOCK: "archived block",
    EntryKind.CONVERSATION: "message",
}


def owner_of(agent_id: str) -> str:
    """Return the owner name of an agent's blocks."""
    return f"agent:{agent_id}"


class AgentBlocks:
    """The blocks of every agent. ``levels`` and ``files`` answer for the sources of file blocks."""

    def __init__(
        self,
        shelf: Shelf,
        *,
        levels: Callable[[BlockRecord], Permission] | None = None,
        files: FileTexts | None = None,
    ) -> None:
        self._shelf = shelf
        self._levels = levels
        self._files = files

    # no effect

    def find(self, label: str, *, agent_id: str, parameter: str = "") -> BlockTarget | Refusal:
        """Find the block of a label (files aside) and its level, without opening or creating it; refuse an invalid
        label.

        Unknown labels and blocks of level none get the same answer: level none, without an id.
        """
        if not is_label(label):
            return Refusal("bad-label", f"`{parameter}` is empty, too long or not printable", NO_LABEL)
        found = self._service(agent_id).find(label)
        if found is None:
            return BlockTarget(parameter, label, "", Permission.NONE)
        return BlockTarget(parameter, label, found[0].block_id, found[1])

    def assess(self, label: str, change: blocks.Edit | Note, *, agent_id: str) -> Assessment:
        """Name the action that a change needs, and show the change to the person who decides; never raises."""
        service = self._service(agent_id)
        if isinstance(change, str):
            return Assessment(Action.OVERWRITE, later=Later(lambda: _note_lines(service, label, change)))
        return Assessment(action_of(change), later=Later(lambda: service.preview(label, change, owner_of(agent_id))))

    def context(self, agent_id: str, source_ids: Collection[str]) -> AgentContext:
        """Return the agent's present context; ``source_ids``: its sources."""
        return context_of(agent_id, self._service(agent_id), source_ids)

    # in a thread

    async def edit(
        self,
        label: str,
        edit: blocks.Edit,
        *,
        agent_id: str,
        granted: Action | None,
        approved: bool = False,
        approved_change: Callable[[], str | None] | None = None,
    ) -> JsonValue:
        """Execute an edit; answer label, size, whether anything changed, and whether undo and redo are possible.

        ``approved_change`` returns the approved change in the words of ``assess``; any other change is refused.
        """

        def work(service: BlockService, author: str, granted: Action) -> JsonValue:
            changed = service.edit(
                label, edit, author=author, granted=granted, approved=approved, approved_change=approved_change
            )
            return _after(service, changed, author)

        return await self._run_granted(agent_id, granted, work)

    async def note(
        self, label: str, note: Note, *, agent_id: str, granted: Action | None, approved: bool = False
    ) -> JsonValue:
        """Pin, unpin, archive or unarchive a block, and answer the block's facts afterwards."""

        def work(service: BlockService, author: str, granted: Action) -> JsonValue:
            changed = service.note(label, note, author=author, granted=granted, approved=approved)
            return {**_facts(service.info(label, author)), "changed": changed.step is not None}

        return await self._run_granted(agent_id, granted, work)

    async def info(self, label: str, *, agent_id: str) -> JsonValue:
        """Return the facts of a block: schema, type, permission, size, pin."""
        return await aio.to_thread(lambda: _facts(self._service(agent_id).info(label, owner_of(agent_id))))

    async def content(self, label: str, *, agent_id: str) -> JsonValue:
        """Return a block's content as the model sees it (``content``, a text), with its facts."""

        def work() -> JsonValue:
            service = self._service(agent_id)
            return {**_facts(service.info(label, owner_of(agent_id))), "content": service.render(label)}

        return await aio.to_thread(work)

    async def insert_archived(self, label: str, text: str, *, agent_id: str, granted: Action | None) -> JsonValue:
        """Make an archived block of this agent from a text, and answer the block's facts."""

        def work(service: BlockService, author: str, granted: Action) -> JsonValue:
            service.create(label, author=author, granted=granted, content=text, type=BlockType.ARCHIVAL)
            return _facts(service.info(label, author))

        return await self._run_granted(agent_id, granted, work)

    async def append_archived(
        self, label: str, text: str, *, agent_id: str, granted: Action | None, approved: bool = False
    ) -> JsonValue:
        """Add text at the end of an archived block; answer like ``edit``."""

        def work(service: BlockService, author: str, granted: Action) -> JsonValue:
            edit = blocks.Append(text)
            changed = service.edit(label, edit, author=author, granted=granted, approved=approved, archived=True)
            return _after(service, changed, author)

        return await self._run_granted(agent_id, granted, work)

    async def delete_archived(
        self, label: str, *, agent_id: str, granted: Action | None, approved: bool = False
    ) -> JsonValue:
        """Delete an archived block and answer its label."""

        def work(service: BlockService, _: str, granted: Action) -> JsonValue:
            return {"label": service.delete(label, granted=granted, approved=approved, archived=True).label}

        return await self._run_granted(agent_id, granted, work)

    async def swap(
        self, archive: str, load: str, *, agent_id: str, granted: Action | None, approved: bool = False
    ) -> JsonValue:
        """Archive one block and bring another back, both or neither; answer both labels."""

        def work(service: BlockService, author: str, granted: Action) -> JsonValue:
            with self._shelf.store.exclusive():
                record_after(service.get(load), "unarchive", 0.0)
                service.note(archive, "archive", author=author, granted=granted, approved=approved)
                service.note(load, "unarchive", author=author, granted=granted, approved=approved)
            return {"archived": archive, "loaded": load}

        return await self._run_granted(agent_id, granted, work)

    async def insert_entry(
        self, content: str, metadata: Mapping[str, JsonValue] | None, *, agent_id: str, granted: Action | None
    ) -> JsonValue:
        """Store a text in the agent's archive if granted; answer id and time."""

        def work() -> JsonValue:
            made = self._archive(agent_id).insert(content, metadata, granted=granted)
            return {"id": made.entry_id, "created_at": iso_utc(made.created_at)}

        return await aio.to_thread(work)

    async def search(
        self,
        query: str,
        *,
        agent_id: str,
        kinds: Sequence[str],
        limit: int,
        since: float | None = None,
        until: float | None = None,
        role: str | None = None,
        session_id: str | None = None,
        user_id: str | None = None,
    ) -> JsonValue:
        """Search, and answer ``hits``, best first: kind, score, label (else id), times, other facts, content.

        Texts beyond the room of the answer become snippets.

        ``kinds``: some of archive, block (archived ones) and conversation. ``since``, ``until``: s since 1970.
        ``user_id``: the user in the conversations.
        """

        def work() -> JsonValue:
            wanted = [EntryKind(kind) for kind in kinds]
            blocks = {
                record.block_id: record
                for record in (self._service(agent_id).list() if EntryKind.BLOCK in wanted else ())
                if record.type is BlockType.ARCHIVAL and reads_freely(record.permission)
            }
            found = self._archive(agent_id).search(
                query,
                kinds=wanted,
                wanted=EntryFilter(since, until, role, session_id),
                blocks=blocks,
                user_id=user_id,
                limit=limit,
            )
            return {"hits": _rows(found, blocks)}

        return await aio.to_thread(work)

    # inside

    def _archive(self, agent_id: str) -> Archive:
        return Archive(self._shelf.store, owner=owner_of(agent_id))

    def _service(self, agent_id: str) -> BlockService:
        from gatewright.memory.blocks import BlockService

        return BlockService(
            self._shelf.store,
            owner=owner_of(agent_id),
            levels=self._levels,
            shelf=self._shelf,
            files=self._files,
        )

    async def _run_granted(
        self, agent_id: str, granted: Action | None, work: Callable[[BlockService, str, Action], JsonValue]
    ) -> JsonValue:
        """Run ``work`` in a thread on the agent's blocks, in the agent's name, with the granted action."""
        if granted is None:
            raise ToolFailure("this call was granted nothing", code="not-granted")
        return await aio.to_thread(work, self._service(agent_id), owner_of(agent_id), granted)


def _rows(found: Iterable[Hit], blocks: Mapping[str, BlockRecord]) -> list[JsonValue]:
    """Turn hits into rows for a model: whole texts while they fit, then the part around the first word."""
    rows: list[JsonValue] = []
    room = _ROOM_CHARS
    for hit in found:
        entry = hit.entry
        row: dict[str, JsonValue] = {"kind": _KINDS[entry.kind], "score": hit.score}
        if entry.kind is EntryKind.BLOCK:
            record = blocks[entry.entry_id]
            row |= {"label": record.label, "created_at": iso_utc(record.created_at)}
            row |= {} if record.archived_at is None else {"archived_at": iso_utc(record.archived_at)}
        else:
            row |= {"id": entry.entry_id, "label": entry.entry_id, "created_at": iso_utc(entry.created_at)}
            said = {"role": entry.role, "session": entry.session_id, "metadata": dict(entry.metadata)}
            row |= {key: value for key, value in said.items() if value}
        room -= len(entry.content)
        rows.append(row | ({"content": entry.content} if room >= 0 else {"snippet": hit.snippet}))
        room += 0 if room >= 0 else len(entry.content)
    return rows


def _facts(info: BlockInfo) -> dict[str, JsonValue]:
    record = info.record
    said: dict[str, JsonValue] = {
        "label": record.label,
        "description": record.description,
        "type": str(record.type),
        "schema": blocks.schema_to_json(record.schema),
        "permission": str(info.permission),
        "pinned": record.pinned,
        "chars": info.size.chars,
        "items": info.size.items,
        "char_limit": record.char_limit,
        "can_undo": info.can_undo,
        "can_redo": info.can_redo,
    }
    return said if record.archived_at is None else {**said, "archived_at": iso_utc(record.archived_at)}


def _after(service: BlockService, changed: Changed, author: str) -> JsonValue:
    said = _facts(service.info(changed.record.label, author))
    kept = ("label", "chars", "items", "can_undo", "can_redo")
    return {**{key: said[key] for key in kept}, "changed": changed.step is not None}


def _note_lines(service: BlockService, label: str, note: Note) -> str | None:
    """Show a note's change as lines for the person who decides. Raises ToolFailure for an impossible one."""
    try:
        record = service.get(label)
    except WorkspaceError:
        return None
    after = record_after(record, note, record.updated_at)
    kinds = _lines("type", str(record.type), str(after.type))
    return kinds + _lines("pinned", _word(record.pinned), _word(after.pinned))


def _lines(name: str, before: str, after: str) -> str:
    return "" if before == after else f"-{name}: {before}\n+{name}: {after}\n"


def _word(flag: bool) -> str:
    return "yes" if flag else "no"
