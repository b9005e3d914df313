"""What a tool may return: a JSON value or bytes. It does not know how results are cut or shown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import cast

from pydantic import BaseModel

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import MAX_DEPTH, JsonValue, canonical_json
from gatewright.tools.declaration import Normalization


def checked_result(value: object, normalization: Normalization | None) -> JsonValue | bytes:
    """``value`` as JSON (a pydantic model becomes an object, a tuple an array) or as bytes.

    Raises ToolFailure for anything else, and for the kind that ``normalization`` excludes.
    """
    if isinstance(value, bytes | bytearray):
        if normalization is Normalization.JSON:
            raise _refused("bytes where JSON was declared")
        return bytes(value)
    if normalization is Normalization.BINARY:
        raise _refused(f"`{type(value).__name__}` where bytes were declared")
    return _json(value, 1)


def normalized(result: JsonValue | bytes) -> bytes:
    """The bytes that stand for a checked result: itself, or canonical JSON."""
    return result if isinstance(result, bytes) else canonical_json(result)


def _json(value: object, depth: int) -> JsonValue:
    if depth > MAX_DEPTH:
        raise _refused(f"a value nested deeper than {MAX_DEPTH} levels")
    match value:
        case None | bool():
            return value
        case str():
            return _text(value)
        case int() | float():
            return _number(value)
        case BaseModel():
            return _json(_dumped(value), depth)
        case list() | tuple():
            return [_json(item, depth + 1) for item in cast("list[object]", value)]
        case Mapping():
            pairs = cast("Mapping[object, object]", value)
            return {_key(key): _json(item, depth + 1) for key, item in pairs.items()}
        case _:
            raise _refused(f"`{type(value).__name__}`, which is no JSON value")


def _dumped(model: BaseModel) -> object:
    try:
        return model.model_dump(mode="json", by_alias=True, warnings="none")
    except ValueError:
        raise _refused(f"a `{type(model).__name__}` that has no JSON form") from None


def _number(value: float) -> int | float:
    if not math.isfinite(value):
        raise _refused("a number that is not finite")
    return int(value) if isinstance(value, int) else float(value)


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise _refused("an object key that is not text")
    return _text(key)


def _text(text: str) -> str:
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise _refused("a text with half of a surrogate pair") from None
    return str(text)


def _refused(what: str) -> ToolFailure:
    return ToolFailure(f"the tool returned {what}", code="bad-result")
