"""Knows what a process in a room sees of each path, and the names in its folders when they were last listed.

Over a path the strictest of all trees counts, limited by the use of the innermost place that contains it. ``closed``
paths are absent, ``fixed`` ones at most readable, with everything below. A folder is listed again when its device,
inode or times change, so that after the first time a large tree costs one look at each folder. The index stays on disk,
one for each set of places and rules.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from gatewright.base.errors import ToolFailure
from gatewright.base.file import write_atomically
from gatewright.base.firstmatch import FirstMatch
from gatewright.base.frozen import frozen
from gatewright.policy.glob import PermissionRules, above_regex, byte_text, literal_path, parse_git_pattern
from gatewright.policy.target import Confinement, PlaceUse, Tree, View, view_of
from gatewright.policy.verdict import Permission, Word
from gatewright.sources.ground import is_below


class MountKind(Word):
    """The way a path gets into a room; later mounts cover earlier ones.

    overlay: the live folder, readable, without the names for which ``whiteouts`` has a device 0/0. read, write: the
    file or folder itself. hide_file, hide_folder: something empty over an entry whose name stays visible.
    """

    OVERLAY = "overlay"
    READ = "read"
    WRITE = "write"
    HIDE_FILE = "hide_file"
    HIDE_FOLDER = "hide_folder"


@frozen
class Mount:
    """One mount, at the same path inside as outside; ``whiteouts``: the folder with the hidden names of an overlay.

    ``origin``: the mounted file, if not the one at the path (the private copy of a snapshot).
    """

    kind: MountKind
    path: str
    whiteouts: str = ""
    origin: str = ""


@frozen
class RoomPlan:
    """The mounts of a room in their order. ``windows``: writable folders whose closed names the watcher hides."""

    mounts: tuple[Mount, ...] = ()
    windows: tuple[str, ...] = ()


NOT_CONFINED = "not-confined"
"""The code of a failure: the kernel cannot enforce the policy."""
_NEW = "\x7fnew\x7f"
"""A name of a file for which no rule exists."""
_RANK = {View.ABSENT: 0, View.READ: 1, View.WRITE: 2}
_USE_RANK = {PlaceUse.READ: 0, PlaceUse.SNAPSHOT: 1, PlaceUse.WRITE: 2}


def stricter(views: Iterable[View]) -> View:
    """Return the strictest of some views; write of none."""
    return min(views, key=_RANK.__getitem__, default=View.WRITE)


def refuse(why: str) -> ToolFailure:
    """Return the failure for a confinement that the kernel cannot enforce."""
    return ToolFailure(why, code=NOT_CONFINED)


class _RuledTree:
    """One tree with its rules compiled."""

    def __init__(self, tree: Tree) -> None:
        try:
            self.rules = PermissionRules(tree.rules, tree.default)
        except ValueError as error:
            raise refuse(f"a rule of a source cannot be enforced: {error}") from None
        self.base = tree.base
        self.parsed = [parse_git_pattern(rule.pattern) for rule in tree.rules]
        rules = zip(self.parsed, tree.rules, strict=True)
        closing = [one for one, rule in rules if view_of(rule.permission) is View.ABSENT]
        self.may_close_new = view_of(tree.default) is View.ABSENT or any(
            one.basename or literal_path(one) is None for one in closing
        )
        self._levels = [*(rule.permission for rule in tree.rules), tree.default]
        self._above: dict[PlaceUse, list[tuple[View, list[int], FirstMatch]]] = {}

    def relative(self, path: str) -> str:
        """Return the path relative to the tree's base; empty for the base."""
        return path[len(self.base) :].lstrip("/")

    def view(self, relative: str, use: PlaceUse) -> View:
        return view_of(self.rules.level(relative), use)

    def views(self, relatives: Iterable[str], use: PlaceUse) -> list[View]:
        table = {level: view_of(level, use) for level in Permission}
        return [table[level] for level in self.rules.levels(relatives)]

    def is_settled(self, relative: str, use: PlaceUse) -> bool:
        """Tell whether everything below a folder looks the same, since no earlier rule makes an exception."""
        index = self.rules.indexes([f"{relative}/"])[0] if relative else len(self.rules.rules)
        view = view_of(self._levels[index], use)
        folder = byte_text(relative)
        for other, numbers, above in self._classes(use):
            if other is view or not numbers or numbers[0] >= index:
                continue
            first = above.first(folder)
            if first < len(numbers) and numbers[first] < index:
                return False
        return True

    def _classes(self, use: PlaceUse) -> list[tuple[View, list[int], FirstMatch]]:
        """Group the rules by what they let a process see: their numbers, and the folders below which they may match."""
        found = self._above.get(use)
        if found is None:
            found = list[tuple[View, list[int], FirstMatch]]()
            for view in View:
                numbers = [at for at, level in enumerate(self._levels[:-1]) if view_of(level, use) is view]
                found.append((view, numbers, FirstMatch([above_regex(self.parsed[at]) for at in numbers])))
            self._above[use] = found
        return found


@frozen
class FolderView:
    """What a process sees of a folder and its names. ``generic``: of a new name without a rule.

    ``is_settled``: the same for everything below. ``own``: of the folder itself.
    """

    path: str
    own: View
    generic: View
    is_settled: bool


class RoomViews:
    """What processes under one confinement see. ``own``: our folders, absent; ``cuts``: folders to examine by
    themselves.

    Raises ToolFailure for rules that cannot be enforced.
    """

    def __init__(self, confinement: Confinement, own: Sequence[str] = (), cuts: Sequence[str] = ()) -> None:
        uses: dict[str, PlaceUse] = {}
        for place in confinement.places:
            uses[place.path] = min(uses.get(place.path, place.use), place.use, key=_USE_RANK.__getitem__)
        self.uses = dict(sorted(uses.items()))
        self._has_copies = PlaceUse.SNAPSHOT in self.uses.values()
        self.trees = [_RuledTree(tree) for tree in confinement.trees]
        self.own = frozenset(own)
        self.closed = tuple(sorted({*confinement.closed, *own}))
        self.fixed = tuple(sorted(set(confinement.fixed)))
        self.kept = sorted({*self.closed, *self.fixed})
        bases = [tree.base for tree in self.trees]
        self._cuts = sorted({*self.uses, *bases, *self.closed, *self.fixed, *cuts})
        self.may_close_new = any(tree.may_close_new for tree in self.trees)
        self.everywhere = self._names_everywhere()
        self.literals = tuple(sorted({*confinement.closed, *self._literals()}))

    def use(self, path: str) -> PlaceUse | None:
        """Return the use of the innermost place that contains a path; None outside all places."""
        found = [place for place in self.uses if is_below(path, place)]
        return self.uses[max(found, key=len)] if found else None

    def is_copied(self, path: str) -> bool:
        """Tell whether a process gets a private copy of a path."""
        return self._has_copies and self.use(path) is PlaceUse.SNAPSHOT

    def view(self, path: str, *, folder: bool) -> View:
        """Return what a process sees of a path."""
        use = self.use(path)
        if use is None or any(is_below(path, one) for one in self.closed):
            return View.ABSENT
        views = [view_of(Permission.ADMIN, use)]
        if any(is_below(path, one) for one in self.fixed):
            views.append(View.READ)
        for tree in self.trees:
            if is_below(path, tree.base):
                relative = tree.relative(path)
                views.append(tree.view(f"{relative}/" if folder and relative else relative, use))
        return stricter(views)

    def lets_make(self, path: str) -> bool:
        """Tell whether a process may make a file and a folder there, and so a link, which may lead to either."""
        return all(self.view(path, folder=kind) is View.WRITE for kind in (False, True))

    def folder(self, path: str) -> FolderView:
        """Work out what a process sees of a folder and its names."""
        use = self.use(path)
        own = self.view(path, folder=True)
        generic = self.view(f"{path.rstrip('/')}/{_NEW}", folder=False)
        settled = not self.has_below(self._cuts, path)
        if use is not None and settled and not any(is_below(path, one) for one in self.closed):
            over = [tree for tree in self.trees if is_below(path, tree.base)]
            settled = all(tree.is_settled(tree.relative(path), use) for tree in over)
        return FolderView(path, own, generic, settled)

    def names(self, folder: str, names: Sequence[str]) -> list[View]:
        """Return what a process sees of names in a folder that are not folders."""
        top = f"{folder.rstrip('/')}/"
        use = self.use(folder)
        if use is None or self.has_below(self._cuts, folder):
            return [self.view(top + name, folder=False) for name in names]
        if any(is_below(folder, one) for one in self.closed):
            return [View.ABSENT] * len(names)
        bound = View.READ if any(is_below(folder, one) for one in self.fixed) else View.WRITE
        found = [stricter((view_of(Permission.ADMIN, use), bound))] * len(names)
        for tree in self.trees:
            if is_below(folder, tree.base):
                start = tree.relative(top)
                theirs = tree.views([start + name for name in names], use)
                found = [one if _RANK[one] <= _RANK[other] else other for one, other in zip(found, theirs, strict=True)]
        return found

    @staticmethod
    def has_below(paths: Sequence[str], folder: str) -> bool:
        """Tell whether one of some sorted paths lies strictly below a folder."""
        top = f"{folder.rstrip('/')}/"
        at = bisect_right(paths, top)
        return at < len(paths) and paths[at].startswith(top)

    @staticmethod
    def next_names(paths: Sequence[str], folder: str) -> set[str]:
        """Return the names in a folder through which some sorted paths lead."""
        top = f"{folder.rstrip('/')}/"
        found: set[str] = set()
        at = bisect_right(paths, top)
        while at < len(paths) and paths[at].startswith(top):
            found.add(paths[at][len(top) :].split("/", 1)[0])
            at += 1
        return found

    def _literals(self) -> Iterable[str]:
        """Yield the paths that rules without wildcards close, and the closed paths outside every place."""
        for tree in self.trees:
            for pattern in tree.parsed:
                relative = None if pattern.basename else literal_path(pattern)
                path = f"{tree.base.rstrip('/')}/{relative}"
                if relative and View.ABSENT in {self.view(path, folder=kind) for kind in (False, True)}:
                    yield path

    def _names_everywhere(self) -> tuple[tuple[str, str], ...]:
        """Return the names without wildcards that a rule closes or opens in every folder, each with the base."""
        found = [(tree.base, literal_path(one)) for tree in self.trees for one in tree.parsed if one.basename]
        return tuple((base, name) for base, name in found if name is not None)


MAX_PATH = 3_500
"""The longest path of a folder, in bytes, whose entries a room shows; ours for hidden names are longer."""
_FORMAT = 1
_FINE_NS, _COARSE_NS = 100_000_000, 2_500_000_000
"""The least time between a folder's last change and its listing for the next change to show in its times."""
_VIEWS = {view.value: view for view in View}
PLAIN, LINK, SPECIAL = "f", "l", "s"
"""Kinds of entries that are not folders; special: sockets, pipes, devices."""


class Odd(NamedTuple):
    """A name that is no folder and that a process sees differently from a new plain file.

    In a closed folder with visible names: every name that is not a folder.
    """

    name: str
    kind: str
    view: View
    inode: int


class Row(NamedTuple):
    """One folder. ``folders``: each name with its view, the view of a new name in it, and True if everything below is
    alike.

    ``inodes``: of the plain files that are not odd; None if nobody asked for them.
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
        """Tell whether the folder has not changed since it was listed."""
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
    """The file with the rows of a confinement. Several processes may share it: each writes it as a whole."""

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
        """Write the rows, if the disk permits."""
        with suppress(OSError):
            write_atomically(self.path, json.dumps(rows, separators=(",", ":")).encode(), mode=0o600, follow=False)


def _row(held: list[Any]) -> Row:
    device, inode, modified, changed, listed, folders, odd, inodes = held
    inner = tuple((name, _VIEWS[own], _VIEWS[generic], settled) for name, own, generic, settled in folders)
    others = tuple(Odd(name, kind, _VIEWS[view], inode) for name, kind, view, inode in odd)
    return Row(device, inode, modified, changed, listed, inner, others, None if inodes is None else tuple(inodes))
