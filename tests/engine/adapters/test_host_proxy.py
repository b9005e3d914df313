"""The proxy of a confined process, by real clients and real servers on loopback."""

import asyncio
import json
import ssl
import struct
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.adapters.host_proxy import ProxyBounds
from gatewright.gate.record import Connection, Way
from tests.engine.adapters.proxybench import PUBLIC, Names, ProxyBench, Streams, proxy_of
from tests.engine.builtins.webbench import Site, answer, redirect, started
from tests.support.certificate import certificate
from tests.support.patience import patient, until

NOT_PUBLIC = (
    *("0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.1.2.3", "168.63.129.16", "169.254.169.254"),
    *("172.16.0.1", "192.168.1.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fc00::1"),
    *("ff02::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "64:ff9b::7f00:1", "2002:7f00:1::", "fd00:ec2::254"),
)
Sayer = Callable[[str, int], bytes]


def socks(host: str | bytes, port: int, *, command: int = 1) -> bytes:
    """The request of a client of SOCKS 5, by name."""
    name = host.encode() if isinstance(host, str) else host
    return b"\x05\x01\x00\x05" + bytes((command, 0, 3, len(name))) + name + struct.pack(">H", port)


def connect(host: str, port: int) -> bytes:
    """The request of a client of CONNECT."""
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode()


def absolute(host: str, port: int) -> bytes:
    """The request of a client of a proxy over HTTP."""
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return f"GET http://{place}/ HTTP/1.1\r\nHost: {place}\r\n\r\n".encode()


WAYS = (socks, connect, absolute)


@pytest.fixture
async def site() -> AsyncGenerator[Site]:
    server, made = await started()
    yield made
    server.close()
    await server.wait_closed()


@pytest.fixture
async def echo() -> AsyncGenerator[tuple[int, list[bytes]]]:
    """A server that answers at the end of what it got, and says what that was."""
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            got = await reader.read()
            heard.append(got)
            writer.write(b"got " + got)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1], heard
    server.close()
    await server.wait_closed()


@pytest.fixture
async def secure(tmp_path: Path) -> AsyncGenerator[tuple[Site, Path]]:
    cert, key = certificate(tmp_path, "good.example.com")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server, made = await started(context)
    made.pages["/"] = answer("sealed")
    yield made, cert
    server.close()
    await server.wait_closed()


# real clients


async def test_curl_reaches_granted_names_alone_by_every_way(site: Site) -> None:
    site.pages["/"] = answer("hello")
    async with proxy_of("good.example.com", "*.wide.example", names=Names({8080: site.port})) as bench:
        for more in ((), ("--proxytunnel",), ("--proxy", bench.environment["all_proxy"])):
            for host in ("good.example.com", "GOOD.example.com.", "a.wide.example"):
                assert await bench.run("curl", "-sS", *more, f"http://{host}:8080/") == (0, "hello"), (more, host)
                told = await bench.next_told()
                assert (told.allowed, told.code, told.address) == (True, "", "127.0.0.1")
                assert told.host == host.lower().rstrip(".")
                assert told.received >= 5
            status, out = await bench.run("curl", "-sS", "--fail", *more, "http://bad.example.com:8080/")
            assert status != 0, out
            told = await bench.next_told()
            assert (told.host, told.allowed, told.code) == ("bad.example.com", False, "host-not-granted")
    assert len(site.requests) == 9


async def test_curl_python_and_node_speak_tls_through_it(secure: tuple[Site, Path]) -> None:
    site, cert = secure
    python = (
        "import ssl, urllib.request as r\n"
        f"print(r.urlopen('https://good.example.com/', context=ssl.create_default_context(cafile={str(cert)!r}))"
        ".read().decode())"
    )
    node = """
const http = require("http"), https = require("https"), fs = require("fs");
const proxy = new URL(process.env.https_proxy);
http.request({host: proxy.hostname, port: proxy.port, method: "CONNECT", path: "good.example.com:443"})
  .on("connect", (_, socket) => https.get(
    {host: "good.example.com", socket, agent: false, ca: fs.readFileSync(process.env.CERT)},
    (answer) => answer.on("data", (data) => console.log(String(data))))).end();
"""
    async with proxy_of("good.example.com", names=Names({443: site.port})) as bench:
        url = "https://good.example.com/"
        assert await bench.run("curl", "-sS", "--cacert", str(cert), url) == (0, "sealed")
        over_socks = ("--proxy", bench.environment["all_proxy"])
        assert await bench.run("curl", "-sS", *over_socks, "--cacert", str(cert), url) == (0, "sealed")
        assert await bench.run_python(python) == (0, "sealed\n")
        assert await bench.run("node", "-e", node, CERT=str(cert)) == (0, "sealed\n")
        told = await bench.next_told(4)
        assert (told.host, told.port, told.way, told.code) == ("good.example.com", 443, Way.CONNECT, "")
        assert told.sent > 100
        assert told.received > 500


async def test_redirect_is_judged_again(site: Site) -> None:
    site.pages["/"] = redirect("http://bad.example.com:8080/")
    site.pages["/inward"] = redirect("http://169.254.169.254:8080/")
    async with proxy_of("good.example.com", "169.254.169.254", names=Names({8080: site.port})) as bench:
        for path, code in (("", "host-not-granted"), ("inward", "url-private")):
            status, _ = await bench.run("curl", "-sSL", "--fail", f"http://good.example.com:8080/{path}")
            assert status != 0
            assert (await bench.next_told(2)).code == code
    assert len(site.requests) == 2


async def test_python_sends_a_body_and_gets_one(site: Site) -> None:
    got = list[bytes]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        got.append(head)
        body = b""
        while not (body.endswith(b"0\r\n\r\n") if b"chunked" in head else len(body) == 300_000):
            body += await reader.read(65536)
        got.append(body)
        writer.write(
            b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nX-Hop: 1\r\nConnection: close, X-Hop\r\n\r\n" + b"y" * 400_000
        )
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    script = """
import os, sys, urllib.request as r
data, headers = iter([b"x" * 100_000] * 3), dict(eval(sys.argv[1]))
request = r.Request("http://good.example.com/in?a=%2e%2e&b#part", data=data, headers=headers)
answer = r.urlopen(request)
print(len(answer.read()), answer.headers["Set-Cookie"], answer.headers["X-Hop"])
"""
    async with proxy_of("good.example.com", names=Names({80: port})) as bench:
        for headers in ('[("Content-Length", "300000"), ("Proxy-Authorization", "Basic eA==")]', "[]"):
            status, out = await bench.run("python3", "-c", script, headers)
            assert (status, out) == (0, "400000 a=1 None\n")
            told = await bench.next_told()
            assert (told.sent, told.received, told.code) == (300_000, 400_000, "")
    server.close()
    head = got[0].decode().lower()
    assert head.startswith("post /in?a=%2e%2e&b http/1.1\r\n")
    assert "\r\nhost: good.example.com\r\n" in head
    assert "proxy-" not in head
    assert got[1] == b"x" * 300_000
    assert got[3].count(b"x") == 300_000


async def test_real_name_of_this_machine_is_reached_only_where_private_ones_are_granted(site: Site) -> None:
    site.pages["/"] = answer("home")
    url = f"http://localhost:{site.port}/"
    for allow_private, expected in ((True, (0, "home")), (False, (22, ""))):
        async with proxy_of("*", allow_private=allow_private) as bench:
            status, out = await bench.run("curl", "-s", "--fail", url)
            assert (status, out) == expected
            assert (await bench.next_told()).allowed is allow_private


# what is refused


@pytest.mark.parametrize("way", WAYS)
async def test_no_way_leads_to_an_address_that_is_not_public(site: Site, way: Sayer) -> None:
    names = Names(dict.fromkeys((80, 443), site.port))
    async with proxy_of("*", names=names) as bench:
        for number, address in enumerate(NOT_PUBLIC):
            names.known[f"n{number}.example.com"] = [(PUBLIC, address)]
            for host in (address, f"n{number}.example.com", "localhost", "printer", "db.internal"):
                for port in (80, 443):
                    said = await bench.said(way(host, port))
                    assert b" 200 " not in said, (host, said)
                    assert said[2:4] != b"\x05\x00", (host, said)
                    told = await bench.next_told()
                    assert (told.allowed, told.code) == (False, "url-private"), (host, told)
    assert names.dialled == []


async def test_every_notation_of_an_address_is_judged_as_that_address(site: Site) -> None:
    names = Names({80: site.port})
    notations = ("2130706433", "0x7f.1", "0177.0.0.1", "127.1", "１２７.0.0.1", "[::ffff:7f00:1]", "127.0.0.1.")
    async with proxy_of("*", names=names) as bench:
        for host in notations:
            for said in (f"CONNECT {host}:80 HTTP/1.1\r\nHost: x\r\n\r\n".encode(), socks(host.strip("[]"), 80)):
                await bench.said(said)
                assert not (await bench.next_told()).allowed
    assert names.dialled == []


async def test_resolver_that_answers_otherwise_a_moment_later_gains_nothing(site: Site) -> None:
    site.pages["/"] = answer("outside")
    names = Names({80: site.port})
    names.known["rebinding.example.com"] = [(PUBLIC,), ("127.0.0.1",), (PUBLIC, "10.0.0.1"), (PUBLIC,)]
    async with proxy_of("*.example.com", names=names) as bench:
        outcomes = [await bench.said(absolute("rebinding.example.com", 80)) for _ in range(4)]
        assert [said.split(b" ", 2)[1] for said in outcomes] == [b"200", b"403", b"403", b"200"]
    assert names.dialled == [(PUBLIC, 80), (PUBLIC, 80)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("pattern", "host", "port"),
    [
        ("good.example.com:8080", "good.example.com", 8081),
        ("*.example.com", "example.com.evil.org", 8080),
        ("*.example.com", "badexample.com", 8080),
        ("good.example.com", "good.example.com.evil.org", 8080),
        ("good.example.com", PUBLIC, 8080),
        (PUBLIC, "151.101.1.1", 8080),
    ],
)
async def test_what_no_pattern_covers_is_neither_resolved_nor_dialled(
    way: Sayer, pattern: str, host: str, port: int
) -> None:
    names = Names({})
    async with proxy_of(pattern, names=names) as bench:
        await bench.said(way(host, port))
        assert (await bench.next_told()).code == "host-not-granted"
    assert names.dialled == []


async def test_host_of_the_header_has_to_be_that_of_the_url(site: Site) -> None:
    site.pages["/"] = answer("hello")
    async with proxy_of("good.example.com", names=Names({80: site.port, 81: site.port})) as bench:
        for host, status in (
            ("good.example.com", b"200"),
            ("GOOD.example.com.:80", b"200"),
            ("evil.example.com", b"403"),
            ("good.example.com:81", b"403"),
            ("good.example.com\r\nHost: evil.example.com", b"400"),
            ("", b"403"),
            ("good.example.com, evil.example.com", b"403"),
        ):
            said = await bench.said(f"GET http://good.example.com/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert said.split(b" ", 2)[1] == status, (host, said)
    assert len(site.requests) == 2


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "*",
        "https://good.example.com/",
        "ftp://good.example.com/",
        "http://evil.example.com@good.example.com/",
        "http://good.example.com\\@evil.example.com/",
        "http://good.example.com%2eevil.example.com/",
        "http:good.example.com/",
        "http:///good.example.com/",
        "http://good.example.com:99999/",
        "good.example.com",
    ],
)
async def test_urls_that_readers_disagree_on_are_refused(target: str) -> None:
    names = Names({})
    async with proxy_of("*", names=names) as bench:
        said = await bench.said(f"GET {target} HTTP/1.1\r\nHost: good.example.com\r\n\r\n".encode())
        assert said.startswith(b"HTTP/1.1 400 ")
        assert not (await bench.next_told()).allowed
    assert names.dialled == []


async def test_second_request_on_a_connection_is_not_served(site: Site) -> None:
    site.pages["/"] = answer("hello")
    async with proxy_of("good.example.com", names=Names({80: site.port})) as bench:
        first = b"GET http://good.example.com/ HTTP/1.1\r\nHost: good.example.com\r\n\r\n"
        smuggling = (
            b"POST http://good.example.com/ HTTP/1.1\r\nHost: good.example.com\r\nContent-Length: 4\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://evil.example.com/ HTTP/1.1\r\n\r\n"
        )
        for content in (first + b"GET http://evil.example.com/ HTTP/1.1\r\nHost: evil.example.com\r\n\r\n", smuggling):
            said = await bench.said(content)
            assert said.count(b"HTTP/1.1 ") == 1
            await bench.next_told()
    assert not any("evil" in request for request in site.requests)
    assert not any("content-length: 4" in request.lower() for request in site.requests)


async def test_socks_offers_connections_without_login_alone(site: Site) -> None:
    async with proxy_of("good.example.com", names=Names({80: site.port})) as bench:
        assert await bench.said(b"\x05\x01\x02") == b"\x05\xff"
        for command in (2, 3, 9):
            said = await bench.said(socks("good.example.com", 80, command=command))
            assert said[:4] == b"\x05\x00\x05\x07"
        assert (await bench.said(socks("evil.example.com", 80)))[2:4] == b"\x05\x02"
        assert (await bench.said(socks("good.example.com", 81)))[2:4] == b"\x05\x04"
        assert await bench.said(b"\x04\x01\x00\x50\x01\x02\x03\x04\x00") != b"\x00\x5a"


# TLS


@cache
def hello(name: str | None) -> bytes:
    """The first bytes that a TLS client sends."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(into, out, server_hostname=name).do_handshake()
    return out.read()


def with_extension(content: bytes, kind: int, body: bytes) -> bytes:
    """A hello with one extension more, which is its last thing."""
    more = struct.pack(">HH", kind, len(body)) + body
    message = bytearray(content[5:])
    at = 4 + 2 + 32
    at += 1 + message[at]
    at += 2 + int.from_bytes(message[at : at + 2])
    at += 1 + message[at]
    message[at : at + 2] = (int.from_bytes(message[at : at + 2]) + len(more)).to_bytes(2)
    message += more
    message[1:4] = (len(message) - 4).to_bytes(3)
    return content[:3] + len(message).to_bytes(2) + bytes(message)


def in_records(content: bytes, size: int) -> bytes:
    """The same message in records of ``size`` bytes."""
    message = content[5:]
    parts = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(content[:3] + len(part).to_bytes(2) + part for part in parts)


GOOD = "good.example.com"


async def tunnel(bench: ProxyBench, way: Sayer, host: str, port: int) -> Streams:
    """A tunnel that stands."""
    reader, writer = await bench.connect()
    writer.write(way(host, port))
    await (reader.readexactly(12) if way is socks else reader.readuntil(b"\r\n\r\n"))
    return reader, writer


@pytest.mark.parametrize("way", [socks, connect])
@pytest.mark.parametrize("port", [443, 8443])
async def test_tls_goes_through_when_it_asks_for_the_host_that_was_judged(
    echo: tuple[int, list[bytes]], way: Sayer, port: int
) -> None:
    passes = [hello(GOOD), in_records(hello(GOOD), 7), in_records(hello(GOOD.upper()), 100), hello(GOOD) + b"early"]
    refused = [
        hello("evil.example.com"),
        in_records(hello("evil.example.com"), 3),
        hello(None),
        with_extension(hello(GOOD), 0xFE0D, b"\x00" * 40),
        with_extension(hello(GOOD), 0xFFCE, b"\x00" * 40),
        with_extension(hello(GOOD), 0, b"\x00\x07\x00\x00\x04evil"),
        with_extension(hello(None), 0, b"\x00\x0e\x00\x00\x04good\x00\x00\x04evil"),
        with_extension(hello(None), 0, b"\x00\x00"),
        with_extension(hello(GOOD), 21, b"\x00" * 65_000),
        b"\x15\x03\x01\x00\x02\x01\x00" + hello(GOOD),
        b"\x16\x03\x01\x00\x00" + hello(GOOD),
        b"\x16\x03\x01\x00\x04\x02\x00\x00\x00",
        b"\x16\x03\x01\xff\xff",
    ]
    if port == 443:
        refused += [b"GET / HTTP/1.1\r\n\r\n", b"\x80\x2e\x01\x03\x01", b"SSH-2.0-x\r\n"]
    else:
        passes += [b"GET / HTTP/1.1\r\n\r\n", b"SSH-2.0-x\r\n", b"\x16\x04 no TLS"]
    there, heard = echo
    async with proxy_of(GOOD, names=Names({port: there})) as bench:
        for content in passes:
            reader, writer = await tunnel(bench, way, GOOD, port)
            writer.write(content)
            writer.write_eof()
            assert await reader.read() == b"got " + content
            writer.close()
            told = await bench.next_told()
            assert (told.code, told.sent, told.received) == ("", len(content), len(content) + 4)
        heard.clear()
        for content in refused:
            reader, writer = await tunnel(bench, way, GOOD, port)
            writer.write(content)
            assert await reader.read() == b"\x15\x03\x01\x00\x02\x02\x31", content[:20]
            writer.close()
            told = await bench.next_told()
            assert (told.allowed, told.code, told.sent) == (False, "tls-name", 0)
        await until(lambda: len(heard) == len(refused), "the server")
        assert set(heard) == {b""}


async def test_tls_to_an_address_asks_for_no_other_name(echo: tuple[int, list[bytes]]) -> None:
    async with proxy_of("*", names=Names({443: echo[0]})) as bench:
        for name, is_passed in ((None, True), (GOOD, False)):
            reader, writer = await tunnel(bench, connect, PUBLIC, 443)
            writer.write(hello(name))
            writer.write_eof()
            assert (await reader.read()).startswith(b"got ") is is_passed
            writer.close()


def name_seen_by_openssl(content: bytes) -> tuple[bool, str | None]:
    """Tell whether OpenSSL came as far as asking for a server's name, and that name."""
    seen: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sni_callback = lambda _object, name, _context: seen.append(name)
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    into.write(content)
    with suppress(ssl.SSLError, UnicodeDecodeError):
        context.wrap_bio(into, out, server_side=True).do_handshake()
    return bool(seen), seen[0] if seen else None


@settings(max_examples=200)
@given(st.data())
async def test_no_hello_is_read_here_otherwise_than_by_openssl(data: st.DataObject) -> None:
    from gatewright.adapters.web_request import HelloRefused, read_client_hello

    content = bytearray(hello(data.draw(st.sampled_from([GOOD, "evil.example.com", None, "a.b"]))))
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(5, len(content) - 1))
        match data.draw(st.sampled_from(["set", "cut", "add"])):
            case "set":
                content[at] = data.draw(st.integers(0, 255))
            case "cut":
                del content[at : at + data.draw(st.integers(1, 4))]
            case _:
                content[at:at] = data.draw(st.binary(min_size=1, max_size=4))
    content[3:5] = (len(content) - 5).to_bytes(2)
    whole = in_records(bytes(content), data.draw(st.sampled_from([len(content), 5, 50])))
    reader = asyncio.StreamReader()
    reader.feed_data(whole)
    reader.feed_eof()
    try:
        found = await read_client_hello(b"", reader)
    except (HelloRefused, asyncio.IncompleteReadError):
        return
    asked, name = name_seen_by_openssl(found.content)
    assert not asked or name == found.name


# bounds


@settings(max_examples=5, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=400),
            st.binary(max_size=60).map(lambda more: b"\x05\x01\x00" + more),
            st.binary(max_size=60).map(lambda more: b"\x05\x01\x00\x05\x01\x00\x03" + more),
            st.tuples(st.sampled_from([b"GET ", b"CONNECT ", b"POST "]), st.binary(max_size=80)).map(
                lambda parts: parts[0] + parts[1] + b" HTTP/1.1\r\nHost: x\r\n\r\n"
            ),
        ),
        min_size=30,
        max_size=30,
    )
)
async def test_whatever_a_program_sends_ends_its_connection_alone(contents: list[bytes]) -> None:
    async with proxy_of("good.example.com", names=Names({})) as bench:
        for content in contents:
            await bench.said(content)
        said = await bench.said(absolute("evil.example.com", 80))
        assert said.startswith(b"HTTP/1.1 403 ")
    assert not any(one.allowed for one in bench.told if one.host != "good.example.com")


async def test_endless_heads_end_at_their_bound() -> None:
    async with proxy_of("*", names=Names({})) as bench:
        for begin in (
            b"GET http://a.example.com/",
            b"GET http://a.example.com/ HTTP/1.1\r\nHost: a.example.com\r\nX: ",
        ):
            async with patient():
                said = await bench.said(begin + b"x" * 200_000, ends=False)
            assert not said or said.startswith(b"HTTP/1.1 400 ")  # a reset takes an answer along that was not read yet
            assert (await bench.next_told()).code == "bad-request"


@pytest.mark.parametrize(
    "begin",
    [b"G", b"GET http://good.example.com/ HTTP/1.1\r\n", b"\x05", b"\x05\x02\x00", b"\x05\x01\x00\x05\x01\x00\x03\xff"],
)
async def test_program_that_never_comes_to_the_point_is_left(begin: bytes) -> None:
    bounds = ProxyBounds(head_s=0.05)
    async with proxy_of("*", names=Names({}), bounds=bounds) as bench, patient():
        await bench.said(begin, ends=False)
        assert (await bench.next_told()).code == "too-slow"


@pytest.mark.parametrize("content", [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01"])
async def test_tunnel_in_which_nothing_moves_is_closed(echo: tuple[int, list[bytes]], content: bytes) -> None:
    bounds = ProxyBounds(head_s=0.05, idle_s=0.05)
    for port in (443, 9000):
        async with proxy_of(GOOD, names=Names({port: echo[0]}), bounds=bounds) as bench, patient():
            reader, writer = await tunnel(bench, connect, GOOD, port)
            writer.write(content)
            assert await reader.read() == b""
            writer.close()
            told = await bench.next_told()
            assert (told.code, told.allowed) == ("too-slow", True)


async def test_program_that_reads_nothing_holds_no_more_than_a_little() -> None:
    sent = 0

    async def pour(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        with suppress(ConnectionError):
            while True:
                writer.write(b"x" * 65536)
                await writer.drain()
                sent += 65536

    server = await asyncio.start_server(pour, "127.0.0.1", 0)
    names = Names({9000: server.sockets[0].getsockname()[1]})
    async with proxy_of(GOOD, names=names, bounds=ProxyBounds(idle_s=0.2)) as bench, patient():
        _, writer = await tunnel(bench, connect, GOOD, 9000)
        told = await bench.next_told()
        assert told.code == "too-slow"
        assert sent < 32 * 1024 * 1024
        writer.close()
    server.close()


@pytest.mark.parametrize("way", [socks, connect])
async def test_half_closed_connection_still_gets_its_answer(echo: tuple[int, list[bytes]], way: Sayer) -> None:
    async with proxy_of(GOOD, names=Names({9000: echo[0]})) as bench:
        reader, writer = await tunnel(bench, way, GOOD, 9000)
        writer.write(b"x" * 500_000)
        writer.write_eof()
        assert await reader.read() == b"got " + b"x" * 500_000
        writer.close()
        told = await bench.next_told()
        assert (told.code, told.sent, told.received) == ("", 500_000, 500_004)


async def test_server_that_speaks_first_is_heard() -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 ready\r\n")
        writer.write(await reader.readline())
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    names = Names({25: server.sockets[0].getsockname()[1]})
    async with proxy_of(GOOD, names=names) as bench:
        reader, writer = await tunnel(bench, socks, GOOD, 25)
        assert await reader.readline() == b"220 ready\r\n"
        writer.write(b"HELO\r\n")
        assert await reader.read() == b"HELO\r\n"
        writer.close()
    server.close()


@pytest.mark.parametrize("says_farewell", [True, False])
async def test_end_of_a_program_that_has_its_answer_is_no_break(*, says_farewell: bool) -> None:
    """TLS says farewell to a server that is gone already, and nobody may be there to hear that it is."""

    async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        await writer.drain()
        writer.transport.abort() if says_farewell else writer.close()

    server = await asyncio.start_server(answer_once, "127.0.0.1", 0)
    names = Names({9000: server.sockets[0].getsockname()[1]})
    async with proxy_of(GOOD, names=names) as bench:
        reader, writer = await tunnel(bench, connect, GOOD, 9000)
        writer.write(b"HELO\r\n")
        assert await reader.readline() == b"HELO\r\n"
        if says_farewell:
            assert await reader.read() == b""
            for _ in range(3):  # the first is answered with a reset, which the next one meets
                writer.write(b"farewell")
                await asyncio.sleep(0.05)
        writer.transport.abort()
        assert (await bench.next_told()).code == ""
    server.close()


async def test_too_many_connections_at_once_are_closed_and_told(echo: tuple[int, list[bytes]]) -> None:
    bounds = ProxyBounds(connections=3)
    async with proxy_of(GOOD, names=Names({9000: echo[0]}), bounds=bounds) as bench:
        held = [await tunnel(bench, connect, GOOD, 9000) for _ in range(3)]
        assert await bench.said(connect(GOOD, 9000), ends=False) == b""
        assert (await bench.next_told()).code == "too-many"
        held[0][1].write_eof()
        assert await held[0][0].read() == b"got "
        await bench.next_told()
        held.append(await tunnel(bench, connect, GOOD, 9000))
        for _, writer in held:
            writer.close()


async def test_names_looked_up_at_once_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    go, asked = threading.Event(), list[str]()

    def slow(host: str, *_: object, **__: object) -> Sequence[tuple[object, ...]]:
        asked.append(host)
        go.wait()
        return []

    monkeypatch.setattr("socket.getaddrinfo", slow)
    async with proxy_of("*", bounds=ProxyBounds(look_ups=2)) as bench:
        waiting = [asyncio.create_task(bench.said(connect(f"n{at}.example.com", 80))) for at in range(5)]
        await until(lambda: len(bench.told) == 3, "those that are too many")
        assert {one.code for one in bench.told} == {"unknown-host"}
        assert len(asked) == 2
        go.set()
        said = await asyncio.gather(*waiting)
        assert {one[:12] for one in said} == {b"HTTP/1.1 502"}


async def test_nothing_is_connected_while_connections_cannot_be_recorded(site: Site) -> None:
    told, works = list[Connection](), False

    def tell(connection: Connection) -> None:
        told.append(connection)
        if not works:
            raise OSError("no disk")

    names = Names({80: site.port})
    async with proxy_of(GOOD, names=names, told=tell) as bench:
        codes = [(await bench.said(absolute(GOOD, 80)))[9:12] for _ in range(3)]
        await until(lambda: len(told) == 3, "what came of them")
        works = True
        codes += [(await bench.said(absolute(GOOD, 80)))[9:12] for _ in range(2)]
        assert codes == [b"404", b"502", b"502", b"502", b"404"]
        assert len(names.dialled) == 2
        await until(lambda: len(told) == 5, "what came of all")
        assert [one.code for one in told] == ["", "no-log", "no-log", "no-log", ""]


async def test_closing_ends_what_is_under_way_and_tells_it(echo: tuple[int, list[bytes]]) -> None:
    async with proxy_of(GOOD, names=Names({9000: echo[0]})) as bench:
        reader, writer = await tunnel(bench, connect, GOOD, 9000)
        await bench.proxy.close()
        assert await reader.read() == b""
        writer.close()
        assert [one.code for one in bench.told] == ["ended"]


async def test_json_of_a_connection_has_no_secret_of_a_request(site: Site) -> None:
    async with proxy_of(GOOD, names=Names({80: site.port})) as bench:
        request = (
            f"GET http://{GOOD}/?token=hunter2hunter2 HTTP/1.1\r\nHost: {GOOD}\r\nAuthorization: Bearer hunter2\r\n\r\n"
        )
        await bench.said(request.encode())
        told = await bench.next_told()
        assert "hunter2" not in json.dumps([str(getattr(told, name)) for name in Connection.__match_args__])
