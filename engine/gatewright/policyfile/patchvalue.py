"""Values edited in the spelling that the author chose: lists of texts, durations. It knows no tables."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

from gatewright.base.duration import plain_duration
from gatewright.policyfile.editor import REMOVED, VALUES
from gatewright.policyfile.plain import duration_like

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gatewright.base.report import RawPath
    from gatewright.policyfile.editor import Editor
    from gatewright.policyfile.scan import Item


def set_words(
    editor: Editor,
    path: RawPath,
    old: tuple[str, ...] | None,
    new: tuple[str, ...] | None,
    renamed: Mapping[str, str] | None = None,
) -> None:
    """Turn a list of texts from ``old`` to ``new``; None: the key is not there. ``renamed``: what they name was."""
    if old == new:
        return
    if new is None:
        editor.remove(path)
    else:
        editor.edit_words(path, old or (), new, renamed)


def set_scalars(editor: Editor, path: RawPath, pairs: Mapping[str, tuple[object, object]]) -> None:
    """Write the members of a table that differ, given as (old, new); None: the key is not there."""
    changes = {key: REMOVED if new is None else new for key, (old, new) in pairs.items() if old != new}
    editor.set_members(path, changes)


def written_value(editor: Editor, item: Item) -> object:
    """What a written value says."""
    return tomllib.loads(f"v = {editor.source_of(item)}")["v"]


def written_duration(editor: Editor, path: RawPath, seconds: float | None) -> object:
    """A duration as it is spelt at ``path`` now; ``REMOVED`` for None."""
    if seconds is None:
        return REMOVED
    item = editor.find(path)
    if item is None or item.kind not in VALUES:
        return plain_duration(seconds)
    return duration_like(written_value(editor, item), seconds)
