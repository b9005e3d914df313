"""The body of a request: JSON, a form, a form of parts with files, a text, or bytes.

A file is an object with `text` or `base64`, and perhaps its `name`; a plain text is one, too.
"""

from __future__ import annotations

import binascii
import json
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from hashlib import sha256
from urllib.parse import quote, quote_plus, unquote, unquote_to_bytes

from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.schema.walk import Schema, as_list, as_object
from gatewright.tools.http_field import Field, Style, is_media_type, pairs, plain, read_fields, spread_issues
from gatewright.tools.http_path import wrong
from gatewright.tools.operation import ArgumentIssue

FILE: Schema = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "base64": {"type": "string"}, "name": {"type": "string"}},
    "additionalProperties": False,
    "description": "A file: its content as `text` or in `base64`, and its name.",
}
"""The schema of a file."""
_NO_FILE = "this is a file: a text, or an object with either `text` or valid `base64`, and perhaps a `name`"
_NO_TEXT = "this is all of what is sent, and has to be a text"
_NO_OBJECT = "this is all of a form, and has to be an object"


class Kind(StrEnum):
    """The form of a body."""

    JSON = "json"
    FORM = "form"
    PARTS = "multipart"
    TEXT = "text"
    BYTES = "bytes"


_TYPES = {
    Kind.JSON: "application/json",
    Kind.FORM: "application/x-www-form-urlencoded",
    Kind.TEXT: "text/plain; charset=utf-8",
    Kind.BYTES: "application/octet-stream",
}


@frozen
class Body:
    """A body. ``held``: the argument that is all of it, or the fields of an object.

    ``optional``: without any of its arguments the request has no body.
    """

    kind: Kind
    held: str | tuple[Field, ...]
    media_type: str = ""
    optional: bool = False

    def issues(self, arguments: Mapping[str, object]) -> Iterator[ArgumentIssue]:
        """Yield the arguments that cannot make the body."""
        if isinstance(self.held, tuple):
            files = [field.argument for field in self.held if field.file]
            yield from spread_issues(self.held, arguments)
        else:
            value, given = arguments.get(self.held), self.held in arguments
            files = [self.held] if self.kind is Kind.BYTES else []
            if given and self.kind is Kind.TEXT and not isinstance(value, str):
                yield ArgumentIssue(f"/{self.held}", _NO_TEXT)
            if given and self.kind in {Kind.FORM, Kind.PARTS} and not isinstance(value, dict):
                yield ArgumentIssue(f"/{self.held}", _NO_OBJECT)
        for name in files:
            rows = as_list(value := arguments.get(name))
            if value is not None and any(_file(row) is None for row in ([value] if rows is None else rows)):
                yield ArgumentIssue(f"/{name}", _NO_FILE)

    def content(self, arguments: Mapping[str, JsonValue]) -> tuple[bytes, str] | None:
        """Return the bytes and their type; None: no body."""
        if isinstance(self.held, str):
            if self.held not in arguments:
                return None
            value = arguments[self.held]
            inside = value if isinstance(value, dict) else {}
            fields = tuple(Field(name, name) for name in inside)
        else:
            fields, inside = self.held, arguments
            if self.optional and not any(field.argument in arguments for field in fields):
                return None
            value = {field.name: arguments[field.argument] for field in fields if field.argument in arguments}
        if self.kind is Kind.PARTS:
            return _multipart(_parts(fields, inside))
        kind = self.media_type or _TYPES[self.kind]
        if self.kind is Kind.FORM:
            return "&".join(pairs(fields, inside, quote_plus)).encode(), kind
        if self.kind is Kind.TEXT:
            return plain(value).encode(), kind
        if self.kind is Kind.BYTES:
            return (_file(value) or (b"", ""))[0], kind
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode(), kind


def read_body(value: object, place: str) -> Body | None:
    """Read the body that a definition describes. Raises RegistrationError."""
    if value is None:
        return None
    table = as_object(value)
    kinds = [kind for kind in Kind if table is not None and kind in table]
    if table is None or len(kinds) != 1 or table.keys() - {kinds[0], "type", "optional"}:
        raise wrong(place, f"must be an object with one of {', '.join(Kind)}, and perhaps `type` and `optional`")
    kind, media_type, optional = kinds[0], table.get("type", ""), table.get("optional", False)
    if not isinstance(media_type, str) or (media_type and (kind is Kind.PARTS or not is_media_type(media_type))):
        raise wrong(f"{place}/type", "must be a media type, such as `application/xml`; a form of parts has its own")
    if not isinstance(optional, bool):
        raise wrong(f"{place}/optional", "must be true or false")
    said = table[kind]
    if isinstance(said, str) and said:
        return Body(kind, said, media_type, optional)
    if kind in {Kind.TEXT, Kind.BYTES}:
        raise wrong(f"{place}/{kind}", "must be the name of the argument that is sent")
    return Body(kind, read_fields(said, f"{place}/{kind}", parts=kind is Kind.PARTS), media_type, optional)


def _file(value: object) -> tuple[bytes, str] | None:
    """Return the content and the name of a file; None for anything else."""
    if isinstance(value, str):
        return value.encode(), ""
    table = as_object(value)
    if table is None or table.keys() - {"text", "base64", "name"} or ("text" in table) == ("base64" in table):
        return None
    content, name = table.get("text", table.get("base64")), table.get("name", "")
    if not isinstance(content, str) or not isinstance(name, str):
        return None
    try:
        return (content.encode() if "text" in table else b64decode(content, validate=True)), name
    except (binascii.Error, ValueError):
        return None


_Part = tuple[str, str | None, str, bytes]
"""The name of a part, the name of its file, its type, its content."""


def _parts(fields: Iterable[Field], arguments: Mapping[str, JsonValue]) -> Iterator[_Part]:
    for field in fields:
        value = arguments.get(field.argument)
        if value is None:
            continue
        if not field.file and field.style not in {Style.REPEAT, Style.JSON}:
            texts = (text.partition("=") for text in pairs([field], arguments, quote))
            yield from ((unquote(name), None, "", unquote_to_bytes(one)) for name, _, one in texts)
            continue
        for row in value if isinstance(value, list) and field.style is Style.REPEAT else [value]:
            if field.file:
                content, name = _file(row) or (b"", "")
                yield field.name, name or field.name, field.media_type or "application/octet-stream", content
            elif isinstance(row, dict | list) or field.style is Style.JSON:
                content = json.dumps(row, ensure_ascii=False).encode()
                yield field.name, None, field.media_type or "application/json", content
            else:
                yield field.name, None, field.media_type, plain(row).encode()


def _multipart(parts: Iterable[_Part]) -> tuple[bytes, str]:
    """Return the parts between a boundary that stands in none of them (RFC 7578)."""
    rows = list(parts)
    content = b"".join(row[3] for row in rows)
    boundary = sha256(content).hexdigest()
    while boundary.encode() in content:
        boundary = sha256(boundary.encode()).hexdigest()
    made = bytearray()
    for name, file, kind, data in rows:
        about = f'; filename="{_quote(file)}"' if file is not None else ""
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{_quote(name)}"{about}\r\n'
        made += f"{head}Content-Type: {kind}\r\n\r\n".encode() if kind else f"{head}\r\n".encode()
        made += data + b"\r\n"
    made += f"--{boundary}--\r\n".encode()
    return bytes(made), f"multipart/form-data; boundary={boundary}"


def _quote(text: str) -> str:
    """Write a name as browsers do, with the characters that would end it percent-encoded."""
    return "".join(f"%{ord(char):02X}" if char == '"' or ord(char) < 32 or ord(char) == 127 else char for char in text)
