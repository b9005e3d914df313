"""Fields of a block: name, type, flags, default, and whether a value fits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

from gatewright.base.errors import JsonRefused, SchemaError, ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, checked_object

_NAME = re.compile(r"[^\W\d](?:[\w .\-]{0,62}\w)?")
COUNTER_LIMIT = 2**53 - 1
"""A counter is a double underneath: beyond this it would no longer be exact."""


class FieldType(StrEnum):
    """What a field holds. A counter is a whole number to which concurrent additions add up."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    LIST = "list"
    TIMESTAMP = "timestamp"
    COUNTER = "counter"


@frozen
class Field:
    """One field. ``required``: it always has a value; ``read_only``: agents may not change it.

    Raises SchemaError for a name or default that cannot be.
    """

    name: str
    type: FieldType
    description: str = ""
    required: bool = False
    read_only: bool = False
    default: JsonValue = None

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.default is None:
            return
        try:
            check_type(self.type, self.default, f"the default of `{self.name}`")
        except ToolFailure as failure:
            raise SchemaError(str(failure)) from None


def check_name(name: str) -> None:
    """Raises SchemaError unless ``name`` can name a field or section."""
    if not _NAME.fullmatch(name):
        raise SchemaError(f"`{name}` cannot name a field or section: a letter, then letters, digits, space, `.`, `-`")


def check_value(field: Field, value: JsonValue) -> JsonValue:
    """``value`` when the field may hold it; None takes the value away. Raises ToolFailure."""
    if value is not None:
        return check_type(field.type, value, f"field `{field.name}`")
    if field.required:
        raise ToolFailure(f"field `{field.name}` is required, so that it cannot be emptied", code="required-field")
    return None


def check_kept(fields: Sequence[Field], item: JsonValue) -> None:
    """Raises ToolFailure (``read-only``) when a read-only field of a new item has another value than its default."""
    for field in fields:
        if field.read_only and isinstance(item, dict) and item.get(field.name) != field.default:
            raise ToolFailure(f"field `{field.name}` is read-only", code="read-only")


def check_type(kind: FieldType, value: JsonValue, what: str) -> JsonValue:
    """``value`` when it is of that type. Raises ToolFailure (``wrong-type``)."""
    check_json(value)
    if not _fits(kind, value):
        raise ToolFailure(f"{what} takes {_WORDS[kind]}, not {_named(value)}", code="wrong-type")
    return value


def check_json(value: object) -> None:
    """Raises ToolFailure for what cannot be kept: no JSON, too large, too deep, half characters."""
    try:
        checked_object({"value": value})
    except JsonRefused as refused:
        raise ToolFailure(f"the value cannot be kept: {refused}", code="bad-value") from None


def _fits(kind: FieldType, value: JsonValue) -> bool:
    if kind is FieldType.TEXT:
        return isinstance(value, str)
    if kind is FieldType.BOOLEAN:
        return isinstance(value, bool)
    if kind is FieldType.LIST:
        return isinstance(value, list)
    if kind is FieldType.TIMESTAMP:
        return isinstance(value, str) and _is_moment(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return kind is FieldType.NUMBER or (isinstance(value, int) and abs(value) <= COUNTER_LIMIT)


def _is_moment(text: str) -> bool:
    """Whether ``text`` is a date and time with an offset (RFC 3339)."""
    try:
        return len(text) <= 64 and datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


_WORDS = {
    FieldType.TEXT: "text",
    FieldType.NUMBER: "a number",
    FieldType.BOOLEAN: "true or false",
    FieldType.LIST: "a list",
    FieldType.TIMESTAMP: "a date and time with an offset such as `2026-01-31T09:30:00Z`",
    FieldType.COUNTER: f"a whole number of at most {COUNTER_LIMIT:,} either way",
}


def _named(value: JsonValue) -> str:
    if value is None:
        return "null"
    if isinstance(value, int) and abs(value) > COUNTER_LIMIT:
        return "a larger one"
    names: dict[type, str] = {bool: "true or false", str: "text", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), "an object") if not isinstance(value, str) else "this text"
