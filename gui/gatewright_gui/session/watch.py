"""Notices changes from outside: of the policy file and its manifests, of watched sources, of memory."""

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QFileSystemWatcher, QObject, QTimer, Signal
from shiboken6 import isValid

from gatewright.workspace.api import FileState, GatewrightError, Noticed, SourceWatching, Workspace
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.document import Document

SETTLE_MS = 150
"""Writers replace files in several steps; the question is asked once they are through."""


class PolicyWatch(QObject):
    """Watches the files of the open document and their folders (a replaced file is no longer the watched one)."""

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self._document = document
        self._watcher = QFileSystemWatcher(self)
        self._settle = QTimer(self, singleShot=True, interval=SETTLE_MS)
        self._settle.timeout.connect(self._ask)
        self._watcher.fileChanged.connect(self._settle.start)
        self._watcher.directoryChanged.connect(self._settle.start)
        for signal in (document.closed, document.opened, document.saved, document.policy_changed):
            signal.connect(self._follow)

    def _follow(self, _why: object = None) -> None:
        files = self._document.files  # of each its folder too, where it may come
        wanted = {str(path) for file in files for path in (file, file.parent) if path.exists()}
        watched = {*self._watcher.files(), *self._watcher.directories()}
        if watched - wanted:
            self._watcher.removePaths(sorted(watched - wanted))
        if wanted - watched:
            self._watcher.addPaths(sorted(wanted - watched))

    def _ask(self) -> None:
        self._follow()
        self._document.look_outside()


class SourceWatch(QObject):
    """Follows the document: the open workspace is watched until it is closed. `close` it with the window."""

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self._document = document
        self._workspace: Workspace | None = None
        self._watching: SourceWatching | None = None
        self._told: set[tuple[str, str]] = set()
        document.closed.connect(self.close)
        document.opened.connect(self._follow)

    @property
    def ids(self) -> tuple[str, ...]:
        """The sources that are watched now."""
        return self._watching.ids if self._watching is not None else ()

    def close(self) -> None:
        """Stop watching; afterwards nothing is told any more."""
        self._workspace = None
        if self._watching is not None:
            self._watching.close()
            self._watching = None

    def _follow(self) -> None:
        self.close()
        self._told.clear()
        if self._document.is_open:
            self._workspace = self._document.workspace
            heard = partial(self._heard, asyncio.get_running_loop(), self._workspace)
            self._watching = self._workspace.watch_sources(heard)

    # beside the window

    def _heard(self, loop: asyncio.AbstractEventLoop, workspace: Workspace, noticed: "Noticed") -> None:
        with contextlib.suppress(RuntimeError):  # the window is gone
            loop.call_soon_threadsafe(self._take, workspace, noticed)

    # in the window's thread

    def _take(self, workspace: Workspace, noticed: "Noticed") -> None:
        from gatewright_gui.session.file_state import OutsideChanges

        if workspace is not self._workspace:
            return
        problem = noticed.problem
        if problem is not None and (noticed.source_id, problem) not in self._told:  # it comes again with every try
            self._told.add((noticed.source_id, problem))
            text = tr("source `{source}` cannot be watched: {reason}", source=noticed.source_id, reason=problem)
            self._document.say("warning", text)
        self._tell_conflicts(noticed)
        if noticed.changes or noticed.more:
            paths = tuple(change.relative for change in noticed.changes)
            self._document.source_changed.emit(OutsideChanges(noticed.source_id, paths, noticed.more))

    def _tell_conflicts(self, noticed: "Noticed") -> None:
        """Say once of each file that somebody has to decide about it; again when that had been settled meanwhile."""
        open_now = {
            change.relative for change in noticed.changes if change.state is FileState.CONFLICT and not change.merged
        }
        settled = {
            (noticed.source_id, change.relative) for change in noticed.changes if change.relative not in open_now
        }
        self._told -= settled
        fresh = sorted(path for path in open_now if (noticed.source_id, path) not in self._told)
        self._told |= {(noticed.source_id, path) for path in fresh}
        if fresh:
            files = f"`{fresh[0]}`"
            if len(fresh) > 1:
                files = tr("{files} and {count} more", files=files, count=f"{len(fresh) - 1:,}")
            text = tr(
                "{files} of source `{source}` changed on disk where its block holds edits:"
                " the Files page reconciles them",
                files=files,
                source=noticed.source_id,
            )
            self._document.say("warning", text)


LOOK_MS = 500
"""The time between two looks, while somebody wants to know."""


class MemoryWatch(QObject):
    """Looks beside the window as long as ``is_wanted``; ``mark``: at what.

    The first look tells too: what was read before may be older than what it saw.
    """

    changed = Signal()

    def __init__(
        self,
        document: Document,
        tasks: TaskOwner,
        is_wanted: Callable[[], bool],
        mark: Callable[[Workspace], object] = Workspace.memory_mark,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._document, self._tasks, self._is_wanted, self._mark = document, tasks, is_wanted, mark
        self._name = f"memory.look.{id(self)}"
        self._seen: object = None
        self._timer = QTimer(self, interval=LOOK_MS)
        self._timer.timeout.connect(self._look)
        self._timer.start()
        document.opened.connect(self._look)

    def _look(self) -> None:
        can = self._document.is_open and self._name not in self._tasks.names
        if can and self._is_wanted():
            self._tasks.start(self._compare(self._document.workspace), self._name)

    async def _compare(self, workspace: Workspace) -> None:
        try:
            mark = await asyncio.to_thread(self._mark, workspace)
        except GatewrightError as error:  # whoever reads says so
            mark = str(error)
        seen, self._seen = self._seen, (id(workspace), mark)
        if isValid(self) and seen != self._seen:
            self.changed.emit()
