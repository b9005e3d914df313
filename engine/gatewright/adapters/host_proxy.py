"""The one way out of a confined process: a proxy on a Unix socket that connects to the hosts it was granted alone.

Each target is judged by the patterns, then resolved, judged again and dialled by the network of the web tools; what of
a connection may pass says `proxy_connection`.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from gatewright.adapters.loop_thread import loop_thread
from gatewright.adapters.proxy_connection import MAX_HEAD_BYTES, Outlet, ProxyBounds, ProxyConnection, Refused
from gatewright.adapters.web_request import CheckedNetwork, look_up
from gatewright.base.errors import ToolFailure
from gatewright.gate.connection import Connection, Way

_MOST_IN_NAME = 100
"""Bytes that fit into the name of a Unix socket on every system."""
_BACKLOG = 128


class HostProxy:
    """The proxy of one room, from `open` to `close`, which may be called in any loop.

    ``network`` makes what connects, told whether private addresses may be reached.
    """

    def __init__(
        self, *, network: Callable[[bool], CheckedNetwork] | None = None, bounds: ProxyBounds | None = None
    ) -> None:
        self._network_of, self._bounds = network or self._network, bounds or ProxyBounds()
        self._looking = 0
        self._serving: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._path = Path()
        self._is_blind = False

    async def open(
        self, socket_path: Path, hosts: Sequence[str], allow_private: bool, told: Callable[[Connection], None]
    ) -> None:
        """Listen on a Unix socket in a folder that is only ours. Raises ToolFailure where that cannot be.

        ``told`` hears of each connection when it is over, in the loop of this program, and may not wait. After it
        raised, the next connection is refused.
        """
        outlet = Outlet(tuple(hosts), allow_private, self._network_of(allow_private), self._bounds)
        self._path = socket_path
        try:
            await loop_thread().run(self._listen(outlet, told))
        except OSError as error:
            said = "a confined process can be given no network here"
            raise ToolFailure(said, code="not-confined", detail=str(error)) from None

    async def close(self) -> None:
        """End every connection, and listen no more."""
        await loop_thread().run(self._end())

    async def _listen(self, outlet: Outlet, told: Callable[[Connection], None]) -> None:
        def tell(connection: Connection) -> None:
            try:
                told(connection)
                self._is_blind = False
            except Exception:  # noqa: BLE001 whatever it is: what programs connect to is not known any more
                self._is_blind = True

        async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._take(ProxyConnection(outlet, reader, writer, tell), writer, tell)

        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            _bind(listener, self._path)
            own = listener.dup()
        try:
            self._server = await asyncio.start_unix_server(take, sock=own, limit=MAX_HEAD_BYTES, backlog=_BACKLOG)
        except BaseException:
            own.close()
            raise

    async def _take(
        self, connection: ProxyConnection, writer: asyncio.StreamWriter, tell: Callable[[Connection], None]
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._serving) >= self._bounds.connections:
            writer.transport.abort()
            tell(Connection("", 0, Way.HTTP, allowed=False, code="too-many", why="too many connections at once"))
            return
        self._serving.add(task)
        try:
            blind = Refused(502, "no-log", "no connection is made now", "connections cannot be recorded")
            await connection.serve(blind if self._is_blind else None)
        except asyncio.CancelledError:  # by `_end` alone, and nobody else awaits it
            pass
        finally:
            self._serving.discard(task)
            if not writer.is_closing():
                writer.transport.abort()

    async def _end(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
            self._path.unlink(missing_ok=True)
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def _network(self, allow_private: bool) -> CheckedNetwork:
        return CheckedNetwork(allow_private=allow_private, resolve=self._resolve)

    async def _resolve(self, host: str, port: int) -> Sequence[str]:
        """Look a name up, among a few at once; one that nobody waits for any more counts until it is over."""
        if self._looking >= self._bounds.look_ups:
            raise OSError("too many names are looked up at once")
        self._looking += 1
        asked = asyncio.ensure_future(look_up(host, port))
        asked.add_done_callback(self._looked_up)
        return await asyncio.shield(asked)

    def _looked_up(self, asked: asyncio.Future[Sequence[str]]) -> None:
        self._looking -= 1
        if not asked.cancelled():
            asked.exception()  # it is told to whoever waits, and nobody may


def _bind(listener: socket.socket, path: Path) -> None:
    """Give a socket its place, however long its name is; nobody else may connect to it."""
    path.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        is_short = len(os.fsencode(path)) < _MOST_IN_NAME
        listener.bind(str(path) if is_short else f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)
    with suppress(NotImplementedError):
        path.chmod(0o600)
