"""The transport of an MCP server on this process's standard streams, bounded against broken and hostile clients.

Standard output carries only the protocol: while the server runs, other output goes to standard error. The SDK's own
transport accepts lines of any length, and cannot end while it waits for one.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import threading
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    RequestId,
    jsonrpc_message_adapter,
)

if TYPE_CHECKING:
    Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]

LONGEST_LINE = 5 * 1024 * 1024
"""Limit of bytes in one message: somewhat more than the gate takes as arguments."""
MOST_REQUESTS = 200
"""Limit of waiting requests; it refuses more at once."""
DRAIN_S = 2.0
"""Time in s for running requests after the client has closed its end."""
_CHUNK = 1 << 16
_MOST_TOLD = 10
_log = logging.getLogger(__name__)


@asynccontextmanager
async def stdio_streams() -> AsyncGenerator[Streams]:
    """Open the server's streams over standard input and output, and keep others off them meanwhile."""
    incoming_end, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, outgoing_end = anyio.create_memory_object_stream[SessionMessage](0)
    with _taken(0, os.open(os.devnull, os.O_RDONLY)) as source, _taken(1, os.dup(2)) as sink:
        transport = _Transport(source, sink, incoming_end)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(transport.write_all, outgoing_end)
            transport.start()
            try:
                yield incoming, outgoing
            except* anyio.BrokenResourceError:
                pass  # the server ended with a message inside
            finally:
                tasks.cancel_scope.cancel()


class _taken:  # noqa: N801 used as a function
    """A private copy of a standard stream; ``instead`` takes its place until the end."""

    def __init__(self, number: int, instead: int) -> None:
        self._number = number
        self._private = os.dup(number)
        os.dup2(instead, number)
        os.close(instead)

    def __enter__(self) -> int:
        return self._private

    def __exit__(self, *_: object) -> None:
        os.dup2(self._private, self._number)  # the copy stays open, since a thread may wait on it


class _Transport:
    """Lines in, lines out, by two threads, since a standard stream may be a pipe, a terminal or a file."""

    def __init__(self, source: int, sink: int, incoming: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        self._source, self._sink = source, sink
        self._incoming = incoming
        self._loop = asyncio.get_running_loop()
        self._waiting: set[RequestId] = set()
        self._is_idle = asyncio.Event()
        self._lines: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        self._is_broken = False
        self._refused = 0

    def start(self) -> None:
        """Begin to read and write. The threads end with the process: nothing wakes one that waits for a pipe."""
        threading.Thread(target=self._read_lines, name="mcp stdin", daemon=True).start()
        threading.Thread(target=self._write_lines, name="mcp stdout", daemon=True).start()

    async def write_all(self, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Write the server's messages, one after the other."""
        async with outgoing:
            async for sent in outgoing:
                await self._write(sent.message)
                answered = getattr(sent.message, "id", None)
                if answered is not None and not isinstance(sent.message, JSONRPCRequest):
                    self._settle(answered)

    async def _write(self, message: JSONRPCMessage) -> None:
        done: asyncio.Future[None] = self._loop.create_future()
        self._lines.put((message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n", done))
        await done

    def _settle(self, request_id: RequestId) -> None:
        self._waiting.discard(request_id)
        if not self._waiting:
            self._is_idle.set()

    def _write_lines(self) -> None:
        """Write lines in a thread; drop them once nobody reads."""
        while True:
            line, done = self._lines.get()
            try:
                while line and not self._is_broken:
                    line = line[os.write(self._sink, line) :]
            except OSError:
                self._is_broken = True
            with suppress(RuntimeError):  # the loop has closed
                self._loop.call_soon_threadsafe(_finish, done)

    def _read_lines(self) -> None:
        """Read lines in a thread, and hand over one at a time, so that nothing piles up."""
        with suppress(RuntimeError, CancelledError):  # the loop has closed, or is closing
            for line in _lines(self._source):
                if line is None or line.strip():
                    asyncio.run_coroutine_threadsafe(self._take(line), self._loop).result()
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()

    async def _take(self, line: bytes | None) -> None:
        """Hand a message to the server, or answer an invalid one directly."""
        if line is None:
            await self._refuse(None, INVALID_REQUEST, f"a message has at most {LONGEST_LINE:,} bytes")
            return
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            await self._refuse(None, PARSE_ERROR, "this is no JSON-RPC message")
            return
        if isinstance(message, JSONRPCRequest):
            if len(self._waiting) >= MOST_REQUESTS:
                await self._refuse(message.id, INVALID_REQUEST, "too many requests wait for their answer")
                return
            self._waiting.add(message.id)
            self._is_idle.clear()
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            cancelled = (message.params or {}).get("requestId")
            if isinstance(cancelled, (str, int)):
                self._settle(cancelled)  # it gets no answer now
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._incoming.send(SessionMessage(message))

    async def _refuse(self, request_id: RequestId | None, code: int, why: str) -> None:
        self._refused += 1
        if self._refused <= _MOST_TOLD:
            _log.warning("refused a message of the client: %s", why)
        elif self._refused == _MOST_TOLD + 1:
            _log.warning("further refusals are not logged")
        await self._write(JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=why)))

    async def _end(self) -> None:
        """End after the client closed its end; running requests get a moment to finish."""
        if self._waiting and not self._is_broken:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_idle.wait(), DRAIN_S)
        self._incoming.close()


def _finish(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)


def _lines(source: int) -> Iterator[bytes | None]:
    """Yield the lines of a stream to its end; None for a line that is too long and dropped."""
    held, is_long = bytearray(), False
    while chunk := _read(source):
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            held += end
            yield None if is_long or len(held) > LONGEST_LINE else bytes(held)
            held, is_long = bytearray(), False
        held += rest
        if len(held) > LONGEST_LINE:
            held, is_long = bytearray(), True
    if held:
        yield bytes(held)


def _read(source: int) -> bytes:
    try:
        return os.read(source, _CHUNK)
    except OSError:
        return b""
