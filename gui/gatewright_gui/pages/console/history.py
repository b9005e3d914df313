"""Below the request: the calls so far, and the session of the agent.

Over 400 lines: everything that can be done with a call that was made ends in a short method here.
"""

import asyncio
from collections.abc import Callable

from PySide6.QtCore import QItemSelection, QModelIndex, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QMenu,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from gatewright.base.errors import GatewrightError
from gatewright_gui.pages.console.compare import CompareDialog, compared
from gatewright_gui.pages.console.conversation import SessionView
from gatewright_gui.pages.console.history_filter import HistoryBar, HistoryFilter, HistoryFilterModel
from gatewright_gui.pages.console.history_model import (
    AGENT,
    CALL,
    VERDICT,
    WHAT,
    WHEN,
    CallHistoryModel,
    HistoryDelegate,
)
from gatewright_gui.pages.console.linkbutton import link_button
from gatewright_gui.pages.console.result import record_text
from gatewright_gui.pages.console.verdict import ExactDialog
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.dialog import shown
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget import ElidedLabel, EmptyState, IconButton, SectionHeader, Segmented, TableView
from gatewright_gui.session.calls import CallRecord
from gatewright_gui.session.console import MAX_KEPT, MAX_RECORDS, Console
from gatewright_gui.session.conversation import SessionState

_BOUND = (
    f"The last {MAX_RECORDS} calls are remembered, with at most {MAX_KEPT // 1_000_000} million characters, "
    "until the app is closed or another workspace is opened"
)
_LEAST = 190
"""The same for both parts, so that choosing one moves nothing."""
_NONE = ("history", "No calls yet", "Each call stays here: choose it to see it again")
_NO_FIT = ("list-filter", "No call fits", "Escape in the field, or Show all in the menu, brings them back")


class HistoryPanel(QWidget):
    """Choosing a row shows it again. Enter runs it again, F2 edits it, two chosen rows are compared by Ctrl+D."""

    record_chosen = Signal(object)
    """CallRecord."""
    again_requested = Signal(object)
    """CallRecord: the same request again."""
    edit_requested = Signal(object)
    """CallRecord: its request into the editor."""
    compare_requested = Signal(object, object)
    """Two CallRecords."""
    clear_requested = Signal()
    """All calls are to be forgotten."""
    reset_requested = Signal()
    reset_copy_requested = Signal()
    revoke_requested = Signal(object)
    """Id of the standing approval that is to be taken back."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._is_live = False
        self._is_busy = False
        self.calls = CallHistoryModel(self)
        self.model = HistoryFilterModel(self.calls, self)
        self.bar = HistoryBar()
        self.bar.changed.connect(self._narrow)
        self.bar.leave_requested.connect(self._to_calls)
        self.view = self._make_view()
        self._session = ElidedLabel(role="muted")
        self._session.setObjectName("console.session")
        self.compare_button = self._icon("diff", "compare", self._compare)
        self.edit_button = self._icon("pencil", "edit", self._edit)
        self.edit_button.set_icon("pencil", "Edit this call again (F2)")
        self.again_button = self._icon("rotate-ccw", "again", self._again)
        self.part = Segmented("What is shown below")
        self.part.setObjectName("console.below")
        self.part.add_segment("calls", "Calls", tooltip="The calls so far, newest first")
        self.part.add_segment("session", "Session", tooltip="What limits the next calls, and which approvals stand")
        self.part.current_changed.connect(self._show_part)
        self.session = SessionView()
        self.session.chosen.connect(self._update_buttons)
        self.revoke_button = QPushButton("Revoke")
        self.revoke_button.setObjectName("console.revoke")
        self.revoke_button.setAccessibleName("Revoke the standing approval")
        self.revoke_button.setToolTip("Take the chosen approval back: the next call asks again")
        self.revoke_button.setAutoDefault(False)
        self.revoke_button.clicked.connect(self._revoke)
        tip = "The agent begins a new conversation: counts, pauses and phase begin anew"
        self.reset_button = link_button("Reset session", "console.resetsession", tip)
        self.reset_button.clicked.connect(self.reset_requested)
        self.reset_copy_button = link_button("Reset copy", "console.resetcopy", "")
        self.reset_copy_button.clicked.connect(self.reset_copy_requested)
        tip = "Forget all calls; the session and the copy stay"
        self.clear_button = link_button("Clear", "console.clearhistory", tip, "Clear the history")
        self.clear_button.clicked.connect(self.clear_requested)
        self._lay_out()
        self._update_buttons()

    def set_records(self, records: tuple[CallRecord, ...]) -> None:
        """Show these calls; the newest becomes the chosen one."""
        self.calls.set_records(records)
        self.bar.set_records(records)
        self._show_part()
        newest = self.model.mapFromSource(self.calls.index(0, 0))
        blocked = self.view.selectionModel().blockSignals(True)
        self.view.selectionModel().clear()
        if newest.isValid():
            self.view.selectRow(newest.row())
        self.view.selectionModel().blockSignals(blocked)
        self.view.viewport().update()
        self._header.set_note(f"{len(records)} calls" if len(records) != 1 else "1 call")
        self._header.setToolTip(_BOUND)
        self._update_buttons()

    def set_way(self, *, live: bool, busy: bool) -> None:
        """Whether runs are real, and whether a call is under way: then none can be made again."""
        self._is_live, self._is_busy = live, busy
        self._update_buttons()

    def tell_copy(self, tip: str, *, can: bool, shown: bool) -> None:
        """Whether there is a copy that can be thrown away, and what that means."""
        self.reset_copy_button.setToolTip(tip)
        self.reset_copy_button.setEnabled(can)
        self.reset_copy_button.setVisible(shown)

    def show_session(self, state: SessionState | None) -> None:
        """Say where the agent's conversation stands."""
        self.session.show_state(state)
        if state is None:
            self._session.set_text("")
            return
        made = sum(count for _, count in state.calls)
        names = ", ".join(f"{name} {count}" for name, count in state.calls)
        goes_on = "may go on" if state.should_continue else "has ended"
        why = "" if state.should_continue else ": an exit tool succeeded"
        words = f"session: {made} run, {goes_on}" if made else "session: nothing run yet"
        if state.standing:
            count = len(state.standing)
            words += ", 1 approval stands" if count == 1 else f", {count} approvals stand"
        counts = f"{made} run ({names})" if made else "nothing run yet"
        self._session.set_text(words, f"session of {state.agent_id}: {counts}; the agent's loop {goes_on}{why}")

    # the calls

    @property
    def chosen_records(self) -> tuple[CallRecord, ...]:
        """The calls that are chosen, from above."""
        rows = sorted(index.row() for index in self.view.selectionModel().selectedRows())
        found = (self.model.record_at(row) for row in rows)
        return tuple(record for record in found if record is not None)

    def _record(self) -> CallRecord | None:
        return self.model.record_at(self.view.currentIndex().row())

    def _narrow(self, wanted: HistoryFilter) -> None:
        kept = self._record()
        blocked = self.view.selectionModel().blockSignals(True)
        self.model.set_filter(wanted)
        if kept is not None and self._record() is not kept:
            self.view.selectionModel().clear()
        self.view.selectionModel().blockSignals(blocked)
        self._show_part()
        self._update_buttons()

    def _to_calls(self) -> None:
        if self.model.rowCount():
            self.view.setFocus(Qt.FocusReason.OtherFocusReason)
            if not self.view.currentIndex().isValid():
                self.view.setCurrentIndex(self.model.index(0, 0))

    def _moved(self, _selected: QItemSelection, _deselected: QItemSelection) -> None:
        self._update_buttons()

    def _chosen(self, _current: QModelIndex, _before: QModelIndex) -> None:
        self._update_buttons()
        self._show()

    def _clicked(self, _index: QModelIndex) -> None:
        self._show()

    def _show(self) -> None:
        record = self._record()
        if record is not None:
            self.record_chosen.emit(record)

    def _again(self) -> None:
        record = self._record()
        if record is not None and not self._is_busy:
            self.again_requested.emit(record)

    def _edit(self) -> None:
        record = self._record()
        if record is not None:
            self.edit_requested.emit(record)

    def _compare(self) -> None:
        chosen = self.chosen_records
        if len(chosen) == 2:
            self.compare_requested.emit(*chosen)

    def _copy(self) -> None:
        """The chosen calls as JSON."""
        texts = [record_text(record) for record in self.chosen_records]
        if texts:
            QGuiApplication.clipboard().setText(texts[0] if len(texts) == 1 else f"[{','.join(texts)}]")

    def _revoke(self) -> None:
        grant_id = self.session.grant_id
        if grant_id is not None:
            self.revoke_requested.emit(grant_id)

    def _open_menu(self, at: QPoint) -> None:
        menu = QMenu(self)
        menu.setObjectName("console.historymenu")
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for words, act, can in (
            (self._again_words(self._record()), self._again, self.again_button.isEnabled()),
            ("Edit again (F2)", self._edit, self.edit_button.isEnabled()),
            ("Compare the two chosen (Ctrl+D)", self._compare, self.compare_button.isEnabled()),
            ("Copy as JSON (Ctrl+C)", self._copy, bool(self.chosen_records)),
            ("Clear the history", self.clear_requested.emit, self.calls.rowCount() > 0),
        ):
            action = menu.addAction(words)
            action.setEnabled(can)
            action.triggered.connect(act)
        menu.popup(self.view.viewport().mapToGlobal(at))

    def eventFilter(self, watched: object, event: object) -> bool:  # noqa: N802
        """Keys of the list of calls."""
        if watched is self.view and isinstance(event, QKeyEvent) and event.type() == QKeyEvent.Type.KeyPress:
            act = self._act_of(event)
            if act is not None:
                act()
                return True
        return super().eventFilter(watched, event)  # pyright: ignore[reportArgumentType]

    def _act_of(self, event: QKeyEvent) -> Callable[[], None] | None:
        is_control = event.modifiers() == Qt.KeyboardModifier.ControlModifier
        is_plain = not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        if event.matches(QKeySequence.StandardKey.Copy):
            return self._copy
        if is_control and event.key() == Qt.Key.Key_D:
            return self._compare
        if is_plain and event.key() == Qt.Key.Key_F2:
            return self._edit
        if is_plain and event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            return self._again_by_key
        return None

    def _again_by_key(self) -> None:
        """A key alone makes no real run: that takes the button."""
        record = self._record()
        if record is not None and not (self._is_live and record.kind == "run"):
            self._again()

    # what can be done

    def _again_words(self, record: CallRecord | None) -> str:
        if record is None or record.kind == "decide":
            return "Decide again"
        return "Run again LIVE, in the real workspace" if self._is_live else "Run again in the copy"

    def _update_buttons(self) -> None:
        record = self._record()
        self.again_button.setEnabled(record is not None and not self._is_busy)
        live = record is not None and record.kind == "run" and self._is_live
        self.again_button.set_icon(
            "rotate-ccw",
            f"{self._again_words(record)}, under the policy as it is now{'' if live else ' (Enter)'}",
            "deny" if live else "muted",
        )
        self.edit_button.setEnabled(record is not None)
        two = len(self.chosen_records) == 2
        self.compare_button.setEnabled(two)
        self.compare_button.set_icon(
            "diff", "Compare the two chosen calls (Ctrl+D)" if two else "Choose two calls (Ctrl+click) to compare them"
        )
        self.clear_button.setEnabled(self.calls.rowCount() > 0)
        self.revoke_button.setEnabled(self.session.grant_id is not None)

    def _show_part(self, _part: object = None) -> None:
        is_session = self.part.current == "session"
        if is_session:
            self._stack.setCurrentWidget(self.session)
        elif self.model.rowCount():
            self._stack.setCurrentWidget(self.view)
        else:
            self._none.set_state(*(_NO_FIT if self.calls.rowCount() else _NONE))
            self._stack.setCurrentWidget(self._none)
        self.bar.tell_count(self.model.rowCount(), self.calls.rowCount())
        self.bar.setVisible(not is_session and self.calls.rowCount() > 0)
        for button in (self.compare_button, self.edit_button, self.again_button, self.clear_button):
            button.setVisible(not is_session)
        self.revoke_button.setVisible(is_session)

    # the parts

    def _icon(self, icon: str, name: str, act: Callable[[], None]) -> IconButton:
        button = IconButton(icon, name)
        button.setObjectName(f"console.{name}")
        button.clicked.connect(lambda _=False: act())
        return button

    def _make_view(self) -> TableView:
        view = TableView("Calls so far")
        view.setObjectName("console.history")
        view.setModel(self.model)
        view.setItemDelegate(HistoryDelegate(view))
        view.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        view.setTabKeyNavigation(False)
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        view.customContextMenuRequested.connect(self._open_menu)
        view.installEventFilter(self)
        view.horizontalHeader().setMinimumSectionSize(20)
        for column, width in (
            (WHEN, 82),
            (WHAT, 26),
            (AGENT, 76),
            (VERDICT, 104),
        ):
            view.setColumnWidth(column, width)
        header = view.horizontalHeader()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(CALL, header.ResizeMode.Stretch)
        view.selectionModel().currentChanged.connect(self._chosen)
        view.selectionModel().selectionChanged.connect(self._moved)
        view.clicked.connect(self._clicked)
        return view

    def _lay_out(self) -> None:
        tokens = current_look().tokens
        self._header = SectionHeader("History")
        for control in (self.compare_button, self.edit_button, self.again_button, self.revoke_button, self.part):
            self._header.add_control(control)
        foot = QHBoxLayout()
        foot.setContentsMargins(tokens.space_2, 0, tokens.space_2, 0)
        foot.addWidget(self._session, 1)
        foot.addWidget(self.clear_button)
        foot.addWidget(self.reset_button)
        foot.addWidget(self.reset_copy_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._header)
        column.addWidget(self.bar)
        self._none = EmptyState(*_NONE)
        self._stack = QStackedWidget()
        self._stack.addWidget(self._none)
        self._stack.addWidget(self.view)
        self._stack.addWidget(self.session)
        self._show_part()
        column.addWidget(self._stack, 1)
        column.addLayout(foot)
        self.setMinimumHeight(_LEAST)


class HistoryControl(QObject):
    """`agent_id` tells whose session is shown."""

    def __init__(
        self,
        context: PageContext,
        console: Console,
        history: HistoryPanel,
        page: QWidget,
        agent_id: Callable[[], str | None],
    ) -> None:
        super().__init__(page)
        self._context, self._console, self._history, self._page = context, console, history, page
        self._agent_id = agent_id
        history.revoke_requested.connect(self._revoke)
        history.reset_requested.connect(self._reset_session)
        history.compare_requested.connect(self._compare)
        history.clear_requested.connect(console.forget_calls)
        console.records_changed.connect(self._show_records)
        console.session_changed.connect(self._show_session)

    def show_session(self) -> None:
        """Show where the conversation of the agent stands."""
        agent_id = self._agent_id()
        if agent_id is None:
            self._history.show_session(None)
        else:
            self._show_session(self._console.session_state(agent_id))

    def show_exact(self, record: CallRecord) -> None:
        """Show exactly what the model gets of a call."""
        self._context.tasks.start(shown(ExactDialog(self._page, record)), "console.exact", replace=True)

    def _show_records(self) -> None:
        self._history.set_records(self._console.records)

    def _show_session(self, state: SessionState) -> None:
        if state.agent_id != self._agent_id():
            return
        self._history.show_session(state)
        if not state.is_whole:
            look = self._console.look_at_session(state.agent_id)
            self._context.tasks.start(look, "console.session", replace=True)

    def _compare(self, one: CallRecord, other: CallRecord) -> None:
        self._context.tasks.start(self._show_comparison(one, other), "console.compare", replace=True)

    async def _show_comparison(self, one: CallRecord, other: CallRecord) -> None:
        told = await asyncio.to_thread(compared, one, other)
        await shown(CompareDialog(self._page, told))

    def _revoke(self, grant_id: str) -> None:
        agent_id = self._agent_id()
        if agent_id is not None:
            self._context.tasks.start(self._take_back(agent_id, grant_id), "console.revoke", replace=True)

    async def _take_back(self, agent_id: str, grant_id: str) -> None:
        try:
            await self._console.revoke(agent_id, grant_id)
        except GatewrightError as error:
            self._context.document.say("error", f"not revoked: {error}")

    def _reset_session(self) -> None:
        agent_id = self._agent_id()
        if agent_id is not None:
            self._console.reset_session(agent_id)
