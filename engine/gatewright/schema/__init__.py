"""JSON Schemas of tools: generate, inline, find and filter operations, narrow, check arguments, provider formats.

It knows JSON values only: no tools, no policies, no files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.late import door

if TYPE_CHECKING:
    from gatewright.schema.check import SchemaChecker, check_schema
    from gatewright.schema.constraint import narrow
    from gatewright.schema.filter import FilterResult, discover_operations, filter_operations, filter_with_lints
    from gatewright.schema.formats import FORMATS, Format, ToolListing, format_named
    from gatewright.schema.generate import schema_of
    from gatewright.schema.inline import inline_references
    from gatewright.schema.operation import Operation, OperationSet
    from gatewright.schema.paths import PathCandidate, deed_of, discover_paths, holds_text, text_places
    from gatewright.schema.prose import clean_text
    from gatewright.schema.survey import OpenEnd, Survey, survey
    from gatewright.schema.walk import Schema

__all__ = [
    "FORMATS",
    "FilterResult",
    "Format",
    "OpenEnd",
    "Operation",
    "OperationSet",
    "PathCandidate",
    "Schema",
    "SchemaChecker",
    "Survey",
    "ToolListing",
    "check_schema",
    "clean_text",
    "deed_of",
    "discover_operations",
    "discover_paths",
    "filter_operations",
    "filter_with_lints",
    "format_named",
    "holds_text",
    "inline_references",
    "narrow",
    "schema_of",
    "survey",
    "text_places",
]

door(
    __name__,
    {
        "gatewright.schema.check": ("SchemaChecker", "check_schema"),
        "gatewright.schema.filter": ("FilterResult", "discover_operations", "filter_operations", "filter_with_lints"),
        "gatewright.schema.formats": ("FORMATS", "Format", "ToolListing", "format_named"),
        "gatewright.schema.generate": ("schema_of",),
        "gatewright.schema.inline": ("inline_references",),
        "gatewright.schema.constraint": ("narrow",),
        "gatewright.schema.operation": ("Operation", "OperationSet"),
        "gatewright.schema.paths": ("PathCandidate", "deed_of", "discover_paths", "holds_text", "text_places"),
        "gatewright.schema.prose": ("clean_text",),
        "gatewright.schema.survey": ("OpenEnd", "Survey", "survey"),
        "gatewright.schema.walk": ("Schema",),
    },
)
