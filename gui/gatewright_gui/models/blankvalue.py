"""The least that can be sent at a place, to begin with. It checks nothing."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from gatewright.base.jsonvalue import JsonValue
from gatewright_gui.models.formshape import Shape, Shapes
from gatewright_gui.models.jsonpath import NOTHING

_MAX_DEPTH = 3


def blank(shapes: Shapes, shape: Shape, depth: int = 0) -> JsonValue:
    """What is fixed, what holds when nothing is given, else the empty value of its kind."""
    if "const" in shape.schema:
        return deepcopy(shape.schema["const"])
    if shape.default is not NOTHING:
        return deepcopy(shape.default)
    match shape.kind:
        case "object":
            return _fixed(shapes, shape)
        case "array" | "checklist":
            return []
        case "boolean":
            return False
        case "choice":
            return deepcopy(shape.choices[0])
        case "integer" | "number":
            return _least(shape.schema)
        case "union":
            first = shapes.of(shapes.union(shape).branches[0].schema)
            return None if depth > _MAX_DEPTH else blank(shapes, first, depth + 1)
        case "text" | "lines":
            return ""
        case "json":
            return None


def _fixed(shapes: Shapes, shape: Shape) -> JsonValue:
    """Of an object what is needed and can be nothing else."""
    needed = [field for field in shapes.fields(shape).values() if field.required]
    schemas = {field.name: shapes.resolved(field.schema) for field in needed}
    return {name: deepcopy(schema["const"]) for name, schema in schemas.items() if "const" in schema}


def _least(schema: Mapping[str, Any]) -> JsonValue:
    low = schema.get("minimum")
    return low if isinstance(low, int | float) and not isinstance(low, bool) else 0
