"""Wraps the Loro documents behind blocks, so that no other package meets Loro; offers their schemas to programs.

The floors above take `blocks.NAME` from this door, so that a process that opens no block loads none of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.late import door

if TYPE_CHECKING:
    from gatewright.blocks.block import Block as Block
    from gatewright.blocks.block import TextBlock as TextBlock
    from gatewright.blocks.difftext import MergeConflict as MergeConflict
    from gatewright.blocks.difftext import diff_text as diff_text
    from gatewright.blocks.difftext import merge_texts as merge_texts
    from gatewright.blocks.history import Step as Step
    from gatewright.blocks.schema import MAX_CHARS as MAX_CHARS
    from gatewright.blocks.schema import Append as Append
    from gatewright.blocks.schema import BlockSchema as BlockSchema
    from gatewright.blocks.schema import CompositeSchema as CompositeSchema
    from gatewright.blocks.schema import Edit as Edit
    from gatewright.blocks.schema import Field as Field
    from gatewright.blocks.schema import FieldType as FieldType
    from gatewright.blocks.schema import ListSchema as ListSchema
    from gatewright.blocks.schema import LogSchema as LogSchema
    from gatewright.blocks.schema import MapSchema as MapSchema
    from gatewright.blocks.schema import Patch as Patch
    from gatewright.blocks.schema import Redo as Redo
    from gatewright.blocks.schema import Replace as Replace
    from gatewright.blocks.schema import Section as Section
    from gatewright.blocks.schema import SetField as SetField
    from gatewright.blocks.schema import TextSchema as TextSchema
    from gatewright.blocks.schema import Undo as Undo
    from gatewright.blocks.schema import Viewport as Viewport
    from gatewright.blocks.schema import is_addition as is_addition
    from gatewright.blocks.schemajson import schema_from_json as schema_from_json
    from gatewright.blocks.schemajson import schema_to_json as schema_to_json
    from gatewright.blocks.textedit import patch_splices as patch_splices
    from gatewright.blocks.textedit import with_splices as with_splices

door(
    __name__,
    {
        "gatewright.blocks.block": ("Block", "TextBlock"),
        "gatewright.blocks.difftext": ("MergeConflict", "diff_text", "merge_texts"),
        "gatewright.blocks.history": ("Step",),
        "gatewright.blocks.schema": (
            "MAX_CHARS",
            "Append",
            "BlockSchema",
            "CompositeSchema",
            "Edit",
            "Field",
            "FieldType",
            "ListSchema",
            "LogSchema",
            "MapSchema",
            "Patch",
            "Redo",
            "Replace",
            "Section",
            "SetField",
            "TextSchema",
            "Undo",
            "Viewport",
            "is_addition",
        ),
        "gatewright.blocks.schemajson": ("schema_from_json", "schema_to_json"),
        "gatewright.blocks.textedit": ("patch_splices", "with_splices"),
    },
)
