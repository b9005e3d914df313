"""The ``file_edit`` tool: one passage of a file in a root, replaced. It does no I/O itself."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins.result import agreed, done
from gatewright.builtins.rooted import WRITTEN, Input, RootTool, text_of
from gatewright.policy.permission import Action
from gatewright.policy.target import Assessment, Later
from gatewright.policy.tier import SafetyTier
from gatewright.sources.filetext import with_change
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import ResourceBounds, SideEffect

if TYPE_CHECKING:
    from gatewright.sources.rootfolder import RootFolders


class FileEdit(Input):
    """What to change."""

    path: Annotated[str, WRITTEN, Field(description="The file, such as `shared/notes.txt`.")]
    old_text: Annotated[str, Field(min_length=1, description="The text to replace; it has to occur exactly once.")]
    new_text: Annotated[str, Field(description="The text to put there instead; empty takes it out.")]


class FileEditTool(RootTool):
    """Changes one passage."""

    name = "file_edit"
    description = (
        "Replaces a passage of a text file that occurs in it exactly once. Paths begin with `shared/` or `tmp/`; one "
        "without begins in `shared`."
    )
    examples = ({"path": "shared/notes.txt", "old_text": "tea", "new_text": "coffee"},)
    safety_tier = SafetyTier.SIDE_EFFECTING
    side_effects = frozenset({SideEffect.FS_READ, SideEffect.FS_WRITE})
    resource_bounds = ResourceBounds(timeout_s=15.0)
    input_model = FileEdit

    def assess(
        self,
        operation: str,  # noqa: ARG002
        arguments: Mapping[str, JsonValue],
        context: ToolExecutionContext,
    ) -> Assessment:
        """The file is overwritten."""
        texts = (text_of(arguments, name) for name in ("path", "old_text", "new_text"))
        return Assessment(Action.OVERWRITE, later=Later(partial(_change, context.require_roots(), *texts)))

    async def run(self, arguments: FileEdit, context: ToolExecutionContext) -> JsonValue:
        """Change it."""
        roots = context.require_roots()
        path, old, new = arguments.path, arguments.old_text, arguments.new_text
        approved = agreed(context, lambda: _change(roots, path, old, new))
        data = await roots.edit(path, old, new, context.granted, approved=approved)
        return done(f"the new text is in `{roots.shown(arguments.path)}`", data)


def _change(roots: RootFolders, path: str, old: str, new: str) -> str:
    """The difference to the whole text. Raises ToolFailure where the passage does not stand there once."""
    from gatewright.blocks.difftext import diff_text

    before = roots.text_of(path)
    return diff_text(roots.shown(path), before, with_change(before, old, new))
