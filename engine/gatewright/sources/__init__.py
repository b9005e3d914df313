"""Files on disk as agents may use them: sources, their levels, their blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.door import door

if TYPE_CHECKING:
    from gatewright.policy.glob import Explanation, PermissionRules, check_pattern
    from gatewright.sources.filesource import FileSource
    from gatewright.sources.held import BlockStorePort, StoredBlock
    from gatewright.sources.manager import SourceManager
    from gatewright.sources.overlay import Entry, Listing, Overlay
    from gatewright.sources.protection import ProtectedSet, Protection
    from gatewright.sources.reconcile import Strategy
    from gatewright.sources.state import FileState, OutsideChange
    from gatewright.sources.stream import ChangeKind, FolderStream, StreamBatch, Streams, StreamState, Subscription
    from gatewright.sources.watch import Noticed, SourceWatcher

__all__ = [
    "BlockStorePort",
    "ChangeKind",
    "Entry",
    "Explanation",
    "FileSource",
    "FileState",
    "FolderStream",
    "Listing",
    "Noticed",
    "OutsideChange",
    "Overlay",
    "PermissionRules",
    "ProtectedSet",
    "Protection",
    "SourceManager",
    "SourceWatcher",
    "StoredBlock",
    "Strategy",
    "StreamBatch",
    "StreamState",
    "Streams",
    "Subscription",
    "check_pattern",
]

door(
    __name__,
    {
        "gatewright.policy.glob": ("Explanation", "PermissionRules", "check_pattern"),
        "gatewright.sources.filesource": ("FileSource",),
        "gatewright.sources.held": ("BlockStorePort", "StoredBlock"),
        "gatewright.sources.manager": ("SourceManager",),
        "gatewright.sources.overlay": ("Entry", "Listing", "Overlay"),
        "gatewright.sources.protection": ("ProtectedSet", "Protection"),
        "gatewright.sources.reconcile": ("Strategy",),
        "gatewright.sources.state": ("FileState", "OutsideChange"),
        "gatewright.sources.stream": (
            "ChangeKind",
            "FolderStream",
            "StreamBatch",
            "StreamState",
            "Streams",
            "Subscription",
        ),
        "gatewright.sources.watch": ("Noticed", "SourceWatcher"),
    },
)
