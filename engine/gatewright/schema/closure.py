"""A schema of arguments closed to names that it does not say; what was written to stay open stays so."""

from __future__ import annotations

from gatewright.base.pattern import compile_linear
from gatewright.schema.inline import inline_references
from gatewright.schema.shapes.inplace import UNIONS, finder, in_place
from gatewright.schema.walk import Schema, as_list, as_object, properties_of, required_of

_OTHERS = ("additionalProperties", "unevaluatedProperties")
_OLD = ("draft-07", "draft-06", "draft-04")
_STRANGER = "\N{SNOWMAN} a name that no pattern is meant for"
_EXPLICIT = "its schema says so itself"


def with_closed_arguments(schema: Schema) -> tuple[Schema, str]:
    """``schema`` that takes no argument but those that it names, and why that cannot be; empty where it is.

    The same object comes back where it is closed already or stays open. The names of all alternatives count at the
    root, so that a call which fitted one of them still does. Raises SchemaError for references that cannot be read.
    """
    is_old = any(draft in str(schema.get("$schema", "")) for draft in _OLD)
    if _is_closed(schema, is_old=is_old):
        return schema, ""
    plain = inline_references(schema) if any("$ref" in node for node in in_place(schema)) else schema
    find = finder(plain)
    parts = in_place(plain, find)
    declaring = in_place(plain, find, tests=False)  # an `if` opens nothing, nor names what it only asks for
    if any(_is_open(part) for part in declaring):
        return schema, _EXPLICIT
    unread = any(  # names may stand where nobody looked
        ("$ref" in part and find(str(part["$ref"])) is None)
        or not part.keys().isdisjoint({"$dynamicRef", "dependencies"})
        for part in parts
    )
    if unread or (is_old and "$ref" in plain):
        return schema, "what its references name cannot be told"
    if not is_old and plain.get("unevaluatedProperties") is False and not any(_is_open(part) for part in parts):
        return schema, ""
    names: Schema = {}
    patterns: Schema = {}
    for part in parts[1:]:
        names |= {name: {} for name in properties_of(part)}
    for part in declaring:
        patterns |= {pattern: {} for pattern in as_object(part.get("patternProperties")) or {}}
        names |= {name: {} for name in required_of(part) if name not in names}
    own = properties_of(plain)
    closed: Schema = {**plain, "properties": {**own, **names, **own}, "additionalProperties": False}
    if patterns:
        closed["patternProperties"] = {**patterns, **(as_object(plain.get("patternProperties")) or {})}
    return closed, ""


def _is_closed(schema: Schema, *, is_old: bool) -> bool:
    """Whether it is closed itself, or every alternative of a union is; an old draft reads nothing beside `$ref`."""
    if is_old and "$ref" in schema:
        return False
    if schema.get("additionalProperties") is False:
        return True
    unions = (as_list(schema.get(keyword)) for keyword in UNIONS)
    return any(
        branches and all(_is_closed(as_object(branch) or {}, is_old=is_old) for branch in branches)
        for branches in unions
    )


def _is_open(part: Schema) -> bool:
    """Whether it says that any name may stand there."""
    patterns = as_object(part.get("patternProperties")) or {}
    return any(part.get(keyword, False) is not False for keyword in _OTHERS) or any(
        compile_linear(pattern).search(_STRANGER) for pattern in patterns
    )
