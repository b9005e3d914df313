"""Loading and saving a policy as a value, for programs that bring their own tools. It opens no workspace."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gatewright.policy.document import Policy
from gatewright.policyfile import KnownTools, patch_text, render_policy, write_policy_text
from gatewright.schema.formats import FORMATS
from gatewright.tools import Tool
from gatewright.workspace.policy_reader import catalog_book, load_valid


def load_policy(path: Path | str, *, known: KnownTools | None = None, tools: Iterable[Tool] = ()) -> Policy:
    """The policy of a TOML file, strictly. It may name the built-in tools, ``tools`` (those of the program itself),
    and those that its own catalogs give by their manifests; ``known`` takes the place of the first two.

    Raises WorkspaceError when it cannot be read, PolicyInvalid with every problem at once, or AlreadyRegistered for a
    tool with the name and major version of another.
    """
    return load_valid(Path(path), known or _known(Path(path), tools))[1]


def save_policy(
    policy: Policy, path: Path | str, *, known: KnownTools | None = None, tools: Iterable[Tool] = ()
) -> None:
    """Write a policy, atomically; an existing file is patched, so that its comments and order stay.

    Raises WorkspaceError when it cannot be written, PolicyInvalid when the file there now has errors.
    """
    target = Path(path)
    if not target.exists():
        write_policy_text(target, render_policy(policy), expected=None)
        return
    loaded, before = load_valid(target, known or _known(target, tools))
    write_policy_text(target, patch_text(loaded.text, before, policy), expected=loaded.text)


def format_names() -> tuple[str, ...]:
    """The provider formats that a preview can have."""
    return tuple(FORMATS)


def _known(path: Path, tools: Iterable[Tool]) -> KnownTools:
    return catalog_book(path, tools).known
