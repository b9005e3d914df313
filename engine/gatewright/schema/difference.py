"""What differs between a full schema and the one shown. It does not know why."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from gatewright.schema.walk import Pointer, as_list, as_object, pointer_text

ChangeKind = Literal["removed", "added", "changed"]


@dataclass(frozen=True, slots=True)
class Change:
    """One difference; ``before`` or ``after`` is None for an addition or a removal."""

    pointer: str
    kind: ChangeKind
    before: Any
    after: Any


def schema_difference(full: Any, shown: Any) -> tuple[Change, ...]:
    """The changes from ``full`` to ``shown`` in reading order; lists of plain values are compared by member."""
    return tuple(_changes(full, shown, ()))


def text_difference(full: Any, shown: Any) -> tuple[str, ...]:
    """The same as lines of a unified difference over indented JSON, without line ends; empty when they are equal."""
    lines = difflib.unified_diff(_pretty(full), _pretty(shown), "unrestricted", "shown", lineterm="")
    return tuple(lines)


def _pretty(value: Any) -> list[str]:
    return json.dumps(value, indent=2, ensure_ascii=False).splitlines()


def _changes(before: Any, after: Any, place: Pointer) -> Iterator[Change]:
    tables = as_object(before), as_object(after)
    arrays = as_list(before), as_list(after)
    if tables[0] is not None and tables[1] is not None:
        yield from _table_changes(tables[0], tables[1], place)
    elif arrays[0] is not None and arrays[1] is not None:
        yield from _array_changes(arrays[0], arrays[1], place)
    elif before != after or type(before) is not type(after):
        yield Change(pointer_text(place), "changed", before, after)


def _table_changes(before: dict[str, Any], after: dict[str, Any], place: Pointer) -> Iterator[Change]:
    for key, value in before.items():
        if key in after:
            yield from _changes(value, after[key], (*place, key))
        else:
            yield Change(pointer_text((*place, key)), "removed", value, None)
    for key, value in after.items():
        if key not in before:
            yield Change(pointer_text((*place, key)), "added", None, value)


def _array_changes(before: list[Any], after: list[Any], place: Pointer) -> Iterator[Change]:
    if len(before) == len(after) and any(isinstance(item, (dict, list)) for item in before):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _changes(old, new, (*place, index))
        return
    old_texts, new_texts = [_key(item) for item in before], [_key(item) for item in after]
    for index, item in enumerate(before):
        if old_texts[index] not in new_texts:
            yield Change(pointer_text((*place, index)), "removed", item, None)
    for index, item in enumerate(after):
        if new_texts[index] not in old_texts:
            yield Change(pointer_text((*place, index)), "added", None, item)


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
