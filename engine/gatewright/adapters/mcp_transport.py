"""The two ways to an MCP server: the standard streams of its process, and streamable HTTP.

Both are bounded: no message is longer than `MAX_LINE_BYTES`.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import field
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

from gatewright.adapters.confine import Room
from gatewright.adapters.server_process import LEAVE_S, LOOP_THREAD, MAX_LINE_BYTES, Command, LineTooLong, ServerProcess
from gatewright.base.errors import ToolFailure, WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.printable import printable
from gatewright.gate.scrub import Secrets

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage

    Streams = tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]

MAX_NOTES = 20
UNREADABLE = "its answer is no message of the protocol"
"""The answer in place of an unreadable one, so that nobody waits for another."""
_ANSWERED = re.compile(rb'"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,18})\b')
_LOGGERS = ("client", "mcp.client.streamable_http", "mcp.shared.jsonrpc_dispatcher")


@frozen
class Endpoint:
    """A server over streamable HTTP."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str], hash=False, repr=False)


@frozen
class Confined:
    """A server's process in a room."""

    command: Command
    room: Room = field(hash=False, repr=False)


class ServerFailed(WorkspaceError):
    """A server cannot start or be reached, or answers wrongly; ``advice`` says what to do."""

    def __init__(self, reason: str, advice: str = "") -> None:
        super().__init__(f"{reason}: {advice}" if advice else reason)
        self.reason, self.advice = reason, advice

    def with_advice(self, more: str) -> ServerFailed:
        """Return the same failure with more advice."""
        return type(self)(self.reason, "; ".join(filter(None, (self.advice, more))))


class NotConfined(ServerFailed):
    """A server that must not start, since nothing can enforce the policy for its process."""


class Connection:
    """The course of one connection to a server: how the server misbehaved, and why the connection ended.

    ``refusal``: the last HTTP status of an error. Its words are free of ``secrets``.
    """

    def __init__(self, secrets: Secrets) -> None:
        self.secrets = secrets
        self.end = asyncio.Event()
        self.is_stopped = False
        self.why_it_ended = ""
        self.refusal = ""
        self._notes: dict[str, int] = {}

    def note(self, text: str) -> None:
        """Note how the server misbehaved."""
        if text in self._notes or len(self._notes) < MAX_NOTES:
            self._notes[text] = self._notes.get(text, 0) + 1

    def leave(self, why: str) -> None:
        """End the connection; ``why``: what the server did."""
        if not self.is_stopped:
            self.why_it_ended = self.why_it_ended or why
        self.end.set()

    def note_words(self) -> tuple[str, ...]:
        """Return the notes; any thread may read them."""
        notes = [*self._notes.items()]
        return tuple(f"it {text}" if count == 1 else f"it {text} ({count:,} times)" for text, count in notes)


class Receiver:
    """The stream from a server, without answers to requests that nobody made: our ids are numbers, and `"2"` is
    not 2.

    The words of a refusal become its data: the library puts the message of an error into a span, and a server's may
    quote what it was sent.
    """

    def __init__(self, stream: ReadStream[SessionMessage | Exception], connection: Connection) -> None:
        self._stream = stream
        self._connection = connection

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        while True:
            item = await self._stream.receive()
            message = None if isinstance(item, Exception) else item.message
            if not isinstance(getattr(message, "id", None), str) or hasattr(message, "method"):
                refusal = getattr(message, "error", None)
                if refusal is not None:
                    refusal.data, refusal.message = refusal.message, ""
                return item
            self._connection.note("answered a request that nobody made")

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        from anyio import EndOfStream

        try:
            return await self.receive()
        except EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self._stream.__aexit__(exc_type, exc_val, exc_tb)


class Sender:
    """The stream to a server; it counts the messages that wait for a slow reader."""

    def __init__(self, stream: WriteStream[SessionMessage]) -> None:
        self._stream = stream
        self.waiting = 0

    async def send(self, item: SessionMessage, /) -> None:
        """Send an item and wait until it is taken."""
        self.waiting += 1
        try:
            await self._stream.send(item)
        finally:
            self.waiting -= 1

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        await self.aclose()


@asynccontextmanager
async def over_stdio(
    command: Command, connection: Connection, stderr: bytearray, room: Room | None = None
) -> AsyncGenerator[Streams]:
    """Start a process, in ``room`` if given, yield its streams of messages, and end everything that it started.

    Its standard error goes into ``stderr``. Raises ServerFailed if it cannot start.
    """
    from anyio import BrokenResourceError, ClosedResourceError, create_memory_object_stream, create_task_group
    from mcp.shared.message import SessionMessage
    from mcp_types import ErrorData, JSONRPCError, jsonrpc_message_adapter

    received, read = create_memory_object_stream[SessionMessage | Exception](0)
    write, unsent = create_memory_object_stream[SessionMessage](0)

    async def receive(process: ServerProcess) -> None:
        async with received:
            try:
                async for line in process.lines():
                    try:
                        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                    except ValueError:
                        if line.strip():
                            connection.note("wrote a line that is no message of the protocol")
                        answered = None if b'"method"' in line else _ANSWERED.search(line)
                        if answered is None:
                            continue
                        message = JSONRPCError(
                            jsonrpc="2.0", id=int(answered[1]), error=ErrorData(code=-32700, message=UNREADABLE)
                        )
                    await received.send(SessionMessage(message))
            except LineTooLong:
                connection.leave(f"sent a line of more than {MAX_LINE_BYTES // 1024 // 1024} MiB")
            except (BrokenResourceError, ClosedResourceError):
                return
            connection.leave(await end_of(process))

    async def watch(process: ServerProcess) -> None:
        await process.has_ended.wait()
        await asyncio.sleep(LEAVE_S)  # the reader takes its last output first
        connection.leave(await end_of(process))

    async def end_of(process: ServerProcess) -> str:
        why = process.why_ended
        return f"was ended: {why}" if why else await process.how_it_ended()

    async def send(process: ServerProcess) -> None:
        with suppress(OSError):  # the process stopped listening; the reader notices its end
            async with unsent:
                async for item in unsent:
                    await process.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode())

    async with AsyncExitStack() as stack:
        for stream in (received, read, write, unsent):
            stack.callback(stream.close)
        try:
            made = ServerProcess(command, stderr) if room is None else room.process(command, stderr)
            process = await stack.enter_async_context(made)
        except (OSError, ValueError) as error:
            raise _unstartable(command, error) from None
        except ToolFailure as error:
            raise NotConfined(str(error), error.detail) from None
        tasks = await stack.enter_async_context(create_task_group())
        for work in (receive, watch, send):
            tasks.start_soon(work, process)
        yield read, write
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def over_http(endpoint: Endpoint, connection: Connection) -> AsyncGenerator[Streams]:
    """Open the streams of messages of an endpoint; a failure raises a group of exceptions."""
    from httpx2 import AsyncByteStream, AsyncClient, Response, Timeout
    from mcp.client.streamable_http import streamable_http_client

    class Bounded(AsyncByteStream):
        """A body that is limited like one message."""

        def __init__(self, stream: AsyncByteStream) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in self._stream:
                size += len(chunk)
                if size > MAX_LINE_BYTES:
                    connection.leave(f"sent an answer of more than {MAX_LINE_BYTES // 1024 // 1024} MiB")
                    return
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def look_at(response: Response) -> None:
        if response.status_code >= 400 and response.request.method == "POST":
            said = printable(connection.secrets.out_of(response.reason_phrase))[:80]
            connection.refusal = f"HTTP status {response.status_code} {said}".strip()
        if response.headers.get("content-encoding", "identity") != "identity":
            raise ServerFailed("the server sends compressed answers, which nobody asked for")
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = Bounded(cast("AsyncByteStream", response.stream))

    headers = {**endpoint.headers, "accept-encoding": "identity"}
    timeout = Timeout(30.0, read=None)  # a call may take as long as its tool may
    async with (
        AsyncClient(headers=headers, timeout=timeout, event_hooks={"response": [look_at]}) as client,
        streamable_http_client(endpoint.url, http_client=client, max_sse_event_size=MAX_LINE_BYTES) as streams,
    ):
        yield streams


def _unstartable(command: Command, error: OSError | ValueError) -> ServerFailed:
    named = f"`{printable(command.command)}` cannot be started"
    if isinstance(error, FileNotFoundError) and command.cwd is not None and not command.cwd.is_dir():
        return ServerFailed(f"{named}: the folder `{command.cwd}` is missing")
    if isinstance(error, FileNotFoundError):
        return ServerFailed(f"{named}: this command does not exist", "install it, or write its full path")
    return ServerFailed(f"{named}: {(error.strerror if isinstance(error, OSError) else None) or error}")


def failure_of(error: BaseException, secrets: Secrets) -> ServerFailed:
    """Describe a transport's error without ``secrets``; of a group of errors the first."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    if isinstance(error, ServerFailed):
        return error
    words = printable(secrets.out_of(str(error)))[:300]
    return ServerFailed(f"the connection to the server failed: {words or type(error).__name__}")


def quieten_library() -> None:
    """Silence the library's log about our connections, whose state reports failures; others keep their rows."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_is_not_ours)


def _is_not_ours(row: logging.LogRecord) -> bool:
    return row.threadName != LOOP_THREAD
