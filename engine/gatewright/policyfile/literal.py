"""Plain values as TOML text: keys, headers, values. It does not know what they mean."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, cast

from gatewright.base.errors import NotSupported

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gatewright.policyfile.scan import RawPath

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_MUST_ESCAPE = re.compile(r'[\x00-\x1f"\\\x7f]')
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def key_text(key: str) -> str:
    """A key, quoted where it must be."""
    return key if _BARE.fullmatch(key) else _basic(key)


def dotted(path: RawPath) -> str:
    """The dotted key of a path; positions in lists are left out, as headers do."""
    return ".".join(key_text(part) for part in path if isinstance(part, str))


def header(path: RawPath) -> str:
    """``[path]``, or ``[[path]]`` when the path ends in a position."""
    return f"[[{dotted(path)}]]" if path and isinstance(path[-1], int) else f"[{dotted(path)}]"


def literal(value: object) -> str:
    """A value on one line. Raises NotSupported for what TOML cannot say."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return text_literal(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, dict):
        return _inline(cast("Mapping[str, object]", value))
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(literal, cast('Iterable[object]', value)))}]"
    raise NotSupported(f"a policy file cannot hold a value of type `{type(value).__name__}`")


def text_literal(text: str) -> str:
    """Text in quotes; single ones where that avoids doubled backslashes."""
    if "\\" in text and "'" not in text and not any(char < " " or char == "\x7f" for char in text):
        return f"'{_encodable(text)}'"
    return _basic(text)


def _basic(text: str) -> str:
    return f'"{_MUST_ESCAPE.sub(_escape, _encodable(text))}"'


def _escape(found: re.Match[str]) -> str:
    char = found.group()
    return _SHORT.get(char) or f"\\u{ord(char):04X}"


def _encodable(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise NotSupported("a policy file cannot hold half of a surrogate pair") from None
    return text


def _float(value: float) -> str:
    return repr(value) if math.isfinite(value) else ("nan" if math.isnan(value) else f"{value}")


def _inline(table: Mapping[str, object]) -> str:
    if not table:
        return "{}"
    return "{ " + ", ".join(f"{key_text(key)} = {literal(value)}" for key, value in table.items()) + " }"
