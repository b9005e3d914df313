"""The results of a tool: a JSON value, bytes, or the pieces of a stream, which are joined into one."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import Any, cast

from pydantic import BaseModel

from gatewright.base.errors import RegistrationError, ToolFailure
from gatewright.base.jsonvalue import MAX_DEPTH, JsonValue, canonical_json
from gatewright.base.late import in_own_thread
from gatewright.tools.context import OnPiece
from gatewright.tools.declaration import Normalization, ResultType

_MAX_BITS = 4096
_TYPES: dict[ResultType, type] = {
    ResultType.OBJECT: dict,
    ResultType.ARRAY: list,
    ResultType.STRING: str,
    ResultType.BINARY: bytes,
}
MAX_RESULT_BYTES = 10 * 1024 * 1024
MAX_RESULT_VALUES = 100_000


class ForeignResult(Exception):
    """A result that has code of its own, so that reading it may never end."""


def check_result(value: object, normalization: Normalization | None) -> JsonValue | bytes:
    """Return ``value`` as JSON (a pydantic model becomes an object, a tuple an array) or as bytes.

    Raises ToolFailure for other values, for those that ``normalization`` excludes, and for too large ones.
    """
    return ResultReader().result(value, normalization)


def plain_result(value: object, normalization: Normalization | None) -> JsonValue | bytes:
    """Return a value without code of its own in the same way.

    Raises ForeignResult for any other value, before its code runs.
    """
    return ResultReader(plain_only=True).result(value, normalization)


def kind_problem(result: object, kind: ResultType | None) -> str | None:
    """Say why a checked result is not of its tool's declared kind; None if it is."""
    wanted = _TYPES.get(kind) if kind is not None else None
    if wanted is None or isinstance(result, wanted):
        return None
    found = next((str(name) for name, type_ in _TYPES.items() if isinstance(result, type_)), "plain value")
    return f"the tool declares a result of type {kind} and returned a result of type {found}"


def normal_bytes(result: JsonValue | bytes) -> bytes:
    """Return the bytes that stand for a checked result: the bytes themselves, or its canonical JSON."""
    return result if isinstance(result, bytes) else canonical_json(result)


class ResultReader:
    """Reads one result, or the pieces of one; it counts values and characters, so that an endless result stops it.

    ``plain_only``: raise ForeignResult before code of the value would run. Python's own methods read texts and numbers
    of subclasses, so the result has no code of its own.
    """

    def __init__(self, *, plain_only: bool = False) -> None:
        self.plain_only = plain_only
        self._values = 0
        self._size = 0

    def result(self, value: object, normalization: Normalization | None) -> JsonValue | bytes:
        """Read ``value`` as JSON or as bytes. Raises ToolFailure."""
        kind = type(value)
        if issubclass(kind, (bytes, bytearray)):
            if normalization is Normalization.JSON:
                raise _bad_result("bytes where JSON was declared")
            if self.plain_only and kind is not bytes and kind is not bytearray:
                raise ForeignResult
            data = b"".join((cast("bytes", value),))
            self._size += len(data)
            if self._size > MAX_RESULT_BYTES:
                raise _too_large()
            return data
        read = self.read(value, 1)
        if normalization is Normalization.BINARY:
            raise _bad_result(f"`{kind.__name__}` where bytes were declared")
        return read

    def read(self, value: object, depth: int) -> JsonValue:
        """Read ``value`` as JSON. Raises ToolFailure."""
        self._values += 1
        if depth > MAX_DEPTH:
            raise _bad_result(f"a value nested deeper than {MAX_DEPTH} levels")
        if self._values > MAX_RESULT_VALUES:
            raise _too_large()
        kind = type(value)
        if value is None or kind is bool:
            return cast("bool | None", value)
        if issubclass(kind, str):
            text = str.__str__(cast("str", value))
            self._size += len(text)
            if self._size > MAX_RESULT_BYTES:
                raise _too_large()
            return text if text.isascii() else _whole(text)
        if issubclass(kind, (int, float)):
            return _number(cast("float", value))
        if kind is list or kind is tuple:
            return self._array(cast("list[object]", value), depth)
        if kind is dict:
            return self._object(cast("dict[object, object]", value), depth)
        if self.plain_only:
            raise ForeignResult
        match value:
            case BaseModel():
                try:
                    dumped: object = value.model_dump(mode="json", by_alias=True, warnings="none")
                except ValueError:
                    raise _bad_result(f"a `{kind.__name__}` that has no JSON form") from None
                return self.read(dumped, depth)
            case list() | tuple():
                return self._array(cast("list[object]", value), depth)
            case Mapping():
                return self._object(cast("Mapping[object, object]", value), depth)
            case _:
                raise _bad_result(f"`{kind.__name__}`, which is no JSON value")

    def _array(self, items: Iterable[object], depth: int) -> JsonValue:
        return [self.read(item, depth + 1) for item in items]

    def _object(self, pairs: Mapping[object, object], depth: int) -> JsonValue:
        made: dict[str, JsonValue] = {}
        for key, item in pairs.items():
            if not issubclass(type(key), str):
                raise _bad_result("an object key that is not text")
            name = str.__str__(cast("str", key))
            self._size += len(name)
            if self._size > MAX_RESULT_BYTES:
                raise _too_large()
            made[name if name.isascii() else _whole(name)] = self.read(item, depth + 1)
        return made


def _whole(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise _bad_result("a text with half of a surrogate pair") from None
    return text


def _number(value: float) -> int | float:
    if not isinstance(value, int):
        number = float.__float__(value)
        if not math.isfinite(number):
            raise _bad_result("a number that is not finite")
        return number
    whole = int.__int__(value)
    if whole.bit_length() > _MAX_BITS:
        raise _bad_result(f"an integer of more than {_MAX_BITS:,} bits")
    return whole


def unread() -> ToolFailure:
    """Return the failure of a result that could not be read in time."""
    text = "the tool ran, but its result could not be read in time and was not taken; do not make this call again"
    return ToolFailure(text, code="result-timed-out")


def _too_large() -> ToolFailure:
    size = f"{MAX_RESULT_BYTES // 1024 // 1024} MiB or {MAX_RESULT_VALUES:,} values"
    text = f"the tool ran, but its result is larger than {size}; if the call only reads, ask for less"
    return ToolFailure(f"{text}, else do not make it again", code="result-too-large")


def _bad_result(what: str) -> ToolFailure:
    return ToolFailure(f"the tool ran, but returned {what}; do not make this call again", code="bad-result")


def yields(function: Callable[..., Any]) -> bool:
    """Tell whether ``function`` yields its result in pieces."""
    return inspect.isasyncgenfunction(inspect.unwrap(function))


def awaitable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function``; wrap one that yields into one that returns its generator when awaited."""
    if not inspect.isasyncgenfunction(function):
        return function

    @functools.wraps(function)
    async def begin(*given: object, **named: object) -> object:
        return function(*given, **named)

    return begin


def check_yields(function: Callable[..., Any], kind: ResultType | None, where: str) -> None:
    """Raise RegistrationError for a stream that yields nothing, and for a function that yields but is no stream."""
    if yields(function) and kind is not ResultType.STREAM:
        raise RegistrationError(f"{where} yields, and the `result_type` of the tool is not stream")
    if kind is ResultType.STREAM and not yields(function):
        raise RegistrationError(f"{where} yields nothing, and the `result_type` of the tool is stream")


async def collect(
    pieces: AsyncGenerator[object], normalization: Normalization | None, tell: OnPiece | None
) -> JsonValue | bytes:
    """Join all pieces into one result: texts become one text, bytes one, anything else a list. ``tell`` receives each
    piece.

    Together they have the bounds of one result; the stream is closed if the call gives up. Raises ToolFailure.
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
