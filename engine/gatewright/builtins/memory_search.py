"""The ``memory_search`` tool: the notes of the user that fit a query, and what was said. It does no I/O itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from gatewright.base.errors import ToolFailure, WorkspaceError
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.plural import plural
from gatewright.builtins.note import NoteTool
from gatewright.builtins.result import done
from gatewright.builtins.rooted import Input
from gatewright.policy.permission import Action
from gatewright.policy.target import Assessment
from gatewright.policy.tier import SafetyTier
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import ResourceBounds, SideEffect

_BY_WORDS = "; only words were compared, since no model for meanings is installed"
_NOTHING_SAID = "; the conversation could not be searched"


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
    input_model = MemorySearch

    def assess(
        self,
        operation: str,  # noqa: ARG002
        arguments: Mapping[str, JsonValue],  # noqa: ARG002
        context: ToolExecutionContext,  # noqa: ARG002
    ) -> Assessment:
        """Notes are read."""
        return Assessment(Action.READ)

    async def run(self, arguments: MemorySearch, context: ToolExecutionContext) -> JsonValue:
        """Give what fits."""
        user_id, notes = context.require_user(), context.require_notes()
        said = await _said(arguments, context) if arguments.include_conversation else []
        found = await notes.search(arguments.query, user_id=user_id, top_k=arguments.top_k, said=said or ())
        if not isinstance(found, dict) or not isinstance(hits := found["hits"], list):
            raise ToolFailure("the notes gave no list", code="bad-result")
        message = plural(len(hits), "result") if hits else "nothing fits"
        message += "" if found["by_meaning"] else _BY_WORDS
        return done(message + (_NOTHING_SAID if said is None else ""), hits)


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
