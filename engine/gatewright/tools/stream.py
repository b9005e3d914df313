"""Results that come in pieces: what yields them, and how they become the one result that the gate looks at."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, cast

from gatewright.base.errors import RegistrationError
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.base.thread import in_own_thread
from gatewright.tools.context import OnPiece
from gatewright.tools.declaration import Normalization, ResultType
from gatewright.tools.result import ForeignResult, ResultReader


def yields(function: Callable[..., Any]) -> bool:
    """Whether ``function`` is written as one that yields its result piece by piece."""
    return inspect.isasyncgenfunction(inspect.unwrap(function))


def awaitable(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` itself; one that yields as one that is awaited, and answers what yields its pieces."""
    if not inspect.isasyncgenfunction(function):
        return function

    @functools.wraps(function)
    async def begin(*given: object, **named: object) -> object:
        return function(*given, **named)

    return begin


def check_yields(function: Callable[..., Any], kind: ResultType | None, where: str) -> None:
    """Raises RegistrationError for a stream that yields nothing, and for pieces of what is no stream."""
    if yields(function) and kind is not ResultType.STREAM:
        raise RegistrationError(f"{where} yields, and the `result_type` of the tool is not stream")
    if kind is ResultType.STREAM and not yields(function):
        raise RegistrationError(f"{where} yields nothing, and the `result_type` of the tool is stream")


async def collected(
    pieces: AsyncGenerator[object], normalization: Normalization | None, tell: OnPiece | None
) -> JsonValue | bytes:
    """All pieces as one result: texts are one text, bytes are one, anything else is a list. ``tell``: told each one.

    They are bounded together like one result, and closed when they are given up. Raises ToolFailure.
    """
    kept: list[JsonValue | bytes] = []
    reader = ResultReader(plain_only=True)
    async with aclosing(pieces):
        async for piece in pieces:
            try:
                read = reader.result(piece, normalization)
            except ForeignResult:
                reader.plain_only = False
                read = await in_own_thread(reader.result, piece, normalization)
                reader.plain_only = True
            kept.append(read)
            if tell is not None:
                tell(_text(read))
    if normalization is Normalization.BINARY:
        return b"".join(cast("list[bytes]", kept))
    if all(isinstance(piece, str) for piece in kept):
        return "".join(cast("list[str]", kept))
    return cast("JsonValue", kept)


def _text(piece: JsonValue | bytes) -> str:
    if isinstance(piece, bytes):
        return piece.decode("utf-8", "replace")
    return piece if isinstance(piece, str) else f"{canonical_json(piece).decode()}\n"
