"""Keeps what a workspace remembers, in SQLite: blocks at rest, notes, archives, conversations.

Notes (`memory/notes.py`) are one file for each user, so that no query can reach another user's. Full-text indexes are
virtual tables; `Database` permits only these, by the exact statements that made them. `memory/entrytable.py` turns
words from anybody into a query without syntax. If the extra `embeddings` is installed, `memory/embedding.py` keeps
short vectors of a user's notes in memory and ranks the candidates by the whole vectors. A reader notices changes by
`Database.mark`, which changes once a change can be read.
"""

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
