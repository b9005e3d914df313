"""Roots that providers refuse, as the only parameter of a plain object: exactly the same calls, one level deeper."""

from __future__ import annotations

from gatewright.schema.formats.step import KEEP, Step, Wrapped
from gatewright.schema.walk import Schema, properties_of, walk

REFUSED_AT_ROOT = ("oneOf", "anyOf", "allOf", "not", "enum", "const", "$ref")
_KEYS = ("input", "arguments", "call", "input_object")


def refused_at(root: Schema) -> tuple[str, ...]:
    """The keywords of ``root`` that function calling does not take there."""
    return tuple(keyword for keyword in REFUSED_AT_ROOT if keyword in root)


def wrapped(root: Schema) -> tuple[Schema, Step]:
    """``root`` as a parameter of an object without other parameters, and the step that undoes it."""
    if not refused_at(root):
        return root, KEEP
    known = {name for _, node in walk(root) for name in properties_of(node)}
    key = next((key for key in _KEYS if key not in known), "_".join(_KEYS))
    whole: Schema = {"type": "object", "properties": {key: root}, "required": [key], "additionalProperties": False}
    return whole, Wrapped(key)
