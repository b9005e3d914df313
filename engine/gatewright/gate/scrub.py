"""Takes secrets out of JSON values and texts, and knows the mark that stands in their place. It records nothing.

Values are scrubbed inside structures, never in serialised text, so that what was JSON stays JSON; a string that holds
JSON is read, scrubbed and written again. Where a key says what its value is, the key decides.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import cast

from gatewright.base.jsonvalue import JsonValue
from gatewright.base.regex import late_regex
from gatewright.gate.output import valid
from gatewright.gate.secret import names_open_key, quoted_secret, secret_spans

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


def scrub_value(value: JsonValue) -> tuple[JsonValue, int]:
    """``value`` without its secrets, and how many were taken out; ``value`` itself when there were none."""
    return _scrubbed(value, _Key.PLAIN, 0)


def scrub_text(text: str) -> tuple[str, int]:
    """``text`` without its secrets, and how many were taken out; halves of surrogate pairs become question marks."""
    return _text(valid(text), _Key.PLAIN, 0)


def holds_marker(value: JsonValue) -> bool:
    """Whether any text of ``value``, keys included, holds the mark of something that was taken out."""
    if isinstance(value, str):
        return MARKER in value
    if isinstance(value, dict):
        return any(MARKER in key or holds_marker(item) for key, item in value.items())
    return isinstance(value, list) and any(holds_marker(item) for item in value)


class _Key:
    """What the key of a value says of it."""

    PLAIN, STRONG, WEAK, NAMED, BARE = range(5)


@lru_cache(maxsize=1024)
def _is_plain(name: str) -> bool:
    """Whether a short key holds no secret itself."""
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


def _scrubbed(value: JsonValue, kind: int, texts: int) -> tuple[JsonValue, int]:
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
        new[new_key], inside = _scrubbed(item, named if key == "value" else _kind(key) if short else 0, texts)
        count += in_key + inside
    return (new, count) if count else (value, 0)


def _array(value: list[JsonValue], kind: int, texts: int) -> tuple[JsonValue, int]:
    rows = [_scrubbed(item, kind, texts) for item in value]
    count = sum(inside for _, inside in rows)
    return ([item for item, _ in rows], count) if count else (value, 0)


def _text(text: str, kind: int, texts: int) -> tuple[str, int]:
    if kind in (_Key.STRONG, _Key.WEAK) and quoted_secret(text, weak=kind == _Key.WEAK):
        return MARKER, 1
    if kind == _Key.BARE and _HEX.fullmatch(text):
        return MARKER, 1
    if texts < _NESTED_TEXTS and text.lstrip()[:1] in ("{", "[") and len(text) <= _MAX_PARSED:
        inner = _inner(text, texts)
        if inner is not None:
            return inner
    spans = secret_spans(text, unlabelled=kind != _Key.NAMED)
    return _replaced(text, spans), len(spans)


def _inner(text: str, texts: int) -> tuple[str, int] | None:
    """A text that is JSON, scrubbed as JSON; None when it is none, or would not come back as it was."""
    try:
        value = cast("JsonValue", json.loads(text, object_pairs_hook=_unique))
        scrubbed, count = _scrubbed(value, _Key.PLAIN, texts + 1)
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
        raise ValueError("a key stands twice")
    return found


def _replaced(text: str, spans: list[tuple[int, int]]) -> str:
    if not spans:
        return text
    parts: list[str] = []
    at = 0
    for start, end in spans:
        parts += (text[at:start], MARKER)
        at = end
    return "".join((*parts, text[at:]))
