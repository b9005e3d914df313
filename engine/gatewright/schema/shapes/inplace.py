"""The schemas that apply to one and the same value: a schema and its branches."""

from __future__ import annotations

from collections.abc import Callable

from gatewright.schema.walk import Schema, as_list, as_object, objects

Find = Callable[[str], Schema | None]
"""What a reference names, or None."""

UNIONS = ("anyOf", "oneOf")
_BRANCHING = frozenset({"$ref", "allOf", *UNIONS, "if", "then", "else", "dependentSchemas"})
_HOLDING_ITEMS = frozenset({"items", "prefixItems", "additionalItems"})


def finder(root: Schema) -> Find:
    """How references are read in an inlined schema: `#` and its definitions."""

    def find(reference: str) -> Schema | None:
        if reference == "#":
            return root
        name = reference.removeprefix("#/$defs/").replace("%25", "%").replace("~1", "/").replace("~0", "~")
        return as_object((as_object(root.get("$defs")) or {}).get(name))

    return find


def target_of(node: Schema, find: Find | None) -> Schema | None:
    """What the reference of ``node`` names, when it has one."""
    reference = node.get("$ref")
    return find(reference) if find and isinstance(reference, str) else None


def in_place(schema: Schema, find: Find | None = None, *, tests: bool = True) -> list[Schema]:
    """``schema`` first, then every schema that applies to the same value, references followed once each.

    ``tests``: what an `if` asks as well, which the value need not fit.
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
    """The schemas for the elements of an array."""
    if _HOLDING_ITEMS.isdisjoint(schema):
        return []
    own = as_object(schema.get("items"))
    lists = [*(as_list(schema.get("items")) or []), *(as_list(schema.get("prefixItems")) or [])]
    rest = as_object(schema.get("additionalItems"))
    return [*([own] if own else []), *objects(lists), *([rest] if rest else [])]
