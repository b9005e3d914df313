"""The ``block_edit`` tool: changes to the content of memory blocks and file blocks.

A text for the model names another operation only in that operation's own line, since any may be hidden.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import Field

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.blocks.edit import Append, Edit, Patch, Redo, Replace, SetField, Undo
from gatewright.builtins.block import EDITED, Label, MemoryTool, apply_edit
from gatewright.builtins.result import success, text_argument, text_of
from gatewright.policy.rule import ContinueLoop, ToolRule
from gatewright.policy.target import Assessment
from gatewright.policy.verdict import Action
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import Determinism
from gatewright.tools.decorator import operation

Mode = Literal["first", "all", "nth", "regex"]
Content = Annotated[
    str,
    Field(description="What to add: to a text exactly this; for a list or log one item, JSON unless items are texts."),
]
Old = Annotated[
    str, Field(min_length=1, description="The text to look for; in mode `regex` a pattern (RE2), its first match.")
]
New = Annotated[
    str,
    Field(description="What to put there instead; empty takes it out. In mode `regex` \\1 to \\9 stand for groups."),
]
ModeName = Annotated[Mode, Field(description="Which place: the first one, all of them, or the one that `nth` says.")]
Nth = Annotated[int, Field(ge=1, description="Which place, counted from 1; for modes `nth` and `regex`.")]
PatchText = Annotated[
    str,
    Field(min_length=1, description="A unified diff of the text; lines that it keeps or takes out have to be there."),
]
FieldName = Annotated[str, Field(min_length=1, description="Name of the field; without a section, of a whole section.")]
Value = Annotated[Any, Field(description="The new value, of the field's type; null takes it away.")]
SectionName = Annotated[str, Field(description="Which section, in a block that has sections.")]


class BlockEditTool(MemoryTool):
    """Edits of blocks by their labels."""

    name = "block_edit"
    description = "Changes what a block holds. A block that stands for a file is changed there, not yet on disk."
    examples = (
        {"op": "append", "label": "notes", "content": "One more line."},
        {"op": "replace", "label": "notes", "old": "tea", "new": "coffee", "mode": "all"},
        {"op": "patch", "label": "notes", "patch": "@@ -1 +1 @@\n-old\n+new\n"},
        {"op": "set_field", "label": "notes", "field": "city", "value": "Oslo"},
        {"op": "undo", "label": "notes"},
        {"op": "redo", "label": "notes"},
    )
    determinism = Determinism.DETERMINISTIC
    tool_rules = (ToolRule("block_edit", ContinueLoop()),)
    texts = frozenset({"content", "old", "new", "patch", "field", "value", "section"})

    @operation(actions=(Action.APPEND,), output_schema=EDITED)
    async def append(
        self, context: ToolExecutionContext, label: Label, content: Content, section: SectionName | None = None
    ) -> JsonValue:
        """Add the content at the end of a text, list or log."""
        return await _edit(context, label, Append(content, section), "the content was added at the end of")

    @operation(actions=(Action.OVERWRITE,), output_schema=EDITED)
    async def replace(
        self,
        context: ToolExecutionContext,
        label: Label,
        old: Old,
        new: New,
        mode: ModeName = "first",
        nth: Nth | None = None,
        section: SectionName | None = None,
    ) -> JsonValue:
        """Put the new text where the old one stands in a text."""
        return await _edit(context, label, _replace(old, new, mode, nth, section), "the new text is in")

    @operation(actions=(Action.OVERWRITE,), capabilities=("AdvancedEdit",), output_schema=EDITED)
    async def patch(
        self, context: ToolExecutionContext, label: Label, patch: PatchText, section: SectionName | None = None
    ) -> JsonValue:
        """Apply a unified diff to a text, all of it or nothing."""
        return await _edit(context, label, Patch(patch, section), "the diff was applied to")

    @operation(actions=(Action.OVERWRITE,), output_schema=EDITED)
    async def set_field(
        self,
        context: ToolExecutionContext,
        label: Label,
        field: FieldName,
        value: Value,
        section: SectionName | None = None,
    ) -> JsonValue:
        """Give a field of a block with fields a value."""
        return await _edit(context, label, SetField(field, value, section), f"`{field}` is set in")

    @operation(actions=(Action.OVERWRITE,), output_schema=EDITED)
    async def undo(self, context: ToolExecutionContext, label: Label) -> JsonValue:
        """Take back your own last change that still stands; what others did stays."""
        return await _edit(context, label, Undo(), "your last change was taken back in")

    @operation(actions=(Action.OVERWRITE,), output_schema=EDITED)
    async def redo(self, context: ToolExecutionContext, label: Label) -> JsonValue:
        """Do again what you took back last."""
        return await _edit(context, label, Redo(), "what you took back was done again in")

    def assess(self, operation: str, arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> Assessment:
        """Return the action, and the change to the content. Raises ToolFailure for arguments that contradict each
        other.
        """
        edit, label = _edit_of(operation, arguments), text_argument(arguments, "label")
        if edit is None or label is None:
            return super().assess(operation, arguments, context)
        return context.require_blocks().assess(label, edit, agent_id=context.agent_id)


async def _edit(context: ToolExecutionContext, label: str, edit: Edit, what: str) -> JsonValue:
    data = await apply_edit(context, label, edit)
    changed = isinstance(data, dict) and data.get("changed") is True
    return success(f"{what} `{label}`" if changed else f"`{label}` is as it was: nothing had to be changed", data)


def _edit_of(operation: str, arguments: Mapping[str, JsonValue]) -> Edit | None:
    """Return the edit of a call; None for an operation that edits nothing."""
    section = text_argument(arguments, "section")
    match operation:
        case "append":
            return Append(arguments.get("content"), section)
        case "replace":
            old, new = text_of(arguments, "old"), text_of(arguments, "new")
            mode, nth = arguments.get("mode", "first"), arguments.get("nth")
            return _replace(old, new, cast("Mode", mode), nth if isinstance(nth, int) else None, section)
        case "patch":
            return Patch(text_of(arguments, "patch"), section)
        case "set_field":
            return SetField(text_of(arguments, "field"), arguments.get("value"), section)
        case "undo":
            return Undo()
        case "redo":
            return Redo()
        case _:
            return None


def _replace(old: str, new: str, mode: Mode, nth: int | None, section: str | None) -> Replace:
    if mode == "nth" and nth is None:
        raise ToolFailure("mode `nth` needs `nth`, the number of the place", code="bad-arguments")
    if mode in {"first", "all"} and nth is not None:
        raise ToolFailure(f"`nth` does not go with mode `{mode}`", code="bad-arguments")
    return Replace(old, new, everywhere=mode == "all", nth=nth, regex=mode == "regex", section=section)
