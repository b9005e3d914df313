"""Where a JSON Schema holds other schemas, and how to go through them.

The tables are those of drafts 7 and 2020-12 together: https://json-schema.org/draft/2020-12/json-schema-core section 10
and https://json-schema.org/draft-07/json-schema-validation. Data (`enum`, `const`,
`default`, `examples`) is never entered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

Schema = dict[str, Any]
Pointer = tuple[str | int, ...]

MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
SINGLES = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_HOLDERS = MAPS | LISTS | SINGLES


def as_object(value: object) -> Schema | None:
    """``value`` when it is a JSON object, else None."""
    return cast("Schema", value) if isinstance(value, dict) else None


def as_list(value: object) -> list[Any] | None:
    """``value`` when it is a JSON array, else None."""
    return cast("list[Any]", value) if isinstance(value, list) else None


def objects(value: object) -> list[Schema]:
    """The JSON objects in a JSON array; empty for anything else."""
    return [item for item in map(as_object, as_list(value) or []) if item is not None]


def properties_of(schema: Schema) -> Schema:
    """The ``properties`` map, empty when there is none."""
    return as_object(schema.get("properties")) or {}


def required_of(schema: Schema) -> tuple[str, ...]:
    """The names under ``required``."""
    return tuple(name for name in as_list(schema.get("required")) or [] if isinstance(name, str))


def children(schema: Schema) -> Iterator[tuple[Pointer, Schema]]:
    """Each schema directly inside ``schema`` with its pointer relative to it."""
    for keyword, value in schema.items():
        if keyword in _HOLDERS:
            yield from _held(keyword, value)


def _held(keyword: str, value: object) -> list[tuple[Pointer, Schema]]:
    if isinstance(value, dict):
        if keyword in MAPS:
            table = cast("Schema", value)
            return [((keyword, name), item) for name, item in table.items() if isinstance(item, dict)]
        return [((keyword,), cast("Schema", value))] if keyword in SINGLES else []
    if isinstance(value, list) and keyword in LISTS:
        array = cast("list[Any]", value)
        return [((keyword, index), item) for index, item in enumerate(array) if isinstance(item, dict)]
    return []


def walk(schema: Schema, pointer: Pointer = ()) -> Iterator[tuple[Pointer, Schema]]:
    """``schema`` and every schema inside it, outermost first, without recursion."""
    stack = [(pointer, schema)]
    while stack:
        place, current = stack.pop()
        yield place, current
        for keyword, value in current.items():
            if keyword in _HOLDERS:
                stack += [(place + step, child) for step, child in _held(keyword, value)]


def map_children(schema: Schema, change: Callable[[Schema], Any]) -> Schema:
    """A copy of ``schema`` whose direct sub-schemas went through ``change``; the rest is shared."""

    def changed(item: Any) -> Any:
        child = as_object(item)
        return item if child is None else change(child)

    result: Schema = {}
    for keyword, value in schema.items():
        if keyword not in _HOLDERS:
            result[keyword] = value
            continue
        as_map, as_array = as_object(value), as_list(value)
        if keyword in MAPS and as_map is not None:
            result[keyword] = {name: changed(item) for name, item in as_map.items()}
        elif keyword in LISTS and as_array is not None:
            result[keyword] = [changed(item) for item in as_array]
        elif keyword in SINGLES and as_map is not None:
            result[keyword] = change(as_map)
        else:
            result[keyword] = value
    return result


def definition(name: str) -> str:
    """The reference to a definition of that name."""
    return "#/$defs/" + name.replace("~", "~0").replace("/", "~1").replace("%", "%25")


def pointer_text(pointer: Pointer) -> str:
    """RFC 6901 text of a pointer; the empty text is the whole value."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in pointer)
