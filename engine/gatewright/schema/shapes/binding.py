"""Whether a schema already refuses every operation but some, and the schema that does. It looks, it changes nothing.

The answer errs to "no": then the guard is added, and what it says twice does no harm.
"""

from __future__ import annotations

from collections.abc import Callable

from gatewright.base.frozen import frozen
from gatewright.schema.fieldpath import EACH, EACH_MEMBER, Steps, holds_batch
from gatewright.schema.shapes.choice import choice_of
from gatewright.schema.shapes.inplace import UNIONS, Find, items_of, target_of
from gatewright.schema.walk import Schema, as_list, as_object, objects, properties_of, required_of

_Check = Callable[[object, Steps, tuple[int, ...]], bool]
_ELEMENTS = {EACH: "items", EACH_MEMBER: "additionalProperties"}
_ANY_BUT_NULL = ["array", "boolean", "number", "object", "string"]


@frozen
class Binding:
    """The ``allowed`` operations in order; ``optional``: leaving the field out calls one of them."""

    allowed: tuple[str, ...]
    optional: bool
    find: Find

    def holds(self, schema: Schema, steps: Steps) -> bool:
        """Whether everything valid for ``schema`` calls allowed operations only at ``steps``."""
        return self._values(schema, steps, ()) and self._present(schema, steps, ())

    def guard(self, steps: Steps) -> Schema:
        """A schema that holds for exactly those arguments."""
        if not steps:
            values = [*self.allowed, *([None] if self.optional else [])]
            return {"enum": values}
        step, rest = steps[0], steps[1:]
        if step in _ELEMENTS:
            kind: Schema = {} if not rest else {"type": "array" if rest[0] == EACH else "object"}
            return {_ELEMENTS[step]: {**kind, **self.guard(rest)}}
        inner = self.guard(rest)
        if rest and not holds_batch(rest):
            inner = {"type": _ANY_BUT_NULL, **inner}
        elif rest == (EACH,):
            inner = {"type": ["array", "null"], **inner}
        needed = not (holds_batch(rest) or (self.optional and not rest))
        return {"properties": {step: inner}, **({"required": [step]} if needed else {})}

    def _values(self, schema: object, steps: Steps, seen: tuple[int, ...]) -> bool:
        """Whether no text but the allowed ones may stand there."""
        node = as_object(schema)
        if node is None:
            return schema is False
        if id(node) in seen:
            return True
        seen = (*seen, id(node))
        if not steps:
            choice = choice_of(node)
            if choice is None or choice.others:
                return False
            return {*choice.names} <= {*self.allowed} and (self.optional or not choice.nullable)
        if steps == (EACH,) and not _excludes(node, "string"):
            return False  # a single name in the place of a list
        if _excludes(node, "array" if steps[0] == EACH else "object"):
            return True
        return self._own_values(node, steps, seen) or self._by_branches(node, steps, seen, self._values)

    def _own_values(self, node: Schema, steps: Steps, seen: tuple[int, ...]) -> bool:
        step, rest = steps[0], steps[1:]
        if step in _ELEMENTS:
            return self._items(node, _ELEMENTS[step], rest, seen)
        if step in properties_of(node):
            return self._values(properties_of(node)[step], rest, seen)
        return node.get("additionalProperties") is False and not node.get("patternProperties")

    def _items(self, node: Schema, keyword: str, rest: Steps, seen: tuple[int, ...]) -> bool:
        """Whether one schema binds every element; those with a schema of their own are left to the guard."""
        if as_object(node.get(keyword)) is None or {"prefixItems", "properties", "patternProperties"} & node.keys():
            return False
        kind = "array" if rest[:1] == (EACH,) else "object" if rest else "string"
        return _is_only(node[keyword], kind) and self._values(node[keyword], rest, seen)

    def _present(self, schema: object, steps: Steps, seen: tuple[int, ...]) -> bool:
        """Whether the field is there wherever it may not be left out."""
        node = as_object(schema)
        if node is None:
            return schema is False
        if not steps or id(node) in seen or (self.optional and len(steps) == 1 and steps[0] != EACH):
            return True
        seen = (*seen, id(node))
        if _excludes(node, "array" if steps[0] == EACH else "object"):
            return True
        return self._own_present(node, steps, seen) or self._by_branches(node, steps, seen, self._present)

    def _own_present(self, node: Schema, steps: Steps, seen: tuple[int, ...]) -> bool:
        step, rest = steps[0], steps[1:]
        if step in _ELEMENTS:
            held = items_of(node) if step == EACH else [node.get(_ELEMENTS[step])]
            return bool(held) and all(self._present(item, rest, seen) for item in held)
        own = properties_of(node).get(step)
        if own is None:
            return False
        there = step in required_of(node) and (not rest or _excludes(as_object(own) or {}, "null"))
        return (there or holds_batch(rest)) and self._present(own, rest, seen)

    def _by_branches(self, node: Schema, steps: Steps, seen: tuple[int, ...], check: _Check) -> bool:
        target = target_of(node, self.find)
        if target is not None and check(target, steps, seen):
            return True
        if any(check(branch, steps, seen) for branch in objects(node.get("allOf"))):
            return True
        unions = [as_list(node.get(keyword)) for keyword in UNIONS]
        return any(union and all(check(branch, steps, seen) for branch in union) for union in unions)


def _excludes(node: Schema, kind: str) -> bool:
    """Whether no value of this type can be valid, by what the schema says itself."""
    types = node.get("type")
    if types is not None:
        return kind != types and kind not in (as_list(types) or [])
    values = as_list(node.get("enum")) or ([node["const"]] if "const" in node else None)
    if values is not None:
        return not any(_is_kind(value, kind) for value in values)
    for keyword in UNIONS:
        branches = as_list(node.get(keyword))
        if branches and all(_excludes(branch, kind) for item in branches if (branch := as_object(item)) is not None):
            return all(as_object(item) is not None for item in branches)
    return any(_excludes(branch, kind) for branch in objects(node.get("allOf")))


def _is_only(item: object, kind: str) -> bool:
    others = [name for name in ("array", "boolean", "number", "object", "string", "null") if name != kind]
    return (node := as_object(item)) is not None and all(_excludes(node, other) for other in others)


def _is_kind(value: object, kind: str) -> bool:
    kinds = {"object": dict, "array": list, "null": type(None), "string": str, "boolean": bool}
    return isinstance(value, kinds[kind]) if kind in kinds else True
