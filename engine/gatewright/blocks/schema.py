"""What a block is made of: the five schemas, as values.

A text, map, list or log is one part; a composite is named sections, each of them such a part.
"""

from __future__ import annotations

from gatewright.base.errors import SchemaError
from gatewright.base.frozen import frozen
from gatewright.blocks.field import Field, FieldType, check_name

MAX_CHARS = 4 * 1024 * 1024
MAX_ITEMS = 100_000
_MAX_PARTS = 256


@frozen
class Viewport:
    """The window of a text that is shown: from line ``start_line`` (from 1), ``lines`` of them.

    ``max_chars``: at most that many characters, whatever the lines hold; None for no such limit.
    """

    start_line: int = 1
    lines: int = 100
    max_chars: int | None = None

    def __post_init__(self) -> None:
        if self.start_line < 1 or self.lines < 1 or (self.max_chars is not None and self.max_chars < 1):
            raise SchemaError("a viewport counts lines and characters from 1")


@frozen
class TextSchema:
    """One text; ``viewport``: the window that is shown, None for all of it."""

    viewport: Viewport | None = None


@frozen
class MapSchema:
    """Named fields."""

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        _check_distinct([field.name for field in self.fields], "field")


@frozen
class ListSchema:
    """Items in order: of one type, or objects with ``fields``, or anything."""

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
    """Entries that are only ever added, the newest ``display_limit`` of them shown, newest first.

    An entry is ``{"message", ...fields}`` with ``at`` (when ``timestamp``) and ``author`` (when ``names_author``),
    which are filled in by us. A log that holds ``max_items`` takes no more: it never loses an entry.
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
