"""Tools that are imported from OpenAPI documents: what becomes of each part of one, and what hostile ones do."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewright.adapters.openapi_document import MAX_BYTES, Document, read_document
from gatewright.adapters.openapi_tools import MAX_OPERATIONS, Imported, import_document
from gatewright.base.errors import WorkspaceError
from gatewright.gate import Status
from gatewright.policy.document import Catalog, CatalogType
from gatewright.schema.walk import as_list, as_object
from gatewright.tools import read_definitions
from gatewright.tools.server_tool import HttpTool
from tests.engine.adapters.test_http_tool import bench_of, made_tool
from tests.engine.builtins.webbench import answer

PET: dict[str, Any] = {
    "type": "object",
    "required": ["name", "id"],
    "properties": {
        "id": {"type": "integer", "readOnly": True},
        "name": {"type": "string", "minLength": 1},
        "kind": {"type": "string", "enum": ["cat", "dog"], "nullable": True},
        "parent": {"$ref": "#/components/schemas/Pet"},
        "age": {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "example": 3, "x-order": 1},
    },
}
ID = {"name": "petId", "in": "path", "required": True, "schema": {"type": "string"}}


def document(paths: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A document with these paths, or those of a small shop for pets."""
    shop: dict[str, Any] = {
        "/pets": {
            "get": {
                "tags": ["Pets"],
                "summary": "All of them",
                "parameters": [
                    {"name": "limit", "in": "query", "schema": {"type": "integer", "maximum": 100}},
                    {"$ref": "#/components/parameters/tags"},
                    {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                ],
                "responses": {"200": {"description": "ok"}},
            },
            "post": {
                "tags": ["Pets"],
                "requestBody": {"$ref": "#/components/requestBodies/Pet"},
                "responses": {"201": {"description": "ok"}},
            },
        },
        "/pets/{petId}": {
            "parameters": [ID],
            "get": {"tags": ["Pets"], "operationId": "pets/get-one", "responses": {}},
            "delete": {"tags": ["Pets"], "responses": {}},
            "patch": {
                "tags": ["Pets"],
                "requestBody": {
                    "required": True,
                    "content": {"application/x-www-form-urlencoded": {"schema": {"$ref": "#/components/schemas/Pet"}}},
                },
                "responses": {},
            },
        },
    }
    return {
        "openapi": "3.0.3",
        "info": {"title": "Pets", "version": "1"},
        "servers": [{"url": "http://{region}.example.com/v1", "variables": {"region": {"default": "api"}}}],
        "paths": shop if paths is None else paths,
        "components": {
            "schemas": {"Pet": PET},
            "parameters": {
                "tags": {
                    "name": "tags",
                    "in": "query",
                    "explode": False,
                    "schema": {"type": "array", "items": {"type": "string"}},
                }
            },
            "requestBodies": {
                "Pet": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}},
                }
            },
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
        },
        **more,
    }


def imported(value: object) -> Imported:
    return import_document(read_document(json.dumps(value).encode()))


def tools_of(found: Imported) -> list[HttpTool]:
    """The tools as a catalog makes them."""
    definitions, problems = read_definitions(list(found.tools))
    assert not problems
    return [made_tool(one, Catalog("shop", CatalogType.HTTP, url=found.url)) for one in definitions]


def operation(**more: Any) -> dict[str, Any]:
    return {"responses": {}, **more}


def test_resource_becomes_one_tool_with_its_operations() -> None:
    found = imported(document())
    assert (found.url, dict(found.headers), found.faults) == ("http://api.example.com/v1", {"X-Key": "key"}, ())
    (tool,) = tools_of(found)
    assert tool.name == "pets"
    tiers = {spec.name: str(spec.tier) for spec in tool.operations}
    assert tiers == {
        "list": "read_only",
        "create": "side_effecting",
        "get_one": "read_only",
        "delete": "privileged",
        "update": "side_effecting",
    }
    taken = {spec.name: (set(spec.taken), set(spec.required)) for spec in tool.operations}
    pet = {"name", "kind", "parent", "age"}
    assert taken == {
        "list": ({"limit", "tags", "X-Trace"}, set()),
        "create": (pet, {"name"}),
        "get_one": ({"petId"}, {"petId"}),
        "delete": ({"petId"}, {"petId"}),
        "update": (pet | {"petId"}, {"petId", "name"}),
    }
    create = next(one for one in tool.operations if one.name == "create")
    schemas = {one.name: one.schema for one in create.parameters}
    assert schemas["kind"] == {"type": ["string", "null"], "enum": ["cat", "dog", None]}
    assert schemas["age"] == {"type": "integer", "exclusiveMinimum": 0}
    assert "$ref" not in json.dumps(found.tools)


async def test_imported_operations_make_their_requests(tmp_path: Path) -> None:
    (tool,) = tools_of(imported(document()))
    tool.name = "items"
    async with bench_of(tmp_path, tool) as bench:
        bench.site.pages |= {"/v1/pets": answer("ok"), "/v1/pets/7": answer("ok")}
        for arguments, line, body in (
            ({"operation": "list", "limit": 5, "tags": ["a b", "c"]}, "GET /v1/pets?limit=5&tags=a%20b,c", ""),
            ({"operation": "create", "name": "Tom", "kind": None}, "POST /v1/pets", '{"name": "Tom", "kind": null}'),
            ({"operation": "get_one", "petId": "7"}, "GET /v1/pets/7", ""),
            ({"operation": "delete", "petId": "7"}, "DELETE /v1/pets/7", ""),
            ({"operation": "update", "petId": "7", "name": "a&b c"}, "PATCH /v1/pets/7", "name=a%26b+c"),
        ):
            assert await bench.value(**arguments) == "ok"
            assert bench.site.requests[-1].startswith(f"{line} HTTP")
            assert bench.site.bodies[-1].decode() == body
        for wrong in (
            {"operation": "list", "limit": 101},
            {"operation": "list", "petId": "7"},
            {"operation": "create", "name": ""},
            {"operation": "create"},
            {"operation": "drop"},
            {"operation": "delete", "petId": "../../users"},
        ):
            assert (await bench.call(**wrong)).status is Status.DENIED, wrong


@pytest.mark.parametrize("seed", range(6))
async def test_no_call_outside_of_a_random_set_of_operations_is_made(tmp_path: Path, seed: int) -> None:
    (tool,) = tools_of(imported(document()))
    tool.name = "items"
    names = [spec.name for spec in tool.operations]
    allowed = random.Random(seed).sample(names, 1 + seed % 4)
    rule = (
        f'[[agents.a.tool_rules]]\ntool_name = "items"\nrule_type = {{ AllowedOperations = {json.dumps(allowed)} }}\n'
    )
    async with bench_of(tmp_path, tool, more=f'{rule}[agents.a.approvals]\nprivileged = "allow"\n') as bench:
        bench.site.pages |= {"/v1/pets": answer("ok"), "/v1/pets/7": answer("ok")}
        shown = json.dumps(bench.gate.view("a").tools("mcp"))
        for spec in tool.operations:
            filled = {name: {"name": "Tom"}.get(name, "7") for name in spec.required}
            before = len(bench.site.requests)
            outcome = await bench.call(operation=spec.name, **filled)
            assert (outcome.status is Status.ALLOWED) == (spec.name in allowed), spec.name
            assert len(bench.site.requests) == before + (spec.name in allowed)
            assert (f'"{spec.name}"' in shown) == (spec.name in allowed)


@pytest.mark.parametrize(
    ("paths", "pointer", "message"),
    [
        ({"/a": 5}, "/paths/~1a", "object"),
        ({"/a": {"get": []}}, "/paths/~1a/get", "object"),
        ({"/a": {"get": operation(parameters={})}}, "/paths/~1a/get/parameters", "list"),
        ({"/a": {"get": operation(parameters=[{"in": "query"}])}}, "/paths/~1a/get/parameters/0", "required"),
        ({"/a/{b}": {"get": operation()}}, "/paths/~1a~1{b}/get", "`b`"),
        ({"/a?b=1": {"get": operation()}}, "/paths/~1a?b=1/get", "path"),
        ({"/../a": {"get": operation()}}, "/paths/~1..~1a/get", "path"),
        ({"a": {"get": operation()}}, "/paths/a/get", "path"),
        ({"/a": {"trace": operation()}}, "/paths/~1a/trace", "TRACE"),
        ({"/a": {"$ref": "other.yaml#/x"}}, "/paths/~1a/$ref", "inside"),
        ({"/a": {"$ref": "https://evil.example/x"}}, "/paths/~1a/$ref", "inside"),
        ({"/a": {"$ref": "#/paths/~1b"}, "/b": {"$ref": "#/paths/~1a"}}, "/paths/~1", "each other"),
        ({"/a": {"get": operation(parameters=[{"$ref": "#/nowhere"}])}}, "/paths/~1a/get/parameters/0/$ref", "nothing"),
        (
            {"/a": {"get": operation(requestBody={"required": True, "content": {"a/b": {}}})}},
            "/requestBody/content",
            "reads",
        ),
        (
            {
                "/a/{b}": {
                    "get": operation(parameters=[{"in": "path", "name": "b", "required": True, "content": {"a/b": {}}}])
                }
            },
            "/parameters/0",
            "JSON",
        ),
        ({"/a": {"get": operation(servers=[{"url": "https://evil.example"}])}}, "/paths/~1a/get/servers", "evil"),
        (
            {"/a": {"get": operation(parameters=[{**ID, "name": "q", "in": "query", "schema": {"type": "frog"}}])}},
            "/paths/~1a/get/parameters/0/schema",
            "",
        ),
        (
            {"/a": {"get": operation(parameters=[{**ID, "name": "Host", "in": "header"}])}},
            "/paths/~1a/get/parameters/0",
            "header",
        ),
    ],
)
def test_fault_is_named_with_its_place_and_the_rest_is_imported(
    paths: dict[str, Any], pointer: str, message: str
) -> None:
    good = {"/good": {"get": operation(), "post": operation()}}
    found = imported(document({**paths, **good}))
    assert any(pointer in one.pointer and message in one.message for one in found.faults), found.faults
    assert [one["name"] for one in found.tools] == ["good"]
    assert found.operations == 2


_MEMBERS = {f"p{index}": {"$ref": "#/components/schemas/Bomb"} for index in range(10)}


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_schemas_that_come_back_to_themselves_or_explode_are_cut_short(version: str) -> None:
    layers = {
        f"L{depth}": {
            "type": "object",
            "properties": {f"x{n}": {"$ref": f"#/components/schemas/L{depth + 1}"} for n in range(9)},
        }
        for depth in range(40)
    }
    schemas = {"Bomb": {"type": "object", "properties": _MEMBERS}, **layers, "L40": {"type": "string"}}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/L0"}}}}
    bomb = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Bomb"}}}}
    paths = {"/a": {"post": operation(requestBody=body), "put": operation(requestBody=bomb)}}
    found = imported(document(paths, openapi=version, components={"schemas": schemas}))
    assert (found.operations, found.faults) == (2, ())
    assert len(json.dumps(found.tools)) < 300_000
    (tool,) = tools_of(found)
    assert {spec.name for spec in tool.operations} == {"create", "replace"}


def test_endless_document_is_imported_within_bounds() -> None:
    found = imported(document({f"/r{index}/x": {"get": {"responses": {}}} for index in range(100_000)}))
    assert found.operations <= MAX_OPERATIONS
    assert any("more than" in one.message for one in found.faults)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b"{}",
        b"\xff\xfe",
        b'{"swagger": "2.0"}',
        b'{"openapi": "4.0.0"}',
        b'{"openapi": ["3.0.0"]}',
        b'{"a":' * 100_000,
        b'{"openapi": "3.0.0", "x": "\\ud800"}',
        b"[" * 100_000,
        b"- " * 100_000,
        b"openapi: 3.0.0\nx: &a [*a, *a]\n",
        b"openapi: 3.0.0\nx: !!python/object/apply:os.system ['true']\n",
        b"openapi: 3.0.0\nx: !!timestamp 2020-01-01\n",
        b"openapi: 3.0.0\nx: *nowhere\n",
        b"a0: &a0 [x, x]\n"
        + b"".join(b"a%d: &a%d [*a%d, *a%d, *a%d]\n" % (n, n, n - 1, n - 1, n - 1) for n in range(1, 40)),
        b"x" * (MAX_BYTES + 1),
    ],
    ids=range(18),
)
def test_document_that_cannot_be_read_is_refused(content: bytes) -> None:
    with pytest.raises(WorkspaceError):
        read_document(content)


def test_yaml_is_read_as_json_has_it() -> None:
    text = 'openapi: "3.1.0"\ninfo: {title: no, version: 2022-11-28}\npaths:\n  /a: {get: {responses: {200: on}}}\n'
    read = read_document(text.encode())
    assert (read.minor, read.title) == (1, "no")
    assert read.root["info"] == {"title": "no", "version": "2022-11-28"}
    assert read.root["paths"] == {"/a": {"get": {"responses": {"200": "on"}}}}


_JUNK: list[object] = [None, True, 0, -1.5, "", "x", [], {}, [[]], {"$ref": "#"}, {"$ref": "#/paths"}, {"$ref": 3}]


def wide() -> dict[str, Any]:
    """Paths with what a small shop does not need: files, headers, cookies, styles, spans, keys, answers."""
    styles = [
        {"name": "p", "in": "path", "required": True, "x-multi-segment": True, "schema": {"type": "string"}},
        {"name": "m", "in": "path", "required": True, "style": "matrix", "explode": True, "schema": {"type": "object"}},
        {"name": "q", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}},
        {"name": "X-H", "in": "header", "required": True, "schema": {"type": "string", "enum": ["a"]}},
        {"name": "c", "in": "cookie", "explode": False, "schema": {"type": "array", "items": {"type": "string"}}},
    ]
    fields = {"file": {"type": "string", "format": "binary"}, "tags": {"type": "array", "items": {"type": "string"}}}
    form = {"schema": {"type": "object", "properties": fields}, "encoding": {"tags": {"contentType": "text/plain"}}}
    said = {
        "content": {"application/json": {"schema": {"nullable": True, "oneOf": [{"$ref": "#/components/schemas/Pet"}]}}}
    }
    return {
        "/f/{p}/{m}": {"post": operation(parameters=styles, requestBody={"content": {"multipart/form-data": form}})},
        "/f/raw/{m}": {
            "get": {"parameters": styles[1:2], "responses": {"2XX": {"description": "", **said}, "204": {}}},
            "put": operation(requestBody={"content": {"*/*": {"schema": {"type": "string"}}}}, parameters=styles[1:2]),
        },
    }


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
@pytest.mark.parametrize("paths", [None, wide()], ids=["shop", "wide"])
def test_wrong_value_anywhere_is_a_fault_and_nothing_else(version: str, paths: dict[str, Any] | None) -> None:
    """Each value of the document is replaced by some junk: the import goes on, and its tools can be made."""
    keys = {"k": {"type": "apiKey", "in": "cookie", "name": "c"}, "q": {"type": "apiKey", "in": "query", "name": "z"}}
    whole = document(paths, openapi=version, **({"security": [{"k": [], "q": []}]} if paths else {}))
    whole["components"]["securitySchemes"] |= keys
    assert imported(whole).left_out == 0
    for index, path in enumerate(_places(whole)):
        for junk in _JUNK[index % 3 :: 3]:
            other = json.loads(json.dumps(whole))
            holder = other
            for name in path[:-1]:
                holder = holder[name]
            holder[path[-1]] = junk
            if path[0] == "openapi":
                continue
            found = import_document(Document(other, int(version[2])))
            tools_of(Imported(found.tools, found.url or "http://x.example.com", {}, 0, (), 0))


def _places(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    table, rows = as_object(value), as_list(value)
    held = table.items() if table is not None else enumerate(rows or ())
    for name, one in held:
        yield (*path, name)
        yield from _places(one, (*path, name))
