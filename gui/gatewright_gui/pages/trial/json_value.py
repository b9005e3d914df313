"""Places in a JSON value, told by their path, and JSON values as text that an editor can hold."""

import json
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, TypeAlias, cast

from gatewright.workspace.api import JsonRefused, JsonValue, parse_object

Path: TypeAlias = tuple[str | int, ...]


class Nothing(Enum):
    """The sign that there is no value."""

    NOTHING = "nothing"


NOTHING: Final = Nothing.NOTHING
Value: TypeAlias = JsonValue | Nothing


def path_words(path: Path) -> str:
    """A place to read: `items[0].name`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def step_into(value: object, step: str | int) -> Value:
    """The value that stands one step further in."""
    if isinstance(value, dict) and isinstance(step, str):
        return cast("Mapping[str, JsonValue]", value).get(step, NOTHING)
    if isinstance(value, list) and isinstance(step, int):
        items = cast("list[JsonValue]", value)
        return items[step] if 0 <= step < len(items) else NOTHING
    return NOTHING


def value_at(root: JsonValue, path: Path) -> Value:
    """The value at a place."""
    current: Value = root
    for step in path:
        current = step_into(current, step)
    return current


def path_of(root: JsonValue, pointer: str) -> Path:
    """The place that a JSON pointer into a value names, as far as it is there."""
    path: list[str | int] = []
    current: Value = root
    for part in pointer.split("/")[1:]:
        word = part.replace("~1", "/").replace("~0", "~")
        step = int(word) if isinstance(current, list) and word.isdecimal() else word
        current = step_into(current, step)
        if current is NOTHING:
            break
        path.append(step)
    return tuple(path)


def put(root: dict[str, JsonValue], path: Path, value: JsonValue) -> None:
    """Put a value at a place whose holder is there; at the end of a list it is added."""
    held: Any = value_at(root, path[:-1])
    if isinstance(held, list) and path[-1] == len(cast("list[JsonValue]", held)):
        cast("list[JsonValue]", held).append(value)
    else:
        cast("Any", held)[path[-1]] = value


def take_out(root: dict[str, JsonValue], path: Path) -> None:
    """Leave a place out; an item of a list becomes null, so that those after it stay where they are."""
    last = path[-1] if path else None
    held: Any = value_at(root, path[:-1])
    if isinstance(held, dict):
        cast("dict[object, JsonValue]", held).pop(last, None)
    elif isinstance(held, list) and isinstance(last, int) and last < len(cast("list[JsonValue]", held)):
        held[last] = None


_CHANGED = "\x85\xa0\u2028\u2029\ufdd0\ufdd1"
_ONE_LINE = 40


def to_text(values: Mapping[str, JsonValue]) -> str:
    """Arguments as JSON to read and edit."""
    return _dump(dict(values), indent=2)


def json_text(value: JsonValue) -> str:
    """A value as JSON for a small editor: a short one on one line."""
    text = _dump(value)
    return _dump(value, indent=2) if isinstance(value, dict | list) and len(text) > _ONE_LINE else text


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


def _dump(value: object, indent: int | None = None) -> str:
    """Characters that an editor would change are written as escapes."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    is_plain = text.isascii() or not any(letter in _CHANGED or "\ud800" <= letter <= "\udfff" for letter in text)
    return text if is_plain else json.dumps(value, ensure_ascii=True, indent=indent)
