"""Random OpenAPI documents, valid by construction: what a server gets is what another reading of the document says.

The reading here is by the tables of the specification (4.8.12, and RFC 6570), value by value, and decodes what came
with the standard library; nothing of what makes requests is used for it.
"""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, unquote

from hypothesis import given, settings
from hypothesis import strategies as st

from gatewright.adapters.openapi_document import read_document
from gatewright.adapters.openapi_tools import import_document
from gatewright.arguments.url import UrlTarget
from gatewright.schema.walk import as_list, as_object
from gatewright.tools.context import WebRequest
from gatewright.tools.http_request import base_address, read_requests
from tests.engine.adapters.test_http_tool import parts_of

NAMES = ["a", "b", "limit", "X-Trace", "item.id", "from"]
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="/\\"), min_size=1, max_size=8
).filter(lambda text: text not in {".", ".."})
ASCII = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=",=/\\"), min_size=1, max_size=8)
PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXTS,
    "integer": st.integers(-(10**9), 10**9),
    "boolean": st.booleans(),
}
STYLES = {
    "path": [
        ("simple", False),
        ("simple", True),
        ("label", False),
        ("label", True),
        ("matrix", False),
        ("matrix", True),
    ],
    "query": [
        ("form", True),
        ("form", False),
        ("spaceDelimited", False),
        ("pipeDelimited", False),
        ("deepObject", True),
    ],
    "header": [("simple", False), ("simple", True)],
    "cookie": [("form", True), ("form", False)],
}
KEYS = ["r", "g"]


def said(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@st.composite
def parameters(draw: st.DrawFn) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Parameters with different names, and a value for each that is given."""
    rows: list[dict[str, Any]] = []
    values: dict[str, Any] = {}
    for index, name in enumerate(draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=4))):
        place = draw(st.sampled_from(sorted(STYLES)))
        style, explode = draw(st.sampled_from(STYLES[place]))
        kind = draw(st.sampled_from(["string", "integer", "boolean", "array", "object"]))
        if style == "deepObject":
            kind = "object"
        if style in {"spaceDelimited", "pipeDelimited"} and kind not in {"array", "object"}:
            kind = "array"
        schema: dict[str, Any] = {"type": kind}
        texts = ASCII if place in {"header", "cookie"} else TEXTS
        if kind == "array":
            schema["items"] = {"type": "string"}
            value = st.lists(texts, min_size=1, max_size=3)
        elif kind == "object":
            mine = [f"{key}{index}" for key in KEYS]
            schema["properties"] = {key: {"type": "string"} for key in mine}
            value = st.fixed_dictionaries(dict.fromkeys(mine, texts))
        else:
            value = texts if kind == "string" else PLAIN[kind]
        needed = place == "path" or draw(st.booleans())
        rows.append(
            {"name": name, "in": place, "required": needed, "schema": schema, "style": style, "explode": explode}
        )
        if needed or draw(st.booleans()):
            values[name] = draw(value)
    return rows, values


def flat(value: Any) -> list[str]:
    """The texts of a value in turn, as separators stand between them."""
    if (table := as_object(value)) is not None:
        return [text for key, one in table.items() for text in (key, said(one))]
    rows = as_list(value)
    return [said(one) for one in ([value] if rows is None else rows)]


def paired(value: Any) -> list[tuple[str, str]]:
    """The keys and values of an object; of anything else nothing."""
    return [(key, said(one)) for key, one in (as_object(value) or {}).items()]


def expanded(row: dict[str, Any], value: Any) -> str:
    """A component as the tables have it, decoded: what is separated is not told from what was encoded."""
    name, style, explode = row["name"], row["style"], row["explode"]
    begin = {"simple": "", "label": ".", "matrix": ";"}[style]
    joint = {"simple": ",", "label": ".", "matrix": ";"}[style] if explode else ","
    texts = flat(value)
    if explode and isinstance(value, dict):
        texts = [f"{key}={one}" for key, one in paired(value)]
    elif style == "matrix" and explode:
        texts = [f"{name}={text}" for text in texts]
    elif style == "matrix":
        return f";{name}={','.join(texts)}"
    return begin + joint.join(texts)


def fields(row: dict[str, Any], value: Any) -> list[tuple[str, str]]:
    """The fields of a query, or the cookies, that a parameter becomes."""
    name, style, explode = row["name"], row["style"], row["explode"]
    if style == "deepObject":
        return [(f"{name}[{key}]", one) for key, one in paired(value)]
    if explode and isinstance(value, dict):
        return paired(value)
    if explode and isinstance(value, list):
        return [(name, one) for one in flat(value)]
    joint = {"spaceDelimited": " ", "pipeDelimited": "|"}.get(style, ",")
    return [(name, joint.join(flat(value)))]


def request_of(document: dict[str, Any], arguments: dict[str, Any]) -> WebRequest:
    """The request of the only operation of a document."""
    found = import_document(read_document(json.dumps(document).encode()))
    assert (found.operations, found.faults) == (1, ())
    (tool,) = found.tools
    ((name, run),) = tool["run"]["operations"].items()
    (branch,) = tool["inputSchema"]["oneOf"]
    assert branch["properties"]["operation"]["const"] == name
    assert set(branch["required"]) - {"operation"} <= arguments.keys() <= branch["properties"].keys()
    base = base_address("https://api.example.com/v1")
    return read_requests({"operations": {name: run}}).of(name)[0].fill(base, arguments, allow_private=False)


def documented(paths: dict[str, Any]) -> dict[str, Any]:
    return {
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1"},
        "servers": [{"url": "https://api.example.com/v1"}],
        "paths": paths,
    }


@settings(max_examples=150)
@given(parameters())
def test_parameters_arrive_as_the_specification_has_them(made: tuple[list[dict[str, Any]], dict[str, Any]]) -> None:
    rows, values = made
    inside = [row for row in rows if row["in"] == "path"]
    path = "/x" + "".join(f"/{{{row['name']}}}" for row in inside)
    request = request_of(documented({path: {"get": {"parameters": rows, "responses": {}}}}), values)
    assert isinstance(request.url, UrlTarget)
    where, _, query = request.url.text.removeprefix("https://api.example.com/v1").partition("?")
    wanted = ["", "x", *(expanded(row, values[row["name"]]) for row in inside)]
    assert [unquote(part) for part in where.split("/")] == wanted
    asked = [
        pair
        for row in rows
        if row["in"] == "query" and row["name"] in values
        for pair in fields(row, values[row["name"]])
    ]
    assert parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)) == asked
    headers = {name.lower(): text for name, text in request.headers}
    for row in rows:
        if row["in"] == "header":
            told = None
            if row["name"] in values:
                value = values[row["name"]]
                exploded = row["explode"] and isinstance(value, dict)
                told = ",".join(f"{key}={one}" for key, one in paired(value)) if exploded else ",".join(flat(value))
            assert headers.get(row["name"].lower()) == told
    cookies = [tuple(map(unquote, one.split("=", 1))) for one in headers.get("cookie", "").split("; ") if one]
    assert cookies == [
        pair
        for row in rows
        if row["in"] == "cookie" and row["name"] in values
        for pair in fields(row, values[row["name"]])
    ]
    assert (request.method, request.body) == ("GET", None)


VALUES: dict[str, tuple[dict[str, Any], st.SearchStrategy[Any]]] = {
    "title": ({"type": "string"}, TEXTS),
    "count": ({"type": "integer"}, PLAIN["integer"]),
    "tags": ({"type": "array", "items": {"type": "string"}}, st.lists(TEXTS, min_size=1, max_size=3)),
    "more": ({"type": "object"}, st.dictionaries(TEXTS, st.integers() | TEXTS, max_size=2)),
    "id": ({"type": "integer", "readOnly": True}, st.none()),
}
Reading = Callable[[WebRequest, dict[str, Any]], None]


def each(values: dict[str, Any]) -> list[tuple[str, Any]]:
    """The fields of a form: a list is one for each of its elements."""
    found: list[tuple[str, Any]] = []
    for name, value in values.items():
        rows = as_list(value)
        found += [(name, one) for one in ([value] if rows is None else rows)]
    return found


def _as_json(request: WebRequest, values: dict[str, Any]) -> None:
    assert json.loads(request.body or b"") == values


def _as_form(request: WebRequest, values: dict[str, Any]) -> None:
    read = parse_qsl((request.body or b"").decode(), keep_blank_values=True)
    assert [name for name, _ in read] == [name for name, _ in each(values)]
    for (_, text), (_, one) in zip(read, each(values), strict=True):
        assert (json.loads(text) if isinstance(one, dict) else text) == (one if isinstance(one, dict) else said(one))


def _as_parts(request: WebRequest, values: dict[str, Any]) -> None:
    read = parts_of(request.content_type, request.body or b"")
    wanted = [(name, "application/json" if isinstance(one, dict) else None) for name, one in each(values)]
    assert [(name, kind) for name, _, kind, _ in read] == wanted
    for (*_, content), (_, one) in zip(read, each(values), strict=True):
        assert isinstance(content, bytes)
        text = content.decode()
        assert (json.loads(text) if isinstance(one, dict) else text) == (one if isinstance(one, dict) else said(one))


BODIES: dict[str, Reading] = {
    "application/json": _as_json,
    "application/vnd.shop.v2+json": _as_json,
    "application/x-www-form-urlencoded": _as_form,
    "multipart/form-data": _as_parts,
}


@settings(max_examples=150)
@given(st.data())
def test_bodies_arrive_as_the_specification_has_them(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(BODIES)))
    needed = data.draw(st.sets(st.sampled_from(["title", "count"])))
    names = [name for name in VALUES if name != "id"]
    chosen = [name for name in names if name in needed or data.draw(st.booleans())]
    values = {name: data.draw(VALUES[name][1]) for name in chosen}
    schema = {
        "type": "object",
        "properties": {name: row[0] for name, row in VALUES.items()},
        "required": ["id", *sorted(needed)],
    }
    body = {"required": data.draw(st.booleans()), "content": {kind: {"schema": schema}}}
    path = {"/x": {"post": {"requestBody": body, "responses": {}}}}
    request = request_of(documented(path), values) if body["required"] or values else None
    if request is None:
        return
    assert request.content_type.partition(";")[0] == kind
    BODIES[kind](request, values)


async def test_bytes_of_a_request_arrive_at_a_server() -> None:
    """The same bytes, by a real connection: nothing between changes them."""
    from gatewright.adapters.web_request import CheckedNetwork
    from gatewright.adapters.web_request import request as ask
    from tests.engine.builtins.webbench import answer, started

    server, site = await started()
    site.pages["/v1/x/a%20b"] = answer("ok")
    base = base_address(f"http://127.0.0.1:{site.port}/v1")
    run = {"path": "/x/{a}", "method": "POST", "query": ["q"], "body": {"bytes": "b"}}
    made = (
        read_requests(run)
        .of("")[0]
        .fill(base, {"a": "a b", "q": ["1", "&"], "b": {"base64": "AAH/"}}, allow_private=True)
    )
    try:
        told = await ask(made.method, made.url, made.headers, CheckedNetwork(allow_private=True), body=made.body)
    finally:
        server.close()
        await server.wait_closed()
    assert (told.body, site.bodies, site.requests[0].split(" ")[1]) == (b"ok", [b"\0\1\xff"], "/v1/x/a%20b?q=1&q=%26")
