"""JSON values that a model sends, checked strictly; their bytes, digests and copies; texts with comments, edited in
place.

Limits keep a hostile argument from costing time or memory: bytes of text, depth, number of values, and integers of 64
bits (the range on which JSON peers agree).

It exceeds 450 lines because reading, bytes and edits share one idea of what JSON is, and clients' files hold all three.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

from pydantic_core import from_json

from gatewright.base.errors import JsonRefused, WorkspaceError

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 64
MAX_VALUES = 20_000
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
"""A string, or an open string to the end of the text; each match starts at a quote, so no character is read twice."""
_OBJECT: Any = dict
_ARRAY: Any = list
"""The methods of the types themselves, since a subclass may override them."""
_INT_DIGITS = len(str(-(2**63)))
_PLAIN = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _compile_encoder() -> Callable[[object, int], tuple[str, ...]] | None:
    """Build once the encoder that ``_PLAIN`` would build anew for every value, which halves the time; some Pythons lack
    it.
    """
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

    It checks depth, count, strings, numbers and types without recursion, and counts values before it reads them.
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
    """Seals rows with one key, by HMAC-SHA-256 (RFC 2104, FIPS 180-4); the key is processed once."""

    def __init__(self, key: bytes) -> None:
        self._keyed = hmac.new(key, digestmod="sha256")

    def __call__(self, row: Sequence[JsonValue], previous: str = "") -> str:
        """The MAC of a row in hexadecimal; ``previous``: the MAC that it follows. Raises TypeError, ValueError."""
        return self.digest(previous.encode() + canonical_json(row))

    def digest(self, data: bytes) -> str:
        """The MAC of the data.

        Unlike `hmac.digest` it lets no fork happen while OpenSSL holds its locks.
        """
        mac = self._keyed.copy()
        mac.update(data)
        return mac.hexdigest()

    def is_on(self, row: Sequence[JsonValue], mac: object, previous: str = "") -> bool:
        """Tell whether ``mac`` is the MAC of the row. Raises TypeError, ValueError for anything but a row."""
        right = self(row, previous)
        return isinstance(mac, str) and hmac.compare_digest(right.encode(), mac.encode("utf-8", "replace"))


_SCALARS = frozenset({str, int, float, bool, type(None)})


def copy_value(value: Any) -> Any:
    """Copy a value with its objects and arrays; the caller bounds the depth.

    Subclasses become plain types without a call of their methods, so that no foreign code runs in the gate.
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


Keys = Sequence[str | int]
"""Keys from the outermost object to an inner one; a number is a place in an array."""

_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*"?)|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:[^"\\\n]|\\.)*"?)|,(?=\s*[}\]])', re.DOTALL)
_NOT_BREAK = re.compile(r"[^\r\n]")
_SPACE = re.compile(r"[ \t\r\n]*")
_REST_OF_LINE = re.compile(r"[ \t]*,?[ \t]*(?://[^\n]*?|/\*[^\n]*?\*/[ \t]*)?(?=\r?\n)")
_INDENTED = re.compile(r'^([ \t]+)"', re.MULTILINE)
_DECODER = json.JSONDecoder(strict=False, parse_constant=int)  # `int` takes no `NaN`


class Member(NamedTuple):
    """A key of an object with its offsets: it begins at ``start``, its value at ``value``, and ends at ``end``.

    An element of an array has no key.
    """

    key: str
    start: int
    value: int
    end: int


def plain_json(text: str) -> str:
    """Replace the byte order mark, comments and trailing commas by blanks, so that every offset stays."""
    return _TRAILING_COMMA.sub(_blank, _without_comments(text))


def read_json(text: str) -> JsonValue:
    """Parse ``text``; of a repeated key the last one wins. Raises WorkspaceError with line and column.

    Its texts may hold control characters and halves of surrogates, so that the caller can name them.
    """
    plain = plain_json(text)
    try:
        return from_json(plain, allow_inf_nan=False)
    except ValueError as error:
        try:
            return _DECODER.decode(plain)
        except (ValueError, RecursionError):
            raise WorkspaceError(f"it is not JSON: {error}") from None


def members(text: str, keys: Keys = ()) -> tuple[Member, ...]:
    """List the members of an object in valid JSON, in order; none if the object is missing."""
    plain = plain_json(text)
    at = _object(plain, keys)
    return () if at is None else tuple(_members(plain, at))


def put(text: str, keys: Keys, key: str, value: JsonValue) -> str:
    """Set a member of an object: replace the member with that key, else add one at the end."""
    plain = plain_json(text)
    at = _object(plain, keys)
    if at is None:
        return put(text, keys[:-1], str(keys[-1]), {key: value})
    there = tuple(_members(plain, at))
    same = next((member for member in reversed(there) if member.key == key), None)
    if same is not None:
        written = _render(text, plain, _margin(plain, at, there), value)
        return text[: same.value] + written + text[same.end :]
    name = json.dumps(key, ensure_ascii=False)
    return _add(text, plain, at, there, f"{name}: {_render(text, plain, _margin(plain, at, there), value)}")


def append(text: str, keys: Keys, value: JsonValue) -> str:
    """Add an element at the end of an array, which is made if it is missing."""
    plain = plain_json(text)
    at = _place(plain, keys)
    if at is None:
        return put(text, keys[:-1], str(keys[-1]), [value])
    there = tuple(_elements(plain, at))
    return _add(text, plain, at, there, _render(text, plain, _margin(plain, at, there), value))


def take(text: str, keys: Keys, index: int) -> str:
    """Remove an element of an array, as `drop` removes a member."""
    plain = plain_json(text)
    at = _place(plain, keys)
    return text if at is None else _cut(text, plain, tuple(_elements(plain, at)), index)


def _unit(plain: str) -> str:
    found = _INDENTED.search(plain)
    return found[1] if found is not None else "  "


def _margin(plain: str, at: int, there: Sequence[Member]) -> str | None:
    """Return the blanks before each member; None if the last one shares its line."""
    if not there:
        return _line_margin(plain, at) + _unit(plain)
    before = plain[plain.rfind("\n", 0, there[-1].start) + 1 : there[-1].start]
    return None if before.strip() else before


def _render(text: str, plain: str, margin: str | None, value: JsonValue) -> str:
    if margin is None:
        return json.dumps(value, ensure_ascii=False)
    newline = "\r\n" if "\r\n" in text else "\n"
    return json.dumps(value, ensure_ascii=False, indent=_unit(plain)).replace("\n", newline + margin)


def _add(text: str, plain: str, at: int, there: Sequence[Member], written: str) -> str:
    """Add a member or an element behind those that are there."""
    newline, margin = "\r\n" if "\r\n" in text else "\n", _margin(plain, at, there)
    if not there:
        closing = plain.index("}" if plain[at] == "{" else "]", at)
        inside = text[at + 1 : closing]
        end = "" if "\n" in inside else newline + _line_margin(plain, at)
        return f"{text[: at + 1]}{newline}{margin}{written}{inside.rstrip(' ') if end else inside}{end}{text[closing:]}"
    last = there[-1]
    rest = _REST_OF_LINE.match(text, last.end) if margin is not None else None
    if rest is None:
        gap = " " if margin is None else newline + margin
        return f"{text[: last.end]},{gap}{written}{text[last.end :]}"
    comma = "" if "," in rest[0].partition("/")[0] else ","
    return f"{text[: last.end]}{comma}{rest[0]}{newline}{margin}{written}{text[rest.end() :]}"


def drop(text: str, keys: Keys, key: str) -> str:
    """Remove a member of an object; comments around it stay, except those behind it on its line."""
    plain = plain_json(text)
    at = _object(plain, keys)
    there = () if at is None else tuple(_members(plain, at))
    index = next((index for index, member in enumerate(there) if member.key == key), None)
    return text if index is None else _cut(text, plain, there, index)


def _cut(text: str, plain: str, there: Sequence[Member], index: int) -> str:
    member = there[index]
    uncommented = _without_comments(text)
    start, end = member.start, _skip(uncommented, member.end)
    end = end + 1 if uncommented[end] == "," else member.end
    line = text.rfind("\n", 0, start) + 1
    rest = _REST_OF_LINE.match(text, end)
    if not text[line:start].strip() and rest is not None:
        start, end = line, text.index("\n", rest.end()) + 1
    before = text[:start]
    if member is there[-1] and index:
        comma = plain.rindex(",", there[index - 1].end, member.start)
        before = text[:comma] + text[comma + 1 : start]
    return before + text[end:]


def _without_comments(text: str) -> str:
    return _COMMENT.sub(_blank, " " + text[1:] if text.startswith("\ufeff") else text)


def _blank(found: re.Match[str]) -> str:
    return found[0] if found[1] is not None else _NOT_BREAK.sub(" ", found[0])


def _skip(plain: str, at: int) -> int:
    found = _SPACE.match(plain, at)
    return at if found is None else found.end()


def _object(plain: str, keys: Keys) -> int | None:
    """Find the beginning of an object."""
    at = _place(plain, keys)
    return at if at is not None and plain.startswith("{", at) else None


def _place(plain: str, keys: Keys) -> int | None:
    """Find the beginning of an object or an array."""
    at = _skip(plain, 0)
    for key in keys:
        if isinstance(key, int):
            inside = [one.start for one in _elements(plain, at)] if plain.startswith("[", at) else []
            at = inside[key] if key < len(inside) else len(plain)
        else:
            there = _members(plain, at) if plain.startswith("{", at) else ()
            at = max((member.value for member in there if member.key == key), default=len(plain))
    return at if plain.startswith(("{", "["), at) else None


def _elements(plain: str, at: int) -> Iterator[Member]:
    at = _skip(plain, at + 1)
    while plain[at] != "]":
        _, end = _DECODER.raw_decode(plain, at)
        yield Member("", at, at, end)
        at = _skip(plain, end)
        at = _skip(plain, at + 1) if plain[at] == "," else at


def _members(plain: str, at: int) -> Iterator[Member]:
    at = _skip(plain, at + 1)
    while plain[at] != "}":
        start = at
        key, at = _DECODER.raw_decode(plain, start)
        value = _skip(plain, _skip(plain, at) + 1)
        _, end = _DECODER.raw_decode(plain, value)
        yield Member(key, start, value, end)
        at = _skip(plain, end)
        at = _skip(plain, at + 1) if plain[at] == "," else at


def _line_margin(plain: str, at: int) -> str:
    line = plain[plain.rfind("\n", 0, at) + 1 : at + 1]
    return line[: len(line) - len(line.lstrip())]
