"""Plans the operations of an edit on a document, with every check of types, flags and arguments.

Planning leaves the document alone, so that a refused edit (ToolFailure, words for the model) has no effect.
"""

from __future__ import annotations

from typing import assert_never

from gatewright.base.amount import iso_utc
from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, is_text
from gatewright.blocks.part import (
    CounterOp,
    Document,
    ListOp,
    MapOp,
    Op,
    TextOp,
    check_fields,
    check_item,
    check_new,
    counter_name,
    list_name,
    map_name,
    names_of,
    read_entry,
    read_item,
    text_name,
)
from gatewright.blocks.schema import (
    MAX_CHARS,
    Append,
    BlockSchema,
    CompositeSchema,
    Edit,
    Field,
    FieldType,
    ListSchema,
    LogSchema,
    MapSchema,
    Overwrite,
    PartSchema,
    Patch,
    Redo,
    Replace,
    SetField,
    TextSchema,
    Undo,
    check_kept,
    check_type,
    check_value,
)
from gatewright.blocks.textedit import Splice, difference, patch_splices, replacements


@frozen
class Hand:
    """The author of an edit, and its time (s since 1970). ``may_all``: not bound by ``read_only`` (the operator)."""

    author: str = ""
    at_s: float = 0.0
    may_all: bool = False


def plan(document: Document, schema: BlockSchema, edit: Edit, hand: Hand) -> tuple[Op, ...]:
    """Plan any edit but undo and redo. Raises ToolFailure."""
    if isinstance(edit, Undo | Redo):
        raise ToolFailure("undo and redo are planned from the history", code="not-supported")
    if isinstance(schema, CompositeSchema) and edit.section is None:
        return _whole(document, schema, edit, hand)
    section = _section(schema, edit.section, hand)
    return _Part(document, section, document.parts[section], hand).plan(edit)


def _section(schema: BlockSchema, name: str | None, hand: Hand) -> str:
    if not isinstance(schema, CompositeSchema):
        if name is not None:
            raise ToolFailure("this block has no sections: leave the section out", code="no-section")
        return ""
    for section in schema.sections:
        if section.name == name:
            if section.read_only and not hand.may_all:
                raise ToolFailure(f"section `{name}` is read-only", code="read-only")
            return section.name
    raise ToolFailure(f"no such section: sections are {_section_names(schema)}", code="no-section")


def _whole(document: Document, schema: CompositeSchema, edit: Edit, hand: Hand) -> tuple[Op, ...]:
    """Plan an edit of a composite without a section: an edit of all sections, or of the one that ``field`` names."""
    if isinstance(edit, SetField):
        section = _section(schema, edit.field, hand)
        return _Part(document, section, document.parts[section], hand).plan_overwrite(edit.value)
    if not isinstance(edit, Overwrite):
        raise ToolFailure(f"say which section: sections are {_section_names(schema)}", code="no-section")
    if not isinstance(edit.content, dict):
        raise ToolFailure("the content of this block is an object of sections", code="wrong-type")
    ops: list[Op] = []
    for name, value in edit.content.items():
        section = _section(schema, name, hand)
        ops += _Part(document, section, document.parts[section], hand).plan_overwrite(value)
    return tuple(ops)


def _section_names(schema: CompositeSchema) -> str:
    return names_of([section.name for section in schema.sections])


class _Part:
    """The plan of an edit inside one section."""

    def __init__(self, document: Document, section: str, schema: PartSchema, hand: Hand) -> None:
        self._document = document
        self._section = section
        self._schema = schema
        self._hand = hand

    def plan(self, edit: Edit) -> tuple[Op, ...]:
        match edit:
            case Append():
                return self._plan_append(edit.content)
            case Replace():
                return self._text_op(self._plan_replace(edit))
            case Patch():
                self._need_text()
                _check_text(edit.patch)
                return self._text_op(patch_splices(self._document.text(self._section), edit.patch))
            case SetField():
                return self._plan_field(edit.field, edit.value)
            case Overwrite():
                return self.plan_overwrite(edit.content)
            case Undo() | Redo():
                raise ToolFailure("undo and redo concern the whole block", code="not-supported")
            case _:
                assert_never(edit)

    def plan_overwrite(self, content: JsonValue) -> tuple[Op, ...]:
        """Plan new content in place of all present content."""
        if isinstance(self._schema, TextSchema):
            text = _text_of(content)
            return self._text_op((difference(self._document.text(self._section), text),))
        if isinstance(self._schema, MapSchema):
            if not isinstance(content, dict):
                raise ToolFailure("the content is an object of fields", code="wrong-type")
            held = self._document.fields(self._section)
            gone = (one.name for one in self._schema.fields if one.name in held and one.type is not FieldType.COUNTER)
            values = {**content, **{name: None for name in gone if name not in content}}
            return tuple(op for name, value in values.items() for op in self._plan_field(name, value))
        if isinstance(self._schema, LogSchema):
            raise ToolFailure("a log is only added to", code="append-only")
        if not isinstance(content, list):
            raise ToolFailure("the content is a list of items", code="wrong-type")
        return self._list_op(0, self._document.item_count(self._section), *self._items(content, self._schema))

    # text

    def _need_text(self) -> None:
        if not isinstance(self._schema, TextSchema):
            raise _unfit(self._schema)

    def _text_op(self, splices: tuple[Splice, ...]) -> tuple[Op, ...]:
        effective = tuple([splice for splice in splices if splice.removed or splice.inserted])
        return (TextOp(text_name(self._section), effective),) if effective else ()

    def _plan_replace(self, edit: Replace) -> tuple[Splice, ...]:
        self._need_text()
        _check_text(edit.old)
        _check_text(edit.new)
        text = self._document.text(self._section)
        found = replacements(text, edit, MAX_CHARS)
        return tuple(
            splice
            for splice in found
            if splice.removed != len(splice.inserted)
            or text[splice.start : splice.start + splice.removed] != splice.inserted
        )

    # map

    def _field(self, name: str) -> Field:
        if not isinstance(self._schema, MapSchema):
            raise _unfit(self._schema)
        for field in self._schema.fields:
            if field.name == name:
                if field.read_only and not self._hand.may_all:
                    raise ToolFailure(f"field `{name}` is read-only", code="read-only")
                return field
        known = names_of([field.name for field in self._schema.fields])
        raise ToolFailure(f"no such field: fields are {known}", code="no-field")

    def _plan_field(self, name: str, value: JsonValue) -> tuple[Op, ...]:
        field = self._field(name)
        checked = check_value(field, value)
        if field.type is FieldType.COUNTER:
            held = self._document.counter(self._section, name)
            by = (checked if isinstance(checked, int) else 0) - held
            check_type(FieldType.COUNTER, held + by, f"field `{name}`")
            return (CounterOp(counter_name(self._section, name), by),) if by else ()
        if self._document.fields(self._section).get(field.name) == checked and not isinstance(checked, bool | int):
            return ()
        return (MapOp(map_name(self._section), field.name, checked),)

    # list and log

    def _plan_append(self, content: JsonValue) -> tuple[Op, ...]:
        match self._schema:
            case TextSchema():
                text = _text_of(content)
                return self._text_op((Splice(self._document.text_length(self._section), 0, text),))
            case ListSchema():
                count = self._document.item_count(self._section)
                return self._list_op(count, 0, self._item(read_item(content, self._schema), self._schema))
            case LogSchema():
                return self._list_op(self._document.item_count(self._section), 0, self._entry(content, self._schema))
            case MapSchema():
                raise _unfit(self._schema)
            case _:
                assert_never(self._schema)

    def _list_op(self, start: int, removed: int, *inserted: JsonValue) -> tuple[Op, ...]:
        if not (removed or inserted):
            return ()
        return (ListOp(list_name(self._section, self._schema), start, removed, inserted),)

    def _items(self, content: list[JsonValue], schema: ListSchema) -> list[JsonValue]:
        """Check all items of a new list; the items that exist already may keep their read-only fields."""
        items = [check_item(item, schema) for item in content]
        if not self._hand.may_all and any(field.read_only for field in schema.fields):
            check_new(schema.fields, self._document.items(self._section), items)
        return items

    def _item(self, item: JsonValue, schema: ListSchema) -> JsonValue:
        found = check_item(item, schema)
        if not self._hand.may_all:
            check_kept(schema.fields, found)
        return found

    def _entry(self, content: JsonValue, schema: LogSchema) -> JsonValue:
        given = read_entry(content, schema)
        entry: dict[str, JsonValue] = {}
        if schema.timestamp:
            entry["at"] = iso_utc(self._hand.at_s)
        if schema.names_author and self._hand.author:
            entry["author"] = self._hand.author
        message = given.pop("message", "")
        if not isinstance(message, str):
            raise ToolFailure("an entry's `message` is text", code="wrong-type")
        if message:
            _check_text(message)
            entry["message"] = message
        entry.update(check_fields(given, schema.fields))
        if not self._hand.may_all:
            check_kept(schema.fields, entry)
        return entry


def _text_of(content: JsonValue) -> str:
    if not isinstance(content, str):
        raise ToolFailure("the content is text", code="wrong-type")
    _check_text(content)
    return content


def _check_text(text: str) -> None:
    if not is_text(text):
        raise ToolFailure("the text holds half of a surrogate pair", code="not-text")


def _unfit(schema: PartSchema) -> ToolFailure:
    words = {
        TextSchema: "one text, without fields or items",
        MapSchema: "fields, each with a value of its own",
        ListSchema: "a list of items",
        LogSchema: "a log, which only ever gets entries at its end",
    }
    return ToolFailure(f"that does not fit here: this is {words[type(schema)]}", code="wrong-schema")
