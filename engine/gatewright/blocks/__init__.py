"""Loro documents behind blocks; the only package that knows Loro."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.door import door

if TYPE_CHECKING:
    from gatewright.blocks.block import Block, BlockSize
    from gatewright.blocks.difftext import diff_text
    from gatewright.blocks.edit import (
        Append,
        Edit,
        Increment,
        InsertItem,
        InsertText,
        Overwrite,
        Patch,
        Redo,
        RemoveItem,
        Replace,
        SetField,
        SetItem,
        Undo,
        is_addition,
        kind_of,
    )
    from gatewright.blocks.field import Field, FieldType
    from gatewright.blocks.history import Step
    from gatewright.blocks.plan import Hand
    from gatewright.blocks.replacement import Splice, replacements, with_splices
    from gatewright.blocks.schema import (
        MAX_CHARS,
        BlockSchema,
        CompositeSchema,
        ListSchema,
        LogSchema,
        MapSchema,
        PartSchema,
        Section,
        TextSchema,
        Viewport,
    )
    from gatewright.blocks.schemajson import schema_from_json, schema_keys, schema_to_json, type_name
    from gatewright.blocks.text import TextBlock, count_overlapping
    from gatewright.blocks.unifieddiff import patch_splices
    from gatewright.blocks.value_schema import value_schema, whole_value

__all__ = [
    "MAX_CHARS",
    "Append",
    "Block",
    "BlockSchema",
    "BlockSize",
    "CompositeSchema",
    "Edit",
    "Field",
    "FieldType",
    "Hand",
    "Increment",
    "InsertItem",
    "InsertText",
    "ListSchema",
    "LogSchema",
    "MapSchema",
    "Overwrite",
    "PartSchema",
    "Patch",
    "Redo",
    "RemoveItem",
    "Replace",
    "Section",
    "SetField",
    "SetItem",
    "Splice",
    "Step",
    "TextBlock",
    "TextSchema",
    "Undo",
    "Viewport",
    "count_overlapping",
    "diff_text",
    "is_addition",
    "kind_of",
    "patch_splices",
    "replacements",
    "schema_from_json",
    "schema_keys",
    "schema_to_json",
    "type_name",
    "value_schema",
    "whole_value",
    "with_splices",
]

door(
    __name__,
    {
        "gatewright.blocks.block": ("Block", "BlockSize"),
        "gatewright.blocks.difftext": ("diff_text",),
        "gatewright.blocks.edit": (
            "Append",
            "Edit",
            "Increment",
            "InsertItem",
            "InsertText",
            "Overwrite",
            "Patch",
            "Redo",
            "RemoveItem",
            "Replace",
            "SetField",
            "SetItem",
            "Undo",
            "is_addition",
            "kind_of",
        ),
        "gatewright.blocks.field": ("Field", "FieldType"),
        "gatewright.blocks.history": ("Step",),
        "gatewright.blocks.plan": ("Hand",),
        "gatewright.blocks.replacement": ("Splice", "replacements", "with_splices"),
        "gatewright.blocks.schema": (
            "MAX_CHARS",
            "BlockSchema",
            "CompositeSchema",
            "ListSchema",
            "LogSchema",
            "MapSchema",
            "PartSchema",
            "Section",
            "TextSchema",
            "Viewport",
        ),
        "gatewright.blocks.schemajson": ("schema_from_json", "schema_keys", "schema_to_json", "type_name"),
        "gatewright.blocks.text": ("TextBlock", "count_overlapping"),
        "gatewright.blocks.unifieddiff": ("patch_splices",),
        "gatewright.blocks.value_schema": ("value_schema", "whole_value"),
    },
)
