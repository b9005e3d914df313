"""Changes from outside, noticed: what is below watched sources, taken into blocks where that loses nothing, and told.

One thread for each source, started and stopped by `SourceWatching`; the operating system says what changed
(watchfiles), content decides. A base that goes away and comes back is watched again, and everything with a block is
compared then; another folder in its place is not, and that is told.
Where the system cannot watch, files with a block are looked at every few seconds instead, and that is told. It knows
no agent: what is told names only what has a level and is reached without a link, and is bounded.
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
from gatewright.sources.folderwatch import changes_below
from gatewright.sources.leftover import is_leftover
from gatewright.sources.protection import status_at
from gatewright.sources.state import FileState, OutsideChange

if TYPE_CHECKING:
    from gatewright.sources.manager import SourceManager

MAX_TOLD = 1_000
_POLL_TICKS = 4

Signature = tuple[int, int, int, int]


@frozen
class Noticed:
    """What changed in a source, by path. ``more``: there was more than is told. ``problem``: watching goes badly."""

    source_id: str
    changes: tuple[OutsideChange, ...] = ()
    more: bool = False
    problem: str | None = None


class SourceWatching:
    """A watch over sources of one manager, from the first ``follow`` on. End it with ``close``.

    ``wanted`` answers the ids to watch; ``notify`` is called in a thread of ours, and what it raises is kept quiet.
    It may change the policy, and so call ``follow``, or ``close``: neither waits for a thread under a lock.
    ``debounce_ms``: how long changes are gathered at most; ``tick_ms``: how soon a base that came back is seen.
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
        """The sources that are watched now."""
        return tuple(self._watches)

    def follow(self) -> None:
        """Watch what is wanted now, at the bases that the sources have now; what ends ends a moment later."""
        with self._following:
            if not self._closed:
                self._watch(self._wanted())

    def wait(self, timeout_s: float) -> bool:
        """Wait until every folder that is there is being watched; whether that came to be in time."""
        return all(one.stands.wait(timeout_s) for one in tuple(self._watches.values()))

    def close(self) -> None:
        """Stop, and wait for what is told just now, unless that is what closes: afterwards nothing is told any more."""
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
    """One source, one thread, which ends by itself once ``done`` is set."""

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
                    self._watched()
                    continue
                if fault.code == REPLACED and str(fault) != told:
                    told = str(fault)
                    self._tell(Noticed(self._source_id, problem=f"{fault}; {READ_AGAIN}"))
                self.done.wait(self._tick_ms / 1000)
            except Exception as error:  # noqa: BLE001 - the thread's owner: watching must not end without a word
                self._tell(Noticed(self._source_id, problem=f"changes are looked for every few seconds: {error}"))
                self._polled()

    def _watched(self) -> None:
        """Until the base is another folder, or the end."""
        prefix = self.folder.place.rstrip("/") + "/"
        for number, found in enumerate(changes_below(self.folder, self.done, self._debounce_ms, self._tick_ms)):
            if not number:
                self._look_at(self._loaded())  # what changed before the watch stood
                self.stands.set()
            if found or self._again:
                below = {path[len(prefix) :] for _, path in found if path.startswith(prefix)}
                self._look_at({path for path in below if not is_leftover(path)})
        self.stands.clear()
        self._look_at(self._loaded())

    def _polled(self) -> None:
        """Files with a block, by their metadata, until the end or until the base is worth another watch."""
        for _ in range(_POLL_TICKS):
            if self.done.wait(self._tick_ms / 1000):
                return
        loaded = self._loaded()
        stands = self.folder.fault() is None
        now = {path: _signature(f"{self.folder.place}/{path}") if stands else None for path in loaded}
        self._look_at({path for path, _ in now.items() - self._signatures.items()})
        self._signatures = now

    def _loaded(self) -> set[str]:
        source = self._manager.get(self._source_id)
        try:
            return set() if source is None else set(source.loaded_places())
        except GatewrightError:
            return set()

    def _look_at(self, changed: set[str]) -> None:
        """Take in what has a block, tell that and the rest; what could not be taken in is tried again."""
        loaded = self._loaded()
        wanted = (changed | self._again) & loaded
        wanted |= {path for path in loaded if any(above in changed for above in _above(path))}
        self._again = set()
        told = [one for path in sorted(wanted) if (one := self._taken_in(path)) is not None]
        rest = sorted(changed - loaded)
        for path in rest[: 4 * MAX_TOLD]:
            if len(told) > MAX_TOLD:
                break
            if self._may_be_told(path) and (one := self._taken_in(path, without_block=True)) is not None:
                told.append(one)
        if told:
            more = len(told) > MAX_TOLD or len(rest) > 4 * MAX_TOLD
            self._tell(Noticed(self._source_id, tuple(told[:MAX_TOLD]), more))

    def _taken_in(self, path: str, *, without_block: bool = False) -> OutsideChange | None:
        """What became of a path; None where that is nothing to tell."""
        if self.done.is_set():
            return None
        try:
            change = self._manager.take_in(self._source_id, path)
        except ToolFailure:
            return None  # the source or the level is gone
        except GatewrightError:
            self._again.add(path)
            return None
        if change is None:  # asked under the lock of a call, so none is in the middle of making its block
            return OutsideChange(path, FileState.NOT_LOADED, merged=False) if without_block else None
        if change.state is not FileState.DISK_DELETED and self.folder.fault() is not None:
            return None  # nothing is told of what stands in the place of the base
        return None if change.state in {FileState.SYNCED, FileState.BLOCK_MODIFIED} else change

    def _may_be_told(self, path: str) -> bool:
        """Whether it has a level and no link leads there; the temporary and the hidden stay unnamed."""
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
    """The folders above a path."""
    return (path[:at] for at, letter in enumerate(path) if letter == "/")
