"""The places in a call's arguments that select its operation: builds calls that name one, and reads the schema
there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import field
from functools import lru_cache
from typing import Any, cast

from gatewright.base.errors import SchemaError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.schema.check import SchemaChecker
from gatewright.schema.constraint import close_constraint
from gatewright.schema.inline import inline_references, rehome
from gatewright.schema.operation import ANY_KEY, EACH, EACH_MEMBER, OperationSet, Steps, steps_of, values_at
from gatewright.schema.walk import as_list, as_object, in_place, properties_of

Schema = dict[str, Any]
KEYED_FIELD = "{}"
_UNIONS = ("oneOf", "anyOf")


def places_of(field: str, found: OperationSet | None) -> tuple[Steps, ...]:
    """Return the places of the operation field; empty where the operation is the only key."""
    if found is None:
        return () if field == KEYED_FIELD else (steps_of(field),)
    return () if found.is_keyed else found.places


def naming(operation: str, places: Iterable[Steps]) -> dict[str, JsonValue]:
    """Build arguments that name the operation at all of the places and hold nothing else."""
    call: dict[str, JsonValue] = {}
    for steps in places:
        call = cast("dict[str, JsonValue]", _put(call, steps, operation))
    return call or {operation: {}}


def over(given: JsonValue, other: JsonValue) -> JsonValue:
    """Lay the values of ``other`` over ``given``; in lists, over every element."""
    if isinstance(given, dict) and isinstance(other, dict):
        return {**given, **{name: over(given.get(name), value) for name, value in other.items()}}
    if isinstance(given, list) and isinstance(other, list) and given and other:
        return [over(item, other[0]) for item in given]
    return other


@frozen
class Selector:
    """The operations that arguments can name, and the places to name them; without places the operation is the only
    key.

    ``repeats``: a call may also name operations deeper inside, at places that have no list.
    """

    names: tuple[str, ...]
    places: tuple[Steps, ...]
    repeats: bool = False
    schema: Schema = field(default_factory=dict[str, Any], compare=False, repr=False)

    @property
    def fields(self) -> frozenset[str]:
        """The top-level fields that contain the operation."""
        return frozenset(steps[0] for steps in self.places) if self.places else frozenset(self.names)

    def declared(self, field: str) -> JsonValue:
        """Return the field's schema in the tool's own schema; True if its root declares nothing."""
        return properties_of(inline_references(self.schema)).get(field, True)

    def defaults(self, field: str) -> list[JsonValue]:
        """Return the values of the field in a call without it, as the schema or one of its branches declares them."""
        held = [properties_of(part).get(field) for part in in_place(inline_references(self.schema), tests=False)]
        return [own["default"] for one in held if (own := as_object(one)) is not None and "default" in own]

    def refused(self, field: str, constraint: JsonValue) -> frozenset[str]:
        """Return the operations that no call can name if ``field`` satisfies ``constraint``, a JSON Schema.

        An unreadable schema refuses all of them.
        """
        if field not in self.fields:
            return frozenset()
        try:
            return _find_refused(self, field, canonical_json(constraint))
        except (SchemaError, ValueError, TypeError, LookupError, RecursionError):
            return frozenset(self.names)

    def rewritten(self, field: str, constraint: Schema, shown: frozenset[str]) -> Schema:
        """Rewrite ``constraint`` (inlined) on ``field`` so that it names only ``shown`` operations.

        It means the same for every call that names no other.
        """
        result = constraint
        for steps in self.places:
            if steps[0] == field:
                result = _rewritten(result, steps[1:], shown)
        return result


def selector_of(field: str, names: Iterable[str], found: OperationSet | None, schema: Schema) -> Selector:
    """Return the selector of ``names`` in calls that fit ``schema``: by ``found``, else by the declared ``field``."""
    repeats = found is not None and found.repeats is not None
    return Selector(tuple(names), places_of(field, found), repeats, schema)


@lru_cache(maxsize=4096)
def _find_refused(selector: Selector, field: str, canonical: bytes) -> frozenset[str]:
    constraint = close_constraint(json.loads(canonical))
    if not selector.places:
        return frozenset({field}) if constraint == {"not": {}} else frozenset()
    if selector.repeats or any(steps[0] != field for steps in selector.places):
        return frozenset()  # the operation can be named elsewhere
    names = frozenset(selector.names)
    for steps in selector.places:
        rules = FieldRules(_over(field, constraint), (steps,))
        names &= {name for name in names if not rules.accept(naming(name, (steps,)))}
    return names


def _over(field: str, constraint: Schema) -> Schema:
    """Return a schema of arguments whose ``field`` must satisfy the constraint, with its definitions."""
    home, guest = rehome({key: constraint[key] for key in ("$schema",) if key in constraint}, constraint)
    return {**home, "properties": {field: {key: value for key, value in guest.items() if key != "$schema"}}}


def _rewritten(node: Schema, steps: Steps, shown: frozenset[str]) -> Schema:
    if not steps:
        return _choice(node, shown)
    result = dict(node)
    for keyword in ("allOf", "anyOf", "oneOf"):
        if (branches := as_list(node.get(keyword))) is not None:
            result[keyword] = [_below(branch, steps, shown) for branch in branches]
    for keyword in ("not", "if", "then", "else"):
        if keyword in node:
            result[keyword] = _below(node[keyword], steps, shown)
    if steps[0] == EACH:
        for keyword in ("items", "contains", "additionalItems", "unevaluatedItems"):
            if keyword in node and as_list(node[keyword]) is None:
                result[keyword] = _below(node[keyword], steps[1:], shown)
        for keyword in ("prefixItems", "items"):
            if (array := as_list(node.get(keyword))) is not None:
                result[keyword] = [_below(item, steps[1:], shown) for item in array]
    elif steps[0] == EACH_MEMBER:
        for keyword in ("additionalProperties", "unevaluatedProperties"):
            if keyword in node:
                result[keyword] = _below(node[keyword], steps[1:], shown)
        for keyword in ("properties", "patternProperties"):
            if (table := as_object(node.get(keyword))) is not None:
                result[keyword] = {name: _below(held, steps[1:], shown) for name, held in table.items()}
    elif (own := as_object(node.get("properties"))) is not None and steps[0] in own:
        result["properties"] = {**own, steps[0]: _below(own[steps[0]], steps[1:], shown)}
    return _with_shown_values(result, steps, shown)


def _below(value: object, steps: Steps, shown: frozenset[str]) -> object:
    table = {} if value is True else as_object(value)
    return value if table is None else _rewritten(table, steps, shown)


def _choice(node: Schema, shown: frozenset[str]) -> Schema:
    """Reduce a schema of the operation itself to the shown ones and null."""
    if not node:
        return node
    checker = SchemaChecker(node)
    kept: list[JsonValue] = [name for name in sorted(shown) if checker.is_valid(name)]
    takes_null = checker.is_valid(None)
    if len(kept) == len(shown):
        return {} if takes_null else {"type": "string"}
    kept += [None] if takes_null else []
    return {"enum": kept} if kept else {"not": {}}


def _with_shown_values(node: Schema, steps: Steps, shown: frozenset[str]) -> Schema:
    """Drop listed whole values that name hidden operations."""
    values = [node["const"]] if "const" in node else as_list(node.get("enum"))
    if values is None:
        return node
    kept = [value for value in values if all(not isinstance(n, str) or n in shown for n in values_at(value, steps))]
    if len(kept) == len(values):
        return node
    rest = {key: value for key, value in node.items() if key not in {"const", "enum"}}
    return {**rest, "enum": kept} if kept else {**rest, "not": {}}


class FieldRules:
    """The schema's rules for the operation field. Raises SchemaError if one cannot be compiled."""

    def __init__(self, schema: Schema, places: tuple[Steps, ...]) -> None:
        inlined = inline_references(schema)
        kept = _project(inlined, places) if places else _keys(inlined)
        whole = {key: inlined[key] for key in ("$schema", "$defs") if key in inlined}
        self._checker = SchemaChecker({**cast("Schema", kept), **whole})

    def accept(self, call: dict[str, JsonValue]) -> bool:
        """Tell whether the rules allow the operation that ``call`` names."""
        return self._checker.is_valid(call)


def _put(value: JsonValue, steps: Steps, operation: str) -> JsonValue:
    if not steps:
        return operation
    step, rest = steps[0], steps[1:]
    if step == EACH:
        return [_put(value[0] if isinstance(value, list) and value else None, rest, operation)]
    table = value if isinstance(value, dict) else {}
    step = ANY_KEY if step == EACH_MEMBER else step
    return {**table, step: _put(table.get(step), rest, operation)}


def _project(schema: object, places: tuple[Steps, ...]) -> object:
    """Reduce the schema to the parts about these places; other variants of a union keep their parts about them."""
    if not isinstance(schema, dict):
        return schema
    table = cast("Schema", schema)
    if () in places:
        return table
    kept: Schema = {"type": table["type"]} if "type" in table else {}
    values = [table["const"]] if "const" in table else as_list(table.get("enum"))
    listed = [] if values is None else [{"anyOf": [_shape(value, places) for value in values]}]
    both = listed
    both += [_project(branch, places) for branch in cast("list[object]", table.get("allOf", []))]
    both += [
        {"anyOf": [_project(branch, places) for branch in cast("list[object]", table[keyword])]}
        for keyword in _UNIONS
        if keyword in table
    ]
    if both:
        kept["allOf"] = both
    properties = cast("Schema", table.get("properties", {}))
    for step in dict.fromkeys(steps[0] for steps in places):
        below = tuple(steps[1:] for steps in places if steps[0] == step)
        if step == EACH:
            kept["items"] = _project(table.get("items", True), below)
        elif step == EACH_MEMBER:  # any of these may be the schema of the member
            named = [*properties.values(), *cast("Schema", table.get("patternProperties", {})).values()]
            held = [*named, table.get("additionalProperties", True)]
            kept["additionalProperties"] = {"anyOf": [_project(one, below) for one in held]}
        elif step in properties:
            kept.setdefault("properties", {})[step] = _project(properties[step], below)
        elif table.get("additionalProperties") is False:
            kept.setdefault("properties", {})[step] = False
    return kept


def _shape(value: object, places: tuple[Steps, ...]) -> object:
    """Return a listed whole value as a schema of these places."""
    if () in places:
        return {"const": value}
    table, array = as_object(value), as_list(value)
    if array is not None:
        below = tuple(steps[1:] for steps in places if steps[0] == EACH)
        return {"items": {"anyOf": [_shape(item, below) for item in array]} if array else False} if below else True
    if table is None:
        return True
    members = tuple(steps[1:] for steps in places if steps[0] == EACH_MEMBER)
    if members:
        return {"additionalProperties": {"anyOf": [_shape(one, members) for one in table.values()]} if table else False}
    rows = {step: tuple(steps[1:] for steps in places if steps[0] == step) for step in (one[0] for one in places)}
    return {"properties": {step: _shape(table[step], own) for step, own in rows.items() if step in table}}


def _keys(schema: object) -> object:
    """Reduce the schema to its rules for names."""
    if not isinstance(schema, dict):
        return schema
    table = cast("Schema", schema)
    kept: Schema = {key: table[key] for key in ("type", "required", "additionalProperties") if key in table}
    if "properties" in table:
        kept["properties"] = dict.fromkeys(cast("Schema", table["properties"]), True)
    both = [_keys(branch) for branch in cast("list[object]", table.get("allOf", []))]
    both += [
        {"anyOf": [_keys(branch) for branch in cast("list[object]", table[keyword])]}
        for keyword in _UNIONS
        if keyword in table
    ]
    return {**kept, "allOf": both} if both else kept
