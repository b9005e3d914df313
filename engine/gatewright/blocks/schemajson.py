"""Blocks in writing: their schemas as JSON, JSON Schemas of their values for forms, and their content as text for the
model.

``{"type": "text", "viewport": {"start_line", "lines", "max_chars"}}``, ``{"type": "map", "fields": [...]}``, ``{"type":
"list", "item_type", "fields", "max_items"}``, ``{"type": "log", "fields", "display_limit", "timestamp", "names_author",
"max_items"}``, ``{"type": "composite", "sections": [...]}``; a section is ``{"name", "schema", "description",
"read_only"}``, a field ``{"name", "type", "description", "required", "read_only", "default"}``. Defaults may be left
out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from itertools import islice
from typing import Any, assert_never, cast

from gatewright.base.errors import SchemaError
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.blocks.schema import (
    COUNTER_LIMIT,
    MAX_CHARS,
    BlockSchema,
    CompositeSchema,
    Field,
    FieldType,
    ListSchema,
    LogSchema,
    MapSchema,
    PartSchema,
    Section,
    TextSchema,
    Viewport,
)

_TYPES: dict[str, type[BlockSchema]] = {
    "text": TextSchema,
    "map": MapSchema,
    "list": ListSchema,
    "log": LogSchema,
    "composite": CompositeSchema,
}


_TEXT: dict[str, JsonValue] = {"type": "string"}
_FLAG: dict[str, JsonValue] = {"type": "boolean"}
_NUMBER: dict[str, JsonValue] = {"type": "integer", "minimum": 1}
_FIELD_TYPE: dict[str, JsonValue] = {"enum": [str(one) for one in FieldType]}


def schema_keys(kind: str) -> dict[str, JsonValue]:
    """Return the JSON Schema of the keys beside ``type`` in the schema of a ``map``, ``list``, ``log``, for forms."""
    field = _object(
        ("name", "type"), name=_TEXT, type=_FIELD_TYPE, description=_TEXT, required=_FLAG, read_only=_FLAG, default={}
    )
    fields: dict[str, JsonValue] = {"type": "array", "items": field}
    match kind:
        case "text":
            return _object((), viewport=_object((), start_line=_NUMBER, lines=_NUMBER, max_chars=_NUMBER))
        case "map":
            return _object(("fields",), fields=fields)
        case "list":
            return _object((), item_type=_FIELD_TYPE, fields=fields, max_items=_NUMBER)
        case "log":
            more = {"timestamp": _FLAG, "names_author": _FLAG, "max_items": _NUMBER}
            return _object((), fields=fields, display_limit=_NUMBER, **more)
        case _:
            parts: list[JsonValue] = [_with_type(part) for part in _TYPES if part != "composite"]
            section = _object(
                ("name", "schema"), name=_TEXT, schema={"oneOf": parts}, description=_TEXT, read_only=_FLAG
            )
            return _object(("sections",), sections={"type": "array", "items": section})


def _object(needed: tuple[str, ...], /, **properties: JsonValue) -> dict[str, JsonValue]:
    return {"type": "object", "properties": properties, "required": [*needed], "additionalProperties": False}


def _with_type(kind: str) -> dict[str, JsonValue]:
    keys = schema_keys(kind)
    properties, required = cast("dict[str, JsonValue]", keys["properties"]), cast("list[JsonValue]", keys["required"])
    return {**keys, "properties": {"type": {"const": kind}, **properties}, "required": ["type", *required]}


def type_name(schema: BlockSchema) -> str:
    """``text``, ``map``, ``list``, ``log`` or ``composite``."""
    match schema:
        case TextSchema():
            return "text"
        case MapSchema():
            return "map"
        case ListSchema():
            return "list"
        case LogSchema():
            return "log"
        case CompositeSchema():
            return "composite"
        case _:
            assert_never(schema)


def schema_to_json(schema: BlockSchema) -> dict[str, JsonValue]:
    """Return the schema as JSON without defaults."""
    return {"type": type_name(schema), **_plain(schema)}


def schema_from_json(value: object) -> BlockSchema:
    """Read the JSON of ``schema_to_json``. Raises SchemaError with the pointer of the fault."""
    return _schema(value, "")


def _plain(value: Any) -> dict[str, JsonValue]:
    """Collect the attributes that differ from their defaults."""
    found: dict[str, JsonValue] = {}
    for attribute in fields(value):
        held = getattr(value, attribute.name)
        if attribute.default is MISSING or held != attribute.default:
            found[attribute.name] = _json(held)
    return found


def _json(value: Any) -> JsonValue:
    if isinstance(value, TextSchema | MapSchema | ListSchema | LogSchema):
        return schema_to_json(value)
    if isinstance(value, tuple):
        return [_json(item) for item in cast("tuple[Any, ...]", value)]
    if isinstance(value, StrEnum):
        return str(value)
    if is_dataclass(value):
        return _plain(value)
    return cast("JsonValue", value)


def _schema(value: object, pointer: str) -> BlockSchema:
    table = _table(value, pointer)
    name = table.pop("type", None)
    found = _TYPES.get(name) if isinstance(name, str) else None
    if found is None:
        raise SchemaError(f"`{pointer}/type` is one of {', '.join(_TYPES)}")
    if found is TextSchema:
        return TextSchema(**_read(table, pointer, {"viewport": _viewport}))
    if found is MapSchema:
        return MapSchema(**_read(table, pointer, {"fields": _fields}, required=("fields",)))
    if found is ListSchema:
        readers = {"item_type": _field_type, "fields": _fields, "max_items": _number}
        return ListSchema(**_read(table, pointer, readers))
    if found is CompositeSchema:
        return CompositeSchema(**_read(table, pointer, {"sections": _sections}, required=("sections",)))
    readers = {"fields": _fields, "display_limit": _number, "timestamp": _flag, "names_author": _flag}
    return LogSchema(**_read(table, pointer, {**readers, "max_items": _number}))


def _part(value: object, pointer: str) -> PartSchema:
    schema = _schema(value, pointer)
    if isinstance(schema, CompositeSchema):
        raise SchemaError(f"`{pointer}` is a composite inside a composite, which is not supported")
    return schema


def _viewport(value: object, pointer: str) -> Viewport:
    readers = {"start_line": _number, "lines": _number, "max_chars": _number}
    return Viewport(**_read(_table(value, pointer), pointer, readers))


def _fields(value: object, pointer: str) -> tuple[Field, ...]:
    return tuple(_field(item, f"{pointer}/{at}") for at, item in enumerate(_list(value, pointer)))


def _field(value: object, pointer: str) -> Field:
    readers = {
        "name": _text,
        "type": _field_type,
        "description": _text,
        "required": _flag,
        "read_only": _flag,
        "default": _anything,
    }
    return Field(**_read(_table(value, pointer), pointer, readers, required=("name", "type")))


def _sections(value: object, pointer: str) -> tuple[Section, ...]:
    return tuple(_section(item, f"{pointer}/{at}") for at, item in enumerate(_list(value, pointer)))


def _section(value: object, pointer: str) -> Section:
    readers = {"name": _text, "schema": _part, "description": _text, "read_only": _flag}
    return Section(**_read(_table(value, pointer), pointer, readers, required=("name", "schema")))


def _read(
    table: dict[str, object], pointer: str, readers: dict[str, Any], required: tuple[str, ...] = ()
) -> dict[str, Any]:
    for name in table:
        if name not in readers:
            raise SchemaError(f"`{pointer}/{name}` is unknown here; known keys are {', '.join(readers)}")
    for name in required:
        if name not in table:
            raise SchemaError(f"`{pointer}/{name}` is missing")
    return {name: readers[name](value, f"{pointer}/{name}") for name, value in table.items()}


def _table(value: object, pointer: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise SchemaError(f"`{pointer}` is not an object")
    return dict(cast("dict[str, object]", value))


def _list(value: object, pointer: str) -> list[object]:
    if not isinstance(value, list):
        raise SchemaError(f"`{pointer}` is not a list")
    return cast("list[object]", value)


def _text(value: object, pointer: str) -> str:
    if not isinstance(value, str):
        raise SchemaError(f"`{pointer}` is not text")
    return value


def _flag(value: object, pointer: str) -> bool:
    if not isinstance(value, bool):
        raise SchemaError(f"`{pointer}` is neither true nor false")
    return value


def _number(value: object, pointer: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise SchemaError(f"`{pointer}` is not a whole number")
    return value


def _field_type(value: object, pointer: str) -> FieldType:
    if not isinstance(value, str) or value not in tuple(FieldType):
        raise SchemaError(f"`{pointer}` is one of {', '.join(FieldType)}")
    return FieldType(value)


def _anything(value: object, _pointer: str) -> JsonValue:
    return cast("JsonValue", value)


_FIELD_TYPES: dict[FieldType, dict[str, JsonValue]] = {
    FieldType.TEXT: {"type": "string"},
    FieldType.NUMBER: {"type": "number"},
    FieldType.BOOLEAN: {"type": "boolean"},
    FieldType.LIST: {"type": "array"},
    FieldType.TIMESTAMP: {"type": "string", "format": "date-time"},
    FieldType.COUNTER: {"type": "integer", "minimum": -COUNTER_LIMIT, "maximum": COUNTER_LIMIT},
}


def value_schema(schema: BlockSchema) -> dict[str, JsonValue]:
    """Return the JSON Schema of values that the operator may give a block.

    A composite's logs are missing, since nothing replaces a log.
    """
    match schema:
        case TextSchema():
            return {"type": "string", "maxLength": MAX_CHARS}
        case MapSchema():
            return _object_of(schema.fields)
        case ListSchema():
            items = (
                _object_of(schema.fields)
                if schema.fields
                else _FIELD_TYPES[schema.item_type]
                if schema.item_type
                else {}
            )
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
    """Complete a new value with everything that an overwrite would leave alone: missing sections become empty, counters
    0.
    """
    if isinstance(schema, CompositeSchema) and isinstance(given, dict):
        parts = [part for part in schema.sections if part.name in given or not isinstance(part.schema, LogSchema)]
        return {**given, **{part.name: whole_value(part.schema, given.get(part.name)) for part in parts}}
    if isinstance(schema, MapSchema) and isinstance(given, dict | None):
        counters = [field.name for field in schema.fields if field.type is FieldType.COUNTER]
        return {**dict.fromkeys(counters, 0), **(given or {})}
    if given is None:
        return "" if isinstance(schema, TextSchema) else []
    return given


def _object_of(fields: tuple[Field, ...]) -> dict[str, JsonValue]:
    properties: dict[str, JsonValue] = {
        field.name: {**_FIELD_TYPES[field.type], **_about(field.description, field.read_only)}
        | ({} if field.default is None else {"default": field.default})
        for field in fields
    }
    required: list[JsonValue] = [field.name for field in fields if field.required and field.default is None]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _about(description: str, read_only: bool) -> dict[str, JsonValue]:
    """Describe a part; ``read_only`` limits only agents."""
    said = "; ".join(one for one in (description, "agents may not change it" if read_only else "") if one)
    return {"description": said} if said else {}


_READ_ONLY = " (read-only)"


def render(schema: BlockSchema, value: JsonValue) -> str:
    """Render the whole block: of a text with a viewport the window, of a log the newest entries."""
    if not isinstance(schema, CompositeSchema):
        return render_part(schema, value)
    values = cast("Mapping[str, JsonValue]", value)
    rows: list[str] = []
    for section in schema.sections:
        flag = _READ_ONLY if section.read_only else ""
        rows.append(f"## {section.name}{flag}\n{render_part(section.schema, values[section.name])}")
    return "\n\n".join(rows)


def render_part(schema: PartSchema, value: JsonValue) -> str:
    """Render one section."""
    match schema:
        case TextSchema():
            text = cast("str", value)
            return text if schema.viewport is None else _window(text, schema.viewport)
        case MapSchema():
            return _map(schema, cast("Mapping[str, JsonValue]", value))
        case ListSchema():
            return _list_text(cast("list[JsonValue]", value))
        case LogSchema():
            return _log(schema, cast("list[JsonValue]", value))
        case _:
            assert_never(schema)


def _window(text: str, viewport: Viewport) -> str:
    count = text.count("\n") + (bool(text) and not text.endswith("\n"))
    start = _line_begin(text, viewport.start_line - 1)
    if start is None:
        return f"[the text has {count} lines, the window begins at line {viewport.start_line}]"
    end = _line_begin(text[start:], viewport.lines)
    shown = text[start:] if end is None else text[start : start + end]
    cut = viewport.max_chars is not None and len(shown) > viewport.max_chars
    if cut:
        shown = shown[: viewport.max_chars]
    last = viewport.start_line + shown.count("\n") - shown.endswith("\n")
    if len(shown) == len(text):
        return text
    words = f"[lines {viewport.start_line} to {last} of {count}{', cut' if cut else ''}]"
    return f"{words}\n{shown}"


def _line_begin(text: str, lines: int) -> int | None:
    """Return the offset after that many lines; None if nothing follows them."""
    at = 0
    for _ in range(lines):
        at = text.find("\n", at) + 1
        if at == 0:
            return None
    return at if at < len(text) or lines == 0 else None


def _map(schema: MapSchema, values: Mapping[str, JsonValue]) -> str:
    rows: list[str] = []
    for field in schema.fields:
        flag = _READ_ONLY if field.read_only else ""
        held = values.get(field.name)
        if isinstance(held, list):
            rows.append(f"{field.name}{flag}:")
            rows += (f"- {_as_text(item)}" for item in held)
        else:
            rows.append(f"{field.name}{flag}: {'(empty)' if held is None else _as_text(held)}")
    return "\n".join(rows)


def _list_text(items: list[JsonValue]) -> str:
    return "\n".join(f"{at}. {_item(item)}" for at, item in enumerate(items)) or "(no items)"


def _item(item: JsonValue) -> str:
    """Render an object with a boolean ``done`` as a task, other objects as fields."""
    if not isinstance(item, dict):
        return _as_text(item)
    rest = {name: value for name, value in item.items() if name != "done" or not isinstance(value, bool)}
    box = ("[x] " if item["done"] else "[ ] ") if len(rest) < len(item) else ""
    if len(rest) == 1 and box:
        return box + _as_text(next(iter(rest.values())))
    return box + ", ".join(f"{name}: {_as_text(value)}" for name, value in rest.items())


def _log(schema: LogSchema, entries: list[JsonValue]) -> str:
    rows = [_entry(cast("Mapping[str, JsonValue]", entry)) for entry in islice(reversed(entries), schema.display_limit)]
    hidden = len(entries) - len(rows)
    if hidden:
        rows.append(f"[{hidden:,} older entries not shown]")
    return "\n".join(rows) or "(no entries)"


def _entry(entry: Mapping[str, JsonValue]) -> str:
    head = " ".join(_as_text(entry[name]) for name in ("at", "author") if name in entry)
    fields = [f"{name}: {_as_text(value)}" for name, value in entry.items() if name not in {"at", "author", "message"}]
    body = "; ".join([*([_as_text(entry["message"])] if "message" in entry else []), *fields])
    return f"{head}: {body}" if head else body


def _as_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else canonical_json(value).decode("utf-8")


def plain(schema: BlockSchema, value: JsonValue) -> str:
    """Return a block as text for a diff: texts unchanged, other values as JSON, a composite by section."""
    if not isinstance(schema, CompositeSchema):
        return _part_plain(schema, value)
    values = cast("Mapping[str, JsonValue]", value)
    return "".join(f"## {item.name}\n{_part_plain(item.schema, values[item.name])}\n" for item in schema.sections)


def _part_plain(part: PartSchema, value: JsonValue) -> str:
    if isinstance(part, TextSchema):
        return cast("str", value)
    if isinstance(part, MapSchema):
        return json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    items = cast("list[JsonValue]", value)
    return "".join(json.dumps(item, ensure_ascii=False, sort_keys=True) + "\n" for item in items)
