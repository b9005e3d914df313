"""The model's view of a block as text, made from values alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import assert_never, cast

from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.blocks.schema import (
    BlockSchema,
    CompositeSchema,
    ListSchema,
    LogSchema,
    MapSchema,
    PartSchema,
    TextSchema,
    Viewport,
)

_READ_ONLY = " (read-only)"


def render(schema: BlockSchema, value: JsonValue) -> str:
    """Render the whole block; of a text with a viewport the window, of a log the newest entries."""
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
            return _list(cast("list[JsonValue]", value))
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
    """Find the text behind so many lines; None if it has no more."""
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
            rows += (f"- {_plain(item)}" for item in held)
        else:
            rows.append(f"{field.name}{flag}: {'(empty)' if held is None else _plain(held)}")
    return "\n".join(rows)


def _list(items: list[JsonValue]) -> str:
    return "\n".join(f"{at}. {_item(item)}" for at, item in enumerate(items)) or "(no items)"


def _item(item: JsonValue) -> str:
    """Render an object with a truth value ``done`` as a task, other objects as fields."""
    if not isinstance(item, dict):
        return _plain(item)
    rest = {name: value for name, value in item.items() if name != "done" or not isinstance(value, bool)}
    box = ("[x] " if item["done"] else "[ ] ") if len(rest) < len(item) else ""
    if len(rest) == 1 and box:
        return box + _plain(next(iter(rest.values())))
    return box + ", ".join(f"{name}: {_plain(value)}" for name, value in rest.items())


def _log(schema: LogSchema, entries: list[JsonValue]) -> str:
    rows = [_entry(cast("Mapping[str, JsonValue]", entry)) for entry in islice(reversed(entries), schema.display_limit)]
    hidden = len(entries) - len(rows)
    if hidden:
        rows.append(f"[{hidden:,} older entries not shown]")
    return "\n".join(rows) or "(no entries)"


def _entry(entry: Mapping[str, JsonValue]) -> str:
    head = " ".join(_plain(entry[name]) for name in ("at", "author") if name in entry)
    fields = [f"{name}: {_plain(value)}" for name, value in entry.items() if name not in {"at", "author", "message"}]
    body = "; ".join([*([_plain(entry["message"])] if "message" in entry else []), *fields])
    return f"{head}: {body}" if head else body


def _plain(value: JsonValue) -> str:
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
