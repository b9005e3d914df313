"""The ``file_list`` tool: the names in one folder of a root. It does no I/O itself."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gatewright.base.jsonvalue import JsonValue
from gatewright.base.plural import plural
from gatewright.builtins.result import done
from gatewright.builtins.rooted import READ, Input, ReadingTool, counted, until_stopped
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import ResourceBounds


class FileList(Input):
    """What to list."""

    path: Annotated[str, READ, Field(description="The folder, such as `shared/drafts` or `tmp`.")] = "shared"


class FileListTool(ReadingTool):
    """Lists one folder."""

    name = "file_list"
    description = (
        "Lists what is in a folder, sorted by name; names of folders end in `/`. "
        "Paths begin with `shared/` or `tmp/`; one without begins in `shared`."
    )
    resource_bounds = ResourceBounds(timeout_s=10.0)
    input_model = FileList

    async def run(self, arguments: FileList, context: ToolExecutionContext) -> JsonValue:
        """Give its names."""
        roots = context.require_roots()
        data = await roots.list_folder(arguments.path, stopped=until_stopped(context))
        count = counted(data, "entries")
        what = plural(count, "entry", "entries") if count else "no entries"
        return done(f"{what} in `{roots.shown(arguments.path)}`", data)
