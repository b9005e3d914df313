"""The ``source`` tool: the sources and streams of the agent, and pausing a stream. It does no I/O itself."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins.result import COUNT, TEXT, ObjectTool, answer, done, either, fields, rows
from gatewright.policy.verdict import Action, SafetyTier
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import Determinism, ResourceBounds
from gatewright.tools.decorator import operation

SourceId = Annotated[str, Field(min_length=1, max_length=256, description="The id of the source.")]

_STATE = fields({"source_id": TEXT, "type": TEXT, "state": TEXT}, {"subscribers": COUNT, "problem": TEXT})


class SourceTool(ObjectTool):
    """Sources by their ids."""

    name = "source"
    description = "Tells which sources of files and streams of changes you have, and what they do now."
    examples = (
        {"op": "list"},
        {"op": "status"},
        {"op": "pause", "source_id": "changes"},
        {"op": "resume", "source_id": "changes"},
    )
    safety_tier = SafetyTier.SIDE_EFFECTING
    determinism = Determinism.MAYBE
    texts = frozenset({"source_id"})
    resource_bounds = ResourceBounds(timeout_s=10.0)
    required_capabilities = frozenset[str]()  # an attached source implies access

    @operation(actions=(Action.READ,), output_schema=answer(_STATE))
    async def pause(self, context: ToolExecutionContext, source_id: SourceId) -> JsonValue:
        """Have a stream tell nothing for now; of files the state is given, which stays."""
        row = context.require_streams().pause(source_id, agent_id=context.agent_id)
        return done(_said(row), row)

    @operation(actions=(Action.READ,), output_schema=answer(_STATE))
    async def resume(self, context: ToolExecutionContext, source_id: SourceId) -> JsonValue:
        """Let a stream go on that tells nothing; of files the state is given, which stays."""
        row = context.require_streams().resume(source_id, agent_id=context.agent_id)
        return done(_said(row), row)

    @operation(tier=SafetyTier.READ_ONLY, actions=(Action.READ,), output_schema=answer(either(_STATE, rows(_STATE))))
    async def status(self, context: ToolExecutionContext, source_id: SourceId | None = None) -> JsonValue:
        """Give the state of one source, or of all."""
        rows = context.require_streams().rows(agent_id=context.agent_id)
        if source_id is None:
            return done("; ".join(map(_said, rows)) or "no source", rows)
        row = next((one for one in rows if isinstance(one, dict) and one["source_id"] == source_id), None)
        if row is None:
            raise ToolFailure("there is no source of that id", code="no-source")
        return done(_said(row), row)

    @operation(
        tier=SafetyTier.READ_ONLY,
        actions=(Action.READ,),
        name="list",
        output_schema=answer(rows(fields({"source_id": TEXT, "type": TEXT}))),
    )
    async def list_sources(self, context: ToolExecutionContext) -> JsonValue:
        """Give the id and type of every source."""
        rows = [row for row in context.require_streams().rows(agent_id=context.agent_id) if isinstance(row, dict)]
        named: list[JsonValue] = [{"source_id": row["source_id"], "type": row["type"]} for row in rows]
        return done(f"{len(named)} of your sources", named)


def _said(row: JsonValue) -> str:
    return f"`{row['source_id']}` is {row['state']}" if isinstance(row, dict) else ""
