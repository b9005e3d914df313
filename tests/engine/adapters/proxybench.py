"""A proxy on a Unix socket, a way to it over TCP as inside a room, and names that lead to servers on loopback."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from httpcore2 import AsyncNetworkStream, ConnectError

from gatewright.adapters.host_proxy import HostProxy, ProxyBounds
from gatewright.adapters.web_request import CheckedNetwork, dial
from gatewright.gate.record import Connection
from tests.support.patience import until

PUBLIC = "93.184.216.34"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Names:
    """The resolver: each name has answers that follow one another, the last one for good; every public address leads
    to ``ports`` on loopback, by the port that was asked for.
    """

    ports: dict[int, int]
    known: dict[str, list[Sequence[str]]] = field(default_factory=dict[str, "list[Sequence[str]]"])
    dialled: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        answers = self.known.get(host, [(PUBLIC,)])
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def dial(self, address: str, port: int, timeout_s: float | None) -> AsyncNetworkStream:
        self.dialled.append((address, port))
        if port not in self.ports:
            raise ConnectError("nobody listens")
        return await dial("127.0.0.1", self.ports[port], timeout_s)

    def network(self, allow_private: bool) -> CheckedNetwork:
        return CheckedNetwork(allow_private=allow_private, resolve=self.resolve, dial=self.dial)


@dataclass
class ProxyBench:
    """A proxy that runs, ``port``: where it is reached over TCP, and the connections that it told of."""

    proxy: HostProxy
    port: int
    told: list[Connection]

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables that a room sets."""
        names = {"http_proxy": "http", "https_proxy": "http", "all_proxy": "socks5h"}
        return {name: f"{scheme}://127.0.0.1:{self.port}" for name, scheme in names.items()}

    async def connect(self) -> Streams:
        """A connection of our own."""
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def said(self, content: bytes, *, ends: bool = True) -> bytes:
        """Return the proxy's whole answer to these bytes."""
        reader, writer = await self.connect()
        try:
            writer.write(content)
            if ends:
                writer.write_eof()
            with suppress(ConnectionError):
                return await reader.read()
            return b""
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def next_told(self, count: int = 1) -> Connection:
        """The last connection, once so many are over; they are forgotten then."""
        await until(lambda: len(self.told) >= count, f"{count} connections")
        last = self.told[-1]
        self.told.clear()
        return last

    async def run(self, *command: str, **more: str) -> tuple[int, str]:
        """A program with the variables of a room: its status and what it printed."""
        environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **self.environment, **more}
        process = await asyncio.create_subprocess_exec(
            *command, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        out, _ = await process.communicate()
        return process.returncode or 0, out.decode()

    async def run_python(self, script: str, **more: str) -> tuple[int, str]:
        """Run a Python script in the same way."""
        return await self.run(sys.executable, "-I", "-c", script, **more)


@asynccontextmanager
async def proxy_of(
    *hosts: str,
    names: Names | None = None,
    allow_private: bool = False,
    bounds: ProxyBounds | None = None,
    told: Callable[[Connection], None] | None = None,
) -> AsyncGenerator[ProxyBench]:
    """A proxy for these hosts, on a port of this machine."""
    heard: list[Connection] = []
    network = names.network if names is not None else None
    proxy = HostProxy(hosts, allow_private, told or heard.append, network=network, bounds=bounds)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    await proxy.listen(listener)
    try:
        yield ProxyBench(proxy, port, heard)
    finally:
        await proxy.close()
