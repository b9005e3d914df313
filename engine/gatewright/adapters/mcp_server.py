"""One agent's tools as an MCP server: its calls go through the gate, its transport is the standard streams.

It has more than 450 lines because server and transport end each other. Standard output carries only the protocol: while
the server runs, other output goes to standard error. The SDK's own transport accepts lines of any length, and cannot
end while it waits for one.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import threading
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, suppress
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    CallToolRequestParams,
    CallToolResult,
    ErrorData,
    InputRequiredResult,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    PaginatedRequestParams,
    RequestId,
    jsonrpc_message_adapter,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from gatewright.adapters.mcp_call import Call, OperatorConsent, UserConsent, elicit, result_of, text_block
from gatewright.base.amount import new_id
from gatewright.base.errors import WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.gate import AgentView, ApprovalLimits, Approver, Gate, PermissionBroker, Session, Status
from gatewright.gate.sessionstore import ClientSession
from gatewright.policy.verdict import split_name
from gatewright.schema import SchemaChecker
from gatewright.schema.walk import linear_part
from gatewright.tools import ToolExecutionContext
from gatewright.tools.server_tool import ServerTool

if TYPE_CHECKING:
    from gatewright.gate import Outcome


if TYPE_CHECKING:
    Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]

LONGEST_LINE = 5 * 1024 * 1024
"""The most bytes in one message, somewhat more than the gate accepts as arguments."""
MOST_REQUESTS = 200
"""The most waiting requests at once; others are refused."""
DRAIN_S = 2.0
"""The time in s for running requests after the client has closed its end."""
_CHUNK = 1 << 16
_MOST_TOLD = 10
_log = logging.getLogger(__name__)


@asynccontextmanager
async def stdio_streams() -> AsyncGenerator[Streams]:
    """Open the server's streams over standard input and output, and redirect other output meanwhile."""
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
    """Replaces a standard stream by ``instead`` until the end, and yields a private copy of it."""

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
        """Begin to read and write.

        The threads end with the process, since nothing wakes a thread that waits for a pipe.
        """
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
        """Write lines in a thread; drop them once nobody reads any more."""
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
        """Read lines in a thread, and pass on one at a time, so that no queue grows."""
        with suppress(RuntimeError, CancelledError):  # the loop has closed, or is closing
            for line in _lines(self._source):
                if line is None or line.strip():
                    asyncio.run_coroutine_threadsafe(self._take(line), self._loop).result()
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()

    async def _take(self, line: bytes | None) -> None:
        """Pass a message to the server, or answer an invalid one directly."""
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
        """End after the client has closed its end; running requests get a moment to finish."""
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


SILENT_S = 30 * 60.0
"""The seconds after which a silent HTTP client without a connection counts as gone."""
CONTINUE_KEY = "gatewright/should_continue"
"""The key in the ``_meta`` of a result after which the agent's loop must end: its value is then false."""
_LONGEST_NAME = 200
_MOST_LISTENING = 64
_MOST_NAMED = 100
_MOST_ASKED = 50


@frozen
class Caller:
    """The party that a server serves: an agent, perhaps a user, and the session in which its calls count.

    ``elicit``: questions go to the client's user if the client can ask, and not to the operator. ``token_id``: the
    token that its clients present over HTTP.
    """

    agent_id: str
    session: Session
    user_id: str | None = None
    elicit: bool = False
    token_id: str | None = None


class _Client:
    """The facts about a connected client. ``waits``: digests of its calls that wait for the operator."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.since_wall_s = self.heard_wall_s = time.time()
        self.calls = self.denied = 0
        self.waits: list[str] = []


class AgentServer:
    """The server of one caller, with any number of connections. ``broker``: asks the operator about a call."""

    def __init__(self, gate: Gate, caller: Caller, broker: PermissionBroker | None = None) -> None:
        self._gate = gate
        self._caller = caller
        self._broker = broker
        self._bus = InMemorySubscriptionBus()
        self._clients: dict[Connection | str, _Client] = {}
        self._asked: dict[str, Call] = {}
        self._seen = self._view()
        self._shown: _Shown | None = None
        self.server = _ToolServer(
            "gatewright",
            version=version("gatewright"),
            instructions=self._instructions(),
            get_tool_input_schema=self._input_schema,
            on_call_tool=self._call,
            on_subscriptions_listen=ListenHandler(self._bus, max_subscriptions=_MOST_LISTENING),
        )
        self.server.add_request_handler("tools/list", PaginatedRequestParams, self._list)
        self.server.middleware.append(self._hear)

    async def refresh(self) -> None:
        """Notify every client if its tools have changed since the last call of this."""
        before, now = self._seen, self._view()
        if now is before:
            return
        self._seen = now
        self.server.instructions = self._instructions()
        if _tools(before) == _tools(now):
            return
        await self._bus.publish(ToolsListChanged())
        for connection in tuple(self._clients):
            if not isinstance(connection, str):
                await connection.send_tool_list_changed()

    @property
    def clients(self) -> tuple[ClientSession, ...]:
        """The connected clients, the earliest first."""
        caller, silent_s = self._caller, time.time() - SILENT_S
        if caller.token_id is not None:
            for key, one in tuple(self._clients.items()):
                if isinstance(key, str) and not one.waits and one.heard_wall_s < silent_s:
                    del self._clients[key]
        names = caller.agent_id, caller.session.session_id, caller.user_id, caller.token_id
        return tuple(
            ClientSession(one.name, *names, one.since_wall_s, one.calls, one.denied, tuple(one.waits))
            for one in self._clients.values()
        )

    def _instructions(self) -> str | None:
        return self._seen.instructions or None if self._seen is not None else None

    async def _hear(self, ctx: ServerRequestContext[dict[str, Any], Any], call_next: CallNext) -> HandlerResult:
        """Count each message as a sign of life, except the first of a handshake."""
        if ctx.method != "initialize":
            self._client(ctx)
        return await call_next(ctx)

    def _client(self, context: ServerRequestContext) -> _Client:
        """Return a message's client, known by its connection or, if each request has its own connection, by name."""
        known, connection = context.session.client_params, context.session._connection  # pyright: ignore[reportPrivateUsage]
        name = f"{known.client_info.name} {known.client_info.version}"[:_LONGEST_NAME].strip() if known else ""
        key = name if context.protocol_version in MODERN_PROTOCOL_VERSIONS else connection
        found = self._clients.get(key)
        if found is None:
            found = self._clients[key] = _Client(name)
            if isinstance(key, str):
                named = [one for one in self._clients if isinstance(one, str)]
                for oldest in named[:-_MOST_NAMED]:
                    del self._clients[oldest]
            else:
                connection.exit_stack.callback(self._clients.pop, key, None)
        found.heard_wall_s = time.time()
        return found

    def _view(self) -> AgentView | None:
        """Return the agent's present view; None once an edit removed the agent."""
        try:
            return self._gate.view(self._caller.agent_id)
        except WorkspaceError:
            return None

    def _input_schema(self, name: str) -> Mapping[str, Any] | None:
        """Return a listed tool's schema; over HTTP the SDK needs it at each call, and would otherwise list all
        tools.
        """
        tool = self._tools_for(self._view()).tools.get(name)
        return None if tool is None else tool["inputSchema"]

    def _tools_for(self, view: AgentView | None) -> _Shown:
        if self._shown is None or self._shown.view is not view:
            self._shown = _Shown(view)
        return self._shown

    async def _list(self, _context: ServerRequestContext, _params: PaginatedRequestParams) -> dict[str, Any]:
        return {"tools": _tools(self._view()), "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}

    async def _call(
        self, context: ServerRequestContext, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        call = self._asked.get(params.request_state or "")
        if call is not None and (call.params.name, call.params.arguments) == (params.name, params.arguments):
            del self._asked[params.request_state or ""]
            call.answer(context, params)
        else:
            call = Call(context, params)
            call.task = asyncio.ensure_future(self._run(call, context, self._client(context)))
        try:
            await call.wait()
            await call.progress.flush()
        finally:
            call.progress.stop()
        if call.task.done():
            return call.task.result()
        state = new_id("question")
        self._asked[state] = call
        call.task.add_done_callback(lambda _: self._asked.pop(state, None))
        return call.question_as_result(state)

    async def _run(self, call: Call, context: ServerRequestContext, client: _Client) -> CallToolResult:
        view, tool, arguments = self._view(), call.params.name, call.params.arguments or {}
        if view is not None:
            tool, arguments = view.restore("mcp", tool, arguments)
        caller = self._caller
        client.calls += 1
        if not caller.session.should_continue:
            caller.session.begin_turn()
        told = call.progress.pass_on if call.progress.is_wanted else None
        made_for = ToolExecutionContext(caller.agent_id, "", user_id=caller.user_id, client=client.name, progress=told)
        outcome = await self._gate.call(
            caller.agent_id,
            tool,
            arguments,
            session=caller.session,
            context=made_for,
            approver=self._consent(context, client, call),
        )
        client.denied += outcome.status in (Status.DENIED, Status.UNANSWERED)
        result = await self._result(call.params.name, tool, outcome, view)
        if not result.is_error and self._view() is not None:
            result.content += map(text_block, self._gate.reminders(caller.agent_id, caller.session))
        if not outcome.should_continue:
            result.meta = {**(result.meta or {}), CONTINUE_KEY: False}
        return result

    async def withdraw(self) -> None:
        """End the calls that wait for an answer of a client's user: nobody will send them again."""
        tasks = {call.task for call in self._asked.values()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _consent(self, context: ServerRequestContext, client: _Client, call: Call) -> Approver | None:
        """Return the approver for a call that asks."""
        known = context.session.client_capabilities
        if self._caller.elicit and known is not None and known.elicitation is not None:
            wait_s = self._broker.wait_s if self._broker is not None else ApprovalLimits().timeout_s
            if context.session.can_send_request:
                return UserConsent(partial(elicit, context), client.name, call.progress, wait_s)
            if context.protocol_version in MODERN_PROTOCOL_VERSIONS and len(self._asked) < _MOST_ASKED:
                return UserConsent(call.ask, client.name, call.progress, wait_s)
        return OperatorConsent(self._broker, call.progress, client.waits) if self._broker is not None else None

    async def _result(self, shown: str, tool: str, outcome: Outcome, view: AgentView | None) -> CallToolResult:
        """Return the answer for a client that saw ``view``, in which the tool is called ``shown``."""
        snapshot = self._gate.snapshot()
        return await result_of(
            outcome,
            from_server=isinstance(snapshot.registry.get(*split_name(tool)), ServerTool),
            promise=self._tools_for(view).promise(shown),
            max_bytes=snapshot.policy.defaults.max_output_bytes,
        )


class _Shown:
    """The tools of a view as clients get them, by name, with the output schemas of their results."""

    def __init__(self, view: AgentView | None) -> None:
        self.view = view
        self.tools = {str(tool["name"]): tool for tool in _tools(view)}
        self._promises: dict[str, SchemaChecker] = {}

    def promise(self, name: str) -> SchemaChecker | None:
        """Return the tool's output schema, compiled once; None without one."""
        schema = self.tools.get(name, {}).get("outputSchema")
        if schema is not None and name not in self._promises:
            self._promises[name] = SchemaChecker(linear_part(schema))
        return self._promises.get(name)


class _ToolServer(Server[dict[str, Any]]):
    """A server that announces to every client, on any transport, that its tools may change."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *rest: Any, **more: Any
    ) -> InitializationOptions:
        """Return the options for the handshake."""
        changes = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(changes, *rest, **more)


def _tools(view: AgentView | None) -> list[dict[str, Any]]:
    return view.tools("mcp") if view is not None else []
