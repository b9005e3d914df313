"""Wraps the Loro documents behind blocks, so that no other package meets Loro; offers their schemas to programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.late import door

if TYPE_CHECKING:
    from gatewright.blocks.schema import BlockSchema as BlockSchema
    from gatewright.blocks.schema import CompositeSchema as CompositeSchema
    from gatewright.blocks.schema import Field as Field
    from gatewright.blocks.schema import FieldType as FieldType
    from gatewright.blocks.schema import ListSchema as ListSchema
    from gatewright.blocks.schema import LogSchema as LogSchema
    from gatewright.blocks.schema import MapSchema as MapSchema
    from gatewright.blocks.schema import Section as Section
    from gatewright.blocks.schema import TextSchema as TextSchema
    from gatewright.blocks.schema import Viewport as Viewport
    from gatewright.blocks.schemajson import schema_from_json as schema_from_json

door(
    __name__,
    {
        "gatewright.blocks.schema": (
            "Field",
            "FieldType",
            "BlockSchema",
            "CompositeSchema",
            "ListSchema",
            "LogSchema",
            "MapSchema",
            "Section",
            "TextSchema",
            "Viewport",
        ),
        "gatewright.blocks.schemajson": ("schema_from_json",),
    },
)
