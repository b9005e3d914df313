"""The least change of an agent's ``capabilities``, in whichever shape they are written."""

from __future__ import annotations

from gatewright.base.report import RawPath
from gatewright.policy.kinds.capability import Capability, kind_of, plain_capability
from gatewright.policyfile.editor import REMOVED, Editor
from gatewright.policyfile.pairing import CAPABILITIES
from gatewright.policyfile.patchvalue import change_table
from gatewright.policyfile.render import block
from gatewright.policyfile.scan import Kind

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
            change_table(editor, (*path, kind), old.plain(), new.plain())
    else:
        editor.set_value(entry, plain_capability(new))
