"""The least change of ``[workspace]``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.report import RawPath
from gatewright.policyfile.editor import REMOVED
from gatewright.policyfile.plain import plain_roots

if TYPE_CHECKING:
    from gatewright.policy.document import Roots
    from gatewright.policyfile.editor import Editor

_ROOTS: RawPath = ("workspace", "roots")


def patch_roots(editor: Editor, old: Roots, new: Roots) -> None:
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
