"""The entries of a real folder with their effective levels, for people.

It reads disk and blocks: call it in a thread. Links appear in it, but it never follows them; temporary files of killed
saves do not appear.
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
"""The entries of a large folder that ``scan`` reports before it looks at the rest."""
_PIECE = 100
_OUTSIDE = LevelDecision(Permission.NONE)
_Seen: TypeAlias = "tuple[str, os.stat_result | None]"
"""A name in a folder and its metadata; None if nobody can look at it."""


@frozen
class Entry:
    """One row of the tree. ``index`` and ``pattern``: the deciding rule, None for the default.

    ``decided_by``: the other source over the same files whose stricter rule (``pattern``) decides, else None.
    ``unusable``: the reason why no operation can use it (a link, a pipe, ...), else None.
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
    """The entries of a folder, folders first, by name in any case; ``truncated`` if it has more."""

    entries: tuple[Entry, ...]
    truncated: bool


class Overlay:
    """One source as people see it. ``level_of(relative, is_folder, identities)`` returns the effective level.

    ``plain(prefix, inodes)`` tells that in the folder ``prefix`` the source's own rules decide alone; None: never.
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
        """Return the entries of one folder. Raises WorkspaceError for a missing or unreadable one.

        ``first`` receives the beginning of a large folder as soon as it is known, marked as truncated.
        """
        parts = _parts(folder)
        prefix, seen, found = "/".join((*parts, "")), count(), list[Entry]()
        try:
            with entries_of(self._source.folder, parts) as entries:
                # names first, which cost little; their metadata follows piece by piece
                named = (one for one in takewhile(lambda _: not cancelled(), entries) if not is_leftover(one.name))
                wanted = nsmallest(limit, (one for one in named if next(seen) >= 0), key=_order)
                for start in range(0, len(wanted), _PIECE):
                    if cancelled():
                        return Listing(tuple(found), truncated=True)
                    if start == FIRST and first is not None:
                        first(Listing(tuple(found), truncated=True))
                    found += self._judge(prefix, [_seen(entry) for entry in wanted[start : start + _PIECE]])
        except ToolFailure as failure:
            raise WorkspaceError(f"`{self._source.absolute('/'.join(parts) or BASE)}`: {failure}") from None
        return Listing(tuple(found), truncated=len(found) < next(seen))

    def _judge(self, prefix: str, found: Sequence[_Seen]) -> Iterator[Entry]:
        """Yield entries with their levels; where the rules decide alone, one question covers all."""
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
    """Sort folders first, then by name, in any case."""
    return not entry.is_dir(follow_symlinks=False), _display_name(entry.name).casefold(), entry.name


def _display_name(name: str) -> str:
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "replace")


def _entry(prefix: str, name: str, status: os.stat_result | None, level: LevelDecision) -> Entry:
    shown = _display_name(name)
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
