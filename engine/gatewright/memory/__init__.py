"""What a workspace remembers, in SQLite: blocks at rest. It knows no tool and no level."""

from gatewright.memory.block_store import BlockStore, StoredBlock

__all__ = ["BlockStore", "StoredBlock"]
