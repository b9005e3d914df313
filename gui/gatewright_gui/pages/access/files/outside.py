"""What happens outside below the folder that the Files page shows: rows come and go, and it is said for a while.

The engine follows the folder in a thread, whatever `watch` says of the source.
"""

import asyncio
import contextlib

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from gatewright.workspace.api import WorkspaceError
from gatewright_gui.pages.access.files.shown_source import ShownSource
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.session.file_state import OutsideChanges
from gatewright_gui.session.files import FolderNews, FolderWatch

NEWS_MS = 8_000
"""How long it is said of a path that it just changed."""
CAME, CHANGED = mark("new just now"), mark("changed just now")


class Outside(QObject):
    """Follows the folder of the source that is shown."""

    vanished = Signal(object)
    """Why the folder is not there: str."""
    unwatched = Signal(object)
    """Why changes are not noticed: str."""
    all_old = Signal()
    """More happened than is told, or it happened while nobody looked: everything is to be read again."""
    moved = Signal(object)
    """These paths came, went or moved: frozenset[str]."""
    touched = Signal()
    """Files may stand otherwise to their blocks."""

    def __init__(self, context: PageContext, shown: ShownSource, page: QWidget) -> None:
        super().__init__(page)
        self._document, self._tasks, self._shown, self._page = context.document, context.tasks, shown, page
        self._turn = 0
        self._watch: FolderWatch | None = None
        self._news: dict[str, str] = {}
        self._old = QTimer(self, singleShot=True, interval=NEWS_MS)
        self._old.timeout.connect(self._forget)
        self._document.source_changed.connect(self._take_changes)

    @property
    def is_on(self) -> bool:
        """Tell whether a folder is followed."""
        return self._watch is not None

    def start_over(self) -> None:
        """Another source: nothing is told of the one before. `begin` follows the new one."""
        self.close()
        self._forget()

    def begin(self) -> None:
        """Follow the folder of the source that is shown, unless that is done already."""
        source_id = self._shown.source_id
        if self.is_on or source_id is None or not self._document.is_open:
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
        """Stop following."""
        self._turn += 1
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.stop()

    def _take(self, turn: int, news: FolderNews) -> None:
        if not isValid(self) or turn != self._turn or self._tasks.closed or not _is_running():
            return
        if not news.is_there:
            self.vanished.emit(news.problem or "")
        elif news.problem is not None:
            self.unwatched.emit(news.problem)
        elif news.more or not self._page.isVisible():
            self.all_old.emit()
        elif paths := frozenset(path for path in news.paths if not self._shown.level(path).protected):
            self._news |= dict.fromkeys(paths & news.came, tr(CAME))
            self._news |= {path: tr(CHANGED) for path in paths & news.changed if self._news.get(path) != tr(CAME)}
            if paths & (news.came | news.went):
                self.moved.emit(paths)
            self._shown.tree_model.set_news(self._news)
            self._old.start()
            self.touched.emit()

    def _take_changes(self, changes: OutsideChanges) -> None:
        """The engine took in what it could; what came and went is told by the folder itself."""
        if changes.source_id != self._shown.source_id:
            return
        if changes.more:
            self._shown.tree_model.refresh()
        else:
            self._shown.tree_model.refresh_around(changes.paths)
        self.touched.emit()

    def _forget(self) -> None:
        self._news = {}
        self._shown.tree_model.set_news(self._news)


def _is_running() -> bool:
    """Tell whether the window's loop runs: what comes while it ends is told to nobody."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
