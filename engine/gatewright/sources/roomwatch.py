"""Keeps names closed in rooms while files change: follows their folders, hides new names, and at the end finds what was
made against the levels and takes it away.

It uses inotify itself, since `watchfiles` hides lost events and a new folder may fill up before it is watched. All
events of a room pass one queue in order, so the event of a file that we make ourselves proves that the watcher has seen
everything before it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import select
import stat
import struct
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Protocol

from gatewright.base.errors import ToolFailure
from gatewright.policy.target import Confinement
from gatewright.sources import descriptor
from gatewright.sources.basefolder import BaseFolder
from gatewright.sources.ground import status_at
from gatewright.sources.roomcopy import WhiteoutFolders, libc, remove_tree
from gatewright.sources.roomlayout import Ground, RoomLayout, made_against_levels
from gatewright.sources.roomview import FolderIndex, Mount, MountKind, RoomPlan, Row, refuse

BEHIND_S = 5.0
"""The longest delay of the watcher behind the events before it counts as too late."""
MAX_LATE = 1_000
"""The most new names to cover in writable folders."""
MANY_EVENTS = 5_000
"""The most events at once to examine one by one; with more, the watcher walks the folders again."""
_READS = 64
_EVENT = struct.Struct("iIII")
_MOVED_FROM, _MOVED_TO, _CREATED, _DELETED = 0x40, 0x80, 0x100, 0x200
_ONLY_FOLDERS = 0x01000000 | 0x02000000 | 0x04000000  # nothing else, no links, nothing that was deleted
_GONE = _MOVED_FROM | _DELETED
_UNMOUNTED, _OVERFLOW, _IGNORED, _IS_FOLDER = 0x2000, 0x4000, 0x8000, 0x40000000


class RoomListener(Protocol):
    """Follows a room. The watcher's thread calls it, and `RoomPlanner.watch` before it returns."""

    def hide(self, mounts: tuple[Mount, ...], *, anew: bool) -> None:
        """Mount these over what processes see. ``anew``: end the processes that started before.

        If one is an overlay of the plan, its names have changed: mount it again in its place (``MS_REMOUNT``, in the
        room), since the kernel would go on giving a process the old files.
        """
        ...

    def fail(self, why: str) -> None:
        """End every process, since nothing is known any more."""
        ...


class RoomWatch:
    """Watches the folders of one room until ``close``, which follows the end of the last process.

    ``lay`` works out the room anew and names each folder before entering it. `RoomPlanner.watch` makes one.
    """

    def __init__(
        self,
        plan: RoomPlan,
        confinement: Confinement,
        listener: RoomListener,
        whiteouts: WhiteoutFolders,
        *,
        lay: Callable[[Callable[[str], None]], RoomLayout],
        release: Callable[[], None],
    ) -> None:
        self._planned, self._listener, self._whiteouts, self._lay = plan, listener, whiteouts, lay
        self._release = release
        self._overlays = {mount.path: mount for mount in plan.mounts if mount.whiteouts}
        self._late: dict[str, Mount] = {}
        self._covered: dict[Mount, tuple[int, ...] | None] = {}
        self._tops = {place.path: _identity(place.path) for place in confinement.places}
        self._numbers = count(1)
        self._seen = 0
        self._news = threading.Condition()
        self._failure = ""
        self._sentinel = tempfile.mkdtemp(prefix="seen-", dir=whiteouts.path)
        self._wake, self._woken = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            self._queue, self._layout = self._walk()
            self._before, self._is_doubtful = self._layout.rows.copy(), False
            self._take_over(is_first=True)
        except BaseException:
            self._free()
            release()
            raise
        self._thread = threading.Thread(target=self._run, name="watch room", daemon=True)
        self._thread.start()

    @property
    def plan(self) -> RoomPlan:
        """The mounts for a process that starts now: with new covers, without paths that are gone or have become
        links.
        """
        late = self._late.copy()
        mounts = (*(mount for mount in self._planned.mounts if mount.path not in late), *late.values())
        return RoomPlan(tuple(filter(_stands, mounts)), self._planned.windows)

    def check(self) -> None:
        """Wait until the watcher has seen everything up to now. Raises ToolFailure if that takes too long."""
        if self._failure:
            raise refuse(self._failure)
        number = next(self._numbers)
        mark = f"{self._sentinel}/{number}"
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            with self._news:
                seen = self._news.wait_for(lambda: self._seen >= number or self._failure, BEHIND_S)
        except OSError as error:
            raise refuse(f"the files cannot be watched any more: {error.strerror}") from None
        finally:
            with suppress(OSError):
                os.unlink(mark)  # noqa: PTH108
        if self._failure:
            raise refuse(self._failure)
        if not seen:
            raise refuse("the files change faster than they can be watched")
        if any(_identity(path) != known for path, known in self._tops.items()):
            raise refuse("another folder stands where a place was")

    def begin(self) -> None:
        """Take what stands now for the operator's; nothing runs in the room at this moment. Raises ToolFailure."""
        if self._is_doubtful:
            self._is_doubtful = False
            self._before = self._look_again()[1]

    def appeared(self) -> tuple[str, ...]:
        """Return what has been made against its level since `begin`, and still stands; the first call tells it."""
        with suppress(ToolFailure):  # it does not matter to a look at the disk
            self.check()
        if not (self._is_doubtful or self._failure):
            return ()
        self._is_doubtful = False
        return self._look_again()[0]

    def _look_again(self) -> tuple[tuple[str, ...], dict[str, Row]]:
        index = FolderIndex(self._layout.views, self._before)
        return made_against_levels(self._layout.views, index, self._before), index.rows

    def close(self) -> None:
        """Stop watching. It may be called repeatedly, and by the listener."""
        with self._news:
            if not self._failure:
                self._failure = _CLOSED
                os.write(self._woken, b".")
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._failure:
                ready = select.poll()
                ready.register(self._queue.descriptor, select.POLLIN)
                ready.register(self._wake, select.POLLIN)
                ready.poll()
                if not self._failure:
                    self._look()
        except ToolFailure as failure:
            self._fail(str(failure))
        except Exception as error:  # noqa: BLE001 - the thread's owner: nobody may take what is unseen for unchanged
            self._fail(f"the files cannot be watched ({type(error).__name__})")
        finally:
            with self._news:  # whoever closes it wakes this thread by what is freed here
                self._free()
            self._release()

    def _look(self) -> None:
        events = list(self._queue.events())
        marks = [int(name) for folder, _, name in events if folder == self._sentinel and name.isdecimal()]
        if any(mask & _UNMOUNTED for _, mask, _ in events):
            raise refuse("a place was unmounted")
        news = _News()
        is_lost = len(events) > MANY_EVENTS or any(mask & _OVERFLOW for _, mask, _ in events)
        if is_lost or not all(self._note(*event, news) for event in events if event[0] != self._sentinel):
            self._is_doubtful = True
            self._again()
        else:
            self._tell(news)
        self._tell_seen(marks)

    def _note(self, folder: str, mask: int, name: str, news: _News) -> bool:
        """Record the effect of one event; False if only a new walk can find it."""
        region, path = self._layout.regions.get(folder), f"{folder.rstrip('/')}/{name}"
        if region is None or region.ground is Ground.EMPTY:
            return True
        overlay = self._overlays.get(region.top)
        if overlay is not None:
            news.stale[region.top] = overlay
        if mask & _GONE:
            self._late.pop(path, None)
            if mask & _IS_FOLDER:
                self._layout.forget(path, below=bool(mask & _MOVED_FROM))
                if mask & _MOVED_FROM:
                    self._queue.forget(path)
                self._follow(overlay, path)
            return True
        found = self._layout.name(folder, name)
        if found is None:
            return False
        self._is_doubtful |= not self._layout.views.lets_make(path) or bool(found.mounts or found.nodes)
        news.mounts += found.mounts
        if overlay is None:  # a folder that became readable later, without whiteouts
            if any(map(os.path.islink, found.nodes)):  # nothing can be mounted on one
                return False
            kinds = ((MountKind.HIDE_FOLDER if _is_folder(one) else MountKind.HIDE_FILE, one) for one in found.nodes)
            news.mounts += (Mount(kind, one) for kind, one in kinds)
            return True
        if found.is_seen and mask & _IS_FOLDER:
            self._whiteouts.look_into(overlay, path, found.nodes)
        news.anew |= self._whiteouts.hide(overlay, found.nodes)
        return True

    def _follow(self, overlay: Mount | None, gone: str) -> None:
        """Show nothing in place of a folder that went."""
        if overlay is not None:
            views = self._layout.views
            self._whiteouts.follow(overlay, gone, hides=views.has_below(views.literals, gone))

    def _again(self) -> None:
        """Walk again, with a queue of its own."""
        marks = [int(name) for name in os.listdir(self._sentinel)]  # noqa: PTH208
        queue, layout = self._walk()
        self._queue.close()
        self._queue, self._layout = queue, layout
        self._take_over(is_first=False)
        self._tell_seen(marks)

    def _take_over(self, *, is_first: bool) -> None:
        """Hide what a walk found; show again the places of folders that are gone."""
        news, planned = _News(), {(mount.kind, mount.path) for mount in self._planned.mounts}
        for top, nodes in self._layout.nodes.items():
            if top in self._overlays:
                for gone in self._whiteouts.ghosts(self._overlays[top]):
                    self._follow(self._overlays[top], gone)
                news.anew |= self._whiteouts.hide(self._overlays[top], nodes) and not is_first
        found = {mount: _mark(mount) for mount in self._layout.mounts if not self._layout.views.is_copied(mount.path)}
        for mount, mark in found.items():
            if (mount.kind, mount.path) not in planned if is_first else self._covered.get(mount) != mark:
                news.mounts.append(mount)
        self._covered = found
        news.stale = {} if is_first else dict(self._overlays)
        self._tell(news)

    def _tell(self, news: _News) -> None:
        """Put mounts over what processes see: covers as they are, everything else as the mount that shows least."""
        late: list[Mount] = []
        for mount in news.mounts:
            if mount.kind is MountKind.OVERLAY:
                whole = not self._layout.nodes.get(mount.path)
                news.anew |= not whole
                late.append(Mount(MountKind.READ if whole else MountKind.HIDE_FOLDER, mount.path))
            elif mount.kind is not MountKind.WRITE:
                late.append(mount)
        self._late.update((mount.path, mount) for mount in late)
        if len(self._late) > MAX_LATE:
            raise refuse("more names appeared than can be covered")
        if late or news.stale or news.anew:
            self._listener.hide((*late, *news.stale.values()), anew=news.anew)

    def _walk(self) -> tuple[_Queue, RoomLayout]:
        queue = _Queue()
        try:
            queue.add(self._sentinel)
            return queue, self._lay(queue.add)
        except BaseException:
            queue.close()
            raise

    def _tell_seen(self, marks: list[int]) -> None:
        with self._news:
            self._seen = max((self._seen, *marks))
            self._news.notify_all()

    def _fail(self, why: str) -> None:
        with self._news:
            if self._failure:
                return
            self._failure = why
            self._news.notify_all()
        with suppress(Exception):
            self._listener.fail(why)

    def _free(self) -> None:
        """Close everything, once nobody uses it."""
        os.close(self._wake)
        os.close(self._woken)
        with suppress(AttributeError):
            self._queue.close()
        with suppress(OSError):
            for name in os.listdir(self._sentinel):  # noqa: PTH208
                os.unlink(f"{self._sentinel}/{name}")  # noqa: PTH108
            os.rmdir(self._sentinel)  # noqa: PTH106


def take_away(path: str, goal: Path) -> bool:
    """Move whatever has this name to ``goal``, without following links; false if nothing is there.

    First it gets a name that means nothing to any program. Raises OSError, ToolFailure.
    """
    *above, name = path.strip("/").split("/")
    with descriptor.open_folder(BaseFolder("/"), tuple(above)) as folder:
        if descriptor.status_of(folder, name) is None:
            return False
        goal.parent.mkdir(parents=True, exist_ok=True)
        near = f"/proc/{os.getpid()}/fd/{folder}"
        mode = stat.S_IMODE(os.fstat(folder).st_mode)
        aside = f".gatewright-taken-{secrets.token_hex(8)}"
        _allow(near, mode | 0o700)
        try:
            os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)
            try:
                os.rename(aside, goal, src_dir_fd=folder)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise OSError(error.errno, f"{error.strerror}; it is called `{aside}` now") from None
                copied = ("cp", "-a", "--one-file-system", "--", f"{near}/{aside}", str(goal))
                subprocess.run(copied, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                remove_tree(f"{near}/{aside}")
        finally:
            _allow(near, mode)
    return True


def _allow(path: str, mode: int) -> None:
    """Give a folder a mode, if it does not have it. Raises OSError."""
    if stat.S_IMODE(os.stat(path).st_mode) != mode:  # noqa: PTH116 - names of any bytes
        os.chmod(path, mode)  # noqa: PTH101 - the same


_EITHER = frozenset({MountKind.READ, MountKind.WRITE})
_CLOSED = "the room is closed"


class _News:
    """The effects of some events. ``stale``: overlays whose names now mean other files."""

    def __init__(self) -> None:
        self.mounts: list[Mount] = []
        self.stale: dict[str, Mount] = {}
        self.anew = False


class _Queue:
    """The inotify queue and its folders."""

    def __init__(self) -> None:
        self.descriptor = libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:
            raise _watch_failure(ctypes.get_errno())
        self._folders: dict[int, str] = {}

    def add(self, folder: str) -> None:
        """Watch a folder, if it exists. Raises ToolFailure."""
        number = libc().inotify_add_watch(
            self.descriptor, os.fsencode(folder), _GONE | _MOVED_TO | _CREATED | _ONLY_FOLDERS
        )
        if number >= 0:
            self._folders[number] = folder
        elif (why := ctypes.get_errno()) not in {errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP}:
            raise _watch_failure(why)

    def forget(self, folder: str) -> None:
        """Stop watching a folder that moved away, and all below it."""
        below = f"{folder}/"
        for number in [n for n, path in self._folders.items() if path == folder or path.startswith(below)]:
            del self._folders[number]
            libc().inotify_rm_watch(self.descriptor, number)

    def events(self) -> Iterator[tuple[str, int, str]]:
        """Yield the events: folder, mask, name."""
        for _ in range(_READS):
            try:
                held = os.read(self.descriptor, 1 << 18)
            except BlockingIOError:
                return
            at = 0
            while at < len(held):
                number, mask, _, length = _EVENT.unpack_from(held, at)
                at += _EVENT.size + length
                name = os.fsdecode(held[at - length : at].rstrip(b"\0"))
                if mask & _IGNORED:
                    self._folders.pop(number, None)
                elif number in self._folders or mask & _OVERFLOW:
                    yield self._folders.get(number, ""), mask, name

    def close(self) -> None:
        with suppress(OSError):
            os.close(self.descriptor)


def _watch_failure(why: int) -> ToolFailure:
    if why in {errno.ENOSPC, errno.EMFILE}:
        return refuse("the system watches no more folders (fs.inotify.max_user_watches, fs.inotify.max_user_instances)")
    return refuse(f"the folders cannot be watched: {os.strerror(why)}")


def _stands(mount: Mount) -> bool:
    """Tell whether the path of a mount can still be mounted, or mounted on, without a link that leads elsewhere."""
    if mount.origin:
        return True
    status = status_at(mount.path)
    if status is None or stat.S_ISLNK(status.st_mode) or os.path.realpath(mount.path) != mount.path:
        return False
    is_folder = stat.S_ISDIR(status.st_mode)
    return mount.kind in _EITHER or is_folder is (mount.kind is not MountKind.HIDE_FILE)


def _mark(mount: Mount) -> tuple[int, ...] | None:
    """Return a mark of the file under a cover, which shows whether the cover still fits; a folder shows its new entries
    itself.
    """
    status = None if mount.kind in {MountKind.OVERLAY, MountKind.WRITE} else status_at(mount.path)
    return None if status is None else (status.st_dev, status.st_ino, status.st_ctime_ns)


def _is_folder(path: str) -> bool:
    status = status_at(path)
    return status is not None and stat.S_ISDIR(status.st_mode)


def _identity(path: str) -> tuple[int, int] | None:
    status = status_at(path)
    return None if status is None else (status.st_dev, status.st_ino)
