"""The fields of a query, a form or cookies: their names at the server, and the arguments that hold their values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum

from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.schema.walk import as_list, as_object
from gatewright.tools.http_path import wrong
from gatewright.tools.operation import ArgumentIssue

MAX_FIELDS = 500
Escape = Callable[[str, str], str]
_RESERVED = "/:?@!$'()*,;"
"""Characters that RFC 3986 reserves and a value may hold as they are: they end neither it nor the query."""
_SPREAD = "its keys stand beside the other arguments: none may be called like one of those, or be empty"


class Style(StrEnum):
    """The spelling of a list or an object in a query or a form.

    repeat: one field for each element; comma, space, pipe: one text; brackets: `name[key]=value`; spread: each key is a
    field of its own; json: as JSON.
    """

    REPEAT = "repeat"
    COMMA = "comma"
    SPACE = "space"
    PIPE = "pipe"
    BRACKETS = "brackets"
    SPREAD = "spread"
    JSON = "json"


_SEPARATORS = {Style.COMMA: ",", Style.SPACE: " ", Style.PIPE: "|"}


@frozen
class Field:
    """The name of a value at the server, and the argument that holds it.

    ``reserved``: reserved characters of an address stay as they are. ``file``: in a form of parts, the value is a file;
    ``media_type``: that of its part.
    """

    name: str
    argument: str
    style: Style = Style.REPEAT
    reserved: bool = False
    file: bool = False
    media_type: str = ""


def read_fields(value: object, place: str, *, parts: bool = False) -> tuple[Field, ...]:
    """Read a list of names, which are the arguments' too, or an object from names to arguments.

    ``parts``: of a form of parts, which may be files. Raises RegistrationError.
    """
    rows = as_list(value)
    table = dict.fromkeys(map(str, rows)) if rows is not None else as_object(value)
    if table is None or len(table) > MAX_FIELDS:
        raise wrong(place, f"must be a list of names, or an object from names to arguments, of up to {MAX_FIELDS}")
    return tuple(_field(name, given, f"{place}/{name[:64]}", parts=parts) for name, given in table.items())


def pairs(fields: Sequence[Field], arguments: Mapping[str, JsonValue], escape: Escape) -> Iterator[str]:
    """Yield the fields that arguments fill, each as `name=value`."""
    for field in fields:
        value = arguments.get(field.argument)
        if value is None:
            continue
        name, safe = escape(field.name, ""), _RESERVED if field.reserved else ""
        separator = _SEPARATORS.get(field.style)
        if field.style is Style.BRACKETS:
            yield from _brackets(name, value, escape)
        elif field.style is Style.JSON:
            yield f"{name}={escape(json.dumps(value, ensure_ascii=False), safe)}"
        elif field.style is Style.SPREAD and isinstance(value, dict):
            for key, one in value.items():
                yield from (f"{escape(key, '')}={escape(plain(row), safe)}" for row in _each(one))
        elif separator is not None and isinstance(value, dict | list):
            flat = value if isinstance(value, list) else [one for pair in value.items() for one in pair]
            joint = separator if field.style is Style.COMMA else escape(separator, "")
            yield f"{name}={joint.join(escape(plain(one), safe) for one in flat)}"
        else:
            rows = _each(value) if field.style is Style.REPEAT else [value]
            yield from (f"{name}={escape(plain(one), safe)}" for one in rows)


def spread_issues(fields: Sequence[Field], arguments: Mapping[str, object]) -> Iterator[ArgumentIssue]:
    """Yield the objects whose keys would fill other fields than their own."""
    if not any(field.style is Style.SPREAD for field in fields):
        return
    taken = {field.name for field in fields if field.style is not Style.SPREAD} | {""}
    for field in fields:
        if field.style is Style.SPREAD and (table := as_object(arguments.get(field.argument))):
            if taken & {key.partition("[")[0] for key in table}:
                yield ArgumentIssue(f"/{field.argument}", _SPREAD)
            taken |= table.keys()


def plain(value: JsonValue) -> str:
    """Return a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _each(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else [value]


def _field(name: str, given: object, place: str, *, parts: bool) -> Field:
    if given is None or isinstance(given, str):
        return Field(name, given or name)
    table = as_object(given)
    known = {"argument", "style", "reserved"} if not parts else {"argument", "style", "file", "type"}
    if table is None or table.keys() - known:
        raise wrong(place, f"must be the name of an argument, or an object with {', '.join(sorted(known))}")
    argument, style = table.get("argument", name), table.get("style", Style.REPEAT)
    found = next((one for one in Style if one == style), None)
    media_type = table.get("type", "")
    if not isinstance(argument, str) or found is None:
        raise wrong(place, f"needs the name of an argument, and a style out of {', '.join(Style)}")
    if not isinstance(media_type, str) or (media_type and not is_media_type(media_type)):
        raise wrong(f"{place}/type", "must be a media type, such as `image/png`")
    flags = [table.get(key, False) for key in ("reserved", "file")]
    if not all(isinstance(flag, bool) for flag in flags):
        raise wrong(place, "has `reserved` and `file` as true or false")
    return Field(name, argument, found, flags[0] is True, flags[1] is True, media_type)


def is_media_type(text: str) -> bool:
    """Tell whether a text can be the type of a body, with parameters."""
    kind, slash, sub = text.partition(";")[0].strip().partition("/")
    words = kind and sub and "*" not in text and all(char.isalnum() or char in "!#$&^_.+-" for char in kind + sub)
    return bool(slash and words) and len(text) <= 200 and text.isascii() and text.isprintable()


def _brackets(name: str, value: JsonValue, escape: Escape) -> Iterator[str]:
    """Yield `name[key]=value`, and so on inside; without recursion, since a model chooses the depth of a value."""
    stack: list[tuple[str, JsonValue]] = [(name, value)]
    while stack:
        name, value = stack.pop()
        inner = list(value.items()) if isinstance(value, dict) else None
        if isinstance(value, list):
            inner = [(str(index), one) for index, one in enumerate(value)]
        if inner is None:
            if value is not None:
                yield f"{name}={escape(plain(value), '')}"
            continue
        stack.extend((f"{name}[{escape(key, '')}]", one) for key, one in reversed(inner))
