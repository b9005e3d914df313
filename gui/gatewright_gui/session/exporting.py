"""Writing what a deployment needs into a folder, and what to say of it. It asks nothing and shows nothing."""

from pathlib import Path
from typing import Literal

from gatewright.workspace.api import Workspace
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.session.message import Message

ExportKind = Literal["policy", "team", "pattern"]
"""The policy and what it names; that with what a team needs beside it; or, for Pattern, a file per agent."""
NAMED = 4
"""Paths that a message names."""


def write_export(workspace: Workspace, folder: Path, kind: ExportKind) -> tuple[tuple[Path, ...], Message]:
    """The files that were written, and what was made and left out. Raises WorkspaceError, NotSupported."""
    policy = workspace.policy
    named = (*(source.base_path for source in policy.folder_sources), *policy.roots.folders.values())
    missing = {base for name in named if not (base := folder / name).exists()}
    dialect = "pattern" if kind == "pattern" else "gatewright"
    files = workspace.export(folder, dialect=dialect, team=kind == "team")
    made = sum(_is_empty_folder(base, folder) for base in missing)
    left = workspace.not_exported(dialect)
    written = files[0].name if len(files) == 1 else counted(len(files), "file", "files")
    if made:
        written = tr("{files} and {folders}", files=written, folders=counted(made, "empty folder", "empty folders"))
    text = tr("exported {files} to {folder}, without {left}: no tool") if left else tr("exported {files} to {folder}")
    told = text.format(files=written, folder=folder, left=", ".join(left))
    bound = workspace.bound_paths() if kind != "pattern" else ()
    if not bound:
        return files, Message("info", told)
    shown = ", ".join(f"`{one.path}`" + (f" ({one.place.line})" if one.place else "") for one in bound[:NAMED])
    if len(bound) > NAMED:
        shown = tr("{paths} and {count} more", paths=shown, count=f"{len(bound) - NAMED:,}")
    told += "; " + tr("on another computer these paths (and their lines) mean nothing: {paths}", paths=shown)
    return files, Message("warning", told)


def _is_empty_folder(made: Path, folder: Path) -> bool:
    """Whether an export made a folder below its own and left it empty."""
    return made.is_dir() and made.resolve() != folder.resolve() and not any(made.iterdir())


def write_copy(workspace: Workspace, path: Path) -> Message:
    """Write the policy as a new file; where, what went with it and what did not. Raises WorkspaceError."""
    files = workspace.save_copy(path)
    if path.parent.resolve() == workspace.folder.resolve():
        return Message("info", tr("saved as {path}", path=path))
    saved = tr("saved as {path}", path=path)
    if len(files) > 1:
        manifests = counted(len(files) - 1, "manifest", "manifests")
        saved = tr("saved as {path}, with {manifests}", path=path, manifests=manifests)
    stays = tr("its folders are empty: files, memory, audit log and trust stay with the old one")
    return Message("warning", f"{saved}; {stays}")
