"""Where a workspace is: the policy file of a path, and whether a folder lies inside. It reads no policy."""

from __future__ import annotations

import os
from pathlib import Path

from gatewright.base.errors import WorkspaceError

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
    """The real folder of a source's ``base_path``, which is relative to the policy's folder."""
    return Path(os.path.realpath(folder / base_path))


def is_inside(path: Path, folder: Path) -> bool:
    """Whether the real ``path`` is the real ``folder`` or below it."""
    return path.is_relative_to(os.path.realpath(folder))
