"""Writing what a deployment needs into a folder, and what to say of it. It asks nothing and shows nothing."""

from collections.abc import Sequence
from pathlib import Path

from gatewright.workspace.api import Workspace, plural


def write_export(workspace: Workspace, folder: Path, dialect: str) -> tuple[tuple[Path, ...], str]:
    """The files that were written, and in words what was made and left out. Raises WorkspaceError, NotSupported."""
    policy = workspace.policy
    named = (*(source.base_path for source in policy.sources), *policy.roots.folders.values())
    missing = {base for name in named if not (base := folder / name).exists()}
    files = workspace.export(folder, dialect=dialect)
    made = sum(base.exists() for base in missing)
    left = workspace.not_exported(dialect)
    but = f", without {', '.join(left)}: no tool" if left else ""
    return files, f"exported {_what_was_written(files, made)} to {folder}{but}"


def _what_was_written(files: Sequence[Path], folders: int) -> str:
    names = files[0].name if len(files) == 1 else f"{len(files)} files"
    return names if not folders else f"{names} and {plural(folders, 'empty folder')}"
