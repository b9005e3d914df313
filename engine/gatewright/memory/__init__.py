"""What a workspace remembers, in SQLite: blocks at rest and what may be done with them. It knows no tool."""

from gatewright.memory.agentblocks import AgentBlocks, owner_of
from gatewright.memory.block_store import BlockStore, StoredBlock
from gatewright.memory.blockrule import action_of
from gatewright.memory.blocks import BlockInfo, BlockService, Changed, FileTexts
from gatewright.memory.record import BlockRecord, BlockType
from gatewright.memory.shelf import Shelf

__all__ = [
    "AgentBlocks",
    "BlockInfo",
    "BlockRecord",
    "BlockService",
    "BlockStore",
    "BlockType",
    "Changed",
    "FileTexts",
    "Shelf",
    "StoredBlock",
    "action_of",
    "owner_of",
]
