"""Walks folders: for a model to list, search or remove them, for people to see the level of each entry.

It has more than 450 lines because both walk folders in the same way.

Lists for a model skip level none, temporary files of killed saves, entries that no operation can use (links, pipes,
devices, hard links), and names that no call can write. Everything goes through descriptors, folder by folder, and never
follows links. The walk is sorted and bounded in entries, depth and time, so that the same tree gives the same
beginning. It does not enter a folder with level none: a path inside that an earlier rule opens is usable, but not
listed.

It reads disk and blocks, so call it in a thread. The tree for people also shows links, but never follows them.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import count, takewhile
from typing import TYPE_CHECKING, TypeAlias

from gatewright.arguments.path import ModelPath, parse_model_path
from gatewright.base.errors import ToolFailure, WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.document import PermissionRule
from gatewright.policy.glob import PermissionRules, check_pattern
from gatewright.policy.target import NOT_PERMITTED, LevelDecision
from gatewright.policy.verdict import Action, Permission, Verdict, reads_freely, verdict_for
from gatewright.sources import descriptor
from gatewright.sources.descriptor import Identity, entries_of, identity_of, unusable
from gatewright.sources.filesource import BASE, FileSource
from gatewright.sources.filetext import is_leftover


def list_entries(
    source: FileSource,
    relative: str,
    level_of: Callable[[str, bool, Sequence[Identity]], LevelDecision],
    limit: int,
) -> list[JsonValue]:
    """List the entries, folders first, then by name; beyond ``limit`` the last row counts the rest."""
    parts = () if relative == BASE else tuple(relative.split("/"))
    loaded = source.block_labels()
    seen = count()
    with entries_of(source.folder, parts) as entries:
        shown = (_row(source, relative, entry, level_of, loaded) for entry in entries)
        rows = nsmallest(limit, (row for row in shown if row is not None and next(seen) >= 0), key=_row_order)
    left_out = next(seen) - len(rows)
    return [*rows, {"kind": "more", "left_out": left_out}] if left_out else [*rows]


def _row_order(row: dict[str, JsonValue]) -> tuple[bool, str]:
    return row["kind"] != "folder", str(row["name"])


def _row(
    source: FileSource,
    folder: str,
    entry: os.DirEntry[str],
    level_of: Callable[[str, bool, Sequence[Identity]], LevelDecision],
    loaded: frozenset[str],
) -> dict[str, JsonValue] | None:
    if not is_nameable(entry.name) or is_leftover(entry.name):
        return None
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    is_folder = stat.S_ISDIR(status.st_mode)
    if not is_folder and unusable(status) is not None:
        return None
    relative = entry.name if folder == BASE else f"{folder}/{entry.name}"
    level = level_of(relative, is_folder, (identity_of(status),))
    if level.permission is Permission.NONE:
        return None
    return row_of(source, {"name": entry.name}, relative, status, level, loaded)


def row_of(
    source: FileSource,
    named: dict[str, JsonValue],
    relative: str,
    status: os.stat_result,
    level: LevelDecision,
    loaded: frozenset[str],
) -> dict[str, JsonValue]:
    """Return the row of a file or folder: its name from ``named``, kind, size, level, and True if it has a block."""
    is_folder = stat.S_ISDIR(status.st_mode)
    size: dict[str, JsonValue] = {} if is_folder else {"size": status.st_size}
    kind = "folder" if is_folder else "file"
    has_block = not is_folder and source.label(relative) in loaded
    return {**named, "kind": kind, **size, "permission": str(level.permission), "loaded": has_block}


def is_nameable(name: str) -> bool:
    """Tell whether a call can write the name: no control characters, backslashes or bytes outside UTF-8."""
    return isinstance(parse_model_path(f"a/{name}"), ModelPath)


if TYPE_CHECKING:
    LevelOf = Callable[[str, bool, Sequence[Identity]], LevelDecision]

MAX_REMOVED = 10_000
_MAX_EXAMINED = 200_000
_MAX_DEPTH = 200
_MAX_STATES = 1_000
_MAX_SECONDS = 5.0
_SHOWN = 50


@dataclass(slots=True)
class Found:
    """One entry of the walk: its path below the base, its metadata, its level."""

    relative: str
    status: os.stat_result
    level: LevelDecision

    @property
    def is_folder(self) -> bool:
        """True for a folder."""
        return stat.S_ISDIR(self.status.st_mode)


@dataclass(slots=True)
class Walk:
    """Everything below a folder, in order; ``stopped`` is the reason if the walk ended early."""

    source: FileSource
    level_of: LevelOf
    clock: Callable[[], float] = time.monotonic
    max_examined: int = _MAX_EXAMINED
    stopped: str | None = None
    _examined: int = 0
    _until: float = field(default=0.0)

    def below(self, relative: str, *, enter: Callable[[Found], bool]) -> Iterator[Found]:
        """Yield the entries below a folder, each folder before its content; ``enter`` decides which folders to
        enter.
        """
        self._until = self.clock() + _MAX_SECONDS
        folders = [iter(self._entries(() if relative == BASE else tuple(relative.split("/"))))]
        too_deep: str | None = None
        while folders and self.stopped is None:
            found = next(folders[-1], None)
            if found is None:
                folders.pop()
                continue
            yield found
            if found.is_folder and enter(found):
                if len(folders) >= _MAX_DEPTH:
                    too_deep = f"folders more than {_MAX_DEPTH} deep"
                else:
                    with suppress(ToolFailure):  # gone or closed meanwhile
                        folders.append(iter(self._entries(tuple(found.relative.split("/")))))
        self.stopped = self.stopped or too_deep

    def _entries(self, parts: tuple[str, ...]) -> list[Found]:
        found: list[Found] = []
        with entries_of(self.source.folder, parts) as entries:
            for entry in entries:
                self._examined += 1
                if self._examined > self.max_examined or self.clock() > self._until:
                    self.stopped = "there is more than can be looked at in one go"
                    break
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                relative = "/".join((*parts, entry.name))
                folder = stat.S_ISDIR(status.st_mode)
                found.append(Found(relative, status, self.level_of(relative, folder, (identity_of(status),))))
        found.sort(key=lambda one: one.relative.rpartition("/")[2])
        return found


def list_tree(
    source: FileSource,
    relative: str,
    level_of: LevelOf,
    *,
    pattern: str | None,
    limit: int,
    recursive: bool,
) -> list[JsonValue]:
    """List the readable entries below a folder, by path; with a gitignore pattern the files that it matches.

    The pattern applies to the path below ``relative``; without ``recursive`` to the entries of the folder itself. If
    the list is cut, the last row gives the reason.
    """
    rules: PermissionRules | None = None
    if pattern is not None:
        problem = check_pattern(pattern)
        if problem is not None:
            raise ToolFailure(problem, code="bad-pattern")
        rules = PermissionRules([PermissionRule(pattern, Permission.READ_ONLY)], Permission.NONE)
    loaded, skipped = source.block_labels(), 0 if relative == BASE else len(relative) + 1
    walk = Walk(source, level_of)
    rows: list[JsonValue] = []
    for found in walk.below(relative, enter=lambda one: recursive and reads_freely(one.level.permission)):
        if not _is_open(found) or not _usable(found) or is_leftover(found.relative):
            continue
        if rules is not None and (found.is_folder or rules.level(found.relative[skipped:]) is Permission.NONE):
            continue
        if not is_nameable(found.relative):
            continue
        if len(rows) == limit:
            walk.stopped = f"more than {limit:,} entries"
            break
        rows.append(row_of(source, {"path": found.relative}, found.relative, found.status, found.level, loaded))
    return rows if walk.stopped is None else [*rows, {"kind": "more", "why": walk.stopped}]


def _is_open(found: Found) -> bool:
    return found.level.permission is not Permission.NONE


def _usable(found: Found) -> bool:
    if any("\ud800" <= char <= "\udfff" for char in found.relative):
        return False  # no call can write that name
    return found.is_folder or unusable(found.status) is None


def status_below(source: FileSource, relative: str, level_of: LevelOf) -> list[JsonValue]:
    """Return the states of the files with a block below a folder, without level none; the last row says if the list is
    cut.
    """
    below = "" if relative == BASE else relative + "/"
    rows: list[JsonValue] = []
    until = time.monotonic() + _MAX_SECONDS
    for path in source.block_places():
        if not path.startswith(below) or level_of(path, False, ()).permission is Permission.NONE:
            continue
        if len(rows) == _MAX_STATES or time.monotonic() > until:
            return [*rows, {"kind": "more", "why": "there is more than can be looked at in one go"}]
        with suppress(ToolFailure):  # block and file are gone by now
            rows.append(source.status(path))
    return rows


@frozen
class Doomed:
    """The files, folders and blocks that a folder's removal takes along.

    ``asks``: the number of files that may go only after a question.
    """

    files: tuple[str, ...]
    folders: tuple[str, ...]
    blocks: tuple[str, ...]
    asks: int

    def summary(self) -> str:
        """List the first of them, for a person."""
        rows = [f"-{path}" for path in self.files[:_SHOWN]]
        more = len(self.files) - len(rows)
        return "\n".join([*rows, f"[and {more:,} more]"] if more else rows)


def plan_removal(source: FileSource, relative: str, level_of: LevelOf) -> Doomed:
    """Collect everything to remove with a folder.

    Raises ToolFailure if a file in it must stay, or an entry is no file.
    """
    if relative == BASE:
        raise ToolFailure("the top folder of a source is never removed", code="is-a-folder")
    files: list[str] = []
    folders: list[str] = [relative]
    asks = 0
    walk = Walk(source, level_of, max_examined=MAX_REMOVED)
    for found in walk.below(relative, enter=lambda _: True):
        verdict = verdict_for(found.level.permission, Action.DELETE)
        if not _is_open(found) or not _usable(found) or (verdict is Verdict.DENY and not found.is_folder):
            raise _stays_failure()
        if found.is_folder:
            folders.append(found.relative)
        else:
            files.append(found.relative)
            asks += verdict is Verdict.ASK
    if walk.stopped is not None:
        raise ToolFailure(f"the folder holds too much to go at once: {walk.stopped}", code="too-large")
    below = relative + "/"
    blocks = tuple(path for path in source.block_places() if path.startswith(below))
    for path in blocks:
        verdict = verdict_for(level_of(path, False, ()).permission, Action.DELETE)
        if verdict is Verdict.DENY:
            raise _stays_failure()
        asks += verdict is Verdict.ASK and path not in files
    return Doomed(tuple(files), tuple(folders), blocks, asks)


def remove_tree(source: FileSource, going: Doomed, level_of: LevelOf) -> JsonValue:
    """Remove the planned files, then the folders; newer entries stay, and a failure counts the removed files."""
    gone = 0
    try:
        for path in going.files:
            parts = tuple(path.split("/"))
            with descriptor.open_folder(source.folder, parts[:-1]) as folder:
                status = descriptor.status_of(folder, parts[-1])
                if status is None:
                    continue
                if level_of(path, False, (identity_of(status),)).protected:
                    raise _stays_failure()
                gone += descriptor.remove(folder, parts[-1], sync=False)
        for path in reversed(going.folders):
            parts = tuple(path.split("/"))
            with descriptor.open_folder(source.folder, parts[:-1]) as folder:
                descriptor.remove_folder(folder, parts[-1])
    except ToolFailure as failure:
        raise ToolFailure(f"{failure}; {gone:,} of {len(going.files):,} files are gone", code=failure.code) from None
    blocks = sum(source.forget(path) for path in going.blocks)
    return {"files": gone, "folders": len(going.folders), "blocks": blocks}


def _stays_failure() -> ToolFailure:
    return ToolFailure("the folder holds something that may not be removed", code=NOT_PERMITTED)


FIRST = 500
"""The entries of a large folder that ``scan`` reports before it looks at the rest."""
_PIECE = 100
_OUTSIDE = LevelDecision(Permission.NONE)
_Seen: TypeAlias = "tuple[str, os.stat_result | None]"
"""A name in a folder, with its metadata; None if they are unreadable."""


@frozen
class Entry:
    """One row of the tree. ``index`` and ``pattern``: the deciding rule, None for the default.

    ``decided_by``: another source over the same files, if its stricter rule (``pattern``) decides. ``unusable``: the
    reason if no operation can use it (a link, a pipe, ...).
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
    """The entries of a folder, folders first, by name whatever the case; ``truncated`` if it has more."""

    entries: tuple[Entry, ...]
    truncated: bool


class Overlay:
    """One source as people see it.

    ``level_of(relative, is_folder, identities)`` returns the effective level. ``plain(prefix, inodes)`` tells that the
    source's own rules alone decide in the folder ``prefix``; None: never.
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

        ``first`` receives the beginning of a large folder, marked as truncated, as soon as it is known.
        """
        parts = _parts(folder)
        prefix, seen, found = "/".join((*parts, "")), count(), list[Entry]()
        try:
            with entries_of(self._source.folder, parts) as entries:
                # first the names, which cost little; their metadata follow piece by piece
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
        """Yield entries with their levels; if the rules alone decide, one question covers all."""
        inodes = [status.st_ino for _, status in found if status is not None]
        if self.plain is None or not self.plain(prefix, inodes):
            for name, status in found:
                yield _entry(prefix, name, status, self._level(prefix + name, status))
            return
        rules = self._source.rules
        levels = [LevelDecision(rule.permission, at, rule.pattern) for at, rule in enumerate(rules.rules)]
        levels += [LevelDecision(rules.default), _OUTSIDE]  # index -1 means the last one
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
