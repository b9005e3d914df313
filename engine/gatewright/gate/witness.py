"""One call that fits a schema, made from the schema alone; None where it would take a guess. It knows no tools.

It covers what our own tools declare: types, enums, constants, bounds, required properties, the first fitting branch of
a union. The maker is not trusted: whoever uses a witness checks it.
"""

from __future__ import annotations

from typing import Any, cast

from gatewright.base.jsonvalue import JsonValue

_DEPTH = 12
_LONGEST = 1_000
Schema = dict[str, Any]


def witness(schema: Schema, also: frozenset[str] = frozenset()) -> JsonValue:
    """A value for ``schema``; ``also`` names properties to give besides the required ones. Raises LookupError."""
    return _value(schema, also, _DEPTH)


def _value(schema: object, also: frozenset[str], depth: int) -> JsonValue:
    if not isinstance(schema, dict) or depth == 0 or "$ref" in schema:
        raise LookupError
    table = cast("Schema", schema)
    for keyword in ("const", "default"):
        if keyword in table:
            return table[keyword]
    if table.get("enum"):
        return table["enum"][0]
    for keyword in ("oneOf", "anyOf"):
        if keyword in table:
            return _first(cast("list[object]", table[keyword]), table, also, depth)
    return _typed(table, also, depth)


def _first(branches: list[object], table: Schema, also: frozenset[str], depth: int) -> JsonValue:
    for branch in branches:
        if not isinstance(branch, dict):
            continue
        try:
            return _value(_merged(table, cast("Schema", branch)), also, depth - 1)
        except LookupError:
            continue
    raise LookupError


def _merged(table: Schema, inner: Schema) -> Schema:
    outer = {key: value for key, value in table.items() if key not in {"oneOf", "anyOf"}}
    merged = {**outer, **inner}
    for keyword in ("properties", "required"):
        if keyword in outer and keyword in inner:
            both = (outer[keyword], inner[keyword])
            merged[keyword] = {**both[0], **both[1]} if keyword == "properties" else [*both[0], *both[1]]
    return merged


def _typed(table: Schema, also: frozenset[str], depth: int) -> JsonValue:
    kind = table.get("type")
    if isinstance(kind, list):
        kind = next(iter(cast("list[object]", kind)), None)
    match kind:
        case "object":
            return _object(table, also, depth)
        case "array":
            return [_value(table.get("items"), frozenset(), depth - 1) for _ in range(_size(table, "minItems"))]
        case "string":
            return _text(table)
        case "integer" | "number":
            return _number(table)
        case "boolean":
            return False
        case "null":
            return None
        case _:
            if "properties" in table:
                return _object(table, also, depth)
            raise LookupError


def _object(table: Schema, also: frozenset[str], depth: int) -> JsonValue:
    properties = cast("Schema", table.get("properties", {}))
    names = [*cast("list[str]", table.get("required", [])), *sorted(also & properties.keys())]
    return {name: _value(properties.get(name), frozenset(), depth - 1) for name in dict.fromkeys(names)}


def _text(table: Schema) -> JsonValue:
    if "pattern" in table or "format" in table:
        raise LookupError
    return "a" * max(1, _size(table, "minLength")) if table.get("maxLength") != 0 else ""


def _number(table: Schema) -> JsonValue:
    if "exclusiveMinimum" in table:
        return table["exclusiveMinimum"] + 1
    if "exclusiveMaximum" in table and "minimum" not in table:
        return table["exclusiveMaximum"] - 1
    return table.get("minimum", table.get("maximum", 0))


def _size(table: Schema, keyword: str) -> int:
    size = table.get(keyword, 0)
    if not isinstance(size, int) or size > _LONGEST:
        raise LookupError
    return size
