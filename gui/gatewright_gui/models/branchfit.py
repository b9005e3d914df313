"""Which branch of a union a value was most likely made for. It checks no value against the schema."""

from typing import Final

from gatewright.base.jsonvalue import JsonValue
from gatewright_gui.models.formshape import Shape, Shapes, Union
from gatewright_gui.models.placeview import editor_of

_HELD: Final = 100
"""A value of the branch's own kind; keys that both know add to it."""
_MAX_DEPTH = 3


def nearest(shapes: Shapes, union: Union, value: JsonValue) -> int | None:
    """The first of the branches that fit best; None where none does."""
    fits = [fit(shapes, branch.schema, value) for branch in union.branches]
    return fits.index(max(fits)) if max(fits) > 0 else None


def fit(shapes: Shapes, schema: object, value: JsonValue, depth: int = 0) -> int:
    """How well a value goes into a branch; 0: not at all."""
    shape = shapes.of(schema)
    match shape.kind:
        case "object":
            return _keys_fit(shapes, shape, value) if isinstance(value, dict) else 0
        case "array":
            return _HELD if isinstance(value, list) else 0
        case "union":
            inner = shapes.union(shape).branches if depth < _MAX_DEPTH else ()
            return max((fit(shapes, one.schema, value, depth + 1) for one in inner), default=0)
        case "json":
            return 1
        case "integer":
            return _HELD + 1 if isinstance(value, int) and not isinstance(value, bool) else 0
        case "number":
            return _HELD if isinstance(value, int | float) and not isinstance(value, bool) else 0
        case _:
            return _HELD if editor_of(shape, value, has_branch=False)[0] != "json" else 0


def _keys_fit(shapes: Shapes, shape: Shape, value: dict[str, JsonValue]) -> int:
    names = shapes.fields(shape)
    known = sum(key in names for key in value)
    missing = sum(field.required and field.name not in value for field in names.values())
    return max(1, _HELD + 2 * known - 3 * missing - 2 * (len(value) - known))
