"""The HTTP tools of an OpenAPI document, as a manifest: one for each resource, its operations by path and method.

An operation that cannot be imported is left out, and said why; whatever else the document has goes on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field

from gatewright.adapters.openapi_document import Document, Fault, Faulty, step
from gatewright.adapters.openapi_schema import Schemas, short
from gatewright.base.errors import RegistrationError
from gatewright.base.frozen import frozen
from gatewright.policy.tier import SafetyTier
from gatewright.schema import check_schema, deed_of, discover_operations
from gatewright.schema.pattern import linear_part
from gatewright.schema.shapes.naming import snake
from gatewright.schema.walk import Schema, as_list, as_object
from gatewright.tools.definition import EXTRAS
from gatewright.tools.http_request import READING, base_address, read_requests

MAX_OPERATIONS = 5_000
MAX_FAULTS = 500
MAX_OF_TOOL = 120
"""Operations of one tool; a resource with more becomes several."""
MAX_CHARACTERS = 400_000
MAX_SERVERS = 50
_METHODS = ("get", "head", "post", "put", "patch", "delete")
_OTHERS = ("options", "trace")
_VERBS = {"get": "get", "head": "head", "post": "create", "put": "replace", "patch": "update", "delete": "delete"}
_VERSION = re.compile(r"v?\d[\d.]*|api|rest")
_JSON = re.compile(r"application/(?:[\w.+-]+\+)?json")
_FORM = "application/x-www-form-urlencoded"
_SLOT = re.compile(r"\{([^{}/]+)\}")
_STYLES = {
    ("form", True): "repeat",
    ("form", False): "comma",
    ("spaceDelimited", False): "space",
    ("pipeDelimited", False): "pipe",
    ("deepObject", True): "brackets",
    ("deepObject", False): "brackets",
}
_TOO_MANY = f"the document has more than {MAX_OPERATIONS:,} operations; those behind are left out"


@frozen
class Imported:
    """The import of a document: the manifest's tools, where its requests go, with which headers, and what is left out.

    ``url``: empty where the document says none. ``headers``: each with the scheme that asks for it. ``operations``:
    how many there are; ``left_out``: how many faults there were in all.
    """

    tools: tuple[Schema, ...] = field(hash=False)
    url: str
    headers: Mapping[str, str] = field(hash=False)
    operations: int
    faults: tuple[Fault, ...]
    left_out: int


@frozen
class _Operation:
    name: str
    resource: str
    sub: str
    summary: str
    tier: SafetyTier
    properties: Mapping[str, Schema] = field(hash=False)
    required: tuple[str, ...]
    request: Schema = field(hash=False)
    pointer: str


def import_document(document: Document) -> Imported:
    """The tools of a document."""
    faults, found = list[Fault](), list[_Operation]()
    url = _server(document.root, "", faults)
    for pointer, path, method, item, given in _listed(document, faults):
        if len(found) >= MAX_OPERATIONS:
            faults.append(Fault(pointer, _TOO_MANY))
            break
        try:
            found.append(_operation(document, pointer, path, method, item, given, url))
        except Faulty as reason:
            faults.append(reason.fault)
    tools = tuple(_tools(found))
    count = sum(len(tool["inputSchema"]["oneOf"]) for tool in tools)
    return Imported(tools, url, _headers(document, faults), count, tuple(faults[:MAX_FAULTS]), len(faults))


def server_addresses(document: Document) -> tuple[str, ...]:
    """The whole addresses of the servers that a document names, the usual one first."""
    rows = (as_list(document.root.get("servers")) or [])[:MAX_SERVERS]
    found = (_server({"servers": [row]}, "", []) for row in rows)
    return tuple(dict.fromkeys(filter(None, found)))


def _listed(document: Document, faults: list[Fault]) -> Iterator[tuple[str, str, str, Schema, Schema]]:
    """Every operation: its place, path, method, the item that it stands in, and itself."""
    paths = as_object(document.root.get("paths", {}))
    if paths is None:
        faults.append(Fault("/paths", "an object should stand here"))
    for path, value in (paths or {}).items():
        if path.startswith("x-"):
            continue
        pointer = f"/paths{step(path)}"
        try:
            item, place = document.resolved(value, pointer)
        except Faulty as reason:
            faults.append(reason.fault)
            continue
        odd = [method for method in _OTHERS if method in item]
        faults.extend(Fault(f"{place}/{method}", f"{method.upper()} is no method of a tool") for method in odd)
        for method in _METHODS:
            if method not in item:
                continue
            given = as_object(item[method])
            if given is None:
                faults.append(Fault(f"{place}/{method}", "an object should stand here"))
            else:
                yield f"{place}/{method}", path, method, item, given


def _operation(
    document: Document, pointer: str, path: str, method: str, item: Schema, given: Schema, url: str
) -> _Operation:
    """One operation with its request. Raises Faulty."""
    checked = {key: value for key, value in given.items() if key not in {"responses", "callbacks"}}
    document.check({**checked, "responses": {}}, pointer, "Operation")
    _require_same_server(given, item, pointer, url)
    arguments = _Arguments(document)
    arguments.take_parameters(item, pointer.rpartition("/")[0], given, pointer)
    arguments.take_body(given, pointer, is_read=method.upper() in READING)
    request = arguments.request(method.upper(), path, pointer)
    name, resource, sub = _names_of(path, method, given)
    tier = _tier(method, name)
    summary = short(given.get("summary")) or short(given.get("description"))
    schema = {"type": "object", "properties": arguments.properties}
    problems = check_schema(linear_part(schema))
    if problems:
        where = problems[0].pointer
        raise Faulty(pointer, f"the schema of its arguments cannot be used at `{where}`: {problems[0].message}")
    try:
        read_requests(request)
    except RegistrationError as error:
        raise Faulty(pointer, str(error)) from None
    required = tuple(arguments.required)
    return _Operation(name, resource, sub, summary, tier, arguments.properties, required, request, pointer)


class _Arguments:
    """The arguments of one operation, and the places in its request that they fill."""

    def __init__(self, document: Document) -> None:
        self._document, self._schemas = document, Schemas(document)
        self.properties: dict[str, Schema] = {}
        self.required: list[str] = []
        self._path: dict[str, str] = {}
        self._query: Schema = {}
        self._headers: Schema = {}
        self._body: Schema | None = None

    def take_parameters(self, item: Schema, item_pointer: str, given: Schema, pointer: str) -> None:
        """Those of the path's item and of the operation, whose own come before. Raises Faulty."""
        found: dict[tuple[str, str], tuple[Schema, str]] = {}
        for held, place in ((item, item_pointer), (given, pointer)):
            for index, row in enumerate(as_list(held.get("parameters")) or ()):
                one, where = self._document.resolved(row, f"{place}/parameters/{index}")
                self._document.check(one, where, "Parameter")
                found[str(one.get("in")), str(one.get("name"))] = one, where
        for (place, name), (one, where) in found.items():
            self._take_parameter(place, name, one, where)

    def _take_parameter(self, place: str, name: str, one: Schema, where: str) -> None:
        is_required = one.get("required") is True
        schema = self._schema_of(one, where)
        if place in {"header", "cookie"}:
            choices = schema.get("enum") or ()
            fixed = choices[0] if len(choices) == 1 else schema.get("const")
            if place == "header" and isinstance(fixed, str) and is_required:
                self._headers[name] = fixed
            elif is_required and name.lower() not in {"accept", "content-type", "authorization"}:
                raise Faulty(where, f"it needs the {place} `{name[:64]}`, which no argument can fill")
            return
        argument = self._argument(name, place, {**schema, **_described(one, schema)}, is_required=is_required)
        if place == "path":
            self._path[name] = argument
            return
        explode = one.get("explode", one.get("style", "form") == "form")
        style = _STYLES.get((str(one.get("style", "form")), explode is True), "repeat")
        if schema.get("type") == "object" and style != "brackets":
            style = "json"
            if "content" not in one and is_required:
                raise Faulty(where, "an object that becomes several parameters of the query is not supported")
        self._query[name] = argument if style == "repeat" else {"argument": argument, "style": style}

    def take_body(self, given: Schema, pointer: str, *, is_read: bool) -> None:
        """The body of the request, as JSON or as a form. Raises Faulty."""
        if "requestBody" not in given:
            return
        body, place = self._document.resolved(given["requestBody"], f"{pointer}/requestBody")
        self._document.check(body, place, "RequestBody")
        content = as_object(body.get("content")) or {}
        kind = next((one for one in content if _JSON.match(one)), _FORM if _FORM in content else None)
        needed = body.get("required") is True
        if kind is None or is_read:
            if needed or (content and not is_read):
                which = "a method that only reads" if is_read else f"the body `{next(iter(content), '')[:64]}`"
                raise Faulty(f"{place}/content", f"{which} is not supported; JSON and forms are")
            return
        form, media = kind == _FORM, as_object(content[kind]) or {}
        schema_place = f"{place}/content{step(kind)}/schema"
        schema = media.get("schema", {})
        members = self._schemas.members(schema, schema_place) if schema else None
        if members is None:
            if form:
                raise Faulty(schema_place, "a form has to say its fields")
            whole = self._schemas.of(schema, schema_place)
            self._body = {"json": self._argument("body", "body", whole, is_required=needed)}
            return
        encoding, fields = as_object(media.get("encoding")) or {}, Schema()
        for name, one in members[0].items():
            argument = self._argument(name, "body", one, is_required=needed and name in members[1])
            brackets = form and (as_object(encoding.get(name)) or {}).get("style") == "deepObject"
            fields[name] = {"argument": argument, "style": "brackets"} if brackets else argument
        self._body = {"form" if form else "json": fields}

    def request(self, method: str, path: str, pointer: str) -> Schema:
        """The request as a definition describes it. Raises Faulty."""
        unknown = [name for name in _SLOT.findall(path) if name not in self._path]
        if unknown:
            raise Faulty(pointer, f"the path names `{unknown[0][:64]}`, which is no parameter of it")
        filled = _SLOT.sub(lambda found: f"{{{self._path[found[1]]}}}", path)
        made: Schema = {"method": method, "path": filled}
        made |= {"query": self._query} if self._query else {}
        made |= {"headers": self._headers} if self._headers else {}
        return made | ({"body": self._body} if self._body is not None else {})

    def _schema_of(self, one: Schema, where: str) -> Schema:
        if "schema" in one:
            return self._schemas.of(one["schema"], f"{where}/schema")
        content = as_object(one.get("content")) or {}
        kind = next(iter(content), "")
        media = as_object(content.get(kind)) or {}
        return self._schemas.of(media.get("schema", {}), f"{where}/content{step(kind)}/schema")

    def _argument(self, name: str, place: str, schema: Schema, *, is_required: bool) -> str:
        """The name under which a model gives it: its own, unless it is another's or cannot be written."""
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_")[:60] or place
        chosen = plain if plain not in self.properties and plain != "operation" else f"{place}_{plain}"[:64]
        while chosen in self.properties:
            chosen = f"{chosen[:60]}_2"
        self.properties[chosen] = schema
        if is_required:
            self.required.append(chosen)
        return chosen


def _described(one: Schema, schema: Schema) -> Schema:
    text = short(one.get("description"))
    return {"description": text} if text and "description" not in schema else {}


def _tier(method: str, name: str) -> SafetyTier:
    if method == "delete" or deed_of(name) == "delete":
        return SafetyTier.PRIVILEGED
    return SafetyTier.READ_ONLY if method.upper() in READING else SafetyTier.SIDE_EFFECTING


def _names_of(path: str, method: str, given: Schema) -> tuple[str, str, str]:
    """The operation's name, its resource, and a smaller one within that."""
    steps = [one for one in path.split("/") if one]
    words = [_slug(one) for one in steps if not _SLOT.search(one) and not _VERSION.fullmatch(one.lower())]
    tags = as_list(given.get("tags")) or ()
    tag = _slug(tags[0]) if tags and isinstance(tags[0], str) else ""
    resource = tag or next((word for word in words if word), "api")
    inner = [word for word in words if word and word != resource]
    said = given.get("operationId")
    name = _slug(said.rpartition("/")[2]) if isinstance(said, str) else ""
    for prefix in (f"{resource}_", f"{resource.removesuffix('s')}_"):
        name = name.removeprefix(prefix) if len(name) > len(prefix) else name
    if not name:
        is_item = bool(steps) and _SLOT.search(steps[-1]) is not None
        verb = "list" if method == "get" and not is_item else _VERBS[method]
        name = "_".join([verb, *inner])
    return name[:60], resource[:60], (inner or [""])[-1][:40]


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", snake(text)).strip("_")


def _tools(found: list[_Operation]) -> Iterator[Schema]:
    resources: dict[str, list[_Operation]] = {}
    for one in found:
        resources.setdefault(one.resource, []).append(one)
    for resource, rows in resources.items():
        parts = _parts(rows)
        for index, part in enumerate(parts):
            yield _tool(resource if len(parts) == 1 else f"{resource}_{index + 1}", part)


def _parts(rows: list[_Operation]) -> list[list[_Operation]]:
    """The operations of a resource, in as many tools as they need."""
    parts: list[list[_Operation]] = [[]]
    size = 0
    for one in sorted(rows, key=lambda row: row.sub) if len(rows) > MAX_OF_TOOL else rows:
        own = len(str(one.properties))
        if len(parts[-1]) >= MAX_OF_TOOL or (parts[-1] and size + own > MAX_CHARACTERS):
            parts.append([])
            size = 0
        parts[-1].append(one)
        size += own
    return parts


def _tool(name: str, rows: list[_Operation]) -> Schema:
    """The definition of one tool: a branch of its schema for each operation."""
    branches, requests, tiers = list[Schema](), Schema(), Schema()
    for one in rows:
        own = one.name
        while own in requests:
            head, _, count = own.rpartition("_")
            own = f"{head}_{int(count) + 1}" if head and count.isdecimal() else f"{own}_2"
        what: Schema = {"const": own, **({"description": one.summary} if one.summary else {})}
        branches.append(
            {
                "type": "object",
                "properties": {"operation": what, **one.properties},
                "required": ["operation", *one.required],
                "additionalProperties": False,
            }
        )
        requests[own], tiers[own] = one.request, str(one.tier)
    extras: Schema = {
        "version": "1.0.0",
        "safety_tier": max(tiers.values(), key=[str(tier) for tier in SafetyTier].index),
        "operation_tiers": tiers,
    }
    schema: Schema = {"type": "object", "oneOf": branches}
    read = discover_operations(schema)
    if read is None or read.field != "operation" or set(read.names) != requests.keys():
        extras["operation_field"] = "operation"
    return {
        "name": name,
        "description": f"Requests about {name.replace('_', ' ')}.",
        "inputSchema": schema,
        "run": {"operations": requests},
        "_meta": {EXTRAS: extras},
    }


def _server(holder: Schema, pointer: str, faults: list[Fault]) -> str:
    """The address of the first server, its variables filled with their defaults; empty where there is none to use."""
    rows = as_list(holder.get("servers"))
    if not rows:
        return ""
    row = as_object(rows[0]) or {}
    url, variables = row.get("url"), as_object(row.get("variables")) or {}
    if not isinstance(url, str):
        faults.append(Fault(f"{pointer}/servers/0", "a server needs a `url`"))
        return ""
    for name in _SLOT.findall(url):
        value = (as_object(variables.get(name)) or {}).get("default")
        url = url.replace(f"{{{name}}}", value if isinstance(value, str) else "")
    try:
        base_address(url)
    except RegistrationError:
        faults.append(Fault(f"{pointer}/servers/0/url", "it is no whole address; say --url"))
        return ""
    return url.rstrip("/")


def _require_same_server(given: Schema, item: Schema, pointer: str, url: str) -> None:
    """Raises Faulty for an operation that has a server of its own."""
    for holder, place in ((given, pointer), (item, pointer.rpartition("/")[0])):
        if as_list(holder.get("servers")):
            own = _server(holder, place, [])
            if own != url:
                raise Faulty(f"{place}/servers", f"it is at another server, `{own[:200]}`")
            return


def _headers(document: Document, faults: list[Fault]) -> dict[str, str]:
    """The headers that the document's security asks for, each with the name of the scheme."""
    components = as_object(document.root.get("components")) or {}
    schemes, found = as_object(components.get("securitySchemes")) or {}, dict[str, str]()
    wanted = [as_object(row) or {} for row in as_list(document.root.get("security")) or ()]
    for name in wanted[0] if wanted else schemes:
        pointer = f"/components/securitySchemes{step(name)}"
        try:
            scheme, place = document.resolved(schemes.get(name), pointer)
            document.check(scheme, place, "SecurityScheme")
        except Faulty as reason:
            faults.append(reason.fault)
            continue
        if scheme.get("type") == "apiKey" and scheme.get("in") != "header":
            faults.append(Fault(place, f"a key in the {scheme.get('in')} is not supported; a header is"))
        elif scheme.get("type") == "apiKey":
            found.setdefault(str(scheme.get("name")), name)
        elif scheme.get("type") in {"http", "oauth2", "openIdConnect"}:
            found.setdefault("Authorization", name)
        else:
            faults.append(Fault(place, f"a scheme of type `{str(scheme.get('type'))[:64]}` is not supported"))
        if not wanted and found:
            break
    return found
