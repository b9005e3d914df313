"""The tools that come with the program, one per module. It does not know which agent may use them."""

from __future__ import annotations

from gatewright.builtins.block import BlockTool
from gatewright.builtins.file import file_tool
from gatewright.tools.tool import Tool

__all__ = ["builtin_tools", "file_tool"]


def builtin_tools() -> tuple[Tool, ...]:
    """The tools that are always registered; ``file`` comes and goes with the sources."""
    return (BlockTool(),)
