"""The ``context`` tool: blocks in context, for agents that were made for it before `block`. It does no I/O itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins.blockplace import EDITED, NOTED, Label, MemoryTool, edited, noted
from gatewright.builtins.result import TEXT, answer, done, fields, text_argument, text_of
from gatewright.policy.rule import ContinueLoop, ToolRule
from gatewright.policy.target import Assessment
from gatewright.policy.verdict import Action
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.decorator import operation

if TYPE_CHECKING:
    from gatewright.blocks.edit import Edit
    from gatewright.memory.blockrule import Note

Value = Annotated[str, Field(description="What to add: to a text exactly this, for a list or log one item.")]
Old = Annotated[str, Field(min_length=1, description="The text to look for.")]
New = Annotated[str, Field(description="What to put there instead; empty takes it out.")]
_NOTES: dict[str, Note] = {"archive": "archive", "load_from_archival": "unarchive"}


class ContextTool(MemoryTool):
    """Blocks in context by their labels. New agents are given `block` and `block_edit`."""

    name = "context"
    description = "Works with the blocks that you have in context."
    operation_field = "operation"
    outmoded = True
    examples = (
        {"operation": "append", "label": "notes", "value": "One more line."},
        {"operation": "replace", "label": "notes", "old": "tea", "new": "coffee"},
        {"operation": "archive", "label": "notes"},
        {"operation": "load_from_archival", "label": "notes"},
        {"operation": "swap", "archive": "notes", "load": "plans"},
    )
    tool_rules = (ToolRule("context", ContinueLoop()),)
    texts = frozenset({"value", "old", "new"})

    @operation(actions=(Action.APPEND,), output_schema=EDITED)
    async def append(self, context: ToolExecutionContext, label: Label, value: Value) -> JsonValue:
        """Add the value at the end of a block."""
        from gatewright.blocks.edit import Append

        return done(f"the value was added to `{label}`", await edited(context, label, Append(value)))

    @operation(actions=(Action.OVERWRITE,), output_schema=EDITED)
    async def replace(self, context: ToolExecutionContext, label: Label, old: Old, new: New) -> JsonValue:
        """Put the new text where the old one stands first."""
        from gatewright.blocks.edit import Replace

        return done(f"the new text is in `{label}`", await edited(context, label, Replace(old, new)))

    @operation(actions=(Action.OVERWRITE,), output_schema=NOTED)
    async def archive(self, context: ToolExecutionContext, label: Label) -> JsonValue:
        """Put a working block away."""
        return done(f"`{label}` is put away", await noted(context, label, "archive"))

    @operation(actions=(Action.OVERWRITE,), output_schema=NOTED)
    async def load_from_archival(self, context: ToolExecutionContext, label: Label) -> JsonValue:
        """Take a block out again that was put away."""
        return done(f"`{label}` is a working block again", await noted(context, label, "unarchive"))

    @operation(actions=(Action.OVERWRITE,), output_schema=answer(fields({"archived": TEXT, "loaded": TEXT})))
    async def swap(self, context: ToolExecutionContext, archive: Label, load: Label) -> JsonValue:
        """Put one block away and take another out, both or neither."""
        data = await context.require_blocks().swap(
            archive, load, agent_id=context.agent_id, granted=context.granted, approved=context.approved
        )
        return done(f"`{archive}` is put away, and `{load}` is a working block again", data)

    def assess(self, operation: str, arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> Assessment:
        """The action, and the change to the block."""
        from gatewright.blocks.edit import Append, Replace

        label = text_of(arguments, "label")
        change: Edit | Note | None = _NOTES.get(operation)
        if operation == "append":
            change = Append(text_of(arguments, "value"))
        elif operation == "replace":
            change = Replace(text_of(arguments, "old"), text_of(arguments, "new"))
        if change is not None:
            return context.require_blocks().assess(label, change, agent_id=context.agent_id)
        away, back = text_argument(arguments, "archive"), text_argument(arguments, "load")
        return Assessment(
            Action.OVERWRITE, diff=f"-{away}: working\n+{away}: archival\n-{back}: archival\n+{back}: working\n"
        )
