"""Reads the request and the answers of one operation in an OpenAPI document: arguments, places, keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field

from gatewright.adapters.openapi_document import Document, Fault, Faulty, Schemas, short, step
from gatewright.base.frozen import frozen
from gatewright.schema.walk import Schema, as_list, as_object
from gatewright.tools.definition import result_schema_fault
from gatewright.tools.http_path import SLOT, is_media_type
from gatewright.tools.http_request import FILE, header_fault

MAX_PARAMETERS = 300
JSON = re.compile(r"(?:application|text)/(?:[\w.+-]+\+)?json\s*(?:;.*)?")
_FORM = "application/x-www-form-urlencoded"
_PARTS = "multipart/form-data"
TEXT = re.compile(
    r"text/.*|.*[+/](?:xml|yaml|x-yaml|toml|javascript|sql|graphql|jsonl|jsonlines|(?:x-)?ndjson|json-seq)\b.*"
)
_IGNORED = frozenset({"accept", "content-type", "authorization"})
"""Headers that a document may not declare as parameters; such declarations mean nothing."""
_STYLES = {
    ("form", True): "repeat",
    ("form", False): "comma",
    ("spaceDelimited", False): "space",
    ("pipeDelimited", False): "pipe",
    ("deepObject", True): "brackets",
    ("deepObject", False): "brackets",
}
_OPERATORS = {"simple": "", "label": ".", "matrix": ";"}


class Arguments:
    """The arguments of one operation, and their places in its request.

    ``faults``: omitted parts of the document, without which the rest works. ``keys``: the headers, query fields and
    cookies that identify the caller, which no argument fills.
    """

    def __init__(self, document: Document, schemas: Schemas, keys: frozenset[tuple[str, str]]) -> None:
        self._document, self._schemas, self._keys = document, schemas, keys
        self.properties: dict[str, Schema] = {}
        self.required: list[str] = []
        self.faults: list[Fault] = []
        self._path: dict[str, str] = {}
        self._fields: dict[str, Schema] = {"query": {}, "cookies": {}}
        self._headers: Schema = {}
        self._body: Schema | None = None

    def take_parameters(self, path: str, item: Schema, item_pointer: str, given: Schema, pointer: str) -> None:
        """Take the parameters of the path's item and of the operation, which come first. Raises Faulty."""
        found: dict[tuple[str, str], tuple[Schema, str]] = {}
        for held, place in ((item, item_pointer), (given, pointer)):
            for index, row in enumerate(as_list(held.get("parameters")) or ()):
                one, where = self._document.resolve(row, f"{place}/parameters/{index}")
                self._document.check(one, where, "Parameter")
                found[str(one.get("in")), str(one.get("name"))] = one, where
        if len(found) > MAX_PARAMETERS:
            raise Faulty(pointer, f"it has more than {MAX_PARAMETERS} parameters")
        slots = {name.rstrip("+*") or name for name in SLOT.findall(path)} | set(SLOT.findall(path))
        for (place, name), (one, where) in found.items():
            if place == "path" and name not in slots:
                self.faults.append(Fault(where, f"the parameter `{name[:64]}`, which its path does not name"))
            elif (place, name.lower() if place == "header" else name) not in self._keys:
                self._take_parameter(place, name, one, where)

    def _take_parameter(self, place: str, name: str, one: Schema, where: str) -> None:
        is_required = one.get("required") is True or place == "path"
        is_json = "content" in one
        if place in {"path", "header"} and is_json:
            if is_required:
                raise Faulty(where, f"the {place} `{name[:64]}` holds JSON, which is not supported there")
            self.faults.append(Fault(where, f"the {place} `{name[:64]}`, which holds JSON"))
            return
        if place == "header" and name.lower() in _IGNORED:
            return
        schema = self._schema_of(one, where)
        if place == "header":
            self._take_header(name, schema, one, where, is_required=is_required)
            return
        argument = self._argument(name, place, {**schema, **_description(one, schema)}, is_required=is_required)
        is_object, style = (
            schema.get("type") == "object",
            str(one.get("style", "simple" if place == "path" else "form")),
        )
        explode = one.get("explode", style == "form") is True
        if place == "path":
            self._path[name] = self._slot(name, argument, one, where, style, explode=explode)
            return
        told = "json" if is_json else _STYLES.get((style, explode), "repeat")
        told = "spread" if told == "repeat" and is_object and style == "form" else told
        field: Schema = {"argument": argument, **({"style": told} if told != "repeat" else {})}
        field |= {"reserved": True} if place == "query" and one.get("allowReserved") is True else {}
        self._fields["cookies" if place == "cookie" else "query"][name] = argument if len(field) == 1 else field

    def _take_header(self, name: str, schema: Schema, one: Schema, where: str, *, is_required: bool) -> None:
        """Fix a header that can have only one value; turn any other into an argument."""
        why = header_fault(name) or ("a cookie is a parameter of its own kind" if name.lower() == "cookie" else None)
        if why is not None:
            if is_required:
                raise Faulty(where, f"it needs the header `{name[:64]}`, which no argument can fill: {why}")
            self.faults.append(Fault(where, f"the header `{name[:64]}`: {why}"))
            return
        choices = as_list(schema.get("enum")) or ()
        fixed = choices[0] if len(choices) == 1 else schema.get("const")
        if is_required and isinstance(fixed, str) and fixed.isascii() and fixed.isprintable():
            self._headers[name] = fixed
            return
        argument = self._argument(name, "header", {**schema, **_description(one, schema)}, is_required=is_required)
        self._headers[name] = {"argument": argument, **({"explode": True} if one.get("explode") is True else {})}

    def _slot(self, name: str, argument: str, one: Schema, where: str, style: str, *, explode: bool) -> str:
        """Return a path parameter in the form of RFC 6570, with `+` if the document lets it span several components."""
        if one.get("x-multi-segment") is True and style == "simple":
            return f"+{argument}"
        operator = _OPERATORS.get(style, "")
        if operator == ";" and argument != name:
            raise Faulty(where, f"the name `{name[:64]}` cannot stand in an address of the style `matrix`")
        return f"{operator}{argument}{'*' if explode else ''}"

    def take_body(self, given: Schema, pointer: str, *, is_read: bool) -> None:
        """Take the body of the request. Raises Faulty."""
        if "requestBody" not in given:
            return
        body, place = self._document.resolve(given["requestBody"], f"{pointer}/requestBody")
        self._document.check(body, place, "RequestBody")
        content = as_object(body.get("content")) or {}
        needed = body.get("required") is True
        if is_read:
            if needed:
                raise Faulty(f"{place}/content", "a method that only reads has no body that every server understands")
            return
        if not content:
            return
        media_type, kind = min(((one, self._kind(one, content[one], place)) for one in content), key=lambda row: row[1])
        media, where = as_object(content[media_type]) or {}, f"{place}/content{step(media_type)}"
        made = self._body_of(kind[1], media, f"{where}/schema", needed=needed)
        concrete = media_type.strip() if is_media_type(media_type) else ""
        if kind[1] == "text" and concrete.startswith("text/") and "charset" not in concrete.lower():
            concrete = f"{concrete}; charset=utf-8"
        plain = {"json": "application/json", "form": _FORM, "bytes": "application/octet-stream"}
        if concrete and kind[1] != "multipart" and concrete != plain.get(kind[1]):
            made["type"] = concrete
        self._body = made if needed else {**made, "optional": True}

    def _kind(self, media_type: str, value: object, place: str) -> tuple[int, str]:
        """Return the form of a body by its type, and a rank for how useful it is."""
        lowered = media_type.lower().strip()
        for rank, (found, name) in enumerate(
            (
                (JSON.fullmatch(lowered), "json"),
                (lowered.startswith(_FORM), "form"),
                (lowered.startswith(_PARTS), "multipart"),
                (TEXT.fullmatch(lowered) and "*" not in lowered, "text"),
            )
        ):
            if found:
                return rank, name
        if "*" not in lowered:
            return 6, "bytes"
        schema = (as_object(value) or {}).get("schema")
        found_schema = self._document.resolve(schema, f"{place}/content")[0] if schema else {}
        if not found_schema or self._is_file(found_schema):
            return 5, "bytes"
        return 4, "text" if lowered == "text/*" or found_schema.get("type") == "string" else "json"

    def _body_of(self, kind: str, media: Schema, place: str, *, needed: bool) -> Schema:
        schema = media.get("schema")
        if kind == "bytes":
            return {kind: self._argument("body", "body", dict(FILE), is_required=needed)}
        members = self._schemas.members(schema, place) if schema and kind != "text" else None
        if members is None:
            whole = self._schemas.of(schema, place) if schema else {}
            if kind == "text" and whole.get("type") != "string":
                whole = {"type": "string"}
            if kind in {"form", "multipart"} and whole.get("type") != "object":
                whole = {"type": "object", "allOf": [whole]} if whole else {"type": "object"}
            return {kind: self._argument("body", "body", whole, is_required=needed)}
        encoding, fields = as_object(media.get("encoding")) or {}, Schema()
        found, where = self._document.resolve(schema, place)
        given = as_object(found.get("properties")) or {}
        for name, one in members[0].items():
            how = as_object(encoding.get(name)) or {}
            is_file, is_list = self._file_in(given.get(name), f"{where}/properties{step(name)}", how)
            is_file = is_file and kind == "multipart"
            shown = ({"type": "array", "items": FILE} if is_list else FILE) if is_file else one
            argument = self._argument(name, "body", dict(shown), is_required=needed and name in members[1])
            fields[name] = argument if kind == "json" else _field(argument, how, one, is_file=is_file, kind=kind)
        return {kind: fields}

    def _file_in(self, value: object, place: str, how: Schema) -> tuple[bool, bool]:
        """Tell whether a field of a form is a file, and whether it is a list of files."""
        found = self._document.resolve(value, place)[0] if as_object(value) is not None else {}
        if found.get("type") == "array" and (items := as_object(found.get("items"))) is not None:
            return self._is_file(self._document.resolve(items, f"{place}/items")[0]), True
        said = how.get("contentType")
        is_open = not found.keys() - {"description", "example", "examples", "title"} and isinstance(said, str)
        return self._is_file(found) or (is_open and not JSON.fullmatch(str(said))), False

    @staticmethod
    def _is_file(schema: Schema) -> bool:
        kind = schema.get("type", "string")
        is_text = kind == "string" or (isinstance(kind, list) and "string" in kind)
        said = schema.get("contentMediaType")
        is_raw = isinstance(said, str) and "contentEncoding" not in schema and not TEXT.fullmatch(said)
        return is_text and (schema.get("format") == "binary" or is_raw)

    def request(self, method: str, path: str, pointer: str) -> Schema:
        """Return the request in the form of a definition. Raises Faulty."""
        named = SLOT.findall(path)
        spans = {name for name in named if name not in self._path and name[-1:] in {"+", "*"}}
        found = {name: self._path.get(name.rstrip("+*") if name in spans else name) for name in named}
        if unknown := [name for name, argument in found.items() if argument is None]:
            raise Faulty(pointer, f"the path names `{unknown[0][:64]}`, which is no parameter of it")
        parts = [self._component(component, found, spans) for component in path.split("/")]
        kept, spanning = list[str](), False
        for part in parts:  # only the first value may span several components
            kept.append(part.replace("{+", "{") if spanning else part)
            spanning |= "{+" in part
        made: Schema = {"method": method, "path": "/".join(kept)}
        made |= {key: fields for key, fields in self._fields.items() if fields}
        made |= {"headers": self._headers} if self._headers else {}
        return made | ({"body": self._body} if self._body is not None else {})

    def _component(self, component: str, found: Mapping[str, str | None], spans: set[str]) -> str:
        whole = SLOT.fullmatch(component)
        if whole is not None and whole[1] in spans:
            return f"{{+{(found[whole[1]] or '').lstrip('+.;').rstrip('*')}}}"
        text = SLOT.sub(lambda one: f"{{{found[one[1]]}}}", component)
        return text if whole is not None else text.replace("{+", "{")

    def _schema_of(self, one: Schema, where: str) -> Schema:
        if "schema" in one:
            return self._schemas.of(one["schema"], f"{where}/schema")
        content = as_object(one.get("content")) or {}
        kind = next(iter(content), "")
        media = as_object(content.get(kind)) or {}
        return self._schemas.of(media.get("schema", {}), f"{where}/content{step(kind)}/schema")

    def _argument(self, name: str, place: str, schema: Schema, *, is_required: bool) -> str:
        """Return the argument's name for the model: its own, unless it is taken or cannot be written."""
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_.")[:60] or place
        chosen = plain if plain not in self.properties and plain != "operation" else f"{place}_{plain}"[:60]
        start, count = chosen, 2
        while chosen in self.properties:
            chosen, count = f"{start[:56]}_{count}", count + 1
        self.properties[chosen] = schema
        if is_required:
            self.required.append(chosen)
        return chosen


def _field(argument: str, how: Schema, schema: Schema, *, is_file: bool, kind: str) -> Schema | str:
    """Return a field of a form in its encoding."""
    said, style = how.get("contentType"), how.get("style")
    types = [one.strip() for one in said.split(",")] if isinstance(said, str) else []
    media_type = next((one for one in types if is_media_type(one)), "")
    made: Schema = {"argument": argument}
    if is_file:
        made["file"] = True
    elif JSON.fullmatch(media_type.lower()):
        made["style"] = "json"
    elif isinstance(style, str) or "explode" in how:
        told = _STYLES.get((style or "form", how.get("explode", (style or "form") == "form") is True), "repeat")
        told = "spread" if told == "repeat" and schema.get("type") == "object" and style == "form" else told
        made |= {"style": told} if told != "repeat" else {}
    if kind == "multipart" and media_type and made.get("style") in {None, "json"}:
        made["type"] = media_type
    return made if len(made) > 1 else argument


def _description(one: Schema, schema: Schema) -> Schema:
    text = short(one.get("description"))
    return {"description": text} if text and "description" not in schema else {}


MAX_NODES = 40
"""Limit of schemas for the answers of one operation; deeper ones stay open."""
MAX_ALTERNATIVES = 50
_EMPTY: Schema = {"type": "object", "properties": {"status": {"type": "integer"}}, "required": ["status"]}
"""Result of an answer without a body."""


class Answers:
    """The successful answer of an operation. ``schema``: of the result; None if the document leaves it open.

    ``accept``: the types that the request must ask for; empty if JSON, or any type, is fine.
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
                one, place = document.resolve(value, f"{pointer}/responses{step(code)}")
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
        """Yield the schemas of results for the bodies that an answer may have; None for a body that may be anything."""
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
    """The headers and query fields that hold keys, each with its scheme.

    ``names``: every place of a key in any scheme of the document, used or unused.
    """

    headers: Mapping[str, str] = field(hash=False)
    query: Mapping[str, str] = field(hash=False)
    names: frozenset[tuple[str, str]]


def read_security(document: Document, faults: list[Fault]) -> Keys:
    """Return the keys of the first usable alternative: the document's, else its operations', else any scheme's."""
    components = as_object(document.root.get("components")) or {}
    schemes = as_object(components.get("securitySchemes")) or {}
    places, odd = dict[str, tuple[str, str]](), dict[str, Fault]()
    for name, value in schemes.items():
        pointer = f"/components/securitySchemes{step(name)}"
        try:
            scheme, place = document.resolve(value, pointer)
            document.check(scheme, place, "SecurityScheme")
            places[name] = _place_of(scheme, place)
        except Faulty as reason:
            odd[name] = reason.fault
    wanted = list(_alternatives(document, schemes))
    chosen = next((row for row in wanted if places.keys() >= set(row)), None)
    if chosen is None and wanted:
        faults += [
            odd.get(name) or Fault("/security", f"the scheme `{name[:64]}` does not exist")
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
    """Return the place of a scheme's key: a header, cookies included, or the query. Raises Faulty."""
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
    """Yield the cookies that hold keys, named like parameters."""
    for name, value in schemes.items():
        try:
            scheme, _ = document.resolve(value, f"/components/securitySchemes{step(name)}")
        except Faulty:
            continue
        if scheme.get("type") == "apiKey" and scheme.get("in") == "cookie":
            yield "cookie", str(scheme.get("name"))


def _alternatives(document: Document, schemes: Schema) -> Iterator[tuple[str, ...]]:
    """Yield the schemes of each alternative, in the order to try them."""
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
