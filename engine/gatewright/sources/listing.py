"""The entries of a folder as a model may see them.

Left out: what has level none, what a killed save left behind, what no operation can use (links, pipes, devices, hard
links), and names that could not be written in a call.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gatewright.arguments.path import ModelPath, parse_model_path
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.permission import Permission
from gatewright.policy.target import LevelDecision
from gatewright.sources.descriptor import Identity, entries_of, identity_of, unusable
from gatewright.sources.filesource import BASE, FileSource
from gatewright.sources.leftover import is_leftover

if TYPE_CHECKING:
    import os


MAX_ENTRIES = 5_000


def list_entries(
    source: FileSource,
    relative: str,
    level_of: Callable[[str, bool, Sequence[Identity]], LevelDecision],
    limit: int = MAX_ENTRIES,
) -> list[JsonValue]:
    """Folders first, then by name; of more than ``limit`` entries the last row says how many were left out."""
    parts = () if relative == BASE else tuple(relative.split("/"))
    loaded = source.loaded_labels()
    rows: list[tuple[bool, str, dict[str, JsonValue]]] = []
    left_out = 0
    with entries_of(source.folder, parts) as entries:
        for entry in entries:
            shown = is_nameable(entry.name) and not is_leftover(entry.name)
            row = None if not shown else _row(source, relative, entry, level_of, loaded)
            if row is None:
                continue
            if len(rows) < MAX_ENTRIES:
                rows.append((row["kind"] != "folder", entry.name, row))
            else:
                left_out += 1
    rows.sort(key=lambda item: item[:2])
    left_out += max(len(rows) - limit, 0)
    listed: list[JsonValue] = [row for _, _, row in rows[:limit]]
    return [*listed, {"kind": "more", "left_out": left_out}] if left_out else listed


def _row(
    source: FileSource,
    folder: str,
    entry: os.DirEntry[str],
    level_of: Callable[[str, bool, Sequence[Identity]], LevelDecision],
    loaded: frozenset[str],
) -> dict[str, JsonValue] | None:
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
    row: dict[str, JsonValue] = {"name": entry.name, "kind": "folder" if is_folder else "file"}
    if not is_folder:
        row["size"] = status.st_size
    row["permission"] = str(level.permission)
    row["loaded"] = not is_folder and source.label(relative) in loaded
    return row


def is_nameable(name: str) -> bool:
    """Whether a call can name it: not with control characters, a backslash or bytes that are no UTF-8."""
    return isinstance(parse_model_path(f"a/{name}"), ModelPath)
