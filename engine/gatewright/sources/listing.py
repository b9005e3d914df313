"""The entries of a folder as a model may see them.

Left out: what has level none, what a killed save left behind, what no operation can use (links, pipes, devices, hard
links), and names that could not be written in a call.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Sequence
from heapq import nsmallest
from itertools import count
from typing import TYPE_CHECKING

from gatewright.arguments.path import ModelPath, parse_model_path
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.target import LevelDecision
from gatewright.policy.verdict import Permission
from gatewright.sources.descriptor import Identity, entries_of, identity_of, unusable
from gatewright.sources.filesource import BASE, FileSource
from gatewright.sources.leftover import is_leftover

if TYPE_CHECKING:
    import os


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
