"""The shapes in which schemas offer operations, most telling first; one module per family.

A shape knows how to find its operations and how to filter them. Further families (nested selectors, batches,
conditionals, free strings) are further rows of `SHAPES`.
"""

from __future__ import annotations

from gatewright.schema.shapes.property import PROPERTY_SHAPE
from gatewright.schema.shapes.shape import Candidate, Shape
from gatewright.schema.shapes.union import UNION_SHAPE

SHAPES: tuple[Shape, ...] = (UNION_SHAPE, PROPERTY_SHAPE)

__all__ = ["SHAPES", "Candidate", "Shape"]
