"""The HTTP requests of a tool: read from the `run` of its definition, filled with the arguments of a call.

A request goes to the server of its catalog, below its path, whatever the arguments are: a value fills a template as
text within the path, in the query, a header, a cookie or the body, and decides nothing else. Nor can it turn the
request into another one of the same server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from urllib.parse import quote

from gatewright.arguments.url import UrlRefused, UrlTarget, parse_url
from gatewright.base.errors import RegistrationError, ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import late_regex
from gatewright.schema.walk import as_list, as_object
from gatewright.tools.context import WebRequest
from gatewright.tools.http_body import Body, read_body
from gatewright.tools.http_field import Field, pairs, read_fields, spread_issues
from gatewright.tools.http_path import PathTemplate, Slot, flat_texts, plain_text, read_path, wrong
from gatewright.tools.operation import ArgumentIssue

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
"""Headers that no argument fills: they name the caller, or describe the body."""
HEADER_FORM = "a header is written `Name: value`, in ASCII and on one line"
_IN_HEADER = "this is the value of a header: one line of ASCII"


@frozen
class RequestTemplate:
    """One request. ``headers``: each with its text, or with the slot of an argument.

    ``others``: the paths of other requests, which this one may not become.
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
        """True if it may change something on the server."""
        return self.method not in READING

    def issues(self, arguments: Mapping[str, object]) -> Iterator[ArgumentIssue]:
        """Yield the arguments that cannot stand in the request."""
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
        """Fill the request with ``arguments``, below ``base``. Raises ToolFailure for arguments that do not fit."""
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
    """The requests of one tool, by operation; the request of a tool with a single one has the empty name."""

    by_operation: Mapping[str, RequestTemplate]

    @property
    def is_single(self) -> bool:
        """True if all calls make the same request."""
        return "" in self.by_operation

    def of(self, operation: str) -> tuple[RequestTemplate, ...]:
        """Return the request of an operation; all of them for an unknown one."""
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
    """Say why neither a definition nor a model may send a header; None: they may."""
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
    """Return the paths that the request may not become: those it names, and those of the requests beside it."""
    beside = (row.path for row in rows if row is not one and method_class(row.method) == method_class(one.method))
    return tuple(dict.fromkeys((*one.others, *(path for path in beside if one.path.may_become(path)))))


def method_class(method: str) -> str:
    """Return the method whose requests a server answers alike."""
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
    """Write a value as in a header: a list or an object with commas."""
    texts = flat_texts(value)
    if texts is None:
        return "\n" if isinstance(value, list | dict) else plain_text(value)
    if isinstance(value, dict) and slot.explode:
        texts = [f"{key}={one}" for key, one in zip(texts[::2], texts[1::2], strict=True)]
    return ",".join(texts)


def _is_below(url: UrlTarget, base: UrlTarget) -> bool:
    return url.text.startswith(f"{base.text.rstrip('/')}/")
