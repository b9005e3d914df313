"""Searches for the faults of a value: each with its place, in a number of steps bounded by the value's size.

The validator decides quickly whether a value fits; to list the faults, it would follow every branch of every union
through the whole value. This search visits each pair of schema and place once, lets a tag choose the branch, and limits
the number of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import unquote

import jsonschema_rs

from gatewright.base.late import once
from gatewright.schema.inline import at_pointer
from gatewright.schema.phrase import (
    MAX_HELD,
    ArgumentError,
    Assertion,
    Fault,
    Tagged,
    alternatives,
    argument_error,
    find_tag,
    missing_tag,
    unknown_tag,
)
from gatewright.schema.walk import (
    NEW_ONLY,
    Pointer,
    Schema,
    as_list,
    as_object,
    compile_schema,
    is_draft_7,
    properties_of,
    walk,
)

MAX_FAULTS = 20
MAX_STEPS = 4_000
_FAULT_STEPS = 3
"""The cost of writing down a fault, in steps."""

_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")


class Misfit:
    """The search in one schema, which it reads only as far as faulty values lead; any thread may use it."""

    def __init__(self, schema: Schema, *, check_formats: bool = False) -> None:
        self._root = schema
        self.check_formats = check_formats
        self._nodes: dict[int, _Node] = {}
        self._tags: dict[int, Tagged | None] = {}
        self.dialect = {"$schema": schema["$schema"]} if "$schema" in schema else {}
        self.shared = {key: schema[key] for key in ("$schema", "$defs", "definitions") if key in schema}
        self.is_draft_7 = is_draft_7(schema)
        self.is_newest = not self.is_draft_7 and "2019-09" not in str(schema.get("$schema", ""))
        unread = NEW_ONLY if self.is_draft_7 else frozenset[str]() if self.is_newest else {"prefixItems"}
        self.keywords = {key: part for key, part in _PARTS.items() if key not in unread}

    def errors(self, value: object) -> tuple[ArgumentError, ...]:
        """Return the faults of a ``value`` that does not fit, outer ones first; empty if the search finds none."""
        try:
            found = _Search(self).faults(self._root, value, ())
        except (_Unknown, RecursionError):
            return ()
        ordered = sorted(found, key=lambda fault: len(fault.at))
        return tuple(dict.fromkeys(argument_error(fault.at, fault.message) for fault in ordered))

    def node(self, schema: Schema) -> _Node:
        """Return the node of one schema, which is read once."""
        node = self._nodes.get(id(schema))
        if node is None:
            node = self._nodes[id(schema)] = _Node(self, schema)
        return node

    def tag_of(self, branches: list[Any]) -> Tagged | None:
        """Return the tag that separates ``branches``, if one does."""
        key = id(branches)
        if key not in self._tags:
            self._tags[key] = find_tag([self._resolve(branch) for branch in branches])
        return self._tags[key]

    def target(self, reference: object) -> object:
        """Return the target of a reference in this document. Raises _Unknown."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise _Unknown
        fragment = unquote(reference[1:])
        if fragment and not fragment.startswith("/"):
            found = next((node for _, node in walk(self._root) if node.get("$anchor") == fragment), None)
        else:
            found = at_pointer(self._root, fragment)
        if found is None:
            raise _Unknown
        return found

    def _resolve(self, branch: object) -> Schema:
        schema = as_object(branch) or {}
        try:
            return (as_object(self.target(schema["$ref"])) or schema) if "$ref" in schema else schema
        except _Unknown:
            return schema


class _Unknown(Exception):
    """The search cannot tell whether a value fits: it ran out of steps, or cannot follow the schema."""


class _Node:
    """One schema: the assertions about a value itself, and the keywords that lead to other schemas."""

    def __init__(self, misfit: Misfit, schema: Schema) -> None:
        is_reference = misfit.is_draft_7 and "$ref" in schema
        self.schema = schema
        self.own = Assertion({} if is_reference else schema, misfit.dialect, check_formats=misfit.check_formats)
        parts = (part for key, part in misfit.keywords.items() if key in schema)
        self.parts = (_Search.reference,) if is_reference else tuple(dict.fromkeys(parts))
        self.is_closed_late = not misfit.is_draft_7 and any(key in schema for key in _UNEVALUATED)
        self._shared, self._check_formats = misfit.shared, misfit.check_formats

    @once
    def whole(self) -> jsonschema_rs.Validator:
        """Return the validator of the whole schema. Raises ValueError if the schema cannot stand alone."""
        return compile_schema({**self._shared, **self.schema}, check_formats=self._check_formats)


class _Search:
    """The search for the faults of one value."""

    def __init__(self, misfit: Misfit) -> None:
        self._misfit = misfit
        self._left = MAX_STEPS
        self._known: dict[tuple[int, Pointer], tuple[Fault, ...] | None] = {}

    def faults(self, schema: object, value: object, at: Pointer) -> tuple[Fault, ...]:
        """Return some faults of ``value``; empty exactly if it fits. Raises _Unknown."""
        table = as_object(schema)
        if table is None:
            return (Fault(at, "must not be given"),) if schema is False else ()
        key = id(table), at
        if key not in self._known:
            self._known[key] = None
            self._known[key] = self._look(table, value, at)
        found = self._known[key]
        if found is None:
            raise _Unknown
        return found

    def _look(self, schema: Schema, value: object, at: Pointer) -> tuple[Fault, ...]:
        self._left -= 1
        if self._left < 0:
            raise _Unknown
        node = self._misfit.node(schema)
        found, is_unknown = node.own.faults(value, at)
        self._left -= _FAULT_STEPS * len(found)
        if node.parts and not any(fault.is_kind for fault in found):
            for part in node.parts:
                try:
                    found += part(self, node, value, at)
                except _Unknown:
                    is_unknown = True
        if not found and node.is_closed_late:
            found = _late(node, value, at)
        if not found and is_unknown:
            raise _Unknown
        return tuple(found[:MAX_FAULTS])

    def _all(self, held: Iterable[tuple[object, object, Pointer]]) -> list[Fault]:
        found: list[Fault] = []
        is_unknown = False
        for schema, value, at in held:
            try:
                found += self.faults(schema, value, at)
            except _Unknown:
                is_unknown = True
            is_unknown = is_unknown or self._left < 0
            if len(found) >= MAX_FAULTS or self._left < 0:
                break
        if is_unknown and not found:
            raise _Unknown
        return found

    def fits(self, schema: object, value: object, at: Pointer) -> bool:
        """Tell whether ``value`` fits ``schema``. Raises _Unknown."""
        return not self.faults(schema, value, at)

    def reference(self, node: _Node, value: object, at: Pointer) -> list[Fault]:
        return list(self.faults(self._misfit.target(node.schema["$ref"]), value, at))

    def give_up(self, node: _Node, value: object, at: Pointer) -> list[Fault]:  # noqa: ARG002
        raise _Unknown

    def members(self, node: _Node, value: object, at: Pointer) -> list[Fault]:
        table = as_object(value)
        return [] if table is None else self._within_limit(table, self._all(_members(node, table, at)))

    def elements(self, node: _Node, value: object, at: Pointer) -> list[Fault]:
        array = as_list(value)
        return [] if array is None else self._within_limit(array, self._all(self._items(node.schema, array, at)))

    def _items(self, schema: Schema, array: list[Any], at: Pointer) -> Iterable[tuple[object, object, Pointer]]:
        first, rest = as_list(schema.get("prefixItems")), schema.get("items", True)
        if not self._misfit.is_newest:
            first = as_list(rest)
            rest = rest if first is None else schema.get("additionalItems", True)
        first = first or []
        for index, item in enumerate(array[:MAX_HELD]):
            if index < len(first):
                yield first[index], item, (*at, index)
            elif rest is not False:
                yield rest, item, (*at, index)

    @staticmethod
    def _within_limit(held: Schema | list[Any], found: list[Fault]) -> list[Fault]:
        if not found and len(held) > MAX_HELD:
            raise _Unknown
        return found

    def keys(self, node: _Node, value: object, at: Pointer) -> list[Fault]:
        for key in list(as_object(value) or ())[:MAX_HELD]:
            if not self.fits(node.schema["propertyNames"], key, (*at, key, -1)):
                return [Fault(at, "a key of this object is not allowed")]
        return self._within_limit(as_object(value) or {}, [])

    def some(self, node: _Node, value: object, at: Pointer) -> list[Fault]:
        array, schema = as_list(value), node.schema
        if array is None:
            return []
        self._within_limit(array, [])
        count = sum(self.fits(schema["contains"], item, (*at, index)) for index, item in enumerate(array))
        is_new = not self._misfit.is_draft_7
        least, most = (schema.get("minContains", 1), schema.get("maxContains", count)) if is_new else (1, count)
        return [] if least <= count <= most else [Fault(at, "holds too few or too many of the items asked for")]

    def each(self, node: _Node, value: object, at: Pointer) -> list[Fault]:
        return self._all((schema, value, at) for schema in as_list(node.schema["allOf"]) or ())

    def negation(self, node: _Node, value: object, at: Pointer) -> list[Fault]:
        return [Fault(at, "is excluded by the schema")] if self.fits(node.schema["not"], value, at) else []

    def conditional(self, node: _Node, value: object, at: Pointer) -> list[Fault]:
        keyword = "then" if self.fits(node.schema["if"], value, at) else "else"
        return list(self.faults(node.schema.get(keyword, True), value, at))

    def dependent(self, node: _Node, value: object, at: Pointer) -> list[Fault]:
        table = as_object(value) or {}
        keywords = {"dependentSchemas", "dependencies"} & self._misfit.keywords.keys()
        held = [item for keyword in keywords for item in (as_object(node.schema.get(keyword)) or {}).items()]
        return self._all((schema, value, at) for key, schema in held if key in table)

    def any(self, node: _Node, value: object, at: Pointer) -> list[Fault]:
        return self._union(as_list(node.schema["anyOf"]) or [], value, at, is_one=False)

    def one(self, node: _Node, value: object, at: Pointer) -> list[Fault]:
        return self._union(as_list(node.schema["oneOf"]) or [], value, at, is_one=True)

    def _union(self, branches: list[Any], value: object, at: Pointer, *, is_one: bool) -> list[Fault]:
        """Return the faults of the intended branch, chosen by tag or by type of value; else one line for all
        branches.
        """
        table = as_object(value)
        tagged = self._misfit.tag_of(branches) if table is not None else None
        if tagged is not None and table is not None:
            given = table.get(tagged.field)
            chosen = tagged.index_of(given)
            if chosen is not None:
                return list(self.faults(branches[chosen], value, at))
            if given is not None:
                return [Fault((*at, tagged.field), unknown_tag(tagged))]
        found: list[tuple[Fault, ...]] = []
        is_unknown = False
        for branch in branches:
            try:
                found.append(self.faults(branch, value, at))
            except _Unknown:
                if self._left < 0:
                    raise
                is_unknown = True
                continue
            if not found[-1] and not is_one:
                return []
        fitting = sum(not faults for faults in found)
        if fitting > 1:
            return [Fault(at, "fits more than one of the alternatives; leave out what belongs to the other")]
        if is_unknown:
            raise _Unknown
        if fitting == 1 or not found:
            return []
        if tagged is not None and table is not None:
            is_given = tagged.field in table
            where = (*at, tagged.field) if is_given else at
            return [Fault(where, unknown_tag(tagged) if is_given else missing_tag(tagged), is_missing=not is_given)]
        return _meant(found, at)


def _late(node: _Node, value: object, at: Pointer) -> list[Fault]:
    """Return the faults that only the whole schema shows: a key or an item that none of its parts knows."""
    try:
        is_valid = node.whole.is_valid(value)
    except ValueError:
        raise _Unknown from None
    said = "a key" if isinstance(value, dict) else "an item"
    return [] if is_valid else [Fault(at, f"{said} that was sent does not exist here")]


def _members(node: _Node, table: Schema, at: Pointer) -> Iterable[tuple[object, object, Pointer]]:
    schema = node.schema
    declared, rest = properties_of(schema), schema.get("additionalProperties", True)
    for key in list(table)[:MAX_HELD]:
        place = (*at, key)
        if key in declared:
            yield declared[key], table[key], place
        matching = [held for pattern, held in node.own.patterns if pattern.is_valid(key)]
        for held in matching:
            yield held, table[key], place
        if key not in declared and not matching and rest is not False:
            yield rest, table[key], place


def _meant(found: list[tuple[Fault, ...]], at: Pointer) -> list[Fault]:
    fitting = [faults for faults in found if not any(fault.is_kind and fault.at == at for fault in faults)]
    if len(fitting) == 1:
        return list(fitting[0])
    if not fitting or all(fault.at == at and not fault.is_missing for faults in found for fault in faults):
        said = [fault.message for faults in found for fault in faults if fault.at == at and not fault.is_union]
        is_kind = all(fault.is_kind for faults in found for fault in faults)
        return [Fault(at, alternatives(said), is_kind=is_kind, is_union=not is_kind)]
    return list(min(fitting, key=lambda faults: (len(faults), -max(len(fault.at) for fault in faults))))


_PARTS: dict[str, Callable[[_Search, _Node, object, Pointer], list[Fault]]] = {
    "$ref": _Search.reference,
    "$dynamicRef": _Search.give_up,
    "$recursiveRef": _Search.give_up,
    "properties": _Search.members,
    "patternProperties": _Search.members,
    "additionalProperties": _Search.members,
    "prefixItems": _Search.elements,
    "items": _Search.elements,
    "contains": _Search.some,
    "propertyNames": _Search.keys,
    "allOf": _Search.each,
    "anyOf": _Search.any,
    "oneOf": _Search.one,
    "not": _Search.negation,
    "if": _Search.conditional,
    "dependentSchemas": _Search.dependent,
    "dependencies": _Search.dependent,
}
