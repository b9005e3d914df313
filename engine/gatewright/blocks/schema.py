"""Blocks as values: the five schemas, their fields, and edits, each with one meaning.

A text, map, list or log is one part; a composite has named sections, each with one such part. ``section`` names a
composite's section; it is None elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import assert_never

from gatewright.base.errors import JsonRefused, SchemaError, ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, check_object

_NAME = re.compile(r"[^\W\d](?:[\w .\-]{0,62}\w)?")
COUNTER_LIMIT = 2**53 - 1
"""The limit of a counter: Loro stores a double, which is exact up to this number."""


class FieldType(StrEnum):
    """The type of a field's value. A counter is a whole number to which concurrent additions add up."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    LIST = "list"
    TIMESTAMP = "timestamp"
    COUNTER = "counter"


@frozen
class Field:
    """One field. ``required``: it always has a value; ``read_only``: agents may not change it.

    Raises SchemaError for an impossible name or default.
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
    """Raise SchemaError unless ``name`` can name a field or section."""
    if not _NAME.fullmatch(name):
        raise SchemaError(f"`{name}` cannot name a field or section: a letter, then letters, digits, space, `.`, `-`")


def check_value(field: Field, value: JsonValue) -> JsonValue:
    """Return ``value`` if the field may hold it; None empties the field. Raises ToolFailure."""
    if value is not None:
        return check_type(field.type, value, f"field `{field.name}`")
    if field.required:
        raise ToolFailure(f"field `{field.name}` is required and cannot be emptied", code="required-field")
    return None


def check_kept(fields: Sequence[Field], item: JsonValue) -> None:
    """Raise ToolFailure (``read-only``) if a read-only field of a new item differs from its default."""
    for field in fields:
        if field.read_only and isinstance(item, dict) and item.get(field.name) != field.default:
            raise ToolFailure(f"field `{field.name}` is read-only", code="read-only")


def check_type(kind: FieldType, value: JsonValue, what: str) -> JsonValue:
    """Return ``value`` if it has that type. Raises ToolFailure (``wrong-type``)."""
    check_json(value)
    if not _fits(kind, value):
        raise ToolFailure(f"{what} takes {_WORDS[kind]}, not {_name_type(value)}", code="wrong-type")
    return value


def check_json(value: object) -> None:
    """Raise ToolFailure for a value that no block can store: no JSON, too large, too deep, half characters."""
    try:
        check_object({"value": value})
    except JsonRefused as refused:
        raise ToolFailure(f"the value cannot be stored: {refused}", code="bad-value") from None


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
    """Tell whether ``text`` is a date and time with an offset (RFC 3339)."""
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


def _name_type(value: JsonValue) -> str:
    if value is None:
        return "null"
    if isinstance(value, int) and abs(value) > COUNTER_LIMIT:
        return "a larger one"
    names: dict[type, str] = {bool: "true or false", str: "text", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), "an object") if not isinstance(value, str) else "this text"


MAX_CHARS = 4 * 1024 * 1024
MAX_ITEMS = 100_000
_MAX_PARTS = 256


@frozen
class Viewport:
    """The visible window of a text: ``lines`` lines from line ``start_line`` (from 1) on.

    ``max_chars``: the most characters; None means no such limit.
    """

    start_line: int = 1
    lines: int = 100
    max_chars: int | None = None

    def __post_init__(self) -> None:
        if self.start_line < 1 or self.lines < 1 or (self.max_chars is not None and self.max_chars < 1):
            raise SchemaError("a viewport counts lines and characters from 1")


@frozen
class TextSchema:
    """One text; ``viewport``: the visible window, None for the whole text."""

    viewport: Viewport | None = None


@frozen
class MapSchema:
    """Named fields."""

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        _check_distinct([field.name for field in self.fields], "field")


@frozen
class ListSchema:
    """A list of items: of one type, objects with ``fields``, or anything."""

    item_type: FieldType | None = None
    fields: tuple[Field, ...] = ()
    max_items: int | None = None

    def __post_init__(self) -> None:
        _check_distinct([field.name for field in self.fields], "field")
        _check_limit(self.max_items, "max_items")
        if self.item_type is not None and self.fields:
            raise SchemaError("items have either a type or fields")


@frozen
class LogSchema:
    """Entries, to which edits only add; the model sees the newest ``display_limit``, newest first.

    An entry is ``{"message", ...fields}``, and the block adds ``at`` (if ``timestamp``) and ``author`` (if
    ``names_author``). A log with ``max_items`` entries takes no more: it never loses an entry.
    """

    fields: tuple[Field, ...] = ()
    display_limit: int = 20
    timestamp: bool = True
    names_author: bool = True
    max_items: int | None = None

    def __post_init__(self) -> None:
        names = [field.name for field in self.fields]
        _check_distinct(names, "field")
        _check_limit(self.display_limit, "display_limit")
        _check_limit(self.max_items, "max_items")
        for name in {"at", "author", "message"}.intersection(names):
            raise SchemaError(f"every entry of a log has `{name}` of its own: name the field otherwise")


PartSchema = TextSchema | MapSchema | ListSchema | LogSchema


@frozen
class Section:
    """One named part of a composite; ``read_only``: agents may not change it."""

    name: str
    schema: PartSchema
    description: str = ""
    read_only: bool = False

    def __post_init__(self) -> None:
        check_name(self.name)


@frozen
class CompositeSchema:
    """Named sections in order."""

    sections: tuple[Section, ...]

    def __post_init__(self) -> None:
        _check_distinct([section.name for section in self.sections], "section")
        if not self.sections:
            raise SchemaError("a composite has at least one section")


BlockSchema = TextSchema | MapSchema | ListSchema | LogSchema | CompositeSchema


def _check_distinct(names: list[str], what: str) -> None:
    if len(names) > _MAX_PARTS:
        raise SchemaError(f"more than {_MAX_PARTS} {what}s")
    for at, name in enumerate(names):
        if name in names[:at]:
            raise SchemaError(f"{what} `{name}` stands there twice")


def _check_limit(limit: int | None, what: str) -> None:
    if limit is not None and not 1 <= limit <= MAX_ITEMS:
        raise SchemaError(f"{what} is a number from 1 to {MAX_ITEMS:,}")


@frozen
class Append:
    """Adds ``content`` at the end of a text, list or log; a text gets exactly this, without a line end.

    A text is read as JSON unless the items or entries are texts.
    """

    content: JsonValue
    section: str | None = None


@frozen
class Replace:
    """Puts ``new`` in place of ``old``: at its first place, everywhere, or at the ``nth`` (from 1).

    ``regex``: ``old`` is an RE2 pattern; ``new`` may contain ``\\1`` to ``\\9`` for its groups, ``\\0`` for the match
    and ``\\\\`` for a backslash. ``everywhere`` and ``nth`` exclude each other.
    """

    old: str
    new: str
    everywhere: bool = False
    nth: int | None = None
    regex: bool = False
    section: str | None = None


@frozen
class Patch:
    """Applies a unified diff to one text; the diff's context and removed lines have to match."""

    patch: str
    section: str | None = None


@frozen
class SetField:
    """Gives a field a value; None removes the value.

    ``section`` None in a composite: ``field`` names a whole section.
    """

    field: str
    value: JsonValue
    section: str | None = None


@frozen
class Overwrite:
    """Replaces all content: text, object, list; for a composite an object of sections.

    It empties the fields that an object omits, but leaves omitted sections alone.
    """

    content: JsonValue
    section: str | None = None


@frozen
class Undo:
    """Takes back this author's last edit in force; the edits of others stay."""


@frozen
class Redo:
    """Repeats the edit that this author took back last."""


Edit = Append | Replace | Patch | SetField | Overwrite | Undo | Redo


def kind_of(edit: Edit) -> str:
    """The edit's name in a history."""
    match edit:
        case Append():
            return "append"
        case Replace():
            return "replace"
        case Patch():
            return "patch"
        case SetField():
            return "set_field"
        case Overwrite():
            return "overwrite"
        case Undo():
            return "undo"
        case Redo():
            return "redo"
        case _:
            assert_never(edit)


def is_addition(edit: Edit) -> bool:
    """Tell whether the edit only adds at the end."""
    return isinstance(edit, Append)
