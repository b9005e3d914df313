"""The first content of a block: which part of it a section gets, and what fields begin with. It makes no document."""

from __future__ import annotations

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.blocks.field import FieldType, check_value
from gatewright.blocks.schema import BlockSchema, CompositeSchema, MapSchema


def content_of(schema: BlockSchema, content: JsonValue, section: str) -> JsonValue:
    """What of the whole content is a section's. Raises ToolFailure."""
    if not isinstance(schema, CompositeSchema) or content is None:
        return content
    names = {item.name for item in schema.sections}
    if not isinstance(content, dict) or not names.issuperset(content):
        raise ToolFailure("the content of this block is an object of its sections", code="wrong-type")
    return content.get(section)


def with_defaults(part: MapSchema, content: JsonValue) -> JsonValue:
    """The fields that a map begins with. Raises ToolFailure when a required one has no value."""
    if content is not None and not isinstance(content, dict):
        raise ToolFailure("the content is an object of fields", code="wrong-type")
    given = content or {}
    values: dict[str, JsonValue] = dict(given)
    for field in part.fields:
        if given.get(field.name) is not None:
            continue
        values.pop(field.name, None)
        if field.default is not None:
            values[field.name] = field.default
        elif field.required and field.type is not FieldType.COUNTER:
            check_value(field, None)
    return values
