"""Outside changes below the sources that say `watch = true`, brought from the engine's threads to the window's.

It reads nothing: the engine watches, takes in and tells; the document passes it on.
"""

import asyncio
import contextlib
from functools import partial

from PySide6.QtCore import QObject

from gatewright.workspace.api import FileState, Noticed, SourceWatching, Workspace
from gatewright_gui.qt.language import tr
from gatewright_gui.session.document import Document


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
