"""The files that an agent's calls may name, as the tools want them named. It does not know fields or calls."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gatewright.base.errors import WorkspaceError
from gatewright.builtins import RootTool
from gatewright.policy.capability import FsRead, FsWrite
from gatewright.policy.document import Agent
from gatewright.policy.permission import Permission
from gatewright.tools.tool import Tool
from gatewright.workspace import Workspace

FilesOf = Literal["nothing", "sources", "roots"]
MAX_OFFERED = 5_000
MAX_FOLDERS = 2_000


@dataclass(frozen=True, slots=True)
class FileChoice:
    """One file or folder. `path`: as a call names it; `place`: the id of the source, or the name of the root."""

    path: str
    place: str
    is_folder: bool = False


@dataclass(frozen=True, slots=True)
class FileChoices:
    """What can be named. `is_cut`: there is more than is offered."""

    rows: tuple[FileChoice, ...] = ()
    is_cut: bool = False


def files_of(tool: Tool | None) -> FilesOf:
    """What the paths in the arguments of a tool name."""
    if isinstance(tool, RootTool):
        return "roots"
    return "sources" if tool is not None and tool.needs_source else "nothing"


def file_choices(workspace: Workspace, agent_id: str, files: FilesOf) -> FileChoices:
    """The files that the agent may see. Reads folders; takes time."""
    agent = workspace.policy.agents.get(agent_id)
    if agent is None or files == "nothing":
        return FileChoices()
    found = _in_sources(workspace, agent) if files == "sources" else _in_roots(workspace, agent)
    rows: list[FileChoice] = []
    for row in found:
        if len(rows) >= MAX_OFFERED:
            return FileChoices(tuple(rows), is_cut=True)
        rows.append(row)
    return FileChoices(tuple(rows))


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
                    yield FileChoice(entry.relative, source.source_id, entry.is_folder)
                if entry.is_folder:
                    folders.append(entry.relative)


def _in_roots(workspace: Workspace, agent: Agent) -> Iterator[FileChoice]:
    base = workspace.policy_path.parent
    granted = [
        Path(os.path.realpath(base / prefix))
        for capability in agent.capabilities
        if isinstance(capability, FsRead | FsWrite)
        for prefix in capability.prefixes
    ]
    for name, written in workspace.policy.roots.folders.items():
        root = Path(os.path.realpath(base / written))
        for here, folders, files in os.walk(root):
            if not any(Path(here).is_relative_to(prefix) for prefix in granted):
                continue
            folders.sort()
            below = Path(here).relative_to(root).as_posix()
            start = name if below == "." else f"{name}/{below}"
            for listed, is_folder in ((folders, True), (sorted(files), False)):
                for one in listed:
                    if not (Path(here) / one).is_symlink():
                        yield FileChoice(f"{start}/{one}", name, is_folder)
