"""The steps of a composition as a table: the call itself, then each step; the chosen one is shown below, whole."""

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QModelIndex, QObject, Qt, Signal
from PySide6.QtWidgets import QStyleOptionViewItem, QWidget

from gatewright_gui.pages.trial.table import OUTCOMES, outcome_text, table_of, verdict_mark, verdict_width
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.prose import plain
from gatewright_gui.qt.table_model import FlatModel, Index
from gatewright_gui.qt.widget import SectionHeader, TableView
from gatewright_gui.qt.widget.button import text_button
from gatewright_gui.qt.widget.item_view import Delegate, put_icon, tint
from gatewright_gui.session.calls import CallRecord, StepRow

STEP, CALL, VERDICT, REASON = range(4)
STATE = Qt.ItemDataRole.UserRole + 1
"""A verdict, or `working`, `waiting`, `held`, `skipped`, `unknown`, `failed`, `cancelled`."""
_WORDS = {
    "working": mark("at work"),
    "waiting": mark("not reached"),
    "held": mark("comes next"),
    "skipped": mark("skipped"),
    "unknown": mark("not known yet"),
}
_ROW, _MOST = 20, 6
"""Height of a step, and so many are seen without scrolling."""


class StepModel(FlatModel):
    """The first row is the call itself."""

    headers = (mark("Step"), mark("Call"), mark("Verdict"), mark("Reason"))

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: tuple[StepRow, ...] = ()
        self._called, self._own = "", None

    def set_steps(self, called: str, own: CallRecord | None, rows: Sequence[StepRow]) -> None:
        """Show these steps of a call; `own`: what became of it, None while it is under way."""
        same = [row.place for row in rows] == [row.place for row in self._rows]
        if not same:
            self.beginResetModel()
        self._called, self._rows = called, tuple(rows)
        self._own: CallRecord | None = own
        if same:
            self.dataChanged.emit(self.index(0, 0), self.index(self.count() - 1, REASON))
        else:
            self.endResetModel()

    def step_at(self, row: int) -> StepRow | None:
        """The step of a row; None for the call itself."""
        return self._rows[row - 1] if 1 <= row <= len(self._rows) else None

    def count(self) -> int:
        """The call and its steps; nothing where it has none."""
        return len(self._rows) + 1 if self._rows else 0

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Texts, and the state that the delegate draws."""
        if not index.isValid() or index.row() >= self.count():
            return None
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.ToolTipRole:
                return self._text(index.row(), index.column()) or None
            case Qt.ItemDataRole.AccessibleTextRole:
                return ", ".join(filter(None, (self._text(index.row(), column) for column in range(REASON + 1))))
            case _ if role == STATE:
                return self._state(index.row())
            case _:
                return None

    def _state(self, row: int) -> str:
        step = self.step_at(row)
        if step is not None and step.state != "done":
            return step.state
        record = step.record if step is not None else self._own
        if record is None:
            return "working"
        if record.is_cancelled:
            return "cancelled"
        return "failed" if record.is_error and record.verdict == "allow" else str(record.verdict)

    def _text(self, row: int, column: int) -> str:
        step = self.step_at(row)
        record = step.record if step is not None else self._own
        if column == STEP:
            return step.number if step is not None else ""
        if column == CALL:
            return f"{record.called}  {record.telling}".rstrip() if record is not None else self._called
        if column == VERDICT:
            state = self._state(row)
            if state in _WORDS:
                return tr(_WORDS[state])
            return outcome_text(record.outcome_word) if record is not None else ""
        said = (step.note if step is not None else "", "" if record is None else record.detail or record.reason)
        return plain("; ".join(filter(None, said)))


class StepDelegate(Delegate):
    """Icon and colour of what became of the step."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        """Those that are not made are dim."""
        super().initStyleOption(option, index)
        state = str(index.data(STATE))
        icon, role = verdict_mark(state)
        if state in {"waiting", "skipped", "unknown"}:
            tint(option, "muted")
        elif index.column() == VERDICT:
            tint(option, role)
        if index.column() == VERDICT:
            put_icon(option, icon, role)


class StepsPane(QWidget):
    """Hidden for a call without steps. While one is held there are *Next step* and *Run the rest*."""

    chosen = Signal(object)
    """StepRow, or None for the call itself: it is to be shown."""
    go_requested = Signal(bool)
    """The held step is to be made; True: and all that follow."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = StepModel(self)
        self.view: TableView = table_of(self.model, StepDelegate, tr("Steps"), "console.steps")
        self.head = SectionHeader(tr("Steps"))
        tip = tr("Make the step that comes next, and stop before the one after it")
        self.next_button = text_button(tr("Next step"), "console.nextstep", self._next, tip)
        tie_icon(self.next_button, "play")
        tip = tr("Make this step and all that follow, without a stop")
        self.rest_button = text_button(tr("Run the rest"), "console.rest", self._rest, tip)
        for button in (self.next_button, self.rest_button):
            self.head.add_control(button)
            button.hide()
        header = self.view.horizontalHeader()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(CALL, header.ResizeMode.Stretch)
        header.setSectionResizeMode(REASON, header.ResizeMode.Stretch)
        self.view.verticalHeader().setMinimumSectionSize(_ROW)
        self.view.verticalHeader().setDefaultSectionSize(_ROW)
        words = (*_WORDS.values(), *OUTCOMES)
        self.view.setColumnWidth(STEP, 46)
        self.view.setColumnWidth(VERDICT, verdict_width(self.view, 104, [tr(word) for word in words]))
        self._is_follows, self._is_setting = True, False
        self.view.selectionModel().currentRowChanged.connect(self._choose)
        column_of(self.head, stretch(self.view), into=self)
        self.hide()

    @property
    def held(self) -> StepRow | None:
        """The step that waits to be let on."""
        rows = (self.model.step_at(row) for row in range(1, self.model.count()))
        return next((row for row in rows if row is not None and row.state == "held"), None)

    def forget(self) -> None:
        """There is no call with steps; the next one is followed."""
        self._is_follows = True
        self.set_steps("", None, ())

    def set_steps(self, called: str, own: CallRecord | None, rows: Sequence[StepRow]) -> None:
        """Show these; the one under way is chosen until somebody chooses another, and at the end the call itself."""
        before = self.view.currentIndex().row()
        self._is_setting = True
        self.model.set_steps(called, own, rows)
        self.setVisible(bool(rows))
        held = self.held
        for button in (self.next_button, self.rest_button):
            button.setVisible(held is not None)
        self.head.set_note(counted(len(rows), "step", "steps"))
        height = min(self.model.count(), _MOST) * _ROW + self.view.horizontalHeader().sizeHint().height() + 4
        self.view.setFixedHeight(height)
        now = max((at for at, row in enumerate(rows, 1) if row.state in {"working", "held"}), default=0)
        chosen = now if self._is_follows or own is not None else max(before, 0)
        if rows:
            self.view.setCurrentIndex(self.model.index(chosen, 0))
            self.view.scrollTo(self.model.index(chosen, 0))
        self._is_setting = False
        if rows and own is None:
            self.chosen.emit(self.model.step_at(chosen))

    def _choose(self, current: QModelIndex, _before: QModelIndex) -> None:
        if not self._is_setting and current.isValid():
            self._is_follows = False
            self.chosen.emit(self.model.step_at(current.row()))

    def _next(self) -> None:
        self._go(rest=False)

    def _rest(self) -> None:
        self._go(rest=True)

    def _go(self, *, rest: bool) -> None:
        self._is_follows = True
        self.view.setFocus(Qt.FocusReason.OtherFocusReason)  # the buttons are about to be hidden
        self.go_requested.emit(rest)
