"""The HTTP requests of a tool: read from the `run` of its definition, filled with the arguments of a call.

A request goes to the server of its catalog, below the path of that, whatever the arguments are: a value fills a
template as text within one component of the path, in the query or in the body, and never decides about more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import TypeAlias
from urllib.parse import quote, quote_plus

from gatewright.arguments.url import MAX_URL_CHARS, UrlRefused, UrlTarget, parse_url
from gatewright.base.errors import RegistrationError, ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.regex import late_regex
from gatewright.schema.walk import as_list, as_object
from gatewright.tools.operation import ArgumentIssue
from gatewright.tools.port import WebRequest

READING = frozenset({"GET", "HEAD"})
"""The methods that change nothing on a server that keeps to the protocol (RFC 9110, 9.2.1)."""
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
MAX_FIELDS = 500
_KEYS = frozenset({"method", "path", "query", "headers", "body"})
_SLOT = re.compile(r"\{([^{}/]{1,128})\}")
_LITERAL = late_regex(r"[A-Za-z0-9._~!$&'()*+,;=:@-]*")
_BREAKS = late_regex(r"[/\\\x00-\x1f\x7f]")
_HEADER = late_regex(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}")
_VALUE = late_regex(r"[\x20-\x7e]{0,4096}")
_OURS = frozenset(
    {"accept-encoding", "connection", "content-length", "expect", "forwarded", "host", "keep-alive", "te"}
    | {"trailer", "transfer-encoding", "upgrade", "via"}
)
_OUR_PREFIXES = ("proxy-", "sec-", "x-forwarded-", "x-real-", "x-original-", "x-http-method")
HEADER_FORM = "a header is written `Name: value`, in ASCII and on one line"
_SEPARATORS = {"comma": ",", "space": "%20", "pipe": "%7C"}
_COMPONENT = "this fills one part of an address: not empty, no `.` or `..`, and without slashes and control characters"

Escape = Callable[[str, str], str]


class Style(StrEnum):
    """The way in which a list or an object stands in a query or a form.

    repeat: one field for each element; comma, space, pipe: one text; brackets: `name[key]=value`; json: as JSON.
    """

    REPEAT = "repeat"
    COMMA = "comma"
    SPACE = "space"
    PIPE = "pipe"
    BRACKETS = "brackets"
    JSON = "json"


@frozen
class Field:
    """The name of a value at the server, and the argument that holds it."""

    name: str
    argument: str
    style: Style = Style.REPEAT


@frozen
class Slot:
    """The place of an argument within a component of a path."""

    argument: str


Body: TypeAlias = str | tuple[Field, ...] | None
"""The argument that is the whole body, or the fields of an object; None: there is no body."""


@frozen
class RequestTemplate:
    """One request. ``path``: its components, each of texts and slots. ``form``: the body is a form, else it is JSON."""

    method: str
    path: tuple[tuple[str | Slot, ...], ...]
    query: tuple[Field, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    body: Body = None
    form: bool = False

    @property
    def writes(self) -> bool:
        """Tell whether it may change something on the server."""
        return self.method not in READING

    def issues(self, arguments: Mapping[str, object]) -> Iterator[ArgumentIssue]:
        """The arguments that cannot stand in the path."""
        for parts in self.path:
            slots = [part.argument for part in parts if isinstance(part, Slot)]
            texts = [_text(arguments.get(name)) for name in slots]
            bad = [name for name, text in zip(slots, texts, strict=True) if not text or _BREAKS.search(text)]
            if not bad and slots and _component(parts, arguments) in {".", ".."}:
                bad = slots
            yield from (ArgumentIssue(f"/{name}", _COMPONENT) for name in bad)

    def filled(self, base: UrlTarget, arguments: Mapping[str, JsonValue], *, allow_private: bool) -> WebRequest:
        """The request for ``arguments``, below ``base``. Raises ToolFailure where they cannot fill it."""
        for issue in self.issues(arguments):
            raise ToolFailure(f"{issue.pointer}: {issue.message}", code="bad-argument")
        path = "/".join(_component(parts, arguments) for parts in self.path)
        query = "&".join(_pairs(self.query, arguments, quote))
        whole = f"{base.text.rstrip('/')}/{path}{f'?{query}' if query else ''}"
        url = parse_url(whole, allow_private=allow_private)
        if isinstance(url, UrlRefused):
            raise ToolFailure(url.hint, code=url.code, detail=url.reason)
        if (url.scheme, url.host, url.port) != (base.scheme, base.host, base.port) or not _is_below(url, base):
            raise ToolFailure("the arguments lead to another address", code="bad-argument")
        body, kind = self._body(arguments)
        return WebRequest(self.method, replace(url, writes=self.writes), self.headers, body, kind)

    def _body(self, arguments: Mapping[str, JsonValue]) -> tuple[bytes | None, str]:
        if self.body is None or (isinstance(self.body, str) and self.body not in arguments):
            return None, ""
        if self.form:
            fields = (Field(self.body, self.body),) if isinstance(self.body, str) else self.body
            return "&".join(_pairs(fields, arguments, quote_plus)).encode(), "application/x-www-form-urlencoded"
        if isinstance(self.body, str):
            value = arguments[self.body]
        else:
            value = {field.name: arguments[field.argument] for field in self.body if field.argument in arguments}
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode(), "application/json"


@frozen
class RequestTemplates:
    """The requests of one tool, by operation; those of a tool with one request stand under the empty name."""

    by_operation: Mapping[str, RequestTemplate]

    @property
    def is_single(self) -> bool:
        """Tell whether all calls make the same request."""
        return "" in self.by_operation

    def of(self, operation: str) -> tuple[RequestTemplate, ...]:
        """The request of an operation; all of them for one that the definition does not name."""
        found = self.by_operation.get(operation, self.by_operation.get(""))
        return tuple(self.by_operation.values()) if found is None else (found,)


def read_requests(run: object) -> RequestTemplates:
    """The requests that ``run`` describes: one, or under `operations` one for each. Raises RegistrationError."""
    table = as_object(run)
    if table is None:
        raise _wrong("run", "must be a JSON object that describes a request")
    if "operations" not in table:
        return RequestTemplates({"": _template(table, "run")})
    named = as_object(table["operations"])
    if len(table) > 1 or not named:
        raise _wrong("run/operations", "must stand alone and name a request for each operation")
    return RequestTemplates({name: _template(value, f"run/operations/{name[:64]}") for name, value in named.items()})


def base_address(url: str) -> UrlTarget:
    """The address that all requests of a catalog go below. Raises RegistrationError."""
    base = parse_url(url, allow_private=True)
    if isinstance(base, UrlRefused):
        raise RegistrationError(f"the `url` of the catalog cannot be used: {base.reason}")
    if "?" in base.text or "#" in base.text:
        raise RegistrationError("the `url` of the catalog holds a query or a fragment, which stand in a request only")
    return base


def header_fault(name: str) -> str | None:
    """Say why a header may not be sent by a definition or a model; None: it may."""
    if not _HEADER.fullmatch(name):
        return HEADER_FORM
    lowered = name.lower()
    is_ours = lowered in _OURS or lowered.startswith(_OUR_PREFIXES)
    return "this header is not yours to set; leave it out" if is_ours else None


def _template(value: object, place: str) -> RequestTemplate:
    table = as_object(value)
    if table is None:
        raise _wrong(place, "must be a JSON object that describes a request")
    if unknown := sorted(table.keys() - _KEYS):
        raise _wrong(place, f"has no key `{unknown[0][:64]}`: known are {', '.join(sorted(_KEYS))}")
    method = table.get("method", "GET")
    if method not in METHODS:
        raise _wrong(f"{place}/method", f"must be one of {', '.join(METHODS)}")
    query = _fields(table.get("query", {}), f"{place}/query")
    body, form = _read_body(table.get("body"), f"{place}/body")
    if body is not None and method in READING:
        raise _wrong(f"{place}/body", f"does not go with {method}")
    path = _path(table.get("path"), f"{place}/path")
    return RequestTemplate(str(method), path, query, _headers(table.get("headers", {}), place), body, form)


def _path(value: object, place: str) -> tuple[tuple[str | Slot, ...], ...]:
    if not isinstance(value, str) or not value.startswith("/") or len(value) > MAX_URL_CHARS:
        raise _wrong(place, "must be a path that begins with `/`, such as `/items/{item}`")
    found: list[tuple[str | Slot, ...]] = []
    for component in value[1:].split("/"):
        pieces = _SLOT.split(component)
        parts = [Slot(piece) if index % 2 else piece for index, piece in enumerate(pieces)]
        if not all(isinstance(part, Slot) or _LITERAL.fullmatch(part) for part in parts):
            raise _wrong(place, "holds what no path can, outside of `{name}`")
        if component in {".", ".."}:
            raise _wrong(place, "may not hold `.` or `..`")
        found.append(tuple(part for part in parts if part))
    return tuple(found)


def _fields(value: object, place: str) -> tuple[Field, ...]:
    """Of a list the names, which are the arguments' too; of an object each name with its argument."""
    rows = as_list(value)
    table = dict.fromkeys(map(str, rows)) if rows is not None else as_object(value)
    if table is None or len(table) > MAX_FIELDS:
        raise _wrong(place, f"must be a list of names, or an object from names to arguments, of up to {MAX_FIELDS}")
    return tuple(_field(name, given, f"{place}/{name[:64]}") for name, given in table.items())


def _field(name: str, given: object, place: str) -> Field:
    if given is None or isinstance(given, str):
        return Field(name, given or name)
    table = as_object(given)
    if table is None or table.keys() - {"argument", "style"}:
        raise _wrong(place, "must be the name of an argument, or an object with `argument` and `style`")
    argument, style = table.get("argument", name), table.get("style", Style.REPEAT)
    known = next((one for one in Style if one == style), None)
    if not isinstance(argument, str) or known is None:
        raise _wrong(place, f"needs the name of an argument, and a style out of {', '.join(Style)}")
    return Field(name, argument, known)


def _headers(value: object, place: str) -> tuple[tuple[str, str], ...]:
    table = as_object(value)
    if table is None:
        raise _wrong(f"{place}/headers", "must be an object from names to texts")
    for name, text in table.items():
        why = header_fault(name)
        if why is None and not (isinstance(text, str) and _VALUE.fullmatch(text)):
            why = "its value must be one line of ASCII"
        if why is not None:
            raise _wrong(f"{place}/headers/{name[:64]}", why)
    return tuple((name, str(text)) for name, text in table.items())


def _read_body(value: object, place: str) -> tuple[Body, bool]:
    if value is None:
        return None, False
    table = as_object(value)
    kind = next(iter(table)) if table is not None and len(table) == 1 else ""
    if table is None or kind not in {"json", "form"}:
        raise _wrong(place, "must be an object with `json` or `form`")
    said = table[kind]
    if isinstance(said, str) and said and kind == "json":
        return said, False
    return _fields(said, f"{place}/{kind}"), kind == "form"


def _wrong(place: str, why: str) -> RegistrationError:
    return RegistrationError(f"`{place}` {why}")


def _is_below(url: UrlTarget, base: UrlTarget) -> bool:
    return url.text.startswith(f"{base.text.rstrip('/')}/")


def _component(parts: tuple[str | Slot, ...], arguments: Mapping[str, object]) -> str:
    given = (quote(_text(arguments.get(part.argument)), "") if isinstance(part, Slot) else part for part in parts)
    return "".join(given)


def _text(value: object) -> str:
    """A plain value as it stands in an address, a list of such with commas; nothing for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    rows = as_list(value)
    texts = [_text(row) for row in rows or () if not isinstance(row, list)]
    return ",".join(texts) if texts and all(texts) else ""


def _pairs(fields: tuple[Field, ...], arguments: Mapping[str, JsonValue], escape: Escape) -> Iterator[str]:
    for field in fields:
        value = arguments.get(field.argument)
        if value is None:
            continue
        name = escape(field.name, "")
        separator = _SEPARATORS.get(field.style)
        if field.style is Style.BRACKETS:
            yield from _bracketed(name, value, escape)
        elif isinstance(value, list) and separator is not None:
            yield f"{name}={separator.join(escape(_plain(one), '') for one in value)}"
        elif isinstance(value, list) and field.style is Style.REPEAT:
            yield from (f"{name}={escape(_plain(one), '')}" for one in value)
        else:
            yield f"{name}={escape(_plain(value), '')}"


def _bracketed(name: str, value: JsonValue, escape: Escape) -> Iterator[str]:
    """`name[key]=value`, and so on inside; without recursion, since a model chooses how deep a value is."""
    stack: list[tuple[str, JsonValue]] = [(name, value)]
    while stack:
        name, value = stack.pop()
        inner = list(value.items()) if isinstance(value, dict) else None
        if isinstance(value, list):
            inner = [(str(index), one) for index, one in enumerate(value)]
        if inner is None:
            if value is not None:
                yield f"{name}={escape(_plain(value), '')}"
            continue
        stack.extend((f"{name}[{escape(key, '')}]", one) for key, one in reversed(inner))


def _plain(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
