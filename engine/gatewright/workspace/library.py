"""Loading and saving a policy as a value, for programs that bring their own tools. It opens no workspace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gatewright.base.errors import PolicyInvalid
from gatewright.policyfile import parse_policy, patch_text, read_policy_text, render_policy, write_policy_text
from gatewright.workspace.assembly import known_tools

if TYPE_CHECKING:
    from gatewright.policy.document import Policy
    from gatewright.policyfile import KnownTools


def load_policy(path: Path | str, *, known: KnownTools | None = None) -> Policy:
    """The policy of a TOML file, strictly. ``known``: the tools that it may name (default: the built-in ones).

    Raises WorkspaceError when it cannot be read, PolicyInvalid with every problem at once.
    """
    text = read_policy_text(Path(path))
    loaded = parse_policy(text, file=str(path), known=known or known_tools())
    if loaded.policy is None:
        raise PolicyInvalid(loaded.problems)
    return loaded.policy


def save_policy(policy: Policy, path: Path | str, *, known: KnownTools | None = None) -> None:
    """Write a policy, atomically; an existing file is patched, so that its comments and order stay.

    Raises WorkspaceError when it cannot be written, PolicyInvalid when the file there now has errors.
    """
    target = Path(path)
    if not target.exists():
        write_policy_text(target, render_policy(policy), expected=None)
        return
    text = read_policy_text(target)
    before = load_policy(target, known=known)
    write_policy_text(target, patch_text(text, before, policy), expected=text)
