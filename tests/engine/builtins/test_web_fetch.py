"""Fetching through the whole gate: which addresses are reached, along redirects too, and what becomes of a body."""

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncGenerator, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from gatewright.gate import Status
from gatewright.policy.document import Web
from tests.engine.builtins.webbench import OTHER, PUBLIC, WebBench, answer, bench_of, redirect
from tests.support.patience import patient

HTML = "text/html"
PRIVATE = (
    "127.0.0.1",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "168.63.129.16",
    "0.0.0.0",
    "100.64.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "198.18.0.1",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:93.184.216.34",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "fe80::1",
    "fe80::1%2",
    "fd00::1",
    "ff02::1",
)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[WebBench]:
    async with bench_of(tmp_path) as made:
        yield made


async def test_page_is_read_as_markdown_with_its_title_and_whole_links(bench: WebBench) -> None:
    html = "<title> On\n tea </title><h1>Tea</h1><p>a <b>good</b> <a href='../leaf'>leaf</a></p><script>x()</script>"
    bench.site.pages["/a/b"] = answer(html, content_type=HTML)
    data = await bench.data("web_fetch", url="http://Example.com:80/a/./b#top")
    content = "# Tea\n\na **good** [leaf](http://example.com/leaf)\n"
    assert data.pop("content").strip() == content.strip()
    assert data == {
        "url": "http://example.com/a/b#top",
        "status": 200,
        "content_type": "text/html",
        "kind": "html",
        "bytes": len(html),
        "title": "On tea",
        "characters": data["characters"],
    }
    assert bench.names.dialled == [(PUBLIC, 80)]
    assert bench.site.requests[0].startswith("GET /a/b HTTP/1.1\r\nHost: example.com\r\n")


@pytest.mark.parametrize(
    ("base", "link", "whole"),
    [
        ("<base href='//other.example.org/z/'>", "y", "http://other.example.org/z/y"),
        ("<base href='http://[::1'>", "y", "http://example.com/a/y"),
        ("", "http://[::1", "http://[::1"),
        ("", "?q", "http://example.com/a/b?q"),
    ],
)
async def test_link_that_is_no_address_spoils_no_page(bench: WebBench, base: str, link: str, whole: str) -> None:
    bench.site.pages["/a/b"] = answer(f"{base}<a href='{link}'>l</a> <a href='/'>top</a>", content_type=HTML)
    content = (await bench.data("web_fetch", url="http://example.com/a/b"))["content"]
    assert f"[l]({whole})" in content
    assert "[top](http://" in content


async def test_long_text_is_given_in_parts_that_join(bench: WebBench) -> None:
    text = "".join(f"line {number}\n" for number in range(3_000))
    bench.site.pages["/"] = answer(text)
    got, start = "", 0
    while True:
        data = await bench.data("web_fetch", url="http://example.com/", start=start)
        got += data["content"]
        assert len(data["content"]) <= 12_000
        if "next_start" not in data:
            break
        start = data["next_start"]
    assert got == text


@pytest.mark.parametrize("address", PRIVATE)
async def test_name_that_stands_for_a_private_address_is_not_reached(bench: WebBench, address: str) -> None:
    bench.names.known["rebound.example.com"] = [(PUBLIC, address)]
    outcome = await bench.call("web_fetch", url="http://rebound.example.com/")
    assert (outcome.status, outcome.code) == (Status.FAILED, "url-private")
    assert address in outcome.detail
    assert address not in (outcome.output or "")
    assert bench.names.dialled == []


async def test_connection_goes_to_the_address_that_was_checked_and_no_name_is_asked_twice(bench: WebBench) -> None:
    bench.names.known["flips.example.com"] = [(PUBLIC,), ("127.0.0.1",)]
    bench.site.pages["/"] = answer("public")
    assert (await bench.data("web_fetch", url="http://flips.example.com/"))["content"] == "public"
    assert (bench.names.asked, bench.names.dialled) == (["flips.example.com"], [(PUBLIC, 80)])
    assert await bench.code("web_fetch", url="http://flips.example.com/") == "url-private"
    assert bench.names.dialled == [(PUBLIC, 80)]


async def test_next_address_is_tried_where_one_takes_no_connection(bench: WebBench) -> None:
    bench.names.known["two.example.com"] = [(OTHER, PUBLIC)]
    bench.names.dead.add(OTHER)
    bench.site.pages["/"] = answer("here")
    assert (await bench.data("web_fetch", url="http://two.example.com/"))["content"] == "here"
    assert bench.names.dialled == [(OTHER, 80), (PUBLIC, 80)]
    bench.names.dead.add(PUBLIC)
    assert await bench.code("web_fetch", url="http://two.example.com/") == "no-connection"


async def test_redirects_are_followed_to_where_the_same_call_would_be_allowed(bench: WebBench) -> None:
    bench.site.pages |= {"/": redirect("/next?a=1"), "/next": redirect("https:other.example.com", 308)}
    bench.site.pages["/next"] = redirect("//other.example.com:8080/./end", 307)
    bench.site.pages["/end"] = answer("there")
    data = await bench.data("web_fetch", url="http://example.com/")
    assert (data["url"], data["content"]) == ("http://other.example.com:8080/end", "there")
    assert bench.names.dialled == [(PUBLIC, 80), (PUBLIC, 80), (PUBLIC, 8080)]
    assert bench.ends() == [{"led_to": ["example.com:80", "other.example.com:8080"], "code": ""}]


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1/",
        "http://localhost/",
        "http://0x7f.1/",
        "http://2130706433/",
        "http://[::ffff:10.0.0.1]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://user@example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "http://example.com\\@127.0.0.1/",
        "http://[::1",
        "//inside.example.com/",
    ],
)
async def test_redirect_into_what_may_not_be_reached_ends_the_call(bench: WebBench, location: str) -> None:
    bench.names.known["inside.example.com"] = [("10.1.2.3",)]
    bench.site.pages["/"] = redirect(location)
    outcome = await bench.call("web_fetch", url="http://example.com/")
    assert outcome.status is Status.FAILED, outcome.output
    assert outcome.code in {
        "url-private",
        "url-user",
        "url-scheme",
        "url-form",
        "url-backslash",
        "url-host",
        "bad-answer",
    }
    assert len(bench.site.requests) == 1
    assert bench.names.dialled == [(PUBLIC, 80)]


async def test_redirect_is_held_to_grants_constraints_and_policy_rules_like_a_call(tmp_path: Path) -> None:
    agent = 'capabilities = [{ NetRead = { allowlist = ["*.example.com"] } }]\n'
    more = (
        '[[agents.a.tool_rules]]\ntool_name = "web_fetch"\n'
        'rule_type = { ArgumentConstraints = { url = { type = "string", pattern = "^http://" } } }\n'
        '[[agents.a.tool_rules]]\ntool_name = "web_fetch"\nrule_type = { MaxCalls = 6 }\n'
        '[[policy.rules]]\nname = "no admin"\neffect = "deny"\n'
        'when = { properties = { url = { pattern = "/admin" } } }\n'
        '[[policy.rules]]\nname = "careful"\neffect = "ask"\n'
        'when = { properties = { url = { pattern = "/ask" } } }\n'
    )
    async with bench_of(tmp_path, agent=agent, more=more) as bench:
        wanted = {
            "http://example.org/": "host-not-granted",
            "https://www.example.com/": "constraint",
            "/a/%2e%2e/admin": "policy-deny",
            "/ask": "policy-ask",
        }
        for location, code in wanted.items():
            bench.site.pages["/"] = redirect(location)
            outcome = await bench.call("web_fetch", url="http://example.com/")
            assert outcome.status is Status.FAILED
            assert code in outcome.code, (location, outcome.code)
            assert "needs a call of its own" in (outcome.output or "")
        assert len(bench.site.requests) == len(wanted)
        bench.site.pages |= {"/": redirect("http://www.example.com/x"), "/x": answer("fine")}
        assert (await bench.data("web_fetch", url="http://example.com/"))["content"] == "fine"
        bench.site.pages["/x"] = redirect("/y")
        bench.site.pages["/y"] = answer("counted once, with the last call that is left")
        assert (await bench.data("web_fetch", url="http://example.com/"))["url"].endswith("/y")
        assert await bench.code("web_fetch", url="http://example.com/") == "max-calls"


async def test_endless_redirects_are_given_up(bench: WebBench) -> None:
    bench.site.pages["/"] = redirect("/")
    assert await bench.code("web_fetch", url="http://example.com/") == "too-many-redirects"
    assert len(bench.site.requests) == 6


async def test_headers_of_the_caller_go_to_the_first_origin_alone(bench: WebBench) -> None:
    bench.site.pages |= {"/": redirect("/same"), "/same": redirect("http://example.com:81/"), "/end": answer("x")}
    headers = ["Authorization: Bearer abc", "X-Token:  t ", "Accept: application/json", "User-Agent: mine"]
    bench.site.pages["/same"] = redirect("http://example.com:81/back")
    bench.site.pages["/back"] = redirect("http://example.com/end")
    await bench.data("http_fetch", url="http://example.com/", headers=headers)
    sent = [bench.site.headers(index) for index in range(4)]
    assert [one.get("authorization") for one in sent] == ["Bearer abc", "Bearer abc", None, None]
    assert (sent[0]["x-token"], sent[0]["accept"], sent[0]["user-agent"]) == ("t", "application/json", "mine")
    assert sent[2].keys() == {"host", "accept-encoding", "connection", "user-agent", "accept"}
    assert sent[2]["host"] == "example.com:81"


@pytest.mark.parametrize(
    "header",
    [
        "Host: internal",
        "content-length: 5",
        "Transfer-Encoding: chunked",
        "Proxy-Authorization: x",
        "X-Forwarded-For: 127.0.0.1",
        "Connection: upgrade",
        "A: b\r\nHost: c",
        "A: b\nc",
        "A b: c",
        "nothing",
        ": x",
        "A: é",
    ],
)
async def test_header_that_is_not_the_caller_s_to_set_is_denied(bench: WebBench, header: str) -> None:
    outcome = await bench.call("http_fetch", url="http://example.com/", headers=["Accept: */*", header])
    assert (outcome.status, outcome.code) == (Status.DENIED, "arguments-mismatch")
    assert "/headers/1" in (outcome.output or "")
    assert bench.names.asked == []


async def test_request_answers_with_any_status_its_headers_and_no_cookies(bench: WebBench) -> None:
    headers = ("Set-Cookie: id=1", "X-A: 1", "X-A: 2")
    bench.site.pages["/"] = answer('{"error": 1}', *headers, status=404, content_type="application/json")
    for _ in range(2):
        data = await bench.data("http_fetch", url="http://example.com/")
        assert (data["status"], data["kind"], data["content"]) == (404, "json", '{"error": 1}')
        assert (data["headers"]["x-a"], "set-cookie" in data["headers"]) == ("1, 2", False)
    assert "cookie" not in bench.site.headers()
    html = "<p>as it is</p>"
    bench.site.pages["/"] = answer(html, content_type=HTML)
    assert (await bench.data("http_fetch", url="http://example.com/"))["content"] == html
    bench.site.pages["/"] = answer("gone <b>away</b>", status=410, content_type=HTML)
    outcome = await bench.call("web_fetch", url="http://example.com/")
    assert (outcome.code, "410: gone **away**" in (outcome.output or "")) == ("http-status", True)


async def test_nothing_of_the_environment_is_used(bench: WebBench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    (bench.folder / ".netrc").write_text("machine example.com login me password secret\n")
    monkeypatch.setenv("NETRC", str(bench.folder / ".netrc"))
    monkeypatch.setenv("HOME", str(bench.folder))
    bench.site.pages["/"] = answer("direct")
    assert (await bench.data("web_fetch", url="http://example.com/"))["content"] == "direct"
    assert bench.site.headers().keys() == {"host", "accept-encoding", "connection", "user-agent", "accept"}


RUSSIAN = "Привет, как дела? Всё хорошо, спасибо."


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        (RUSSIAN.encode("koi8-r"), "text/plain; charset=KOI8-R", RUSSIAN),
        (RUSSIAN.encode("cp1251"), "text/plain", RUSSIAN),
        (RUSSIAN.encode("cp1251"), "text/plain; charset=no-such-thing", RUSSIAN),
        (RUSSIAN.encode("utf-16"), "text/plain; charset=latin-1", RUSSIAN),
        (b"\xef\xbb\xbf" + RUSSIAN.encode(), "text/plain; charset=latin-1", RUSSIAN),
        (RUSSIAN.encode(), "text/plain; charset=punycode", RUSSIAN),
        (b"caf\xe9 \xff", 'text/plain; charset="utf-8"', "caf\ufffd \ufffd"),
        (b"<meta charset=shift_jis><p>\x82\xa0", HTML, "あ"),
        (b"<meta charset=zip><p>caf\xe9", HTML, "café"),
        (b"<meta charset=shift_jis><p>\xd0\xb4", f"{HTML}; charset=utf-8", "д"),
        ("<p>д".encode("utf-16"), HTML, "д"),
        (b"<!DOCTYPE html><p>x", "", "x"),
        (b"plain", "application/octet-stream", "plain"),
        (b"plain", "application/x-yaml", "plain"),
        (b"", "", ""),
    ],
)
async def test_text_is_read_in_its_encoding(bench: WebBench, body: bytes, content_type: str, text: str) -> None:
    bench.site.pages["/"] = answer(body, content_type=content_type)
    assert (await bench.data("web_fetch", url="http://example.com/"))["content"].strip() == text


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 100, "image/png"),
        (b"PK\x03\x04\0\0" * 50, ""),
        (b"\x7fELF\0\0" * 50, "application/octet-stream"),
        (b"a\0b" * 50, "text/plain"),
        (b"%PDF-1.7", "application/pdf"),
    ],
)
async def test_of_what_is_no_text_only_kind_and_size_are_told(bench: WebBench, body: bytes, content_type: str) -> None:
    bench.site.pages["/"] = answer(body, content_type=content_type)
    for tool in ("web_fetch", "http_fetch"):
        data = await bench.data(tool, url="http://example.com/")
        assert (data["kind"], data["bytes"], "content" in data) == ("binary", len(body), False)


@pytest.mark.parametrize("packed", [gzip.compress(b"unpacked", mtime=0), zlib.compress(b"unpacked")])
async def test_packed_body_is_unpacked(bench: WebBench, packed: bytes) -> None:
    name = "gzip" if packed[:1] == b"\x1f" else "deflate"
    bench.site.pages["/"] = answer(packed, f"Content-Encoding: {name}")
    assert (await bench.data("web_fetch", url="http://example.com/"))["content"] == "unpacked"
    bench.site.pages["/"] = answer(b"no such thing", f"Content-Encoding: {name}")
    assert await bench.code("web_fetch", url="http://example.com/") == "bad-answer"
    bench.site.pages["/"] = answer(packed, "Content-Encoding: br")
    assert await bench.code("web_fetch", url="http://example.com/") == "bad-answer"


async def test_bomb_is_unpacked_no_further_than_the_limit(bench: WebBench) -> None:
    import tracemalloc

    bomb = gzip.compress(b"x" * 200_000_000, 9)
    bench.site.pages["/"] = answer(bomb, "Content-Encoding: gzip")
    tracemalloc.start()
    data = await bench.data("http_fetch", url="http://example.com/")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (data["bytes"], data["is_cut"]) == (5 * 1024 * 1024, True)
    assert peak < 60_000_000


async def test_endless_body_is_cut_and_its_connection_closed(bench: WebBench) -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 X\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            writer.write(b"more " * 10_000)
            await writer.drain()

    bench.site.pages["/"] = endless
    data = await bench.data("web_fetch", url="http://example.com/", max_chars=10)
    assert (data["content"], data["is_cut"], data["bytes"]) == ("more more ", True, 5 * 1024 * 1024)
    async with patient():
        await bench.site.is_idle.wait()


async def dripping(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 X\r\nContent-Type: text/plain\r\n\r\n")
    while True:
        writer.write(b".")
        await writer.drain()
        await asyncio.sleep(0.01)


async def test_slow_body_ends_with_the_time_of_the_call_and_leaves_no_connection(tmp_path: Path) -> None:
    async with bench_of(tmp_path, more='[tools.web_fetch]\ntimeout = "0.3s"\n') as bench:
        bench.site.pages["/"] = dripping
        outcome = await bench.call("web_fetch", url="http://example.com/")
        assert outcome.status is Status.TIMED_OUT
        async with patient():
            await bench.site.is_idle.wait()


@pytest.mark.parametrize("at", ["head", "body"])
async def test_cancelled_call_leaves_no_connection(bench: WebBench, at: str) -> None:
    async def silent(writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    bench.site.pages["/"] = dripping if at == "body" else silent
    call = asyncio.ensure_future(bench.call("web_fetch", url="http://example.com/"))
    await bench.site.is_asked.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    async with patient():
        await bench.site.is_idle.wait()
    assert len(asyncio.all_tasks()) <= 2 + bench.site.open


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"SSH-2.0-OpenSSH_9\r\n", "bad-answer"),
        (b"", "bad-answer"),
        (b"HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\nshort", "bad-answer"),
        (b"HTTP/1.1 200 X\r\nA: " + b"x" * 300_000, "bad-answer"),
        (b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "bad-answer"),
    ],
)
async def test_server_that_breaks_off_or_speaks_otherwise_is_a_plain_failure(
    bench: WebBench, sent: bytes, code: str
) -> None:
    bench.site.pages["/"] = sent
    assert await bench.code("web_fetch", url="http://example.com/") == code


@pytest.mark.parametrize(
    "tags", ["<div>", "<b><i>", "<table><tr><td>", "<ul><li>", "<blockquote>", "<svg>", "<a href=x>"]
)
async def test_deep_nesting_is_read_like_any_page(bench: WebBench, tags: str) -> None:
    bench.site.pages["/"] = answer(tags * (1_000_000 // len(tags)) + "deep", content_type=HTML)
    data = await bench.data("web_fetch", url="http://example.com/", max_chars=100)
    assert data["kind"] == "html"


async def test_without_a_grant_the_tools_are_not_shown_and_a_limited_one_holds(tmp_path: Path) -> None:
    async with bench_of(tmp_path, agent="") as bench:
        assert bench.gate.view("a").tools("mcp") == []
    limited = 'capabilities = [{ NetRead = { allowlist = ["example.com:8080"] } }]\n'
    async with bench_of(tmp_path, agent=limited) as bench:
        assert await bench.code("web_fetch", url="http://example.com/") == "host-not-granted"
        bench.site.pages["/"] = answer("x")
        await bench.data("web_fetch", url="http://example.com:8080/")


async def test_private_places_are_reached_where_the_policy_says_so_and_metadata_never(tmp_path: Path) -> None:
    async with bench_of(tmp_path, web=Web(allow_private=True)) as bench:
        bench.site.pages["/"] = answer("inside")
        bench.names.known |= {"inside.example.com": [("10.1.2.3",)], "meta.example.com": [("169.254.169.254",)]}
        for url in ("http://localhost/", "http://127.0.0.1:8080/", "http://[::1]/", "http://inside.example.com/"):
            bench.names.known["localhost"] = [("127.0.0.1",)]
            assert (await bench.data("web_fetch", url=url))["content"] == "inside"
        assert bench.site.headers(2)["host"] == "[::1]"
        for url in ("http://169.254.169.254/", "http://[::ffff:127.0.0.1]/", "http://meta.example.com/"):
            assert await bench.code("web_fetch", url=url) == "url-private"


async def test_no_payload_of_the_corpus_reaches_a_private_address(bench: WebBench, corpora: Path) -> None:
    """Whatever a name resolves to: here every one stands for a private address as well as a public one."""
    rows: list[dict[str, Any]] = json.loads((corpora / "attack_ssrf_urls.json").read_text("utf-8"))
    bench.site.pages["/"] = answer("public")

    async def mixed(host: str, port: int) -> Sequence[str]:
        return [PUBLIC, PRIVATE[len(host) % len(PRIVATE)]]

    bench.names.resolve = mixed
    for row in rows:
        outcome = await bench.call("web_fetch", url=row["payload"])
        assert outcome.status is not Status.ALLOWED or ip_address(bench.names.dialled[-1][0]).is_global, row
    assert [place for place in bench.names.dialled if not ip_address(place[0]).is_global] == []


async def test_every_benign_url_of_the_corpus_is_reached(bench: WebBench, corpora: Path) -> None:
    rows: list[dict[str, Any]] = json.loads((corpora / "benign_urls.json").read_text("utf-8"))
    refused: list[tuple[str, str]] = []
    bench.names.is_down = True
    for row in rows:
        reached = len(bench.names.dialled)
        outcome = await bench.call("http_fetch", url=row["payload"])
        if len(bench.names.dialled) == reached:
            refused.append((row["payload"], outcome.detail or outcome.output or ""))
    assert refused == []
