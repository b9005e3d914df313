"""HTTP requests of a tool, read from the `run` of its definition: address, body, and the arguments that fill them.

A file is an object with `text` or `base64`, and perhaps its `name`; a plain text counts as a file too.

Whatever the arguments are, a request goes to the server of its catalog, below the catalog's path. Values fill templates
in the path, the query, a header, a cookie or the body, and decide nothing else; they cannot turn the request into
another one of the same server.
"""

from __future__ import annotations

import binascii
import json
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from hashlib import sha256
from urllib.parse import quote, quote_plus, unquote, unquote_to_bytes

from gatewright.arguments.url import UrlRefused, UrlTarget, parse_url
from gatewright.base.errors import RegistrationError, ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import late_regex
from gatewright.schema.walk import Schema, as_list, as_object
from gatewright.tools.context import WebRequest
from gatewright.tools.http_path import (
    Field,
    PathTemplate,
    Slot,
    Style,
    flat_texts,
    is_media_type,
    pairs,
    plain,
    plain_text,
    read_fields,
    read_path,
    spread_issues,
    wrong,
)
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
    """A body.

    ``held``: the argument that is the whole body, or the fields of an object. ``optional``: a request without any of
    the arguments has no body.
    """

    kind: Kind
    held: str | tuple[Field, ...]
    media_type: str = ""
    optional: bool = False

    def issues(self, arguments: Mapping[str, object]) -> Iterator[ArgumentIssue]:
        """Yield the arguments that do not fit the body."""
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
        """Return the bytes and their type; None without a body."""
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
    """Return the content and the name of a file; None for any other value."""
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
    """Return the parts, separated by a boundary that occurs in none of them (RFC 7578)."""
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


READING = frozenset({"GET", "HEAD"})
"""The methods that change nothing on a server that follows the protocol (RFC 9110, 9.2.1)."""
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
MAX_EXCEPT = 2_000
_KEYS = frozenset({"method", "path", "except", "query", "headers", "cookies", "body"})
_HEADER = late_regex(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}")
_VALUE = late_regex(r"[\x20-\x7e]{0,4096}")
_OURS = frozenset(
    {"accept-encoding", "connection", "content-length", "expect", "forwarded", "host", "keep-alive", "te"}
    | {"trailer", "transfer-encoding", "upgrade", "via"}
)
_OUR_PREFIXES = ("proxy-", "sec-", "x-forwarded-", "x-real-", "x-original-", "x-http-method", "x-method-override")
_NO_ARGUMENT = frozenset({"authorization", "content-type", "cookie"})
"""Headers that no argument may fill: they identify the caller, or describe the body."""
HEADER_FORM = "a header is written `Name: value`, in ASCII and on one line"
_IN_HEADER = "this is the value of a header: one line of ASCII"


@frozen
class RequestTemplate:
    """One request.

    ``headers``: each with a fixed text, or with the slot of an argument. ``others``: the paths of other requests, which
    arguments may not turn it into.
    """

    method: str
    path: PathTemplate
    others: tuple[PathTemplate, ...] = ()
    query: tuple[Field, ...] = ()
    headers: tuple[tuple[str, str | Slot], ...] = ()
    cookies: tuple[Field, ...] = ()
    body: Body | None = None

    @property
    def writes(self) -> bool:
        """True if the request may change something on the server."""
        return self.method not in READING

    def issues(self, arguments: Mapping[str, object]) -> Iterator[ArgumentIssue]:
        """Yield the arguments that do not fit the request."""
        found = list(self.path.issues(arguments))
        yield from found or self.path.confusions(arguments, self.others)
        yield from spread_issues((*self.query, *self.cookies), arguments)
        for _, text in self.headers:
            if isinstance(text, Slot) and text.argument in arguments:
                value = arguments[text.argument]
                if not _VALUE.fullmatch(_in_header(value, text)) or (isinstance(value, str) and value != value.strip()):
                    yield ArgumentIssue(f"/{text.argument}", _IN_HEADER)
        yield from self.body.issues(arguments) if self.body is not None else ()

    def fill(self, base: UrlTarget, arguments: Mapping[str, JsonValue], *, allow_private: bool) -> WebRequest:
        """Fill the request with ``arguments``, below the address ``base``.

        Raises ToolFailure for arguments that do not fit.
        """
        for issue in self.issues(arguments):
            raise ToolFailure(f"{issue.pointer}: {issue.message}", code="bad-argument")
        query = "&".join(pairs(self.query, arguments, quote))
        whole = f"{base.text.rstrip('/')}/{self.path.fill(arguments)}{f'?{query}' if query else ''}"
        url = parse_url(whole, allow_private=allow_private)
        if isinstance(url, UrlRefused):
            raise ToolFailure(url.hint, code=url.code, detail=url.reason)
        if (url.scheme, url.host, url.port) != (base.scheme, base.host, base.port) or not _is_below(url, base):
            raise ToolFailure("the arguments lead to another address", code="bad-argument")
        body = self.body.content(arguments) if self.body is not None else None
        content, kind = body if body is not None else (None, "")
        headers = tuple(self._headers(arguments))
        return WebRequest(self.method, replace(url, writes=self.writes), headers, content, kind)

    def _headers(self, arguments: Mapping[str, JsonValue]) -> Iterator[tuple[str, str]]:
        for name, text in self.headers:
            if isinstance(text, str):
                yield name, text
            elif arguments.get(text.argument) is not None:
                yield name, _in_header(arguments[text.argument], text)
        if cookies := "; ".join(pairs(self.cookies, arguments, quote)):
            yield "Cookie", cookies


@frozen
class RequestTemplates:
    """The requests of one tool, by operation; a single request has the empty name."""

    by_operation: Mapping[str, RequestTemplate]

    @property
    def is_single(self) -> bool:
        """True if all calls make the same request."""
        return "" in self.by_operation

    def of(self, operation: str) -> tuple[RequestTemplate, ...]:
        """Return the request of an operation; all requests for an unknown operation."""
        found = self.by_operation.get(operation, self.by_operation.get(""))
        return tuple(self.by_operation.values()) if found is None else (found,)


def read_requests(run: object) -> RequestTemplates:
    """Read the requests of ``run``: one, or one for each of its `operations`. Raises RegistrationError."""
    table = as_object(run)
    if table is None:
        raise wrong("run", "must be a JSON object that describes a request")
    if "operations" not in table:
        return RequestTemplates({"": _template(table, "run")})
    named = as_object(table["operations"])
    if len(table) > 1 or not named:
        raise wrong("run/operations", "must stand alone and name a request for each operation")
    read = {name: _template(value, f"run/operations/{name[:64]}") for name, value in named.items()}
    return RequestTemplates({name: replace(one, others=_others(one, read.values())) for name, one in read.items()})


def base_address(url: str) -> UrlTarget:
    """Return the address above all requests of a catalog. Raises RegistrationError."""
    base = parse_url(url, allow_private=True)
    if isinstance(base, UrlRefused):
        raise RegistrationError(f"the `url` of the catalog cannot be used: {base.reason}")
    if "?" in base.text or "#" in base.text:
        raise RegistrationError("the `url` of the catalog holds a query or a fragment, which stand in a request only")
    return base


def header_fault(name: str) -> str | None:
    """Say why neither a definition nor a model may send this header; None if they may."""
    if not _HEADER.fullmatch(name):
        return HEADER_FORM
    lowered = name.lower()
    is_ours = lowered in _OURS or lowered.startswith(_OUR_PREFIXES)
    return "this header is not yours to set; leave it out" if is_ours else None


def _template(value: object, place: str) -> RequestTemplate:
    table = as_object(value)
    if table is None:
        raise wrong(place, "must be a JSON object that describes a request")
    if unknown := sorted(table.keys() - _KEYS):
        raise wrong(place, f"has no key `{unknown[0][:64]}`: known are {', '.join(sorted(_KEYS))}")
    method = table.get("method", "GET")
    if method not in METHODS:
        raise wrong(f"{place}/method", f"must be one of {', '.join(METHODS)}")
    body = read_body(table.get("body"), f"{place}/body")
    if body is not None and method in READING:
        raise wrong(f"{place}/body", f"does not go with {method}")
    rows = as_list(table.get("except", []))
    if rows is None or len(rows) > MAX_EXCEPT:
        raise wrong(f"{place}/except", f"must be a list of paths, of up to {MAX_EXCEPT:,}")
    return RequestTemplate(
        str(method),
        read_path(table.get("path"), f"{place}/path"),
        tuple(read_path(row, f"{place}/except") for row in rows),
        read_fields(table.get("query", {}), f"{place}/query"),
        _read_headers(table.get("headers", {}), place),
        read_fields(table.get("cookies", {}), f"{place}/cookies"),
        body,
    )


def _others(one: RequestTemplate, rows: Iterable[RequestTemplate]) -> tuple[PathTemplate, ...]:
    """Return the paths that the request must not turn into: those it names, and those of the requests beside it."""
    beside = (row.path for row in rows if row is not one and method_class(row.method) == method_class(one.method))
    return tuple(dict.fromkeys((*one.others, *(path for path in beside if one.path.may_become(path)))))


def method_class(method: str) -> str:
    """Return a method whose requests a server answers in the same way."""
    return "GET" if method in READING else method


def _read_headers(value: object, place: str) -> tuple[tuple[str, str | Slot], ...]:
    table = as_object(value)
    if table is None:
        raise wrong(f"{place}/headers", "must be an object from names to texts, or to objects with an `argument`")
    found: list[tuple[str, str | Slot]] = []
    for name, said in table.items():
        why, given = header_fault(name), as_object(said)
        argument, explode = (given or {}).get("argument"), (given or {}).get("explode", False)
        if why is None and given is not None:
            if not (isinstance(argument, str) and isinstance(explode, bool)) or given.keys() - {"argument", "explode"}:
                why = "needs the name of an `argument`, and perhaps `explode`"
            elif name.lower() in _NO_ARGUMENT:
                why = "is nothing that an argument may fill"
        elif why is None and not (isinstance(said, str) and _VALUE.fullmatch(said)):
            why = "its value must be one line of ASCII"
        if why is not None:
            raise wrong(f"{place}/headers/{name[:64]}", why)
        found.append((name, Slot(str(argument), explode=explode is True) if given is not None else str(said)))
    return tuple(found)


def _in_header(value: object, slot: Slot) -> str:
    """Write a value for a header: a list or an object with commas."""
    texts = flat_texts(value)
    if texts is None:
        return "\n" if isinstance(value, list | dict) else plain_text(value)
    if isinstance(value, dict) and slot.explode:
        texts = [f"{key}={one}" for key, one in zip(texts[::2], texts[1::2], strict=True)]
    return ",".join(texts)


def _is_below(url: UrlTarget, base: UrlTarget) -> bool:
    return url.text.startswith(f"{base.text.rstrip('/')}/")
