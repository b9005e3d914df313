"""The contract of whatever executes tools by their definitions, and the answers that these write to an output.

An adapter is told the definition that was accepted and the catalog as the policy has it now, which is trusted; who may
call with which arguments was decided before.

Whatever is written is read within bounds, whoever writes it: a process, or a module.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from typing import Any, Protocol, TypeVar, cast

from gatewright.adapters.loop_thread import LoopThread, loop_thread
from gatewright.base.errors import RegistrationError, ToolFailure, WorkspaceError
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.thread import in_own_thread
from gatewright.policy.document import Catalog
from gatewright.schema.walk import as_list, as_object
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import ResultType
from gatewright.tools.definition import ToolDefinition
from gatewright.tools.result import MAX_RESULT_BYTES


class ToolAdapter(Protocol):
    """Executes the tools of the catalogs of one type, in any thread and any loop."""

    def check(self, definition: ToolDefinition, /) -> None:
        """Raises RegistrationError for a definition whose ``run`` it does not understand."""
        ...

    async def run(
        self,
        catalog: Catalog,
        definition: ToolDefinition,
        arguments: Mapping[str, JsonValue],
        context: ToolExecutionContext,
        /,
    ) -> object:
        """Execute one call: a JSON value, bytes, or (of a stream) what yields its pieces. Raises ToolFailure.

        Whoever cancels it ends all that it started. Raises WorkspaceError where what it needs is not there.
        """
        ...

    def close(self) -> None:
        """End what still runs; it waits for a few seconds at most."""
        ...


T = TypeVar("T")
Take = Callable[[bytes], Awaitable[None]]
"""Takes what a tool wrote, piece by piece."""
Exchange = Callable[[Take, Callable[[], bytes]], Coroutine[Any, Any, None]]
"""Executes one call, and gives what it writes to the first argument; the second: all that it
wrote, where that is kept. Raises ToolFailure where it fails."""
SAID_CHARS = 2_000
"""The most that is kept of what a tool says of its failure."""
FAILED = "the tool failed; do not make this call again as it is"
_MOST_WORDS = 100
_LARGE = 64 * 1024
"""Longer answers are read as JSON in a thread."""
_MOST_WAITING = 16
_NOT_STARTED = "the tool could not be started; try again later or go on without it"
_FLOOD = "the tool ran, but answered more than anybody can read; do not make this call again"
_NO_RESULT = "the tool ran, but what it answered is no JSON; do not make this call again"


def given_text(definition: ToolDefinition, arguments: Mapping[str, JsonValue]) -> bytes:
    """The call as a tool reads it from its standard input."""
    return json.dumps({"tool": definition.name, "arguments": arguments}, ensure_ascii=False).encode()


def own_words(definition: ToolDefinition, who: str, *others: str) -> tuple[str, ...]:
    """The words that a definition adds to its command, under `args` of `run`, which has the keys ``others`` besides.

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
    """The result of one call: a JSON value, bytes, or (of a stream) what yields its pieces. Raises ToolFailure.

    Whoever cancels it goes on once the exchange has ended. ``apart``: the exchange runs in the loop of the thread, as
    processes want to; else in the caller's.
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
    """The reason that a tool wrote for the model, as `{"error": TEXT}`; empty where it wrote none."""
    try:
        said = (as_object(json.loads(data)) or {}).get("error") if len(data) <= _LARGE else None
    except (ValueError, RecursionError):
        return ""
    return said[:SAID_CHARS] if isinstance(said, str) else ""


class _Here:
    """Awaits work in the loop of whoever asks, as `LoopThread` does in its own."""

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what ``work`` gives, raise what it raises."""
        return await work

    run_out = run


async def _lines(exchange: Exchange, there: LoopThread | _Here) -> AsyncGenerator[JsonValue]:
    """The values of a stream, one for each line; whoever closes it ends the exchange."""
    lines: asyncio.Queue[list[bytes] | None] = asyncio.Queue(_MOST_WAITING)  # of the loop there
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
    """The JSON value that a tool wrote. Raises ToolFailure."""
    try:
        return await in_own_thread(json.loads, data) if len(data) > _LARGE else json.loads(data)
    except (ValueError, RecursionError) as error:
        why = "nothing" if not data.strip() else f"{type(error).__name__}: {error}"
        raise ToolFailure(_NO_RESULT, code="bad-result", detail=f"it wrote no JSON: {why}"[:SAID_CHARS]) from None
