"""How the files of a source and their blocks stand to each other, as values for the Files page.

Looking reads every file that has a block: it belongs in a thread.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, cast

from gatewright.workspace.api import FileSource, FileState, ToolFailure, WorkspaceError, frozen

MAX_LOOKED_AT = 5_000
"""Files with a block that are looked at."""


_WORST = (
    FileState.CONFLICT,
    FileState.DISK_DELETED,
    FileState.DISK_MODIFIED,
    FileState.BLOCK_MODIFIED,
    FileState.SYNCED,
)


@frozen
class FileStanding:
    """A file with a block. `problem`: why one of them cannot be had; `mark`: another one once block or file is."""

    path: str
    state: FileState
    problem: str | None = None
    has_edits: bool = False
    mark: str = ""

    @property
    def is_conflict(self) -> bool:
        """Tell whether both changed."""
        return self.state is FileState.CONFLICT

    @property
    def needs_reconciling(self) -> bool:
        """Tell whether the disk changed under the block."""
        return self.state in {FileState.CONFLICT, FileState.DISK_MODIFIED, FileState.DISK_DELETED}


@frozen
class FolderStanding:
    """The worst state of what is below a folder, and how many files have it."""

    state: FileState
    count: int


@frozen
class Standings:
    """Of one source. `truncated`: more files have a block than were looked at."""

    files: Mapping[str, FileStanding] = field(default_factory=dict[str, FileStanding])
    folders: Mapping[str, FolderStanding] = field(default_factory=dict[str, FolderStanding])
    truncated: bool = False

    @property
    def open_conflicts(self) -> int:
        """Files that wait for somebody to decide."""
        return sum(one.is_conflict for one in self.files.values())


@frozen
class OutsideChanges:
    """Files of a watched source that somebody else changed, from its base. `more`: more than are told."""

    source_id: str
    paths: tuple[str, ...]
    more: bool = False


@frozen
class Reconciled:
    """The outcome of reconciling. `is_conflict`: nothing was done; the two differences say why."""

    path: str
    outcome: str
    why: str
    block_diff: str
    disk_diff: str

    @property
    def is_conflict(self) -> bool:
        """Tell whether somebody has to decide."""
        return self.outcome == "conflict"


def standings_of(source: FileSource, cancelled: Callable[[], bool]) -> Standings:
    """Look at every file of a source that has a block."""
    found: dict[str, FileStanding] = {}
    places = source.block_places()
    for path in places[:MAX_LOOKED_AT]:
        if cancelled():
            break
        standing = _standing(source, path)
        if standing is not None:
            found[path] = standing
    return Standings(found, _folders(found), len(places) > MAX_LOOKED_AT)


def _standing(source: FileSource, path: str) -> FileStanding | None:
    try:
        row, mark = source.standing(path)
    except (ToolFailure, WorkspaceError) as failure:
        return FileStanding(path, FileState.CONFLICT, str(failure))
    state, problem = FileState(str(row["state"])), row.get("problem")
    if state is FileState.NOT_LOADED:
        return None
    told = str(problem) if problem else None
    return FileStanding(path, state, told, bool(row["unsaved"]), mark)


def _folders(files: Mapping[str, FileStanding]) -> dict[str, FolderStanding]:
    """The standings of folders, without what is in step."""
    counts: dict[str, dict[FileState, int]] = {}
    for path, standing in files.items():
        head = path
        while standing.state is not FileState.SYNCED and "/" in head:
            head = head.rpartition("/")[0]
            of_folder = counts.setdefault(head, {})
            of_folder[standing.state] = of_folder.get(standing.state, 0) + 1
    worst = {folder: next(state for state in _WORST if state in have) for folder, have in counts.items()}
    return {folder: FolderStanding(state, counts[folder][state]) for folder, state in worst.items()}


def outcome_of(path: str, answer: object) -> Reconciled:
    """The answer of the workspace, as a value."""
    row = cast("dict[str, Any]", answer) if isinstance(answer, dict) else {"outcome": json.dumps(answer)}
    texts = [row.get(name) for name in ("why", "block_diff", "disk_diff")]
    why, block, disk = (text if isinstance(text, str) else "" for text in texts)
    return Reconciled(path, str(row.get("outcome", "")), why, block, disk)
