"""What one schema asks of a value itself: its type, range, length, keys; not what it asks of the values inside."""

from __future__ import annotations

from itertools import islice
from typing import cast

import jsonschema_rs
from jsonschema_rs import ValidationErrorKind as Kind

from gatewright.base.frozen import frozen
from gatewright.base.once import once
from gatewright.schema.engine import compiled
from gatewright.schema.phrase import message, unknown_keys
from gatewright.schema.walk import Pointer, Schema, as_list, as_object, properties_of

MAX_HELD = 500
"""Items of a list, or keys of an object, that are looked at."""

_OWN = (
    *("type", "enum", "const", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems"),
    *("minProperties", "maxProperties", "required", "dependentRequired"),
)
_DEEP = ("enum", "const", "uniqueItems")
_TOO_FEW = ("minItems", "minProperties", "required", "dependentRequired", "dependencies")


@frozen
class Fault:
    """What is wrong at a place; ``is_kind``: the value is of another type than asked for."""

    at: Pointer
    message: str
    is_kind: bool = False
    is_missing: bool = False
    is_union: bool = False


class Assertion:
    """The keywords of one schema that look at the value alone, compiled once; safe to use from any thread."""

    def __init__(self, schema: Schema, dialect: Schema, *, check_formats: bool = False) -> None:
        """``dialect``: what says the draft. ``check_formats``: `format` is one of the keywords. Raises ValueError."""
        own = {key: schema[key] for key in (*_OWN, *(("format",) if check_formats else ())) if key in schema}
        lists = {key: value for key, value in (as_object(schema.get("dependencies")) or {}).items() if as_list(value)}
        own |= ({"dependencies": lists} if lists else {}) | _closed(schema)
        self._schema = schema
        self._validator = compiled({**dialect, **own}, check_formats=check_formats) if own else None
        self._is_deep = any(key in own for key in _DEEP)
        self._is_closed = schema.get("additionalProperties") is False

    @once
    def patterns(self) -> list[tuple[jsonschema_rs.Validator, object]]:
        """The schemas for keys by what the key looks like."""
        patterns = as_object(self._schema.get("patternProperties")) or {}
        return [(compiled({"pattern": pattern}), held) for pattern, held in patterns.items()]

    def faults(self, value: object, at: Pointer) -> tuple[list[Fault], bool]:
        """What is wrong with ``value`` itself, and whether there is more that could not be told."""
        found: list[Fault] = []
        is_unknown = False
        seen = value if self._is_deep else _hollow(value)
        if self._validator is not None and not self._validator.is_valid(seen):
            found = self._told(self._validator, seen, at)
            is_unknown = not found
        if self._is_closed and isinstance(value, dict):
            keys = properties_of(self._schema)
            table = cast("Schema", value)
            count = sum(key not in keys and not any(one.is_valid(key) for one, _ in self.patterns) for key in table)
            found += [Fault(at, unknown_keys(count, list(keys)))] if count else []
        return found, is_unknown

    @staticmethod
    def _told(validator: jsonschema_rs.Validator, value: object, at: Pointer) -> list[Fault]:
        """The engine's errors for the first part of a long value, without those that only the part has."""
        part = _part(value)
        kinds = [error.kind for error in validator.iter_errors(part)]
        if part is not value:
            held = cast("Schema", value)  # an object, where a key is missing
            kinds = [
                kind
                for kind in kinds
                if kind.name not in _TOO_FEW or (isinstance(kind, Kind.Required) and kind.property not in held)
            ]
        return [
            Fault(at, message(kind), isinstance(kind, Kind.Type), isinstance(kind, Kind.Required)) for kind in kinds
        ]


def _closed(schema: Schema) -> Schema:
    """What forbids further items, with what it counts from."""
    result: Schema = {}
    for keyword, rest in (("prefixItems", "items"), ("items", "additionalItems")):
        array = as_list(schema.get(keyword))
        if array is not None and schema.get(rest) is False:
            result |= {keyword: [True] * len(array), rest: False}
    if schema.get("items") is False and "prefixItems" not in schema:
        result["items"] = False
    return result


def _hollow(value: object) -> object:
    if isinstance(value, dict):
        return dict.fromkeys(cast("Schema", value))
    return [None] * len(cast("list[object]", value)) if isinstance(value, list) else value


def _part(value: object) -> object:
    table, array = as_object(value), as_list(value)
    if table is not None and len(table) > MAX_HELD:
        return dict(islice(table.items(), MAX_HELD))
    return array[:MAX_HELD] if array is not None and len(array) > MAX_HELD else value
