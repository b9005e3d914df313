"""The answers that a document describes for an operation, and the keys that its server asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from gatewright.adapters.openapi_document import Document, Fault, Faulty, step
from gatewright.adapters.openapi_request import JSON, TEXT
from gatewright.adapters.openapi_schema import Schemas
from gatewright.base.frozen import frozen
from gatewright.schema.walk import Schema, as_list, as_object
from gatewright.tools.definition import result_schema_fault
from gatewright.tools.http_field import is_media_type
from gatewright.tools.http_request import header_fault

MAX_NODES = 40
"""Schemas of the answers of one operation; what is deeper is left open."""
MAX_ALTERNATIVES = 50
_EMPTY: Schema = {"type": "object", "properties": {"status": {"type": "integer"}}, "required": ["status"]}
"""The result of an answer without a body."""


class Answers:
    """The answer of an operation that succeeds. ``schema``: of the result; None where the document does not tell.

    ``accept``: the types that have to be asked for; empty where JSON, or anything, is right.
    """

    def __init__(self, document: Document, given: Schema, pointer: str) -> None:
        self._document, self._schemas = document, Schemas(document, MAX_NODES, answers=True)
        self.accept, self.schema = "", None
        responses = as_object(given.get("responses")) or {}
        rows = {code: value for code, value in responses.items() if str(code).upper() == "2XX" or _is_success(code)}
        types = list[str]()
        found = list[Schema]()
        is_known = bool(rows)
        for code, value in rows.items():
            try:
                one, place = document.resolved(value, f"{pointer}/responses{step(code)}")
                content = as_object(one.get("content")) or {}
                types += [kind for kind in content if is_media_type(kind)]
                schemas = list(self._schemas_of(content, f"{place}/content"))
            except Faulty:
                is_known = False
                continue
            is_known &= None not in schemas
            found += [row for row in schemas if row is not None and row not in found]
        if types and not any(kind.lower().startswith("application/json") for kind in types):
            best = next((kind for kind in types if JSON.fullmatch(kind.lower())), None)
            self.accept = best or ", ".join(dict.fromkeys(types[:5]))
        if is_known and found and {} not in found:
            made = found[0] if len(found) == 1 else {"anyOf": found}
            self.schema = None if result_schema_fault(made) else made

    def _schemas_of(self, content: Schema, pointer: str) -> Iterator[Schema | None]:
        """The result made of the bodies that an answer may have; None of one that may be anything."""
        if not content:
            yield _EMPTY
        json = [kind for kind in content if JSON.fullmatch(kind.lower())]
        for kind in json[:1] or content:
            if JSON.fullmatch(kind.lower()):
                media = as_object(content[kind]) or {}
                yield self._schemas.of(media["schema"], f"{pointer}{step(kind)}/schema") if "schema" in media else None
            else:
                yield {"type": "string"} if TEXT.fullmatch(kind.lower()) and "json" not in kind.lower() else None


@frozen
class Keys:
    """The headers and the fields of a query that hold keys, each with the scheme that asks for it.

    ``names``: every place where some scheme of the document has a key, whether it is used or not.
    """

    headers: Mapping[str, str] = field(hash=False)
    query: Mapping[str, str] = field(hash=False)
    names: frozenset[tuple[str, str]]


def read_security(document: Document, faults: list[Fault]) -> Keys:
    """The keys of the first alternative that can be had: of the document, else of its operations, else any scheme."""
    components = as_object(document.root.get("components")) or {}
    schemes = as_object(components.get("securitySchemes")) or {}
    places, odd = dict[str, tuple[str, str]](), dict[str, Fault]()
    for name, value in schemes.items():
        pointer = f"/components/securitySchemes{step(name)}"
        try:
            scheme, place = document.resolved(value, pointer)
            document.check(scheme, place, "SecurityScheme")
            places[name] = _place_of(scheme, place)
        except Faulty as reason:
            odd[name] = reason.fault
    wanted = list(_alternatives(document, schemes))
    chosen = next((row for row in wanted if places.keys() >= set(row)), None)
    if chosen is None and wanted:
        faults += [
            odd.get(name) or Fault("/security", f"there is no scheme `{name[:64]}`")
            for name in wanted[0]
            if name not in places
        ]
    else:
        faults += odd.values()
    headers, query = dict[str, str](), dict[str, str]()
    for name in chosen or ():
        kind, held = places[name]
        (query if kind == "query" else headers).setdefault(held, name)
    names = frozenset((kind, held.lower() if kind == "header" else held) for kind, held in places.values())
    cookies = frozenset(_cookies(document, schemes))
    return Keys(headers, query, names | cookies)


def _place_of(scheme: Schema, place: str) -> tuple[str, str]:
    """The place of a scheme's key: in a header, which a cookie is too, or in the query. Raises Faulty."""
    kind, where, name = scheme.get("type"), scheme.get("in"), str(scheme.get("name"))
    if kind == "apiKey" and where == "query":
        return "query", name
    if kind == "apiKey" and where == "cookie":
        return "header", "Cookie"
    if kind == "apiKey" and where == "header":
        if header_fault(name) is not None:
            raise Faulty(place, f"a key in the header `{name[:64]}`, which is not yours to set")
        return "header", name
    if kind in {"http", "oauth2", "openIdConnect"}:
        return "header", "Authorization"
    raise Faulty(place, f"a scheme of type `{str(kind)[:64]}` is not supported")


def _cookies(document: Document, schemes: Schema) -> Iterator[tuple[str, str]]:
    """The cookies that hold keys, as parameters would name them."""
    for name, value in schemes.items():
        try:
            scheme, _ = document.resolved(value, f"/components/securitySchemes{step(name)}")
        except Faulty:
            continue
        if scheme.get("type") == "apiKey" and scheme.get("in") == "cookie":
            yield "cookie", str(scheme.get("name"))


def _alternatives(document: Document, schemes: Schema) -> Iterator[tuple[str, ...]]:
    """The schemes that are asked for together, in the order in which they are to be tried."""
    rows = as_list(document.root.get("security"))
    if not rows:
        for item in (as_object(document.root.get("paths")) or {}).values():
            held = [as_object(one) or {} for one in (as_object(item) or {}).values()]
            rows = next((found for one in held if (found := as_list(one.get("security"))) and found[0]), None)
            if rows:
                break
    for row in (rows or ())[:MAX_ALTERNATIVES]:
        yield tuple(as_object(row) or {})
    if not rows:
        yield from ((name,) for name in schemes)


def _is_success(code: object) -> bool:
    return str(code).isdecimal() and 200 <= int(str(code)[:4]) < 300
