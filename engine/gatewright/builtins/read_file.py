"""The ``read_file`` tool: the text of one file in a root, and nothing around it. It does no I/O itself.

The same as ``file_read`` for agents that know the older name, whose result is ``{content}`` without more.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins.result import done
from gatewright.builtins.rooted import READ, Input, ReadingTool
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import ResourceBounds


class ReadFile(Input):
    """What to read."""

    path: Annotated[str, READ, Field(description="File path to read, below `shared/` or `tmp/`.")]


class ReadFileTool(ReadingTool):
    """Reads one file."""

    name = "read_file"
    description = "Reads a text file in UTF-8 and gives its content. A path that names no folder begins in `shared`."
    resource_bounds = ResourceBounds(timeout_s=10.0)
    examples = ({"path": "shared/notes.txt"},)
    input_model = ReadFile

    async def run(self, arguments: ReadFile, context: ToolExecutionContext) -> JsonValue:
        """Give its text."""
        roots = context.require_roots()
        data = await roots.read(arguments.path)
        if not isinstance(data, dict):
            raise ToolFailure("the file has no text", code="bad-result")
        return done(f"text of `{roots.shown(arguments.path)}`", {"content": data["content"]})
