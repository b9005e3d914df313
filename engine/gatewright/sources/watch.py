"""Notices outside changes below watched folders, and takes them into blocks if that loses nothing.

`FolderWatch` serves people who see the whole folder. `SourceWatching` runs one thread for each source, and compares
content; it names only paths that have a level and are reached without a link, and its reports are bounded. The
operating system reports the changes (watchfiles); if it cannot, the watch looks at the folder, or at the files with a
block, every few seconds, and says so. A base that disappears and comes back is watched again and compared; another
folder in its place is a problem instead.
"""

from __future__ import annotations

import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING
from weakref import WeakSet

from gatewright.base.errors import GatewrightError, ToolFailure
from gatewright.base.frozen import frozen
from gatewright.policy.target import Located
from gatewright.policy.verdict import Permission
from gatewright.record.process import fork_safe_lock
from gatewright.sources.basefolder import READ_AGAIN, REPLACED, BaseFolder
from gatewright.sources.filetext import is_leftover
from gatewright.sources.ground import status_at
from gatewright.sources.held import FileState, OutsideChange
from gatewright.sources.manager import SourceManager

if TYPE_CHECKING:
    from watchfiles import Change


MAX_PATHS_TOLD = 2_000
_POLL_MS = 1_500


@frozen
class FolderNews:
    """Changed paths from the base, with ``/``. ``more``: others changed too, or everything may be new.

    ``is_there``: the folder exists. ``problem``: why it does not, or why its changes go unnoticed.
    """

    came: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    went: frozenset[str] = frozenset()
    more: bool = False
    is_there: bool = True
    problem: str | None = None

    @property
    def paths(self) -> frozenset[str]:
        """All of them."""
        return self.came | self.changed | self.went


def changes_below(
    folder: BaseFolder, done: threading.Event, debounce_ms: int, tick_ms: int, *, polls: bool = False
) -> Iterator[set[tuple[Change, str]]]:
    """Yield the changes since the last time, at least every ``tick_ms``, until another folder takes the place or
    ``done`` is set.
    """
    from watchfiles import Change, watch

    for found in watch(
        folder.place,
        watch_filter=None,
        debounce=debounce_ms,
        stop_event=done,
        rust_timeout=tick_ms,
        yield_on_timeout=True,
        ignore_permission_denied=True,
        force_polling=polls,
        poll_delay_ms=_POLL_MS,
    ):
        yield found
        if (Change.deleted, folder.place) in found or folder.fault() is not None:
            return


class FolderWatch:
    """Watches from its making until ``close``. ``notify`` runs in a thread of ours.

    ``debounce_ms``: the longest time to gather changes; ``tick_ms``: the time to notice a folder that came back.
    ``tells_gap``: the watch begins with ``more``, for earlier changes.
    """

    def __init__(
        self,
        folder: BaseFolder,
        notify: Callable[[FolderNews], None],
        *,
        debounce_ms: int = 300,
        tick_ms: int = 400,
        tells_gap: bool = False,
    ) -> None:
        self.folder = folder
        self._tells_gap = tells_gap
        self.base = folder.place
        self._notify = notify
        self._debounce_ms, self._tick_ms = debounce_ms, tick_ms
        self._done = threading.Event()
        self._stands = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch folder", daemon=True)
        self._thread.start()

    def wait(self, timeout_s: float) -> bool:
        """Wait until the folder is watched; return False after the timeout."""
        return self._stands.wait(timeout_s)

    def stop(self) -> None:
        """Report nothing from now on; the thread ends by itself a moment later."""
        self._done.set()

    def close(self) -> None:
        """Stop, and wait for the thread."""
        self.stop()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def __enter__(self) -> FolderWatch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        was_there, told = True, ""
        while not self._done.is_set():
            fault = self.folder.fault()
            if fault is not None:
                if was_there or str(fault) != told:
                    told = str(fault)
                    self._tell(FolderNews(is_there=False, problem=told))
                was_there = False
                self._done.wait(self._tick_ms / 1000)
                continue
            try:
                self._run_watch(is_back=not was_there, polls=False)
            except OSError:  # the system cannot watch so many folders: look at the folder now and then
                self._poll(is_back=not was_there)
            was_there = True

    def _poll(self, *, is_back: bool) -> None:
        try:
            self._run_watch(is_back=is_back, polls=True)
        except Exception as error:  # noqa: BLE001 - the thread's owner: watching must not end without a word
            self._tell(FolderNews(problem=str(error)))
            self._done.set()

    def _run_watch(self, *, is_back: bool, polls: bool) -> None:
        watched = changes_below(self.folder, self._done, self._debounce_ms, self._tick_ms, polls=polls)
        for number, found in enumerate(watched):
            if not number:
                if is_back or self._tells_gap:
                    self._tell(FolderNews(more=True))
                self._stands.set()
            news = self._news(found)
            if news is not None:
                self._tell(news)

    def _news(self, found: Iterable[tuple[Change, str]]) -> FolderNews | None:
        from watchfiles import Change

        prefix = self.base.rstrip("/") + "/"
        told: dict[Change, set[str]] = {change: set() for change in Change}
        for number, (change, path) in enumerate(found):
            if number >= MAX_PATHS_TOLD:
                return FolderNews(more=True)
            if path.startswith(prefix) and not is_leftover(path):
                told[change].add(path[len(prefix) :])
        came, went = frozenset(told[Change.added]), frozenset(told[Change.deleted])
        changed = frozenset(told[Change.modified]) - came - went
        return FolderNews(came - went, changed | (came & went), went - came) if came or went or changed else None

    def _tell(self, news: FolderNews) -> None:
        if self._done.is_set():
            return
        try:
            self._notify(news)
        except Exception:  # noqa: BLE001 - a listener's failure must not end the watching
            return


MAX_TOLD = 1_000
_POLL_TICKS = 4

Signature = tuple[int, int, int, int]


@frozen
class Noticed:
    """Changes in a source, by path. ``more``: others changed too. ``problem``: why the watch misses changes."""

    source_id: str
    changes: tuple[OutsideChange, ...] = ()
    more: bool = False
    problem: str | None = None


class SourceWatching:
    """A watch over sources of one manager, from the first ``follow`` on. End it with ``close``.

    ``wanted`` returns the ids to watch; ``notify`` runs in a thread of ours, and its errors are ignored. ``notify`` may
    change the policy, and so call ``follow``, or ``close``: neither waits for a thread under a lock. ``debounce_ms``:
    the longest time to gather changes; ``tick_ms``: the time to notice a base that came back.
    """

    def __init__(
        self,
        manager: SourceManager,
        wanted: Callable[[], Iterable[str]],
        notify: Callable[[Noticed], None],
        *,
        debounce_ms: int = 400,
        tick_ms: int = 500,
    ) -> None:
        self._manager = manager
        self._wanted = wanted
        self._notify = notify
        self._debounce_ms, self._tick_ms = debounce_ms, tick_ms
        self._watches: dict[str, _Watch] = {}
        self._threads: WeakSet[threading.Thread] = WeakSet()
        self._following = fork_safe_lock()
        self._closed = False

    @property
    def ids(self) -> tuple[str, ...]:
        """The currently watched sources."""
        return tuple(self._watches)

    def follow(self) -> None:
        """Watch the wanted sources at their current bases; a watch that ends takes a moment."""
        with self._following:
            if not self._closed:
                self._watch(self._wanted())

    def wait(self, timeout_s: float) -> bool:
        """Wait until every existing folder is watched; return False after the timeout."""
        return all(one.stands.wait(timeout_s) for one in tuple(self._watches.values()))

    def close(self) -> None:
        """Stop, and wait for running reports, unless one of them called this; no report comes afterwards."""
        with self._following:
            self._closed = True
            self._watch(())
            threads = tuple(self._threads)
        if threading.current_thread() not in threads:
            for thread in threads:
                thread.join()

    def _watch(self, source_ids: Iterable[str]) -> None:
        found = {name: source.folder for name in source_ids if (source := self._manager.get(name)) is not None}
        wanted = {name: folder for name, folder in found.items() if not folder.refused}
        for name in [name for name, one in self._watches.items() if wanted.get(name) is not one.folder]:
            self._watches.pop(name).done.set()
        for name, folder in wanted.items():
            if name not in self._watches:
                made = _Watch(self._manager, name, folder, self._notify, self._debounce_ms, self._tick_ms)
                self._watches[name] = made
                self._threads.add(made.thread)
        self._manager.watched = frozenset(self._watches)


class _Watch:
    """One source and one thread, which ends by itself once ``done`` is set."""

    def __init__(
        self,
        manager: SourceManager,
        source_id: str,
        folder: BaseFolder,
        notify: Callable[[Noticed], None],
        debounce_ms: int,
        tick_ms: int,
    ) -> None:
        self.folder = folder
        self.stands = threading.Event()
        self.done = threading.Event()
        self._manager = manager
        self._source_id = source_id
        self._notify = notify
        self._debounce_ms, self._tick_ms = debounce_ms, tick_ms
        self._again: set[str] = set()
        self._signatures: dict[str, Signature | None] = {}
        self.thread = threading.Thread(target=self._run, name=f"watch {source_id}", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        told = ""
        while not self.done.is_set():
            try:
                fault = self.folder.fault()
                if fault is None:
                    told = ""
                    self._run_watch()
                    continue
                if fault.code == REPLACED and str(fault) != told:
                    told = str(fault)
                    self._tell(Noticed(self._source_id, problem=f"{fault}; {READ_AGAIN}"))
                self.done.wait(self._tick_ms / 1000)
            except Exception as error:  # noqa: BLE001 - the thread's owner: watching must not end without a word
                self._tell(Noticed(self._source_id, problem=f"changes are looked for every few seconds: {error}"))
                self._poll()

    def _run_watch(self) -> None:
        """Watch until the base is another folder, or until the end."""
        prefix = self.folder.place.rstrip("/") + "/"
        for number, found in enumerate(changes_below(self.folder, self.done, self._debounce_ms, self._tick_ms)):
            if not number:
                self._look_at(self._places_with_block())  # changes before the watch began
                self.stands.set()
            if found or self._again:
                below = {path[len(prefix) :] for _, path in found if path.startswith(prefix)}
                self._look_at({path for path in below if not is_leftover(path)})
        self.stands.clear()
        self._look_at(self._places_with_block())

    def _poll(self) -> None:
        """Look now and then at the files with a block, by their metadata."""
        for _ in range(_POLL_TICKS):
            if self.done.wait(self._tick_ms / 1000):
                return
        loaded = self._places_with_block()
        stands = self.folder.fault() is None
        now = {path: _signature(f"{self.folder.place}/{path}") if stands else None for path in loaded}
        self._look_at({path for path, _ in now.items() - self._signatures.items()})
        self._signatures = now

    def _places_with_block(self) -> set[str]:
        source = self._manager.get(self._source_id)
        try:
            return set() if source is None else set(source.block_places())
        except GatewrightError:
            return set()

    def _look_at(self, changed: set[str]) -> None:
        """Take in changes of files with a block, report these and the others; retry failed ones next time."""
        loaded = self._places_with_block()
        wanted = (changed | self._again) & loaded
        wanted |= {path for path in loaded if any(above in changed for above in _above(path))}
        self._again = set()
        told = [one for path in sorted(wanted) if (one := self._take_in(path)) is not None]
        rest = sorted(changed - loaded)
        for path in rest[: 4 * MAX_TOLD]:
            if len(told) > MAX_TOLD:
                break
            if self._may_report(path) and (one := self._take_in(path, without_block=True)) is not None:
                told.append(one)
        if told:
            more = len(told) > MAX_TOLD or len(rest) > 4 * MAX_TOLD
            self._tell(Noticed(self._source_id, tuple(told[:MAX_TOLD]), more))

    def _take_in(self, path: str, *, without_block: bool = False) -> OutsideChange | None:
        """Take in one path; None if that yields nothing to report."""
        if self.done.is_set():
            return None
        try:
            change = self._manager.take_in(self._source_id, path)
        except ToolFailure:
            return None  # the source or the level is gone
        except GatewrightError:
            self._again.add(path)
            return None
        if change is None:  # this asks under the lock of a call, so no call is just making its block
            return OutsideChange(path, FileState.NOT_LOADED, merged=False) if without_block else None
        if change.state is not FileState.DISK_DELETED and self.folder.fault() is not None:
            return None  # another folder in the place of the base is not reported here
        return None if change.state in {FileState.SYNCED, FileState.BLOCK_MODIFIED} else change

    def _may_report(self, path: str) -> bool:
        """Tell whether a path has a level and no link leads there; temporary and hidden names are not reported."""
        source = self._manager.get(self._source_id)
        if source is None or any("\ud800" <= char <= "\udfff" for char in path):
            return False
        try:
            standing = source.look(path)
            level = self._manager.level(Located(self._source_id, path, ""))
        except GatewrightError:
            return False
        is_link = standing.status is not None and stat.S_ISLNK(standing.status.st_mode)
        return level.permission is not Permission.NONE and not is_link and not standing.is_folder

    def _tell(self, noticed: Noticed) -> None:
        if self.done.is_set():
            return
        try:
            self._notify(noticed)
        except Exception:  # noqa: BLE001 - a listener's failure must not end the watching
            return


def _signature(path: str) -> Signature | None:
    status = status_at(path)
    return None if status is None else (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _above(path: str) -> Iterator[str]:
    """Yield the folders above a path."""
    return (path[:at] for at, letter in enumerate(path) if letter == "/")
