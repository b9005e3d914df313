"""The one way out of a confined process: a proxy on a port of its own that connects only to granted hosts.

Patterns judge each target; the network of the web tools resolves it, judges it again and dials it. `proxy_connection`
decides what may pass through a connection.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Sequence

from gatewright.adapters.proxy_connection import MAX_HEAD_BYTES, Outlet, ProxyBounds, ProxyConnection, Refused
from gatewright.adapters.server_process import call_in, loop_thread
from gatewright.adapters.web_request import CheckedNetwork, look_up
from gatewright.base.late import in_own_thread
from gatewright.gate.record import Connection, Way

_BACKLOG = 128
_MISSED = 32


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
            server = await asyncio.start_server(self._accept, sock=listener, limit=MAX_HEAD_BYTES, backlog=_BACKLOG)
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
