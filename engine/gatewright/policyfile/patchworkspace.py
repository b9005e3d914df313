"""The least change of ``[workspace]``."""

from __future__ import annotations

from gatewright.base.report import RawPath
from gatewright.policy.document import Policy
from gatewright.policyfile.editor import REMOVED, Editor
from gatewright.policyfile.plain import Plain, plain_roots, plain_shell, plain_workspace

_ROOTS: RawPath = ("workspace", "roots")
_SHELL: RawPath = ("workspace", "shell")


def patch_workspace(editor: Editor, old: Policy, new: Policy) -> None:
    """Edit what differs, each where it stands: of roots and shell single keys, any other as one."""
    before, after, done = plain_workspace(old), plain_workspace(new), {_ROOTS[1], _SHELL[1]}
    if before == after:
        return
    if editor.find(_ROOTS[:1]) is None:
        editor.set_members(_ROOTS[:1], after)
        return
    _patch(editor, _ROOTS, plain_roots(old.roots), plain_roots(new.roots))
    _patch(editor, _SHELL, plain_shell(old.shell), plain_shell(new.shell))
    for key in [key for key in {**before, **after} if key not in done and before.get(key) != after.get(key)]:
        editor.remove((*_ROOTS[:1], key)) if key not in after else editor.set_members(_ROOTS[:1], {key: after[key]})


def _patch(editor: Editor, path: RawPath, before: Plain, after: Plain) -> None:
    """Edit one of its tables, each key where it stands."""
    if before == after:
        return
    if editor.find(path) is None:
        editor.set_members(path[:1], {str(path[1]): after})
    elif not after:
        editor.remove(path)
    else:
        changed = {key: value for key, value in after.items() if before.get(key) != value}
        editor.set_members(path, {**{key: REMOVED for key in before if key not in after}, **changed})
