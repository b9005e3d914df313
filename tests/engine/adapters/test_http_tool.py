"""Tools whose calls are HTTP requests, called through a gate whose web is one server on loopback."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.parser import BytesParser
from email.policy import HTTP
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.adapters.web import HttpAdapter
from gatewright.arguments.url import UrlTarget, parse_url
from gatewright.base.errors import RegistrationError, ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import Gate, Outcome, Status
from gatewright.policy.document import Catalog, CatalogType, Web
from gatewright.policy.verdict import Verdict
from gatewright.tools import ToolDefinition, read_definitions
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.http_request import base_address, read_requests
from gatewright.tools.server_tool import HttpTool
from tests.engine.builtins.webbench import Names, Site, answer, gate_over_site, redirect

JSON = "application/json"
ITEMS: dict[str, Any] = {
    "operations": {
        "list": {"method": "GET", "path": "/items", "query": ["page"]},
        "get": {"path": "/items/{item}"},
        "create": {"method": "POST", "path": "/items", "body": {"json": ["title", "tags"]}},
        "delete": {"method": "DELETE", "path": "/items/{item}"},
    }
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["operation"],
    "properties": {
        "operation": {"type": "string", "enum": list(ITEMS["operations"])},
        "page": {"type": "integer"},
        "item": {"type": "string"},
        "title": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "additionalProperties": False,
}
READ = '{ NetRead = { allowlist = ["api.example.com"] } }'
WRITE = '{ NetWrite = { allowlist = ["api.example.com"] } }'


def http_tool(
    run: object,
    schema: dict[str, Any] | None = None,
    *,
    url: str = "http://api.example.com/v1",
    headers_env: dict[str, str] | None = None,
    query_env: dict[str, str] | None = None,
    extras: dict[str, Any] | None = None,
) -> HttpTool:
    row = {"name": "items", "inputSchema": schema or SCHEMA, "run": run, "_meta": {"gatewright": extras or {}}}
    definitions, problems = read_definitions([row])
    assert not problems
    catalog = Catalog("shop", CatalogType.HTTP, url=url, headers_env=headers_env or {}, query_env=query_env or {})
    return made_tool(definitions[0], catalog)


def made_tool(definition: ToolDefinition, catalog: Catalog) -> HttpTool:
    """The tool as a catalog makes it, without what asks for trust and acceptance."""
    adapter = HttpAdapter()

    async def run(arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> JsonValue | bytes:
        return await adapter.run(catalog, definition, arguments, context)

    return HttpTool(definition, url=catalog.url or "", origin="shop", trusted=True, runner=run)


@dataclass
class Bench:
    gate: Gate
    site: Site
    names: Names

    async def call(self, **arguments: Any) -> Outcome:
        return await self.gate.call("a", "items", arguments)

    async def value(self, **arguments: Any) -> str:
        """What the model reads of a call that has to succeed."""
        outcome = await self.call(**arguments)
        assert outcome.status is Status.ALLOWED, (outcome.output, outcome.detail)
        return outcome.output or ""

    async def code(self, **arguments: Any) -> str:
        """The code of a call that may not succeed."""
        outcome = await self.call(**arguments)
        assert outcome.status in {Status.DENIED, Status.FAILED, Status.TIMED_OUT}, outcome.output
        return outcome.code


@asynccontextmanager
async def bench_of(
    folder: Path,
    tool: HttpTool,
    *,
    granted: str = f"{READ}, {WRITE}",
    more: str = "",
    allow_private: bool = False,
    variables: dict[str, str] | None = None,
) -> AsyncGenerator[Bench]:
    text = f'gatewright = 1\n[agents.a]\ntools = ["items"]\ncapabilities = [{granted}]\n{more}'
    text += '[agents.a.approvals]\nprivileged = "allow"\n' if "approvals" not in more else ""
    web = Web(allow_private=allow_private)
    async with gate_over_site(folder, text, (tool,), web=web, variables=variables) as made:
        yield Bench(made.gate, made.site, made.names)


async def test_operation_becomes_the_request_that_the_definition_describes(tmp_path: Path) -> None:
    async with bench_of(tmp_path, http_tool(ITEMS)) as bench:
        bench.site.pages["/v1/items"] = answer('[{"id": 1}]', content_type=JSON)
        bench.site.pages["/v1/items/7%2C5%20%25%3F"] = answer("seven")
        assert json.loads(await bench.value(operation="list", page=2)) == [{"id": 1}]
        assert bench.site.requests[-1].startswith("GET /v1/items?page=2 HTTP")
        assert await bench.value(operation="get", item="7,5 %?") == "seven"
        await bench.value(operation="create", title="tea", tags=["hot", "ü"])
        assert bench.site.requests[-1].startswith("POST /v1/items HTTP")
        assert bench.site.headers()["content-type"] == JSON
        assert json.loads(bench.site.bodies[-1]) == {"title": "tea", "tags": ["hot", "ü"]}
        assert {host for host, _ in bench.names.dialled} == {"93.184.216.34"}


@pytest.mark.parametrize("item", ["", ".", "..", "a/b", "/", "..\\x", "\\", "a\nb", "\x00", "../../admin"])
async def test_value_fills_one_part_of_the_path_and_no_more(tmp_path: Path, item: str) -> None:
    async with bench_of(tmp_path, http_tool(ITEMS)) as bench:
        decision = bench.gate.decide("a", "items", {"operation": "delete", "item": item})
        assert (decision.verdict, decision.code) == (Verdict.DENY, "arguments-mismatch")
        assert "/item" in (decision.model_message or "")
        assert await bench.code(operation="delete", item=item) == "arguments-mismatch"
        assert bench.site.requests == []


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.sampled_from(["/{a}", "/x/{a}/y", "/{a}{b}", "/x/{a}.{b}/", "/{a}/{b}"]),
    _VALUES,
    _VALUES,
    st.sampled_from(["repeat", "comma", "space", "pipe", "brackets", "json"]),
)
def test_no_argument_leads_out_of_its_place(path: str, a: Any, b: Any, style: str) -> None:
    run = {"path": path, "query": {"q": {"argument": "b", "style": style}}}
    (request,), base = read_requests(run).of(""), base_address("https://api.example.com:8443/base/")
    if any("\ud800" <= char <= "\udfff" for char in json.dumps([a, b], ensure_ascii=False)):
        return
    try:
        url = request.fill(base, {"a": a, "b": b}, allow_private=False).url
    except ToolFailure:
        return
    again = parse_url(url.text)
    assert isinstance(again, UrlTarget)
    assert (again.text, again.host, again.port) == (url.text, "api.example.com", 8443)
    place, _, query = url.text.removeprefix("https://api.example.com:8443").partition("?")
    wanted = path.replace("{a}", "1").replace("{b}", "1").split("/")
    parts = place.removeprefix("/base").split("/")
    assert place.startswith("/base/")
    assert len(parts) == len(wanted)
    assert not {"", ".", ".."} & {unquote(part) for part, want in zip(parts, wanted, strict=True) if want}
    assert all(name.partition("[")[0] == "q" for name, _ in parse_qsl(query, keep_blank_values=True))


async def test_private_place_is_reached_only_where_the_policy_opens_it(tmp_path: Path) -> None:
    tool = http_tool(ITEMS, url="http://127.0.0.1:8080")
    granted = '{ NetRead = { allowlist = ["*"] } }'
    async with bench_of(tmp_path / "closed", tool, granted=granted) as bench:
        assert bench.gate.decide("a", "items", {"operation": "list"}).code == "url-private"
        assert await bench.code(operation="list") == "url-private"
    async with bench_of(tmp_path / "open", tool, granted=granted, allow_private=True) as bench:
        bench.site.pages["/items"] = answer("here")
        assert await bench.value(operation="list") == "here"
    async with bench_of(tmp_path / "named", http_tool(ITEMS), granted=granted) as bench:
        bench.site.pages["/v1/items"] = redirect("http://private.example.com/")
        bench.names.known["private.example.com"] = [("10.0.0.1",)]
        assert await bench.code(operation="list") == "url-private"
        bench.names.known["api.example.com"] = [("10.0.0.1",)]
        assert await bench.code(operation="list") == "url-private"
        assert [address for address, _ in bench.names.dialled] == ["93.184.216.34"]


async def test_capability_has_to_cover_the_server_for_what_the_operation_does(tmp_path: Path) -> None:
    elsewhere = '{ NetRead = { allowlist = ["*.example.org"] } }'
    for granted, allowed in ((READ, {"list", "get"}), (WRITE, {"create", "delete"}), (elsewhere, set[str]())):
        async with bench_of(tmp_path / str(len(granted)), http_tool(ITEMS), granted=granted) as bench:
            bench.site.pages |= {"/v1/items": answer("ok"), "/v1/items/1": answer("ok")}
            for operation in ITEMS["operations"]:
                arguments = {"operation": operation} | ({"item": "1"} if operation in {"get", "delete"} else {})
                outcome = await bench.call(**arguments)
                assert (outcome.status is Status.ALLOWED) == (operation in allowed), (operation, outcome.code)


async def test_redirect_is_judged_like_the_call(tmp_path: Path) -> None:
    async with bench_of(
        tmp_path,
        http_tool(ITEMS, headers_env={"Authorization": "KEY"}),
        granted=READ,
        variables={"KEY": "Bearer sesame-open-up"},
    ) as bench:
        site = bench.site
        site.pages["/v1/items"] = redirect("/v1/moved", 301)
        site.pages["/v1/moved"] = answer("moved")
        assert await bench.value(operation="list") == "moved"
        assert site.headers()["authorization"] == "Bearer sesame-open-up"
        for location, code in (
            ("http://other.example.org/", "host-not-granted"),
            ("http://169.254.169.254/latest", "url-private"),
            ("file:///etc/passwd", "url-scheme"),
            ("http://[", "bad-answer"),
            ("/v1/items", "too-many-redirects"),
        ):
            site.pages["/v1/items"] = redirect(location)
            assert await bench.code(operation="list") == code, location
        assert {host for host, _ in bench.names.dialled} == {"93.184.216.34"}


async def test_key_goes_to_its_own_server_alone_and_stands_in_no_answer(tmp_path: Path) -> None:
    granted = '{ NetRead = { allowlist = ["*"] } }'
    key = "Bearer sesame-open-up"
    tool = http_tool(ITEMS, headers_env={"Authorization": "KEY"})
    async with bench_of(tmp_path / "set", tool, granted=granted, variables={"KEY": key}) as bench:
        bench.site.pages["/v1/items"] = redirect("http://other.example.org/x")
        bench.site.pages["/x"] = answer(json.dumps({"headers": {"Authorization": key}}), content_type=JSON)
        said = json.loads(await bench.value(operation="list"))
        assert "authorization" in bench.site.headers(0)
        assert "authorization" not in bench.site.headers(1)
        assert "sesame" not in json.dumps(said)
        for status in (200, 403):
            for kind in ("text/plain", JSON, "image/png", ""):
                bench.site.pages["/v1/items/1"] = answer(json.dumps([key]), status=status, content_type=kind)
                outcome = await bench.call(operation="get", item="1")
                told = (outcome.output or "", outcome.detail, str(outcome.data))
                assert not any("sesame" in text for text in told), (status, kind)
    async with bench_of(tmp_path / "unset", tool, granted=granted) as bench:
        outcome = await bench.call(operation="list")
        assert (outcome.code, "KEY" in outcome.detail, "KEY" in (outcome.output or "")) == ("not-set-up", True, False)


@pytest.mark.parametrize(("status", "second"), [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")])
async def test_redirected_writing_is_made_again_only_as_the_protocol_says(
    tmp_path: Path, status: int, second: str
) -> None:
    async with bench_of(tmp_path, http_tool(ITEMS)) as bench:
        bench.site.pages |= {"/v1/items": redirect("/v1/new", status), "/v1/new": answer("made")}
        assert await bench.value(operation="create", title="tea") == "made"
        assert [one.split(" ")[0] for one in bench.site.requests] == ["POST", second]
        assert bool(bench.site.bodies[1]) == (second == "POST")


async def test_cookies_are_neither_told_nor_sent_back(tmp_path: Path) -> None:
    async with bench_of(tmp_path, http_tool(ITEMS)) as bench:
        bench.site.pages["/v1/items"] = answer("", "Set-Cookie: id=secret-cookie; Path=/", status=204)
        assert json.loads(await bench.value(operation="list")) == {"status": 204}
        await bench.value(operation="list")
        assert "cookie" not in bench.site.headers()


async def test_answers_are_json_text_or_bytes(tmp_path: Path) -> None:
    async with bench_of(tmp_path, http_tool(ITEMS)) as bench:
        page = bench.site.pages
        for kind, body, told in (
            ("application/problem+json", '{"b": 1, "a": [null, "\x7f"]}', '{"a":[null,"\x7f"],"b":1}'),
            ("text/csv; charset=latin-1", "ü".encode("latin-1"), "ü"),
            ("text/html", "<h1>Hi</h1>", "<h1>Hi</h1>"),
            ("text/plain", "a\x1bb", "a\x1bb"),
        ):
            page["/v1/items"] = answer(body, content_type=kind)
            assert await bench.value(operation="list") == told, kind
        page["/v1/items"] = answer(b"\x89PNG\r\n\x1a\n\x00\x01", content_type="image/png")
        outcome = await bench.call(operation="list")
        assert (outcome.status, outcome.data) == (Status.ALLOWED, b"\x89PNG\r\n\x1a\n\x00\x01")
        assert "binary result of 10 bytes" in (outcome.output or "")
        for body in ("{", "[" * 100_000, "NaN", '{"a": 1e999}', "9" * 10_000):
            page["/v1/items"] = answer(body, content_type=JSON)
            assert await bench.code(operation="list") in {"bad-answer", "bad-result"}, body[:20]
        page["/v1/items"] = answer("no such\x1b item", status=404)
        outcome = await bench.call(operation="list")
        assert (outcome.code, "status 404: no such" in (outcome.output or "")) == ("http-status", True)


async def test_endless_and_packed_answers_end_within_bounds(tmp_path: Path) -> None:
    async with bench_of(tmp_path, http_tool(ITEMS)) as bench:
        sent = 0

        async def endless(writer: asyncio.StreamWriter) -> None:
            nonlocal sent
            writer.write(b"HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: 1073741824\r\n\r\n")
            while True:
                writer.write(b" " * 65_536)
                await writer.drain()
                sent += 65_536

        bench.site.pages["/v1/items"] = endless
        assert await bench.code(operation="list") == "result-too-large"
        assert sent < 64 * 1024 * 1024


async def test_slow_answer_ends_with_the_time_of_the_call(tmp_path: Path) -> None:
    more = "[tools.items]\ntimeout = 0.2\n"
    async with bench_of(tmp_path, http_tool(ITEMS), more=more) as bench:

        async def slow(writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 X\r\nContent-Length: 1000\r\n\r\n")
            while True:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.01)

        bench.site.pages["/v1/items"] = slow
        assert await bench.code(operation="list") == "timed-out"


async def test_request_is_bounded_in_bytes(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"all": {"type": "array"}}, "required": ["all"]}
    tool = http_tool({"method": "POST", "path": "/in", "body": {"json": "all"}}, schema)
    async with bench_of(tmp_path, tool) as bench:
        bench.site.pages["/v1/in"] = answer("taken")
        assert await bench.value(all=["x"]) == "taken"
        assert bench.site.bodies[-1] == b'["x"]'
        tool.resource_bounds = type(tool.resource_bounds)(network_bytes=1_000, max_requests=1)
        assert await bench.code(all=["x" * 1_000]) == "too-large"
        bench.site.pages["/v1/in"] = answer("y" * 2_000)
        assert await bench.code(all=["x"]) == "result-too-large"
        bench.site.pages["/v1/in"] = redirect("/v1/in")
        count = len(bench.site.requests)
        assert await bench.code(all=["x"]) == "too-many-redirects"
        assert len(bench.site.requests) == count + 1


FILE = {"base64": "iVBORw==", "name": 'a".png'}
SENT: list[tuple[dict[str, Any], dict[str, Any], str, dict[str, str], bytes]] = [
    ({"path": "/{a}/x"}, {"a": ["b c", "d,e"]}, "/b%20c,d%2Ce/x", {}, b""),
    ({"path": "/{a}"}, {"a": {"r": 1, "g": True}}, "/r,1,g,true", {}, b""),
    ({"path": "/{a*}"}, {"a": {"r": 1, "g": "é"}}, "/r=1,g=%C3%A9", {}, b""),
    ({"path": "/x{.a}"}, {"a": ["b", "c"]}, "/x.b,c", {}, b""),
    ({"path": "/x{.a*}"}, {"a": ["b", "c"]}, "/x.b.c", {}, b""),
    ({"path": "/x{;a}"}, {"a": ["b", "c"]}, "/x;a=b,c", {}, b""),
    ({"path": "/x{;a*}"}, {"a": ["b", "c"]}, "/x;a=b;a=c", {}, b""),
    ({"path": "/x{;a*}/y"}, {"a": {"r": 1, "g": 2}}, "/x;r=1;g=2/y", {}, b""),
    ({"path": "/x/{+a}/y"}, {"a": "docs/a b/%2F.md"}, "/x/docs/a%20b/%252F.md/y", {}, b""),
    ({"path": "/", "query": {"q": {"argument": "a", "style": "comma"}}}, {"a": {"r": 1}}, "/?q=r,1", {}, b""),
    ({"path": "/", "query": {"q": {"argument": "a", "style": "space"}}}, {"a": ["b", "c|"]}, "/?q=b%20c%7C", {}, b""),
    ({"path": "/", "query": {"q": {"argument": "a", "style": "pipe"}}}, {"a": ["b", "c"]}, "/?q=b%7Cc", {}, b""),
    ({"path": "/", "query": {"q": {"argument": "a", "style": "spread"}}}, {"a": {"r": [1, 2]}}, "/?r=1&r=2", {}, b""),
    ({"path": "/", "query": {"q": {"argument": "a", "style": "json"}}}, {"a": "b"}, "/?q=%22b%22", {}, b""),
    (
        {"path": "/", "query": {"q": {"argument": "a", "style": "brackets"}}},
        {"a": {"r": {"g": 1}, "b": None}},
        "/?q[r][g]=1".replace("[", "%5B").replace("]", "%5D"),
        {},
        b"",
    ),
    (
        {"path": "/", "query": {"q": {"argument": "a", "reserved": True}}},
        {"a": "b/c:d&e=#+"},
        "/?q=b/c:d%26e%3D%23%2B",
        {},
        b"",
    ),
    (
        {"path": "/", "headers": {"X-A": {"argument": "a"}, "X-B": "b"}},
        {"a": [1, 2]},
        "/",
        {"x-a": "1,2", "x-b": "b"},
        b"",
    ),
    ({"path": "/", "headers": {"X-A": {"argument": "a"}}}, {}, "/", {}, b""),
    (
        {"path": "/", "cookies": ["a", "b"]},
        {"a": "x; y=z", "b": [1, 2]},
        "/",
        {"cookie": "a=x%3B%20y%3Dz; b=1; b=2"},
        b"",
    ),
    (
        {"path": "/", "method": "POST", "body": {"text": "a"}},
        {"a": "é"},
        "/",
        {"content-type": "text/plain; charset=utf-8"},
        "é".encode(),
    ),
    (
        {"path": "/", "method": "PUT", "body": {"bytes": "a", "type": "image/png"}},
        {"a": FILE},
        "/",
        {"content-type": "image/png"},
        b"\x89PNG",
    ),
    (
        {"path": "/", "method": "PUT", "body": {"bytes": "a"}},
        {"a": {"text": "x"}},
        "/",
        {"content-type": "application/octet-stream"},
        b"x",
    ),
    (
        {"path": "/", "method": "POST", "body": {"json": "a", "type": "application/vnd.x+json"}},
        {"a": [1]},
        "/",
        {"content-type": "application/vnd.x+json"},
        b"[1]",
    ),
    ({"path": "/", "method": "POST", "body": {"json": ["a"], "optional": True}}, {}, "/", {}, b""),
    ({"path": "/", "method": "POST", "body": {"json": ["a"]}}, {}, "/", {"content-type": JSON}, b"{}"),
    (
        {"path": "/", "method": "POST", "body": {"form": "a"}},
        {"a": {"b": "c d", "e": [1, 2]}},
        "/",
        {"content-type": "application/x-www-form-urlencoded"},
        b"b=c+d&e=1&e=2",
    ),
]
"""What a definition says, arguments, and what the server gets: path and query, some of the headers, and the body."""


@pytest.mark.parametrize("row", SENT, ids=range(len(SENT)))
async def test_server_gets_what_the_definition_says(tmp_path: Path, row: Any) -> None:
    run, arguments, target, headers, body = row
    async with bench_of(tmp_path, http_tool(run, {"type": "object"}, url="http://api.example.com")) as bench:
        bench.site.pages[target.partition("?")[0]] = answer("ok")
        assert await bench.value(**arguments) == "ok"
        assert bench.site.requests[-1].split(" ")[1] == target
        sent = bench.site.headers()
        assert {
            name: value for name, value in sent.items() if name in {"cookie", "content-type"} | headers.keys()
        } == headers
        assert bench.site.bodies[-1] == body
        assert sent["accept"].startswith("application/json")


def parts_of(content_type: str, body: bytes) -> list[tuple[str, str | None, str | None, object]]:
    """The parts of a form as the standard library reads them: name, name of the file, type and content."""
    read = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body)
    return [
        (
            str(part.get_param("name", header="content-disposition")),
            part.get_filename(),
            part["content-type"],
            part.get_payload(decode=True),
        )
        for part in read.iter_parts()
    ]


async def test_form_with_files_is_read_by_others_as_it_was_meant(tmp_path: Path) -> None:
    fields = {
        "photo": {"argument": "photo", "file": True, "type": "image/png"},
        "more": {"argument": "more", "file": True},
        "tags": "tags",
        "about": "about",
        "who": {"argument": "who", "style": "json"},
    }
    run = {"path": "/", "method": "POST", "body": {"multipart": fields}}
    given = {
        "photo": FILE,
        "more": [{"text": "one"}, {"text": "--\r\n", "name": "2.txt"}],
        "tags": ["a", "é"],
        "about": {"b": 1},
    }
    async with bench_of(tmp_path, http_tool(run, {"type": "object"}, url="http://api.example.com")) as bench:
        bench.site.pages["/"] = answer("ok")
        assert await bench.value(**given, who="x") == "ok"
        parts = parts_of(bench.site.headers()["content-type"], bench.site.bodies[-1])
    assert parts == [
        ("photo", "a%22.png", "image/png", b"\x89PNG"),
        ("more", "more", "application/octet-stream", b"one"),
        ("more", "2.txt", "application/octet-stream", b"--\r\n"),
        ("tags", None, None, b"a"),
        ("tags", None, None, "é".encode()),
        ("about", None, JSON, b'{"b": 1}'),
        ("who", None, JSON, b'"x"'),
    ]


@pytest.mark.parametrize(
    ("run", "arguments"),
    [
        ({"path": "/{a*}"}, {"a": {"b": ""}}),
        ({"path": "/{a}"}, {"a": [["b"]]}),
        ({"path": "/{a}"}, {"a": {"b/": 1}}),
        ({"path": "/{a}"}, {"a": None}),
        ({"path": "/{.a}"}, {"a": "."}),
        ({"path": "/{+a}"}, {"a": "x/../y"}),
        ({"path": "/{+a}"}, {"a": "/x"}),
        ({"path": "/{+a}"}, {"a": "x//y"}),
        ({"path": "/{+a}"}, {"a": "x/"}),
        ({"path": "/{+a}"}, {"a": "x/."}),
        ({"path": "/{+a}"}, {"a": "x\\..\\y"}),
        ({"path": "/{+a}"}, {"a": ["x"]}),
        ({"path": "/", "headers": {"X": {"argument": "a"}}}, {"a": "x\r\nHost: evil"}),
        ({"path": "/", "headers": {"X": {"argument": "a"}}}, {"a": "é"}),
        ({"path": "/", "headers": {"X": {"argument": "a"}}}, {"a": {"b": ["x"]}}),
        ({"path": "/", "query": {"q": {"argument": "a", "style": "spread"}, "b": "b"}}, {"a": {"b": 1}}),
        ({"path": "/", "query": {"q": {"argument": "a", "style": "spread"}, "b": "b"}}, {"a": {"b[x]": 1}}),
        ({"path": "/", "method": "PUT", "body": {"bytes": "a"}}, {"a": {"base64": "%"}}),
        ({"path": "/", "method": "PUT", "body": {"bytes": "a"}}, {"a": {"base64": "", "text": ""}}),
        ({"path": "/", "method": "PUT", "body": {"bytes": "a"}}, {"a": {"path": "/etc/passwd"}}),
        ({"path": "/", "method": "PUT", "body": {"text": "a"}}, {"a": 3}),
        ({"path": "/", "method": "PUT", "body": {"form": "a"}}, {"a": [3]}),
        ({"path": "/", "method": "PUT", "body": {"multipart": {"a": {"file": True}}}}, {"a": [3]}),
    ],
)
async def test_value_that_cannot_stand_in_its_place_is_denied(tmp_path: Path, run: Any, arguments: Any) -> None:
    async with bench_of(tmp_path, http_tool(run, {"type": "object"})) as bench:
        assert await bench.code(**arguments) == "arguments-mismatch"
        assert bench.site.requests == []


GISTS: dict[str, Any] = {
    "operations": {
        "get": {"path": "/gists/{id}"},
        "list_public": {"path": "/gists/public"},
        "history": {"path": "/gists/{id}/history"},
        "file": {"path": "/gists/{id}/files/{+name}", "except": ["/gists/{id}/files/{name}/raw"]},
        "drop": {"method": "DELETE", "path": "/gists/{id}"},
    }
}


async def test_no_value_makes_a_request_of_another_operation(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": {
            "operation": {"enum": list(GISTS["operations"])},
            "id": {"type": "string"},
            "name": {"type": "string"},
        },
        "required": ["operation"],
    }
    rule = '[[agents.a.tool_rules]]\ntool_name = "items"\nrule_type = { AllowedOperations = ["get", "file", "drop"] }\n'
    async with bench_of(tmp_path, http_tool(GISTS, schema, url="http://api.example.com"), more=rule) as bench:
        bench.site.pages |= {path: answer("ok") for path in ("/gists/7", "/gists/7/files/a/b", "/gists/public")}
        for allowed in (
            {"operation": "get", "id": "7"},
            {"operation": "file", "id": "7", "name": "a/b"},
            {"operation": "drop", "id": "public"},
        ):
            assert await bench.value(**allowed) == "ok"
        for told in (
            {"operation": "get", "id": "public"},
            {"operation": "get", "id": "Public"},
            {"operation": "get", "id": "7/history"},
            {"operation": "file", "id": "7", "name": "a/raw"},
        ):
            outcome = await bench.call(**told)
            assert (outcome.status, outcome.code) == (Status.DENIED, "arguments-mismatch"), told
            assert "list_public" not in (outcome.output or "")
        assert len(bench.site.requests) == 3


async def test_key_in_the_query_goes_to_its_own_server_alone(tmp_path: Path) -> None:
    tool = http_tool(
        {"path": "/a", "query": {"any": {"argument": "any", "style": "spread"}}},
        {"type": "object"},
        query_env={"key": "KEY"},
    )
    granted = '{ NetRead = { allowlist = ["*"] } }'
    async with bench_of(tmp_path, tool, granted=granted, variables={"KEY": "open sesame&now"}) as bench:
        page = bench.site.pages
        page["/v1/a"] = answer("you sent open sesame&now, open%20sesame%26now")
        told = await bench.value(any={"key": "mine", "b": "1"})
        assert "sesame" not in told
        assert bench.site.requests[-1].split(" ")[1] == "/v1/a?b=1&key=open%20sesame%26now"
        page["/v1/a"] = redirect("/v1/b?key=open%20sesame%26now&c=2#d")
        page["/v1/b"] = redirect("http://other.example.org/c?key=open+sesame%26now")
        page["/c"] = answer("there")
        assert await bench.value() == "there"
        assert [one.split(" ")[1] for one in bench.site.requests[-3:]] == [
            "/v1/a?key=open%20sesame%26now",
            "/v1/b?c=2&key=open%20sesame%26now",
            "/c",
        ]
        page["/v1/a"] = redirect("http://other.example.org/open%20sesame%26now")
        outcome = await bench.call()
        assert (outcome.code, "sesame" in f"{outcome.output}{outcome.detail}") == ("bad-answer", False)


async def test_definition_says_its_bounds_and_results(tmp_path: Path) -> None:
    said = {
        "bounds": {"max_requests": 1, "network_bytes": 3_000, "timeout_s": 2},
        "operation_outputs": {"list": {"type": "array"}},
    }
    tool = http_tool(ITEMS, extras=said)
    assert (tool.resource_bounds.max_requests, tool.resource_bounds.network_bytes) == (1, 3_000)
    async with bench_of(tmp_path / "a", tool, more='[tools.items]\noutput = "strict"\n') as bench:
        page = bench.site.pages
        page |= {"/v1/items": answer("[1]", content_type=JSON), "/v1/items/1": redirect("/v1/items")}
        assert await bench.value(operation="list") == "[1]"
        assert await bench.code(operation="get", item="1") == "too-many-redirects"
        page["/v1/items"] = answer('{"a": 1}', content_type=JSON)
        assert await bench.code(operation="list") == "output-mismatch"
        page["/v1/items"] = answer("x" * 5_000)
        assert await bench.code(operation="list") == "result-too-large"
    binary = http_tool({"path": "/x"}, {"type": "object"}, extras={"result_type": "binary"})
    async with bench_of(tmp_path / "b", binary) as bench:
        bench.site.pages["/v1/x"] = answer('{"a": 1}', content_type=JSON)
        outcome = await bench.call()
        assert (outcome.status, outcome.raw) == (Status.ALLOWED, b'{"a": 1}')
    wrong: tuple[dict[str, Any], ...] = (
        {"determinism": "Pure"},
        {"determinism": "Deterministic"},
        {"result_type": "stream"},
        {"bounds": {"cpu_s": 1}},
        {"operation_outputs": {"drop_all": {}}},
    )
    for extras in wrong:
        with pytest.raises(RegistrationError):
            http_tool(ITEMS, extras=extras)


async def test_lines_of_json_are_a_list(tmp_path: Path) -> None:
    async with bench_of(tmp_path, http_tool(ITEMS)) as bench:
        for kind in ("application/x-ndjson", "application/jsonl; charset=utf-8"):
            bench.site.pages["/v1/items"] = answer('{"a": 1}\n\n[2]\r\n', content_type=kind)
            assert await bench.value(operation="list") == '[{"a":1},[2]]'
        bench.site.pages["/v1/items"] = answer('{"a": 1}\n{', content_type="application/x-ndjson")
        assert await bench.code(operation="list") == "bad-answer"


@pytest.mark.parametrize(
    "run",
    [
        None,
        {},
        {"path": "items"},
        {"path": "/a/../b"},
        {"path": "/a?b=c"},
        {"path": "/a b"},
        {"path": "/a%2e"},
        {"path": "//[::1]/"},
        {"path": 3},
        {"path": "/", "method": "CONNECT"},
        {"path": "/", "method": ["GET"]},
        {"path": "/", "url": "https://evil.example"},
        {"path": "/", "headers": {"Host": "evil.example"}},
        {"path": "/", "headers": {"X": "a\r\nHost: evil.example"}},
        {"path": "/", "headers": {"a b": "c"}},
        {"path": "/", "query": "q"},
        {"path": "/", "query": {"q": {"style": "deepObject"}}},
        {"path": "/", "body": {"json": ["a"]}},
        {"path": "/", "method": "POST", "body": {"xml": ["a"]}},
        {"path": "/", "method": "POST", "body": {"text": ["a"]}},
        {"path": "/", "method": "POST", "body": {"bytes": {"a": "b"}}},
        {"path": "/", "method": "POST", "body": {"text": "a", "json": "a"}},
        {"path": "/", "method": "POST", "body": {"text": "a", "type": "text/*"}},
        {"path": "/", "method": "POST", "body": {"text": "a", "type": "a/b\r\nX: y"}},
        {"path": "/", "method": "POST", "body": {"multipart": ["a"], "type": "a/b"}},
        {"path": "/", "method": "POST", "body": {"multipart": {"a": {"file": 1}}}},
        {"path": "/", "body": {"json": "a"}},
        {"path": "/{+a}/{+b}"},
        {"path": "/x{+a}"},
        {"path": "/{?a}"},
        {"path": "/{;}"},
        {"path": "/", "headers": {"Host": {"argument": "a"}}},
        {"path": "/", "headers": {"Authorization": {"argument": "a"}}},
        {"path": "/", "headers": {"Cookie": {"argument": "a"}}},
        {"path": "/", "headers": {"X": {"argument": ["a"]}}},
        {"path": "/", "cookies": 3},
        {"path": "/", "except": "/a"},
        {"path": "/", "except": [3]},
        {"operations": {}},
        {"operations": {"list": {}}},
        {"operations": {"list": {"path": "/"}}, "path": "/"},
    ],
)
def test_definition_whose_request_cannot_be_made_is_refused(run: object) -> None:
    with pytest.raises(RegistrationError, match="run"):
        http_tool(run)


@pytest.mark.parametrize(
    "url", ["", "api.example.com", "ftp://api.example.com", "https://u:p@x.com", "https://x.com/?a"]
)
def test_address_of_a_catalog_that_cannot_be_used_is_refused(url: str) -> None:
    with pytest.raises(RegistrationError, match="url"):
        http_tool(ITEMS, url=url)
