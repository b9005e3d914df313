"""MCP servers over streamable HTTP: one for each token, behind one address.

The token alone identifies a client, never a path or a session id: each token has its own session manager, so that no
request can reach the sessions of another. The gateway checks Host and Origin against its own names, so that a web page
cannot reach it through another name.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterable, MutableMapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

import anyio
import uvicorn
from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import JSONRPCMessage
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from gatewright.adapters.answer_page import AnswerPages
from gatewright.adapters.mcp_server import AgentServer
from gatewright.base.errors import WorkspaceError

if TYPE_CHECKING:
    Scope = MutableMapping[str, Any]
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    App = Callable[[Scope, Receive, Send], Awaitable[None]]

PATH = "/mcp"
LARGEST_BODY = 5 * 1024 * 1024
MOST_SESSIONS = 50
"""The most open MCP sessions per token."""
MOST_REQUESTS = 100
"""The most running requests per token, open streams included."""
MOST_CONNECTIONS = 2_000
HEAD_S = 10.0
"""The longest time for the head of a request, in s, from the start of the connection or the end of the last answer."""
MOST_HEADLESS = 500
"""The most connections of one address without a request; one more closes the oldest."""
BODY_S = 30.0
"""The longest time for the body of a request, in s."""
IDLE_S = 30 * 60.0
MOST_KEPT_BYTES = 4 * 1024 * 1024
"""The most bytes of its latest messages that a session keeps, for a client whose stream broke."""
_MOST_KEPT = 1_000
_LONGEST_HEADER = 1 << 16
_PLACE = re.compile(rb"(?:https?://)?(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
"""The form of Host and Origin: the SDK looks no further than the colon before a port."""
_TOO_LARGE = f"a request has at most {LARGEST_BODY:,} bytes"
_NOT_WHOLE = "the request did not arrive complete and in time"
_log = logging.getLogger(__name__)


class TokenDoor:
    """The server of one token, and its running requests."""

    def __init__(self, agent: AgentServer, security: TransportSecuritySettings) -> None:
        self.agent = agent
        self._manager = _Sessions(
            agent.server,
            security_settings=security,
            session_idle_timeout=IDLE_S,
            max_request_body_size=LARGEST_BODY,
            max_sessions=MOST_SESSIONS,
        )
        self._under_way: set[anyio.CancelScope] = set()
        self._is_closed = asyncio.Event()

    async def run(self, on_ready: Callable[[], None]) -> None:
        """Serve until `close`; call ``on_ready`` once requests can be handled."""
        async with self._manager.run():
            on_ready()
            await self._is_closed.wait()
            await self.agent.withdraw()

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, unless too many are running."""
        if self._is_closed.is_set():
            await _answer(send, 401, "the token was revoked")
            return
        if len(self._under_way) >= MOST_REQUESTS:
            await _answer(send, 429, "too many requests are running")
            return
        response = _Response(send)
        with anyio.CancelScope() as until_closed:
            self._under_way.add(until_closed)
            try:
                body, refusal = await _read_body(receive)
                if refusal:
                    await response.end(413 if refusal == _TOO_LARGE else 408, refusal)
                else:
                    await self._manager.handle_request(scope, _again(body, receive), response.send)
            finally:
                self._under_way.discard(until_closed)
        if until_closed.cancelled_caught:
            await response.end(401, "the token was revoked")

    def close(self) -> None:
        """End every session and every running request."""
        self._is_closed.set()
        for one in tuple(self._under_way):
            one.cancel()


class _Sessions(StreamableHTTPSessionManager):
    """Sessions that each keep their own messages: the SDK distinguishes streams by ids that every client counts
    from 1.
    """

    def _admit_session(self, requestor: Any) -> Any:
        self.event_store = _Sent()
        return super()._admit_session(requestor)


class _Sent(EventStore):
    """The latest messages of one session; a client gets all that follow the last one it has."""

    def __init__(self) -> None:
        self._events: deque[tuple[EventId, StreamId, JSONRPCMessage | None, int]] = deque()
        self._count = self._bytes = 0

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        """Store a message, or None for the beginning of a stream."""
        size = len(message.model_dump_json()) if message is not None else 0
        self._count += 1
        self._bytes += size
        self._events.append((str(self._count), stream_id, message, size))
        while self._bytes > MOST_KEPT_BYTES or len(self._events) > _MOST_KEPT:
            self._bytes -= self._events.popleft()[3]
        return str(self._count)

    async def replay_events_after(self, last_event_id: EventId, send_callback: EventCallback) -> StreamId | None:
        """Send the later messages of the same stream again; return None, and send nothing, if the last event is
        gone.
        """
        stream = None
        for event_id, stream_id, message, _ in tuple(self._events):
            if event_id == last_event_id:
                stream = stream_id
            elif stream_id == stream and message is not None:
                await send_callback(EventMessage(message, event_id))
        return stream


class _Response:
    """An answer that can be ended at any point."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._has_begun = self._is_whole = False

    async def send(self, message: Message) -> None:
        """Pass on one part."""
        self._has_begun = True
        self._is_whole = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)

    async def end(self, status: int, why: str) -> None:
        """End it; before the first part, with this status."""
        if not self._has_begun:
            await _answer(self._send, status, why)
        elif not self._is_whole:
            await self._send({"type": "http.response.body", "body": b""})


class HttpGateway:
    """The application: checks address and token, and passes the request to the token's door.

    ``find_door`` returns the door of a token, None for an unknown one; it may raise WorkspaceError if the gateway
    cannot serve the token. ``pages`` answer below the path of the policy's links, without a token: a link is its own.
    """

    def __init__(
        self, find_door: Callable[[str], Awaitable[TokenDoor | None]], pages: AnswerPages | None = None
    ) -> None:
        self._find_door, self._pages = find_door, pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        if scope["type"] != "http":
            return
        root = None if self._pages is None else self._pages.root
        if self._pages is not None and root is not None and _is_below(scope["path"], root):
            await self._pages({**scope, "root_path": root}, receive, send)
            return
        places = [(name, value) for name, value in scope["headers"] if name in {b"host", b"origin"}]
        if len(dict(places)) < len(places) or not all(_PLACE.fullmatch(value) for _, value in places):
            await _answer(send, 421, "Host and Origin are names of the gateway, with a port or without, each once")
            return
        token = _bearer(scope)
        try:
            door = await self._find_door(token) if token else None
        except WorkspaceError as error:
            _log.warning("refused a request: %s", error)
            await _answer(send, 503, "the gateway cannot serve this token now")
            return
        if door is None:
            await _answer(send, 401, "a token is needed", (b"www-authenticate", b"Bearer"))
        elif scope["path"] != PATH:
            await _answer(send, 404, f"the only path here is {PATH}")
        else:
            await door.handle(scope, receive, send)


def _is_below(path: str, root: str) -> bool:
    return path != PATH and path.startswith(f"{root}/")


def security_of(names: Iterable[str]) -> TransportSecuritySettings:
    """Return the allowed values of Host and Origin for these names, with any port."""
    hosts = [f"[{name}]" if ":" in name else name for name in names]
    return TransportSecuritySettings(
        allowed_hosts=[one for host in hosts for one in (host, f"{host}:*")],
        allowed_origins=[
            f"{scheme}://{host}{port}" for scheme in ("http", "https") for host in hosts for port in ("", ":*")
        ],
    )


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket; port 0: any free one. Raises WorkspaceError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.create_server((host, port), family=family, backlog=512)
        # inherited by all accepted sockets: else the second part of an answer waits 40 ms for the acknowledgement of
        # the first
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made
    except (OSError, OverflowError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise WorkspaceError(f"cannot listen at `{host}` port {port}: {why}") from None


def address_of(listening: socket.socket) -> str:
    """Return the URL for clients."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"


async def serve_http(
    app: App,
    listening: socket.socket,
    stopped: asyncio.Future[Any],
    *,
    head_s: float = HEAD_S,
    most_headless: int = MOST_HEADLESS,
) -> None:
    """Serve until ``stopped`` is done. Close the doors before that, since open streams would delay the end."""
    config = uvicorn.Config(
        app,  # pyright: ignore[reportArgumentType] a callable that uvicorn's own types spell otherwise
        http=type("Connection", (_Connection,), {"head_s": head_s, "most_headless": most_headless}),
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MOST_CONNECTIONS,
        h11_max_incomplete_event_size=_LONGEST_HEADER,
        timeout_graceful_shutdown=2,
    )
    server = _Server(config)
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    await asyncio.wait({serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    await serving


class _Connection(H11Protocol):
    """A connection that closes if no request begins in time; uvicorn waits for ever after the first byte."""

    head_s = HEAD_S
    most_headless = MOST_HEADLESS
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Wait for a first request; if too many wait, close the oldest."""
        super().connection_made(transport)
        self._wait()
        others = [cast("_Connection", one) for one in self.connections if isinstance(one, _Connection)]
        waiting = {one: one._late.when() for one in others if one._late is not None and one._address == self._address}
        if len(waiting) > self.most_headless:
            min(waiting, key=waiting.__getitem__).transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._wait(is_over=True)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Handle the received data, and wait for a head while no answer is running."""
        super().handle_events()
        cycle = cast("RequestResponseCycle | None", self.cycle)  # None before the first request
        self._wait(is_over=cycle is not None and not cycle.response_complete)

    @property
    def _address(self) -> str | None:
        return self.client[0] if self.client else None

    def _wait(self, *, is_over: bool = False) -> None:
        if is_over and self._late is not None:
            self._late.cancel()
            self._late = None
        elif not is_over and self._late is None:
            self._late = self.loop.call_later(self.head_s, self.transport.close)


class _Server(uvicorn.Server):
    """A server that leaves signals to its owner."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Capture no signals."""
        yield


def _bearer(scope: Scope) -> str:
    """Return the token of a request; empty without one, or with several."""
    shown = [value for name, value in scope["headers"] if name == b"authorization"]
    scheme, _, token = shown[0].partition(b" ") if len(shown) == 1 else (b"", b"", b"")
    return token.strip().decode("latin-1") if scheme.lower() == b"bearer" else ""


async def _read_body(receive: Receive) -> tuple[bytes, str]:
    """Read the body of a request, or say why that failed: too large, stalled, or the client left."""
    body = bytearray()
    with suppress(TimeoutError):
        async with asyncio.timeout(BODY_S):
            while True:
                message = await receive()
                body += message.get("body", b"")
                if len(body) > LARGEST_BODY:
                    return b"", _TOO_LARGE
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return bytes(body), "" if message["type"] == "http.request" else _NOT_WHOLE
    return b"", _NOT_WHOLE


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a receiver that delivers this body again."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return first.pop() if first else await receive()

    return receive_again


async def _answer(send: Send, status: int, why: str, *headers: tuple[bytes, bytes]) -> None:
    body = why.encode() + b"\n"
    told = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": told})
    await send({"type": "http.response.body", "body": body})
