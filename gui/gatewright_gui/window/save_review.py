"""What saving, or the last edit, changes of what agents may do: a sentence for each change, the worst first."""

import asyncio
from collections import Counter
from typing import NamedTuple

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QKeySequence, QPainter, QShortcut
from PySide6.QtWidgets import QCheckBox, QStyle, QStyleOptionViewItem, QWidget

from gatewright.workspace.api import GatewrightError
from gatewright_gui.pages.access.tools.right_changes import RightChangesModel
from gatewright_gui.pages.access.tools.right_lines import (
    OTHER,
    STANDING_WORDS,
    AgentLines,
    ChangeRow,
    limit_words,
)
from gatewright_gui.pages.access.tools.rights_dialog import set_up_changes
from gatewright_gui.qt.dialog import FormDialog, run_dialog
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import named, stretch
from gatewright_gui.qt.look import Role, current_look, role_colour
from gatewright_gui.qt.plaintext import LEFT, LONGEST_LINE, label_text, line_text
from gatewright_gui.qt.table_model import ROW, Index, RowModel
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget.item_view import Delegate, TableView, paint_ground
from gatewright_gui.qt.widget.label import Label, SectionHeader
from gatewright_gui.qt.widget.message_bar import ProgressStrip
from gatewright_gui.session.comparison import call_impact, impact, model_impact, without_text
from gatewright_gui.session.derive import Deriver
from gatewright_gui.session.document import Document, Step
from gatewright_gui.session.impact import CallImpact, Impact, ImpactLine
from gatewright_gui.settings import Preferences

WORK = "save.review"
WIDTH = 760
MOST_SHOWN, MOST_CALLS_SHOWN = 12, 6
"""Rows without a scroll bar."""
AT_ONCE_S = 0.4
"""What is worked out sooner than this is known before anything is shown."""
_CALL_HEADINGS = (mark("Agent"), mark("Call"), mark("Now"), mark("Then"))


class ImpactRow(NamedTuple):
    """A sentence, or below one that is unfolded an agent or an operation of it."""

    line: ImpactLine
    below: str = ""

    @property
    def details(self) -> tuple[str, ...]:
        """The lines that unfold: agents where there are several, operations that the sentence does not name."""
        line = self.line
        agents = line.agents if len(line.agents) > 2 else ()
        return () if self.below else (*agents, *(line.ways if len(line.ways) > 2 else ()))


class ImpactModel(RowModel[ImpactRow]):
    """Sentences; those that are about several agents or operations unfold."""

    def text(self, row: ImpactRow, _column: int, /) -> str:
        """The sentence."""
        return row.below or row.line.sentence

    def tip(self, row: ImpactRow, _column: int, /) -> str:
        """The whole sentence."""
        told = self.text(row, 0)
        return f"{told}\n{tr('Space or a click shows all of them')}" if row.details else told

    def turn(self, row: ImpactRow) -> None:
        """Show what a sentence is about, or no longer."""
        at = self.find(row)
        if at < 0 or not row.details:
            return
        below, rest = at + 1, self.rows[at + 1 :]
        if rest and rest[0].below:
            self.set_rows((*self.rows[:below], *rest[len(row.details) :]))
        else:
            self.set_rows((*self.rows[:below], *(ImpactRow(row.line, one) for one in row.details), *rest))

    def is_open(self, at: int) -> bool:
        """True if what the sentence is about is shown."""
        after = self.row_at(at + 1)
        return after is not None and bool(after.below)


class ImpactDelegate(Delegate):
    """A mark for what unfolds, and the verb in red where it is about deleting, running or sending."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        """One height for all rows."""
        return QSize(super().sizeHint(option, index).width(), current_look().tokens.row_height)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Ground, mark, sentence."""
        paint_ground(painter, option)
        rect: QRect = getattr(option, "rect")  # noqa: B009
        row: ImpactRow = index.data(ROW)
        look, model = current_look(), index.model()
        left = rect.left() + look.tokens.space_1
        painter.save()
        if row.details and isinstance(model, ImpactModel):
            icon = "chevron-down" if model.is_open(index.row()) else "chevron-right"
            look.icon(icon, "muted").paint(painter, QRect(left, rect.center().y() - 7, 14, 14))
        left += 18
        role: Role = "text" if row.line.gain is not None and row.line.gain.more and not row.below else "muted"
        if row.below:
            self._draw(painter, rect, left + look.tokens.space_4, row.below, role, bold=False)
        else:
            for at, part in enumerate(row.line.parts):
                is_red = at == 1 and row.line.is_dangerous
                left = self._draw(painter, rect, left, part, "deny" if is_red else role, bold=is_red)
        painter.restore()

    @staticmethod
    def _draw(painter: QPainter, rect: QRect, left: int, text: str, role: Role, *, bold: bool) -> int:
        font = QFont(painter.font())
        font.setWeight(QFont.Weight.DemiBold if bold else QFont.Weight.Normal)
        painter.setFont(font)
        painter.setPen(QColor(role_colour(role)))
        metrics = QFontMetrics(font)
        told = label_text(text, LONGEST_LINE)
        cut = line_text(metrics, text, max(rect.right() - left - 4, 0))
        painter.drawText(QRect(left, rect.top(), max(rect.right() - left, 0), rect.height()), LEFT, cut)
        return left + metrics.horizontalAdvance(told)


class SaveReview(FormDialog):
    """`ask` says whether to save. Enter and Ctrl+S save, Escape does not. With a ``step`` it shows what that did."""

    def __init__(
        self,
        parent: QWidget,
        document: Document,
        deriver: Deriver,
        tasks: TaskOwner,
        preferences: Preferences,
        step: Step | None = None,
    ) -> None:
        super().__init__(
            parent,
            "review",
            tr("Save") if step is None else tr("Last edit"),
            tr("Save"),
            "" if step is None else tr("Close"),
        )
        self._document, self._deriver, self._tasks, self._preferences = document, deriver, tasks, preferences
        self._step, self._since = step, None if step is None else without_text(step.edit)
        self._is_needed = True
        working = tr("Working out what changes for the agents...")
        self.summary = named(Label(working, wraps=True), "review.summary", kind="heading")
        self.changes = ImpactModel(self)
        self.table = named(TableView(tr("What changes")), "review.changes")
        self.model = named(Label(wraps=True), "review.model", kind="muted")
        self.calls = RightChangesModel(self, tuple(map(tr, _CALL_HEADINGS)))
        self.calls_header = SectionHeader(tr("Recorded calls that would be decided differently"), flush=True)
        self.calls_header.setObjectName("review.calls.header")
        self.calls_view = named(TableView(tr("Recorded calls that would be decided differently")), "review.calls")
        self.progress = ProgressStrip()
        self.fault = named(Label(wraps=True), "review.fault", kind="error")
        self.only_gains = named(QCheckBox(tr("&Don't show this for changes that only take away")), "review.only_gains")
        self._lay_out()

    def _lay_out(self) -> None:
        self.table.show_model(self.changes, {}, wide=0)
        self.table.setItemDelegate(ImpactDelegate(self.table))
        self.table.horizontalHeader().hide()
        self.table.clicked.connect(self._turn)
        for keys in (Qt.Key.Key_Space, Qt.Key.Key_Right, Qt.Key.Key_Left):
            turn = QShortcut(QKeySequence(keys), self.table)
            turn.setContext(Qt.ShortcutContext.WidgetShortcut)
            turn.activated.connect(lambda: self._turn(self.table.currentIndex()))
        set_up_changes(self.calls_view, self.calls, then_width=330)
        for part in (self.fault, self.calls_view, self.calls_header, self.model, self.table):
            part.hide()
        self.only_gains.setChecked(self._preferences.reviews_gains_only)
        self.only_gains.toggled.connect(self._keep_choice)
        self.only_gains.hide()
        self.cancel_button.setAutoDefault(False)
        self.accept_button.setVisible(self._step is None)
        self.accept_button.setDefault(self._step is None)
        if self._step is None:
            QShortcut(QKeySequence(QKeySequence.StandardKey.Save), self).activated.connect(self.accept)
        self.setFixedWidth(min(WIDTH, self.screen().availableSize().width()))
        self.lay_out(
            self.summary,
            self.table,
            self.model,
            self.calls_header,
            self.calls_view,
            self.progress,
            self.fault,
            foot=(self.only_gains, stretch()),
        )
        (self.accept_button if self._step is None else self.cancel_button).setFocus()

    def _turn(self, index: Index) -> None:
        row = self.changes.row_at(index.row())
        if row is not None:
            self.changes.turn(row)
            self._fit(self.table, MOST_SHOWN)

    def _keep_choice(self, only_gains: bool) -> None:
        self._preferences.reviews_gains_only = only_gains

    async def ask(self) -> bool:
        """Tell whether to save: nothing of what agents may do changes, or what changes was shown and accepted."""
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
            return await run_dialog(self)
        finally:
            self._tasks.cancel(WORK)

    async def _work_out(self, known: asyncio.Event) -> None:
        self.progress.start("Working out what changes", can_cancel=False)
        try:
            found: Impact | None = None
            while found is None and self._document.is_open:
                found = await self._deriver.derive_in_pieces(impact, _ignore, self._since, limit_words)
            if found is not None:
                self._show(found)
            known.set()
            if found is not None and self._is_needed:
                await self._add_numbers()
        except GatewrightError as error:
            self.fault.setText(tr("Not everything that changes can be told: {error}", error=error).replace("`", ""))
            self.fault.show()
        finally:
            known.set()
            self.progress.stop()
            self.adjustSize()

    def _show(self, found: Impact) -> None:
        is_quiet = not found.opens and self.only_gains.isChecked()
        self._is_needed = self._step is not None or not (is_quiet or not (found.lines or found.idle))
        if not self._is_needed:
            self.accept()
            return
        self.only_gains.setVisible(self._step is None and not found.opens)
        every = len(found.lines) + found.cut
        words = counted(every, "change of what agents can do", "changes of what agents can do")
        if found.cut:
            words = tr("{changes}; the first {count:,} are listed", changes=words, count=len(found.lines))
        idle = f"\n{found.idle_words}" if found.idle else ""
        self.summary.setText(f"{words}{idle}" if found.lines else found.nothing)
        self.changes.set_rows(map(ImpactRow, found.lines))
        self.table.setVisible(bool(found.lines))
        self._fit(self.table, MOST_SHOWN)

    async def _add_numbers(self) -> None:
        """Add what models see, and the newest recorded calls, decided by both policies."""
        self.calls_header.show()
        self.calls_header.set_note(tr("deciding them again..."))
        model = await self._deriver.derive(model_impact, self._since)
        if model is not None and model.words:
            self.model.setText(model.words[:1].upper() + model.words[1:])
            self.model.show()
        found = await self._deriver.derive_in_pieces(
            call_impact,
            lambda count: self.calls_header.set_note(tr("{count:,} decided again...", count=count)),
            self._since,
        )
        if found is None:
            return
        self.calls_header.set_note(found.words or tr("no call is recorded yet"))
        self.calls_header.setToolTip(tr("Each is decided without the calls before it in its session"))
        self.calls.add(_call_lines(found))
        self.calls_view.setVisible(found.differing > 0)
        self._fit(self.calls_view, MOST_CALLS_SHOWN)

    def _fit(self, view: TableView, most: int) -> None:
        """Make the view as high as its rows, and no higher."""
        header = view.horizontalHeader()
        above = header.sizeHint().height() if not header.isHidden() else 0
        shown_rows = min(max(view.model().rowCount(), 1), most)
        frame = 2 * view.frameWidth() + view.style().pixelMetric(QStyle.PixelMetric.PM_DefaultFrameWidth)
        view.setFixedHeight(shown_rows * current_look().tokens.row_height + above + frame)
        self.adjustSize()


def _call_lines(found: CallImpact) -> AgentLines:
    rows = [
        ChangeRow(
            one.agent,
            one.call,
            tr(STANDING_WORDS[one.before]),
            f"{tr(STANDING_WORDS[one.after])}: {one.reason}",
            OTHER,
            one.before,
            one.after,
        )
        for one in found.lines
    ]
    return AgentLines(rows, [""] * len(rows), Counter())


def _ignore(_progress: object) -> None:
    """Ignore how far it is."""


async def may_save(
    parent: QWidget, document: Document, deriver: Deriver, tasks: TaskOwner, preferences: Preferences
) -> bool:
    """Tell whether to save, after showing what changes where something of what agents may do does."""
    if not document.is_open or not document.workspace.is_dirty:
        return True
    return await SaveReview(parent, document, deriver, tasks, preferences).ask()
