"""What happens below the folder of one source, brought from the engine's thread to the window's, whatever `watch` says.

It shows nothing and reads nothing. Close it with what it tells.
"""

import asyncio
import contextlib

from PySide6.QtCore import QObject, Signal

from gatewright.base.errors import WorkspaceError
from gatewright.sources.folderwatch import FolderNews, FolderWatch
from gatewright_gui.session.document import Document

__all__ = ["FolderFollow", "FolderNews"]


class FolderFollow(QObject):
    """One source at a time; `follow` another one, or none."""

    told = Signal(object)
    """FolderNews of the source that is followed now."""

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self._document = document
        self._turn = 0
        self._watch: FolderWatch | None = None

    @property
    def is_on(self) -> bool:
        """Whether a folder is followed."""
        return self._watch is not None

    def follow(self, source_id: str | None) -> None:
        """Follow this source from now on; nothing is told of the one before any more."""
        self.close()
        if source_id is None or not self._document.is_open:
            return
        turn, loop = self._turn, asyncio.get_running_loop()

        def heard(news: FolderNews) -> None:
            with contextlib.suppress(RuntimeError):  # the window is gone
                loop.call_soon_threadsafe(self._take, turn, news)

        with contextlib.suppress(WorkspaceError):  # the page says itself that there is no such source
            self._watch = self._document.workspace.watch_folder(source_id, heard)

    def wait(self, timeout_s: float) -> bool:
        """Wait until the folder is watched."""
        return self._watch is not None and self._watch.wait(timeout_s)

    def close(self) -> None:
        """Stop."""
        self._turn += 1
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.stop()

    def _take(self, turn: int, news: FolderNews) -> None:
        if turn == self._turn and _is_running():
            self.told.emit(news)


def _is_running() -> bool:
    """Whether the window's loop runs: what comes while it ends is told to nobody."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
