"""Hostile OpenAPI documents and answers: each ends in a fault, a denial or an error, and nothing is requested twice."""

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gatewright.base.printable import printable
from gatewright.gate import Status
from gatewright.tools import read_definitions
from tests.engine.adapters.test_http_tool import ITEMS, JSON, bench_of, http_tool
from tests.engine.adapters.test_openapi import document, imported, operation, tools_of
from tests.engine.builtins.webbench import answer, redirect

Write = Callable[[asyncio.StreamWriter], Awaitable[None]]
NAMES = [
    "\u0430dmin",
    "admin\u202e",
    "a\x00b",
    "\r\nHost: x",
    "../..",
    "operation",
    "",
    "x" * 5_000,
    "{a}",
    "💥",
    "-",
    "con",
]


def query(name: str, schema: Any = None) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema or {"type": "string"}}


def test_names_of_strangers_become_plain_ones() -> None:
    rows = {f"/p{index}": {"get": operation(operationId=name, tags=[name])} for index, name in enumerate(NAMES)}
    found = imported(document({**rows, "/q": {"get": operation(parameters=[query(name) for name in NAMES])}}))
    for tool in found.tools:
        assert printable(tool["name"]) == tool["name"]
        assert tool["name"].isascii()
        for branch in tool["inputSchema"]["oneOf"]:
            own = [branch["properties"]["operation"]["const"], *branch["properties"]]
            assert all(name.isascii() and name.isprintable() and len(name) <= 64 for name in own)
    assert found.operations == len(NAMES) + 1
    assert len(tools_of(found)) == len({tool["name"] for tool in found.tools})


def test_names_that_begin_alike_are_told_apart() -> None:
    """Arguments, operations and tools of one long beginning, or called like a part of another tool."""
    long = [query("y" * 70 + str(index)) for index in range(40)]
    many = {f"/r{index}": {"get": operation(tags=["pets"], operationId="same")} for index in range(150)}
    odd = {f"/s{index}": {"get": operation(tags=[f"pets_{index + 1}"])} for index in range(3)}
    found = imported(document({"/a": {"get": operation(parameters=long)}, **many, **odd}))
    assert found.operations == 154
    definitions, problems = read_definitions(list(found.tools))
    assert (problems, len(definitions)) == ((), len(found.tools))
    (wide,) = [tool for tool in found.tools if tool["name"] == "a"]
    (branch,) = wide["inputSchema"]["oneOf"]
    assert len(branch["properties"]) == 41
    assert len(next(iter(wide["run"]["operations"].values()))["query"]) == 40


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "ftp://api.example.com",
        "//api.example.com",
        "/v1",
        "https://u:p@api.example.com",
        "https://api.example.com/?a=b",
        "https://{host}/",
        "https://api.example.com\\@evil.example",
        "http://[::1",
        "https://api.example.com:99999",
        3,
        None,
    ],
)
def test_server_that_is_no_plain_address_is_a_fault(url: object) -> None:
    found = imported(document(servers=[{"url": url, "variables": {"host": {"default": "u@evil.example"}}}]))
    assert found.url == ""
    assert found.faults[0].pointer.startswith("/servers/0")
    assert found.operations == 5


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.0.0.1", "[::1]", "169.254.169.254", "2130706433", "localhost", "db.internal"]
)
async def test_server_in_a_private_place_is_imported_and_never_reached(tmp_path: Path, address: str) -> None:
    found = imported(document(servers=[{"url": f"http://{address}/v1"}]))
    if not found.url:  # that of a cloud's data about its machines can be nobody's
        assert found.faults[0].pointer == "/servers/0/url"
        return
    (tool,) = tools_of(found)
    tool.name = "items"
    async with bench_of(tmp_path, tool, granted='{ NetRead = { allowlist = ["*"] } }') as bench:
        assert await bench.code(operation="list") == "url-private"
        assert (bench.site.requests, bench.names.dialled) == ([], [])


def _nested(depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        made = {"type": "object", "properties": {"a": made}}
    return made


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "description": "x" * 20_000_000},
        {"type": "string", "enum": [str(index) for index in range(50_000)]},
        {"type": "string", "pattern": "(a+)+$"},
        {"type": "string", "pattern": "^(?=a)(a|a)*\\1$"},
        {"type": "string", "pattern": "(" * 5_000},
        {"type": "string", "pattern": "a{1000000000}"},
        _nested(20),
        {"oneOf": [{"type": "integer"}] * 3_000},
        {"allOf": [{"$ref": "#/components/schemas/Pet"}] * 3_000},
        {"type": "object", "properties": {f"p{index}": {"type": "string"} for index in range(6_000)}},
        {"type": "integer", "minimum": 10**400, "multipleOf": 0},
    ],
    ids=range(11),
)
def test_schema_bomb_is_cut_or_a_fault(schema: dict[str, Any]) -> None:
    """In an argument, a body and an answer; what else the document has is imported."""
    content = {"content": {JSON: {"schema": schema}}}
    paths = {
        "/a": {"get": operation(parameters=[query("q", schema)])},
        "/b": {"post": operation(requestBody=content)},
        "/c": {"get": {"responses": {"200": {"description": "", **content}}}},
        "/good": {"get": operation()},
    }
    found = imported(document(paths))
    assert found.operations + found.left_out >= 4
    assert "good" in {tool.name for tool in tools_of(found)}
    assert len(json.dumps(found.tools)) < 2_000_000


def test_request_that_could_be_any_of_too_many_is_a_fault() -> None:
    rows = {f"/x{index}": {"get": operation(tags=["x"])} for index in range(2_100)}
    value = {"name": "a", "in": "path", "required": True, "schema": {"type": "string"}}
    found = imported(document({"/{a}": {"get": operation(parameters=[value])}, **rows}))
    assert [one.pointer for one in found.faults] == ["/paths/~1{a}/get"]
    assert found.operations == 2_100


def test_template_and_parameters_that_do_not_match_are_named() -> None:
    given = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in ("a", "z")]
    found = imported(
        document({"/{a}/{b}": {"get": operation(parameters=given)}, "/x/{a}": {"get": operation(parameters=given)}})
    )
    said = {(one.pointer, one.message) for one in found.faults}
    assert ("/paths/~1{a}~1{b}/get", "the path names `b`, which is no parameter of it") in said
    assert ("/paths/~1x~1{a}/get/parameters/1", "the parameter `z`, which its path does not name") in said
    (tool,) = tools_of(found)
    assert [set(spec.taken) for spec in tool.operations] == [{"a"}]


async def _chunks(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 X\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b" " * 65_536 + b"\r\n")
        await writer.drain()


async def _interim(writer: asyncio.StreamWriter) -> None:
    for _ in range(200_000):
        writer.write(b"HTTP/1.1 103 X\r\nLink: <x>\r\n\r\n")
        await writer.drain()


async def _heads(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 X\r\n")
    for index in range(200_000):
        writer.write(b"X-%d: %s\r\n" % (index, b"x" * 100))
        await writer.drain()


async def _nothing(writer: asyncio.StreamWriter) -> None:
    writer.close()


PACKED = gzip.compress(b" " * 200_000_000, 9)
ANSWERS: list[tuple[bytes | Write, set[str]]] = [
    (_chunks, {"result-too-large"}),
    (_heads, {"bad-answer"}),
    (_nothing, {"bad-answer", "no-connection"}),
    (b"", {"bad-answer", "no-connection"}),
    (b"SSH-2.0-OpenSSH\r\n", {"bad-answer"}),
    (answer(PACKED, "Content-Encoding: gzip", content_type=JSON), {"result-too-large"}),
    (answer(gzip.compress(b'{"a": 1}')[:-9], "Content-Encoding: gzip", content_type=JSON), {"bad-answer"}),
    (answer(b"no gzip", "Content-Encoding: gzip"), {"bad-answer"}),
    (answer(b"x", "Content-Encoding: br"), {"bad-answer"}),
    (answer(b'{"a": "\xff\xfe"', content_type=JSON), {"bad-answer"}),
    (b"HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\nshort", {"bad-answer", "no-connection"}),
    (b"HTTP/1.1 200 X\r\nContent-Length: -1\r\n\r\n", {"bad-answer"}),
    (b"HTTP/1.1 200 X\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", {"bad-answer"}),
    (b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", {"bad-answer"}),
    (redirect("http://169.254.169.254/", 307), {"url-private"}),
    (redirect("file:///etc/passwd", 308), {"url-scheme"}),
    (answer("later", "Retry-After: 0", status=503), {"http-status"}),
    (answer("later", "Retry-After: 0", status=429), {"http-status"}),
    (answer("who", 'WWW-Authenticate: Basic realm="x"', status=401), {"http-status"}),
]


@pytest.mark.parametrize(("page", "codes"), ANSWERS, ids=range(len(ANSWERS)))
async def test_hostile_answer_is_a_clear_error_and_the_request_is_made_once(
    tmp_path: Path, page: bytes | Write, codes: set[str]
) -> None:
    async with bench_of(tmp_path, http_tool(ITEMS)) as bench:
        bench.site.pages["/v1/items"] = page
        outcome = await bench.call(operation="create", title="tea")
        assert (outcome.status, outcome.code in codes) == (Status.FAILED, True), (outcome.code, outcome.detail)
        assert len(bench.site.requests) == 1
        assert outcome.output


async def test_endless_announcements_of_an_answer_end_with_the_time_of_the_call(tmp_path: Path) -> None:
    async with bench_of(tmp_path, http_tool(ITEMS), more="[tools.items]\ntimeout = 0.5\n") as bench:
        bench.site.pages["/v1/items"] = _interim
        assert await bench.code(operation="create", title="tea") == "timed-out"
        assert len(bench.site.requests) == 1
