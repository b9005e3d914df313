"""Folders as a model may see them: their entries, what may be read below one, found by pattern, and removing one.

Left out: what has level none, what a killed save left behind, what no operation can use (links, pipes, devices, hard
links), and names that could not be written in a call.

Everything goes through descriptors, folder by folder, and links are never followed. The walk is in sorted order and
bounded in entries, depth and time, so that the same tree gives the same beginning. A folder with level none is not
entered: what an earlier rule opens inside it can be used by its path and is not found here.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import count
from typing import TYPE_CHECKING

from gatewright.arguments.path import ModelPath, parse_model_path
from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.document import PermissionRule
from gatewright.policy.glob import PermissionRules, check_pattern
from gatewright.policy.target import NOT_PERMITTED, LevelDecision
from gatewright.policy.verdict import Action, Permission, Verdict, verdict_for
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
    """Folders first, then by name; of more than ``limit`` entries the last row says how many were left out."""
    parts = () if relative == BASE else tuple(relative.split("/"))
    loaded = source.loaded_labels()
    seen = count()
    with entries_of(source.folder, parts) as entries:
        shown = (_row(source, relative, entry, level_of, loaded) for entry in entries)
        rows = nsmallest(limit, (row for row in shown if row is not None and next(seen) >= 0), key=_order)
    left_out = next(seen) - len(rows)
    return [*rows, {"kind": "more", "left_out": left_out}] if left_out else [*rows]


def _order(row: dict[str, JsonValue]) -> tuple[bool, str]:
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
    """What is told of a file or folder: how it is ``named``, kind, size, level, and whether it has a block."""
    is_folder = stat.S_ISDIR(status.st_mode)
    size: dict[str, JsonValue] = {} if is_folder else {"size": status.st_size}
    kind = "folder" if is_folder else "file"
    has_block = not is_folder and source.label(relative) in loaded
    return {**named, "kind": kind, **size, "permission": str(level.permission), "loaded": has_block}


def is_nameable(name: str) -> bool:
    """Whether a call can name it: not with control characters, a backslash or bytes that are no UTF-8."""
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
    """One entry that was met: its path below the base, its metadata, its level."""

    relative: str
    status: os.stat_result
    level: LevelDecision

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return stat.S_ISDIR(self.status.st_mode)


@dataclass(slots=True)
class Walk:
    """Everything below a folder, in order; ``stopped`` says why the walk ended early."""

    source: FileSource
    level_of: LevelOf
    clock: Callable[[], float] = time.monotonic
    max_examined: int = _MAX_EXAMINED
    stopped: str | None = None
    _examined: int = 0
    _until: float = field(default=0.0)

    def below(self, relative: str, *, enter: Callable[[Found], bool]) -> Iterator[Found]:
        """The entries below a folder, a folder before what is in it; those it does not ``enter`` are still given."""
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
                    with suppress(ToolFailure):  # gone or closed since it was met
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
    """What may be read below a folder, by path; with a gitignore pattern the files that it matches.

    The pattern is matched on the path below ``relative``; not ``recursive``: on what is in the folder itself. Where
    something was left out, the last row says so and why.
    """
    rules: PermissionRules | None = None
    if pattern is not None:
        problem = check_pattern(pattern)
        if problem is not None:
            raise ToolFailure(problem, code="bad-pattern")
        rules = PermissionRules([PermissionRule(pattern, Permission.READ_ONLY)], Permission.NONE)
    loaded, skipped = source.loaded_labels(), 0 if relative == BASE else len(relative) + 1
    walk = Walk(source, level_of)
    rows: list[JsonValue] = []
    for found in walk.below(relative, enter=lambda one: recursive and _is_open(one)):
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
        return False  # no call could write that name
    return found.is_folder or unusable(found.status) is None


def status_below(source: FileSource, relative: str, level_of: LevelOf) -> list[JsonValue]:
    """The states of the files with a block below a folder that have a level; the last row says what was left out."""
    below = "" if relative == BASE else relative + "/"
    rows: list[JsonValue] = []
    until = time.monotonic() + _MAX_SECONDS
    for path in source.loaded_places():
        if not path.startswith(below) or level_of(path, False, ()).permission is Permission.NONE:
            continue
        if len(rows) == _MAX_STATES or time.monotonic() > until:
            return [*rows, {"kind": "more", "why": "there is more than can be looked at in one go"}]
        with suppress(ToolFailure):  # block and file are gone since
            rows.append(source.status(path))
    return rows


@frozen
class Doomed:
    """What removing a folder takes away. ``asks``: how many files only go after somebody was asked."""

    files: tuple[str, ...]
    folders: tuple[str, ...]
    blocks: tuple[str, ...]
    asks: int

    def shown(self) -> str:
        """The first of them, for a person."""
        rows = [f"-{path}" for path in self.files[:_SHOWN]]
        more = len(self.files) - len(rows)
        return "\n".join([*rows, f"[and {more:,} more]"] if more else rows)


def doomed(source: FileSource, relative: str, level_of: LevelOf) -> Doomed:
    """Everything that goes with a folder. Raises ToolFailure where one file in it may not be deleted, or is no file."""
    if relative == BASE:
        raise ToolFailure("the top folder of a source is never removed", code="is-a-folder")
    files: list[str] = []
    folders: list[str] = [relative]
    asks = 0
    walk = Walk(source, level_of, max_examined=MAX_REMOVED)
    for found in walk.below(relative, enter=lambda _: True):
        verdict = verdict_for(found.level.permission, Action.DELETE)
        if not _is_open(found) or not _usable(found) or (verdict is Verdict.DENY and not found.is_folder):
            raise _kept()
        if found.is_folder:
            folders.append(found.relative)
        else:
            files.append(found.relative)
            asks += verdict is Verdict.ASK
    if walk.stopped is not None:
        raise ToolFailure(f"the folder holds too much to go at once: {walk.stopped}", code="too-large")
    below = relative + "/"
    blocks = tuple(path for path in source.loaded_places() if path.startswith(below))
    for path in blocks:
        verdict = verdict_for(level_of(path, False, ()).permission, Action.DELETE)
        if verdict is Verdict.DENY:
            raise _kept()
        asks += verdict is Verdict.ASK and path not in files
    return Doomed(tuple(files), tuple(folders), blocks, asks)


def remove_tree(source: FileSource, going: Doomed, level_of: LevelOf) -> JsonValue:
    """Remove what was found, files first; what came there since stays and is told, with what is gone by then."""
    gone = 0
    try:
        for path in going.files:
            parts = tuple(path.split("/"))
            with descriptor.open_folder(source.folder, parts[:-1]) as folder:
                status = descriptor.status_of(folder, parts[-1])
                if status is None:
                    continue
                if level_of(path, False, (identity_of(status),)).protected:
                    raise _kept()
                gone += descriptor.remove(folder, parts[-1], sync=False)
        for path in reversed(going.folders):
            parts = tuple(path.split("/"))
            with descriptor.open_folder(source.folder, parts[:-1]) as folder:
                descriptor.remove_folder(folder, parts[-1])
    except ToolFailure as failure:
        raise ToolFailure(f"{failure}; {gone:,} of {len(going.files):,} files are gone", code=failure.code) from None
    blocks = sum(source.forget(path) for path in going.blocks)
    return {"files": gone, "folders": len(going.folders), "blocks": blocks}


def _kept() -> ToolFailure:
    return ToolFailure("the folder holds something that may not be removed", code=NOT_PERMITTED)
