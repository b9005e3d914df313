"""Items of lists and entries of logs: how they are read and what they may hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from gatewright.base.errors import JsonRefused, ToolFailure
from gatewright.base.jsonvalue import JsonValue, canonical_json, parse_object
from gatewright.blocks.field import Field, FieldType, check_json, check_kept, check_type, check_value

if TYPE_CHECKING:
    from gatewright.blocks.schema import ListSchema, LogSchema

_MAX_LISTED = 12


def names_of(names: list[str]) -> str:
    """Names for a message, the first of many."""
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return ", ".join(f"`{name}`" for name in names[:_MAX_LISTED]) + more


def check_new(fields: Sequence[Field], before: Sequence[JsonValue], after: Sequence[JsonValue]) -> None:
    """Raises ToolFailure (``read-only``) when an item that was not there before fills a read-only field itself."""
    held = {canonical_json(item) for item in before}
    for item in after:
        if canonical_json(item) not in held:
            check_kept(fields, item)


def checked_item(item: JsonValue, schema: ListSchema) -> JsonValue:
    """An item as the list takes it. Raises ToolFailure."""
    if schema.item_type is not None:
        return check_type(schema.item_type, item, "an item")
    if not schema.fields:
        if item is None:
            raise ToolFailure("an item has a value", code="wrong-type")
        check_json(item)
        return item
    if not isinstance(item, dict):
        raise ToolFailure("an item is an object of fields", code="wrong-type")
    return cast("JsonValue", checked_object_of(item, schema.fields))


def checked_object_of(given: dict[str, JsonValue], fields: tuple[Field, ...]) -> dict[str, JsonValue]:
    """An item or entry with fields: types, required ones, defaults; unknown ones are refused."""
    known = {field.name for field in fields}
    for name in given:
        if name not in known:
            raise ToolFailure(
                f"there is no such field: fields are {names_of(sorted(known)) or 'none'}", code="no-field"
            )
    found: dict[str, JsonValue] = {}
    for field in fields:
        value = given.get(field.name)
        value = check_value(field, field.default if value is None else value)
        if value is not None:
            found[field.name] = value
    return found


def read_item(content: JsonValue, schema: ListSchema) -> JsonValue:
    """Text stands for an item: as it is where texts are taken, else read as JSON; either where anything is taken."""
    if not isinstance(content, str) or schema.item_type in {FieldType.TEXT, FieldType.TIMESTAMP}:
        return content
    if schema.item_type is not None or schema.fields:
        return _read_json(content)
    try:
        read = _read_json(content)
    except ToolFailure:
        return content
    return content if read is None else read


def read_entry(content: JsonValue, schema: LogSchema) -> dict[str, JsonValue]:
    """The fields of a new entry: of an object, or text as its message. Raises ToolFailure."""
    if isinstance(content, dict):
        return dict(content)
    if not isinstance(content, str):
        raise ToolFailure("an entry is text or an object", code="wrong-type")
    if schema.fields and content.lstrip().startswith("{"):
        read = _read_json(content)
        return read if isinstance(read, dict) else {"message": content}
    return {"message": content}


def _read_json(content: str) -> JsonValue:
    try:
        read = parse_object(f'{{"value":{content}}}')
    except JsonRefused as error:
        raise ToolFailure(f"the content has to be one JSON value here: {error}", code="not-json") from None
    if tuple(read) != ("value",):
        raise ToolFailure("the content has to be one JSON value here", code="not-json")
    return read["value"]
