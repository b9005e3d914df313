"""Connects: sends one request to an address that was checked; reads the name that a TLS client asks for.

Everything that a server could read differently is refused: several names, a repeated extension, wrong lengths, an
encrypted name. A name is resolved once, at the connection; all its addresses are judged and one of them is dialled, so
that a resolver gains nothing by a different answer a moment later. The environment is ignored (no proxy, no password
file), and nothing is stored (no cookie, no connection).
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import zlib
from collections.abc import Awaitable, Callable, Iterable, Sequence

from httpcore2 import (
    SOCKET_OPTION,
    URL,
    AnyIOBackend,
    AsyncConnectionPool,
    AsyncNetworkBackend,
    AsyncNetworkStream,
    ConnectError,
    ConnectTimeout,
    NetworkError,
    ProtocolError,
    Response,
    TimeoutException,
)

from gatewright.arguments.url import Host, HostRefused, UrlTarget, read_host
from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.late import in_own_thread

MAX_HELLO_BYTES = 64 * 1024
_HANDSHAKE, _MAJOR, _CLIENT_HELLO = 22, 3, 1
_RECORDS = range(20, 25)
_MOST_IN_RECORD = 16 * 1024 + 256
_SERVER_NAME = 0
_ENCRYPTED_NAMES = frozenset({0xFE0D, 0xFFCE})
"""Encrypted Client Hello and its draft."""


@frozen
class ClientHello:
    """The first message of a client: its bytes, and the requested name (None without one)."""

    content: bytes
    name: str | None


class HelloRefused(Exception):
    """Bytes begin like TLS but are no plain ClientHello; the message says why."""


def begins_as_tls(begin: bytes) -> bool:
    """Tell whether the first bytes may begin a TLS record."""
    return begin[0] in _RECORDS and begin[1:2] in {b"", bytes((_MAJOR,))}


async def read_client_hello(begin: bytes, reader: asyncio.StreamReader) -> ClientHello:
    """Read the ClientHello after its bytes ``begin``. Raises HelloRefused and IncompleteReadError."""
    read, message = bytearray(begin), bytearray()
    while True:
        read += await reader.readexactly(5 - len(begin))
        begin = b""
        kind, major, length = read[-5], read[-4], int.from_bytes(read[-2:])
        if kind != _HANDSHAKE or major != _MAJOR or not 0 < length <= _MOST_IN_RECORD:
            raise HelloRefused("it does not begin with a ClientHello")
        record = await reader.readexactly(length)
        read += record
        message += record
        if message[0] != _CLIENT_HELLO:
            raise HelloRefused("it does not begin with a ClientHello")
        whole = 4 + int.from_bytes(message[1:4])
        if max(whole, len(read)) > MAX_HELLO_BYTES:
            raise HelloRefused("its ClientHello is too long")
        if len(message) > whole:
            raise HelloRefused("more follows its ClientHello in one record")
        if len(message) == whole:
            return ClientHello(bytes(read), _name_in(bytes(message[4:])))


class _Bytes:
    """Reads bytes from the front. Raises HelloRefused if too few are left."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def take(self, count: int) -> bytes:
        taken = self._content[self._at : self._at + count]
        if len(taken) < count:
            raise HelloRefused("its ClientHello is malformed")
        self._at += count
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def block(self, size: int) -> bytes:
        """Take a block that follows its length, a number of ``size`` bytes."""
        return self.take(self.number(size))

    @property
    def is_empty(self) -> bool:
        return self._at == len(self._content)


def _name_in(body: bytes) -> str | None:
    hello, found = _Bytes(body), dict[int, bytes]()
    hello.take(2 + 32)
    hello.block(1)
    hello.block(2)
    hello.block(1)
    extensions = _Bytes(b"" if hello.is_empty else hello.block(2))
    while not extensions.is_empty:
        kind = extensions.number(2)
        if kind in found:
            raise HelloRefused("its ClientHello is malformed")
        found[kind] = extensions.block(2)
    if not hello.is_empty:
        raise HelloRefused("its ClientHello is malformed")
    if not _ENCRYPTED_NAMES.isdisjoint(found):
        raise HelloRefused("it encrypts the name that it asks for")
    if _SERVER_NAME not in found:
        return None
    names = _Bytes(found[_SERVER_NAME])
    entry = _Bytes(names.block(2))
    kind, name = entry.number(1), entry.block(2)
    if kind != 0 or not name or not name.isascii() or not (entry.is_empty and names.is_empty):
        raise HelloRefused("the name that it asks for is malformed")
    return name.decode("ascii")


MAX_BYTES = 5 * 1024 * 1024
"""The most bytes of a body, packed and unpacked."""
MAX_ADDRESSES = 4
CONNECT_S = 10.0
READ_S = 15.0
_TIMEOUTS = {"connect": CONNECT_S, "read": READ_S, "write": READ_S, "pool": CONNECT_S}
_GZIP_OR_ZLIB = 47
_AGENT = "Mozilla/5.0 (compatible; Gatewright)"
_ACCEPT = "text/html, application/xhtml+xml, text/*;q=0.9, application/json;q=0.9, */*;q=0.5"

Headers = Sequence[tuple[str, str]]
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
Dial = Callable[[str, int, "float | None"], Awaitable[AsyncNetworkStream]]


@frozen
class Answer:
    """A server's answer: ``headers`` with names in lower case, and the unpacked body as far as it was read.

    ``is_cut``: the body goes on. An unwanted body is not read.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    is_cut: bool

    def header(self, name: str) -> str:
        """Return the first header of that name, or empty text."""
        return next((value for header, value in self.headers if header == name), "")


async def look_up(host: str, port: int) -> Sequence[str]:
    """Return the system's addresses of a name, without holding up others. Raises OSError."""
    rows = await in_own_thread(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    return [str(row[4][0]) for row in rows]


async def dial(address: str, port: int, timeout_s: float | None) -> AsyncNetworkStream:
    """Connect to a literal address."""
    return await AnyIOBackend().connect_tcp(address, port, timeout_s)


class CheckedNetwork(AsyncNetworkBackend):
    """A network of public addresses only; with ``allow_private`` also of private ones and this machine."""

    def __init__(self, *, allow_private: bool, resolve: Resolve = look_up, dial: Dial = dial) -> None:
        self._allow_private, self._resolve, self._dial = allow_private, resolve, dial

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> AsyncNetworkStream:
        """Connect to the first address of ``host`` that answers. Raises ToolFailure for a forbidden address."""
        failure: ConnectError | ConnectTimeout = ConnectError("no address")
        for address in (await self._addresses(host, port))[:MAX_ADDRESSES]:
            try:
                return await self._dial(address, port, timeout)
            except (ConnectError, ConnectTimeout) as error:
                failure = error
        raise failure

    async def _addresses(self, host: str, port: int) -> list[str]:
        given = _read(host)
        if given is None or given.address is not None:
            found: Sequence[str] = [host]
        else:
            try:
                async with asyncio.timeout(CONNECT_S):
                    found = await self._resolve(host, port)
            except (OSError, UnicodeError, TimeoutError):
                raise ToolFailure("the name of that host could not be resolved", code="unknown-host") from None
        for text in found:
            address = _read(text)
            what = "no address" if address is None else address.refusal(allow_private=self._allow_private)
            if what is not None or address is None or address.address is None:
                detail = f"`{host}` is `{text}`, which is {what}"
                raise ToolFailure(
                    "that host is not available to you; use another one", code="url-private", detail=detail
                )
        return list(dict.fromkeys(found))


def _read(text: str) -> Host | None:
    host = read_host(f"[{text}]" if ":" in text else text)
    return None if isinstance(host, HostRefused) else host


async def get(
    target: UrlTarget, headers: Headers, network: CheckedNetwork, *, wants: Callable[[str], bool] = lambda _: True
) -> Answer:
    """Send a GET request, like `request`."""
    return await request("GET", target, headers, network, wants=wants)


async def request(
    method: str,
    target: UrlTarget,
    headers: Headers,
    network: CheckedNetwork,
    *,
    body: bytes | None = None,
    wants: Callable[[str], bool] = lambda _: True,
    most: int | None = None,
) -> Answer:
    """Return the server's answer with any status, without following redirects. Raises ToolFailure.

    ``body``: the bytes to send, described by ``headers``. ``wants`` decides by content type whether to read the
    answer's body, ``most`` limits it (never above `MAX_BYTES`).
    """
    shown_host = f"[{target.host}]" if ":" in target.host else target.host
    place = target.text.partition("#")[0].partition("://")[2]
    url = URL(scheme=target.scheme, host=target.host, port=target.port, target="/" + place.partition("/")[2])
    implied = target.port == (443 if target.scheme == "https" else 80)
    named = {name.lower() for name, _ in headers}
    ours = (("user-agent", _AGENT), ("accept", _ACCEPT))
    sent = [
        ("Host", shown_host if implied else f"{shown_host}:{target.port}"),
        ("Accept-Encoding", "gzip"),
        ("Connection", "close"),
        *((name, value) for name, value in ours if name not in named),
        *headers,
        *([("Content-Length", str(len(body)))] if body is not None else []),
    ]
    try:
        async with (
            AsyncConnectionPool(max_connections=1, max_keepalive_connections=0, network_backend=network) as pool,
            pool.stream(method, url, headers=sent, content=body, extensions={"timeout": _TIMEOUTS}) as response,
        ):
            return await _read_answer(response, wants, MAX_BYTES if most is None else min(most, MAX_BYTES))
    except TimeoutException:
        raise ToolFailure("the server did not answer in time", code="no-answer") from None
    except ProtocolError:
        raise ToolFailure("the server does not answer as a web server does", code="bad-answer") from None
    except NetworkError as error:
        if any(isinstance(cause, ssl.SSLError) for cause in error.args):
            detail = str(error)[:300]
            raise ToolFailure("no secure connection could be made to the server", code="tls", detail=detail) from None
        raise ToolFailure("no connection could be made to the server, or it broke", code="no-connection") from None


async def _read_answer(response: Response, wants: Callable[[str], bool], most: int) -> Answer:
    headers = tuple((_text(name).lower(), _text(value)) for name, value in response.headers)
    answer = Answer(response.status, headers, b"", is_cut=False)
    if not wants(answer.header("content-type")):
        return answer
    packing = answer.header("content-encoding").strip().lower()
    if packing not in {"", "identity", "gzip", "x-gzip", "deflate"}:
        raise ToolFailure("the server packs what it sends in a way that was not asked for", code="bad-answer")
    inflate = zlib.decompressobj(_GZIP_OR_ZLIB) if packing not in {"", "identity"} else None
    body, received = bytearray(), 0
    async for piece in response.aiter_stream():
        received += len(piece)
        try:
            body += piece if inflate is None else inflate.decompress(piece, most + 1 - len(body))
        except zlib.error:
            raise ToolFailure("the server's answer cannot be unpacked", code="bad-answer") from None
        if len(body) > most or received > most:
            return Answer(response.status, headers, bytes(body[:most]), is_cut=True)
    if inflate is not None and received and not inflate.eof:
        raise ToolFailure("the server's answer cannot be unpacked", code="bad-answer")
    return Answer(response.status, headers, bytes(body), is_cut=False)


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")
