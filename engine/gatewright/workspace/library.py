"""Loading and saving a policy as a value, for programs that bring their own tools. It opens no workspace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gatewright.policyfile import patch_text, render_policy, write_policy_text
from gatewright.workspace.assembly import load_valid

if TYPE_CHECKING:
    from gatewright.policy.document import Policy
    from gatewright.policyfile import KnownTools


def load_policy(path: Path | str, *, known: KnownTools | None = None) -> Policy:
    """The policy of a TOML file, strictly. ``known``: the tools that it may name (default: the built-in ones).

    Raises WorkspaceError when it cannot be read, PolicyInvalid with every problem at once.
    """
    return load_valid(Path(path), known)[1]


def save_policy(policy: Policy, path: Path | str, *, known: KnownTools | None = None) -> None:
    """Write a policy, atomically; an existing file is patched, so that its comments and order stay.

    Raises WorkspaceError when it cannot be written, PolicyInvalid when the file there now has errors.
    """
    target = Path(path)
    if not target.exists():
        write_policy_text(target, render_policy(policy), expected=None)
        return
    loaded, before = load_valid(target, known)
    write_policy_text(target, patch_text(loaded.text, before, policy), expected=loaded.text)
