"""The ``block`` tool: blocks of memory and of files: what they hold and are, in context or not, put away.

It does no I/O itself. What the model is told names no operation outside that operation's own line, since any other may
be hidden from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins.blockplace import FILE_BLOCK, HELD, INFO, NOTED, Label, MemoryTool, noted
from gatewright.builtins.result import (
    TEXT,
    agreed,
    answer,
    done,
    either,
    fields,
    place,
    place_of_label,
    text_argument,
    text_of,
)
from gatewright.policy.rule import ContinueLoop, ToolRule
from gatewright.policy.target import FILE_LABEL, Assessment, Located
from gatewright.policy.verdict import Action, SafetyTier
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import SideEffect
from gatewright.tools.decorator import operation
from gatewright.tools.parameter import SourceParameter

if TYPE_CHECKING:
    from gatewright.memory.blockrule import Note

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
                return done(f"what `{at.relative}` holds", await sources.load(at))
            asked = context.agreed and agreed(context, lambda: sources.assess_load(at).change())
            return done(f"`{at.relative}` is in its block", await sources.load(at, asked=asked))
        data = await context.require_blocks().content(label, agent_id=context.agent_id)
        since = data.get("archived_at") if isinstance(data, dict) else None
        where = (
            f"; it was put away at {since}: it is read here, and out of context and unchanged until it is taken back"
        )
        return done(f"what `{label}` holds{where if since else ''}", data)

    @operation(actions=(Action.OVERWRITE,), output_schema=NOTED)
    async def pin(self, context: ToolExecutionContext, label: Label) -> JsonValue:
        """Keep a block in context from now on."""
        return done(f"`{label}` stays in context", await noted(context, label, "pin"))

    @operation(actions=(Action.OVERWRITE,), output_schema=NOTED)
    async def unpin(self, context: ToolExecutionContext, label: Label) -> JsonValue:
        """No longer keep a block in context."""
        return done(f"`{label}` need not stay in context", await noted(context, label, "unpin"))

    @operation(actions=(Action.OVERWRITE,), output_schema=NOTED)
    async def archive(self, context: ToolExecutionContext, label: Label) -> JsonValue:
        """Put a working block away; it can still be found. Core blocks, logs and those of files are refused."""
        return done(f"`{label}` is put away", await noted(context, label, "archive"))

    @operation(tier=SafetyTier.READ_ONLY, actions=(Action.READ,), output_schema=answer(INFO))
    async def info(self, context: ToolExecutionContext, label: Label) -> JsonValue:
        """Give what is known of a block: schema, type, permission, size, whether it stays in context."""
        if not label.startswith(FILE_LABEL):
            return done(f"block `{label}`", await context.require_blocks().info(label, agent_id=context.agent_id))
        at = _file_at(context, label, None)
        data = await context.require_sources().block_info(at)
        if context.ports.blocks is not None and isinstance(data, dict):
            known = await context.ports.blocks.info(label, agent_id=context.agent_id)
            data = {**known, **data} if isinstance(known, dict) else data
        return done(f"block of `{at.relative}`", data)

    def assess(self, operation: str, arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> Assessment:
        """The action, and what speaks for asking. Raises ToolFailure for a refused place."""
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
