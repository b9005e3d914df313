"""The conversation of the chosen agent as a short table: what limits it, what is due, which answers are remembered."""

import time
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QModelIndex, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QStyleOptionViewItem, QWidget

from gatewright.workspace.api import frozen
from gatewright_gui.pages.trial.table import table_of
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of
from gatewright_gui.qt.table_model import ROW, Index, RowModel
from gatewright_gui.qt.widget.item_view import Delegate, put_icon, tint
from gatewright_gui.session.conversation import Fact, SessionState, Window
from gatewright_gui.session.question import Standing, span

WHAT, STATE = range(2)
HEADERS = (mark("What"), mark("State"))
HOLDS = Qt.ItemDataRole.UserRole + 1
"""Whether a row holds calls back, or waits to be done."""
ICONS = {
    "calls": "history",
    "cap": "hash",
    "pause": "clock",
    "rate": "funnel",
    "group": "layers",
    "exit": "circle-stop",
    "due": "info",
    "outside": "shield-alert",
}
PHASES = {"start": mark("nothing succeeded yet"), "open": mark("under way"), "ended": mark("ended by a tool")}


@frozen
class Row:
    """One line: a fact, a remembered answer, or the conversation as such."""

    icon: str
    what: str
    fact: Fact | None = None
    standing: Standing | None = None
    text: str = ""
    holds: bool = False


class ConversationModel(RowModel[Row]):
    """Give it states; a state that was not looked up keeps the rows of the same conversation."""

    headers = HEADERS

    def __init__(
        self,
        parent: QObject | None = None,
        steady: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(parent)
        self._steady, self._wall = steady, wall
        self._session_id = ""

    def set_state(self, state: SessionState | None) -> None:
        """Show another state."""
        if state is not None and not state.is_whole and state.session_id == self._session_id:
            return
        self._session_id = state.session_id if state is not None else ""
        self.set_rows(_rows(state) if state is not None else ())

    def key(self, row: Row) -> str:
        """The words for what is told."""
        return row.what

    @property
    def counts_down(self) -> bool:
        """Tell whether some row says how long it still takes."""
        for row in self.rows:
            window = self._window(row)
            is_filling = window is not None and bool(window.starts)
            if is_filling or self._seconds_left(row) > 0 or (row.standing is not None and row.standing.expires_wall_s):
                return True
        return False

    def tick(self) -> None:
        """Time passed."""
        self.tell_changed()

    def cell(self, row: Row, column: int, role: int) -> Any:
        """Texts, and what the delegate draws."""
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return row.what if column == WHAT else self._text(row)
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{row.what}: {self._text(row)}"
            case Qt.ItemDataRole.ToolTipRole:
                return self._tip(row)
            case _ if role == HOLDS:
                return self._holds(row)
            case _:
                return None

    def _text(self, row: Row) -> str:
        if row.standing is not None:
            return self._standing(row.standing)
        fact = row.fact
        window = self._window(row)
        if fact is not None and window is not None:
            parts = [tr("{count:,} of {all:,} left", count=window.left, all=window.calls)]
            if window.starts and window.left < 1:
                parts.append(tr("next in {time}", time=_clock(window.wait_s())))
            return " \u00b7 ".join([*parts, fact.text])
        if fact is None or fact.left_s is None:
            return row.text
        left_s = self._seconds_left(row)
        wait = tr("{time} to wait", time=_clock(left_s)) if left_s > 0 else tr("ready")
        return f"{wait} \u00b7 {fact.text}"

    def _standing(self, standing: Standing) -> str:
        if standing.expires_wall_s is None:
            until = tr("until revoked")
        else:
            left_s = standing.expires_wall_s - self._wall()
            until = tr("for {time}", time=span(left_s)) if left_s >= 1 else tr("no more")
        words = tr("allowed {until}, by {who}") if standing.approved else tr("refused {until}, by {who}")
        return words.format(until=f"{until} {standing.where}".rstrip(), who=standing.who or tr("the operator"))

    def _tip(self, row: Row) -> str:
        if row.standing is not None:
            return f"{row.standing.words}\n{self._text(row)}"
        link = row.fact.rule if row.fact is not None else None
        lines = [f"{row.what}: {self._text(row)}"]
        if link is not None and link.line:
            lines.append(tr("line {line} of the policy; Enter goes there", line=link.line))
        return "\n".join(lines)

    def _window(self, row: Row) -> Window | None:
        """The window that counts against a rate now."""
        fact = row.fact
        if fact is None or fact.window is None:
            return None
        return fact.window.after(self._steady() - fact.seen_s)

    def _holds(self, row: Row) -> bool:
        window = self._window(row)
        if window is not None:
            return window.left < 1
        if row.fact is not None and row.fact.left_s is not None:
            return self._seconds_left(row) > 0
        return row.holds

    def _seconds_left(self, row: Row) -> float:
        fact = row.fact
        if fact is None or fact.left_s is None:
            return 0.0
        return max(0.0, fact.left_s - (self._steady() - fact.seen_s))


def _rows(state: SessionState) -> list[Row]:
    loop = tr("the loop continues") if state.should_continue else tr("the loop has ended")
    rows = [Row("bot", tr("conversation"), text=f"{tr(PHASES.get(state.phase, state.phase))}; {loop}")]
    rows += [Row("key-round", one.what, standing=one) for one in state.standing]
    rows += [Row(ICONS[fact.kind], fact.what, fact, text=fact.text, holds=fact.holds) for fact in state.facts]
    return rows


def _clock(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else span(seconds)


TICK_MS = 200


class _Delegate(Delegate):
    """An icon for the kind; what holds calls back stands out."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        super().initStyleOption(option, index)
        holds = bool(index.data(HOLDS))
        if index.column() == WHAT:
            put_icon(option, index.data(ROW).icon, "ask" if holds else "muted")
        elif holds:
            tint(option, "ask")


class SessionView(QWidget):
    """Enter or a double click on a row goes to its rule; counts down only while it is seen."""

    rule_requested = Signal(object)
    """RuleLink."""
    chosen = Signal()
    """Another row is the current one."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = ConversationModel(self)
        self.table = table_of(self.model, _Delegate, tr("Session"), "console.sessionstate")
        self.table.setColumnWidth(WHAT, 214)
        self.table.activated.connect(self._go)
        self.table.selectionModel().currentChanged.connect(self.chosen)
        self.model.modelReset.connect(self.chosen)
        self._tick = QTimer(self, interval=TICK_MS)
        self._tick.timeout.connect(self._count)
        column_of(self.table, into=self)

    @property
    def grant_id(self) -> str | None:
        """The remembered answer of the current row."""
        row = self.model.row_at(self.table.currentIndex().row())
        return row.standing.grant_id if row is not None and row.standing is not None else None

    def show_state(self, state: SessionState | None) -> None:
        """Show where a conversation stands."""
        self.model.set_state(state)
        self._count()
        self.chosen.emit()

    def _count(self) -> None:
        self.model.tick()
        if self.isVisible() and self.model.counts_down:
            if not self._tick.isActive():
                self._tick.start()
        else:
            self._tick.stop()

    def _go(self, index: QModelIndex) -> None:
        row = self.model.row_at(index.row())
        if row is not None and row.fact is not None and row.fact.rule is not None:
            self.rule_requested.emit(row.fact.rule)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        """Count from now on."""
        super().showEvent(event)
        self._count()

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802
        """Nothing counts unseen."""
        super().hideEvent(event)
        self._tick.stop()
