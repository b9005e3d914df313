"""The tools on blocks of memory and of files: ``block`` and, from before it, ``context``; ``block_edit``.

The tools decide and describe; the ports do the work. A text for the model names another operation only in that
operation's own line, since any may be hidden.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import Field

from gatewright import blocks
from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins.result import (
    COUNT,
    FLAG,
    NUMBER,
    TEXT,
    ObjectTool,
    agreement,
    answer,
    either,
    fields,
    place,
    place_of_label,
    rows,
    success,
    text_argument,
    text_of,
)
from gatewright.memory.blocktable import Note
from gatewright.policy.rule import ContinueLoop, ToolRule
from gatewright.policy.target import FILE_LABEL, Assessment, Located
from gatewright.policy.verdict import Action, SafetyTier
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import Determinism, ResourceBounds, SideEffect
from gatewright.tools.parameter import LabelParameter, SourceParameter
from gatewright.tools.registry import operation

Label = Annotated[
    str, LabelParameter(), Field(description="Label of the block; those of files begin with `file:`.", max_length=4096)
]


_SIZE = {"chars": COUNT, "items": COUNT}
_STEPS = {"can_undo": FLAG, "can_redo": FLAG}
_KNOWN = {
    "label": TEXT,
    "description": TEXT,
    "type": TEXT,
    "schema": {"type": "object"},
    "permission": TEXT,
    "pinned": FLAG,
    **_SIZE,
    "char_limit": {"type": ["integer", "null"]},
    **_STEPS,
}
_ARCHIVED = {"archived_at": TEXT}
FILE_BLOCK = {"label": TEXT, "size": COUNT, "lines": COUNT, "unsaved": FLAG}
EDITED = answer(fields({"label": TEXT, **_SIZE, **_STEPS, "changed": FLAG}))
"""The answer to an edit of a block."""
NOTED = answer(fields({**_KNOWN, "changed": FLAG}, _ARCHIVED))
"""The answer to a change of the facts about a block."""
KNOWN = answer(fields(_KNOWN, _ARCHIVED))
HELD = fields({**_KNOWN, "content": TEXT}, _ARCHIVED)
INFO = either(fields(_KNOWN, _ARCHIVED), fields(FILE_BLOCK, {**_KNOWN, **_ARCHIVED}))
_HIT = {"kind": TEXT, "score": NUMBER, "label": TEXT, "created_at": TEXT}
_SAID = {"id": TEXT, "role": TEXT, "session": TEXT, "metadata": {"type": "object"}, "content": TEXT, "snippet": TEXT}
FOUND = answer(fields({"hits": rows(fields(_HIT, {**_SAID, **_ARCHIVED}))}))
"""The answer to a search."""


class MemoryTool(ObjectTool, abstract=True):
    """A tool on the memory of its caller, where levels decide and no capability is needed.

    The same holds for files with a block: an attached source implies access by these tools.
    """

    safety_tier = SafetyTier.SIDE_EFFECTING
    side_effects = frozenset({SideEffect.DB_READ, SideEffect.DB_WRITE})
    determinism = Determinism.NON_DETERMINISTIC
    resource_bounds = ResourceBounds(timeout_s=15.0)
    required_capabilities = frozenset[str]()


def no_file_block(label: str, failure: ToolFailure) -> ToolFailure:
    """Explain the failure better if the label is that of a file without a block."""
    if failure.code == "unknown-block" and label.startswith(FILE_LABEL):
        return ToolFailure("this file has no block yet: its text has to be taken into one first", code="no-block")
    return failure


async def apply_edit(context: ToolExecutionContext, label: str, edit: blocks.Edit) -> JsonValue:
    """Do an edit as the call allows, and return the block's state. Raises ToolFailure."""
    try:
        return await context.require_blocks().edit(
            label,
            edit,
            agent_id=context.agent_id,
            granted=context.granted,
            approved=context.approved,
            approved_change=context.approved_change,
        )
    except ToolFailure as failure:
        raise no_file_block(label, failure) from None


async def apply_note(context: ToolExecutionContext, label: str, note: Note) -> JsonValue:
    """Do a change of the facts about a block in the same way."""
    try:
        return await context.require_blocks().note(
            label, note, agent_id=context.agent_id, granted=context.granted, approved=context.approved
        )
    except ToolFailure as failure:
        raise no_file_block(label, failure) from None


SourceId = Annotated[
    str,
    SourceParameter(),
    Field(description="A source: then the label may be the path of one of its files, or one of its keys, too."),
]
_OF_PROGRAM = fields({"source_id": TEXT, "label": TEXT, "content": TEXT})
"""A text of a source that the program brings."""
_NOTES: dict[str, Note] = {"pin": "pin", "unpin": "unpin", "archive": "archive"}


class BlockTool(MemoryTool):
    """Blocks by their labels."""

    name = "block"
    description = "Works with blocks, the texts, fields, lists and logs that are kept for you under a label."
    examples = (
        {"op": "load", "label": "notes"},
        {"op": "pin", "label": "notes"},
        {"op": "unpin", "label": "notes"},
        {"op": "archive", "label": "notes"},
        {"op": "info", "label": "notes"},
    )
    side_effects = frozenset({SideEffect.DB_READ, SideEffect.DB_WRITE, SideEffect.FS_READ})
    tool_rules = (ToolRule("block", ContinueLoop()),)

    @operation(actions=(Action.READ,), output_schema=answer(either(HELD, fields(FILE_BLOCK), _OF_PROGRAM)))
    async def load(self, context: ToolExecutionContext, label: Label, source_id: SourceId | None = None) -> JsonValue:
        """Bring what a block holds into your context; the block of a file takes the text from disk first."""
        if _is_file(label, source_id):
            at = _file_at(context, label, source_id)
            sources = context.require_sources()
            if sources.own(at.source_id) is not None:
                return success(f"what `{at.relative}` holds", await sources.load(at))
            asked = context.agreed and agreement(context, lambda: sources.assess_load(at).change())
            return success(f"`{at.relative}` is in its block", await sources.load(at, asked=asked))
        data = await context.require_blocks().content(label, agent_id=context.agent_id)
        since = data.get("archived_at") if isinstance(data, dict) else None
        where = (
            f"; it was put away at {since}: it is read here, and out of context and unchanged until it is taken back"
        )
        return success(f"what `{label}` holds{where if since else ''}", data)

    @operation(actions=(Action.OVERWRITE,), output_schema=NOTED)
    async def pin(self, context: ToolExecutionContext, label: Label) -> JsonValue:
        """Keep a block in context from now on."""
        return success(f"`{label}` stays in context", await apply_note(context, label, "pin"))

    @operation(actions=(Action.OVERWRITE,), output_schema=NOTED)
    async def unpin(self, context: ToolExecutionContext, label: Label) -> JsonValue:
        """No longer keep a block in context."""
        return success(f"`{label}` need not stay in context", await apply_note(context, label, "unpin"))

    @operation(actions=(Action.OVERWRITE,), output_schema=NOTED)
    async def archive(self, context: ToolExecutionContext, label: Label) -> JsonValue:
        """Put a working block away; it can still be found. Core blocks, logs and those of files are refused."""
        return success(f"`{label}` is put away", await apply_note(context, label, "archive"))

    @operation(tier=SafetyTier.READ_ONLY, actions=(Action.READ,), output_schema=answer(INFO))
    async def info(self, context: ToolExecutionContext, label: Label) -> JsonValue:
        """Give what is known of a block: schema, type, permission, size, whether it stays in context."""
        if not label.startswith(FILE_LABEL):
            return success(f"block `{label}`", await context.require_blocks().info(label, agent_id=context.agent_id))
        at = _file_at(context, label, None)
        data = await context.require_sources().block_info(at)
        if context.ports.blocks is not None and isinstance(data, dict):
            known = await context.ports.blocks.info(label, agent_id=context.agent_id)
            data = {**known, **data} if isinstance(known, dict) else data
        return success(f"block of `{at.relative}`", data)

    def assess(self, operation: str, arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> Assessment:
        """Return the action, with the reason to ask. Raises ToolFailure for a refused place."""
        label, source_id = text_of(arguments, "label"), text_argument(arguments, "source_id")
        note = _NOTES.get(operation)
        if note is not None:
            return context.require_blocks().assess(label, note, agent_id=context.agent_id)
        if operation == "load" and _is_file(label, source_id):
            return context.require_sources().assess_load(_file_at(context, label, source_id))
        return super().assess(operation, arguments, context)


def _is_file(label: str, source_id: str | None) -> bool:
    return source_id is not None or label.startswith(FILE_LABEL)


def _file_at(context: ToolExecutionContext, label: str, source_id: str | None) -> Located:
    if source_id is not None and not label.startswith(FILE_LABEL):
        sources = context.require_sources()
        return place(sources.locate(label, source_id=source_id, allowed=context.all_source_ids))
    return place_of_label(context, label, source_id)


Value = Annotated[str, Field(description="What to add: to a text exactly this, for a list or log one item.")]
Old = Annotated[str, Field(min_length=1, description="The text to look for.")]
New = Annotated[str, Field(description="What to put there instead; empty takes it out.")]
_CONTEXT_NOTES: dict[str, Note] = {"archive": "archive", "load_from_archival": "unarchive"}


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
        return success(f"the value was added to `{label}`", await apply_edit(context, label, blocks.Append(value)))

    @operation(actions=(Action.OVERWRITE,), output_schema=EDITED)
    async def replace(self, context: ToolExecutionContext, label: Label, old: Old, new: New) -> JsonValue:
        """Put the new text where the old one stands first."""
        return success(f"the new text is in `{label}`", await apply_edit(context, label, blocks.Replace(old, new)))

    @operation(actions=(Action.OVERWRITE,), output_schema=NOTED)
    async def archive(self, context: ToolExecutionContext, label: Label) -> JsonValue:
        """Put a working block away."""
        return success(f"`{label}` is put away", await apply_note(context, label, "archive"))

    @operation(actions=(Action.OVERWRITE,), output_schema=NOTED)
    async def load_from_archival(self, context: ToolExecutionContext, label: Label) -> JsonValue:
        """Take a block out again that was put away."""
        return success(f"`{label}` is a working block again", await apply_note(context, label, "unarchive"))

    @operation(actions=(Action.OVERWRITE,), output_schema=answer(fields({"archived": TEXT, "loaded": TEXT})))
    async def swap(self, context: ToolExecutionContext, archive: Label, load: Label) -> JsonValue:
        """Put one block away and take another out, both or neither."""
        data = await context.require_blocks().swap(
            archive, load, agent_id=context.agent_id, granted=context.granted, approved=context.approved
        )
        return success(f"`{archive}` is put away, and `{load}` is a working block again", data)

    def assess(self, operation: str, arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> Assessment:
        """Return the action, and the change to the block."""
        label = text_of(arguments, "label")
        change: blocks.Edit | Note | None = _CONTEXT_NOTES.get(operation)
        if operation == "append":
            change = blocks.Append(text_of(arguments, "value"))
        elif operation == "replace":
            change = blocks.Replace(text_of(arguments, "old"), text_of(arguments, "new"))
        if change is not None:
            return context.require_blocks().assess(label, change, agent_id=context.agent_id)
        away, back = text_argument(arguments, "archive"), text_argument(arguments, "load")
        return Assessment(
            Action.OVERWRITE, diff=f"-{away}: working\n+{away}: archival\n-{back}: archival\n+{back}: working\n"
        )


Mode = Literal["first", "all", "nth", "regex"]
Content = Annotated[
    str,
    Field(description="What to add: to a text exactly this; for a list or log one item, JSON unless items are texts."),
]
OldText = Annotated[
    str, Field(min_length=1, description="The text to look for; in mode `regex` a pattern (RE2), its first match.")
]
NewText = Annotated[
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
FieldValue = Annotated[Any, Field(description="The new value, of the field's type; null takes it away.")]
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
        return await _edit(context, label, blocks.Append(content, section), "the content was added at the end of")

    @operation(actions=(Action.OVERWRITE,), output_schema=EDITED)
    async def replace(
        self,
        context: ToolExecutionContext,
        label: Label,
        old: OldText,
        new: NewText,
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
        return await _edit(context, label, blocks.Patch(patch, section), "the diff was applied to")

    @operation(actions=(Action.OVERWRITE,), output_schema=EDITED)
    async def set_field(
        self,
        context: ToolExecutionContext,
        label: Label,
        field: FieldName,
        value: FieldValue,
        section: SectionName | None = None,
    ) -> JsonValue:
        """Give a field of a block with fields a value."""
        return await _edit(context, label, blocks.SetField(field, value, section), f"`{field}` is set in")

    @operation(actions=(Action.OVERWRITE,), output_schema=EDITED)
    async def undo(self, context: ToolExecutionContext, label: Label) -> JsonValue:
        """Take back your own last change that still stands; what others did stays."""
        return await _edit(context, label, blocks.Undo(), "your last change was taken back in")

    @operation(actions=(Action.OVERWRITE,), output_schema=EDITED)
    async def redo(self, context: ToolExecutionContext, label: Label) -> JsonValue:
        """Do again what you took back last."""
        return await _edit(context, label, blocks.Redo(), "what you took back was done again in")

    def assess(self, operation: str, arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> Assessment:
        """Return the action, and the change to the content. Raises ToolFailure for arguments that contradict each
        other.
        """
        edit, label = _edit_of(operation, arguments), text_argument(arguments, "label")
        if edit is None or label is None:
            return super().assess(operation, arguments, context)
        return context.require_blocks().assess(label, edit, agent_id=context.agent_id)


async def _edit(context: ToolExecutionContext, label: str, edit: blocks.Edit, what: str) -> JsonValue:
    data = await apply_edit(context, label, edit)
    changed = isinstance(data, dict) and data.get("changed") is True
    return success(f"{what} `{label}`" if changed else f"`{label}` is as it was: nothing had to be changed", data)


def _edit_of(operation: str, arguments: Mapping[str, JsonValue]) -> blocks.Edit | None:
    """Return the edit of a call; None for an operation that edits nothing."""
    section = text_argument(arguments, "section")
    match operation:
        case "append":
            return blocks.Append(arguments.get("content"), section)
        case "replace":
            old, new = text_of(arguments, "old"), text_of(arguments, "new")
            mode, nth = arguments.get("mode", "first"), arguments.get("nth")
            return _replace(old, new, cast("Mode", mode), nth if isinstance(nth, int) else None, section)
        case "patch":
            return blocks.Patch(text_of(arguments, "patch"), section)
        case "set_field":
            return blocks.SetField(text_of(arguments, "field"), arguments.get("value"), section)
        case "undo":
            return blocks.Undo()
        case "redo":
            return blocks.Redo()
        case _:
            return None


def _replace(old: str, new: str, mode: Mode, nth: int | None, section: str | None) -> blocks.Replace:
    if mode == "nth" and nth is None:
        raise ToolFailure("mode `nth` needs `nth`, the number of the place", code="bad-arguments")
    if mode in {"first", "all"} and nth is not None:
        raise ToolFailure(f"`nth` does not go with mode `{mode}`", code="bad-arguments")
    return blocks.Replace(old, new, everywhere=mode == "all", nth=nth, regex=mode == "regex", section=section)
