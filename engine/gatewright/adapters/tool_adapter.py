"""The contract of adapters, which execute tools by their definitions, and the reading of the tools' output.

An adapter gets the accepted definition and the present, trusted catalog; the gate has already decided who may call with
which arguments.

It reads output within bounds, from a process or a module alike.
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
    """An executor of the tools in catalogs of one type, in any thread and any loop."""

    def check(self, definition: ToolDefinition, /) -> None:
        """Raises RegistrationError for a definition with an unknown ``run``."""
        ...

    async def run(
        self,
        catalog: Catalog,
        definition: ToolDefinition,
        arguments: Mapping[str, JsonValue],
        context: ToolExecutionContext,
        /,
    ) -> object:
        """Execute one call: a JSON value, bytes, or (for a stream) an iterator of its pieces. Raises ToolFailure.

        A cancellation ends everything that it started. Raises WorkspaceError if something that it needs is missing.
        """
        ...

    def close(self) -> None:
        """End all running calls; wait a few seconds at most."""
        ...


T = TypeVar("T")
Take = Callable[[bytes], Awaitable[None]]
"""A taker of a tool's output, piece by piece."""
Exchange = Callable[[Take, Callable[[], bytes]], Coroutine[Any, Any, None]]
"""An executor of one call that gives its output to the first argument; the second returns the whole output,
if stored. Raises ToolFailure if the call fails."""
SAID_CHARS = 2_000
"""Limit of a tool's words about its failure, in characters."""
FAILED = "the tool failed; do not make this call again as it is"
_MOST_WORDS = 100
_LARGE = 64 * 1024
"""Limit in bytes above which a thread parses the JSON."""
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

    A cancelled waiter goes on once the exchange has ended. ``apart``: the exchange runs in the loop of the thread, as
    processes need it; else in the caller's.
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
    """A runner that awaits work in the caller's loop, as `LoopThread` does in its own."""

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
