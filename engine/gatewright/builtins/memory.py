"""The tools on memories: ``recall`` in both versions, ``search``, and the notes of a user."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, time
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from gatewright import blocks
from gatewright.base.amount import plural
from gatewright.base.errors import ToolFailure, WorkspaceError
from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins.block import EDITED, FOUND, HELD, KNOWN, Label, MemoryTool
from gatewright.builtins.result import (
    NUMBER,
    TEXT,
    ObjectTool,
    answer,
    fields,
    rows,
    search_result,
    success,
    text_argument,
    text_of,
)
from gatewright.builtins.root_file import Input
from gatewright.policy.rule import ContinueLoop, ToolRule
from gatewright.policy.target import Assessment, Later
from gatewright.policy.verdict import Action, SafetyTier
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import Determinism, ResourceBounds, SideEffect
from gatewright.tools.parameter import LabelParameter
from gatewright.tools.registry import operation

Kept = Annotated[str, Field(min_length=1, max_length=10_000, description="The text to keep. It never changes.")]
Metadata = Annotated[dict[str, Any], Field(description="What else is to be known of it, such as where it is from.")]
Query = Annotated[
    str,
    Field(
        min_length=1,
        max_length=1_000,
        description='Words to look for, any of them; `"in quotes"` they have to follow each other, `word*` may go on.',
    ),
]
Limit = Annotated[int, Field(ge=1, le=50, description="How many hits to give at most.")]


class RecallTool(MemoryTool):
    """The archive of the agent that calls, in words that name no operation of another tool."""

    name = "recall"
    version = "2.0.0"
    description = "Keeps texts for good, outside of your context, and finds them again by their words."
    examples = (
        {"op": "insert", "content": "The reader likes green tea.", "metadata": {"from": "a letter"}},
        {"op": "search", "query": "green tea", "limit": 5},
    )
    tool_rules = (ToolRule("recall", ContinueLoop()),)
    texts = frozenset({"content", "metadata", "query"})

    @operation(actions=(Action.APPEND,), output_schema=answer(fields({"id": TEXT, "created_at": TEXT})))
    async def insert(self, context: ToolExecutionContext, content: Kept, metadata: Metadata | None = None) -> JsonValue:
        """Keep a new entry."""
        made = await context.require_blocks().insert_entry(
            content, metadata, agent_id=context.agent_id, granted=context.granted
        )
        return success("the entry is kept", made)

    @operation(tier=SafetyTier.READ_ONLY, actions=(Action.READ,), output_schema=FOUND)
    async def search(self, context: ToolExecutionContext, query: Query, limit: Limit = 10) -> JsonValue:
        """Find entries, and blocks that were put away, by their words: the best first."""
        kinds = ("archive", "block")
        return search_result(
            await context.require_blocks().search(query, agent_id=context.agent_id, kinds=kinds, limit=limit)
        )


NewLabel = Annotated[str, LabelParameter(makes=True), Field(max_length=4096, description="The label to keep it under.")]
Value = Annotated[str, Field(min_length=1, max_length=10_000, description="The text.")]


class RecallOneTool(MemoryTool):
    """Archived blocks of the agent that calls."""

    name = "recall"
    version = "1.0.0"
    description = "Keeps texts for good under labels, outside of your context."
    operation_field = "operation"
    examples = (
        {"operation": "insert", "label": "tea", "value": "The reader likes green tea."},
        {"operation": "append", "label": "tea", "value": "Without sugar."},
        {"operation": "read", "label": "tea"},
        {"operation": "delete", "label": "tea"},
    )
    tool_rules = (ToolRule("recall", ContinueLoop()),)
    texts = frozenset({"value"})

    @operation(actions=(Action.APPEND,), output_schema=KNOWN)
    async def insert(self, context: ToolExecutionContext, label: NewLabel, value: Value) -> JsonValue:
        """Keep a text under a new label."""
        data = await context.require_blocks().insert_archived(
            label, value, agent_id=context.agent_id, granted=context.granted
        )
        return success(f"the text is kept under `{label}`", data)

    @operation(actions=(Action.APPEND,), output_schema=EDITED)
    async def append(self, context: ToolExecutionContext, label: Label, value: Value) -> JsonValue:
        """Add text at the end of what is kept under a label."""
        data = await context.require_blocks().append_archived(
            label, value, agent_id=context.agent_id, granted=context.granted, approved=context.approved
        )
        return success(f"the text was added to `{label}`", data)

    @operation(actions=(Action.READ,), output_schema=answer(HELD))
    async def read(self, context: ToolExecutionContext, label: Label) -> JsonValue:
        """Give what is kept under a label."""
        data = await context.require_blocks().content(label, agent_id=context.agent_id)
        return success(f"what `{label}` holds", data)

    @operation(actions=(Action.DELETE,), output_schema=answer(fields({"label": TEXT})))
    async def delete(self, context: ToolExecutionContext, label: Label) -> JsonValue:
        """Forget what is kept under a label."""
        data = await context.require_blocks().delete_archived(
            label, agent_id=context.agent_id, granted=context.granted, approved=context.approved
        )
        return success(f"`{label}` is forgotten", data)

    def assess(self, operation: str, arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> Assessment:
        """Return the action, with the added text or the removed label for the person who is asked."""
        value, label = text_argument(arguments, "value"), text_argument(arguments, "label")
        change = f"-{label}\n" if value is None else "".join(f"+{line}\n" for line in value.splitlines())
        return Assessment(super().assess(operation, arguments, context).action, diff=change)


_KINDS = {
    "archival_memory": ("archive", "block"),
    "conversations": ("conversation",),
    "all": ("archive", "block", "conversation"),
}
_Day = Annotated[str, Field(max_length=40, description="A day or time as in 2026-03-01 or 2026-03-01T12:00:00Z.")]


class SearchFilters(Input):
    """Which of the texts count."""

    since: _Day | None = None
    until: _Day | None = None
    role: Annotated[
        Literal["user", "assistant", "system", "tool"] | None, Field(description="Messages of this role alone.")
    ] = None
    session: Annotated[str | None, Field(max_length=512, description="Messages of this session alone.")] = None


class Search(Input):
    """What to look for, and where."""

    domain: Annotated[
        Literal["archival_memory", "conversations", "all"],
        Field(description="What you kept for good, what was said in your conversations, or both."),
    ]
    query: Query
    limit: Limit = 10
    filters: Annotated[SearchFilters | None, Field(description="Which texts count, else all.")] = None


class SearchTool(MemoryTool):
    """The archive and the conversations of the agent that calls."""

    name = "search"
    description = "Searches what you kept for good and what was said in your conversations, by words: the best first."
    examples = (
        {"domain": "all", "query": "green tea"},
        {"domain": "conversations", "query": "tea", "limit": 5, "filters": {"since": "2026-03-01"}},
    )
    safety_tier = SafetyTier.READ_ONLY
    side_effects = frozenset({SideEffect.DB_READ})
    determinism = Determinism.DETERMINISTIC
    tool_rules = (ToolRule("search", ContinueLoop()),)
    texts = frozenset({"query", "filters"})
    output_schema = FOUND
    input_model = Search

    async def run(self, arguments: Search, context: ToolExecutionContext) -> JsonValue:
        """Give what has words of the query."""
        filters = arguments.filters or SearchFilters()
        hits = await context.require_blocks().search(
            arguments.query,
            agent_id=context.agent_id,
            user_id=context.user_id,
            kinds=_KINDS[arguments.domain],
            limit=arguments.limit,
            since=_moment(filters.since, time.min),
            until=_moment(filters.until, time.max),
            role=filters.role,
            session_id=filters.session,
        )
        return search_result(hits)


def _moment(text: str | None, at: time) -> float | None:
    """Return seconds since 1970, in UTC unless the text says otherwise; ``at`` is the time within a whole day. Raises
    ToolFailure.
    """
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        if len(text) <= len("2026-03-01"):
            moment = datetime.combine(moment, at)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        words = "`since` and `until` are days or times as in 2026-03-01 or 2026-03-01T12:00:00Z"
        raise ToolFailure(words, code="bad-value") from None


MAX_NOTE_CHARS = 4_000
"""One note fits into a result as a whole."""
_BY_WORDS = "; only words were compared, since no model for meanings is installed"
_NEAREST = ", none for certain: nothing means the same, and these come nearest"
_NOTHING_SAID = "; the conversation could not be searched"
NoteId = Annotated[str, Field(min_length=1, max_length=64, description="The `note_id` of the note.")]
Content = Annotated[
    str, Field(min_length=1, max_length=MAX_NOTE_CHARS, description="The text of the note; it has to speak for itself.")
]


class NoteTool(ObjectTool, abstract=True):
    """A tool on the notes of the call's user: they are the user's alone, so that no capability is needed."""

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
        said = await _search_session(arguments, context) if arguments.include_conversation else []
        found = await notes.search(arguments.query, user_id=user_id, top_k=arguments.top_k, said=said or ())
        if not isinstance(found, dict) or not isinstance(hits := found["hits"], list):
            raise ToolFailure("the notes gave no list", code="bad-result")
        message = plural(len(hits), "result") if hits else "nothing fits"
        message += "" if found["sure"] else _NEAREST
        message += "" if found["by_meaning"] else _BY_WORDS
        return success(message + (_NOTHING_SAID if said is None else ""), hits)


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
        """Append the note."""
        return Assessment(Action.APPEND, diff=blocks.diff_text("new note", "", text_of(arguments, "content")))

    async def run(self, arguments: MemorySave, context: ToolExecutionContext) -> JsonValue:
        """Keep it."""
        user_id = context.require_user()
        note_id = await context.require_notes().save(arguments.content, user_id=user_id)
        return success("the note is kept", {"note_id": note_id})


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
        """Overwrite the note."""
        text = text_of(arguments, "content")
        return Assessment(Action.OVERWRITE, later=Later(partial(_change_of, arguments, context, text=text)))

    async def run(self, arguments: MemoryUpdate, context: ToolExecutionContext) -> JsonValue:
        """Change it."""
        user_id = context.require_user()
        await context.require_notes().update(arguments.note_id, arguments.content, user_id=user_id)
        return success("the note has the new text", {"note_id": arguments.note_id})


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
        """Delete the note, and show its text to the person who is asked."""
        return Assessment(Action.DELETE, later=Later(partial(_change_of, arguments, context, text="")))

    async def run(self, arguments: MemoryDelete, context: ToolExecutionContext) -> JsonValue:
        """Forget it."""
        user_id = context.require_user()
        await context.require_notes().delete(arguments.note_id, user_id=user_id)
        return success("the note is deleted")


async def _search_session(arguments: MemorySearch, context: ToolExecutionContext) -> list[str] | None:
    """Return the session's messages with words of the query, the best first; None if they cannot be searched."""
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
    """Return the difference of another text to the note. Raises ToolFailure for a missing note."""
    note_id = text_of(arguments, "note_id")
    return blocks.diff_text(note_id, context.require_notes().content(note_id, user_id=context.require_user()), text)
