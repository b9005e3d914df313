"""The files that an agent's calls may name, as the tools want them named."""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from gatewright.workspace.api import (
    PLAIN,
    Action,
    Agent,
    FsRead,
    FsWrite,
    GatewrightError,
    Permission,
    Refusal,
    Role,
    RootTool,
    Tool,
    ToolFailure,
    Verdict,
    Workspace,
    WorkspaceError,
    frozen,
    verdict_for,
)

FilesOf = Literal["nothing", "sources", "roots"]
MAX_OFFERED = 5_000
MAX_FOLDERS = 2_000


@frozen
class FileChoice:
    """One file or folder. `path`: as a call names it; `place`: the id of the source, or the name of the root.

    `is_writable`: the agent may change it, perhaps after it was asked for.
    """

    path: str
    place: str
    is_folder: bool = False
    is_writable: bool = False


@frozen
class FileChoices:
    """The choices that can be named. `is_cut`: there is more than is offered. `label`: that of a block."""

    rows: tuple[FileChoice, ...] = ()
    is_cut: bool = False
    label: str = ""

    def example(self, operation: str, *, changes: bool) -> str:
        """A path to try an operation with: a file that is there, one that may be changed; for a new file another."""
        files = [row for row in self.rows if not row.is_folder]
        found = next((row for row in files if row.is_writable), None) if changes else next(iter(files), None)
        if found is None or operation != "create":
            return found.path if found is not None else ""
        folder, taken = found.path.rpartition("/")[0], {row.path for row in files}
        free = (f"{folder}/example{number or ''}.md".lstrip("/") for number in range(len(files) + 1))
        return next(path for path in free if path not in taken)


def files_of(tool: Tool | None) -> FilesOf:
    """The files that the paths in the arguments of a tool name."""
    if isinstance(tool, RootTool):
        return "roots"
    if tool is None:
        return "nothing"
    names = [spec.name for spec in tool.operations] or [PLAIN]
    takes_labels = any(parameter.role is Role.LABEL for name in names for parameter in tool.parameters(name))
    return "sources" if tool.needs_source or takes_labels else "nothing"


def file_choices(workspace: Workspace, agent_id: str, files: FilesOf) -> FileChoices:
    """The files that the agent may see. Reads folders; takes time."""
    agent = workspace.policy.agents.get(agent_id)
    if agent is None or files == "nothing":
        return FileChoices()
    found = _in_sources(workspace, agent) if files == "sources" else _in_roots(workspace, agent)
    rows: list[FileChoice] = []
    is_cut = False
    for row in found:
        is_cut = len(rows) >= MAX_OFFERED
        if is_cut:
            break
        rows.append(row)
    return FileChoices(tuple(rows), is_cut, _label(workspace, agent_id, rows) if files == "sources" else "")


def _label(workspace: Workspace, agent_id: str, rows: list[FileChoice]) -> str:
    """The label of a block that is there and that the agent may read, else that of a file's block."""
    with contextlib.suppress(GatewrightError):
        for block in workspace.blocks(agent_id).list():
            if not block.source_id and block.permission is not Permission.NONE and block.archived_at is None:
                return block.label
    row = next((row for row in rows if not row.is_folder), None)
    if row is None:
        return ""
    at = workspace.sources.locate(row.path, source_id=row.place, allowed=(row.place,))
    return "" if isinstance(at, Refusal) else workspace.sources.label_of(at)


def _in_sources(workspace: Workspace, agent: Agent) -> Iterator[FileChoice]:
    for source in workspace.policy.sources_of(agent):
        try:
            overlay = workspace.sources.overlay(source.source_id)
        except WorkspaceError:
            continue
        folders = ["."]
        for _ in range(MAX_FOLDERS):
            if not folders:
                break
            try:
                entries = overlay.scan(folders.pop(0), limit=MAX_OFFERED).entries
            except WorkspaceError:
                continue
            for entry in entries:
                if entry.protected or entry.unusable or (entry.permission is Permission.NONE and not entry.is_folder):
                    continue
                if entry.permission is not Permission.NONE:
                    can_write = verdict_for(entry.permission, Action.OVERWRITE) is not Verdict.DENY
                    yield FileChoice(entry.relative, source.source_id, entry.is_folder, can_write)
                if entry.is_folder:
                    folders.append(entry.relative)


def _in_roots(workspace: Workspace, agent: Agent) -> Iterator[FileChoice]:
    base = workspace.policy_path.parent
    granted, written_in = _prefixes(agent, base, FsRead, FsWrite), _prefixes(agent, base, FsWrite)
    for name, root in workspace.root_folders().items():
        try:
            top = root.open()
        except ToolFailure:
            continue
        try:
            for below, folders, files, inside in os.fwalk(".", dir_fd=top):
                here = Path(root.path, below)
                if not any(here.is_relative_to(prefix) for prefix in granted):
                    continue
                can_write = any(here.is_relative_to(prefix) for prefix in written_in)
                folders.sort()
                start = Path(name, below).as_posix()
                for listed, is_folder in ((folders, True), (sorted(files), False)):
                    for one in listed:
                        if not _is_link(one, inside):
                            yield FileChoice(f"{start}/{one}", name, is_folder, can_write)
        finally:
            os.close(top)


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return True  # gone meanwhile: nothing to name


def _prefixes(agent: Agent, base: Path, *kinds: type[FsRead] | type[FsWrite]) -> list[Path]:
    return [
        Path(os.path.realpath(base / prefix))
        for capability in agent.capabilities
        if isinstance(capability, kinds)
        for prefix in capability.prefixes
    ]
