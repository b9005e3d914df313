"""The ``file_write`` tool: a file of a root, made or replaced as a whole. It does no I/O itself."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins.result import agreed, done
from gatewright.builtins.rooted import WRITTEN, Input, RootTool, text_of
from gatewright.policy.permission import Action
from gatewright.policy.target import Assessment, Later
from gatewright.policy.tier import SafetyTier
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import ResourceBounds, SideEffect

if TYPE_CHECKING:
    from gatewright.sources.rootfolder import RootFolders


class FileWrite(Input):
    """What to write."""

    path: Annotated[
        str, WRITTEN, Field(description="The file, such as `shared/notes.txt`; folders are made as needed.")
    ]
    content: Annotated[str, Field(description="The whole text, exactly as it is to stand in the file.")]


class FileWriteTool(RootTool):
    """Writes one file."""

    name = "file_write"
    description = (
        "Makes a text file, or replaces what it holds. Paths begin with `shared/` or `tmp/`; one without begins in "
        "`shared`."
    )
    examples = ({"path": "shared/notes.txt", "content": "One line.\n"},)
    safety_tier = SafetyTier.SIDE_EFFECTING
    side_effects = frozenset({SideEffect.FS_WRITE})
    resource_bounds = ResourceBounds(timeout_s=15.0)
    input_model = FileWrite

    def assess(
        self,
        operation: str,  # noqa: ARG002
        arguments: Mapping[str, JsonValue],
        context: ToolExecutionContext,
    ) -> Assessment:
        """A new file is appended to its folder; one that is there is overwritten."""
        roots, path = context.require_roots(), text_of(arguments, "path")
        action = Action.OVERWRITE if roots.stands(path) else Action.APPEND
        return Assessment(action, later=Later(partial(_change, roots, path, text_of(arguments, "content"))))

    async def run(self, arguments: FileWrite, context: ToolExecutionContext) -> JsonValue:
        """Write it."""
        roots = context.require_roots()
        approved = agreed(context, lambda: _change(roots, arguments.path, arguments.content))
        data = await roots.write(arguments.path, arguments.content, context.granted, approved=approved)
        made = isinstance(data, dict) and data.get("created") is True
        shown = roots.shown(arguments.path)
        return done(f"`{shown}` is a new file" if made else f"`{shown}` holds the new text", data)


def _change(roots: RootFolders, path: str, content: str) -> str:
    """The difference; of what is no text, what there is now."""
    from gatewright.blocks.difftext import diff_text

    shown = roots.shown(path)
    try:
        before = roots.text_of(path)
    except ToolFailure:
        there = roots.note_of(path)
        head = f"replaces what is no text: {there}\n" if there is not None else "new file\n"
        return head + diff_text(shown, "", content)
    return diff_text(shown, before, content) or f"{shown} stays as it is"
