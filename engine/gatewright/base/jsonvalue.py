"""JSON values: strict reading of what a model sends, canonical bytes, digests. It knows no schema.

The limits keep a hostile argument from costing time or memory: bytes of text, depth of nesting, number of values, and
integers that fit 64 bits (what JSON peers agree on).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from typing import Any, cast

from gatewright.base.errors import JsonRefused

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 64
MAX_VALUES = 20_000
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_INT_LOW, _INT_HIGH = -(2**63), 2**63 - 1


def parse_object(text: str | bytes) -> dict[str, JsonValue]:
    """One JSON object; blank text is ``{}``. Raises JsonRefused with a code, never anything else.

    Codes: too-large, not-utf8, not-json, not-an-object, duplicate-key, not-finite, too-deep, too-many-values,
    integer-range, lone-surrogate.
    """
    source = _decoded(text)
    if not source.strip():
        return {}
    _refuse_swarm(source)
    try:
        value = json.loads(source, object_pairs_hook=_pairs, parse_constant=_constant, parse_float=_float)
    except JsonRefused:
        raise
    except RecursionError:
        raise JsonRefused("too-deep", f"nesting is deeper than {MAX_DEPTH} levels") from None
    except json.JSONDecodeError as error:
        raise JsonRefused("not-json", f"{error.msg} at line {error.lineno} column {error.colno}") from None
    except ValueError:
        raise JsonRefused("integer-range", "an integer does not fit 64 bits") from None
    return checked_object(value)


def checked_object(value: object) -> dict[str, JsonValue]:
    """``value`` itself when it is a JSON object within the limits. Raises JsonRefused otherwise."""
    if not isinstance(value, dict):
        raise JsonRefused("not-an-object", "arguments must be one JSON object")
    _check(cast("dict[str, object]", value))
    return cast("dict[str, JsonValue]", value)


def _decoded(text: str | bytes) -> str:
    if len(text) > MAX_BYTES:
        raise JsonRefused("too-large", f"arguments are larger than {MAX_BYTES:,} bytes")
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        raise JsonRefused("not-utf8", "arguments are not UTF-8") from None


def _refuse_swarm(source: str) -> None:
    """Count the commas outside strings before anything is built, so that a swarm of tiny values costs nothing."""
    if source.count(",") > MAX_VALUES and _STRING.sub("", source).count(",") > MAX_VALUES:
        raise _too_many()


def _too_many() -> JsonRefused:
    return JsonRefused("too-many-values", f"arguments hold more than {MAX_VALUES:,} values")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise JsonRefused("duplicate-key", "an object has the same key twice")
    return result


def _constant(name: str) -> float:
    raise JsonRefused("not-finite", f"{name} is not a JSON number")


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise JsonRefused("not-finite", "a number is too large")
    return number


def _check(root: Mapping[str, object]) -> None:
    """Walk without recursion: depth, count, strings, numbers, types."""
    stack: list[tuple[object, int]] = [(root, 1)]
    seen = size = 0
    while stack:
        value, depth = stack.pop()
        seen += 1
        if seen > MAX_VALUES:
            raise _too_many()
        if depth > MAX_DEPTH:
            raise JsonRefused("too-deep", f"nesting is deeper than {MAX_DEPTH} levels")
        if isinstance(value, str):
            size += len(value)
            _check_text(value, size)
        elif isinstance(value, dict):
            for key, item in cast("dict[object, object]", value).items():
                if not isinstance(key, str):
                    raise JsonRefused("not-json", "an object key is not text")
                size += len(key)
                _check_text(key, size)
                stack.append((item, depth + 1))
        elif isinstance(value, list):
            stack.extend((item, depth + 1) for item in cast("list[object]", value))
        else:
            _check_scalar(value)


def _check_text(text: str, size: int) -> None:
    if size > MAX_BYTES:
        raise JsonRefused("too-large", f"arguments are larger than {MAX_BYTES:,} bytes")
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise JsonRefused("lone-surrogate", "a text holds half of a surrogate pair") from None


def _check_scalar(value: object) -> None:
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, int):
        if not _INT_LOW <= value <= _INT_HIGH:
            raise JsonRefused("integer-range", "an integer does not fit 64 bits")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise JsonRefused("not-finite", "a number is not finite")
    else:
        raise JsonRefused("not-json", f"`{type(value).__name__}` is not a JSON type")


def canonical_json(value: object) -> bytes:
    """UTF-8 JSON with sorted keys and no spaces, so that equal values give equal bytes."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")


def digest(value: object) -> str:
    """SHA-256 (FIPS 180-4) of ``canonical_json(value)``, 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()
