"""How the state of a file with a block is shown: icon, word and one line that explains. It does not know the disk."""

from collections.abc import Mapping
from dataclasses import dataclass

from gatewright.sources import FileState
from gatewright_gui.qt.look import Role
from gatewright_gui.session.filestate import FileStanding, FolderStanding


@dataclass(frozen=True, slots=True)
class StateLook:
    """How a state is shown."""

    word: str
    icon: str
    role: Role
    explanation: str


STATES: Mapping[FileState, StateLook] = {
    FileState.SYNCED: StateLook("loaded", "layers", "muted", "agents work on a block of it, which is as the disk is"),
    FileState.BLOCK_MODIFIED: StateLook(
        "unsaved", "pencil", "ask", "its block holds edits that were not written to disk"
    ),
    FileState.DISK_MODIFIED: StateLook(
        "disk changed", "refresh-cw", "accent", "the file changed outside; its block, without edits, is older"
    ),
    FileState.CONFLICT: StateLook(
        "conflict", "triangle-alert", "deny", "its block holds edits, and the file changed outside meanwhile"
    ),
    FileState.DISK_DELETED: StateLook("gone", "trash", "deny", "the file is gone from disk; its block is still there"),
}


def look_of(state: FileState) -> StateLook:
    """How a state is shown."""
    return STATES.get(state, STATES[FileState.SYNCED])


def words_of(standing: FileStanding | FolderStanding | None) -> str:
    """The word of a file's state, or how many files below a folder have it; empty for none."""
    if standing is None:
        return ""
    word = look_of(standing.state).word
    return f"{standing.count:,} {word}" if isinstance(standing, FolderStanding) else word


def sentence_of(standing: FileStanding) -> str:
    """What is to be known of a file with a block."""
    return f"{look_of(standing.state).explanation}{f': {standing.problem}' if standing.problem else ''}"
