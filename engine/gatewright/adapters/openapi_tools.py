"""The HTTP tools of an OpenAPI document as a manifest: one for each resource, its operations by path and method.

An unusable operation is omitted, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from typing import cast

from gatewright.adapters.openapi_document import MAX_NODES as OF_OPERATION
from gatewright.adapters.openapi_document import Document, Fault, Faulty, Schemas, short, step
from gatewright.adapters.openapi_request import Answers, Arguments, read_security
from gatewright.base.errors import RegistrationError
from gatewright.base.frozen import frozen
from gatewright.policy.verdict import SafetyTier
from gatewright.schema import check_schema, deed_of, discover_operations
from gatewright.schema.flat import snake
from gatewright.schema.walk import Schema, as_list, as_object, linear_part
from gatewright.tools.definition import EXTRAS
from gatewright.tools.http_path import PathTemplate, read_path
from gatewright.tools.http_request import MAX_EXCEPT, READING, base_address, method_class, read_requests

MAX_OPERATIONS = 5_000
MAX_FAULTS = 500
MAX_OF_TOOL = 120
"""Limit of operations in one tool; a larger resource becomes several tools."""
MAX_CHARACTERS = 400_000
MAX_SERVERS = 50
MAX_VALUES = 15_000
"""Limits of characters and values in one tool; a definition may have more."""
MAX_NODES = 600_000
"""Limit of schemas in all operations together."""
MAX_PAIRS = 2_000_000
"""Limit of comparisons between paths."""
_METHODS = ("get", "head", "post", "put", "patch", "delete")
_OTHERS = ("options", "trace")
_VERBS = {"get": "get", "head": "head", "post": "create", "put": "replace", "patch": "update", "delete": "delete"}
_VERSION = re.compile(r"v?\d[\d.]*|api|rest")
_SLOT = re.compile(r"\{([^{}/]+)\}")
_TOO_MANY = f"the document has more than {MAX_OPERATIONS:,} operations; the import omits the rest"


@frozen
class Imported:
    """The import of a document: the manifest's tools, the address and headers of its requests, and the omitted parts.

    ``url``: empty if the document names none. ``headers``, ``query``: the headers and query fields for keys, each with
    its scheme. ``operations``: their number; ``left_out``: the number of all faults.
    """

    tools: tuple[Schema, ...] = field(hash=False)
    url: str
    headers: Mapping[str, str] = field(hash=False)
    operations: int
    faults: tuple[Fault, ...]
    left_out: int
    query: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)


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
    output: Schema | None = field(hash=False)
    pointer: str


def import_document(document: Document) -> Imported:
    """Import the tools of a document."""
    faults, found = list[Fault](), list[_Operation]()
    url, keys = _server(document.root, "", faults), read_security(document, faults)
    left = MAX_NODES
    paths, apart = _Paths(), list[_Operation]()
    for pointer, path, method, item, given in _operations_of(document, faults):
        if len(found) >= MAX_OPERATIONS:
            faults.append(Fault(pointer, _TOO_MANY))
            break
        schemas = Schemas(document, max(min(left, OF_OPERATION), 0))
        arguments = Arguments(document, schemas, keys.names)
        try:
            found.append(_operation(document, pointer, path, method, item, given, url, arguments))
            paths.add(method.upper(), found[-1].request["path"])
        except Faulty as reason:
            faults.append(reason.fault)
            paths.add(method.upper(), path)
        faults.extend(arguments.faults)
        left -= schemas.used
    for one in found:
        try:
            paths.tell_apart(one)
            apart.append(one)
        except Faulty as reason:
            faults.append(reason.fault)
    tools = tuple(_tools(apart))
    count = sum(len(tool["inputSchema"]["oneOf"]) for tool in tools)
    return Imported(tools, url, keys.headers, count, tuple(faults[:MAX_FAULTS]), len(faults), keys.query)


class _Paths:
    """The paths of a document by method and first component, to find requests that could be confused."""

    def __init__(self) -> None:
        self._open: dict[str, list[PathTemplate]] = {}
        self._by_first: dict[tuple[str, str], list[PathTemplate]] = {}
        self._left = MAX_PAIRS

    def add(self, method: str, path: str) -> None:
        """Add a path; ignore an invalid one."""
        with suppress(RegistrationError):
            read, kind = read_path(path, ""), method_class(method)
            if read.first is None:
                self._open.setdefault(kind, []).append(read)
            else:
                self._by_first.setdefault((kind, read.first), []).append(read)

    def tell_apart(self, one: _Operation) -> None:
        """List in the request the other paths that its values must not form. Raises Faulty if there are too many."""
        own, method = read_path(one.request["path"], one.pointer), method_class(one.request["method"])
        if not own.has_slots:
            return
        found = dict[str, None]()
        for other in self._like(method, own.first):
            self._left -= 1
            if own.may_become(other):
                found[other.text] = None
            if self._left < 0 or len(found) > MAX_EXCEPT:
                raise Faulty(one.pointer, "its values could make it any of too many other paths of the document")
        if found:
            one.request["except"] = list(found)

    def _like(self, method: str, first: str | None) -> Iterator[PathTemplate]:
        yield from self._open.get(method, ())
        if first is not None:
            yield from self._by_first.get((method, first), ())
            return
        yield from (path for (kind, _), rows in self._by_first.items() if kind == method for path in rows)


def server_addresses(document: Document) -> tuple[str, ...]:
    """List the full addresses of the document's servers, the usual one first."""
    rows = (as_list(document.root.get("servers")) or [])[:MAX_SERVERS]
    found = (_server({"servers": [row]}, "", []) for row in rows)
    return tuple(dict.fromkeys(filter(None, found)))


def _operations_of(document: Document, faults: list[Fault]) -> Iterator[tuple[str, str, str, Schema, Schema]]:
    """Yield every operation: its place, path, method, item, and itself."""
    paths = as_object(document.root.get("paths", {}))
    if paths is None:
        faults.append(Fault("/paths", "an object should stand here"))
    for path, value in (paths or {}).items():
        if path.startswith("x-"):
            continue
        pointer = f"/paths{step(path)}"
        try:
            item, place = document.resolve(value, pointer)
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
    document: Document,
    pointer: str,
    path: str,
    method: str,
    item: Schema,
    given: Schema,
    url: str,
    arguments: Arguments,
) -> _Operation:
    """Read one operation with its request. Raises Faulty."""
    checked = {key: value for key, value in given.items() if key not in {"responses", "callbacks"}}
    document.check({**checked, "responses": {}}, pointer, "Operation")
    _require_same_server(given, item, pointer, url)
    arguments.take_parameters(path, item, pointer.rpartition("/")[0], given, pointer)
    arguments.take_body(given, pointer, is_read=method.upper() in READING)
    request = arguments.request(method.upper(), path, pointer)
    answers = Answers(document, given, pointer)
    if answers.accept:
        request["headers"] = {"Accept": answers.accept, **request.get("headers", {})}
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
    required, output = tuple(arguments.required), answers.schema
    if _is_large(output):
        output = None
    if _is_large(arguments.properties):
        raise Faulty(pointer, "its arguments are more than a tool can have")
    return _Operation(name, resource, sub, summary, tier, arguments.properties, required, request, output, pointer)


def _is_large(value: object) -> bool:
    """Tell whether a schema alone takes more than half of a tool's size."""
    return _values(value) > MAX_VALUES // 2 or len(str(value)) > MAX_CHARACTERS // 2


def _tier(method: str, name: str) -> SafetyTier:
    if method == "delete" or deed_of(name) == "delete":
        return SafetyTier.PRIVILEGED
    return SafetyTier.READ_ONLY if method.upper() in READING else SafetyTier.SIDE_EFFECTING


def _names_of(path: str, method: str, given: Schema) -> tuple[str, str, str]:
    """Return the operation's name, its resource, and a smaller one within that."""
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
    taken = set(resources)
    for resource, rows in resources.items():
        parts = _parts(rows)
        for index, part in enumerate(parts):
            name = resource if len(parts) == 1 else f"{resource}_{index + 1}"
            while len(parts) > 1 and name in taken:
                name = f"{name}_of_{resource}"[:80]  # a resource may have the name of another resource's part
            taken.add(name)
            yield _tool(name, part)


def _parts(rows: list[_Operation]) -> list[list[_Operation]]:
    """Split the operations of a resource into as many tools as they need."""
    parts: list[list[_Operation]] = [[]]
    size = values = 0
    for one in sorted(rows, key=lambda row: row.sub) if len(rows) > MAX_OF_TOOL else rows:
        own = len(str(one.properties)) + len(str(one.output)) + len(str(one.request))
        held = _values(one.properties) + _values(one.output) + _values(one.request) + 20
        is_full = size + own > MAX_CHARACTERS or values + held > MAX_VALUES
        if len(parts[-1]) >= MAX_OF_TOOL or (parts[-1] and is_full):
            parts.append([])
            size = values = 0
        parts[-1].append(one)
        size, values = size + own, values + held
    return parts


def _values(value: object) -> int:
    """Count the values in a value, keys included."""
    if isinstance(value, Mapping):
        table = cast("Mapping[str, object]", value)
        return 1 + len(table) + sum(map(_values, table.values()))
    rows = as_list(value)
    return 1 + (sum(map(_values, rows)) if rows is not None else 0)


def _tool(name: str, rows: list[_Operation]) -> Schema:
    """Define one tool: a branch of its schema for each operation."""
    branches, requests, tiers, outputs = list[Schema](), Schema(), Schema(), Schema()
    for one in rows:
        own = one.name
        while own in requests:
            head, _, count = own.rpartition("_")
            own = f"{head}_{int(count) + 1}" if head and count.isdecimal() and len(count) < 8 else f"{own}_2"
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
        outputs |= {own: one.output} if one.output else {}
    extras: Schema = {
        "version": "1.0.0",
        "safety_tier": max(tiers.values(), key=[str(tier) for tier in SafetyTier].index),
        "operation_tiers": tiers,
        **({"operation_outputs": outputs} if outputs else {}),
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
    """Return the address of the first server, with its variables' defaults; empty without a usable one."""
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
    """Raise Faulty for an operation with its own servers, unless the document's server is among them."""
    for holder, place in ((given, pointer), (item, pointer.rpartition("/")[0])):
        rows = as_list(holder.get("servers"))
        if rows:
            found = [_server({"servers": [row]}, place, []) for row in rows[:20]]
            if url not in found:
                raise Faulty(f"{place}/servers", f"it is at another server, `{found[0][:200]}`")
            return
