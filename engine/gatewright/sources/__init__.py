"""Files on disk as agents may use them: sources, their levels, their blocks. It knows no agent and no gate."""

from gatewright.policy.glob import Explanation, PermissionRules, check_pattern
from gatewright.sources.filesource import BlockStorePort, FileSource, StoredBlock
from gatewright.sources.manager import SourceManager
from gatewright.sources.overlay import Entry, HitCounts, Listing, Overlay
from gatewright.sources.protection import ProtectedSet, Protection

__all__ = [
    "BlockStorePort",
    "Entry",
    "Explanation",
    "FileSource",
    "HitCounts",
    "Listing",
    "Overlay",
    "PermissionRules",
    "ProtectedSet",
    "Protection",
    "SourceManager",
    "StoredBlock",
    "check_pattern",
]
