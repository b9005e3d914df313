"""The host name in a TLS ClientHello, read from the first bytes of a connection (RFC 8446, RFC 6066).

Refuses everything that a server could read differently: several names, a repeated extension, wrong lengths, and an
encrypted name.
"""

from __future__ import annotations

import asyncio

from gatewright.base.frozen import frozen

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
    """Bytes that begin like TLS but are no plain ClientHello; the message says why."""


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
    """A reader of bytes from the front. Raises HelloRefused if too few are left."""

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
        """Take a block behind its length, a number of ``size`` bytes."""
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
