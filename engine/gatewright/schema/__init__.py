"""Reads JSON Schemas of tools: finds their operations, hides, narrows, checks arguments, spells them for providers.

`schema/filter.py` finds the operations of any tool's schema, with one family of shapes for each module of
`schema/flat.py` and `schema/nested.py`, and takes the hidden ones out of structure and prose. `schema/constraint.py`
says what a constraint means, for gate and shown schema alike; `schema/fault.py` finds constraints that no value
meets. `schema/selector.py` says where a call names its operation; `schema/paths.py` finds the arguments that look like
paths. `schema/formats/` has a format for each provider, with its inverse.

jsonschema-rs validates values (`schema/check.py`, `schema/walk.py`); jsonschema says why something is no schema, and
is the oracle of the tests. What jsonschema-rs accepts as a schema is not shown to jsonschema as well: a test holds that
both agree, and loading it takes longer than most commands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.late import door

if TYPE_CHECKING:
    from gatewright.schema.check import SchemaChecker, check_schema
    from gatewright.schema.constraint import narrow
    from gatewright.schema.filter import FilterResult, discover_operations, filter_operations, filter_with_lints
    from gatewright.schema.formats import FORMATS, Format, format_named
    from gatewright.schema.inline import inline_references, schema_of
    from gatewright.schema.operation import Operation, OperationSet, ToolListing
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
        "gatewright.schema.formats": ("FORMATS", "Format", "format_named"),
        "gatewright.schema.inline": ("schema_of", "inline_references"),
        "gatewright.schema.constraint": ("narrow",),
        "gatewright.schema.operation": ("Operation", "OperationSet", "ToolListing"),
        "gatewright.schema.paths": ("PathCandidate", "deed_of", "discover_paths", "holds_text", "text_places"),
        "gatewright.schema.prose": ("clean_text",),
        "gatewright.schema.survey": ("OpenEnd", "Survey", "survey"),
        "gatewright.schema.walk": ("Schema",),
    },
)
