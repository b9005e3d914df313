"""The ``memory_update`` tool: another text for one of the user's notes. It does no I/O itself."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins.note import Content, NoteId, NoteTool
from gatewright.builtins.result import done
from gatewright.builtins.rooted import Input, text_of
from gatewright.policy.permission import Action
from gatewright.policy.target import Assessment, Later
from gatewright.tools.context import ToolExecutionContext


class MemoryUpdate(Input):
    """What to change."""

    note_id: NoteId
    content: Content


class MemoryUpdateTool(NoteTool):
    """Changes a note."""

    name = "memory_update"
    description = "Puts another text in the place of one of the user's notes, which keeps its `note_id`."
    input_model = MemoryUpdate

    def assess(
        self,
        operation: str,  # noqa: ARG002
        arguments: Mapping[str, JsonValue],
        context: ToolExecutionContext,
    ) -> Assessment:
        """The note is overwritten."""
        return Assessment(Action.OVERWRITE, later=Later(partial(_change, arguments, context)))

    async def run(self, arguments: MemoryUpdate, context: ToolExecutionContext) -> JsonValue:
        """Change it."""
        user_id = context.require_user()
        await context.require_notes().update(arguments.note_id, arguments.content, user_id=user_id)
        return done("the note has the new text", {"note_id": arguments.note_id})


def _change(arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> str:
    """The difference to the text. Raises ToolFailure where there is no such note."""
    from gatewright.blocks import diff_text

    note_id = text_of(arguments, "note_id")
    before = context.require_notes().content(note_id, user_id=context.require_user())
    return diff_text(note_id, before, text_of(arguments, "content"))
