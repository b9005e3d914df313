"""Which paths below one folder came, changed or went, told while somebody looks at it. It takes nothing into blocks.

One thread; the operating system says what changed (watchfiles); where it cannot, the folder is looked at every second
or two. That the folder itself goes away, and comes back, is told; another folder in its place is none that came back.
It is for people who see the whole folder.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from gatewright.base.frozen import frozen
from gatewright.sources.leftover import is_leftover

if TYPE_CHECKING:
    from watchfiles import Change

    from gatewright.sources.basefolder import BaseFolder

MAX_TOLD = 2_000
_POLL_MS = 1_500


@frozen
class FolderNews:
    """Paths from the base, with ``/``, that something happened to. ``more``: more than are told, or all may be new.

    ``is_there``: whether the folder is. ``problem``: why not, or why its changes are not noticed.
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
    """What changed since the last time, each ``tick_ms`` at least: until another folder stands there, or ``done``."""
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
    """Watches from its making until ``close``. ``notify`` is called in a thread of ours.

    ``debounce_ms``: how long changes are gathered at most; ``tick_ms``: how soon a folder that came back is seen.
    ``tells_gap``: once it watches, that there may have been ``more`` before.
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
        """Wait until the folder is being watched; whether that came to be in time."""
        return self._stands.wait(timeout_s)

    def stop(self) -> None:
        """Tell nothing any more; the thread ends by itself a moment later."""
        self._done.set()

    def close(self) -> None:
        """As ``stop``, and wait for the thread."""
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
                self._watched(is_back=not was_there, polls=False)
            except OSError:  # the system cannot watch so much: then the folder is looked at now and then
                self._polled(is_back=not was_there)
            was_there = True

    def _polled(self, *, is_back: bool) -> None:
        try:
            self._watched(is_back=is_back, polls=True)
        except Exception as error:  # noqa: BLE001 - the thread's owner: watching must not end without a word
            self._tell(FolderNews(problem=str(error)))
            self._done.set()

    def _watched(self, *, is_back: bool, polls: bool) -> None:
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
            if number >= MAX_TOLD:
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
