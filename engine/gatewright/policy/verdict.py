"""Verdicts, safety tiers, permission levels and tool names: the vocabulary of a policy.

Each tier and each level gives a verdict: allow, ask or deny. The contract fixes the table of levels: partner and human
both mean "ask before any writing". A tool is written as ``name`` or ``name@major``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Protocol, TypeVar

from gatewright.base.word import Word


class Verdict(Word):
    """The outcome of a decision; the order of strictness is allow < ask < deny."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"

    @property
    def words(self) -> str:
        """The app's word for the verdict."""
        return "ask first" if self is Verdict.ASK else self.value


STRICTNESS = {verdict: rank for rank, verdict in enumerate(Verdict)}


def strictest(*verdicts: Verdict) -> Verdict:
    """The strictest of them; allow for none."""
    return max(verdicts, key=STRICTNESS.__getitem__, default=Verdict.ALLOW)


@lru_cache
def stricter(verdicts: frozenset[Verdict], than: Verdict) -> frozenset[Verdict]:
    """Those of them that are stricter than one."""
    return frozenset(verdict for verdict in verdicts if STRICTNESS[verdict] > STRICTNESS[than])


class SafetyTier(Word):
    """The power of an operation, the least first; spelt as in the policy file's ``approvals``."""

    READ_ONLY = "read_only"
    SIDE_EFFECTING = "side_effecting"
    PRIVILEGED = "privileged"


TIER_DEFAULTS = {
    SafetyTier.READ_ONLY: Verdict.ALLOW,
    SafetyTier.SIDE_EFFECTING: Verdict.ALLOW,
    SafetyTier.PRIVILEGED: Verdict.ASK,
}
"""The verdict on a tier without an ``approvals`` key."""


def deciding_keys(tool: str, operation: str, tier: SafetyTier) -> tuple[str, ...]:
    """The keys of ``approvals`` that may decide an operation, the most specific first."""
    return (f"{tool}.{operation}", tool, str(tier)) if operation else (tool, str(tier))


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
    """The effect of an operation on a file or block, the mildest first."""

    READ = "read"
    APPEND = "append"
    OVERWRITE = "overwrite"
    DELETE = "delete"


class PathUse(Word):
    """The use that a tool makes of a path argument; none: the argument is no path."""

    READ = "read"
    WRITE = "write"
    DELETE = "delete"
    NONE = "none"

    @property
    def action(self) -> Action:
        """The action that a level must permit; a write may overwrite."""
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
LEVEL_VERDICTS = {(level, action): row[at] for level, row in _ROWS.items() for at, action in enumerate(Action)}
"""What each level says to each action."""


def verdict_for(level: Permission, action: Action) -> Verdict:
    """The verdict of ``level`` on ``action``."""
    return LEVEL_VERDICTS[level, action]


def is_more_open(level: Permission, than: Permission) -> bool:
    """Tell whether ``level`` gives some action a milder verdict than ``than``."""
    return any(
        STRICTNESS[LEVEL_VERDICTS[level, action]] < STRICTNESS[LEVEL_VERDICTS[than, action]] for action in Action
    )


ANY_TOOL = "*"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,127}")
_DIGITS = 9
"""The most digits of a major; a longer number is part of the name, since Python refuses to read thousands of digits."""


def tool_name_fault(name: object) -> str:
    """The fault of a ``name`` that policies and protocols cannot write; empty for a valid one."""
    if isinstance(name, str) and _NAME.fullmatch(name):
        return ""
    return f"`{name}` is no tool name: letters, digits, `_`, `-`, `.`, `/`, up to 128, a letter, digit or `_` first"


class _Versioned(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def major(self) -> int: ...


_Tool = TypeVar("_Tool", bound=_Versioned)


def split_name(written: str) -> tuple[str, int | None]:
    """``("recall", 2)`` for ``recall@2``; the major is None for a bare name or a tail that is no number."""
    name, at, major = written.rpartition("@")
    is_major = at and name and major.isdecimal() and major.isascii() and len(major) <= _DIGITS
    return (name, int(major)) if is_major else (written, None)


def names_tool(written: str, tool_name: str, major: int) -> bool:
    """Tell whether ``written`` (bare, ``name@major`` or ``*``) names that tool."""
    if "@" not in written:
        return written in (tool_name, ANY_TOOL)
    name, wanted = split_name(written)
    return name == tool_name and wanted in {None, major}


def pick_tools(catalog: Iterable[_Tool], listed: tuple[str, ...] | None) -> dict[str, _Tool]:
    """Pick one major per name, in catalog order: the one that ``listed`` names as ``name@major``, else the highest."""
    asked_for = [split_name(written) for written in listed or () if "@" in written]
    wanted = {name: major for name, major in asked_for if major is not None}
    chosen: dict[str, _Tool] = {}
    for facts in catalog:
        held = chosen.get(facts.name)
        asked = wanted.get(facts.name) if held is not None else None
        if held is None or facts.major == asked or (facts.major > held.major and held.major != asked):
            chosen[facts.name] = facts
    return chosen
