"""Values edited in the spelling that the author chose: lists of texts, durations."""

from __future__ import annotations

import contextlib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import TypeGuard, TypeVar, cast

from gatewright.base.duration import parse_duration
from gatewright.base.report import RawPath
from gatewright.base.size import parse_size
from gatewright.policyfile.editor import REMOVED, VALUES, Editor
from gatewright.policyfile.pairing import Naming
from gatewright.policyfile.plain import duration_like
from gatewright.policyfile.render import block
from gatewright.policyfile.scan import Item
from gatewright.schema.walk import as_object

T = TypeVar("T")


def written_value(editor: Editor, item: Item) -> object:
    """What a written value says."""
    return tomllib.loads(f"v = {editor.source_of(item)}")["v"]


def value_like(written: object, value: object) -> object:
    """``value``, a duration or a size as a number where that is how it is ``written``; anything else as it is."""
    if isinstance(written, str) or not isinstance(value, str | int | float) or isinstance(value, bool):
        return value
    for read in (lambda: duration_like(written, parse_duration(value)), lambda: parse_size(value)):
        with contextlib.suppress(ValueError, OverflowError):
            return read()
    return value


def change_table(
    editor: Editor,
    path: RawPath,
    old: Mapping[str, object],
    new: Mapping[str, object],
    renamed: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Turn a table from ``old`` to ``new``: lists of texts entry by entry, tables member by member.

    Other members keep the spelling that they have. ``renamed``: by key of a list of names, old to new ones.
    """
    changes: dict[str, object] = {key: REMOVED for key in old if key not in new}
    for key, value in new.items():
        held, place = old.get(key), (*path, key)
        if held == value:
            continue
        item, before, after = editor.find(place), as_object(held), as_object(value)
        if is_words(held) and is_words(value):
            editor.edit_words(place, held, value, (renamed or {}).get(key))
        elif item is not None and before and after:
            change_table(editor, place, before, after)
        elif item is not None and item.kind in VALUES and (held is None or isinstance(held, str)):
            changes[key] = value_like(written_value(editor, item), value)
        else:
            changes[key] = value
    editor.set_members(path, changes)


def edit_rows(
    editor: Editor,
    path: RawPath,
    old: Sequence[T],
    new: Sequence[T],
    naming: Naming[T],
    plain: Callable[[T], Mapping[str, object]],
    renamed: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Turn a list of tables from ``old`` to ``new``. ``renamed``: as for `change_table`."""
    editor.edit_list(
        path,
        old,
        new,
        naming,
        plain=plain,
        blocks=lambda row: [block((*path, 0), plain(row))],
        change=lambda place, one, other: change_table(editor, place, plain(one), plain(other), renamed),
    )


def is_words(value: object) -> TypeGuard[list[str]]:
    """Whether it is a list of texts."""
    return isinstance(value, list) and all(isinstance(one, str) for one in cast("list[object]", value))
