"""The entries of a real folder with their effective levels, for people.

It reads the disk and blocks: call it in a thread. Links are shown and never followed, what a killed save left behind
is not.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from heapq import nsmallest
from itertools import count, takewhile
from typing import TypeAlias

from gatewright.base.errors import ToolFailure, WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.policy.target import LevelDecision
from gatewright.policy.verdict import Permission
from gatewright.sources.descriptor import Identity, entries_of, identity_of, unusable
from gatewright.sources.filesource import BASE, FileSource
from gatewright.sources.filetext import is_leftover

FIRST = 500
"""Entries of a large folder that are told before the rest of them is looked at."""
_PIECE = 100
_OUTSIDE = LevelDecision(Permission.NONE)
_Seen: TypeAlias = "tuple[str, os.stat_result | None]"
"""A name in a folder and what stands there; None where it cannot be looked at."""


@frozen
class Entry:
    """One row of the tree. ``index`` and ``pattern``: the deciding rule, None for the default.

    ``decided_by``: the other source over the same files whose stricter rule (``pattern``) decides, else None.
    ``unusable``: why no operation can use it (a link, a pipe, ...), else None.
    """

    name: str
    relative: str
    is_folder: bool
    permission: Permission
    index: int | None
    pattern: str | None
    protected: bool
    unusable: str | None = None
    decided_by: str | None = None


@frozen
class Listing:
    """The entries of a folder, folders first, by name whatever its case; ``truncated`` when there are more."""

    entries: tuple[Entry, ...]
    truncated: bool


class Overlay:
    """One source as people see it. ``level_of(relative, is_folder, identities)`` gives the effective level.

    ``plain(prefix, inodes)`` says that in the folder ``prefix`` the source's own rules decide alone; None: never.
    """

    def __init__(
        self,
        source: FileSource,
        level_of: Callable[[str, bool, Sequence[Identity]], LevelDecision],
        plain: Callable[[str, Sequence[int]], bool] | None = None,
    ) -> None:
        self.level_of = level_of
        self.plain = plain
        self._source = source

    def scan(
        self,
        folder: str = BASE,
        *,
        limit: int = 10_000,
        cancelled: Callable[[], bool] = lambda: False,
        first: Callable[[Listing], None] | None = None,
    ) -> Listing:
        """The entries of one folder. Raises WorkspaceError when it is missing or unreadable.

        ``first`` is given the beginning of a large folder as soon as that is known, marked as truncated.
        """
        parts = _parts(folder)
        prefix, seen, found = "/".join((*parts, "")), count(), list[Entry]()
        try:
            with entries_of(self._source.folder, parts) as entries:
                # names first, which cost little; what stands behind them is looked at piece by piece
                named = (one for one in takewhile(lambda _: not cancelled(), entries) if not is_leftover(one.name))
                wanted = nsmallest(limit, (one for one in named if next(seen) >= 0), key=_order)
                for start in range(0, len(wanted), _PIECE):
                    if cancelled():
                        return Listing(tuple(found), truncated=True)
                    if start == FIRST and first is not None:
                        first(Listing(tuple(found), truncated=True))
                    found += self._judged(prefix, [_seen(entry) for entry in wanted[start : start + _PIECE]])
        except ToolFailure as failure:
            raise WorkspaceError(f"`{self._source.absolute('/'.join(parts) or BASE)}`: {failure}") from None
        return Listing(tuple(found), truncated=len(found) < next(seen))

    def _judged(self, prefix: str, found: Sequence[_Seen]) -> Iterator[Entry]:
        """Entries with their levels; where the rules decide alone, all of them are asked at once."""
        inodes = [status.st_ino for _, status in found if status is not None]
        if self.plain is None or not self.plain(prefix, inodes):
            for name, status in found:
                yield _entry(prefix, name, status, self._level(prefix + name, status))
            return
        rules = self._source.rules
        levels = [LevelDecision(rule.permission, at, rule.pattern) for at, rule in enumerate(rules.rules)]
        levels += [LevelDecision(rules.default), _OUTSIDE]  # the last also stands at -1
        paths = [prefix + name + ("/" if _is_folder(status) else "") for name, status in found]
        for (name, status), index in zip(found, rules.indexes(paths), strict=True):
            yield _entry(prefix, name, status, levels[index])

    def _level(self, relative: str, status: os.stat_result | None) -> LevelDecision:
        return _OUTSIDE if status is None else self.level_of(relative, _is_folder(status), (identity_of(status),))


def _seen(entry: os.DirEntry[str]) -> _Seen:
    try:
        return entry.name, entry.stat(follow_symlinks=False)
    except OSError:
        return entry.name, None


def _is_folder(status: os.stat_result | None) -> bool:
    return status is not None and stat.S_ISDIR(status.st_mode)


def _order(entry: os.DirEntry[str]) -> tuple[bool, str, str]:
    """Folders first, then by name, whatever its case."""
    return not entry.is_dir(follow_symlinks=False), _shown(entry.name).casefold(), entry.name


def _shown(name: str) -> str:
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "replace")


def _entry(prefix: str, name: str, status: os.stat_result | None, level: LevelDecision) -> Entry:
    shown = _shown(name)
    if status is None:
        return Entry(shown, prefix + name, False, Permission.NONE, None, None, False, "it cannot be looked at")
    folder = stat.S_ISDIR(status.st_mode)
    failure = None if folder else unusable(status)
    return Entry(
        shown,
        prefix + name,
        folder,
        level.permission,
        level.index if level.source_id is None else None,
        level.pattern,
        level.protected,
        None if failure is None else str(failure),
        level.source_id,
    )


def _parts(folder: str) -> tuple[str, ...]:
    parts = tuple(part for part in folder.split("/") if part not in {"", BASE})
    if ".." in parts:
        raise WorkspaceError(f"`{folder}` leads above the base")
    return parts
