"""What the tree of the Files page is given: folders as the disk has them, or what of them fits a filter.

The session reads folders in a thread; what fits is in memory, and is handed over in short turns, so that the window
stays quick.
"""

import time
from collections import deque
from functools import partial

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from shiboken6 import isValid

from gatewright.workspace.api import GatewrightError
from gatewright_gui.pages.access.files.counts import FileCounts
from gatewright_gui.pages.access.files.file_filter import DEFAULT, Fitting, TreeFilter
from gatewright_gui.pages.access.files.folder_panel import FolderPanel
from gatewright_gui.pages.access.files.rules_panel import RulesPanel
from gatewright_gui.pages.access.files.shown_source import ShownSource
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.files import FolderListing

TURN_S = 0.008
"""How long what fits is handed over before the window gets its turn."""
OPENED = 300
"""So many files at most are all opened to, when a filter leaves them."""


class Listing(QObject):
    """Serves the tree's wishes for one source at a time, and goes through what fits the filter."""

    base_shown = Signal()
    """The whole base folder is shown, or why it cannot be: what else takes long may begin."""

    def __init__(
        self, tasks: TaskOwner, shown: ShownSource, panel: FolderPanel, rules: RulesPanel, counts: FileCounts
    ) -> None:
        super().__init__(panel)
        self._tasks, self._shown, self._model = tasks, shown, shown.tree_model
        self._panel, self._rules, self._counts = panel, rules, counts
        self._turn = 0
        self._reading: set[str] = set()
        self._fitting: Fitting | None = None
        self._picks_first = False
        self._waiting: deque[str] = deque()
        self._opened: set[str] = set()
        self._pump = QTimer(self, singleShot=True, interval=0)
        self._pump.timeout.connect(self._serve)
        self._model.folder_wanted.connect(self._want)
        panel.bar.filter_changed.connect(self._filter)
        panel.bar.step_requested.connect(self.step)
        panel.read_cancelled.connect(self._cancel)
        rules.files_asked.connect(self._show_files_of)
        counts.fitted.connect(self._show_fitting)

    @property
    def is_filtered(self) -> bool:
        """Tell whether only what fits a filter is shown."""
        return self._fitting is not None

    def start_over(self) -> None:
        """Another source, or none."""
        self._stop()
        self._turn += 1
        self._fitting, self._picks_first = None, False
        self._waiting.clear()
        self._opened.clear()
        self._model.start_over(is_open=self._shown.source_id is not None)

    def step(self, step: int) -> None:
        """To the next file that fits; where nothing is filtered, to the files of the row that decides."""
        if self._fitting is not None:
            self._go(self._fitting, self._here(), step)
        elif self._rules.table.currentIndex().isValid():
            self._rules.show_files()

    # what fits

    def _here(self) -> str | None:
        return self._model.path_at(self._panel.tree.currentIndex())

    def _filter(self, wanted: TreeFilter) -> None:
        if self._shown.source is not None:
            self._panel.bar.show_fitting(None, 0)
            self._counts.fit(wanted)

    def _show_files_of(self, row: int) -> None:
        """The files that a row decides, and the first of them chosen."""
        self._picks_first = True
        self._panel.bar.set_filter(TreeFilter(rule=DEFAULT if row >= self._rules.model.default_row else row))

    def _show_fitting(self, fitting: Fitting | None) -> None:
        """Show what fits; None shows the folder as it is."""
        path, before = self._here(), self._fitting
        self._fitting = fitting
        self._waiting.clear()
        if before is not None or fitting is not None:
            self._stop()
            if fitting is None:
                for folder in sorted(self._opened, reverse=True):
                    if not (path or "").startswith(f"{folder}/"):
                        self._panel.tree.collapse(self._model.index_of(folder))
                self._opened.clear()
            self._model.refresh()
        if fitting is not None:
            rule = self._panel.bar.filter.rule
            by_rule = tr("decided by rule {number}", number=rule + 1) if rule is not None and rule != DEFAULT else ""
            what = tr("decided by the default") if rule == DEFAULT else by_rule
            self._panel.bar.show_fitting(fitting.count, fitting.of, what=what)
        elif path is not None:
            self._panel.select(path)

    def _go(self, fitting: Fitting, here: str | None, step: int) -> None:
        """To the next file that fits, with the folders above it in the tree at once."""
        path = fitting.beside(here, step)
        if path is None:
            return
        parts = path.rstrip("/").split("/")[:-1]
        for count in range(1, len(parts) + 1):
            folder = "/".join(parts[:count])
            index = self._model.reveal(f"{folder}/")
            if index.isValid() and not self._panel.tree.isExpanded(index):
                self._model.set_listing(folder, fitting.listing(folder))
                self._panel.tree.expand(index)
                self._opened.add(folder)
        self._panel.select(path)

    def _serve(self) -> None:
        until, fitting = time.perf_counter() + TURN_S, self._fitting
        while self._waiting and fitting is not None:
            relative = self._waiting.popleft()
            self._take(relative, fitting.listing(relative))
            if fitting.count <= OPENED:
                self._open_below(relative, fitting)
            if time.perf_counter() > until and self._waiting:
                self._pump.start()
                return
        if fitting is not None and self._picks_first:
            self._picks_first = False
            self._go(fitting, None, 1)
            self._panel.tree.setFocus(Qt.FocusReason.OtherFocusReason)

    def _open_below(self, relative: str, fitting: Fitting) -> None:
        for entry in fitting.listing(relative).entries:
            if not entry.is_folder:
                return
            index = self._model.index_of(entry.relative)
            if index.isValid() and not self._panel.tree.isExpanded(index):
                self._opened.add(entry.relative)
                self._panel.tree.expand(index)

    # what is on the disk

    def _want(self, relative: str) -> None:
        if self._shown.source_id is None:
            return
        if self._fitting is not None:
            self._waiting.append(relative)
            self._pump.start()
            return
        self._reading.add(relative)
        if relative:
            self._panel.strip.start(f"Reading {relative}")
        work = self._read(self._shown.source_id, relative, self._turn)
        self._tasks.start(work, _task_of(relative), replace=True)

    async def _read(self, source_id: str, relative: str, turn: int) -> None:
        first = None if self._model.was_read(relative) else partial(self._take_first, relative, turn)
        problem, listing = "", FolderListing(())
        try:
            listing = await self._shown.folder.read(source_id, relative, first)
        except GatewrightError as error:
            problem = str(error)
        if not self._awaits(turn):
            return
        if not problem:
            self._take(relative, listing)
        else:
            self._model.set_failed(relative, problem)
            if not relative:
                self._panel.show_failure(problem)
        if not relative:
            self.base_shown.emit()
        self._reading.discard(relative)
        if not self._reading:
            self._panel.strip.stop()

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
        """True if a listing is still of use: the same source is open, nothing is filtered, and the page is there."""
        return isValid(self) and turn == self._turn and self._fitting is None

    def _cancel(self) -> None:
        """Give up what is being read, and say so in its place."""
        given_up = tuple(self._reading)
        self._stop()
        for relative in given_up:
            if relative:
                self._model.set_failed(relative, tr("reading stopped; F5 reads again"))
            else:
                self._panel.show_failure(tr("Reading was stopped"))

    def _stop(self) -> None:
        for relative in self._reading:
            self._tasks.cancel(_task_of(relative))
        self._reading.clear()
        self._panel.strip.stop()


def _task_of(relative: str) -> str:
    return f"files.read:{relative}"
