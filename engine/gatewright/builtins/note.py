"""The tools on a user's notes: ``memory_search``, ``memory_save``, ``memory_update``, ``memory_delete``. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated

from pydantic import Field

from gatewright.base.errors import ToolFailure, WorkspaceError
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.plural import plural
from gatewright.builtins.result import NUMBER, TEXT, ObjectTool, answer, done, fields, rows, text_of
from gatewright.builtins.rooted import Input
from gatewright.policy.target import Assessment, Later
from gatewright.policy.verdict import Action, SafetyTier
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import Determinism, ResourceBounds, SideEffect

MAX_NOTE_CHARS = 4_000
"""So that one note fits into a result as a whole."""
_BY_WORDS = "; only words were compared, since no model for meanings is installed"
_NEAREST = ", none for certain: nothing means the same, and these come nearest"
_NOTHING_SAID = "; the conversation could not be searched"
NoteId = Annotated[str, Field(min_length=1, max_length=64, description="The `note_id` of the note.")]
Content = Annotated[
    str, Field(min_length=1, max_length=MAX_NOTE_CHARS, description="The text of the note; it has to speak for itself.")
]


class NoteTool(ObjectTool, abstract=True):
    """A tool on the notes of the user that a call is made for: theirs alone, so that no capability is needed."""

    safety_tier = SafetyTier.SIDE_EFFECTING
    side_effects = frozenset({SideEffect.DB_READ, SideEffect.DB_WRITE})
    determinism = Determinism.DETERMINISTIC
    required_capabilities = frozenset[str]()
    resource_bounds = ResourceBounds(timeout_s=10.0)
    needs_user = True


class MemorySearch(Input):
    """What to look for."""

    query: Annotated[str, Field(min_length=1, max_length=1_000, description="What the notes should be about.")]
    top_k: Annotated[int, Field(ge=1, le=20, description="How many results at most.")] = 5
    include_conversation: Annotated[bool, Field(description="Search what was said in this conversation, too.")] = False


class MemorySearchTool(NoteTool):
    """Finds notes."""

    name = "memory_search"
    description = "Searches the notes that are kept for the user, by meaning and by words; the best ones come first."
    examples = ({"query": "what the user drinks", "top_k": 3},)
    safety_tier = SafetyTier.READ_ONLY
    side_effects = frozenset({SideEffect.DB_READ})
    resource_bounds = ResourceBounds(timeout_s=15.0)
    output_schema = answer(rows(fields({"text": TEXT, "source": TEXT, "score": NUMBER, "note_id": TEXT})))
    input_model = MemorySearch
    texts = frozenset({"query"})
    actions = (Action.READ,)

    async def run(self, arguments: MemorySearch, context: ToolExecutionContext) -> JsonValue:
        """Give what fits."""
        user_id, notes = context.require_user(), context.require_notes()
        said = await _said(arguments, context) if arguments.include_conversation else []
        found = await notes.search(arguments.query, user_id=user_id, top_k=arguments.top_k, said=said or ())
        if not isinstance(found, dict) or not isinstance(hits := found["hits"], list):
            raise ToolFailure("the notes gave no list", code="bad-result")
        message = plural(len(hits), "result") if hits else "nothing fits"
        message += "" if found["sure"] else _NEAREST
        message += "" if found["by_meaning"] else _BY_WORDS
        return done(message + (_NOTHING_SAID if said is None else ""), hits)


class MemorySave(Input):
    """What to keep."""

    content: Content


class MemorySaveTool(NoteTool):
    """Keeps a note."""

    name = "memory_save"
    description = "Keeps a note for the user, which stays after this conversation. Save each fact once."
    determinism = Determinism.NON_DETERMINISTIC
    examples = ({"content": "The user likes green tea."},)
    output_schema = answer(fields({"note_id": TEXT}))
    input_model = MemorySave
    texts = frozenset({"content"})
    actions = (Action.APPEND,)

    def assess(self, operation: str, arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> Assessment:
        """Something is added."""
        return Assessment(Action.APPEND, diff=text_of(arguments, "content"))

    async def run(self, arguments: MemorySave, context: ToolExecutionContext) -> JsonValue:
        """Keep it."""
        user_id = context.require_user()
        note_id = await context.require_notes().save(arguments.content, user_id=user_id)
        return done("the note is kept", {"note_id": note_id})


class MemoryUpdate(Input):
    """What to change."""

    note_id: NoteId
    content: Content


class MemoryUpdateTool(NoteTool):
    """Changes a note."""

    name = "memory_update"
    description = "Puts another text in the place of one of the user's notes, which keeps its `note_id`."
    output_schema = answer(fields({"note_id": TEXT}))
    input_model = MemoryUpdate
    texts = frozenset({"note_id", "content"})
    actions = (Action.OVERWRITE,)

    def assess(self, operation: str, arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> Assessment:
        """The note is overwritten."""
        text = text_of(arguments, "content")
        return Assessment(Action.OVERWRITE, later=Later(partial(_change_of, arguments, context, text=text)))

    async def run(self, arguments: MemoryUpdate, context: ToolExecutionContext) -> JsonValue:
        """Change it."""
        user_id = context.require_user()
        await context.require_notes().update(arguments.note_id, arguments.content, user_id=user_id)
        return done("the note has the new text", {"note_id": arguments.note_id})


class MemoryDelete(Input):
    """What to forget."""

    note_id: NoteId


class MemoryDeleteTool(NoteTool):
    """Deletes a note."""

    name = "memory_delete"
    description = "Deletes one of the user's notes for good."
    output_schema = answer()
    input_model = MemoryDelete
    texts = frozenset({"note_id"})
    actions = (Action.DELETE,)

    def assess(self, operation: str, arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> Assessment:
        """The note goes; whoever is asked sees its text."""
        return Assessment(Action.DELETE, later=Later(partial(_change_of, arguments, context, text="")))

    async def run(self, arguments: MemoryDelete, context: ToolExecutionContext) -> JsonValue:
        """Forget it."""
        user_id = context.require_user()
        await context.require_notes().delete(arguments.note_id, user_id=user_id)
        return done("the note is deleted")


async def _said(arguments: MemorySearch, context: ToolExecutionContext) -> list[str] | None:
    """What of the session's messages has words of the query, the best first; None where they cannot be searched."""
    if context.ports.blocks is None:
        return None
    try:
        found = await context.ports.blocks.search(
            arguments.query,
            agent_id=context.agent_id,
            kinds=("conversation",),
            limit=arguments.top_k,
            session_id=context.session_id,
            user_id=context.user_id,
        )
    except (ToolFailure, WorkspaceError):
        return None
    hits = found["hits"] if isinstance(found, dict) else None
    rows = [hit for hit in hits if isinstance(hit, dict)] if isinstance(hits, list) else []
    return [str(hit.get("content", hit.get("snippet"))) for hit in rows]


def _change_of(arguments: Mapping[str, JsonValue], context: ToolExecutionContext, *, text: str) -> str:
    """The difference that another text makes to the note. Raises ToolFailure where there is no such note."""
    from gatewright.blocks.difftext import diff_text

    note_id = text_of(arguments, "note_id")
    return diff_text(note_id, context.require_notes().content(note_id, user_id=context.require_user()), text)
