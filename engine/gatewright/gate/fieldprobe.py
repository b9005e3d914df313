"""Where a shown schema selects operations: a call that names one there, and whether the schema accepts it there.

What the schema says of everything else is left aside. It knows no tools, policies or calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from gatewright.base.jsonvalue import JsonValue
from gatewright.schema.check import SchemaChecker
from gatewright.schema.fieldpath import EACH, Steps, steps_of
from gatewright.schema.inline import inline_references
from gatewright.schema.operation import OperationSet

Schema = dict[str, Any]
KEYED_FIELD = "{}"
_UNIONS = ("oneOf", "anyOf")


def places_of(field: str, found: OperationSet | None) -> tuple[Steps, ...]:
    """The places of the operation field; empty where the operation is the only key."""
    if found is None:
        return () if field == KEYED_FIELD else (steps_of(field),)
    return () if found.is_keyed else found.places


def naming(operation: str, places: Iterable[Steps]) -> dict[str, JsonValue]:
    """Arguments that name the operation at all of the places, and hold nothing else."""
    call: dict[str, JsonValue] = {}
    for steps in places:
        call = cast("dict[str, JsonValue]", _put(call, steps, operation))
    return call or {operation: {}}


def over(given: JsonValue, other: JsonValue) -> JsonValue:
    """``given`` with what ``other`` holds put over it; in lists, into every element."""
    if isinstance(given, dict) and isinstance(other, dict):
        return {**given, **{name: over(given.get(name), value) for name, value in other.items()}}
    if isinstance(given, list) and isinstance(other, list) and given and other:
        return [over(item, other[0]) for item in given]
    return other


class FieldRules:
    """What a schema accepts at the operation field. Raises SchemaError for one that cannot be compiled."""

    def __init__(self, schema: Schema, places: tuple[Steps, ...]) -> None:
        inlined = inline_references(schema)
        kept = _projected(inlined, places) if places else _keys(inlined)
        self._checker = SchemaChecker({**cast("Schema", kept), "$defs": inlined.get("$defs", {})})

    def accept(self, call: dict[str, JsonValue]) -> bool:
        """Whether the operation that the call names there is one of those."""
        return self._checker.is_valid(call)


def _put(value: JsonValue, steps: Steps, operation: str) -> JsonValue:
    if not steps:
        return operation
    step, rest = steps[0], steps[1:]
    if step == EACH:
        return [_put(value[0] if isinstance(value, list) and value else None, rest, operation)]
    table = value if isinstance(value, dict) else {}
    return {**table, step: _put(table.get(step), rest, operation)}


def _projected(schema: object, places: tuple[Steps, ...]) -> object:
    """The schema with what bears on these places only; other variants of a union stay as far as they do."""
    if not isinstance(schema, dict):
        return schema
    table = cast("Schema", schema)
    if () in places:
        return table
    kept: Schema = {"type": table["type"]} if "type" in table else {}
    both = [_projected(branch, places) for branch in cast("list[object]", table.get("allOf", []))]
    both += [
        {"anyOf": [_projected(branch, places) for branch in cast("list[object]", table[keyword])]}
        for keyword in _UNIONS
        if keyword in table
    ]
    if both:
        kept["allOf"] = both
    properties = cast("Schema", table.get("properties", {}))
    for step in dict.fromkeys(steps[0] for steps in places):
        below = tuple(steps[1:] for steps in places if steps[0] == step)
        if step == EACH:
            kept["items"] = _projected(table.get("items", True), below)
        elif step in properties:
            kept.setdefault("properties", {})[step] = _projected(properties[step], below)
        elif table.get("additionalProperties") is False:
            kept.setdefault("properties", {})[step] = False
    return kept


def _keys(schema: object) -> object:
    """The schema with what it says of names only."""
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
