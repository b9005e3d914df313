"""What the tools on blocks have in common: the label, edits and notes, the words for a file without a block. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins.result import COUNT, FLAG, NUMBER, TEXT, ObjectTool, answer, either, fields, rows
from gatewright.policy.target import FILE_LABEL
from gatewright.policy.verdict import SafetyTier
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import Determinism, ResourceBounds, SideEffect
from gatewright.tools.parameter import LabelParameter

if TYPE_CHECKING:
    from gatewright.blocks.edit import Edit
    from gatewright.memory.blockrule import Note

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
    """A tool on the memory of the agent that calls, where levels decide and no capability is needed.

    So it is with files that have a block: an attached source implies access by these tools.
    """

    safety_tier = SafetyTier.SIDE_EFFECTING
    side_effects = frozenset({SideEffect.DB_READ, SideEffect.DB_WRITE})
    determinism = Determinism.NON_DETERMINISTIC
    resource_bounds = ResourceBounds(timeout_s=15.0)
    required_capabilities = frozenset[str]()


def no_file_block(label: str, failure: ToolFailure) -> ToolFailure:
    """The failure, in better words where the label is that of a file which has no block yet."""
    if failure.code == "unknown-block" and label.startswith(FILE_LABEL):
        return ToolFailure("this file has no block yet: its text has to be taken into one first", code="no-block")
    return failure


async def edited(context: ToolExecutionContext, label: str, edit: Edit) -> JsonValue:
    """Do an edit as the call was allowed to; what became of the block. Raises ToolFailure."""
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


async def noted(context: ToolExecutionContext, label: str, note: Note) -> JsonValue:
    """The same for a change of what is known about a block."""
    try:
        return await context.require_blocks().note(
            label, note, agent_id=context.agent_id, granted=context.granted, approved=context.approved
        )
    except ToolFailure as failure:
        raise no_file_block(label, failure) from None
