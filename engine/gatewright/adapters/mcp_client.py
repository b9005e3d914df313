"""A client of one MCP server, over stdio or streamable HTTP, and the life of that server.

Everything runs in the process's loop thread, and any loop may await any method. The client reads answers as raw JSON,
so that one bad tool does not lose the others, and bounds everything that a server sends. A request of the server
(sampling, roots, elicitation) gets an error and a note. It has more than 450 lines because it tells the whole life of
one connection.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import field, replace
from enum import StrEnum
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, cast

from gatewright.adapters.mcp_transport import (
    UNREADABLE,
    Confined,
    Connection,
    Endpoint,
    Receiver,
    Sender,
    ServerFailed,
    failure_of,
    over_http,
    over_stdio,
    quieten_library,
)
from gatewright.adapters.server_process import Command, call_in, loop_thread
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.printable import printable
from gatewright.gate.scrub import Secrets
from gatewright.record.process import renew_after_fork
from gatewright.tools.context import Progress

if TYPE_CHECKING:
    from anyio.abc import TaskStatus
    from mcp.shared.dispatcher import CallOptions, DispatchContext, ProgressFnT
    from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
    from mcp.shared.transport_context import TransportContext


MAX_TOOLS = 5_000
MAX_PAGES = 500
MAX_LIST_BYTES = 8 * 1024 * 1024
MAX_UNSENT = 1_000
"""The most answers that wait for a server which reads nothing; with more the client leaves."""
_ENDED = "[gatewright] "
"""The beginning of our own lines in a server's standard error, one each time the server ends."""
_FORGOTTEN = "Session terminated"
_HTTP_REFUSALS = ("Server returned an error response", "Not Found", _FORGOTTEN)
"""The library's words in place of an HTTP status."""
_BROKEN = (
    "SSE stream ",
    "Failed to parse ",
    "Unexpected content type",
    "server answered a request with 202",
    "Redirect to ",
)
"""Beginnings of the library's words about an invalid answer over HTTP."""
_CLOSED = -32000
"""The library's code for requests after the end of a connection."""
BACK_OFF_S = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
STEADY_S = 60.0
"""A server that ran this long restarts at once after its end."""
PROGRESS_S = 0.05
"""The shortest time between two reports of progress."""


@frozen
class Patience:
    """Limits in seconds: from a server's start to the end of its list, for a list alone, and for the age of a list.

    The installation of a server does not count.
    """

    start_s: float = 60.0
    list_s: float = 30.0
    stale_s: float = 90.0


class ServerStatus(StrEnum):
    """The stage of a server's life."""

    NOT_TRUSTED = "not-trusted"
    STOPPED = "stopped"
    STARTING = "starting"
    RUNNING = "running"
    RESTARTING = "restarting"
    FAILED = "failed"


@frozen
class ServerState:
    """``reason`` and ``advice`` of a failed or untrusted server: what happened, and what to do.

    For a starting server ``reason`` names what it waits for. ``notes``: other facts about the present connection for
    the operator, such as refused requests.
    """

    status: ServerStatus = ServerStatus.STOPPED
    reason: str = ""
    advice: str = ""
    notes: tuple[str, ...] = ()


class ServerRefused(Exception):
    """A server answered a request with its own error; the text is the server's."""


@frozen
class ServerList:
    """A server's description of itself and its tools: raw JSON, the tools as listed."""

    name: str
    version: str
    instructions: str
    tools: tuple[JsonValue, ...] = field(hash=False)


class _Run(Connection):
    """One connection, from its start to its end."""

    def __init__(self, secrets: Secrets) -> None:
        super().__init__(secrets)
        self.ready: asyncio.Future[JSONRPCDispatcher] = asyncio.get_running_loop().create_future()
        self.ready.add_done_callback(lambda done: done.cancelled() or done.exception())
        self.owner: asyncio.Task[None] | None = None
        self.failed: ServerFailed | None = None
        self.headers: dict[str, str] = {}
        self.is_http = False
        self.list = ServerList("", "", "", ())
        self.listed_s = self.began_s = time.monotonic()
        self.has_changed = False
        self.has_target = False
        self.listing = asyncio.Lock()
        self.sender: Sender | None = None

    async def answer(
        self, _: DispatchContext[TransportContext], method: str, __: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Answer a server's request: a ping succeeds, everything else is refused."""
        from mcp.shared.exceptions import MCPError
        from mcp_types import METHOD_NOT_FOUND

        if self.sender is not None and self.sender.waiting > MAX_UNSENT:
            self.leave("asked more than it reads answers")
        if method == "ping":
            return {}
        self.note(f"asked for `{printable(self.secrets.out_of(method))[:80]}`, which is not on offer")
        raise MCPError(METHOD_NOT_FOUND, "gatewright offers no sampling, roots or elicitation")

    async def notice(self, _: DispatchContext[TransportContext], method: str, __: Mapping[str, Any] | None) -> None:
        """Note a change of the tool list; drop other notices."""
        if method == "notifications/tools/list_changed":
            self.has_changed = True


Reached = Command | Confined | Endpoint
Target = Reached | AbstractAsyncContextManager[Reached]
"""Prepares the server to start or reach when the context begins, and releases it at the end."""


class McpServer:
    """One server. Each start calls ``target`` for its command or address; it may raise ServerFailed.

    Each change of ``state`` calls ``on_change`` in the loop thread.
    """

    def __init__(
        self,
        target: Callable[[], Target],
        on_change: Callable[[], None] = lambda: None,
        patience: Patience | None = None,
    ) -> None:
        self._target, self._on_change, self._patience = target, on_change, patience or Patience()
        self._state = ServerState()
        self._stderr = bytearray()
        self._secrets = Secrets()
        self._run: _Run | None = None
        self._failures, self._next_start_s = 0, 0.0
        self.advice = ""
        """Advice for a failure of ``target``, instead of its own."""
        renew_after_fork(self)

    def renew(self) -> None:
        """Start afresh in the child of a fork: the parent keeps the connection."""
        self._run, self._state = None, ServerState()

    @property
    def state(self) -> ServerState:
        """The present state; any thread may read it."""
        run = self._run
        return self._state if run is None else replace(self._state, notes=run.note_words())

    @property
    def stderr(self) -> str:
        """The last 64 KiB of its standard error over all starts, as printable text."""
        return printable(self._secrets.out_of(bytes(self._stderr).decode("utf-8", "replace")), keep="\n\t")

    async def start(self) -> None:
        """Connect at once, despite earlier failures. Raises ServerFailed."""
        await loop_thread().run(self._start())

    async def stop(self) -> None:
        """Disconnect, and end the process with its descendants. Waiting calls fail."""
        await loop_thread().run(self._stop())

    def begin_stop(self) -> None:
        """Disconnect without waiting for the end."""
        if self._run is not None:
            loop_thread().begin(self._stop())

    def close(self) -> None:
        """Disconnect without a loop; wait a few seconds at most."""
        if self._run is not None:
            with suppress(TimeoutError):
                loop_thread().wait(self._stop(), timeout_s=10.0)

    def tell(self, words: str) -> None:
        """Report what a starting server waits for; for ``target``, which runs in the loop thread."""
        self._say(replace(self._state, reason=words))

    async def restart(self) -> None:
        """Stop a running server, then start it. Raises ServerFailed."""
        await self.stop()
        await self.start()

    async def list(self) -> ServerList:
        """Return its list; ask anew after a notice of change, or after a while. Raises ServerFailed."""
        return await loop_thread().run(self._list())

    async def call(
        self, name: str, arguments: Mapping[str, JsonValue], *, on_progress: Progress | None = None
    ) -> dict[str, JsonValue]:
        """Call a tool and return the server's whole `CallToolResult`. Cancelling the wait cancels the call there.

        ``on_progress`` is called in the caller's loop. Raises ServerFailed, and ServerRefused if the server answers
        with a protocol error.
        """
        tell = None if on_progress is None else call_in(asyncio.get_running_loop(), on_progress)
        return await loop_thread().run(self._call(name, arguments, tell))

    # everything below runs in the loop thread

    async def _start(self) -> None:
        self._failures, self._next_start_s = 0, 0.0
        await self._connect()

    async def _stop(self) -> None:
        run = self._run
        if run is not None and run.owner is not None:
            run.is_stopped = True
            run.end.set()
            if not run.has_target:
                run.owner.cancel()
            await asyncio.wait({run.owner})

    async def _connect(self) -> tuple[_Run, JSONRPCDispatcher]:
        """Return the present connection, or open one. Raises ServerFailed."""
        while (run := self._run) is not None and run.end.is_set() and run.owner is not None:
            await asyncio.wait({run.owner})
        if run is None:
            wait_s = self._next_start_s - time.monotonic()
            if wait_s > 0:
                last = f"{self._state.reason} (failure {self._failures} in a row)"
                raise ServerFailed(last, f"the next attempt is in {max(1, round(wait_s))} s, or restart it yourself")
            run = self._run = _Run(self._secrets)
            self._say(ServerState(ServerStatus.RESTARTING if self._failures else ServerStatus.STARTING))
            run.owner = asyncio.create_task(self._own(run))
        return run, await asyncio.shield(run.ready)

    def _say(self, state: ServerState) -> None:
        self._state = state
        self._on_change()

    async def _own(self, run: _Run) -> None:
        """Open, hold and close one connection, all in one task."""
        try:
            target = self._target()
            opened = target if isinstance(target, AbstractAsyncContextManager) else nullcontext(target)
            async with opened as reached:
                run.has_target = True
                await self._live(run, reached)
        except ServerFailed as error:
            run.failed = error
        except asyncio.CancelledError:
            if not run.is_stopped or run.has_target:
                raise
        except ModuleNotFoundError as error:
            run.failed = ServerFailed(f"`{error.name}` is not installed", "install `gatewright[mcp]`")
        except Exception as error:  # noqa: BLE001 an error of a transport ends this connection only
            run.failed = failure_of(error, self._secrets)
        run.end.set()
        if run.why_it_ended:
            run.failed = ServerFailed(f"the server {run.why_it_ended}", self._last_words())
        if run.failed is not None:
            run.failed = run.failed.with_advice(self.advice)
        if run.is_stopped:
            run.failed = None
        self._run = None
        if run.failed is None:
            self._say(ServerState())
        else:
            is_steady = run.ready.done() and time.monotonic() - run.began_s > STEADY_S
            self._failures = 1 if is_steady else self._failures + 1
            self._next_start_s = time.monotonic() + BACK_OFF_S[min(self._failures, len(BACK_OFF_S)) - 1]
            words = (run.failed.reason, run.failed.advice)
            self._stderr += f"{_ENDED}{run.failed.reason}\n".encode()
            self._say(ServerState(ServerStatus.FAILED, *words, run.note_words()))
        if not run.ready.done():
            run.ready.set_exception(run.failed or ServerFailed("the server was stopped"))

    async def _live(self, run: _Run, target: Reached) -> None:
        from anyio import TASK_STATUS_IGNORED, create_task_group, fail_after
        from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

        run.is_http = isinstance(target, Endpoint)
        quieten_library()
        if isinstance(target, Endpoint):
            self._secrets.add(target.headers.values())
            opened = over_http(target, run)
        else:
            command, room = (target.command, target.room) if isinstance(target, Confined) else (target, None)
            self._secrets.add(command.secrets)
            opened = over_stdio(command, run, self._stderr, room)
        async with opened as (read, sink):
            run.sender = Sender(sink)
            dispatcher: JSONRPCDispatcher = JSONRPCDispatcher(Receiver(read, run), run.sender)

            async def run_to_its_end(*, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
                try:
                    await dispatcher.run(run.answer, run.notice, task_status=task_status)
                finally:
                    run.end.set()

            async with create_task_group() as tasks:
                await tasks.start(run_to_its_end)
                try:
                    with fail_after(self._patience.start_s):
                        await self._greet(run, dispatcher)
                except TimeoutError:
                    late = f"the server did not answer within {self._patience.start_s:g} s"
                    raise ServerFailed(late, self._last_words()) from None
                run.began_s = time.monotonic()
                run.ready.set_result(dispatcher)
                self._say(ServerState(ServerStatus.RUNNING))
                await run.end.wait()
                run.leave("ended the connection")
                tasks.cancel_scope.cancel()

    async def _greet(self, run: _Run, dispatcher: JSONRPCDispatcher) -> None:
        """Shake hands, then fetch the list of tools."""
        from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION

        us = {"name": "gatewright", "version": version("gatewright")}
        offer = {"protocolVersion": LATEST_HANDSHAKE_VERSION, "capabilities": {}, "clientInfo": us}
        answer = await self._ask(run, dispatcher, "initialize", offer)
        spoken = _text(answer.get("protocolVersion"))
        if spoken not in HANDSHAKE_PROTOCOL_VERSIONS:
            raise ServerFailed(
                f"the server speaks version `{self._secrets.out_of(spoken)[:40]}` of the protocol",
                f"use one that speaks one of {', '.join(HANDSHAKE_PROTOCOL_VERSIONS)}",
            )
        run.headers = {"mcp-protocol-version": spoken}
        await dispatcher.notify("notifications/initialized", None, {"headers": run.headers})
        about = _object(answer.get("serverInfo"))
        said = about.get("name"), about.get("version"), answer.get("instructions")
        name, spoken, instructions = (self._secrets.out_of(_text(one)) for one in said)
        run.list = ServerList(name, spoken, instructions, ())
        if "tools" in _object(answer.get("capabilities")):
            await self._relist(run, dispatcher)

    async def _list(self) -> ServerList:
        from anyio import fail_after

        run, dispatcher = await self._connect()
        async with run.listing:
            if run.has_changed or time.monotonic() - run.listed_s > self._patience.stale_s:
                try:
                    with fail_after(self._patience.list_s):
                        await self._relist(run, dispatcher)
                except TimeoutError:
                    late = f"the server did not list its tools within {self._patience.list_s:g} s"
                    raise ServerFailed(late, "restart it") from None
        return run.list

    async def _relist(self, run: _Run, dispatcher: JSONRPCDispatcher) -> None:
        tools: list[JsonValue] = []
        run.has_changed, cursor, size = False, None, 0
        for _ in range(MAX_PAGES):
            page = await self._ask(run, dispatcher, "tools/list", {} if cursor is None else {"cursor": cursor})
            rows = page.get("tools")
            if not isinstance(rows, list):
                raise ServerFailed("the answer of the server to `tools/list` holds no list of tools")
            rows = cast("list[JsonValue]", self._secrets.out_of_value(cast("JsonValue", rows)))
            size += len(json.dumps(rows))
            tools += rows
            if size > MAX_LIST_BYTES or len(tools) > MAX_TOOLS:
                most = f"{MAX_TOOLS:,} tools or {MAX_LIST_BYTES // 1024 // 1024} MiB of definitions"
                raise ServerFailed(f"the server lists more than {most}")
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str):
                run.list, run.listed_s = replace(run.list, tools=tuple(tools)), time.monotonic()
                return
        raise ServerFailed(f"the server lists its tools on more than {MAX_PAGES} pages")

    async def _call(
        self, name: str, arguments: Mapping[str, JsonValue], on_progress: Callable[..., None] | None
    ) -> dict[str, JsonValue]:
        run, dispatcher = await self._connect()
        told_s = 0.0

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            nonlocal told_s
            if on_progress is not None and time.monotonic() - told_s >= PROGRESS_S:
                told_s = time.monotonic()
                on_progress(progress, total, None if message is None else self._secrets.out_of(message))

        params = {"name": name, "arguments": dict(arguments)}
        answer = await self._ask(run, dispatcher, "tools/call", params, tell if on_progress is not None else None)
        return cast("dict[str, JsonValue]", self._secrets.out_of_value(cast("JsonValue", answer)))

    async def _ask(
        self,
        run: _Run,
        dispatcher: JSONRPCDispatcher,
        method: str,
        params: Mapping[str, object],
        on_progress: ProgressFnT | None = None,
    ) -> dict[str, object]:
        """Send a request, and explain a failure in plain words. Raises ServerFailed, for a call also ServerRefused."""
        from mcp.shared.exceptions import MCPError

        options: CallOptions = {"cancel_on_abandon": method != "initialize", "headers": run.headers}
        if on_progress is not None:
            options["on_progress"] = on_progress
        try:
            return await dispatcher.send_raw_request(method, params, options)
        except MCPError as error:
            text = printable(self._secrets.out_of(error.message or _text(error.data)))[:2_000]
            if error.code == _CLOSED and text == "Connection closed":
                if run.owner is not None and run.owner is not asyncio.current_task():
                    await asyncio.wait({run.owner})
                failed = run.failed or ServerFailed("the server was stopped")
                raise ServerFailed(f"{failed.reason} during `{method}`", failed.advice) from None
            if text == UNREADABLE:
                words = f"the server answered `{method}` with something that is no message of the protocol"
                raise ServerFailed(words, self._last_words()) from None
            if method != "tools/call":
                is_locked = run.refusal.startswith(("HTTP status 401", "HTTP status 403"))
                advice = "it may want a token: see `headers_env`" if is_locked else self._last_words()
                said = run.refusal if text in _HTTP_REFUSALS else text
                raise ServerFailed(f"the server refused `{method}`: {said}", advice) from None
            if run.is_http and text == _FORGOTTEN:
                run.leave("has forgotten the session, as after a restart")
                raise ServerFailed("the server has forgotten the session, as after a restart") from None
            if run.is_http and (text in _HTTP_REFUSALS or text.startswith(_BROKEN)):
                raise ServerFailed(f"the server did not answer `{method}`: {run.refusal or text}") from None
            raise ServerRefused(text) from None

    def _last_words(self) -> str:
        lines = [line.strip() for line in self.stderr.splitlines() if line.strip()]
        return f"it last wrote `{lines[-1][:300]}`" if lines and not lines[-1].startswith(_ENDED) else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _object(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
