"""What a workspace remembers, in SQLite: blocks at rest and what may be done with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.late import door

if TYPE_CHECKING:
    from gatewright.memory.blocks import BlockInfo as BlockInfo
    from gatewright.memory.blocks import BlockService as BlockService
    from gatewright.memory.blocktable import BlockRecord as BlockRecord
    from gatewright.memory.blocktable import BlockType as BlockType

door(
    __name__,
    {
        "gatewright.memory.blocks": ("BlockInfo", "BlockService"),
        "gatewright.memory.blocktable": ("BlockRecord", "BlockType"),
    },
)
