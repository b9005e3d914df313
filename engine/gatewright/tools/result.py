"""What a tool may return: a JSON value or bytes. It does not know how results are cut or shown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import cast

from pydantic import BaseModel

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import MAX_DEPTH, JsonValue, canonical_json
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


def checked_result(value: object, normalization: Normalization | None) -> JsonValue | bytes:
    """``value`` as JSON (a pydantic model becomes an object, a tuple an array) or as bytes.

    Raises ToolFailure for anything else, for the kind that ``normalization`` excludes, and for what is too large.
    """
    if isinstance(value, bytes | bytearray):
        if normalization is Normalization.JSON:
            raise _refused("bytes where JSON was declared")
        if len(value) > MAX_RESULT_BYTES:
            raise _too_large()
        return bytes(value)
    if normalization is Normalization.BINARY:
        raise _refused(f"`{type(value).__name__}` where bytes were declared")
    return _Reader().read(value, 1)


def kind_problem(result: object, kind: ResultType | None) -> str | None:
    """What is wrong when a checked result is not of the kind that its tool declared; None when it is."""
    wanted = _TYPES.get(kind) if kind is not None else None
    if wanted is None or isinstance(result, wanted):
        return None
    found = next((str(name) for name, type_ in _TYPES.items() if isinstance(result, type_)), "plain value")
    return f"the tool declares a result of type {kind} and returned a result of type {found}"


def normalized(result: JsonValue | bytes) -> bytes:
    """The bytes that stand for a checked result: itself, or canonical JSON."""
    return result if isinstance(result, bytes) else canonical_json(result)


class _Reader:
    """Reads one result; it counts values and characters, so that nothing endless is taken in."""

    def __init__(self) -> None:
        self._values = 0
        self._size = 0

    def read(self, value: object, depth: int) -> JsonValue:
        """``value`` as JSON. Raises ToolFailure."""
        self._values += 1
        if depth > MAX_DEPTH:
            raise _refused(f"a value nested deeper than {MAX_DEPTH} levels")
        if self._values > MAX_RESULT_VALUES:
            raise _too_large()
        match value:
            case None | bool():
                return value
            case str():
                return self._text(value)
            case int() | float():
                return _number(value)
            case BaseModel():
                return self.read(_dumped(value), depth)
            case list() | tuple():
                return [self.read(item, depth + 1) for item in cast("list[object]", value)]
            case Mapping():
                pairs = cast("Mapping[object, object]", value)
                return {self._key(key): self.read(item, depth + 1) for key, item in pairs.items()}
            case _:
                raise _refused(f"`{type(value).__name__}`, which is no JSON value")

    def _key(self, key: object) -> str:
        if not isinstance(key, str):
            raise _refused("an object key that is not text")
        return self._text(key)

    def _text(self, text: str) -> str:
        self._size += len(text)
        if self._size > MAX_RESULT_BYTES:
            raise _too_large()
        return _text(text)


def _dumped(model: BaseModel) -> object:
    try:
        return model.model_dump(mode="json", by_alias=True, warnings="none")
    except ValueError:
        raise _refused(f"a `{type(model).__name__}` that has no JSON form") from None


def _number(value: float) -> int | float:
    if isinstance(value, float) and not math.isfinite(value):
        raise _refused("a number that is not finite")
    if isinstance(value, int):
        if value.bit_length() > _MAX_BITS:
            raise _refused(f"an integer of more than {_MAX_BITS:,} bits")
        return int(value)
    return float(value)


def _text(text: str) -> str:
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise _refused("a text with half of a surrogate pair") from None
    return str(text)


def _too_large() -> ToolFailure:
    size = f"{MAX_RESULT_BYTES // 1024 // 1024} MiB or {MAX_RESULT_VALUES:,} values"
    text = f"the tool ran, but its result is larger than {size}; if the call only reads, ask for less"
    return ToolFailure(f"{text}, else do not make it again", code="result-too-large")


def _refused(what: str) -> ToolFailure:
    return ToolFailure(f"the tool ran, but returned {what}; do not make this call again", code="bad-result")
