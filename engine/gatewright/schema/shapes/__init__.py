"""The shapes in which schemas offer operations, most telling first.

A family finds its operations; `reduce` takes the hidden ones out, wherever they stand.
"""

from __future__ import annotations

from gatewright.schema.operation import choice_of
from gatewright.schema.shapes.flat import PROPERTY_SHAPE, UNION_SHAPE, Candidate, Shape, candidates_by_key
from gatewright.schema.shapes.nested import candidates_below
from gatewright.schema.walk import Schema, properties_of

ROOT_SHAPES: tuple[Shape, ...] = (UNION_SHAPE, PROPERTY_SHAPE)

__all__ = ["ROOT_SHAPES", "Candidate", "Shape", "candidates_of"]


def candidates_of(schema: Schema, field: str | None) -> list[Candidate]:
    """Return every reading of an inlined schema; ``field`` names the operation field."""
    found = [candidate for shape in ROOT_SHAPES for candidate in shape.find(schema, field)]
    seen = {candidate.found.field for candidate in UNION_SHAPE.find(schema, None)}
    seen |= {name for name, value in properties_of(schema).items() if choice_of(value)}
    return [*found, *candidates_below(schema, field, frozenset(seen)), *candidates_by_key(schema, field)]
