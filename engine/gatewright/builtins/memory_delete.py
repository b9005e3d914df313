"""The ``memory_delete`` tool: one of the user's notes, forgotten. It does no I/O itself."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins.note import NoteId, NoteTool, change_of
from gatewright.builtins.result import done
from gatewright.builtins.rooted import Input
from gatewright.policy.permission import Action
from gatewright.policy.target import Assessment, Later
from gatewright.tools.context import ToolExecutionContext


class MemoryDelete(Input):
    """What to forget."""

    note_id: NoteId


class MemoryDeleteTool(NoteTool):
    """Deletes a note."""

    name = "memory_delete"
    description = "Deletes one of the user's notes for good."
    input_model = MemoryDelete

    def assess(
        self,
        operation: str,  # noqa: ARG002
        arguments: Mapping[str, JsonValue],
        context: ToolExecutionContext,
    ) -> Assessment:
        """The note goes; whoever is asked sees its text."""
        return Assessment(Action.DELETE, later=Later(partial(change_of, arguments, context, text="")))

    async def run(self, arguments: MemoryDelete, context: ToolExecutionContext) -> JsonValue:
        """Forget it."""
        user_id = context.require_user()
        await context.require_notes().delete(arguments.note_id, user_id=user_id)
        return done("the note is deleted")
