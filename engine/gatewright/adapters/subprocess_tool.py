"""The contract of all executors of tools by their definitions, and the executor that starts a process for each call.

An adapter gets the accepted definition and the present, trusted catalog; the gate has already decided who may call with
which arguments.

Output is read within bounds, from a process or a module alike.

The process gets `{"tool": NAME, "arguments": {...}}` and the end of its input, and answers with one JSON value; a
stream with one on each line, a binary result with raw bytes. It runs in its own session, with the variables that its
catalog names and no others, in its agent's room (`confine`) unless the catalog opts out. Its use of resources is
bounded, and nothing of it outlives the call.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Hashable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from gatewright.adapters.confine import Confiner, Room
from gatewright.adapters.server_process import Command, LoopThread, ServerProcess, loop_thread
from gatewright.base.errors import RegistrationError, ToolFailure, WorkspaceError
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import in_own_thread
from gatewright.base.printable import printable
from gatewright.gate.scrub import Secrets
from gatewright.policy.document import Catalog, PlaceUse
from gatewright.policy.reach import exec_limits
from gatewright.policy.target import Confinement, ProcessBounds
from gatewright.schema.walk import as_list, as_object
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import ResultType
from gatewright.tools.definition import ToolDefinition
from gatewright.tools.result import MAX_RESULT_BYTES


class ToolAdapter(Protocol):
    """Executes the tools in catalogs of one type, in any thread and any loop."""

    def check(self, definition: ToolDefinition, /) -> None:
        """Raise RegistrationError for a definition with an unknown ``run``."""
        ...

    async def run(
        self,
        catalog: Catalog,
        definition: ToolDefinition,
        arguments: Mapping[str, JsonValue],
        context: ToolExecutionContext,
        /,
    ) -> object:
        """Execute one call; return a JSON value, bytes, or (for a stream) an iterator of its pieces. Raises
        ToolFailure.

        A cancellation ends everything that the call started. Raises WorkspaceError if something that it needs is
        missing.
        """
        ...

    def close(self) -> None:
        """End all running calls; wait a few seconds at most."""
        ...


T = TypeVar("T")
Take = Callable[[bytes], Awaitable[None]]
"""Takes a tool's output, piece by piece."""
Exchange = Callable[[Take, Callable[[], bytes]], Coroutine[Any, Any, None]]
"""Executes one call and gives its output to the first argument; the second returns the whole output, if stored.

Raises ToolFailure if the call fails.
"""
SAID_CHARS = 2_000
"""The most characters of a tool's words about its failure."""
FAILED = "the tool failed; do not make this call again as it is"
_MOST_WORDS = 100
_LARGE = 64 * 1024
"""The size in bytes from which a thread parses the JSON."""
_MOST_WAITING = 16
_NOT_STARTED = "the tool could not be started; try again later or go on without it"
_FLOOD = "the tool ran, but answered more than anybody can read; do not make this call again"
_NO_RESULT = "the tool ran, but its answer is not JSON; do not make this call again"


def call_text(definition: ToolDefinition, arguments: Mapping[str, JsonValue]) -> bytes:
    """Return the call in the form for a tool's standard input."""
    return json.dumps({"tool": definition.name, "arguments": arguments}, ensure_ascii=False).encode()


def own_words(definition: ToolDefinition, who: str, *others: str) -> tuple[str, ...]:
    """Return the words that a definition adds to its command, from `args` of `run`; ``others``: its other keys.

    Raises RegistrationError.
    """
    run, name = definition.run or {}, definition.name
    if unknown := sorted(run.keys() - {"args", *others}):
        keys = " and ".join(f"`{one}`" for one in ("args", *others))
        raise RegistrationError(f"tool `{name}`: `run` of a {who} has {keys}, and no `{unknown[0][:80]}`")
    words = as_list(run.get("args", []))
    if (
        words is None
        or len(words) > _MOST_WORDS
        or not all(isinstance(word, str) and "\0" not in word for word in words)
    ):
        raise RegistrationError(f"tool `{name}`: `args` of `run` is a list of at most {_MOST_WORDS} texts")
    return tuple(cast("list[str]", words))


async def answer(kind: ResultType, exchange: Exchange, *, apart: bool = True) -> object:
    """Execute one call and return a JSON value, bytes, or (for a stream) an iterator. Raises ToolFailure.

    A cancelled waiter continues once the exchange has ended. ``apart``: the exchange runs in the loop of the thread, as
    processes need it; else in the caller's loop.
    """
    there = loop_thread() if apart else _Here()
    if kind is ResultType.STREAM:
        return _lines(exchange, there)
    output = bytearray()

    async def take(chunk: bytes) -> None:
        output.extend(chunk)
        if len(output) > MAX_RESULT_BYTES:
            raise ToolFailure(_FLOOD, code="bad-result", detail=f"it wrote more than {MAX_RESULT_BYTES:,} bytes")

    await there.run_out(exchange(take, lambda: bytes(output)))
    return bytes(output) if kind is ResultType.BINARY else await _value(bytes(output))


def own_failure(data: bytes) -> str:
    """Return the reason that a tool wrote for the model, as `{"error": TEXT}`; empty without one."""
    try:
        said = (as_object(json.loads(data)) or {}).get("error") if len(data) <= _LARGE else None
    except (ValueError, RecursionError):
        return ""
    return said[:SAID_CHARS] if isinstance(said, str) else ""


class _Here:
    """Awaits work in the caller's loop, as `LoopThread` does in its own."""

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await ``work`` and return its result."""
        return await work

    run_out = run


async def _lines(exchange: Exchange, there: LoopThread | _Here) -> AsyncGenerator[JsonValue]:
    """Yield the values of a stream, one for each line; closing the generator ends the exchange."""
    lines: asyncio.Queue[list[bytes] | None] = asyncio.Queue(_MOST_WAITING)  # it belongs to the loop there
    line = bytearray()

    async def take(chunk: bytes) -> None:
        first, *others = chunk.split(b"\n")
        line.extend(first)
        whole = list[bytes]()
        if others:
            whole, line[:] = [bytes(line), *others[:-1]], others[-1]
        if len(line) > MAX_RESULT_BYTES:
            raise ToolFailure(_FLOOD, code="bad-result", detail=f"a line has more than {MAX_RESULT_BYTES:,} bytes")
        if whole:
            await lines.put(whole)

    async def produce() -> None:
        try:
            await exchange(take, bytes)
            await lines.put([bytes(line)])
        except ToolFailure:
            await lines.put(None)
            raise
        except WorkspaceError as error:
            await lines.put(None)
            raise ToolFailure(_NOT_STARTED, code="not-run", detail=str(error)) from None
        await lines.put(None)

    producing = asyncio.ensure_future(there.run_out(produce()))
    try:
        while (found := await there.run(lines.get())) is not None:
            for one in found:
                if one.strip():
                    yield await _value(one)
        await producing
    finally:
        producing.cancel()
        await asyncio.wait({producing})


async def _value(data: bytes) -> JsonValue:
    """Parse the JSON value of a tool. Raises ToolFailure."""
    try:
        return await in_own_thread(json.loads, data) if len(data) > _LARGE else json.loads(data)
    except (ValueError, RecursionError) as error:
        why = "nothing" if not data.strip() else f"{type(error).__name__}: {error}"
        raise ToolFailure(_NO_RESULT, code="bad-result", detail=f"it wrote no JSON: {why}"[:SAID_CHARS]) from None


IDLE_S = 1800.0
"""The seconds after which an unused process ends; its room stays twice as long, and then until it is empty."""


class KeptRooms:
    """The rooms of one kind of processes, all in one loop. ``confiner`` makes them."""

    def __init__(self, confiner: Callable[[], Confiner]) -> None:
        self._confiner = confiner
        self._kept: dict[Hashable, tuple[Room, float]] = {}
        self._turn: dict[Hashable, asyncio.Lock] = {}

    @property
    def rooms(self) -> tuple[Room, ...]:
        """The open rooms."""
        return tuple(room for room, _ in self._kept.values())

    async def room(self, key: Hashable, confinement: Confinement) -> Room:
        """Return the room of ``key``; if the confinement changed, a new one, and the old one's processes end."""
        async with self._turn.setdefault(key, asyncio.Lock()):
            now = time.monotonic()
            for one, (room, used_s) in [*self._kept.items()]:
                differs = room.confinement != confinement if one == key else now - used_s > 2 * IDLE_S
                if (room.is_over or differs) and self._kept.pop(one, None) is not None:
                    await room.close()
            room = self._kept[key][0] if key in self._kept else await self._confiner().room(confinement)
            self._kept[key] = room, now
            return room

    async def close(self) -> None:
        """End every room with all its processes."""
        while self._kept:
            await self._kept.popitem()[1][0].close()


_WHO = "command"
_DRAIN_S = 1.0
_PATH = "/usr/local/bin:/usr/bin:/bin"
_LIMITED = '{limits}exec "$@"'


class SubprocessTools:
    """The tools of one workspace, with its policy in ``folder``.

    ``confinement`` returns the restrictions of a catalog's process for an agent, None for none; ``confiner`` makes
    rooms of them. ``variables`` returns the values of a catalog's variables.
    """

    def __init__(
        self,
        folder: Path,
        confinement: Callable[[str, str], Confinement | None],
        confiner: Callable[[], Confiner],
        variables: Callable[[Catalog], Mapping[str, str]],
    ) -> None:
        self._folder, self._confinement, self._confiner, self._variables = folder, confinement, confiner, variables
        self._rooms = KeptRooms(confiner)

    def check(self, definition: ToolDefinition, /) -> None:
        """Accept ``args`` in ``run``: words behind the catalog's own."""
        own_words(definition, _WHO)
        if definition.conduct.bounds.network_bytes is not None:
            raise RegistrationError(f"tool `{definition.name}`: `network_bytes` cannot be limited for a process")

    async def run(
        self,
        catalog: Catalog,
        definition: ToolDefinition,
        arguments: Mapping[str, JsonValue],
        context: ToolExecutionContext,
        /,
    ) -> object:
        """Execute one call as `ToolAdapter` does."""
        call = _Call(catalog, definition, arguments, context, self._variables(catalog))
        return await answer(definition.conduct.result_type, partial(self._exchange, call))

    def close(self) -> None:
        """End every room; wait a few seconds at most."""
        if self._rooms.rooms:
            with suppress(TimeoutError):
                loop_thread().wait(self._rooms.close(), 5.0)

    async def _exchange(self, call: _Call, take: Take, said: Callable[[], bytes]) -> None:
        """Start a process, send the call and take its output; ``said``: the whole output, if stored.

        Raises ToolFailure if the call fails.
        """
        stderr = bytearray()
        try:
            async with self._process(call, stderr) as process:
                giving = asyncio.create_task(_give(process, call.given))
                reading = asyncio.create_task(_read(process, take))
                ended = asyncio.create_task(process.has_ended.wait())
                try:
                    await asyncio.wait({ended, reading}, return_when=asyncio.FIRST_COMPLETED)
                    if reading.done():
                        await reading  # a failure of it ends the process
                    await ended
                    process.kill_group()  # leftover processes keep its output open
                    with suppress(TimeoutError):
                        await asyncio.wait_for(reading, _DRAIN_S)
                finally:
                    process.kill_group()
                    for task in (giving, reading, ended):
                        task.cancel()
                    await asyncio.gather(giving, reading, ended, return_exceptions=True)
                code, how = process.returncode, await process.how_it_ended()
                why = process.why_ended
        except (OSError, ValueError) as error:
            raise WorkspaceError(f"`{call.words[0]}` cannot be started: {error}") from None
        if code != 0:
            detail = "; ".join(filter(None, (why or how, call.secrets.out_of(_text(stderr)))))
            raise ToolFailure(own_failure(said()) or FAILED, detail=detail)

    @asynccontextmanager
    async def _process(self, call: _Call, stderr: bytearray) -> AsyncGenerator[ServerProcess]:
        """Start the process of a call, in a room unless confinement is off. Raises ToolFailure, OSError, ValueError."""
        catalog, agent_id = call.catalog, call.context.agent_id
        confinement = self._confinement(agent_id, catalog.catalog_id)
        if confinement is None:
            call.tell("not confined, as the policy says")
            environment = {"PATH": os.environ.get("PATH", _PATH), "LANG": "C.UTF-8", **call.variables}
            script = _LIMITED.format(limits=_ulimits(call.bounds))
            words = ("/bin/sh", "-c", script, "sh", *call.words)
            command = Command(words[0], words[1:], environment, self._folder / (catalog.cwd or "."))
            async with ServerProcess(command, stderr, 0.0) as process:
                yield process
            return
        confinement = replace(confinement, bounds=call.bounds)
        is_kept = all(place.use is not PlaceUse.SNAPSHOT for place in confinement.places)
        key = (agent_id, catalog.catalog_id, call.definition.name)
        room = await (self._rooms.room(key, confinement) if is_kept else self._confiner().room(confinement))
        try:
            room.served.add(agent_id)
            await room.check()
            async with self._in_room(room, call, stderr) as process:
                call.tell("; ".join(room.words))
                yield process
        finally:
            if not is_kept:
                await room.close()

    @staticmethod
    def _in_room(room: Room, call: _Call, stderr: bytearray) -> ServerProcess:
        own = {name: value for name, value in call.variables.items() if name not in ("PATH", "HOME", "LANG")}
        return room.process(Command(call.words[0], call.words[1:], own, room.start), stderr, 0.0)


class _Call:
    """One call of a tool: the process to start, its input, and its limits."""

    def __init__(
        self,
        catalog: Catalog,
        definition: ToolDefinition,
        arguments: Mapping[str, JsonValue],
        context: ToolExecutionContext,
        variables: Mapping[str, str],
    ) -> None:
        self.catalog, self.definition, self.context, self.variables = catalog, definition, context, variables
        self.words = (catalog.command or "", *catalog.args, *own_words(definition, _WHO))
        self.given = call_text(definition, arguments)
        self.secrets = Secrets(variables.values())
        granted_cpu_s, granted_bytes = exec_limits(context.capabilities)
        cpu_s = _least(context.bounds.cpu_s, granted_cpu_s)
        memory = _least(context.bounds.memory_bytes, granted_bytes)
        self.bounds = ProcessBounds(cpu_s, None if memory is None else int(memory))

    def tell(self, words: str) -> None:
        """Note in the trace the limits of its process."""
        cpu_s, memory = self.bounds.cpu_s, self.bounds.memory_bytes
        limits = [f"{cpu_s:g} s of a processor"] if cpu_s is not None else []
        limits += [f"{memory:,} bytes of memory for each process"] if memory is not None else []
        if self.context.note is not None:
            self.context.note("; ".join((words, *limits)))


async def _give(process: ServerProcess, given: bytes) -> None:
    with suppress(OSError):
        await process.write(given)
        process.end_input()


async def _read(process: ServerProcess, take: Take) -> None:
    async for chunk in process.chunks():
        await take(chunk)


def _text(stderr: bytearray) -> str:
    return printable(stderr[-SAID_CHARS:].decode("utf-8", "replace").strip())


def _least(*limits: float | None) -> float | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _ulimits(bounds: ProcessBounds) -> str:
    """Return the commands that set the limits of a process without a room; the user decides how many processes run."""
    limits = f"ulimit -n {bounds.files} || exit 126; " if bounds.files is not None else ""
    if bounds.cpu_s is not None:
        limits += f"ulimit -t {math.ceil(bounds.cpu_s)} || exit 126; "
    if bounds.memory_bytes is not None:
        limits += f"ulimit -v {max(1, bounds.memory_bytes // 1024)} || exit 126; "
    return limits
