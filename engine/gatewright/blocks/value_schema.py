"""What a block may hold, as a JSON Schema, for forms; and a whole value made of what was filled in."""

from __future__ import annotations

from typing import assert_never

from gatewright.base.jsonvalue import JsonValue
from gatewright.blocks.field import COUNTER_LIMIT, Field, FieldType
from gatewright.blocks.schema import (
    MAX_CHARS,
    BlockSchema,
    CompositeSchema,
    ListSchema,
    LogSchema,
    MapSchema,
    TextSchema,
)

_TYPES: dict[FieldType, dict[str, JsonValue]] = {
    FieldType.TEXT: {"type": "string"},
    FieldType.NUMBER: {"type": "number"},
    FieldType.BOOLEAN: {"type": "boolean"},
    FieldType.LIST: {"type": "array"},
    FieldType.TIMESTAMP: {"type": "string", "format": "date-time"},
    FieldType.COUNTER: {"type": "integer", "minimum": -COUNTER_LIMIT, "maximum": COUNTER_LIMIT},
}


def value_schema(schema: BlockSchema) -> dict[str, JsonValue]:
    """The JSON Schema of what the operator may put in the place of a block's value.

    Logs are left out of the sections of a composite, since nothing is put in their place.
    """
    match schema:
        case TextSchema():
            return {"type": "string", "maxLength": MAX_CHARS}
        case MapSchema():
            return _object(schema.fields)
        case ListSchema():
            items = _object(schema.fields) if schema.fields else _TYPES[schema.item_type] if schema.item_type else {}
            limit: dict[str, JsonValue] = {"maxItems": schema.max_items} if schema.max_items is not None else {}
            return {"type": "array", "items": items, **limit}
        case LogSchema():
            return {"type": "array", "items": {"type": "object"}}
        case CompositeSchema():
            sections: dict[str, JsonValue] = {
                section.name: {**value_schema(section.schema), **_about(section.description, section.read_only)}
                for section in schema.sections
                if not isinstance(section.schema, LogSchema)
            }
            return {"type": "object", "properties": sections, "additionalProperties": False}
        case _:
            assert_never(schema)


def whole_value(schema: BlockSchema, given: JsonValue) -> JsonValue:
    """What was given, with what writing over a value would leave as it was: missing sections empty, counters 0."""
    if isinstance(schema, CompositeSchema) and isinstance(given, dict):
        parts = [part for part in schema.sections if part.name in given or not isinstance(part.schema, LogSchema)]
        return {**given, **{part.name: whole_value(part.schema, given.get(part.name)) for part in parts}}
    if isinstance(schema, MapSchema) and isinstance(given, dict | None):
        counters = [field.name for field in schema.fields if field.type is FieldType.COUNTER]
        return {**dict.fromkeys(counters, 0), **(given or {})}
    if given is None:
        return "" if isinstance(schema, TextSchema) else []
    return given


def _object(fields: tuple[Field, ...]) -> dict[str, JsonValue]:
    properties: dict[str, JsonValue] = {
        field.name: {**_TYPES[field.type], **_about(field.description, field.read_only)}
        | ({} if field.default is None else {"default": field.default})
        for field in fields
    }
    required: list[JsonValue] = [field.name for field in fields if field.required and field.default is None]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _about(description: str, read_only: bool) -> dict[str, JsonValue]:
    """What is said of a part; ``read_only`` binds agents alone."""
    said = "; ".join(one for one in (description, "agents may not change it" if read_only else "") if one)
    return {"description": said} if said else {}
