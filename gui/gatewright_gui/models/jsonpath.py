"""Places in a JSON value, told by their path: what stands there, put, taken out. It knows no schemas."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, TypeAlias, cast

from gatewright.base.jsonvalue import JsonValue

Path: TypeAlias = tuple[str | int, ...]


class Nothing(Enum):
    """Where there is no value."""

    NOTHING = "nothing"


NOTHING: Final = Nothing.NOTHING
Value: TypeAlias = JsonValue | Nothing


def path_words(path: Path) -> str:
    """A place to read: `items[0].name`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def step_into(value: object, step: str | int) -> Value:
    """What stands one step further in."""
    if isinstance(value, dict) and isinstance(step, str):
        return cast("Mapping[str, JsonValue]", value).get(step, NOTHING)
    if isinstance(value, list) and isinstance(step, int):
        items = cast("list[JsonValue]", value)
        return items[step] if 0 <= step < len(items) else NOTHING
    return NOTHING


def value_at(root: JsonValue, path: Path) -> Value:
    """What stands at a place."""
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
