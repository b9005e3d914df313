"""Filtering the folder on the Files page: what fits is shown, gone through, and named. It does not know what fits."""

from PySide6.QtCore import QObject, Qt

from gatewright_gui.pages.files.counting import Counting
from gatewright_gui.pages.files.folder import FolderPanel
from gatewright_gui.pages.files.listing import Listing
from gatewright_gui.pages.files.rules import RulesPanel
from gatewright_gui.pages.files.shown import Shown
from gatewright_gui.session.filefilter import DEFAULT, Fitting, TreeFilter


class Filtering(QObject):
    """Between the bar over the tree, the rows of rules, and what finds out what fits."""

    def __init__(
        self, shown: Shown, counting: Counting, listing: Listing, folder: FolderPanel, rules: RulesPanel
    ) -> None:
        super().__init__(folder)
        self._shown, self._counting, self._listing = shown, counting, listing
        self._folder, self._rules = folder, rules
        self._picks_first = False
        folder.bar.filter_changed.connect(self._filter)
        folder.bar.step_requested.connect(self.step)
        rules.files_asked.connect(self._show_files)
        counting.fitted.connect(self._show_fitting)
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
            self._counting.fit(source, wanted)

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
