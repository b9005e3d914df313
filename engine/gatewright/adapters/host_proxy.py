"""The one way out of a confined process: a proxy on a port of its own that connects only to granted hosts.

Patterns judge each target; the network of the web tools resolves it, judges it again and dials it. The first byte of a
connection tells HTTP (a whole URL in the request), CONNECT and SOCKS5 apart. A tunnel to port 443, and any tunnel that
begins like TLS, must begin with a ClientHello for the judged host; the contents of a tunnel are never read. The proxy
writes HTTP requests anew, one for each connection. It has more than 450 lines, since accepting, judging and passing on
are one promise.
"""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import suppress
from http.client import responses
from typing import Any, cast

import h11
from httpcore2 import (
    URL,
    AsyncHTTP11Connection,
    AsyncNetworkStream,
    ConnectError,
    ConnectTimeout,
    NetworkError,
    ProtocolError,
    Response,
    TimeoutException,
)

from gatewright.adapters.server_process import call_in, loop_thread
from gatewright.adapters.web_request import (
    CONNECT_S,
    CheckedNetwork,
    HelloRefused,
    begins_as_tls,
    look_up,
    read_client_hello,
)
from gatewright.arguments.url import Host, UrlRefused, parse_host, parse_url, read_host
from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.late import in_own_thread
from gatewright.gate.record import Connection, Way
from gatewright.policy.verdict import host_matches

_MAX_HEAD_BYTES = 32 * 1024
_BACKLOG = 128
_MISSED = 32
_CHUNK = 64 * 1024
_LINGER_S = 2.0
_HTTP_PORT, _TLS_PORT = 80, 443
_ALERT = b"\x15\x03\x01\x00\x02\x02\x31"
"""access_denied, fatal: the last words to a TLS client."""
_SOCKS, _CONNECT, _NO_LOGIN, _NONE_FITS = 5, 1, 0, 0xFF
_SOCKS_CODES = {403: 2, 501: 7, 502: 4}
_TUNNEL_OPEN = b"HTTP/1.1 200 Connection established\r\n\r\n"
_HOP_BY_HOP = frozenset(
    b"connection expect host keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer "
    b"transfer-encoding upgrade".split()
)
_REASONS = {400: "Bad Request", 403: "Forbidden", 501: "Not Implemented", 502: "Bad Gateway"}
_PATH, _PORT = re.compile(r"[/?#]"), re.compile(r"[0-9]{1,5}")
_NOT_FOR_YOU = "this host is not available to you"

Headers = Sequence[tuple[bytes, bytes]]


@frozen
class ProxyBounds:
    """Limits of a proxy: connections and look-ups of names at once; seconds for the beginning of a connection, for
    making one, and of silence.
    """

    connections: int = 128
    look_ups: int = 16
    head_s: float = 15.0
    connect_s: float = 45.0
    idle_s: float = 600.0


@frozen
class Outlet:
    """The hosts that one room may reach, as patterns, and the network that resolves, judges and dials them."""

    hosts: tuple[str, ...]
    allow_private: bool
    network: CheckedNetwork
    bounds: ProxyBounds


class Refused(Exception):
    """A connection that the proxy refuses: an HTTP status and words for the program, ``why`` for the operator."""

    def __init__(self, status: int, code: str, said: str, why: str = "") -> None:
        super().__init__(said)
        self.status, self.code, self.said, self.why = status, code, said, why or said


class HostProxy:
    """The proxy of one room, for any listening sockets it gets, until `close`; in any loop.

    ``told`` receives each connection at its end, in this program's loop, and may not wait. If it raises, the proxy
    refuses the next connection. The proxy calls ``done`` after its close; that may wait. ``network`` makes the
    connecting network from the flag for private addresses.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        allow_private: bool,
        told: Callable[[Connection], None],
        *,
        done: Callable[[], None] = lambda: None,
        network: Callable[[bool], CheckedNetwork] | None = None,
        bounds: ProxyBounds | None = None,
    ) -> None:
        self._bounds, self._told, self._done = bounds or ProxyBounds(), told, done
        self._outlet = Outlet(tuple(hosts), allow_private, (network or self._network)(allow_private), self._bounds)
        self._missed: deque[Connection] = deque(maxlen=_MISSED)
        self._looking = 0
        self._serving: set[asyncio.Task[None]] = set()
        self._servers: set[asyncio.Server] = set()
        self._is_blind = False

    @property
    def missed(self) -> tuple[Connection, ...]:
        """The last connections that the proxy refused or could not make."""
        return tuple(self._missed)

    async def listen(self, listener: socket.socket) -> Callable[[], None]:
        """Answer on a listening socket of any network, and own it from then on. Raises OSError.

        The result ends that; any thread may call it.
        """
        return await loop_thread().run(self._listen(listener))

    async def close(self) -> None:
        """End every connection, and stop listening."""
        await loop_thread().run(self._end())
        await in_own_thread(self._done)

    async def _listen(self, listener: socket.socket) -> Callable[[], None]:
        try:
            listener.setblocking(False)
            server = await asyncio.start_server(self._accept, sock=listener, limit=_MAX_HEAD_BYTES, backlog=_BACKLOG)
        except BaseException:
            listener.close()
            raise
        self._servers.add(server)
        return call_in(asyncio.get_running_loop(), lambda: self._leave(server))

    def _leave(self, server: asyncio.Server) -> None:
        server.close()
        self._servers.discard(server)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._take(ProxyConnection(self._outlet, reader, writer, self._tell), writer)

    def _tell(self, connection: Connection) -> None:
        if not connection.allowed or (connection.code and not connection.address):
            self._missed.append(connection)
        try:
            self._told(connection)
            self._is_blind = False
        except Exception:  # noqa: BLE001 after any error, connections go unrecorded
            self._is_blind = True

    async def _take(self, connection: ProxyConnection, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._serving) >= self._bounds.connections:
            writer.transport.abort()
            self._tell(Connection("", 0, Way.HTTP, allowed=False, code="too-many", why="too many connections at once"))
            return
        self._serving.add(task)
        try:
            blind = Refused(502, "no-log", "no connections now", "connections cannot be recorded")
            await connection.serve(blind if self._is_blind else None)
        except asyncio.CancelledError:  # only `_end` cancels it, and nobody else awaits it
            pass
        finally:
            self._serving.discard(task)
            if not writer.is_closing():
                writer.transport.abort()

    async def _end(self) -> None:
        for server in tuple(self._servers):
            self._leave(server)
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def _network(self, allow_private: bool) -> CheckedNetwork:
        return CheckedNetwork(allow_private=allow_private, resolve=self._resolve)

    async def _resolve(self, host: str, port: int) -> Sequence[str]:
        """Resolve a name, a few at once; an abandoned look-up counts until it ends."""
        if self._looking >= self._bounds.look_ups:
            raise OSError("too many look-ups of names at once")
        self._looking += 1
        asked = asyncio.ensure_future(look_up(host, port))
        asked.add_done_callback(self._end_look_up)
        return await asyncio.shield(asked)

    def _end_look_up(self, asked: asyncio.Future[Sequence[str]]) -> None:
        self._looking -= 1
        if not asked.cancelled():
            asked.exception()  # the waiter gets the error, if anybody waits


class ProxyConnection:
    """A connection of a program to a proxy; ``report`` receives it at its end, unless it asked for nothing."""

    def __init__(
        self,
        outlet: Outlet,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        report: Callable[[Connection], None],
    ) -> None:
        self._outlet, self._reader, self._writer, self._told = outlet, reader, writer, report
        self._bounds = outlet.bounds
        self._asked: tuple[str, int, Way] | None = None
        self._reply: Callable[[Refused], bytes] = lambda _: b""
        self._is_allowed = self._has_host_ended = False
        self._sent = self._received = 0
        self._address = ""

    async def serve(self, refused: Refused | None = None) -> None:
        """Serve it to its end; only a cancellation raises. ``refused``: answer with this refusal and nothing else."""
        began, code, why = time.monotonic(), "ended", "the process or this program ended"
        try:
            code, why = await self._outcome(refused)
        finally:
            if self._asked is not None:
                host, port, way = self._asked
                took_ms = (time.monotonic() - began) * 1000
                sizes = self._sent, self._received
                self._told(Connection(host, port, way, self._is_allowed, code, why, self._address, *sizes, took_ms))

    async def _outcome(self, refused: Refused | None) -> tuple[str, str]:
        """Return the reason of an early end, as a code and in words; empty for a normal end."""
        code, why, reply = "", "", b""
        try:
            async with asyncio.timeout(None) as self._limit:
                self._allow(self._bounds.head_s)
                await self._serve(refused)
        except TimeoutError:
            return "too-slow", "nothing moved for too long"
        except Exception as error:  # noqa: BLE001 a program's bytes end its own connection only
            refusal = _refusal(error)
            code, why, reply = refusal.code, refusal.why, self._reply(refusal)
            self._is_allowed &= refusal.status != 403
        await self._finish(reply)
        return code, why

    def _allow(self, seconds: float) -> None:
        """Permit so many seconds until something moves."""
        if not self._limit.expired():
            self._limit.reschedule(asyncio.get_running_loop().time() + seconds)

    async def _finish(self, content: bytes) -> None:
        """Send the last bytes, and close only after the program has, since closing earlier could lose some of them."""
        with suppress(OSError, RuntimeError):
            try:
                async with asyncio.timeout(min(self._bounds.head_s, _LINGER_S)):
                    self._writer.write(content)
                    self._writer.write_eof()
                    while await self._reader.read(_CHUNK):
                        pass
                    self._writer.close()
                    await self._writer.wait_closed()
            except (TimeoutError, asyncio.CancelledError):
                self._writer.transport.abort()
                raise

    async def _serve(self, refused: Refused | None) -> None:
        first = await self._reader.read(1)
        if not first:
            return
        if first[0] == _SOCKS:
            self._asked = ("", 0, Way.SOCKS)
            await self._serve_socks(refused)
            return
        self._asked, self._reply = ("", 0, Way.HTTP), _http_refusal
        if refused is not None:
            raise refused
        head = first + await self._reader.readuntil(b"\r\n\r\n")
        http = h11.Connection(h11.SERVER, max_incomplete_event_size=_MAX_HEAD_BYTES)
        http.receive_data(head)
        request = http.next_event()
        if not isinstance(request, h11.Request):
            raise Refused(400, "bad-request", "this is no request to a proxy")
        if request.method == b"CONNECT":
            await self._serve_connect(request)
        else:
            await self._serve_http(http, request)

    def _judge(self, text: str, port: int, way: Way) -> Host:
        """Return the host that the program names, if it may reach it. Raises Refused."""
        self._asked = (text, port, way)
        host = read_host(f"[{text}]" if ":" in text and not text.startswith("[") else text)
        if not isinstance(host, Host) or not 0 < port < 65536:
            raise Refused(400, "bad-host", "this is no host with a port")
        self._asked = (host.text, port, way)
        if not any(host_matches(pattern, host.text, port) for pattern in self._outlet.hosts):
            raise Refused(403, "host-not-granted", _NOT_FOR_YOU, "it is none of the hosts that are granted")
        local = host.refusal(allow_private=self._outlet.allow_private)
        if local is not None:
            raise Refused(403, "url-private", _NOT_FOR_YOU, f"it is {local}")
        return host

    async def _dial(self, host: Host, port: int) -> AsyncNetworkStream:
        """Dial a permitted host; its addresses are judged here."""
        self._is_allowed = True
        self._allow(self._bounds.connect_s)
        stream = await self._outlet.network.connect_tcp(host.text, port, CONNECT_S)
        self._allow(self._bounds.idle_s)
        address = cast("object", stream.get_extra_info("server_addr"))
        self._address = str(cast("tuple[object, ...]", address)[0]) if isinstance(address, tuple) else ""
        return stream

    # tunnels

    async def _serve_connect(self, request: h11.Request) -> None:
        text, _, port_text = request.target.decode("ascii", "replace").rpartition(":")
        port = int(port_text) if _PORT.fullmatch(port_text) else 0
        await self._tunnel(self._judge(text, port, Way.CONNECT), port, _TUNNEL_OPEN)

    async def _serve_socks(self, refused: Refused | None) -> None:
        read = self._reader.readexactly
        methods = await read((await read(1))[0])
        if _NO_LOGIN not in methods:
            self._reply = lambda _: bytes((_SOCKS, _NONE_FITS))
            raise Refused(400, "bad-request", "it asks for a login, and there is none")
        self._writer.write(bytes((_SOCKS, _NO_LOGIN)))
        self._reply = lambda refusal: _socks_reply(_SOCKS_CODES.get(refusal.status, 1))
        version, command, _, kind = await read(4)
        match kind:
            case 1:
                text = socket.inet_ntop(socket.AF_INET, await read(4))
            case 3:
                text = (await read((await read(1))[0])).decode("ascii", "replace")
            case 4:
                text = socket.inet_ntop(socket.AF_INET6, await read(16))
            case _:
                raise Refused(400, "bad-request", "this is no request of SOCKS 5")
        port = int.from_bytes(await read(2))
        self._asked = (text, port, Way.SOCKS)
        if refused is not None:
            raise refused
        if version != _SOCKS or command != _CONNECT:
            raise Refused(501, "bad-request", "only connections are made")
        await self._tunnel(self._judge(text, port, Way.SOCKS), port, _socks_reply(0))

    async def _tunnel(self, host: Host, port: int, accepted: bytes) -> None:
        stream = await self._dial(host, port)
        try:
            self._writer.write(accepted)
            self._reply = lambda refusal: _ALERT if refusal.code == "tls-name" else b""
            with suppress(OSError):  # the program left; only errors of httpcore concern the host
                begin = await self._first_bytes(host, port) if port == _TLS_PORT else None
                await _both(self._send(stream, host, port, begin), self._receive(stream))
        finally:
            await _close(stream)

    async def _send(self, stream: AsyncNetworkStream, host: Host, port: int, begin: bytes | None) -> None:
        """Pass on the program's bytes, and the end of them."""
        data = await self._first_bytes(host, port) if begin is None else begin
        while data:
            self._allow(self._bounds.idle_s)
            try:
                await stream.write(data)
            except NetworkError:
                if not self._has_host_ended:
                    raise
                return  # TLS says goodbye to a host that is gone
            self._sent += len(data)
            data = await self._reader.read(_CHUNK)
        with suppress(OSError):
            stream.get_extra_info("socket").shutdown(socket.SHUT_WR)

    async def _receive(self, stream: AsyncNetworkStream) -> None:
        """Pass on the host's bytes, and the end of them."""
        while data := await stream.read(_CHUNK):
            self._allow(self._bounds.idle_s)
            self._writer.write(data)
            await self._writer.drain()
            self._received += len(data)
        self._has_host_ended = True
        self._writer.write_eof()

    async def _first_bytes(self, host: Host, port: int) -> bytes:
        """Read the first bytes of the program, if any.

        Raises Refused for TLS to another host, and for other bytes if only TLS is allowed.
        """
        begin = await self._reader.read(1)
        if begin and (port == _TLS_PORT or begins_as_tls(begin)):
            self._allow(self._bounds.head_s)
            begin += await self._reader.read(1)
            if begins_as_tls(begin):
                return await self._hello(begin, host)
            if port == _TLS_PORT:
                raise Refused(403, "tls-name", _NOT_FOR_YOU, "the bytes for port 443 are not TLS")
            self._allow(self._bounds.idle_s)
        return begin

    async def _hello(self, begin: bytes, host: Host) -> bytes:
        try:
            hello = await read_client_hello(begin, self._reader)
        except HelloRefused as error:
            raise Refused(403, "tls-name", _NOT_FOR_YOU, str(error)) from None
        asked = None if hello.name is None else read_host(hello.name)
        if asked != host and not (asked is None and host.address is not None):
            why = "TLS asks for no host by name" if hello.name is None else f"TLS asks for `{hello.name}`"
            raise Refused(403, "tls-name", _NOT_FOR_YOU, why)
        return hello.content

    # HTTP

    async def _serve_http(self, http: h11.Connection, request: h11.Request) -> None:
        text = request.target.decode("ascii", "replace")
        after = text.partition("://")[2]
        found = _PATH.search(after)
        authority, path = (after, "") if found is None else (after[: found.start()], after[found.start() :])
        self._asked = (authority, 0, Way.HTTP)
        place = parse_url(text, schemes=("http",), allow_private=True)
        if isinstance(place, UrlRefused):
            if place.code == "url-private":
                raise Refused(403, place.code, _NOT_FOR_YOU, place.reason)
            raise Refused(400, "bad-request", "a proxy takes whole URLs that begin with `http://`")
        host = self._judge(place.host, place.port, Way.HTTP)
        for name, value in request.headers:
            if name == b"host":
                named = parse_host(value.decode("ascii", "replace"), allow_private=True)
                if isinstance(named, UrlRefused) or (named.host, named.port or _HTTP_PORT) != (host.text, place.port):
                    raise Refused(403, "host-header", _NOT_FOR_YOU, "its header `Host` names another host")
        path = path.partition("#")[0]
        url = URL(scheme="http", host=host.in_url, port=place.port, target=path if path.startswith("/") else f"/{path}")
        shown = host.in_url if place.port == _HTTP_PORT else f"{host.in_url}:{place.port}"
        headers, body = _end_to_end(request.headers), None
        if any(name == b"transfer-encoding" for name, _ in request.headers):
            headers = [*(row for row in headers if row[0] != b"content-length"), (b"Transfer-Encoding", b"chunked")]
            body = self._body(http)
        elif any(name == b"content-length" for name, _ in request.headers):
            body = self._body(http)
        stream = await self._dial(host, place.port)
        server = AsyncHTTP11Connection(origin=url.origin, stream=stream)
        sent = [(b"Host", shown.encode()), *headers, (b"Connection", b"close")]
        try:
            async with server.stream(request.method, url, headers=sent, content=body) as response:
                await self._answer(http, response)
        finally:
            await _close(stream)

    async def _answer(self, http: h11.Connection, response: Response) -> None:
        if response.status < 200:
            raise Refused(502, "bad-answer", "the server does not answer as a web server does")
        self._reply = lambda _: b""
        headers, reason = (
            [*_end_to_end(response.headers), (b"Connection", b"close")],
            responses.get(response.status, ""),
        )
        self._pass_on(http, h11.Response(status_code=response.status, headers=headers, reason=reason))
        async for piece in response.aiter_stream():
            self._allow(self._bounds.idle_s)
            self._pass_on(http, h11.Data(data=piece))
            await self._writer.drain()
            self._received += len(piece)
        self._pass_on(http, h11.EndOfMessage())

    def _pass_on(self, http: h11.Connection, event: h11.Event) -> None:
        self._writer.write(http.send(event) or b"")

    async def _body(self, http: h11.Connection) -> AsyncGenerator[bytes]:
        """Yield the body of the program's request."""
        if http.they_are_waiting_for_100_continue:
            self._pass_on(http, h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue"))
        while not isinstance(event := http.next_event(), h11.EndOfMessage):
            self._allow(self._bounds.idle_s)
            if isinstance(event, h11.Data):
                self._sent += len(event.data)
                yield bytes(event.data)
            else:
                http.receive_data(await self._reader.read(_CHUNK))


def _end_to_end(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Drop the headers about a single connection."""
    named = {
        word.strip().lower() for name, value in headers if name.lower() == b"connection" for word in value.split(b",")
    }
    return [(name, value) for name, value in headers if name.lower() not in _HOP_BY_HOP | named]


def _refusal(error: Exception) -> Refused:
    """Turn an error into a refusal for the program."""
    match error:
        case Refused():
            return error
        case ToolFailure(code="url-private"):
            return Refused(403, error.code, _NOT_FOR_YOU, error.detail)
        case ToolFailure():
            return Refused(502, error.code, str(error))
        case ConnectError() | ConnectTimeout():
            return Refused(502, "no-connection", "no connection could be made to this host")
        case h11.RemoteProtocolError() | asyncio.LimitOverrunError():
            return Refused(400, "bad-request", "this is no request to a proxy")
        case OSError() | EOFError() | NetworkError() | TimeoutException():
            return Refused(502, "broken", "the connection broke")
        case ProtocolError():
            return Refused(502, "bad-answer", "the server does not answer as a web server does")
        case _:
            return Refused(502, "broken", "the connection broke", f"the connection broke ({type(error).__name__})")


def _http_refusal(refusal: Refused) -> bytes:
    body = f"{refusal.said}\n".encode()
    head = (
        f"HTTP/1.1 {refusal.status} {_REASONS[refusal.status]}\r\nContent-Type: text/plain\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


def _socks_reply(code: int) -> bytes:
    return bytes((_SOCKS, code, 0, 1, 0, 0, 0, 0, 0, 0))


async def _close(stream: AsyncNetworkStream) -> None:
    with suppress(Exception):
        await stream.aclose()


async def _both(one: Coroutine[Any, Any, None], other: Coroutine[Any, Any, None]) -> None:
    """Run both until they end or one of them fails."""
    tasks = [asyncio.create_task(work) for work in (one, other)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
