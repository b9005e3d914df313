"""A JSON Schema as a tree: the schemas inside it, those that apply to one value, and its draft.

The tables are those of drafts 7 and 2020-12 together: https://json-schema.org/draft/2020-12/json-schema-core section 10
and https://json-schema.org/draft-07/json-schema-validation. The walk never enters data (`enum`, `const`, `default`,
`examples`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

from gatewright.base.errors import SchemaError

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
    """Return ``value`` when it is a JSON object, else None."""
    return cast("Schema", value) if isinstance(value, dict) else None


def as_list(value: object) -> list[Any] | None:
    """Return ``value`` when it is a JSON array, else None."""
    return cast("list[Any]", value) if isinstance(value, list) else None


def objects(value: object) -> list[Schema]:
    """Return the JSON objects in a JSON array; empty for anything else."""
    return [item for item in map(as_object, as_list(value) or []) if item is not None]


def properties_of(schema: Schema) -> Schema:
    """Return the ``properties`` map, empty without one."""
    return as_object(schema.get("properties")) or {}


def names_required(schema: Schema) -> tuple[str, ...]:
    """Return the names under ``required``."""
    return tuple(name for name in as_list(schema.get("required")) or [] if isinstance(name, str))


def children(schema: Schema) -> Iterator[tuple[Pointer, Schema]]:
    """Yield each schema directly inside ``schema`` with its pointer relative to it."""
    for keyword, value in schema.items():
        if keyword in _HOLDERS:
            yield from _inner(keyword, value)


def _inner(keyword: str, value: object) -> list[tuple[Pointer, Schema]]:
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
    """Yield ``schema`` and every schema inside it, outermost first, without recursion."""
    stack = [(pointer, schema)]
    while stack:
        place, current = stack.pop()
        yield place, current
        for keyword, value in current.items():
            if keyword in _HOLDERS:
                stack += [(place + step, child) for step, child in _inner(keyword, value)]


def map_children(schema: Schema, change: Callable[[Schema], Any]) -> Schema:
    """Copy ``schema`` with its direct sub-schemas sent through ``change``; the rest is shared."""

    def change_item(item: Any) -> Any:
        child = as_object(item)
        return item if child is None else change(child)

    result: Schema = {}
    for keyword, value in schema.items():
        if keyword not in _HOLDERS:
            result[keyword] = value
            continue
        as_map, as_array = as_object(value), as_list(value)
        if keyword in MAPS and as_map is not None:
            result[keyword] = {name: change_item(item) for name, item in as_map.items()}
        elif keyword in LISTS and as_array is not None:
            result[keyword] = [change_item(item) for item in as_array]
        elif keyword in SINGLES and as_map is not None:
            result[keyword] = change(as_map)
        else:
            result[keyword] = value
    return result


def definition(name: str) -> str:
    """Return the reference to a definition of that name."""
    return "#/$defs/" + name.replace("~", "~0").replace("/", "~1").replace("%", "%25")


def pointer_text(pointer: Pointer) -> str:
    """Write a pointer as RFC 6901 text; the empty text is the whole value."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in pointer)


_OLD_ONLY = frozenset({"additionalItems", "dependencies"})
NEW_ONLY = frozenset(
    {"prefixItems", "dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems"}
    | {"minContains", "maxContains", "$dynamicRef", "$recursiveRef"}
)
"""Keywords that say nothing in draft 7."""


def is_draft_7(schema: Schema) -> bool:
    """Tell whether ``schema`` names draft 7."""
    return "draft-07" in str(schema.get("$schema", ""))


def at_one_draft(schema: Schema, added: Schema) -> tuple[Schema, Schema]:
    """Bring both to one draft, that of ``schema`` if it can stay, without the name of the draft in ``added``.

    Raises SchemaError where each uses words unknown to the other's draft.
    """
    bare = {key: value for key, value in added.items() if key != "$schema"}
    if is_draft_7(schema) == is_draft_7(added) or _means_the_same(bare):
        return schema, bare
    if _means_the_same(schema):
        address = added.get("$schema", "https://json-schema.org/draft/2020-12/schema")
        return {**schema, "$schema": address}, bare
    raise SchemaError("a constraint is written in another draft than the tool's schema, and neither fits the other")


def _means_the_same(schema: Schema) -> bool:
    """Tell whether ``schema`` means the same in either draft."""
    for _, node in walk(schema):
        if (NEW_ONLY | _OLD_ONLY) & node.keys() or isinstance(node.get("items"), list):
            return False
        if "$ref" in node and node.keys() - {"$ref", "$schema", "$defs", "definitions", "title", "description"}:
            return False
    return True


Find = Callable[[str], Schema | None]
"""Returns the target of a reference, or None."""

UNIONS = ("anyOf", "oneOf")
_BRANCHING = frozenset({"$ref", "allOf", *UNIONS, "if", "then", "else", "dependentSchemas"})
_HOLDING_ITEMS = frozenset({"items", "prefixItems", "additionalItems"})


def finder(root: Schema) -> Find:
    """Return the function that reads references in an inlined schema: `#` and its definitions."""

    def find(reference: str) -> Schema | None:
        if reference == "#":
            return root
        name = reference.removeprefix("#/$defs/").replace("%25", "%").replace("~1", "/").replace("~0", "~")
        return as_object((as_object(root.get("$defs")) or {}).get(name))

    return find


def target_of(node: Schema, find: Find | None) -> Schema | None:
    """Return the target of the reference of ``node``, when it has one."""
    reference = node.get("$ref")
    return find(reference) if find and isinstance(reference, str) else None


def in_place(schema: Schema, find: Find | None = None, *, tests: bool = True) -> list[Schema]:
    """Return ``schema``, then every schema that applies to the same value, references followed once each.

    ``tests``: also the schema of an `if`, which the value need not fit.
    """
    conditional = ("if", "then", "else") if tests else ("then", "else")
    found: list[Schema] = []
    stack = [schema]
    seen: set[int] = set()
    while stack:
        node = stack.pop(0)
        if id(node) in seen:
            continue
        seen.add(id(node))
        found.append(node)
        if _BRANCHING.isdisjoint(node):
            continue
        target = target_of(node, find)
        stack.extend([target] if target is not None else [])
        for keyword in ("allOf", *UNIONS):
            stack.extend(objects(node.get(keyword)))
        stack.extend(branch for keyword in conditional if (branch := as_object(node.get(keyword))))
        stack.extend(objects(list((as_object(node.get("dependentSchemas")) or {}).values())))
    return found


def items_of(schema: Schema) -> list[Schema]:
    """Return the schemas for the elements of an array."""
    if _HOLDING_ITEMS.isdisjoint(schema):
        return []
    own = as_object(schema.get("items"))
    lists = [*(as_list(schema.get("items")) or []), *(as_list(schema.get("prefixItems")) or [])]
    rest = as_object(schema.get("additionalItems"))
    return [*([own] if own else []), *objects(lists), *([rest] if rest else [])]
