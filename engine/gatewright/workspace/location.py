"""The location of a workspace: the policy file behind a path, and the inside of its folder."""

from __future__ import annotations

import os
from pathlib import Path

from gatewright.base.errors import WorkspaceError
from gatewright.base.file import write_atomically
from gatewright.policy.document import Policy
from gatewright.sources.spelling import as_on_disk

POLICY_NAME = "policy.toml"


def policy_path_of(path: Path) -> Path:
    """Return the policy file behind a file or folder. Raises WorkspaceError if missing."""
    try:
        if path.is_dir():
            found = path / POLICY_NAME
            if not found.exists():
                raise WorkspaceError(f"no `{POLICY_NAME}` in `{path}`")
            return found.absolute()
        if not path.exists():
            raise WorkspaceError(f"`{path}` does not exist")
    except OSError as error:
        raise WorkspaceError(f"cannot look at `{path}`: {error.strerror or error}") from None
    return path.absolute()


def resolve_base(base_path: str, folder: Path) -> Path:
    """Return the real folder of a ``base_path``, relative to the policy's folder. Raises WorkspaceError."""
    try:
        return Path(as_on_disk(os.path.realpath(folder / base_path)))
    except OSError as error:  # somebody replaced a folder above it
        raise WorkspaceError(f"cannot look at the folder `{base_path}`: {error.strerror or error}") from None


def list_folders(policy: Policy) -> list[str]:
    """List the folders of a policy's sources and roots, as written."""
    return [*(source.base_path for source in policy.folder_sources), *policy.roots.folders.values()]


def closed_places(policy: Policy, folder: Path) -> tuple[Path, ...]:
    """List the files and folders that a policy closes, existing or not; ``folder``: the policy's.

    Raises WorkspaceError for a `~` without a known home folder.
    """
    places = [os.path.expanduser(place) for place in policy.closed]  # noqa: PTH111 - it raises nothing
    if any(place.startswith("~") for place in places):
        raise WorkspaceError("`closed` of `[workspace]` names `~`, but the home folder is unknown: set `HOME`")
    return tuple(folder / place for place in places)


def is_inside(path: Path, folder: Path) -> bool:
    """Tell whether the real ``path`` is the real ``folder`` or below it."""
    return Path(as_on_disk(str(path))).is_relative_to(as_on_disk(os.path.realpath(folder)))


def place_file(folder: Path, name: str, content: bytes) -> Path:
    """Write a file at the relative path ``name`` of ``folder``, never outside. Raises OSError, WorkspaceError."""
    target = Path(os.path.normpath(folder / name))
    if not is_inside(Path(os.path.realpath(target.parent)), folder):
        raise WorkspaceError(f"`{name}` would be written outside `{folder}`")
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_symlink():
        target.unlink()
    write_atomically(target, content)
    return target
