"""Rules for a block's record: label, description, limit, what an edit needs, what a note changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import is_text
from gatewright.base.printable import is_visible
from gatewright.blocks.edit import Edit, is_addition
from gatewright.blocks.schema import MAX_CHARS
from gatewright.memory.record import BlockRecord, BlockType
from gatewright.policy.verdict import Action

Note = Literal["pin", "unpin", "archive", "unarchive"]
PIN, ARCHIVE, UNARCHIVE, SETTINGS = "pin", "archive", "unarchive", "settings"
_MAX_LABEL = 512
_MAX_DESCRIPTION = 4096


def action_of(edit: Edit) -> Action:
    """What an edit does to a block: an append adds, everything else (undo and redo too) overwrites."""
    return Action.APPEND if is_addition(edit) else Action.OVERWRITE


def noted(record: BlockRecord, kind: Note, now: float) -> BlockRecord:
    """The record after it was pinned, unpinned, archived or taken out of there. Raises ToolFailure."""
    if kind == ARCHIVE:
        if record.source_id:
            raise ToolFailure("this block stands for a file, and files are not archived", code="of-a-source")
        if record.type is BlockType.CORE:
            raise ToolFailure("a core block stays in context: it cannot be archived", code="core-block")
        if record.type is not BlockType.WORKING:
            raise ToolFailure(
                f"only working blocks are archived, and this is a block of type {record.type}", code="wrong-type"
            )
        return replace(record, type=BlockType.ARCHIVAL, pinned=False, archived_at=now)
    if kind == UNARCHIVE:
        require_archived(record)
        return replace(record, type=BlockType.WORKING, archived_at=None)
    if kind == PIN:
        refuse_archived(record)
    return replace(record, pinned=kind == PIN)


def refuse_archived(record: BlockRecord) -> None:
    """Raises ToolFailure for a block that was put away."""
    if record.type is BlockType.ARCHIVAL:
        raise ToolFailure("this block was archived: it can be read, and is not changed any more", code="archived")


def require_archived(record: BlockRecord) -> None:
    """Raises ToolFailure for a block that was not put away."""
    if record.type is not BlockType.ARCHIVAL:
        raise ToolFailure(f"this block is not archived: it is of type {record.type}", code="wrong-type")


def is_label(text: str) -> bool:
    """Whether a block may have that label, those of files aside."""
    return 0 < len(text) <= _MAX_LABEL and is_visible(text) and text == text.strip()


NO_LABEL = f"a label is 1 to {_MAX_LABEL} characters that can be seen"


def limit_of(limit: int | None) -> int | None:
    """A limit of characters; None for none. Raises ToolFailure."""
    if limit is not None and not 0 <= limit <= MAX_CHARS:
        raise ToolFailure(f"a limit is 1 to {MAX_CHARS:,} characters, or 0 for none of its own", code="bad-limit")
    return limit or None


def check_description(text: str) -> None:
    """Raises ToolFailure (``bad-description``) for what cannot describe a block."""
    if len(text) > _MAX_DESCRIPTION or not is_text(text):
        raise ToolFailure(f"a description is text of at most {_MAX_DESCRIPTION:,} characters", code="bad-description")
