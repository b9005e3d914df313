"""How the program keeps records of its own: the one way to open what lies in a state or key folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.door import door

if TYPE_CHECKING:
    from gatewright.record.anchor import AnchorFile
    from gatewright.record.database import Connection, Database
    from gatewright.record.folder import PrivateFolder
    from gatewright.record.fork import fork_safe_lock, renew_after_fork
    from gatewright.record.seal import SHARED_KEY, Seal, find_key, have_key
    from gatewright.record.sealedtable import Change, SealedRow, SealedTable, Version

__all__ = [
    "SHARED_KEY",
    "AnchorFile",
    "Change",
    "Connection",
    "Database",
    "PrivateFolder",
    "Seal",
    "SealedRow",
    "SealedTable",
    "Version",
    "find_key",
    "fork_safe_lock",
    "have_key",
    "renew_after_fork",
]

door(
    __name__,
    {
        "gatewright.record.anchor": ("AnchorFile",),
        "gatewright.record.database": ("Connection", "Database"),
        "gatewright.record.folder": ("PrivateFolder",),
        "gatewright.record.fork": ("fork_safe_lock", "renew_after_fork"),
        "gatewright.record.seal": ("SHARED_KEY", "Seal", "find_key", "have_key"),
        "gatewright.record.sealedtable": ("Change", "SealedRow", "SealedTable", "Version"),
    },
)
