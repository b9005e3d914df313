"""Which operations a schema offers and which field selects them. It does not know policies."""

from __future__ import annotations

from gatewright.schema.inline import inline_references
from gatewright.schema.operation import OperationSet
from gatewright.schema.shapes import SHAPES
from gatewright.schema.walk import Schema


def discover_operations(schema: Schema, *, field: str | None = None) -> OperationSet | None:
    """The operations of ``schema``, or None when nothing in it selects operations.

    ``field`` names the operation field and overrides the guess. Raises SchemaError for references that cannot be
    resolved.
    """
    inlined = inline_references(schema)
    candidates = [candidate for shape in SHAPES for candidate in shape.find(inlined, field)]
    best = max(candidates, key=lambda candidate: candidate.score, default=None)
    return best.found if best else None
