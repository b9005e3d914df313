"""``gatewright serve --transport http`` with real clients: tokens, sessions, what a hostile client may try."""

from __future__ import annotations

import asyncio
import io
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager, redirect_stdout, suppress
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Implementation

from gatewright.adapters.mcp_http import HEAD_S, MOST_REQUESTS, HttpGateway, serve_http
from gatewright.adapters.mcp_http import listen as listening_at
from gatewright.cli.main import main
from tests.engine.gateway.conftest import INITIALIZE, Gate, Listen, Place
from tests.support.clock import LoopClock
from tests.support.patience import patient, pause_until

READ = {"op": "read", "path": "a.md"}
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
HELLO = json.dumps(INITIALIZE).encode()
Mode = Literal["auto", "legacy"]


@asynccontextmanager
async def connected(gate: Gate, token: str, mode: Mode = "auto", **more: Any) -> AsyncGenerator[Client]:
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=None) as http:
        transport = streamable_http_client(gate.url, http_client=http)
        info = Implementation(name="tester", version="1.2")
        async with Client(transport, mode=mode, client_info=info, **more) as client:
            yield client


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_token_says_who_a_client_speaks_for(
    place: Place, listen: Listen, mode: Mode, capsys: pytest.CaptureFixture[str]
) -> None:
    gate, tokens = listen(), {agent: place.token(agent) for agent in ("reader", "writer")}
    for agent, token in tokens.items():
        async with connected(gate, token, mode) as client:
            listed = [
                one.model_dump(mode="json", by_alias=True, exclude_none=True)
                for one in (await client.list_tools()).tools
            ]
        main(["preview", str(place.policy), "--agent", agent, "--format", "mcp", "--json"])
        assert listed == json.loads(capsys.readouterr().out)

    assert gate.end() == 0


async def test_calls_are_made_for_the_user_of_the_token(place: Place, listen: Listen) -> None:
    gate = listen()
    async with connected(gate, place.token("reader", user_id="bob")) as client:
        assert not (await client.call_tool("file", READ)).is_error
    gate.end()

    (row,) = place.rows("ToolInvoked")
    assert (row["agent"], row["body"]["client"]) == ("reader", "tester 1.2")


def test_a_request_without_a_good_token_or_from_elsewhere_is_refused(place: Place, listen: Listen) -> None:
    gate, token = listen(), place.token("reader")
    bearer = {**JSON, "authorization": f"Bearer {token}"}
    with httpx2.Client() as http:

        def status(headers: dict[str, str], url: str = gate.url, content: bytes = HELLO) -> int:
            return http.post(url, headers=headers, content=content).status_code

        assert status(JSON) == 401
        assert status({**JSON, "authorization": "Bearer nonsense"}) == 401
        assert status({**JSON, "authorization": f"Basic {token}"}) == 401
        assert status({**JSON, "authorization": "Bearer"}) == 401
        assert status(JSON, f"{gate.url}?token={token}") == 401
        assert status({**bearer, "host": "evil.example"}) == 421
        for more in ("x", "80.evil.example", "80@evil.example", "80/", "1,evil.example", " 80", ""):
            assert status({**bearer, "host": f"localhost:{more}"}) == 421, more
            assert status({**bearer, "origin": f"http://localhost:{more}"}) in {403, 421}, more
        assert status({**bearer, "origin": "null"}) == 403
        assert status({**bearer, "origin": "http://evil.example"}) == 403
        assert status({**bearer, "origin": "http://localhost:3000"}) == 200
        good, bad = ("origin", "http://localhost:3000"), ("origin", "http://evil.example")
        for origins in ([good, bad], [bad, good], [good, good], [good, good, bad]):
            assert http.post(gate.url, headers=[*bearer.items(), *origins], content=HELLO).status_code == 421, origins
        assert status(bearer, gate.url.replace("/mcp", "/agents/writer")) == 404
        assert status(bearer, content=b"x" * 6_000_000) == 413
        assert status(bearer, content=b"{ no json") == 400
        assert status(bearer) == 200

    assert gate.end() == 0
    assert token not in "".join(gate.lines)


def test_a_session_of_another_token_is_not_there(place: Place, listen: Listen) -> None:
    gate, tokens = listen(), [place.token("reader"), place.token("reader"), place.token("writer")]
    headers = [{**JSON, "authorization": f"Bearer {token}"} for token in tokens]
    with httpx2.Client() as http:
        session = http.post(gate.url, headers=headers[0], json=INITIALIZE).headers["mcp-session-id"]
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        statuses = [http.post(gate.url, headers={**one, "mcp-session-id": session}, json=listing) for one in headers]

    assert [answer.status_code for answer in statuses[1:]] == [404, 404]
    assert statuses[0].status_code == 200


async def test_limits_belong_to_the_token_over_reconnects_and_restarts(place: Place, listen: Listen) -> None:
    gate, token, other = listen(), place.token("reader"), place.token("reader")

    async def is_denied(one: str) -> bool:
        async with connected(gate, one) as client:
            return (await client.call_tool("file", READ)).is_error

    assert [await is_denied(token) for _ in range(2)] == [False, False]
    gate.end()
    gate = listen()
    assert [await is_denied(token) for _ in range(2)] == [False, True]
    assert not await is_denied(other)


async def test_a_revoked_token_cuts_off_what_is_connected_by_it(place: Place, listen: Listen) -> None:
    gate, token, other = listen(), place.token("reader"), place.token("writer")
    tokens = json.loads(_printed(["token", "list", str(place.policy), "--json"]))
    headers = {**JSON, "authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(timeout=None) as http, connected(gate, other) as unaffected:
        session = (await http.post(gate.url, headers=headers, json=INITIALIZE)).headers["mcp-session-id"]
        async with http.stream("GET", gate.url, headers={**headers, "mcp-session-id": session}) as stream:
            assert stream.status_code == 200
            _printed(["token", "revoke", str(place.policy), tokens[0]["id"]])
            async with patient():
                async for _ in stream.aiter_raw():
                    pass
        again = await http.post(gate.url, headers=headers, json=INITIALIZE)
        assert again.status_code == 401
        assert not (await unaffected.call_tool("file", READ)).is_error


def test_tokens_are_shown_once_and_kept_hashed(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    made = json.loads(_printed(["token", "add", str(place.policy), "--agent", "reader", "--user", "bob", "--json"]))
    listed = _printed(["token", "list", str(place.policy), "--json"])
    shown = _printed(["token", "list", str(place.policy)])

    (token,) = json.loads(listed)
    assert token == {name: value for name, value in made.items() if name != "token"}
    assert (token["agent"], token["user"], token["elicit"]) == ("reader", "bob", False)
    assert made["token"] not in listed + shown
    for path in place.keys.iterdir():
        assert made["token"] not in path.read_text("latin-1")
        assert path.stat().st_mode & 0o077 == 0
    assert main(["token", "revoke", str(place.policy), "token-x"]) == 2
    assert main(["token", "add", str(place.policy), "--agent", "nobody"]) == 2
    assert "no agent `nobody`" in capsys.readouterr().err


async def test_no_more_sessions_than_a_token_may_have(place: Place, listen: Listen) -> None:
    gate, headers = listen(), {**JSON, "authorization": f"Bearer {place.token('reader')}"}
    async with httpx2.AsyncClient(timeout=None) as http:
        statuses = [(await http.post(gate.url, headers=headers, json=INITIALIZE)).status_code for _ in range(55)]

    assert statuses == [200] * 50 + [503] * 5


def test_a_client_that_goes_away_in_the_middle_of_a_request_does_no_harm(place: Place, listen: Listen) -> None:
    gate, token = listen(), place.token("reader")
    address = urlsplit(gate.url)
    head = (
        f"POST /mcp HTTP/1.1\r\nhost: {address.netloc}\r\nauthorization: Bearer {token}\r\ncontent-length: 100\r\n\r\n"
    )
    for _ in range(20):
        with socket.create_connection((address.hostname, address.port)) as connection:
            connection.sendall(head.encode() + b'{"jsonrpc"')
    answer = httpx2.post(gate.url, headers={**JSON, "authorization": f"Bearer {token}"}, content=HELLO)

    assert answer.status_code == 200
    assert gate.end() == 0
    assert not [line for line in gate.lines if "Traceback" in line]


def test_half_sent_requests_of_one_token_are_bounded_and_hold_up_nobody_else(place: Place, listen: Listen) -> None:
    gate, token, other = listen(), place.token("reader"), place.token("reader")
    address = urlsplit(gate.url)
    head = f"POST /mcp HTTP/1.1\r\nhost: {address.netloc}\r\nauthorization: Bearer {token}\r\n"
    with ExitStack() as stack:

        def half_open(count: int, sent: str) -> None:
            for _ in range(count):
                connection = stack.enter_context(socket.create_connection((address.hostname, address.port)))
                connection.sendall(sent.encode())

        half_open(100, "POST /mcp HTTP/1.1\r\nhost: ")  # nobody knows who that is
        half_open(MOST_REQUESTS, unfinished := f"{head}content-length: 100\r\n\r\n{{")
        with httpx2.Client(timeout=None) as http:

            def status(of: str) -> int:
                return http.post(gate.url, headers={**JSON, "authorization": f"Bearer {of}"}, content=HELLO).status_code

            def is_full() -> bool:
                """A whole request that came before the last of them has taken its place: one more, then."""
                half_open(1, unfinished)
                return status(token) == 429

            pause_until(is_full, "all of them to reach the gateway")
            assert status(other) == 200
            stack.close()
            pause_until(lambda: status(token) == 200, "the gateway to see that they are gone")

    assert gate.end() == 0
    assert not [line for line in gate.lines if "Traceback" in line]


def test_no_part_of_an_answer_waits_for_an_acknowledgement() -> None:
    with listening_at("127.0.0.1", 0) as door, socket.create_connection(door.getsockname()):
        accepted, _ = door.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def _printed(words: list[str]) -> str:
    with redirect_stdout(io.StringIO()) as out:
        assert main(words) == 0
    return out.getvalue()


@asynccontextmanager
async def served(**limits: Any) -> AsyncGenerator[tuple[str, int]]:
    """The gateway's own HTTP server, without a token that it knows."""

    async def no_door(_token: str) -> None:
        return None

    listening = listening_at("127.0.0.1", 0)
    stopped = asyncio.get_running_loop().create_future()
    serving = asyncio.ensure_future(serve_http(HttpGateway(no_door), listening, stopped, **limits))
    try:
        yield listening.getsockname()[:2]
    finally:
        stopped.set_result(None)
        await serving


async def dripping(writer: asyncio.StreamWriter, *, every_s: float = 0.02) -> None:
    """Send one byte now and then, until nobody takes it any more."""
    with suppress(ConnectionError):
        for byte in b"x-slow: " + b"x" * 10_000:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(every_s)


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> LoopClock:
    return LoopClock(asyncio.get_running_loop(), monkeypatch)


HEAD = b"GET /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\n"


@pytest.mark.parametrize("first", [b"", HEAD, HEAD + b"\r\n", HEAD + b"content-length: 5000\r\n\r\n"])
async def test_a_connection_that_drips_in_place_of_a_request_is_closed_in_time(first: bytes, clock: LoopClock) -> None:
    async with served() as (host, port):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(first)
        began_s = clock.now()
        drip = asyncio.ensure_future(dripping(writer))
        whole = asyncio.ensure_future(reader.read())
        while not whole.done():
            clock.pass_by(0.05 * HEAD_S)
            await asyncio.sleep(0.01)
        with suppress(ConnectionError):
            await whole
        assert 0.9 * HEAD_S < clock.now() - began_s < 2.5 * HEAD_S
        drip.cancel()
        writer.close()


async def test_a_connection_that_asks_again_in_time_is_kept(clock: LoopClock) -> None:
    async with served() as (host, port):
        reader, writer = await asyncio.open_connection(host, port)
        for _ in range(20):
            writer.write(HEAD + b"\r\n")
            assert (await reader.readuntil(b"a token is needed\n")).startswith(b"HTTP/1.1 401 ")
            clock.pass_by(0.1 * HEAD_S)
            await asyncio.sleep(0)
        writer.close()


async def test_of_too_many_connections_without_a_request_the_oldest_goes_and_no_client_is_locked_out() -> None:
    async with served(most_headless=3) as (host, port):
        opened = [await asyncio.open_connection(host, port) for _ in range(4)]
        async with patient():
            assert await opened[0][0].read() == b""
            for reader, writer in opened[1:]:
                writer.write(HEAD + b"\r\n")
                await reader.readuntil(b"a token is needed\n")
        for _, writer in opened:
            writer.close()
