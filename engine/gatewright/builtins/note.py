"""What the tools on a user's notes have in common. They do no I/O themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins.rooted import text_of
from gatewright.policy.tier import SafetyTier
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import Determinism, Normalization, ResourceBounds, ResultType, SideEffect
from gatewright.tools.tool import Tool

MAX_NOTE_CHARS = 4_000
"""So that one note fits into a result as a whole."""
NoteId = Annotated[str, Field(min_length=1, max_length=64, description="The `note_id` of the note.")]
Content = Annotated[
    str, Field(min_length=1, max_length=MAX_NOTE_CHARS, description="The text of the note; it has to speak for itself.")
]


class NoteTool(Tool, abstract=True):
    """A tool on the notes of the user that a call is made for: theirs alone, so that no capability is needed."""

    safety_tier = SafetyTier.SIDE_EFFECTING
    side_effects = frozenset({SideEffect.DB_READ, SideEffect.DB_WRITE})
    determinism = Determinism.DETERMINISTIC
    required_capabilities = frozenset[str]()
    resource_bounds = ResourceBounds(timeout_s=10.0)
    result_type = ResultType.OBJECT
    normalization = Normalization.JSON
    needs_user = True


def change_of(arguments: Mapping[str, JsonValue], context: ToolExecutionContext, *, text: str) -> str:
    """The difference that another text makes to the note. Raises ToolFailure where there is no such note."""
    from gatewright.blocks.difftext import diff_text

    note_id = text_of(arguments, "note_id")
    return diff_text(note_id, context.require_notes().content(note_id, user_id=context.require_user()), text)
