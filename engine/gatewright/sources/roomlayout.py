"""Works out the mounts of a room, folder by folder: the base that shows a folder right, and the exceptions in it.

A folder whose new names are readable becomes an overlay with whiteouts. One whose new names are writable is mounted
itself, with covers over the exceptions. One that is closed except for folders in it becomes an empty folder, with these
mounted in it. The watcher (`sources.roomwatch`) hides names that appear later.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import suppress

from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.policy.document import PlaceUse
from gatewright.policy.target import View
from gatewright.policy.verdict import Word
from gatewright.sources.ground import entries_at, is_below, status_at
from gatewright.sources.roomview import (
    LINK,
    PLAIN,
    SPECIAL,
    FolderIndex,
    FolderView,
    Mount,
    MountKind,
    RoomViews,
    Row,
    refuse,
)

MAX_DEPTH = 150
"""The deepest level that a walk enters; folders below it are hidden."""
MAX_LINKED, FEW_LINKED = 200_000, 20_000
"""The most closed files whose other names are searched; the most after which the walk enters all folders instead."""
MANY_FOLDERS = 500
"""The most folders to hide names in that are closed everywhere and do not exist yet."""
OWN_FOLDERS = frozenset({"proc", "dev", "sys", "run"})
"""The folders of `/` that every room gets of its own."""
_COVERS = {View.ABSENT: MountKind.HIDE_FILE, View.READ: MountKind.READ, View.WRITE: MountKind.WRITE}


class Ground(Word):
    """What a name in a room is part of: nothing of ours, an overlay, the folder itself."""

    EMPTY = "empty"
    OVERLAY = "overlay"
    ITSELF = "itself"


@frozen
class Region:
    """A mount and everything below it that no other mount covers."""

    ground: Ground
    top: str


@frozen
class Found:
    """The result for a folder or file. ``nodes``: names to hide in the surrounding overlay."""

    is_seen: bool
    mounts: tuple[Mount, ...] = ()
    nodes: tuple[str, ...] = ()


@frozen
class MountPoints:
    """The mounts at and below the places. ``hidden``: mounts that no process sees (`/proc` and the like).

    ``closed``: mounts that also show something closed. ``remote``: places that others may change unnoticed.
    """

    all: tuple[str, ...] = ()
    hidden: frozenset[str] = frozenset()
    closed: frozenset[str] = frozenset()
    remote: frozenset[str] = frozenset()


def is_in(path: str, folder: str) -> bool:
    """Tell whether a path is a file directly in a folder."""
    return os.path.dirname(path) == folder and not os.path.isdir(path)  # noqa: PTH112, PTH120 - names of any bytes


_UNSEEN = Found(is_seen=False)


class RoomLayout:
    """The mounts of one confinement as the disk is now. Raises ToolFailure.

    ``is_deep``: the walk enters every folder, and compares inodes. ``home``: the folder of the whiteouts. ``notice`` is
    called with each folder before the walk enters it. ``nodes``: the hidden names of each overlay. ``regions``: the
    region of each entered folder. ``windows``: writable folders in which closed names may appear. ``bare``: links that
    need a cover and cannot have one.
    """

    def __init__(
        self,
        views: RoomViews,
        index: FolderIndex,
        points: MountPoints,
        home: str,
        *,
        is_deep: bool,
        notice: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.views, self._index, self._points, self._is_deep = views, index, points, is_deep
        self.home = home
        self._no_overlay = sorted({*points.all, home})
        self._notice = notice
        self.nodes: dict[str, set[str]] = {}
        self.regions: dict[str, Region] = {}
        self.bare: list[str] = []
        self._hidden: list[str] = []
        self._strict: set[tuple[int, int]] = set()
        self.windows: set[str] = set()
        self._rows: list[tuple[FolderView, Row]] = []
        self.mounts: list[Mount] = []

    def lay(self) -> None:
        """Work out the mounts of all places."""
        outer = ""
        for path in self.views.uses:
            if outer and is_below(path, outer):
                continue
            outer = path
            self.mounts += self._place(path).mounts
        if self._is_deep:
            self._part_names()
        if self._points.remote and (self.windows or (self.regions and self.views.may_close_new)):
            raise refuse("a place lies on another machine, where nobody can notice closed names that appear")

    def name(self, folder: str, name: str) -> Found | None:
        """Work out a name that appeared in an entered folder; None if only a new walk can do that."""
        region, path = self.regions[folder], f"{folder.rstrip('/')}/{name}"
        status, known = status_at(path), len(self._rows)
        if status is None:
            return Found(is_seen=True)
        if not stat.S_ISDIR(status.st_mode):
            kind = PLAIN if stat.S_ISREG(status.st_mode) else LINK if stat.S_ISLNK(status.st_mode) else SPECIAL
            found = self._file(path, kind, self.views.view(path, folder=False), region)
            self._hidden.clear()
            return None if status.st_nlink > 1 or self.bare else found
        found = self._inner(self.views.folder(path), region, path.count("/") - region.top.count("/"))
        fresh = self._rows[known:]
        del self._rows[known:]
        self._hidden.clear()
        return found if all(row.files().isdisjoint(self._strict) for _, row in fresh) else None

    @property
    def rows(self) -> dict[str, Row]:
        """The rows of all folders that were looked at, by path."""
        return self._index.rows

    def forget(self, path: str, *, below: bool) -> None:
        """Forget a folder that is gone; ``below``: also the folders in it."""
        gone = [one for one in self.regions if is_below(one, path)] if below else [path]
        for one in gone:
            self.regions.pop(one, None)
            self._index.rows.pop(one, None)

    def has_linked(self) -> bool:
        """Tell whether a closed file has several names, or whether too many files are closed to find out soon."""
        try:
            return any(
                True for _ in self._files_with_links([*self._hidden, *self._paths_closed_elsewhere()], FEW_LINKED)
            )
        except ToolFailure:
            return True

    def _place(self, path: str) -> Found:
        status = status_at(path)
        if status is None:
            return _UNSEEN
        if os.path.realpath(path) != path:
            raise refuse("a place is not a folder or file of its own path")
        if path in self._points.closed:
            return _UNSEEN
        nowhere = Region(Ground.EMPTY, "")
        if stat.S_ISDIR(status.st_mode):
            return self._folder(self.views.folder(path), nowhere, 0)
        kind = PLAIN if stat.S_ISREG(status.st_mode) else SPECIAL
        return self._file(path, kind, self.views.view(path, folder=False), nowhere)

    def _folder(self, folder: FolderView, region: Region, depth: int) -> Found:
        path = folder.path
        if path in self._points.all and path not in self.views.uses:
            if path in self._points.closed:
                return _UNSEEN
            if path in self._points.hidden:
                return Found(folder.own is not View.ABSENT, (Mount(MountKind.HIDE_FOLDER, path),))
        if path in self.views.own:
            return _UNSEEN
        if folder.is_settled and not self._is_deep:
            return self._whole(folder, region)
        if depth > MAX_DEPTH:
            return _UNSEEN
        if not self.views.is_copied(path):
            self._notice(path)
        row = self._index.row(folder, with_inodes=self._is_deep)
        if row is None:
            return _UNSEEN
        if self._is_deep:
            self._rows.append((folder, row))
        return self._enter(folder, row, region, depth)

    def _whole(self, folder: FolderView, region: Region) -> Found:
        """Mount a folder in which the process sees everything in the same way."""
        path = folder.path
        if folder.generic is View.ABSENT:
            return Found(folder.own is not View.ABSENT, (Mount(MountKind.HIDE_FOLDER, path),))
        if folder.generic is View.READ:
            if region.ground is Ground.OVERLAY:
                return Found(is_seen=True)
            self.nodes[path] = set()
            return Found(is_seen=True, mounts=(Mount(MountKind.OVERLAY, path),))
        mounts = () if region.ground is Ground.ITSELF else (Mount(MountKind.WRITE, path),)
        return Found(is_seen=True, mounts=mounts)

    def _enter(self, folder: FolderView, row: Row, region: Region, depth: int) -> Found:
        path, top = folder.path, f"{folder.path.rstrip('/')}/"
        new = folder.generic
        if new is View.WRITE and self._cannot_be_written(path, row):
            new = View.READ
        shown = any(one.view is not View.ABSENT and one.kind != SPECIAL for one in row.odd)
        ground = {View.WRITE: Ground.ITSELF, View.READ: Ground.OVERLAY}.get(
            new, Ground.OVERLAY if shown else Ground.EMPTY
        )
        if path == "/" or (ground is Ground.OVERLAY and self.views.has_below(self._no_overlay, path)):
            ground = Ground.EMPTY  # the kernel allows no overlay over a folder with mounts, or over its whiteouts
        inside = region if region.ground is ground and ground is not Ground.EMPTY else Region(ground, path)
        self.regions[path] = inside
        if ground is Ground.ITSELF and not folder.is_settled:
            self.windows.add(inside.top)
        parts = [self._file(top + one.name, one.kind, one.view, inside) for one in row.odd]
        if new is not folder.generic or (ground is Ground.EMPTY and new is not View.ABSENT):
            parts += self._plain_files(folder, row, inside)
        parts += [self._file(one, SPECIAL, View.ABSENT, inside) for one in self._points.closed if is_in(one, path)]
        inner = [
            self._inner(FolderView(top + name, own, generic, settled), inside, depth + 1)
            for name, own, generic, settled in row.folders
            if path != "/" or name not in OWN_FOLDERS
        ]
        is_seen = folder.own is not View.ABSENT or new is not View.ABSENT
        if not (is_seen or shown or any(one.is_seen for one in inner)):
            return _UNSEEN
        mounts = tuple(mount for one in (*parts, *inner) for mount in one.mounts)
        nodes = {node for one in (*parts, *inner) for node in one.nodes}
        if ground is Ground.OVERLAY and (self.views.literals or self.views.everywhere):
            nodes |= self._beforehand(path)
        return self._standing(path, inside, region, mounts, nodes)

    def _standing(self, path: str, inside: Region, region: Region, mounts: tuple[Mount, ...], nodes: Set[str]) -> Found:
        """Put a folder with its mounts and hidden names on a mount of its own, or on that of the folder above."""
        if inside.ground is Ground.EMPTY:
            if path == "/":  # the room's own folder is empty, except for the folders of every room
                return Found(is_seen=True, mounts=mounts)
            return Found(is_seen=True, mounts=(Mount(MountKind.HIDE_FOLDER, path), *mounts))
        if inside.ground is Ground.ITSELF:
            is_fixed = inside is not region or bool(mounts) or self.views.has_below(self.views.literals, path)
            return Found(is_seen=True, mounts=(Mount(MountKind.WRITE, path), *mounts) if is_fixed else ())
        if inside is region:
            return Found(is_seen=True, mounts=mounts, nodes=tuple(nodes))
        self.nodes[path] = set(nodes)
        return Found(is_seen=True, mounts=(Mount(MountKind.OVERLAY, path), *mounts))

    def _inner(self, folder: FolderView, region: Region, depth: int) -> Found:
        """Work out a folder inside an entered one; hide it if the process sees nothing in it."""
        path = folder.path
        try:
            found = self._folder(folder, region, depth)
        except FileNotFoundError:
            return Found(is_seen=False)
        if found.is_seen:
            return found
        self._hidden.append(path)
        if region.ground is Ground.OVERLAY:
            return Found(is_seen=False, nodes=(path,))
        return Found(False, (Mount(MountKind.HIDE_FOLDER, path),) if region.ground is Ground.ITSELF else ())

    def _file(self, path: str, kind: str, view: View, region: Region) -> Found:
        """Work out a name that is not a folder."""
        if kind == SPECIAL:
            view = View.ABSENT
        if view is View.ABSENT:
            self._hidden.append(path)
            if region.ground is Ground.ITSELF and kind == LINK:  # nothing can be mounted on a link
                self.bare.append(path)
                return Found(is_seen=False)
            if region.ground is Ground.OVERLAY:
                return Found(is_seen=False, nodes=(path,))
            return Found(False, (Mount(MountKind.HIDE_FILE, path),) if region.ground is Ground.ITSELF else ())
        is_as_it_stands = (region.ground is Ground.ITSELF) if view is View.WRITE else region.ground is Ground.OVERLAY
        if is_as_it_stands or kind == LINK:
            return Found(is_seen=True)
        return Found(is_seen=True, mounts=(Mount(_COVERS[view], path),))

    def _cannot_be_written(self, path: str, row: Row) -> bool:
        """Tell whether a folder must not get new names: one would be protected, or a link in it cannot be covered."""
        top = f"{path.rstrip('/')}/"
        if any(one.kind == LINK and one.view is not View.WRITE for one in row.odd):
            return True
        return any(not os.path.lexists(top + name) for name in self.views.next_names(self.views.kept, path))

    def _plain_files(self, folder: FolderView, row: Row, region: Region) -> Iterator[Found]:
        """Yield the ordinary files of a folder that must not get new names."""
        odd = {one.name for one in row.odd}
        found = entries_at(folder.path)
        names = [entry.name for entry in found if entry.is_file(follow_symlinks=False) and entry.name not in odd]
        for name in sorted(names):
            yield self._file(f"{folder.path.rstrip('/')}/{name}", PLAIN, folder.generic, region)

    def _beforehand(self, path: str) -> set[str]:
        """Return the names to hide in an overlay before they exist."""
        top = f"{path.rstrip('/')}/"
        named = self.views.next_names(self.views.literals, path)
        if len(self.regions) <= MANY_FOLDERS:
            named |= {name for base, name in self.views.everywhere if is_below(path, base)}
        fresh = {name for name in named if not os.path.lexists(top + name)}
        return {top + name for name in fresh if self._is_closed_name(top + name)}

    def _is_closed_name(self, path: str) -> bool:
        """Tell whether a missing name would be closed, or would have a closed name below it."""
        if self.views.has_below(self.views.literals, path):
            return True
        return View.ABSENT in {self.views.view(path, folder=kind) for kind in (False, True)}

    def _part_names(self) -> None:
        """Hide or write-protect the other names of files that are closed or read-only under one name."""
        closed, read, written = (self._inodes(view) for view in View)
        closed |= set(self._files_with_links(self._paths_closed_elsewhere(), MAX_LINKED))
        read |= set(self._files_with_links(self.views.fixed, MAX_LINKED))
        self._strict = closed | read
        if closed & written:
            raise refuse("a file in a folder that may be written has another name that is closed")
        doubtful = dict.fromkeys(closed & read, View.ABSENT) | dict.fromkeys(read & written, View.READ)
        if doubtful:
            self._part(doubtful)

    def _part(self, doubtful: Mapping[tuple[int, int], View]) -> None:
        strength = list(View)
        for folder, row in self._rows:
            region = self.regions.get(folder.path)
            if region is None or row.files().isdisjoint(doubtful):
                continue
            found = [(entry.name, (row.device, entry.inode())) for entry in entries_at(folder.path)]
            for name, inode in found:
                path = f"{folder.path.rstrip('/')}/{name}"
                meant = doubtful.get(inode, View.WRITE)
                if strength.index(meant) >= strength.index(self.views.view(path, folder=False)):
                    continue
                if region.ground is Ground.OVERLAY and meant is View.ABSENT:
                    self.nodes[region.top].add(path)
                else:
                    self.mounts.append(Mount(_COVERS[meant], path))

    def _inodes(self, view: View) -> set[tuple[int, int]]:
        found: set[tuple[int, int]] = set()
        for folder, row in self._rows:
            if folder.generic is view:
                found.update((row.device, inode) for inode in row.inodes or ())
            found.update((row.device, one.inode) for one in row.odd if one.view is view and one.kind == PLAIN)
        return found

    def _paths_closed_elsewhere(self) -> list[str]:
        """Return the closed paths that lie in no place."""
        return [path for path in self.views.literals if self.views.use(path) is None]

    def _files_with_links(self, paths: Iterable[str], most: int) -> Iterator[tuple[int, int]]:
        """Yield the files at and below some paths that have more than one name."""
        count = 0
        inner = list(paths)
        while inner:
            path = inner.pop()
            status = None if path in self.views.own else status_at(path)
            if status is None:
                continue
            if count == most:
                raise refuse(f"more than {most:,} closed files would have to be looked at for other names of theirs")
            count += 1
            if stat.S_ISDIR(status.st_mode):
                try:
                    inner += [entry.path for entry in os.scandir(path)]
                except OSError:
                    continue
            elif status.st_nlink > 1:
                yield status.st_dev, status.st_ino


def made_against_levels(views: RoomViews, index: FolderIndex, before: Mapping[str, Row]) -> tuple[str, ...]:
    """Return what stands in writable places though its level lets no process make it, and did not stand there when the
    rows ``before`` were read: files, links, and folders with all that is in them.

    A new folder that cannot be searched counts, too.
    """
    found: list[str] = []
    inner = [(place, 0, True) for place, use in views.uses.items() if use is PlaceUse.WRITE]
    while inner:
        path, depth, stood = inner.pop()
        folder, old = views.folder(path), before.get(path) if stood else None
        try:
            _let_in(path)
            row = None if depth > MAX_DEPTH else index.row(folder, with_inodes=False)
            strict = set[str]() if row is None else _strict_names(views, folder, row, is_new=not stood)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            row, strict = None, set[str]()
        if row is None or (stood and old is None):  # what was hidden from the first look stayed hidden
            found += [] if stood else [path]
            continue
        top = f"{path.rstrip('/')}/"
        known = set[str]()
        if old is not None:
            strict -= _strict_names(views, folder, old, is_new=False)
            known = {name for name, *_ in old.folders}
        found += sorted(top + name for name in strict)
        for name, own, generic, is_settled in row.folders:
            if own is not View.WRITE and name not in known:
                found.append(top + name)
            elif not (is_settled and (name in known or generic is View.WRITE)):
                inner.append((top + name, depth + 1, name in known))
    return tuple(dict.fromkeys(found))


def _let_in(path: str) -> None:
    """Open a folder for its owner that a process may have closed. Raises OSError."""
    mode = os.lstat(path).st_mode
    if stat.S_ISDIR(mode) and mode & 0o500 != 0o500:
        with suppress(PermissionError):
            os.chmod(path, stat.S_IMODE(mode) | 0o500)  # noqa: PTH101 - names of any bytes


def _strict_names(views: RoomViews, folder: FolderView, row: Row, *, is_new: bool) -> set[str]:
    """Return the names in a folder, but of folders, that a process may not make; a link counts as what it may lead to.

    A folder that stood and takes no new names shows only files that were there.
    """
    if folder.generic is View.WRITE:
        links = {one.name for one in row.odd if one.kind == LINK and not views.lets_make(f"{folder.path}/{one.name}")}
        return links | {one.name for one in row.odd if one.view is not View.WRITE}
    if not is_new:
        return set()
    names = [entry.name for entry in entries_at(folder.path) if not entry.is_dir(follow_symlinks=False)]
    return {one for one, view in zip(names, views.names(folder.path, names), strict=True) if view is not View.WRITE}
