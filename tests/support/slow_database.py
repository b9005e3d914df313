"""A proxy on loopback before a PostgreSQL, which makes it slow, silent or unreachable.

    with slow_database(url, commit_s=0.005) as proxy, connect(proxy.url) as connection: ...

It reads as much of the protocol as it needs to see where a transaction is committed, and passes everything on. A write
outside a block is one too; so is the call of a function by SELECT, if the proxy is told that it writes.
"""

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import Coroutine, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from threading import Thread
from urllib.parse import parse_qsl, urlencode, urlsplit

_ENCRYPTION = frozenset({80877103, 80877104})
"""The requests for TLS and for GSSAPI, which may precede the first message."""
_BEGINS, _ENDS = frozenset({b"BEGIN", b"START"}), frozenset({b"COMMIT", b"ROLLBACK"})
_WRITES = frozenset({b"INSERT", b"UPDATE", b"DELETE", b"MERGE", b"COPY"})


class Loss(Enum):
    """What of a commit is lost with its connection."""

    REQUEST = auto()
    """The database never hears of the COMMIT, and rolls back."""
    ANSWER = auto()
    """The database commits, and who asked never hears of it."""


@dataclass(eq=False)
class _Session:
    """What is known of a connection: whether it is in a block, and what it asked for and did outside of one."""

    is_in_block: bool = False
    has_called: bool = False
    has_written: bool = False


@dataclass(eq=False)
class Proxy:
    """Stands before the cluster of a URL; its methods may be called from any thread.

    ``calls``: words in the calls of functions that write. ``commit_s``: how long after a commit its answer goes on.
    ``loss``: what becomes of the next commit; None again once that has happened. ``commits``: how many there were.
    """

    behind: str
    calls: tuple[bytes, ...]
    commit_s: float
    _loop: asyncio.AbstractEventLoop
    loss: Loss | None = None
    commits: int = 0
    _goes: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _server: asyncio.Server | None = None
    _port: int = 0

    @property
    def url(self) -> str:
        """The address of the same database, through the proxy."""
        return self.through(self.behind)

    def through(self, url: str) -> str:
        """The address of a database of the same cluster through the proxy, for the role that the URL names."""
        parts = urlsplit(url)
        rest = {name: value for name, value in parse_qsl(parts.query) if name not in {"host", "port"}}
        return f"postgresql://127.0.0.1:{self._port}{parts.path}?{urlencode(rest)}"

    def hold(self) -> None:
        """Pass nothing on. Connections stay open, and new ones are taken; nobody is answered."""
        self._do(self._hold(True))

    def release(self) -> None:
        """Pass on again, first what was held."""
        self._do(self._hold(False))

    def cut(self) -> None:
        """Close all connections on both sides at once. New ones are taken."""
        self._do(self._cut())

    def refuse(self) -> None:
        """Cut all connections, and take no new ones."""
        self._do(self._refuse())

    def accept(self) -> None:
        """Take connections, at the same port as before."""
        self._do(self._accept())

    def _do(self, step: Coroutine[object, object, None]) -> None:
        asyncio.run_coroutine_threadsafe(step, self._loop).result()

    async def _hold(self, holds: bool) -> None:
        (self._goes.clear if holds else self._goes.set)()

    async def _accept(self) -> None:
        self._server = await asyncio.start_server(self._meet, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def _refuse(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._cut()
            await self._server.wait_closed()
            self._server = None

    async def _cut(self) -> None:
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _meet(self, asks: StreamReader, answers: StreamWriter) -> None:
        """Stand between a client and a connection of its own to the database, until either ends it."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        ends = [answers]
        try:
            with suppress(ConnectionError, FileNotFoundError, asyncio.IncompleteReadError):
                first = await _first(asks, answers)
                await self._goes.wait()
                source, target = await asyncio.open_unix_connection(self._socket())
                ends.append(target)
                target.write(first)
                known = _Session()
                await _until_either(self._requests(asks, target, known), self._answers(source, answers, known))
            for end in ends:
                with suppress(ConnectionError):
                    end.close()
                    await end.wait_closed()
        except asyncio.CancelledError:
            pass  # the connection is cut, and nobody waits for this task
        finally:
            for end in ends:
                end.transport.abort()
            self._tasks.discard(task)

    def _socket(self) -> str:
        query = dict(parse_qsl(urlsplit(self.behind).query))
        return f"{query['host']}/.s.PGSQL.{query.get('port', 5432)}"

    async def _requests(self, source: StreamReader, target: StreamWriter, known: _Session) -> None:
        while True:
            head, body = await _message(source)
            query = {b"Q": body, b"P": body.partition(b"\0")[2]}.get(head[:1], b"")  # after the name of the statement
            word = query.split(maxsplit=1)[0].strip(b";\0").upper() if query.strip(b" \0") else b""
            if not known.is_in_block and any(call in query for call in self.calls):
                known.has_called = True
            commits = word == b"COMMIT" or (not known.is_in_block and (known.has_called or word in _WRITES))
            if commits and self.loss is Loss.REQUEST:
                self.loss = None
                return
            await self._goes.wait()
            target.write(head + body)
            await target.drain()

    async def _answers(self, source: StreamReader, target: StreamWriter, known: _Session) -> None:
        while True:
            head, body = await _message(source)
            is_over = False
            match head[:1]:
                case b"C":  # a command is complete: its tag
                    word = body.rstrip(b"\0").partition(b" ")[0]
                    is_over = word == b"COMMIT"
                    wrote = not known.is_in_block and (word in _WRITES or (word == b"SELECT" and known.has_called))
                    known.has_written = word not in _BEGINS | _ENDS and (known.has_written or wrote)
                    known.is_in_block = word in _BEGINS or (known.is_in_block and word not in _ENDS)
                case b"Z":  # ready for the next; what was written outside a block is committed by now
                    is_over = known.has_written
                    known.has_called = known.has_written = False
                    known.is_in_block = body != b"I"
                case b"E":
                    known.has_written = False
                case _:
                    pass
            if is_over:
                self.commits += 1
                if self.loss is Loss.ANSWER:
                    self.loss = None
                    return
                await asyncio.sleep(self.commit_s)
            await self._goes.wait()
            target.write(head + body)
            await target.drain()


async def _first(source: StreamReader, target: StreamWriter) -> bytes:
    """Refuse encryption; the message after that, which says who connects, or what is to be cancelled."""
    while True:
        size = await source.readexactly(4)
        body = await source.readexactly(int.from_bytes(size) - 4)
        if int.from_bytes(body[:4]) not in _ENCRYPTION:
            return size + body
        target.write(b"N")


async def _message(source: StreamReader) -> tuple[bytes, bytes]:
    """Its head, a letter and its size, and its body."""
    head = await source.readexactly(5)
    return head, await source.readexactly(int.from_bytes(head[1:]) - 4)


async def _until_either(*ways: Coroutine[object, object, None]) -> None:
    """Run both directions until one is at its end."""
    tasks = [asyncio.create_task(way) for way in ways]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for error in ended:
        if isinstance(error, Exception):
            raise error


@contextmanager
def slow_database(url: str, commit_s: float = 0.0, *calls: str) -> Generator[Proxy]:
    """Stand before the cluster of a URL, whose socket it names, in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, name="proxy of a database")
    thread.start()
    proxy = Proxy(url, tuple(call.encode() for call in calls), commit_s, loop)
    try:
        proxy.accept()
        proxy.release()
        yield proxy
        proxy.refuse()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
