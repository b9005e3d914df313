"""The ``file_delete`` tool: a file or folder of a root, removed. It does no I/O itself."""

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


class FileDelete(Input):
    """What to remove."""

    path: Annotated[str, WRITTEN, Field(description="The file or folder, such as `tmp/draft.md`.")]
    recursive: Annotated[bool, Field(description="Remove a folder with everything in it.")] = False


class FileDeleteTool(RootTool):
    """Removes one file or folder."""

    name = "file_delete"
    description = (
        "Removes a file, or a folder that is empty. Paths begin with `shared/` or `tmp/`; one without begins in "
        "`shared`. These two themselves stay."
    )
    examples = ({"path": "tmp/draft.md"},)
    safety_tier = SafetyTier.SIDE_EFFECTING
    side_effects = frozenset({SideEffect.FS_WRITE})
    resource_bounds = ResourceBounds(timeout_s=15.0)
    input_model = FileDelete

    def assess(
        self,
        operation: str,  # noqa: ARG002
        arguments: Mapping[str, JsonValue],
        context: ToolExecutionContext,
    ) -> Assessment:
        """The file or folder is deleted; whoever is asked sees what goes."""
        roots = context.require_roots()
        return Assessment(Action.DELETE, later=Later(partial(_change, roots, text_of(arguments, "path"))))

    async def run(self, arguments: FileDelete, context: ToolExecutionContext) -> JsonValue:
        """Remove it."""
        roots = context.require_roots()
        shown = roots.shown(arguments.path)
        approved = agreed(context, lambda: _change(roots, arguments.path))
        recursive, granted = arguments.recursive, context.granted
        data = await roots.delete(arguments.path, recursive=recursive, granted=granted, approved=approved)
        return done(f"`{shown}` is gone", data)


def _change(roots: RootFolders, path: str) -> str:
    there = roots.note_of(path)
    if there is None:
        raise ToolFailure("there is no such file or folder", code="not-found")
    return f"removes {roots.shown(path)}: {there}"
