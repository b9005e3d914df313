"""The ``search`` tool: what an agent kept and what was said, by words, in one place or all. It does no I/O itself."""

from __future__ import annotations

from datetime import UTC, datetime, time
from typing import Annotated, Literal

from pydantic import Field

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins.blockplace import FOUND, MemoryTool
from gatewright.builtins.recall import Limit, Query
from gatewright.builtins.result import found
from gatewright.builtins.rooted import Input
from gatewright.policy.rule import ContinueLoop, ToolRule
from gatewright.policy.verdict import SafetyTier
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import Determinism, SideEffect

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
        return found(hits)


def _moment(text: str | None, at: time) -> float | None:
    """Seconds since 1970, in UTC where nothing else is said; of a whole day ``at`` that time. Raises ToolFailure."""
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
