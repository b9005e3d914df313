"""The ``file_read`` tool: the text of one file in a root. It does no I/O itself."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins.result import done
from gatewright.builtins.rooted import READ, Input, ReadingTool
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import ResourceBounds


class FileRead(Input):
    """What to read."""

    path: Annotated[str, READ, Field(description="The file, such as `shared/notes.txt` or `tmp/draft.md`.")]


class FileReadTool(ReadingTool):
    """Reads one file."""

    name = "file_read"
    description = "Reads a text file in UTF-8. Paths begin with `shared/` or `tmp/`; one without begins in `shared`."
    resource_bounds = ResourceBounds(timeout_s=10.0)
    examples = ({"path": "shared/notes.txt"},)
    input_model = FileRead

    async def run(self, arguments: FileRead, context: ToolExecutionContext) -> JsonValue:
        """Give its text."""
        roots = context.require_roots()
        return done(f"text of `{roots.shown(arguments.path)}`", await roots.read(arguments.path))
