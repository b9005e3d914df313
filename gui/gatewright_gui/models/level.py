"""How permission levels are shown: icon, colours and one line that explains. It does not know paths or rules."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gatewright.policy.permission import Permission
from gatewright_gui.qt.look import LevelName
from gatewright_gui.session.files import PathLevel
from gatewright_gui.session.folderlevels import FilesBelow

PROTECTED_WORD = "protected"
PROTECTED_ICON = "lock"
OUTSIDE_WORD = "outside"
OUTSIDE_ICON = "circle-slash"
UNUSABLE_WORD = "unusable"
UNUSABLE_ICON = "ban"
MIXED_WORD = "mixed"
MIXED_ICON = "layers"


@dataclass(frozen=True, slots=True)
class LevelLook:
    """How a level is shown. `role` names its colours."""

    role: LevelName
    icon: str
    explanation: str


LEVELS: Mapping[Permission, LevelLook] = {
    Permission.NONE: LevelLook("none", "eye-off", "not even read or listed"),
    Permission.READ_ONLY: LevelLook("read_only", "eye", "read; every change is refused"),
    Permission.PARTNER: LevelLook("partner", "users", "read; every change asks first (same as human)"),
    Permission.HUMAN: LevelLook("human", "hand", "read; every change asks first (same as partner)"),
    Permission.APPEND: LevelLook("append", "plus", "read, create, add at the end; no overwriting or deleting"),
    Permission.READ_WRITE: LevelLook("read_write", "pencil", "read and write; deleting asks first"),
    Permission.ADMIN: LevelLook("admin", "shield", "everything, deleting too"),
}


@dataclass(frozen=True, slots=True)
class LevelMark:
    """Word, icon and colours of what a path gets."""

    word: str
    icon: str
    role: LevelName | Literal["blocked"]


def mark_below(below: FilesBelow) -> LevelMark:
    """What to show for a folder: the level that its files have, or that they have several."""
    word, *others = below.words
    if others:
        return LevelMark(MIXED_WORD, MIXED_ICON, "blocked")
    if word == PROTECTED_WORD:
        return LevelMark(PROTECTED_WORD, PROTECTED_ICON, "none")
    look = LEVELS[Permission(word)]
    return LevelMark(word, look.icon, look.role)


def mark_of(level: PathLevel) -> LevelMark:
    """What to show for a path: its level, or that it is protected or outside."""
    if level.protected:
        return LevelMark(PROTECTED_WORD, PROTECTED_ICON, "none")
    if level.outside:
        return LevelMark(OUTSIDE_WORD, OUTSIDE_ICON, "none")
    if level.unusable is not None:
        return LevelMark(UNUSABLE_WORD, UNUSABLE_ICON, "none")
    look = LEVELS[level.permission]
    return LevelMark(str(level.permission), look.icon, look.role)
