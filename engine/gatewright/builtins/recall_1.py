"""The ``recall`` tool, version 1: archived blocks by their labels, for agents that were made for it. It does no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins.blockplace import EDITED, HELD, KNOWN, Label, MemoryTool
from gatewright.builtins.result import TEXT, answer, done, fields, text_argument
from gatewright.policy.rule import ContinueLoop, ToolRule
from gatewright.policy.target import Assessment
from gatewright.policy.verdict import Action
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.decorator import operation
from gatewright.tools.parameter import LabelParameter

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
        return done(f"the text is kept under `{label}`", data)

    @operation(actions=(Action.APPEND,), output_schema=EDITED)
    async def append(self, context: ToolExecutionContext, label: Label, value: Value) -> JsonValue:
        """Add text at the end of what is kept under a label."""
        data = await context.require_blocks().append_archived(
            label, value, agent_id=context.agent_id, granted=context.granted, approved=context.approved
        )
        return done(f"the text was added to `{label}`", data)

    @operation(actions=(Action.READ,), output_schema=answer(HELD))
    async def read(self, context: ToolExecutionContext, label: Label) -> JsonValue:
        """Give what is kept under a label."""
        data = await context.require_blocks().content(label, agent_id=context.agent_id)
        return done(f"what `{label}` holds", data)

    @operation(actions=(Action.DELETE,), output_schema=answer(fields({"label": TEXT})))
    async def delete(self, context: ToolExecutionContext, label: Label) -> JsonValue:
        """Forget what is kept under a label."""
        data = await context.require_blocks().delete_archived(
            label, agent_id=context.agent_id, granted=context.granted, approved=context.approved
        )
        return done(f"`{label}` is forgotten", data)

    def assess(self, operation: str, arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> Assessment:
        """The action, with the text that is added, or the label that goes, for whoever is asked."""
        value, label = text_argument(arguments, "value"), text_argument(arguments, "label")
        change = f"-{label}\n" if value is None else "".join(f"+{line}\n" for line in value.splitlines())
        return Assessment(super().assess(operation, arguments, context).action, diff=change)
