"""A schema of arguments closed to names that it does not say; what was written to stay open stays so."""

from __future__ import annotations

from gatewright.schema.inline import inline_references
from gatewright.schema.shapes.inplace import UNIONS, finder, in_place
from gatewright.schema.walk import Schema, as_list, as_object, properties_of, required_of

_OTHERS = ("additionalProperties", "unevaluatedProperties")
_EXPLICIT = "its schema says so itself"


def with_closed_arguments(schema: Schema) -> tuple[Schema, str]:
    """``schema`` that takes no argument but those that it names, and why that cannot be; empty where it is.

    The same object comes back where it is closed already or stays open. The names of all alternatives count at the
    root, so that a call which fitted one of them still does. Raises SchemaError for references that cannot be read.
    """
    if _takes_no_other(schema):
        return schema, ""
    plain = inline_references(schema) if any("$ref" in node for node in in_place(schema)) else schema
    find = finder(plain)
    parts = in_place(plain, find)
    if any(_is_open(part) for part in parts):
        return schema, _EXPLICIT
    if any(_is_unread(part, find(str(part.get("$ref")))) for part in parts):
        return schema, "what its references name cannot be told"
    names: Schema = {}
    patterns: Schema = {}
    for part in parts[1:]:
        names |= {name: {} for name in properties_of(part)}
        patterns |= {pattern: {} for pattern in as_object(part.get("patternProperties")) or {}}
    for part in parts:
        names |= {name: {} for name in required_of(part) if name not in names}
    own = properties_of(plain)
    closed: Schema = {**plain, "properties": {**own, **names, **own}, "additionalProperties": False}
    if patterns:
        closed["patternProperties"] = {**patterns, **(as_object(plain.get("patternProperties")) or {})}
    return closed, ""


def _takes_no_other(schema: Schema) -> bool:
    """Whether it is closed itself, or every alternative of a union is."""
    if any(schema.get(keyword) is False for keyword in _OTHERS):
        return True
    unions = (as_list(schema.get(keyword)) for keyword in UNIONS)
    return any(
        branches and all(any((as_object(b) or {}).get(keyword) is False for keyword in _OTHERS) for b in branches)
        for branches in unions
    )


def _is_open(part: Schema) -> bool:
    return any(part.get(keyword, False) is not False for keyword in _OTHERS)


def _is_unread(part: Schema, target: Schema | None) -> bool:
    """Whether names may stand where nobody looked."""
    return ("$ref" in part and target is None) or not part.keys().isdisjoint({"$dynamicRef", "dependencies"})
