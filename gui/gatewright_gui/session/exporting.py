"""What publishing a policy writes into a folder, compared with what lies there, and what to do with it then.

It asks nothing and shows nothing.
"""

import difflib
import json
import shlex
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Literal

from gatewright.workspace.api import Workspace, frozen
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.session.message import Message

ExportKind = Literal["policy", "team", "pattern"]
"""The policy and what it names; that with what a team needs beside it; or, for Pattern, a file per agent."""
FileFate = Literal["new", "changes", "same"]
NAMED = 4
"""Paths that a note names."""
MOST_COMPARED = 400_000
"""Letters; a longer file is not compared line by line."""
_TOO_LONG = mark("This file is too long to compare here.")


@frozen
class FileToWrite:
    """A file of an export. ``text``: all of a new file, else the difference from what lies at its place."""

    name: str
    fate: FileFate
    text: str


@frozen
class Outlook:
    """Files that an export would write, folders that are made and stay empty, and what to know about it first."""

    files: tuple[FileToWrite, ...]
    folders: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def is_new(self) -> bool:
        """True where something would change on the disk."""
        return bool(self.folders) or any(file.fate != "same" for file in self.files)

    @property
    def words(self) -> str:
        """The amount of it, in words."""
        files = counted(len(self.files), "file", "files")
        if not self.folders:
            return files
        empty = counted(len(self.folders), "empty folder", "empty folders")
        return tr("{files} and {folders}", files=files, folders=empty)


def export_outlook(workspace: Workspace, folder: Path, kind: ExportKind) -> Outlook:
    """Work out what an export would write, for the worker process. Raises WorkspaceError, NotSupported, OSError."""
    plan = workspace.plan_export(folder, dialect=_dialect(kind), team=kind == "team")
    files = tuple(_file(folder, name, content) for name, content in plan.files.items())
    held = [*(PurePath(name) for name in plan.files), *map(PurePath, plan.folders)]
    empty = tuple(
        base
        for base in plan.folders
        if not (folder / base).exists() and not any(PurePath(base) in one.parents for one in held)
    )
    return Outlook(files, empty, tuple(_notes(workspace, kind)))


def write_export(workspace: Workspace, folder: Path, kind: ExportKind) -> tuple[Path, ...]:
    """Write it and return the files. Raises WorkspaceError, NotSupported."""
    return workspace.export(folder, dialect=_dialect(kind), team=kind == "team")


def next_step(workspace: Workspace, folder: Path, kind: ExportKind, agent_id: str | None) -> tuple[str, str]:
    """Say what to do with a written export, and give the lines to type for it; none for Pattern."""
    from gatewright.workspace.api import verify_export  # not for the first painting

    match kind:
        case "team":
            digest, files, problems = verify_export(folder)
            checked = tr("{files} verified", files=counted(files, "file", "files"))
            if problems:
                checked = counted(len(problems), "difference", "differences")
            told = tr("{checked}. Send the digest another way than the folder; they run:", checked=checked)
            return told, f"{verify_command(folder)}\n# sha256:{digest}"
        case "pattern":
            return tr("Give each file to the agent that it is named after."), ""
        case _:
            agent = agent_id or next(iter(workspace.policy.agents), "")
            lines = ["from gatewright import Workspace", open_line(folder)]
            if agent:
                shown = json.dumps(agent, ensure_ascii=False)
                lines.append(f'tools = workspace.view({shown}).tools("openai")')
                lines.append(f"# each call: await workspace.call({shown}, name, arguments)")
            return tr("In your program:"), "\n".join(lines)


def verify_command(folder: Path) -> str:
    """The command that checks what a team got."""
    return f"gatewright export --verify {shlex.quote(str(folder))}"


def open_line(folder: Path) -> str:
    """The line by which a program opens what was written."""
    return f"workspace = Workspace.open({json.dumps(str(folder), ensure_ascii=False)})"


def _dialect(kind: ExportKind) -> str:
    return "pattern" if kind == "pattern" else "gatewright"


def _file(folder: Path, name: str, content: bytes) -> FileToWrite:
    try:
        before = (folder / name).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return FileToWrite(name, "new", _text(content))
    if before == content:
        return FileToWrite(name, "same", "")
    if max(len(before), len(content)) > MOST_COMPARED:
        return FileToWrite(name, "changes", tr(_TOO_LONG))
    there, then = _text(before).splitlines(), _text(content).splitlines()
    lines = difflib.unified_diff(there, then, tr("there now"), tr("written then"), lineterm="")
    return FileToWrite(name, "changes", "\n".join(lines) + "\n")


def _text(content: bytes) -> str:
    return content[:MOST_COMPARED].decode("utf-8", "replace")


def _notes(workspace: Workspace, kind: ExportKind) -> Iterator[str]:
    if workspace.is_dirty:
        yield tr("Your unsaved edits are in it.")
    if left := workspace.not_exported(_dialect(kind)):
        yield tr("Without a tool, so without a file: {agents}.", agents=", ".join(left))
    bound = workspace.bound_paths() if kind != "pattern" else ()
    if bound:
        shown = ", ".join(f"`{one.path}`" + (f" ({one.place.line})" if one.place else "") for one in bound[:NAMED])
        if len(bound) > NAMED:
            shown = tr("{paths} and {count} more", paths=shown, count=f"{len(bound) - NAMED:,}")
        yield tr("On another computer these paths (and their lines) mean nothing: {paths}.", paths=shown)


def write_copy(workspace: Workspace, path: Path) -> Message:
    """Write the policy as a new file; say where, what went with it and what did not. Raises WorkspaceError."""
    files = workspace.save_copy(path)
    if path.parent.resolve() == workspace.folder.resolve():
        return Message("info", tr("saved as {path}", path=path))
    saved = tr("saved as {path}", path=path)
    if len(files) > 1:
        manifests = counted(len(files) - 1, "manifest", "manifests")
        saved = tr("saved as {path}, with {manifests}", path=path, manifests=manifests)
    stays = tr("its folders are empty: files, memory, audit log and trust stay with the old one")
    return Message("warning", f"{saved}; {stays}")
