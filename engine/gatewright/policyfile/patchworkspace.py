"""The least change of ``[workspace]``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.report import RawPath
from gatewright.policyfile.editor import REMOVED
from gatewright.policyfile.plain import plain_roots, plain_workspace

if TYPE_CHECKING:
    from gatewright.policy.document import Policy, Roots
    from gatewright.policyfile.editor import Editor

_ROOTS: RawPath = ("workspace", "roots")


def patch_workspace(editor: Editor, old: Policy, new: Policy) -> None:
    """Edit what differs, each where it stands: of the roots single folders, any other key as one."""
    if editor.find(_ROOTS[:1]) is None:
        editor.set_members(_ROOTS[:1], plain_workspace(new))
        return
    _patch_roots(editor, old.roots, new.roots)
    before, after = plain_workspace(old), plain_workspace(new)
    for key in [key for key in {**before, **after} if key != _ROOTS[1] and before.get(key) != after.get(key)]:
        editor.remove((*_ROOTS[:1], key)) if key not in after else editor.set_members(_ROOTS[:1], {key: after[key]})


def _patch_roots(editor: Editor, old: Roots, new: Roots) -> None:
    """Edit the folders of the roots, each where it stands."""
    before, after = plain_roots(old), plain_roots(new)
    if before == after:
        return
    if editor.find(_ROOTS) is None:
        editor.set_members(_ROOTS[:1], {"roots": after})
    elif not after:
        editor.remove(_ROOTS)
    else:
        changed = {name: folder for name, folder in after.items() if before.get(name) != folder}
        editor.set_members(_ROOTS, {**{name: REMOVED for name in before if name not in after}, **changed})
