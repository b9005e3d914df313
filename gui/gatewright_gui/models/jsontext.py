"""JSON values as text that an editor can hold, and back. It knows no places and no schemas."""

import json
from collections.abc import Mapping

from gatewright.base.errors import JsonRefused
from gatewright.base.jsonvalue import JsonValue, parse_object

_CHANGED = "\x85\xa0\u2028\u2029\ufdd0\ufdd1"
_ONE_LINE = 40


def to_text(values: Mapping[str, JsonValue]) -> str:
    """Arguments as JSON to read and edit."""
    return _dumped(dict(values), indent=2)


def json_text(value: JsonValue) -> str:
    """A value as JSON for a small editor: a short one on one line."""
    text = _dumped(value)
    return _dumped(value, indent=2) if isinstance(value, dict | list) and len(text) > _ONE_LINE else text


def parse_value(text: str) -> JsonValue:
    """The one JSON value that a text is. Raises JsonRefused."""
    held = parse_object(f'{{"v": {text}\n}}')
    if held.keys() != {"v"}:
        raise JsonRefused("not-json", "more than one value")
    return held["v"]


def value_fault(text: str) -> str | None:
    """Why a text is no JSON value."""
    try:
        parse_value(text)
    except JsonRefused as error:
        return str(error).split(" at line ", maxsplit=1)[0]
    return None


def _dumped(value: object, indent: int | None = None) -> str:
    """Characters that an editor would change are written as escapes."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    is_plain = text.isascii() or not any(letter in _CHANGED or "\ud800" <= letter <= "\udfff" for letter in text)
    return text if is_plain else json.dumps(value, ensure_ascii=True, indent=indent)
