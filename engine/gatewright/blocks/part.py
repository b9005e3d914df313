"""The parts of a block in one Loro document: reading them, checking their values, applying planned operations.

Root containers, by section (``""`` if there is only one): ``body:S`` (plain ``body`` for a single text, as in
``TextBlock``), ``fields:S``, ``items:S``, ``entries:S``; each counter has its own container ``counter:S:FIELD``.

``char_limit`` counts the characters of texts, and for other values the characters of their JSON and field name. An edit
that makes a block smaller always passes, even above a lowered limit.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import assert_never, cast

import loro

from gatewright.base.errors import GatewrightError, JsonRefused, ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, canonical_json, parse_object
from gatewright.base.late import aio
from gatewright.blocks.schema import (
    MAX_CHARS,
    MAX_ITEMS,
    BlockSchema,
    CompositeSchema,
    Field,
    FieldType,
    ListSchema,
    LogSchema,
    MapSchema,
    PartSchema,
    TextSchema,
    check_json,
    check_kept,
    check_type,
    check_value,
)
from gatewright.blocks.textedit import Splice, with_splices


def passing() -> tuple[type[BaseException], ...]:
    """Exceptions that are no failures: interrupts, the end of the program, cancellation."""
    return KeyboardInterrupt, SystemExit, GeneratorExit, aio.CancelledError


@contextmanager
def guard(failure: GatewrightError) -> Generator[None]:
    """Turn any error of Loro into ``failure``; let interrupts and cancellation pass."""
    try:
        yield
    except passing():
        raise
    except BaseException as error:
        raise failure from error


_MAX_LISTED = 12


def names_of(names: list[str]) -> str:
    """Join the first names for a message."""
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return ", ".join(f"`{name}`" for name in names[:_MAX_LISTED]) + more


def check_new(fields: Sequence[Field], before: Sequence[JsonValue], after: Sequence[JsonValue]) -> None:
    """Raise ToolFailure (``read-only``) if a new item sets a read-only field itself."""
    held = {canonical_json(item) for item in before}
    for item in after:
        if canonical_json(item) not in held:
            check_kept(fields, item)


def check_item(item: JsonValue, schema: ListSchema) -> JsonValue:
    """Return an item in the list's form. Raises ToolFailure."""
    if schema.item_type is not None:
        return check_type(schema.item_type, item, "an item")
    if not schema.fields:
        if item is None:
            raise ToolFailure("an item has a value", code="wrong-type")
        check_json(item)
        return item
    if not isinstance(item, dict):
        raise ToolFailure("an item is an object of fields", code="wrong-type")
    return cast("JsonValue", check_fields(item, schema.fields))


def check_fields(given: dict[str, JsonValue], fields: tuple[Field, ...]) -> dict[str, JsonValue]:
    """Check the fields of an item or entry and add defaults; refuse unknown fields."""
    known = {field.name for field in fields}
    for name in given:
        if name not in known:
            raise ToolFailure(f"no such field: fields are {names_of(sorted(known)) or 'none'}", code="no-field")
    found: dict[str, JsonValue] = {}
    for field in fields:
        value = given.get(field.name)
        value = check_value(field, field.default if value is None else value)
        if value is not None:
            found[field.name] = value
    return found


def read_item(content: JsonValue, schema: ListSchema) -> JsonValue:
    """Read a text as an item: unchanged for lists of texts, else as JSON; lists of anything accept both."""
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
    """Return the fields of a new entry; a text becomes its message. Raises ToolFailure."""
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
        raise ToolFailure(f"the content must be one JSON value here: {error}", code="not-json") from None
    if tuple(read) != ("value",):
        raise ToolFailure("the content must be one JSON value here", code="not-json")
    return read["value"]


@frozen
class TextOp:
    """Splices of a text, in order."""

    name: str
    splices: tuple[Splice, ...]


@frozen
class ListOp:
    """Inserts ``inserted`` in place of ``removed`` items from ``start`` on."""

    name: str
    start: int
    removed: int
    inserted: tuple[JsonValue, ...]


@frozen
class MapOp:
    """Sets a key of a map; None removes it."""

    name: str
    key: str
    value: JsonValue


@frozen
class CounterOp:
    """Adds ``by`` to a counter."""

    name: str
    by: int


Op = TextOp | ListOp | MapOp | CounterOp


class Document:
    """A Loro document seen through a schema; it caches each text until the text changes."""

    def __init__(self, loro_document: loro.LoroDoc, schema: BlockSchema) -> None:
        self.loro = loro_document
        self.parts: dict[str, PartSchema] = (
            {section.name: section.schema for section in schema.sections}
            if isinstance(schema, CompositeSchema)
            else {"": schema}
        )
        self._texts: dict[str, str] = {}
        self._pending: dict[str, list[tuple[Splice, ...]]] = {}
        self._handles: dict[str, loro.LoroText] = {}
        self._chars: int | None = None

    def forget(self) -> None:
        """Forget the texts read so far."""
        self._texts.clear()
        self._pending.clear()
        self._chars = None

    def text(self, section: str) -> str:
        """The text of a section."""
        name = text_name(section)
        found = self._texts.get(name)
        if found is None:
            found = self._texts[name] = self._handle(name).to_string()
        for splices in self._pending.pop(name, ()):
            found = self._texts[name] = with_splices(found, splices)
        return found

    def text_length(self, section: str) -> int:
        """Count the characters of a text."""
        return self._handle(text_name(section)).len_unicode

    def items(self, section: str) -> list[JsonValue]:
        """The items of a list or the entries of a log, oldest first."""
        return cast("list[JsonValue]", self.loro.get_list(self._list_name(section)).get_deep_value())

    def item_count(self, section: str) -> int:
        """Count the items of a list or the entries of a log."""
        return len(self.loro.get_list(self._list_name(section)))

    def fields(self, section: str) -> dict[str, JsonValue]:
        """Return the values of a map by field; fields without a value are absent, counters always present."""
        schema = self.parts[section]
        if not isinstance(schema, MapSchema):
            return {}
        stored = cast("dict[str, JsonValue]", self.loro.get_map(map_name(section)).get_deep_value())
        found: dict[str, JsonValue] = {}
        for field in schema.fields:
            if field.type is FieldType.COUNTER:
                found[field.name] = self.counter(section, field.name)
            elif stored.get(field.name) is not None:
                found[field.name] = stored[field.name]
        return found

    def counter(self, section: str, field: str) -> int:
        """Return the value of a counter."""
        return round(float(self.loro.get_counter(counter_name(section, field))))

    def part(self, section: str) -> JsonValue:
        """The value of one section: text, object or list."""
        schema = self.parts[section]
        match schema:
            case TextSchema():
                return self.text(section)
            case MapSchema():
                return cast("JsonValue", self.fields(section))
            case ListSchema() | LogSchema():
                return self.items(section)
            case _:
                assert_never(schema)

    def chars(self) -> int:
        """The size that ``char_limit`` limits: characters of texts; for other values those of their JSON and name."""
        if self._chars is None:
            chars = 0
            for section, schema in self.parts.items():
                match schema:
                    case TextSchema():
                        chars += self.text_length(section)
                    case MapSchema():
                        stored = cast("dict[str, JsonValue]", self.loro.get_map(map_name(section)).get_deep_value())
                        chars += sum(_entry_chars(key, value) for key, value in stored.items())
                    case ListSchema() | LogSchema():
                        chars += sum(json_chars(item) for item in self.items(section))
                    case _:
                        assert_never(schema)
            self._chars = chars  # only now, so that an unreadable part leaves no partial count
        return self._chars

    def grown(self, ops: tuple[Op, ...]) -> int:
        """Compute by how much the operations would change ``chars``."""
        grown = 0
        for op in ops:
            grown += self._growth(op)
        return grown

    def apply(self, ops: tuple[Op, ...]) -> None:
        """Execute the operations, and commit them as one."""
        grown = self.grown(ops) if self._chars is not None else 0
        for op in ops:
            self._apply(op)
        self.loro.commit()
        if self._chars is not None:
            self._chars += grown

    def _apply(self, op: Op) -> None:
        match op:
            case TextOp():
                handle = self._handle(op.name)
                for splice in reversed(op.splices):
                    if splice.removed:
                        handle.delete(splice.start, splice.removed)
                    if splice.inserted:
                        handle.insert(splice.start, splice.inserted)
                if op.name in self._texts:
                    self._follow(op)
            case ListOp():
                items = self.loro.get_list(op.name)
                if op.removed:
                    items.delete(op.start, op.removed)
                for step, item in enumerate(op.inserted):
                    items.insert(op.start + step, _loro_value(item))
            case MapOp():
                values = self.loro.get_map(op.name)
                if op.value is not None:
                    values.insert(op.key, _loro_value(op.value))
                elif op.key in values:
                    values.delete(op.key)
            case CounterOp():
                self.loro.get_counter(op.name).increment(op.by)
            case _:
                assert_never(op)

    def _follow(self, op: TextOp) -> None:
        """Update a cached text while that costs less than reading it again."""
        waiting = self._pending.setdefault(op.name, [])
        waiting.append(op.splices)
        if len(op.splices) > 64 or len(waiting) > 2:
            del self._texts[op.name], self._pending[op.name]

    def _growth(self, op: Op) -> int:
        match op:
            case TextOp():
                grown = 0
                for splice in op.splices:
                    grown += len(splice.inserted) - splice.removed
                return grown
            case ListOp():
                gone = 0
                if op.removed:
                    items = self.loro.get_list(op.name)
                    gone = sum(json_chars(_value(items, op.start + step)) for step in range(op.removed))
                return sum(json_chars(item) for item in op.inserted) - gone
            case MapOp():
                held = cast("dict[str, JsonValue]", self.loro.get_map(op.name).get_deep_value()).get(op.key)
                return _entry_chars(op.key, op.value) - _entry_chars(op.key, held)
            case CounterOp():
                return 0
            case _:
                assert_never(op)

    def _handle(self, name: str) -> loro.LoroText:
        found = self._handles.get(name)
        if found is None:
            found = self._handles[name] = self.loro.get_text(name)
        return found

    def _list_name(self, section: str) -> str:
        return list_name(section, self.parts[section])


def text_name(section: str) -> str:
    """Name the container of a text."""
    return f"body:{section}" if section else "body"


def map_name(section: str) -> str:
    """Name the container of a map."""
    return f"fields:{section}"


def list_name(section: str, schema: PartSchema) -> str:
    """Name the container of a list or log."""
    return f"{'entries' if isinstance(schema, LogSchema) else 'items'}:{section}"


def counter_name(section: str, field: str) -> str:
    """Name the container of a counter."""
    return f"counter:{section}:{field}"


def json_chars(value: JsonValue) -> int:
    """Count the characters of a value's JSON."""
    return len(canonical_json(value).decode("utf-8"))


def _loro_value(value: JsonValue) -> loro.LoroValue:
    """Cast a value to Loro's type."""
    return cast("loro.LoroValue", value)


def _entry_chars(key: str, value: JsonValue) -> int:
    return 0 if value is None else len(key) + json_chars(value)


def _value(items: loro.LoroList, at: int) -> JsonValue:
    found = items.get(at)
    if found is None or not isinstance(found, loro.ValueOrContainer.Value):
        return None
    return cast("JsonValue", found.value)


def check_growth(document: Document, ops: tuple[Op, ...], char_limit: int | None) -> None:
    """Raise ToolFailure (``too-large``, ``too-many-items``) if the operations would make the block too large."""
    grown, limit = document.grown(ops), MAX_CHARS if char_limit is None else min(char_limit, MAX_CHARS)
    if grown > 0 and (chars := document.chars() + grown) > limit:
        said = f"the block would have {chars:,} characters, more than its limit of {limit:,}"
        raise ToolFailure(said, code="too-large")
    counts: dict[str, int] = {}
    for op in ops:
        if isinstance(op, ListOp):
            counts[op.name] = counts.get(op.name, 0) + len(op.inserted) - op.removed
    for section, schema in document.parts.items() if counts else ():
        more = counts.get(list_name(section, schema), 0)
        if more <= 0 or not isinstance(schema, ListSchema | LogSchema):
            continue
        count = document.item_count(section) + more
        most = MAX_ITEMS if schema.max_items is None else schema.max_items
        if count > most:
            what = "entries" if isinstance(schema, LogSchema) else "items"
            said = f"the block would have {count:,} {what}, more than the limit of {most:,}"
            raise ToolFailure(said, code="too-many-items")


def check_parts(document: Document) -> None:
    """Raise ToolFailure for a part that the schema lacks; Loro raises for a part that it cannot read."""
    known: set[str] = set()
    for section, schema in document.parts.items():
        match schema:
            case TextSchema():
                known.add(text_name(section))
            case MapSchema():
                known.add(map_name(section))
                known |= {counter_name(section, one.name) for one in schema.fields if one.type is FieldType.COUNTER}
            case ListSchema() | LogSchema():
                known.add(list_name(section, schema))
            case _:
                assert_never(schema)
        document.part(section)
    held = document.loro.get_value()
    for name in held if isinstance(held, dict) else ():
        if name not in known:
            raise ToolFailure("it holds a part that this block does not have", code="wrong-schema")
