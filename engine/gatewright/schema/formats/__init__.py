"""How providers take tools: one module per provider, all behind one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.door import door

if TYPE_CHECKING:
    from gatewright.schema.formats.format import CallReader, Format, ProviderLint
    from gatewright.schema.formats.listing import ToolListing
    from gatewright.schema.formats.table import FORMATS, format_named

__all__ = ["FORMATS", "CallReader", "Format", "ProviderLint", "ToolListing", "format_named"]

door(
    __name__,
    {
        "gatewright.schema.formats.format": ("CallReader", "Format", "ProviderLint"),
        "gatewright.schema.formats.listing": ("ToolListing",),
        "gatewright.schema.formats.table": ("FORMATS", "format_named"),
    },
)
