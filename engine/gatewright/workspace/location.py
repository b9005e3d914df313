"""Where a workspace is: the policy file of a path, and what lies inside its folder. It reads no policy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from gatewright.base.errors import WorkspaceError
from gatewright.base.file import write_atomically
from gatewright.sources.spelling import as_on_disk

if TYPE_CHECKING:
    from gatewright.policy.document import Policy

POLICY_NAME = "policy.toml"


def policy_path_of(path: Path) -> Path:
    """The policy file meant by a file or folder. Raises WorkspaceError when there is none."""
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


def resolved(base_path: str, folder: Path) -> Path:
    """The real folder of a source's ``base_path``, which is relative to the policy's folder. Raises WorkspaceError."""
    try:
        return Path(as_on_disk(os.path.realpath(folder / base_path)))
    except OSError as error:  # a folder above it was replaced meanwhile
        raise WorkspaceError(f"cannot look at the folder `{base_path}`: {error.strerror or error}") from None


def written_folders(policy: Policy) -> list[str]:
    """The folders that a policy names, of sources and roots, as written."""
    return [*(source.base_path for source in policy.folder_sources), *policy.roots.folders.values()]


def closed_places(policy: Policy, folder: Path) -> tuple[Path, ...]:
    """The files and folders that a policy closes, whether they are there or not; ``folder``: where the policy lies.

    Raises WorkspaceError where `~` is written and nobody knows the home folder.
    """
    places = [os.path.expanduser(place) for place in policy.closed]  # noqa: PTH111 - it raises nothing
    if any(place.startswith("~") for place in places):
        raise WorkspaceError("`closed` of `[workspace]` names `~`, and no home folder is known: set `HOME`")
    return tuple(folder / place for place in places)


def is_inside(path: Path, folder: Path) -> bool:
    """Whether the real ``path`` is the real ``folder`` or below it."""
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
