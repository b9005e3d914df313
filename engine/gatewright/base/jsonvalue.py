"""JSON values: strict reading of what a model sends, canonical bytes, digests, seals, copies.

Limits keep a hostile argument from costing time or memory: bytes of text, depth, number of values, and integers of 64
bits (the range on which JSON peers agree).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from gatewright.base.errors import JsonRefused

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 64
MAX_VALUES = 20_000
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
"""A string, or an open string to the end of the text: one match from every quote, so that none is read twice."""
_OBJECT: Any = dict
_ARRAY: Any = list
"""The methods of the types themselves, since a subclass may override them."""
_INT_DIGITS = len(str(-(2**63)))
_PLAIN = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _compile_encoder() -> Callable[[object, int], tuple[str, ...]] | None:
    """Build once the encoder that ``_PLAIN`` builds anew for every value: half the time. Some Pythons lack it."""
    module: Any = json.encoder
    make, quote = getattr(module, "c_make_encoder", None), getattr(module, "c_encode_basestring", None)
    if make is None or quote is None:
        return None
    return make(None, _PLAIN.default, quote, None, ":", ",", True, False, False)


_ENCODE = _compile_encoder()
_INT_LOW, _INT_HIGH = -(2**63), 2**63 - 1


def parse_object(text: str | bytes) -> dict[str, JsonValue]:
    """Parse one JSON object; blank text means ``{}``. Raises JsonRefused with a code, never anything else.

    Codes: too-large, not-utf8, not-json, not-an-object, duplicate-key, not-finite, too-deep, too-many-values,
    integer-range, lone-surrogate.
    """
    source = _decode(text)
    if not source.strip():
        return {}
    if source.count(",") > MAX_VALUES and _STRING.sub("", source).count(",") > MAX_VALUES:
        raise _too_many()  # before parsing, so that a swarm of tiny values costs nothing
    try:
        value = json.loads(
            source, object_pairs_hook=_pairs, parse_constant=_constant, parse_float=_float, parse_int=_int
        )
    except JsonRefused:
        raise
    except RecursionError:
        raise JsonRefused("too-deep", f"nesting is deeper than {MAX_DEPTH} levels") from None
    except json.JSONDecodeError as error:
        said = error.msg.removesuffix(" at")
        raise JsonRefused("not-json", f"{said} at line {error.lineno} column {error.colno}") from None
    return check_object(value)


def check_object(value: object) -> dict[str, JsonValue]:
    """Return ``value`` itself if it is a JSON object within the limits. Raises JsonRefused otherwise.

    It walks without recursion (depth, count, strings, numbers, types) and counts values before it looks at them.
    """
    if not isinstance(value, dict):
        raise JsonRefused("not-an-object", "arguments must be one JSON object")
    table = cast("dict[str, Any]", value)
    stack: list[tuple[Any, int]] = [(table, 1)]
    seen, size = 1, 0
    while stack:
        held, depth = stack.pop()
        is_table = isinstance(held, dict)
        inside = _OBJECT.__len__(held) if is_table else _ARRAY.__len__(held)
        seen += inside
        if seen > MAX_VALUES:
            raise _too_many()
        if inside and depth == MAX_DEPTH:
            raise JsonRefused("too-deep", f"nesting is deeper than {MAX_DEPTH} levels")
        for key in _OBJECT.keys(held) if is_table else ():
            if not isinstance(key, str):
                raise JsonRefused("not-json", "an object key is not text")
            size += len(key) if key.isascii() else _bytes_of(key, MAX_BYTES - size)
            if size > MAX_BYTES:
                raise _too_large()
        for one in _OBJECT.values(held) if is_table else _ARRAY.__iter__(held):
            if isinstance(one, str):
                size += len(one) if one.isascii() else _bytes_of(one, MAX_BYTES - size)
                if size > MAX_BYTES:
                    raise _too_large()
            elif isinstance(one, dict | list):
                stack.append((cast("Any", one), depth + 1))
            else:
                _check_scalar(one)
    return table


def _decode(text: str | bytes) -> str:
    if len(text) > MAX_BYTES:
        raise _too_large()
    if isinstance(text, str):
        if not text.isascii() and len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
            raise _too_large()
        return text
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        raise JsonRefused("not-utf8", "arguments are not UTF-8") from None


def _too_large() -> JsonRefused:
    return JsonRefused("too-large", f"arguments are larger than {MAX_BYTES:,} bytes")


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


def _int(text: str) -> int:
    if len(text) > _INT_DIGITS:
        raise JsonRefused("integer-range", "an integer does not fit 64 bits")
    return int(text)


def _bytes_of(text: str, room: int) -> int:
    if len(text) > room:
        raise _too_large()
    try:
        return len(text.encode("utf-8"))
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


def nulls_in(value: object) -> Iterator[tuple[str | int, ...]]:
    """Yield the place of every null in a value."""
    if value is None:
        yield ()
    elif isinstance(value, dict | list):
        held = cast("dict[str, object] | list[object]", value)
        members = held.items() if isinstance(held, dict) else enumerate(held)
        for step, one in members:
            yield from ((step, *rest) for rest in nulls_in(one))


def is_text(text: str) -> bool:
    """Tell whether ``text`` holds whole characters only, so that UTF-8 can encode it."""
    try:
        return text.isascii() or bool(text.encode("utf-8"))
    except UnicodeEncodeError:
        return False


def canonical_json(value: object) -> bytes:
    """Encode as UTF-8 JSON with sorted keys and no spaces, so that equal values give equal bytes."""
    if _ENCODE is None:
        return _PLAIN.encode(value).encode("utf-8")
    return "".join(_ENCODE(value, 0)).encode("utf-8")


def digest(value: object) -> str:
    """Return the SHA-256 (FIPS 180-4) of ``canonical_json(value)``, 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


class Seal:
    """Seals rows with one key, by HMAC-SHA-256 (RFC 2104, FIPS 180-4); the key is taken in once."""

    def __init__(self, key: bytes) -> None:
        self._keyed = hmac.new(key, digestmod="sha256")

    def __call__(self, row: Sequence[JsonValue], previous: str = "") -> str:
        """The MAC of a row in hexadecimal; ``previous``: the MAC that it follows. Raises TypeError, ValueError."""
        return self.digest(previous.encode() + canonical_json(row))

    def digest(self, data: bytes) -> str:
        """The MAC of the data. Unlike `hmac.digest` it lets no fork in while OpenSSL holds locks of its own."""
        mac = self._keyed.copy()
        mac.update(data)
        return mac.hexdigest()

    def is_on(self, row: Sequence[JsonValue], mac: object, previous: str = "") -> bool:
        """Tell whether that is the MAC of the row. Raises TypeError, ValueError for anything but a row."""
        right = self(row, previous)
        return isinstance(mac, str) and hmac.compare_digest(right.encode(), mac.encode("utf-8", "replace"))


_SCALARS = frozenset({str, int, float, bool, type(None)})


def copy_value(value: Any) -> Any:
    """Copy a value with its objects and arrays; the caller bounds the depth.

    Subclasses become plain types without a call of their methods, so that no stranger's code runs in the gate.
    """
    if type(value) in _SCALARS:
        return value
    if isinstance(value, dict):
        made: dict[Any, Any] = {}
        for key, item in _OBJECT.items(value):
            made[key if type(key) is str else _plain(key)] = item if type(item) in _SCALARS else copy_value(item)
        return made
    if isinstance(value, list):
        return [item if type(item) in _SCALARS else copy_value(item) for item in _ARRAY.__iter__(value)]
    return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return float.__float__(value)
    return int.__int__(value) if isinstance(value, int) and not isinstance(value, bool) else value
