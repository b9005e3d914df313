"""The ``memory_update`` tool: another text for one of the user's notes. It does no I/O itself."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins.note import Content, NoteId, NoteTool, change_of
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
        text = text_of(arguments, "content")
        return Assessment(Action.OVERWRITE, later=Later(partial(change_of, arguments, context, text=text)))

    async def run(self, arguments: MemoryUpdate, context: ToolExecutionContext) -> JsonValue:
        """Change it."""
        user_id = context.require_user()
        await context.require_notes().update(arguments.note_id, arguments.content, user_id=user_id)
        return done("the note has the new text", {"note_id": arguments.note_id})
