"""What saving would change of what agents may do, shown before it is written; where it is nothing, nothing is shown."""

import asyncio

from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QCheckBox, QWidget

from gatewright.workspace.api import GatewrightError
from gatewright_gui.pages.access.tools.right_changes import RightChangesModel
from gatewright_gui.pages.access.tools.right_lines import MOST_SAVED_ROWS, SavedChange, replay_lines, saved_change
from gatewright_gui.pages.access.tools.rights_dialog import set_up_changes
from gatewright_gui.qt.dialog import FormDialog, shown
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import named, stretch
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.progress_strip import ProgressStrip
from gatewright_gui.qt.widget.section_header import SectionHeader
from gatewright_gui.session.derive import Deriver
from gatewright_gui.session.document import Document
from gatewright_gui.session.review import review_calls, review_rights
from gatewright_gui.settings import Preferences

WORK = "save.review"
SIZE = (860, 620)
AT_ONCE_S = 0.4
"""What is worked out sooner than this is known before anything is shown."""
_NAMED = 6
"""So many agents are told in a sentence; the table has all."""
_CALL_HEADINGS = (mark("Agent"), mark("Call"), mark("Now"), mark("Then"))


class SaveReview(FormDialog):
    """`ask` says whether to save. Enter and Ctrl+S save, Escape does not."""

    def __init__(
        self, parent: QWidget, document: Document, deriver: Deriver, tasks: TaskOwner, preferences: Preferences
    ) -> None:
        super().__init__(parent, "review", tr("Save"), tr("Save"))
        self._document, self._deriver, self._tasks, self._preferences = document, deriver, tasks, preferences
        self._is_needed = True
        working = tr("Working out what changes for the agents...")
        self.summary = named(Label(working, wraps=True), "review.summary", kind="heading")
        self.changes = RightChangesModel(self)
        self.table = named(TableView(tr("What changes")), "review.changes")
        self.calls = RightChangesModel(self, tuple(map(tr, _CALL_HEADINGS)))
        self.calls_header = SectionHeader(tr("Recorded calls that would be decided differently"), flush=True)
        self.calls_header.setObjectName("review.calls.header")
        self.calls_view = named(TableView(tr("Recorded calls that would be decided differently")), "review.calls")
        self.progress = ProgressStrip()
        self.fault = named(Label(wraps=True), "review.fault", kind="error")
        self.only_gains = named(QCheckBox(tr("&Don't show this for changes that only take away")), "review.only_gains")
        self._lay_out()

    def _lay_out(self) -> None:
        set_up_changes(self.table, self.changes)
        self.table.clicked.connect(self._turn)
        space = QShortcut(QKeySequence(Qt.Key.Key_Space), self.table)
        space.setContext(Qt.ShortcutContext.WidgetShortcut)
        space.activated.connect(lambda: self._turn(self.table.currentIndex()))
        set_up_changes(self.calls_view, self.calls, then_width=330)
        self.fault.hide()
        self.calls_view.hide()
        self.only_gains.setChecked(self._preferences.reviews_gains_only)
        self.only_gains.toggled.connect(self._keep_choice)
        self.cancel_button.setAutoDefault(False)
        self.accept_button.setDefault(True)
        QShortcut(QKeySequence(QKeySequence.StandardKey.Save), self).activated.connect(self.accept)
        self.lay_out(
            self.summary,
            stretch(self.table, 3),
            self.calls_header,
            stretch(self.calls_view, 2),
            self.progress,
            self.fault,
            foot=(self.only_gains, stretch()),
        )
        self.accept_button.setFocus()
        self.resize(*SIZE)

    def _turn(self, index: QModelIndex) -> None:
        row = self.changes.row_at(index.row())
        if row is not None:
            self.changes.turn(row)

    def _keep_choice(self, only_gains: bool) -> None:
        self._preferences.reviews_gains_only = only_gains

    async def ask(self) -> bool:
        """Whether to save: nothing of what agents may do changes, or what changes was shown and accepted."""
        known = asyncio.Event()
        self._tasks.start(self._work_out(known), WORK, replace=True)
        try:
            try:
                async with asyncio.timeout(AT_ONCE_S):
                    await known.wait()
            except TimeoutError:
                pass
            if not self._is_needed:
                self.deleteLater()
                return True
            return await shown(self)
        finally:
            self._tasks.cancel(WORK)

    async def _work_out(self, known: asyncio.Event) -> None:
        self.progress.start("Working out what changes", can_cancel=False)
        try:
            change: SavedChange | None = None
            while change is None and self._document.is_open:
                change = await self._deriver.derive(review_rights, saved_change)
            if change is not None:
                self._show(change)
            known.set()
            if change is not None and self._is_needed:
                await self._replay()
        except GatewrightError as error:
            self.fault.setText(tr("Not everything that changes can be told: {error}", error=error).replace("`", ""))
            self.fault.show()
        finally:
            known.set()
            self.progress.stop()

    def _show(self, change: SavedChange) -> None:
        is_quiet = not change.opens and self.only_gains.isChecked()
        self._is_needed = not (change.is_empty or is_quiet)
        if not self._is_needed:
            self.accept()
            return
        more = (
            f"\n{counted(len(change.agents) - _NAMED, 'more agent', 'more agents')}"
            if len(change.agents) > _NAMED
            else ""
        )
        words = "\n".join(change.agents[:_NAMED]) or tr("Shared settings change what agents may do")
        cut = (
            " " + tr("The first {count:,} lines are listed.", count=MOST_SAVED_ROWS)
            if len(change.lines.rows) == MOST_SAVED_ROWS
            else ""
        )
        self.summary.setText(f"{words}{more}{cut}")
        self.changes.add(change.lines)

    async def _replay(self) -> None:
        """The newest recorded calls, decided by the file and by what would be saved."""
        self.calls_header.set_note(tr("deciding them again..."))
        found = await self._deriver.derive_in_pieces(
            review_calls,
            lambda count: self.calls_header.set_note(tr("{count:,} decided again...", count=count)),
            replay_lines,
        )
        if found is None:
            return
        told = (
            tr("{differing:,} of the {decided:,} newest", differing=found.differing, decided=found.decided)
            if found.decided
            else tr("no call is recorded yet")
        )
        self.calls_header.set_note(told)
        self.calls_header.setToolTip(tr("Each is decided without the calls before it in its session"))
        self.calls.add(found.lines)
        self.calls_view.setVisible(found.differing > 0)


async def may_save(
    parent: QWidget, document: Document, deriver: Deriver, tasks: TaskOwner, preferences: Preferences
) -> bool:
    """Whether to save, after showing what changes where something of what agents may do does."""
    if not document.is_open or not document.workspace.is_dirty:
        return True
    return await SaveReview(parent, document, deriver, tasks, preferences).ask()
