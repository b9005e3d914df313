"""The tools that come with the program."""

from __future__ import annotations

from functools import cache

from gatewright.builtins.block import BlockEditTool, BlockTool, ContextTool
from gatewright.builtins.file import SourceTool, file_tool
from gatewright.builtins.memory import (
    MemoryDeleteTool,
    MemorySaveTool,
    MemorySearchTool,
    MemoryUpdateTool,
    RecallOneTool,
    RecallTool,
    SearchTool,
)
from gatewright.builtins.root_file import (
    FileDeleteTool,
    FileEditTool,
    FileListTool,
    FileReadTool,
    FileSearchTool,
    FileWriteTool,
    ReadFileTool,
    RootTool,
    VaultCopyTool,
    why_absent,
)
from gatewright.builtins.send_message import Message, MessagePort, SendMessageTool
from gatewright.builtins.web import HttpFetchTool, ShellExecTool, ShellPort, WebFetchTool, WebSearchTool
from gatewright.tools.tool import Tool

DEFAULT_SETS = {
    "v2": ("block", "block_edit", "recall@2", "search", "source", "file"),
    "legacy": ("context", "recall@1", "search", "send_message"),
}
"""What an agent lists in `tools`: of the present tools on memory and files, or of those before them."""

__all__ = [
    "DEFAULT_SETS",
    "Message",
    "MessagePort",
    "RootTool",
    "SendMessageTool",
    "ShellExecTool",
    "ShellPort",
    "builtin_tools",
    "file_tool",
    "note_tools",
    "root_tools",
    "why_absent",
]


@cache
def builtin_tools() -> tuple[Tool, ...]:
    """The tools that are always registered; ``file`` comes and goes with the sources."""
    return (
        BlockTool(),
        BlockEditTool(),
        RecallTool(),
        SearchTool(),
        SourceTool(),
        ContextTool(),
        RecallOneTool(),
        WebFetchTool(),
        HttpFetchTool(),
        WebSearchTool(),
    )


@cache
def note_tools() -> tuple[Tool, ...]:
    """The tools on the notes of a user, which come where notes can be kept."""
    return (MemorySearchTool(), MemorySaveTool(), MemoryUpdateTool(), MemoryDeleteTool())


@cache
def root_tools() -> tuple[RootTool, ...]:
    """The tools that come and go with the parts of ``[workspace]`` that they need.

    Those of the shell and of messages here only decide; a workspace makes its own, which execute.
    """
    return (
        FileReadTool(),
        FileSearchTool(),
        FileListTool(),
        FileWriteTool(),
        FileEditTool(),
        FileDeleteTool(),
        VaultCopyTool(),
        ReadFileTool(),
        ShellExecTool(),
        SendMessageTool(),
    )
