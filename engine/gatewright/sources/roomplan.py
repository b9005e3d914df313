"""From a `Confinement` to the mounts that hold it on the files that are there, and the folders with hidden names.

Nothing is made in anybody's folders: whiteouts and the index lie in a folder of ours. What a process of ours made there
goes with it; after one that was killed the next one clears up.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path

from gatewright.base.filelock import lock
from gatewright.policy.confinement import Confinement, PlaceUse
from gatewright.record.fork import fork_safe_lock
from gatewright.sources.protection import is_below, status_at
from gatewright.sources.roomindex import FolderIndex, IndexFile, Row
from gatewright.sources.roomlayout import MountPoints, RoomLayout
from gatewright.sources.roommount import Mount, MountKind, RoomPlan
from gatewright.sources.roomview import RoomViews, refuse
from gatewright.sources.roomwatch import RoomListener, RoomWatch

MAX_MOUNTS = 1_000
MAX_HIDDEN = 50_000
"""How many mounts a room may need, and how many names may be hidden in all its overlays."""
_MAX_OPTIONS = 3_800
"""How long both folders of an overlay may be together, in bytes: the kernel takes one page of options."""
_PSEUDO = frozenset(
    [
        *("autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "efivarfs"),
        *("fusectl", "hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "selinuxfs", "sysfs"),
        "tracefs",
    ]
)
"""File systems that are windows into the kernel."""
_INDEXES_KEPT = 16
_PATIENCE_S = 5.0


class RoomPlanner:
    """Plans rooms. ``cache``: a folder of ours, made when it is first needed. Callable from any thread.

    A plan holds for the disk as it was; `watch` makes it last.
    """

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._lock = fork_safe_lock()
        self._run: _RunFolder | None = None
        self._rows: dict[Path, dict[str, Row]] = {}

    def plan(self, confinement: Confinement) -> RoomPlan:
        """What to mount. Raises ToolFailure where it cannot be held."""
        with self._lock:
            return self._planned(confinement)

    def watch(self, confinement: Confinement, plan: RoomPlan, listener: RoomListener) -> RoomWatch:
        """Keep a plan true, from the moment at which it was made: once for each plan. Raises ToolFailure."""

        def lay(notice: Callable[[str], None]) -> RoomLayout:
            with self._lock:
                return self.layout(confinement, notice)

        with self._lock:
            run = self._running()
        return RoomWatch(
            plan, confinement, listener, lay=lay, hide=run.hide, ours=run.path, release=lambda: self._release(plan)
        )

    def layout(self, confinement: Confinement, notice: Callable[[str], None] = lambda _: None) -> RoomLayout:
        """The mounts as the disk is now, and the hidden names that are not made yet."""
        own = os.path.realpath(self._cache)
        points = _mount_points(confinement)
        views = RoomViews(confinement, (own,), points.all)
        kept = IndexFile(self._private(), confinement, points.all)
        known = self._rows.pop(kept.path, None)
        if known is None:
            known = kept.load()
        is_deep = any(place.use is not PlaceUse.READ for place in confinement.places)
        index = FolderIndex(views, known)
        layout = RoomLayout(views, index, points, is_deep=is_deep, notice=notice)
        layout.lay()
        if not is_deep and layout.has_linked():
            index = FolderIndex(views, {**known, **index.rows})
            layout = RoomLayout(views, index, points, is_deep=True, notice=notice)
            layout.lay()
        if index.listed or len(index.rows) != len(known):
            kept.save(index.rows)
        self._rows[kept.path] = index.rows.copy()
        while len(self._rows) > _INDEXES_KEPT:
            del self._rows[next(iter(self._rows))]
        return layout

    def _planned(self, confinement: Confinement) -> RoomPlan:
        layout = self.layout(confinement)
        if len(layout.mounts) > MAX_MOUNTS:
            raise refuse(
                f"{len(layout.mounts):,} files and folders would have to be mounted one by one, and at most"
                f" {MAX_MOUNTS:,} can be: fewer exceptions in what may be written, or smaller places"
            )
        hidden = sum(len(names) for names in layout.nodes.values())
        if hidden > MAX_HIDDEN:
            raise refuse(f"{hidden:,} names would have to be hidden one by one, and at most {MAX_HIDDEN:,} can be")
        try:
            mounts = tuple(self._made(mount, layout) for mount in layout.mounts)
        except OSError as error:
            raise refuse(f"names cannot be hidden: {error.strerror or 'the folder for it cannot be used'}") from None
        return RoomPlan(mounts, tuple(sorted(layout.windows)))

    def _made(self, mount: Mount, layout: RoomLayout) -> Mount:
        if mount.kind is not MountKind.OVERLAY:
            return mount
        whiteouts = self._running().whiteouts(mount.path, layout.nodes[mount.path])
        if sum(len(os.fsencode(path)) + 16 for path in (mount.path, whiteouts)) > _MAX_OPTIONS:
            raise refuse("the path of a place is too long for its names to be hidden")
        return Mount(mount.kind, mount.path, whiteouts)

    def _release(self, plan: RoomPlan) -> None:
        with self._lock:
            for mount in plan.mounts:
                if mount.whiteouts:
                    self._running().release(mount.whiteouts)

    def _running(self) -> _RunFolder:
        if self._run is None:
            self._run = _RunFolder(self._private())
        return self._run

    def _private(self) -> Path:
        try:
            self._cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise refuse(f"the folder for hidden names cannot be made: {error.strerror}") from None
        return Path(os.path.realpath(self._cache))


class _RunFolder:
    """The folder of one process in the cache, locked while it lives."""

    def __init__(self, cache: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        one_at_a_time = os.open(cache / "lock", flags, 0o600)
        try:
            lock(one_at_a_time, _PATIENCE_S)
            for left in cache.glob("run-*"):
                _clear_if_left(left)
            self.path = Path(tempfile.mkdtemp(prefix="run-", dir=cache))
            self._held = os.open(self.path / "lock", flags, 0o600)
            lock(self._held, _PATIENCE_S)
        finally:
            os.close(one_at_a_time)
        self._used: dict[str, int] = {}
        self._grown: set[str] = set()

    def whiteouts(self, folder: str, nodes: Iterable[str]) -> str:
        """The folder of whiteouts for an overlay of a folder; one that has the same names is used again."""
        names = sorted(nodes)
        digest = hashlib.sha256(os.fsencode("\0".join((folder, *names)))).hexdigest()[:32]
        made = next(path for n in count() if (path := f"{self.path}/{digest}{n}") not in self._grown)
        if made not in self._used:
            fresh = tempfile.mkdtemp(prefix="new-", dir=self.path)
            _dress(fresh, folder)
            for name in names:
                _hide(fresh, folder, name)
            Path(fresh).rename(made)
        self._used[made] = self._used.get(made, 0) + 1
        return made

    def release(self, whiteouts: str) -> None:
        """Remove a folder of whiteouts if this was the last that used it."""
        self._used[whiteouts] -= 1
        if not self._used[whiteouts]:
            del self._used[whiteouts]
            shutil.rmtree(whiteouts, ignore_errors=True)

    def hide(self, mount: Mount, nodes: Iterable[str]) -> bool:
        """Hide names in an overlay that is in use; whether there were any that were not. Raises OSError."""
        fresh = [node for node in sorted(nodes) if _hide(mount.whiteouts, mount.path, node)]
        if fresh:
            self._grown.add(mount.whiteouts)
        return bool(fresh)


def _hide(whiteouts: str, folder: str, path: str) -> bool:
    """Put a whiteout at the place of a path below ``folder``; false where one is. Raises OSError."""
    *above, name = path[len(folder) :].strip("/").split("/")
    made, real = whiteouts, folder
    for step in above:
        made, real = f"{made}/{step}", f"{real.rstrip('/')}/{step}"
        try:
            os.mkdir(made, 0o700)  # noqa: PTH102 - names of any bytes
        except FileExistsError:
            if not stat.S_ISDIR(os.lstat(made).st_mode):
                return False  # a folder above is hidden whole
            continue
        _dress(made, real)
    try:
        os.mknod(f"{made}/{name}", stat.S_IFCHR | 0o644, os.makedev(0, 0))
    except FileExistsError:
        if stat.S_ISDIR(os.lstat(f"{made}/{name}").st_mode):
            raise  # it shows what stands below
        return False
    return True


def _dress(made: str, real: str) -> None:
    """Give a folder of whiteouts, which shows instead of the real one, the mode of that."""
    status = status_at(real)
    if status is not None:
        os.chmod(made, 0o700 | stat.S_IMODE(status.st_mode) & 0o077)  # noqa: PTH101 - names of any bytes


def _clear_if_left(folder: Path) -> None:
    """Remove the folder of a process that is gone."""
    with suppress(OSError):
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
        try:
            lock(descriptor, 0.0)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(descriptor)


def _mount_points(confinement: Confinement) -> MountPoints:
    """What is mounted at and below the places now."""
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:
        raise refuse("this system does not tell what is mounted") from None
    found: dict[str, str] = {}
    for line in lines:
        words = line.split(b" ")
        path = os.fsdecode(words[4].decode("unicode_escape").encode("latin-1"))
        if any(is_below(path, place.path) for place in confinement.places):
            found[path] = words[words.index(b"-") + 1].decode("ascii", "replace")
    closed = [status_at(path) for path in confinement.closed]
    identities = {(one.st_dev, one.st_ino) for one in closed if one is not None}
    points = {path: status_at(path) for path in found}
    return MountPoints(
        tuple(sorted(found)),
        frozenset(path for path, kind in found.items() if kind in _PSEUDO),
        frozenset(p for p, one in points.items() if one is not None and (one.st_dev, one.st_ino) in identities),
    )
