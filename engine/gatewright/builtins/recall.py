"""The ``recall`` tool, version 2: entries that are kept for good, and finding them again. It does no I/O itself."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins.blockplace import FOUND, MemoryTool
from gatewright.builtins.result import TEXT, answer, done, fields, found
from gatewright.policy.rule import ContinueLoop, ToolRule
from gatewright.policy.verdict import Action, SafetyTier
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.decorator import operation

Content = Annotated[str, Field(min_length=1, max_length=10_000, description="The text to keep. It never changes.")]
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
    async def insert(
        self, context: ToolExecutionContext, content: Content, metadata: Metadata | None = None
    ) -> JsonValue:
        """Keep a new entry."""
        made = await context.require_blocks().insert_entry(
            content, metadata, agent_id=context.agent_id, granted=context.granted
        )
        return done("the entry is kept", made)

    @operation(tier=SafetyTier.READ_ONLY, actions=(Action.READ,), output_schema=FOUND)
    async def search(self, context: ToolExecutionContext, query: Query, limit: Limit = 10) -> JsonValue:
        """Find entries, and blocks that were put away, by their words: the best first."""
        kinds = ("archive", "block")
        return found(await context.require_blocks().search(query, agent_id=context.agent_id, kinds=kinds, limit=limit))
