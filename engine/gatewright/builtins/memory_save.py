"""The ``memory_save`` tool: a new note for the user. It does no I/O itself."""

from __future__ import annotations

from collections.abc import Mapping

from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins.note import Content, NoteTool
from gatewright.builtins.result import done
from gatewright.builtins.rooted import Input, text_of
from gatewright.policy.permission import Action
from gatewright.policy.target import Assessment
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import Determinism


class MemorySave(Input):
    """What to keep."""

    content: Content


class MemorySaveTool(NoteTool):
    """Keeps a note."""

    name = "memory_save"
    description = "Keeps a note for the user, which stays after this conversation. Save each fact once."
    determinism = Determinism.NON_DETERMINISTIC
    examples = ({"content": "The user likes green tea."},)
    input_model = MemorySave

    def assess(
        self,
        operation: str,  # noqa: ARG002
        arguments: Mapping[str, JsonValue],
        context: ToolExecutionContext,  # noqa: ARG002
    ) -> Assessment:
        """Something is added."""
        return Assessment(Action.APPEND, diff=text_of(arguments, "content"))

    async def run(self, arguments: MemorySave, context: ToolExecutionContext) -> JsonValue:
        """Keep it."""
        user_id = context.require_user()
        note_id = await context.require_notes().save(arguments.content, user_id=user_id)
        return done("the note is kept", {"note_id": note_id})
