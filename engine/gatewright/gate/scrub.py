"""Makes values fit for display and storage: removes secrets, cuts arguments to the size of a log row, makes text of
results.

Values are scrubbed inside structures, never in serialised text, so that JSON stays JSON; a string that contains JSON is
read, scrubbed and written again. If a key tells the meaning of its value, the key decides. Large values are processed
beside the event loop; for some tens of kilobytes that would take longer than the work itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import ParamSpec, TypeVar, cast
from urllib.parse import quote

from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import in_own_thread, late_regex, unbroken
from gatewright.compile.rule_test import Finding
from gatewright.gate.secret import is_quoted_secret, names_open_key, secret_spans

P = ParamSpec("P")
T = TypeVar("T")

LARGE = 64 * 1024
_VALUE = 32


def is_large(value: object) -> bool:
    """Tell whether processing ``value`` would block the event loop noticeably; it stops counting once it knows."""
    if isinstance(value, str | bytes):
        return len(value) >= LARGE
    left, stack = LARGE, [value]
    while stack and left > 0:
        one = stack.pop()
        left -= _VALUE
        if isinstance(one, str | bytes):
            left -= len(one)
        elif isinstance(one, dict):
            left -= _VALUE * len(cast("dict[str, object]", one))
            if left > 0:
                stack += cast("dict[str, object]", one).values()
        elif isinstance(one, list):
            left -= len(cast("list[object]", one))
            if left > 0:
                stack += cast("list[object]", one)
    return left <= 0


async def apart(is_heavy: bool, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call ``function(*args)``, in its own thread if it ``is_heavy``."""
    if not is_heavy:
        return function(*args, **kwargs)
    return await unbroken(in_own_thread(function, *args, **kwargs))


def binary_text(data: bytes, digest: str) -> str:
    """The text for the model in place of an unreadable result."""
    return f"[binary result of {len(data):,} bytes, SHA-256 {digest}; its content is not shown]"


def valid(text: str) -> str:
    """``text`` in valid UTF-8: halves of surrogate pairs become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


_TEXT, _KEY, _ITEMS, _DEPTH, _TOTAL, _NOTE = 2000, 100, 64, 8, 16_000, 400


def cut_to_size(arguments: dict[str, JsonValue]) -> tuple[dict[str, JsonValue], list[JsonValue]]:
    """The arguments with long texts, long lists and deep values cut, and a note of each cut; at most about 16 kB."""
    budget = _Budget()
    kept = budget.fields(arguments, "", 1)
    return kept, budget.notes


class _Budget:
    def __init__(self) -> None:
        self.notes: list[JsonValue] = []
        self._left = _TOTAL

    def fields(self, value: dict[str, JsonValue], where: str, depth: int) -> dict[str, JsonValue]:
        kept: dict[str, JsonValue] = {}
        for key, item in value.items():
            if len(kept) >= _ITEMS or self._left <= 0:
                self._note(where, f"{len(value) - len(kept):,} of {len(value):,} fields left out")
                break
            name = key[:_KEY]
            name = name if name.isascii() else _valid(name)
            self._left -= len(name)
            kept[name] = self._value(item, f"{where}/{name}", depth)
        return kept

    def _value(self, value: JsonValue, where: str, depth: int) -> JsonValue:
        if isinstance(value, str):
            return self._text(value, where)
        if isinstance(value, dict | list) and value and depth >= _DEPTH:
            self._note(where, "deeper values left out")
            return None
        if isinstance(value, dict):
            return self.fields(value, where, depth + 1)
        if isinstance(value, list):
            return self._items(value, where, depth + 1)
        self._left -= 8
        return value

    def _items(self, value: list[JsonValue], where: str, depth: int) -> list[JsonValue]:
        kept: list[JsonValue] = []
        for item in value:
            if len(kept) >= _ITEMS or self._left <= 0:
                self._note(where, f"{len(value) - len(kept):,} of {len(value):,} items left out")
                break
            kept.append(self._value(item, f"{where}/{len(kept)}", depth))
        return kept

    def _text(self, text: str, where: str) -> str:
        room = max(0, min(_TEXT, self._left))
        self._left -= min(len(text), room)
        if len(text) <= room:
            return text if text.isascii() else _valid(text)
        self._note(where, f"{len(text) - room:,} of {len(text):,} characters left out")
        return _valid(text[:room])

    def _note(self, where: str, what: str) -> None:
        if len(self.notes) < _ITEMS:
            self.notes.append(f"{where or '/'}: {what}"[:_NOTE])


def _valid(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


MARKER = "[REDACTED]"
_NESTED_TEXTS = 4
_MAX_PARSED = 2_000_000
_CAMEL = late_regex(r"(?<=[a-z0-9])(?=[A-Z])")
_STRONG = late_regex(
    r"(?:^|_)(?:pass(?:word|wd|phrase|code)s?|pwd|secrets?|(?:api|access|secret|private|signing|encryption|account|master)_?keys?"
    r"|apikey|authorization|(?:set_)?cookies?|connection_?string|(?:access|refresh|auth|bearer|session|id|api|bot|security|csrf)_?tokens?"
    r"|client_?secret|private_?key_?(?:pem|data))$"
)
_WEAK = late_regex(r"(?:^|_)(?:tokens?|credentials?|bearer|jwt)$")
_BARE = late_regex(r"(?:^|_)(?:keys?|auth)(?:_base)?$|(?<=[a-z])key$")
_HEX = late_regex(r"[0-9a-fA-F]{32,256}")
_PAGING = late_regex(r"(?:next|prev|previous|page|paging|pagination|continuation|sync|cursor|start|resume)")
_NAMED = late_regex(
    r"(?:^|_)(?:id|ids|uid|guid|hash|sha\d*|digest|checksum|integrity|etag|cursor|fingerprint|revision|rev|commit)$"
)


def scrub_text(text: str) -> tuple[str, int]:
    """``text`` without its secrets, and their number; halves of surrogate pairs become question marks."""
    return _text(valid(text), _Key.PLAIN, 0)


def holds_marker(value: JsonValue) -> bool:
    """Tell whether any text of ``value``, keys included, contains the mark of a removed secret."""
    if isinstance(value, str):
        return MARKER in value
    if isinstance(value, dict):
        return any(MARKER in key or holds_marker(item) for key, item in value.items())
    return isinstance(value, list) and any(holds_marker(item) for item in value)


class _Key:
    """The meaning of a key for its value."""

    PLAIN, STRONG, WEAK, NAMED, BARE = range(5)


@lru_cache(maxsize=1024)
def _is_plain(name: str) -> bool:
    """Tell whether a short key contains no secret itself."""
    return not _text(name, _Key.PLAIN, _NESTED_TEXTS)[1]


@lru_cache(maxsize=1024)
def _kind(key: str) -> int:
    plain = _CAMEL.sub("_", key).casefold().replace("-", "_").replace(".", "_").replace(" ", "_")
    if _STRONG.search(plain):
        return _Key.STRONG
    if _WEAK.search(plain):
        return _Key.NAMED if _PAGING.search(plain) else _Key.WEAK
    bare = _BARE.search(plain)
    if bare and not names_open_key(plain[: bare.start()]):
        return _Key.BARE
    return _Key.NAMED if _NAMED.search(plain) else _Key.PLAIN


def scrub_value(value: JsonValue, kind: int = _Key.PLAIN, texts: int = 0) -> tuple[JsonValue, int]:
    """``value`` without its secrets, and their number; ``value`` itself without secrets.

    ``kind`` comes from its key; ``texts``: the number of JSON texts around it.
    """
    if isinstance(value, str):
        return _text(value, kind, texts)
    if isinstance(value, dict):
        return _object(value, texts)
    if isinstance(value, list):
        return _array(value, kind, texts)
    if kind == _Key.STRONG and isinstance(value, int | float) and abs(value) >= 1000:
        return MARKER, 1
    return value, 0


def _object(value: dict[str, JsonValue], texts: int) -> tuple[JsonValue, int]:
    named, name = _Key.PLAIN, value.get("name", value.get("key")) if "value" in value else None
    if isinstance(name, str) and len(name) <= 128:  # {"name": "DB_PASSWORD", "value": ...}
        named = _kind(name)
    new: dict[str, JsonValue] = {}
    count = 0
    for key, item in value.items():
        short = len(key) <= 128
        new_key, in_key = (key, 0) if short and _is_plain(key) else _text(key, _Key.PLAIN, _NESTED_TEXTS)
        new[new_key], inside = scrub_value(item, named if key == "value" else _kind(key) if short else 0, texts)
        count += in_key + inside
    return (new, count) if count else (value, 0)


def _array(value: list[JsonValue], kind: int, texts: int) -> tuple[JsonValue, int]:
    rows = [scrub_value(item, kind, texts) for item in value]
    count = sum(inside for _, inside in rows)
    return ([item for item, _ in rows], count) if count else (value, 0)


def _text(text: str, kind: int, texts: int) -> tuple[str, int]:
    if kind in (_Key.STRONG, _Key.WEAK) and is_quoted_secret(text, weak=kind == _Key.WEAK):
        return MARKER, 1
    if kind == _Key.BARE and _HEX.fullmatch(text):
        return MARKER, 1
    if texts < _NESTED_TEXTS and text.lstrip()[:1] in ("{", "[") and len(text) <= _MAX_PARSED:
        inner = _inner(text, texts)
        if inner is not None:
            return inner
    spans = secret_spans(text, unlabelled=kind != _Key.NAMED)
    return (_replace(text, spans), len(spans)) if spans else (text, 0)


def _inner(text: str, texts: int) -> tuple[str, int] | None:
    """Scrub a text that is JSON as JSON; None if it is not, or would not come back unchanged."""
    try:
        value = cast("JsonValue", json.loads(text, object_pairs_hook=_unique))
        scrubbed, count = scrub_value(value, _Key.PLAIN, texts + 1)
        if count == 0:
            return text, 0
        indent = 2 if "\n" in text.strip() else None
        tight = '": ' not in text
        return json.dumps(scrubbed, ensure_ascii=False, indent=indent, separators=(",", ":") if tight else None), count
    except (ValueError, RecursionError):
        return None


def _unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key appears twice")
    return found


def _replace(text: str, spans: list[tuple[int, int]]) -> str:
    parts: list[str] = []
    at = 0
    for start, end in spans:
        parts += (text[at:start], MARKER)
        at = end
    return "".join((*parts, text[at:]))


LEAST_SECRET = 8
"""The length of the shortest value to remove, since shorter ones occur in too many texts by chance."""


class Secrets:
    """The values that one server got, over all its starts; it may repeat them plainly, in JSON or in a URL.

    ``least``: the length of the shortest value to remove.
    """

    def __init__(self, values: Iterable[str] = (), *, least: int = LEAST_SECRET) -> None:
        self._least = least
        self._values: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self.add(values)

    def add(self, values: Iterable[str]) -> None:
        """Add values and, of a value such as `Bearer ...`, the part behind that word."""
        found = {part for value in values for part in (value.strip(), value.strip().rpartition(" ")[2])}
        for part in found:
            if len(part) >= self._least:
                in_json = (json.dumps(part, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))
                self._values |= {part, quote(part), quote(part, ""), *in_json}
        longest_first = sorted(self._values, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def out_of(self, text: str) -> str:
        """Return ``text`` without the values."""
        return text if self._pattern is None else self._pattern.sub(MARKER, text)

    def out_of_value(self, value: JsonValue) -> JsonValue:
        """Return a value without them in any of its texts and numbers."""
        if isinstance(value, str):
            return self.out_of(value)
        if isinstance(value, list):
            return [self.out_of_value(item) for item in value]
        if isinstance(value, dict):
            return {self.out_of(key): self.out_of_value(item) for key, item in value.items()}
        return MARKER if str(value) in self._values else value


def spotless(finding: Finding) -> Finding:
    """The objection without secrets in its quotations; trace, answers, observers and the log all use it."""
    reason, model = _scrub_words(finding.reason), _scrub_words(finding.model or "")
    if (reason, model) == (finding.reason, finding.model or ""):
        return finding
    return replace(finding, reason=reason, model=model or finding.model)


@lru_cache(maxsize=1024)
def _scrub_words(text: str) -> str:
    return scrub_text(text)[0]
