"""The least change of an agent's ``capabilities``, in whichever shape they are written. It knows no other key."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, cast

from gatewright.base.report import RawPath
from gatewright.policy.kinds.capability import Capability, Exec, kind_of, plain_capability
from gatewright.policyfile.editor import REMOVED, Editor
from gatewright.policyfile.pairing import CAPABILITIES
from gatewright.policyfile.plain import duration_like
from gatewright.policyfile.render import block
from gatewright.policyfile.scan import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

Capabilities = tuple[Capability, ...]


def patch_capabilities(editor: Editor, path: RawPath, old: Capabilities, new: Capabilities) -> None:
    """Turn the list at ``path`` from ``old`` to ``new``; a kept entry changes only inside."""
    if old == new:
        return
    item = editor.find(path)
    if item is None or len(item.elements) != len(old):
        editor.set_members(path[:-1], {str(path[-1]): list(map(plain_capability, new))})
        return
    editor.edit_list(
        path,
        old,
        new,
        CAPABILITIES,
        plain=plain_capability,
        blocks=lambda capability: [block((*path, 0), {str(kind_of(capability)): capability.plain()})],
        change=lambda place, one, other: _change(editor, place, one, other),
    )


def _change(editor: Editor, path: RawPath, old: Capability, new: Capability) -> None:
    entry, kind = editor.find(path), str(kind_of(new))
    if entry is None:
        return
    if entry.kind is Kind.TABLE or (kind_of(old) is kind_of(new) and kind in entry.members):
        if kind_of(old) is not kind_of(new):
            editor.set_members(path, {str(kind_of(old)): REMOVED, kind: new.plain()})
        else:
            _change_scope(editor, (*path, kind), old.plain(), new)
    else:
        editor.set_value(entry, plain_capability(new))


def _change_scope(editor: Editor, path: RawPath, before: Mapping[str, object], new: Capability) -> None:
    changes: dict[str, object] = {key: REMOVED for key in before if key not in new.plain()}
    for key, value in new.plain().items():
        held = before.get(key)
        if isinstance(value, list) and isinstance(held, list):
            editor.edit_words((*path, key), cast("list[str]", held), cast("list[str]", value))
        elif held != value:
            changes[key] = _like(editor, (*path, key), new, cast("object", value))
    editor.set_members(path, changes)


def _like(editor: Editor, path: RawPath, new: Capability, value: object) -> object:
    """A changed limit, spelt as the author spelt it."""
    item = editor.find(path)
    if item is None or item.kind not in {Kind.SCALAR, Kind.INLINE}:
        return value
    written: object = tomllib.loads(f"v = {editor.source_of(item)}")["v"]
    if isinstance(new, Exec) and path[-1] == "cpu_limit" and new.cpu_limit is not None:
        return duration_like(written, new.cpu_limit)
    size = new.mem_limit if isinstance(new, Exec) else getattr(new, "memory", None)
    return size if isinstance(written, int) and path[-1] != "fuel" else value
