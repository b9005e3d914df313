"""Tools of six and of eight operations that are looked at and never run."""

from __future__ import annotations

from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.verdict import SafetyTier
from gatewright.tools import Tool, operation
from gatewright.tools.declaration import Normalization, ResultType

SIX = ("read", "find", "write", "append", "move", "delete")
EIGHT = (*SIX, "copy", "measure")


class SixOperations(Tool, abstract=True):
    """Operations only; nobody runs them."""

    safety_tier = SafetyTier.READ_ONLY
    result_type = ResultType.STRING
    normalization = Normalization.JSON

    @operation
    async def read(self, path: str) -> JsonValue:
        """Read one."""
        return path

    @operation
    async def find(self, path: str) -> JsonValue:
        """List what there is."""
        return path

    @operation
    async def write(self, path: str, content: str) -> JsonValue:
        """Write one."""
        return path + content

    @operation
    async def append(self, path: str, content: str) -> JsonValue:
        """Add to one."""
        return path + content

    @operation
    async def move(self, path: str, to: str) -> JsonValue:
        """Give one another name."""
        return path + to

    @operation
    async def delete(self, path: str) -> JsonValue:
        """Remove one."""
        return path


class EightOperations(SixOperations, abstract=True):
    """Two more."""

    @operation
    async def copy(self, path: str, to: str) -> JsonValue:
        """Make another one."""
        return path + to

    @operation
    async def measure(self, path: str) -> JsonValue:
        """Tell how large one is."""
        return path
