"""The stages of a call as a table, and below it the chosen one in full."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from PySide6.QtCore import (
    QModelIndex,
    QObject,
    QPoint,
    QRect,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import QColor, QGuiApplication, QKeyEvent, QPainter, QResizeEvent
from PySide6.QtWidgets import (
    QMenu,
    QSizePolicy,
    QStyleOptionViewItem,
    QWidget,
)

from gatewright.workspace.api import Verdict
from gatewright_gui.pages.trial.table import PAD, outcome_text, table_of, verdict_mark, verdict_width
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import aligned, column_of, holding, named, row_of, stretch
from gatewright_gui.qt.look import current_look, role_colour
from gatewright_gui.qt.menu import add_action, popup_menu
from gatewright_gui.qt.plaintext import tip_text
from gatewright_gui.qt.prose import ProseLabel, paint_prose, plain
from gatewright_gui.qt.table_model import FlatModel, Index
from gatewright_gui.qt.widget import SectionHeader, TableView
from gatewright_gui.qt.widget.button import icon_button
from gatewright_gui.qt.widget.item_view import Delegate, put_icon, tint
from gatewright_gui.session.calls import STAGE_NAMES, RuleLink, StageRow, stage_words
from gatewright_gui.session.console import DECIDING_NAMES

STAGE, VERDICT, REASON, RULE, TIME = range(5)
HEADERS = (mark("Stage"), mark("Verdict"), mark("Reason"), mark("Rule"), mark("Time"))
STATE = Qt.ItemDataRole.UserRole + 1
"""A Verdict, or `working`, `waiting`, `skipped`, `cancelled`, `failed`."""
APPROVAL = "approval"
"""The stage at which a call waits for an answer."""
SLOW_S = 0.2
"""From when on it is told how long a stage has been at work."""
FIRST_ACTING = len(DECIDING_NAMES)
"""The first row whose stage acts."""
EXECUTE = "execute"
"""The stage at which a tool fails."""
State = Verdict | Literal["working", "waiting", "skipped", "cancelled", "failed"]
_WORDS: dict[str, str] = {
    "working": mark("at work"),
    "waiting": "",
    "skipped": mark("not reached"),
    "cancelled": mark("cancelled"),
}


class StageModel(FlatModel):
    """One row for each stage, always all of them, in the gate's order."""

    headers = HEADERS

    def __init__(self, parent: QObject | None = None, steady: Callable[[], float] = time.monotonic) -> None:
        super().__init__(parent)
        self._steady = steady
        self._since_s = 0.0
        self._rows: dict[str, StageRow] = {}
        self._is_running = False
        self._is_held = False
        self._is_asking = False
        self._last = STAGE_NAMES[-1]
        self._cut_at = self._failed = ""

    def start_over(self, *, running: bool, to_the_end: bool = True) -> None:
        """Nothing has passed yet; without `to_the_end` only the deciding stages will."""
        self._rows.clear()
        self._is_running, self._is_held, self._is_asking = running, False, False
        self._cut_at = self._failed = ""
        self._last = STAGE_NAMES[-1] if to_the_end else DECIDING_NAMES[-1]
        self._since_s = self._steady()
        self._tell_change()

    def pass_stage(self, row: StageRow) -> None:
        """A stage passed. A stage that passed before begins another round: what came after it is open again."""
        if row.name in self._rows:
            for name in STAGE_NAMES[STAGE_NAMES.index(row.name) :]:
                self._rows.pop(name, None)
        self._rows[row.name] = row
        self._since_s = self._steady()
        self._tell_change()

    def tick(self) -> None:
        """Time passed for the stage that is at work."""
        row = len(self._rows)
        if self._is_running and row < len(STAGE_NAMES):
            self.dataChanged.emit(self.index(row, TIME), self.index(row, TIME))

    def text_at(self, row: int) -> str:
        """A stage as a line to read or copy."""
        parts = [self._text(row, column) for column in (STAGE, VERDICT, TIME, REASON)]
        return " \u00b7 ".join(part for part in parts if part)

    def reason_at(self, row: int) -> str:
        """The finding of a stage, whole; empty where it was not reached."""
        found = self._rows.get(STAGE_NAMES[row]) if 0 <= row < len(STAGE_NAMES) else None
        return self._reason(found) if found is not None else ""

    def finish(
        self,
        rows: Sequence[StageRow],
        *,
        to_the_end: bool = True,
        asks: bool = False,
        cut_at: str = "",
        failed: str = "",
    ) -> None:
        """Show what passed in the end. `asks`: somebody would have to answer before the call goes on.

        `cut_at`: the stage at which it was cancelled. `failed`: how it failed although it was executed.
        """
        self._rows = {row.name: row for row in rows}
        self._is_running, self._is_held, self._is_asking = False, False, asks
        self._cut_at, self._failed = cut_at, failed
        self._last = STAGE_NAMES[-1] if to_the_end else DECIDING_NAMES[-1]
        self._tell_change()

    def hold(self, *, held: bool) -> None:
        """The call waits for an answer, or goes on."""
        self._is_held = held
        self._tell_change()

    def stop(self) -> None:
        """The call was given up."""
        self._is_running = self._is_held = False
        self._tell_change()

    def state_at(self, row: int) -> State:
        """The state that a stage came to."""
        name = STAGE_NAMES[row]
        found = self._rows.get(name)
        if name == self._cut_at:
            return "cancelled"
        if name == EXECUTE and self._failed:
            return "failed"
        if found is not None:
            return Verdict.ASK if self._asks_at(found) else found.verdict
        if not self._is_running or row > STAGE_NAMES.index(self._last):
            return "skipped" if self._rows or self._is_running else "waiting"
        return "working" if row == len(self._rows) and not self._is_held else "waiting"

    def rule_at(self, row: int) -> RuleLink | None:
        """The place of the policy that a stage speaks of."""
        found = self._rows.get(STAGE_NAMES[row]) if 0 <= row < len(STAGE_NAMES) else None
        return found.rule if found is not None else None

    def count(self) -> int:
        """All stages."""
        return len(STAGE_NAMES)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Texts, and the state that the delegate draws."""
        if not index.isValid():
            return None
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self._text(index.row(), index.column())
            case Qt.ItemDataRole.ToolTipRole if index.column() == STAGE:
                return tr("Stage {name}", name=STAGE_NAMES[index.row()])
            case Qt.ItemDataRole.ToolTipRole:
                return self._text(index.row(), index.column()) or None
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{tr(HEADERS[index.column()])} {self._text(index.row(), index.column())}"
            case Qt.ItemDataRole.TextAlignmentRole if index.column() == TIME:
                return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
            case _ if role == STATE:
                return self.state_at(index.row())
            case _:
                return None

    def _text(self, row: int, column: int) -> str:
        name = STAGE_NAMES[row]
        found = self._rows.get(name)
        if column == STAGE:
            return stage_words(name)
        if found is None:
            if column == TIME:
                return self._so_far(row)
            return tr(_WORDS[str(self.state_at(row))]) if column == VERDICT else ""
        if column == VERDICT:
            state = self.state_at(row)
            if state == "failed":
                return self._failed
            if state == Verdict.ALLOW:
                return tr("done") if row >= FIRST_ACTING else tr("passed")
            return outcome_text(str(state))
        if column == REASON:
            return self._reason(found)
        if column == RULE:
            return tr("line {line}", line=found.rule.line) if found.rule is not None and found.rule.line else ""
        return duration(found.elapsed_us)

    def _so_far(self, row: int) -> str:
        """The time of the stage at work so far, once that is worth telling."""
        if self.state_at(row) != "working":
            return ""
        spent_s = self._steady() - self._since_s
        return duration(spent_s * 1_000_000) if spent_s >= SLOW_S else ""

    def _reason(self, found: StageRow) -> str:
        if self._is_held and found.name == APPROVAL:
            return tr("waits for an answer")
        return tr("somebody has to answer before it runs") if self._asks_at(found) else found.reason

    def _asks_at(self, found: StageRow) -> bool:
        """The stage itself only lets the call pass to whoever answers: for who looks on, that is where it waits."""
        return found.name == APPROVAL and found.verdict is Verdict.ALLOW and (self._is_held or self._is_asking)

    def _tell_change(self) -> None:
        self.dataChanged.emit(self.index(0, 0), self.index(len(STAGE_NAMES) - 1, len(HEADERS) - 1))


def duration(microseconds: float) -> str:
    """A time with its unit: `87 µs`, `1.3 ms`, `2.4 s`."""
    if microseconds < 1_000:
        return f"{microseconds:.0f} µs"
    if microseconds < 1_000_000:
        return f"{microseconds / 1_000:.1f} ms"
    return f"{microseconds / 1_000_000:.1f} s"


TICK_MS = 100
_ROW = 20
"""Height of a stage, so that all of them are seen at once."""
_FEWEST = 5
"""Stages that are seen however little room there is."""
_MAX_LINES = 4
_WIDE_FROM = 620
_RULE_FROM = 520
"""Pixels from which on a column says in which line the rule stands; the menu of a stage leads to it anyway."""
_WIDE, _NARROW = (128, 130, 78, 86), (122, 104, 66, 68)
"""Stage, verdict, rule, time."""


class StageDelegate(Delegate):
    """Stages that were not reached are dim."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        """Icon and colour of what became of the stage."""
        super().initStyleOption(option, index)
        state = str(index.data(STATE))
        icon, role = verdict_mark(state)
        if state in {"waiting", "skipped"}:
            tint(option, "muted")
        elif index.column() == VERDICT:
            tint(option, role)
        elif index.column() == TIME:
            tint(option, "muted")
        if index.column() == RULE:
            tint(option, "accent")
        if index.column() == REASON:
            item: Any = option
            item.text = ""  # it is painted in two faces
        if index.column() == VERDICT:
            put_icon(option, icon, role)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Reasons with their code; a line before the stages that act."""
        super().paint(painter, option, index)
        if index.column() == REASON:
            item: Any = option
            painter.save()
            painter.setFont(item.font)
            dim = str(index.data(STATE)) in {"waiting", "skipped"}
            painter.setPen(role_colour("muted") if dim else QColor(current_look().palette.text))
            paint_prose(painter, item.rect.adjusted(PAD, 0, -PAD, 0), str(index.data() or ""))
            painter.restore()
        if index.row() == FIRST_ACTING:
            cell: QRect = option.rect  # pyright: ignore[reportAttributeAccessIssue]
            painter.fillRect(QRect(cell.left(), cell.top(), cell.width(), 1), role_colour("disabled"))


class StagePane(QWidget):
    """Enter goes to the rule of the chosen stage; a reason that is too long for its row is told below the table."""

    rule_requested = Signal(object)
    """RuleLink: it is to be shown where it is edited."""
    line_requested = Signal(object)
    """RuleLink: it is to be shown in the file."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = StageModel(self)
        self.view = self._make_view()
        self.detail = named(ProseLabel(), "console.stagedetail")
        self.detail.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
        self.detail.setMaximumHeight(_MAX_LINES * self.detail.fontMetrics().lineSpacing() + 4)
        self.copy_button = icon_button("copy", tr("Copy what the stage found"), "console.copystage", self.copy_stage)
        self._lay_out()
        self._tick = QTimer(self, interval=TICK_MS)
        self._tick.timeout.connect(self.model.tick)
        self.model.dataChanged.connect(self._tell)
        self._tell()

    def count_time(self, *, on: bool) -> None:
        """Say whether a call is under way, so that the stage at work tells how long it takes."""
        if on:
            self._tick.start()
        else:
            self._tick.stop()

    def copy_stage(self) -> None:
        """Put what the chosen stage found on the clipboard."""
        row = self._row()
        if row >= 0:
            QGuiApplication.clipboard().setText(self.model.text_at(row))

    def forget_choice(self) -> None:
        """Choose no stage."""
        self.view.selectionModel().clear()
        self._tell()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Give the reason most of the room where there is little."""
        super().resizeEvent(event)
        self._limit()
        widths = _WIDE if self.width() >= _WIDE_FROM else _NARROW
        self.view.setColumnHidden(RULE, self.width() < _RULE_FROM)
        words = (*map(outcome_text, ("allow", "ask", "deny")), tr("not reached"))
        for column, least in zip((STAGE, VERDICT, RULE, TIME), widths, strict=True):
            width = verdict_width(self.view, least, words) if column == VERDICT else least
            if not self.view.isColumnHidden(column) and self.view.columnWidth(column) != width:
                self.view.setColumnWidth(column, width)

    # the chosen stage

    def _row(self) -> int:
        """The stage that was chosen; the one that only has the keys is not."""
        rows = self.view.selectionModel().selectedRows()
        return rows[0].row() if rows else -1

    def _tell(self, *_what: object) -> None:
        row = self._row()
        reason = self.model.reason_at(row) if row >= 0 else ""
        told = f"{stage_words(STAGE_NAMES[row])}: {reason}" if reason else ""
        if told != self.detail.text():
            self.detail.setText(told)
            self.detail.setToolTip(tip_text(plain(reason)))
        if self._below.isHidden() == bool(reason):
            self._below.setVisible(bool(reason))
            self._limit()

    @property
    def _other_height(self) -> int:
        """Pixels of the heading, and of what is told of the chosen stage."""
        below = self.detail.maximumHeight() + 8 if not self._below.isHidden() else 0
        return max(self._head.sizeHint().height(), self._head.minimumHeight()) + below

    def _limit(self) -> None:
        """No higher than all stages, and what is told of the chosen one."""
        self.setMaximumHeight(self._other_height + self._height_of(self.model.rowCount()))
        self._show_whole_rows()

    def _height_of(self, rows: int) -> int:
        return rows * _ROW + self.view.horizontalHeader().sizeHint().height() + 4

    def _show_whole_rows(self) -> None:
        """Cut no stage in half at the foot of the table."""
        rows = (self.height() - self._other_height - self._height_of(0)) // _ROW
        self.view.setMaximumHeight(self._height_of(min(max(rows, _FEWEST), self.model.rowCount())))

    def _follow_rule(self, index: QModelIndex) -> None:
        if index.column() == RULE:
            self._go_to_rule(index)

    def _go_to_rule(self, index: QModelIndex) -> None:
        rule = self.model.rule_at(index.row())
        if rule is not None:
            self.rule_requested.emit(rule)

    def _open_menu(self, at: QPoint) -> None:
        index = self.view.indexAt(at)
        if not index.isValid():
            return
        self.view.setCurrentIndex(index)
        rule = self.model.rule_at(index.row())
        menu = popup_menu(self, "console.stagemenu")
        add_rule_ways(menu, rule, self.rule_requested.emit, self.line_requested.emit)
        add_action(menu, tr("Copy what the stage found"), self.copy_stage)
        menu.popup(self.view.viewport().mapToGlobal(at))

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Escape closes what is told of the chosen stage."""
        if event.key() == Qt.Key.Key_Escape and self._below.isVisible():
            self.forget_choice()
        else:
            super().keyPressEvent(event)

    # the parts

    def _make_view(self) -> TableView:
        view = table_of(self.model, StageDelegate, tr("Stages"), "console.stages")
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        view.customContextMenuRequested.connect(self._open_menu)
        header = view.horizontalHeader()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(REASON, header.ResizeMode.Stretch)
        view.verticalHeader().setMinimumSectionSize(_ROW)
        view.verticalHeader().setDefaultSectionSize(_ROW)
        view.clicked.connect(self._follow_rule)
        view.activated.connect(self._go_to_rule)
        view.selectionModel().selectionChanged.connect(self._tell)
        view.setMinimumHeight(_FEWEST * _ROW + header.sizeHint().height())
        return view

    def _lay_out(self) -> None:
        self._head = SectionHeader(tr("Stages"))
        copy = aligned(self.copy_button, Qt.AlignmentFlag.AlignTop)
        self._below = holding(row_of(stretch(self.detail), copy, margins=(2, 1, 1, 0)))
        column_of(self._head, stretch(self.view), self._below, stretch(factor=0), into=self)
        self._limit()


def add_rule_ways(
    menu: QMenu, rule: RuleLink | None, go: Callable[[RuleLink], object], show: Callable[[RuleLink], object]
) -> None:
    """The two ways to a rule that decided something: where it is edited, and where it stands in the file."""
    for words, act in ((tr("Go to the rule"), go), (tr("Show in the file"), show)):
        add_action(menu, words, partial(act, rule) if rule is not None else None)
