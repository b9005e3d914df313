"""What is known about a block besides its content, as a value."""

from __future__ import annotations

from enum import StrEnum

from gatewright.base.frozen import frozen
from gatewright.blocks.schema import BlockSchema, TextSchema
from gatewright.policy.verdict import Permission


class BlockType(StrEnum):
    """What a block is for: always in context, in use, put away, or a running record."""

    CORE = "core"
    WORKING = "working"
    ARCHIVAL = "archival"
    LOG = "log"


@frozen
class BlockRecord:
    """One block. ``owner``: ``agent:ID``, ``user:ID``, or "" for what the workspace shares, files among it.

    ``source_id``: the source whose file it stands for, "" for none. ``permission``: its own level; for a block of a
    source that one's level holds instead. Times in s since 1970; ``archived_at`` None when it is not put away.
    """

    block_id: str
    label: str
    owner: str = ""
    source_id: str = ""
    type: BlockType = BlockType.WORKING
    schema: BlockSchema = TextSchema()
    permission: Permission = Permission.READ_WRITE
    pinned: bool = False
    description: str = ""
    char_limit: int | None = None
    created_at: float = 0.0
    updated_at: float = 0.0
    archived_at: float | None = None
