"""Permission levels of files and blocks, and what each lets an action do.

The table is the contract's: partner and human mean one thing here, "ask before any writing".
"""

from __future__ import annotations

from gatewright.base.word import Word
from gatewright.policy.verdict import STRICTNESS, Verdict


class Permission(Word):
    """A level, from none (not even read or listed) to admin (delete too)."""

    NONE = "none"
    READ_ONLY = "read_only"
    PARTNER = "partner"
    HUMAN = "human"
    APPEND = "append"
    READ_WRITE = "read_write"
    ADMIN = "admin"


class Action(Word):
    """What an operation does to a file or block, the mildest first."""

    READ = "read"
    APPEND = "append"
    OVERWRITE = "overwrite"
    DELETE = "delete"


class PathUse(Word):
    """What a tool does at a path that an argument of it names; none: the argument is no path."""

    READ = "read"
    WRITE = "write"
    DELETE = "delete"
    NONE = "none"

    @property
    def action(self) -> Action:
        """What a level has to allow; what is written may be written over."""
        return {PathUse.DELETE: Action.DELETE, PathUse.WRITE: Action.OVERWRITE}.get(self, Action.READ)


_ROWS = {
    Permission.NONE: (Verdict.DENY, Verdict.DENY, Verdict.DENY, Verdict.DENY),
    Permission.READ_ONLY: (Verdict.ALLOW, Verdict.DENY, Verdict.DENY, Verdict.DENY),
    Permission.PARTNER: (Verdict.ALLOW, Verdict.ASK, Verdict.ASK, Verdict.ASK),
    Permission.HUMAN: (Verdict.ALLOW, Verdict.ASK, Verdict.ASK, Verdict.ASK),
    Permission.APPEND: (Verdict.ALLOW, Verdict.ALLOW, Verdict.DENY, Verdict.DENY),
    Permission.READ_WRITE: (Verdict.ALLOW, Verdict.ALLOW, Verdict.ALLOW, Verdict.ASK),
    Permission.ADMIN: (Verdict.ALLOW, Verdict.ALLOW, Verdict.ALLOW, Verdict.ALLOW),
}
_TABLE = {(level, action): row[at] for level, row in _ROWS.items() for at, action in enumerate(Action)}


def verdict_for(level: Permission, action: Action) -> Verdict:
    """What ``level`` says to ``action``."""
    return _TABLE[level, action]


def is_more_open(level: Permission, than: Permission) -> bool:
    """Whether something is freer under ``level``: asked about where it was denied, or allowed where it was not."""
    return any(STRICTNESS[_TABLE[level, action]] < STRICTNESS[_TABLE[than, action]] for action in Action)
