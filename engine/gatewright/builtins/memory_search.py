"""The ``memory_search`` tool: the notes of the user that fit a query. It does no I/O itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins.note import NoteTool
from gatewright.builtins.result import done
from gatewright.builtins.rooted import Input, plural
from gatewright.policy.permission import Action
from gatewright.policy.target import Assessment
from gatewright.policy.tier import SafetyTier
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import ResourceBounds, SideEffect

_BY_WORDS = "; only words were compared, since no model for meanings is installed"


class MemorySearch(Input):
    """What to look for."""

    query: Annotated[str, Field(min_length=1, max_length=1_000, description="What the notes should be about.")]
    top_k: Annotated[int, Field(ge=1, le=20, description="How many notes at most.")] = 5


class MemorySearchTool(NoteTool):
    """Finds notes."""

    name = "memory_search"
    description = "Searches the notes that are kept for the user, by meaning and by words; the best ones come first."
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
        user_id = context.require_user()
        found = await context.require_notes().search(arguments.query, user_id=user_id, top_k=arguments.top_k)
        if not isinstance(found, dict) or not isinstance(hits := found["hits"], list):
            raise ToolFailure("the notes gave no list", code="bad-result")
        what = plural(len(hits), "note fits", "notes fit") if hits else "no note fits"
        return done(what if found["by_meaning"] else what + _BY_WORDS, hits)
