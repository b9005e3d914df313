"""What a workspace remembers, in SQLite: blocks at rest and what may be done with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.door import door

if TYPE_CHECKING:
    from gatewright.memory.agentblocks import AgentBlocks, owner_of
    from gatewright.memory.archive import Archive, Conversations
    from gatewright.memory.block_store import BlockStore, StoredBlock
    from gatewright.memory.blockrule import action_of
    from gatewright.memory.blocks import BlockInfo, BlockService, Changed, FileTexts
    from gatewright.memory.context import AgentContext, ContextBlock
    from gatewright.memory.entrytable import Entry, EntryFilter, EntryKind, Hit
    from gatewright.memory.inbox import Inbox, Received
    from gatewright.memory.notes import Note, NoteBook, NoteHit
    from gatewright.memory.record import BlockRecord, BlockType
    from gatewright.memory.shelf import Shelf

__all__ = [
    "AgentBlocks",
    "AgentContext",
    "Archive",
    "BlockInfo",
    "BlockRecord",
    "BlockService",
    "BlockStore",
    "BlockType",
    "Changed",
    "ContextBlock",
    "Conversations",
    "Entry",
    "EntryFilter",
    "EntryKind",
    "FileTexts",
    "Hit",
    "Inbox",
    "Note",
    "NoteBook",
    "NoteHit",
    "Received",
    "Shelf",
    "StoredBlock",
    "action_of",
    "owner_of",
]

door(
    __name__,
    {
        "gatewright.memory.agentblocks": ("AgentBlocks", "owner_of"),
        "gatewright.memory.archive": ("Archive", "Conversations"),
        "gatewright.memory.block_store": ("BlockStore", "StoredBlock"),
        "gatewright.memory.blockrule": ("action_of",),
        "gatewright.memory.blocks": ("BlockInfo", "BlockService", "Changed", "FileTexts"),
        "gatewright.memory.context": ("AgentContext", "ContextBlock"),
        "gatewright.memory.entrytable": ("Entry", "EntryFilter", "EntryKind", "Hit"),
        "gatewright.memory.inbox": ("Inbox", "Received"),
        "gatewright.memory.notes": ("Note", "NoteBook", "NoteHit"),
        "gatewright.memory.record": ("BlockRecord", "BlockType"),
        "gatewright.memory.shelf": ("Shelf",),
    },
)
