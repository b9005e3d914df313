"""What happens outside below the folder that the Files page shows: rows come and go, and it is said for a while.

It watches nothing itself.
"""

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

from gatewright_gui.pages.files.shown_source import Shown
from gatewright_gui.pages.page import PageContext
from gatewright_gui.session.file_state import OutsideChanges
from gatewright_gui.session.folder_watch import FolderFollow, FolderNews

NEWS_MS = 8_000
"""How long it is said of a path that it just changed."""
CAME, CHANGED = "new just now", "changed just now"


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

    def __init__(self, context: PageContext, shown: Shown, page: QWidget) -> None:
        super().__init__(page)
        self._tasks, self._shown, self._page = context.tasks, shown, page
        self._news: dict[str, str] = {}
        self._old = QTimer(self, singleShot=True, interval=NEWS_MS)
        self._old.timeout.connect(self._forget)
        self.follow = FolderFollow(context.document)
        self.follow.told.connect(self._take)
        context.document.source_changed.connect(self._taken_in)

    def start_over(self) -> None:
        """Another source: nothing is told of the one before. `begin` follows the new one."""
        self.follow.close()
        self._forget()

    def begin(self) -> None:
        """Follow the folder of the source that is shown, unless that is done already."""
        if not self.follow.is_on:
            self.follow.follow(self._shown.source_id)

    def _take(self, news: FolderNews) -> None:
        if self._tasks.closed:
            return
        if not news.is_there:
            self.vanished.emit(news.problem or "")
        elif news.problem is not None:
            self.unwatched.emit(news.problem)
        elif news.more or not self._page.isVisible():
            self.all_old.emit()
        else:
            self._take_paths(news)

    def _take_paths(self, news: FolderNews) -> None:
        paths = frozenset(path for path in news.paths if not self._shown.level(path).protected)
        if not paths:
            return
        self._news |= dict.fromkeys(paths & news.came, CAME)
        self._news |= {path: CHANGED for path in paths & news.changed if self._news.get(path) != CAME}
        if paths & (news.came | news.went):
            self.moved.emit(paths)
        self._shown.tree_model.set_news(self._news)
        self._old.start()
        self.touched.emit()

    def _taken_in(self, changes: OutsideChanges) -> None:
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
