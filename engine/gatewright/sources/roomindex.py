"""The index of a room's folders as of their last listing: which names in them differ in view from the rest.

A folder is listed again when its device, inode or times change, so that after the first time a large tree costs one
look at each folder. The index stays on disk, for one set of places and rules.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from gatewright.base.file import write_atomically
from gatewright.policy.target import Confinement, View
from gatewright.sources.roomview import FolderView, RoomViews

MAX_PATH = 3_500
"""The longest path of a folder, in bytes, whose entries a room shows: ours of hidden names are longer."""
_FORMAT = 1
_FINE_NS, _COARSE_NS = 100_000_000, 2_500_000_000
"""The time from a folder's last change to its listing that makes the next change show in its times."""
_VIEWS = {view.value: view for view in View}
PLAIN, LINK, SPECIAL = "f", "l", "s"
"""Kinds of entries that are not folders; special: sockets, pipes, devices."""


class Odd(NamedTuple):
    """A name that is not a folder, and not the plain file that a new one would be, or has another view.

    In a closed folder with visible names: every name that is not a folder.
    """

    name: str
    kind: str
    view: View
    inode: int


class Row(NamedTuple):
    """One folder. ``folders``: each name with its view, the view of a new name in it, and True if all below is alike.

    ``inodes``: of the plain files that are not odd; None if nobody asked.
    """

    device: int
    inode: int
    modified_ns: int
    changed_ns: int
    listed_ns: int
    folders: tuple[tuple[str, View, View, bool], ...]
    odd: tuple[Odd, ...]
    inodes: tuple[int, ...] | None

    def files(self) -> set[tuple[int, int]]:
        """Return device and inode of everything that is not a folder."""
        return {(self.device, inode) for inode in (*(self.inodes or ()), *(one.inode for one in self.odd))}

    def is_of(self, status: os.stat_result) -> bool:
        """Tell whether the folder is as it was when it was listed."""
        margin = _FINE_NS if self.modified_ns % 1_000_000 else _COARSE_NS
        return (
            status.st_ctime_ns == self.changed_ns
            and status.st_mtime_ns == self.modified_ns
            and status.st_ino == self.inode
            and status.st_dev == self.device
            and self.listed_ns - max(self.modified_ns, self.changed_ns) > margin
        )


class FolderIndex:
    """The rows of one confinement, on top of the ``known`` ones. For one thread."""

    def __init__(self, views: RoomViews, known: dict[str, Row]) -> None:
        self._views, self._known = views, known
        self.rows: dict[str, Row] = {}
        self.listed = 0
        """The number of folders that had to be listed."""

    def row(self, folder: FolderView, *, with_inodes: bool) -> Row | None:
        """Return the current row of a folder; None if it cannot be listed. Raises FileNotFoundError."""
        path = folder.path
        if len(os.fsencode(path)) > MAX_PATH:
            return None
        try:
            status = os.lstat(path)
            known = self._known.get(path)
            if known is None or not known.is_of(status) or (with_inodes and known.inodes is None):
                if not stat.S_ISDIR(status.st_mode):
                    raise FileNotFoundError(path)
                known = self._list(folder, status, with_inodes=with_inodes)
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(path) from None
        except OSError:
            return None
        self.rows[path] = known
        return known

    def _list(self, folder: FolderView, status: os.stat_result, *, with_inodes: bool) -> Row:
        listed_ns = time.time_ns()
        self.listed += 1
        folders: list[str] = []
        names: list[str] = []
        kinds: list[tuple[str, int]] = []
        with os.scandir(folder.path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                else:
                    plain = entry.is_file(follow_symlinks=False)
                    names.append(entry.name)
                    kinds.append((PLAIN if plain else LINK if entry.is_symlink() else SPECIAL, entry.inode()))
        views = [folder.generic] * len(names) if folder.is_settled else self._views.names(folder.path, names)
        found = [Odd(name, kind, view, inode) for name, (kind, inode), view in zip(names, kinds, views, strict=True)]
        shows_some = folder.generic is View.ABSENT and any(one.view is not folder.generic for one in found)
        odd = [one for one in found if shows_some or one.view is not folder.generic or one.kind != PLAIN]
        plain = () if shows_some else (one.inode for one in found if one.view is folder.generic and one.kind == PLAIN)
        return Row(
            status.st_dev,
            status.st_ino,
            status.st_mtime_ns,
            status.st_ctime_ns,
            listed_ns,
            tuple(self._inner(folder, name) for name in sorted(folders)),
            tuple(odd),
            tuple(plain) if with_inodes else None,
        )

    def _inner(self, folder: FolderView, name: str) -> tuple[str, View, View, bool]:
        if folder.is_settled:
            return name, folder.generic, folder.generic, True
        inner = self._views.folder(f"{folder.path.rstrip('/')}/{name}")
        return name, inner.own, inner.generic, inner.is_settled


class IndexFile:
    """The file with the rows of a confinement. Several processes may share one: each writes it whole."""

    def __init__(self, cache: Path, confinement: Confinement, cuts: tuple[str, ...]) -> None:
        said = repr(
            (
                _FORMAT,
                [(place.path, place.use) for place in confinement.places],
                [
                    (tree.base, tree.default, [(r.pattern, r.permission) for r in tree.rules])
                    for tree in confinement.trees
                ],
                confinement.closed,
                confinement.fixed,
                cuts,
            )
        )
        self.path = cache / f"index-{hashlib.sha256(os.fsencode(said)).hexdigest()[:32]}.json"

    def load(self) -> dict[str, Row]:
        """Read the rows; none if the file is missing or unreadable."""
        try:
            held: dict[str, list[Any]] = json.loads(self.path.read_bytes())
            return {path: _row(row) for path, row in held.items()}
        except (OSError, ValueError, TypeError, AttributeError, KeyError):
            return {}

    def save(self, rows: dict[str, Row]) -> None:
        """Write the rows, if the disk lets it."""
        with suppress(OSError):
            write_atomically(self.path, json.dumps(rows, separators=(",", ":")).encode(), mode=0o600, follow=False)


def _row(held: list[Any]) -> Row:
    device, inode, modified, changed, listed, folders, odd, inodes = held
    inner = tuple((name, _VIEWS[own], _VIEWS[generic], settled) for name, own, generic, settled in folders)
    others = tuple(Odd(name, kind, _VIEWS[view], inode) for name, kind, view, inode in odd)
    return Row(device, inode, modified, changed, listed, inner, others, None if inodes is None else tuple(inodes))
