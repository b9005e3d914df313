"""What the tree of the Files page is given: folders as the disk has them, or what of them fits a filter.

The session reads folders in a thread; what fits is in memory, and is handed over in short turns, so that the window
stays quick.
"""

import time
from collections import deque
from functools import partial

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from shiboken6 import isValid

from gatewright.base.errors import GatewrightError
from gatewright_gui.pages.files.counts import FileCounts
from gatewright_gui.pages.files.file_filter import DEFAULT, Fitting, TreeFilter
from gatewright_gui.pages.files.folder_panel import FolderPanel
from gatewright_gui.pages.files.folder_tree import FolderTreeModel
from gatewright_gui.pages.files.rules_panel import RulesPanel
from gatewright_gui.pages.files.shown_source import Shown
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.files import FolderListing, SourceFolder

TURN_S = 0.008


OPENED = 300
"""So many files at most are all opened to, when a filter leaves them."""


class Listing(QObject):
    """Serves the tree's wishes for one source at a time."""

    base_shown = Signal()
    """The whole base folder is shown, or why it cannot be: what else takes long may begin."""
    served = Signal()
    """Everything that a filter leaves, and the tree asked for, is there."""

    def __init__(self, tasks: TaskOwner, folder: SourceFolder, model: FolderTreeModel, panel: FolderPanel) -> None:
        super().__init__(panel)
        self._tasks, self._folder, self._model, self._panel = tasks, folder, model, panel
        self._source_id: str | None = None
        self._turn = 0
        self._reading: set[str] = set()
        self._fitting: Fitting | None = None
        self._waiting: deque[str] = deque()
        self._opened: set[str] = set()
        self._pump = QTimer(self, singleShot=True, interval=0)
        self._pump.timeout.connect(self._serve)
        model.folder_wanted.connect(self._want)

    @property
    def fitting(self) -> Fitting | None:
        """What fits the filter; None while there is none."""
        return self._fitting

    @property
    def turn(self) -> int:
        """Grows with every source that is shown."""
        return self._turn

    def start_over(self, source_id: str | None) -> None:
        """Another source, or none."""
        self.stop()
        self._turn += 1
        self._source_id, self._fitting = source_id, None
        self._waiting.clear()
        self._opened.clear()
        self._model.start_over(is_open=source_id is not None)

    def show(self, fitting: Fitting | None) -> None:
        """Show what fits; None shows the folder as it is."""
        was = self._fitting
        self._fitting = fitting
        self._waiting.clear()
        if was is None and fitting is None:
            return
        self.stop()
        if fitting is None:
            self._close_opened()
        self._model.refresh()

    def open_to(self, path: str) -> None:
        """Have the folders above a path that fits in the tree, at once."""
        if self._fitting is None:
            return
        parts = path.rstrip("/").split("/")[:-1]
        for count in range(1, len(parts) + 1):
            folder = "/".join(parts[:count])
            index = self._model.reveal(f"{folder}/")
            if index.isValid() and not self._panel.tree.isExpanded(index):
                self._model.set_listing(folder, self._fitting.listing(folder))
                self._panel.tree.expand(index)
                self._opened.add(folder)

    def cancel(self) -> None:
        """Give up what is being read, and say so in its place."""
        given_up = tuple(self._reading)
        self.stop()
        for relative in given_up:
            if relative:
                self._model.set_failed(relative, "reading stopped; F5 reads again")
            else:
                self._panel.show_failure("Reading was stopped")

    def stop(self) -> None:
        """Give up what is being read."""
        for relative in self._reading:
            self._tasks.cancel(_task_of(relative))
        self._reading.clear()
        self._panel.strip.stop()

    # what fits

    def _serve(self) -> None:
        until = time.perf_counter() + TURN_S
        while self._waiting and self._fitting is not None:
            relative = self._waiting.popleft()
            self._model.set_listing(relative, self._fitting.listing(relative))
            if not relative:
                self._panel.show_tree()
            if self._fitting.count <= OPENED:
                self._open_below(relative, self._fitting)
            if time.perf_counter() > until and self._waiting:
                self._pump.start()
                return
        if self._fitting is not None:
            self.served.emit()

    def _open_below(self, relative: str, fitting: Fitting) -> None:
        for entry in fitting.listing(relative).entries:
            if not entry.is_folder:
                return
            index = self._model.index_of(entry.relative)
            if index.isValid() and not self._panel.tree.isExpanded(index):
                self._opened.add(entry.relative)
                self._panel.tree.expand(index)

    def _close_opened(self) -> None:
        current = str(self._model.path_at(self._panel.tree.currentIndex()) or "")
        for folder in sorted(self._opened, reverse=True):
            if not current.startswith(f"{folder}/"):
                self._panel.tree.collapse(self._model.index_of(folder))
        self._opened.clear()

    # what is on the disk

    def _want(self, relative: str) -> None:
        if self._source_id is None:
            return
        if self._fitting is not None:
            self._waiting.append(relative)
            self._pump.start()
            return
        self._reading.add(relative)
        if relative:
            self._panel.strip.start(f"Reading {relative}")
        self._tasks.start(self._read(self._source_id, relative, self._turn), _task_of(relative), replace=True)

    async def _read(self, source_id: str, relative: str, turn: int) -> None:
        first = None if self._model.was_read(relative) else partial(self._take_first, relative, turn)
        try:
            listing = await self._folder.read(source_id, relative, first)
        except GatewrightError as error:
            if self._awaits(turn):
                self._model.set_failed(relative, str(error))
                if not relative:
                    self._panel.show_failure(str(error))
                    self.base_shown.emit()
                self._has_read(relative)
            return
        if self._awaits(turn):
            self._take(relative, listing)
            if not relative:
                self.base_shown.emit()
            self._has_read(relative)

    def _take_first(self, relative: str, turn: int, listing: FolderListing) -> None:
        """The beginning of a large folder: it may be late, after the whole of it, or after reading was given up."""
        if self._awaits(turn) and relative in self._reading:
            self._take(relative, listing)
            self._panel.strip.start(f"Reading {relative or 'the folder'}")

    def _take(self, relative: str, listing: FolderListing) -> None:
        self._model.set_listing(relative, listing)
        if not relative:
            self._panel.show_tree()

    def _awaits(self, turn: int) -> bool:
        """Whether a listing is still of use: the same source is open, nothing is filtered, and the page is there."""
        return isValid(self) and turn == self._turn and self._fitting is None

    def _has_read(self, relative: str) -> None:
        self._reading.discard(relative)
        if not self._reading:
            self._panel.strip.stop()


def _task_of(relative: str) -> str:
    return f"files.read:{relative}"


class Filtering(QObject):
    """Between the bar over the tree, the rows of rules, and what finds out what fits."""

    def __init__(
        self, shown: Shown, counts: FileCounts, listing: Listing, folder: FolderPanel, rules: RulesPanel
    ) -> None:
        super().__init__(folder)
        self._shown, self._counts, self._listing = shown, counts, listing
        self._folder, self._rules = folder, rules
        self._picks_first = False
        folder.bar.filter_changed.connect(self._filter)
        folder.bar.step_requested.connect(self.step)
        rules.files_asked.connect(self._show_files)
        counts.fitted.connect(self._show_fitting)
        listing.served.connect(self._served)

    def start_over(self) -> None:
        """Another source."""
        self._picks_first = False

    def step(self, step: int) -> None:
        """To the next file that fits; where nothing is filtered, to the files of the row that decides."""
        if self._listing.fitting is not None:
            self._go(self._here(), step)
        elif self._rules.table.currentIndex().isValid():
            self._rules.show_files()

    def _here(self) -> str | None:
        return self._shown.tree_model.path_at(self._folder.tree.currentIndex())

    def _go(self, here: str | None, step: int) -> None:
        fitting = self._listing.fitting
        path = fitting.beside(here, step) if fitting is not None else None
        if path is not None:
            self._listing.open_to(path)
            self._folder.select(path)

    def _filter(self, wanted: TreeFilter) -> None:
        source = self._shown.source
        if source is not None:
            self._folder.bar.show_fitting(None, 0)
            self._counts.fit(wanted)

    def _show_fitting(self, fitting: Fitting | None) -> None:
        path = self._here()
        self._listing.show(fitting)
        if fitting is not None:
            self._folder.bar.show_fitting(fitting.count, fitting.of, what=_decided_by(self._folder.bar.filter))
        elif path is not None:
            self._folder.select(path)

    def _show_files(self, row: int) -> None:
        """The files that a row decides, and the first of them chosen."""
        self._picks_first = True
        self._folder.bar.set_filter(TreeFilter(rule=DEFAULT if row >= self._rules.model.default_row else row))

    def _served(self) -> None:
        if self._picks_first:
            self._picks_first = False
            self._go(None, 1)
            self._folder.tree.setFocus(Qt.FocusReason.OtherFocusReason)


def _decided_by(wanted: TreeFilter) -> str:
    if wanted.rule is None:
        return ""
    return "decided by the default" if wanted.rule == DEFAULT else f"decided by rule {wanted.rule + 1}"
