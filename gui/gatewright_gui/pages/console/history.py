"""Below the request: the session of the agent, and the calls so far. It makes no call."""

from PySide6.QtCore import QModelIndex, Signal
from PySide6.QtWidgets import QAbstractItemView, QHBoxLayout, QLabel, QPushButton, QStackedWidget, QVBoxLayout, QWidget

from gatewright_gui.models import callhistory
from gatewright_gui.models.callhistory import CallHistoryModel
from gatewright_gui.pages.console.delegate import HistoryDelegate
from gatewright_gui.pages.console.sessionview import SessionView
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget import EmptyState, IconButton, SectionHeader, Segmented, TableView
from gatewright_gui.session.calls import CallRecord
from gatewright_gui.session.conversation import SessionState


class HistoryPanel(QWidget):
    """Choosing a row shows it again."""

    record_chosen = Signal(object)
    """CallRecord."""
    again_requested = Signal(object)
    """CallRecord: the same request again."""
    edit_requested = Signal(object)
    """CallRecord: its request into the editor."""
    reset_requested = Signal()
    revoke_requested = Signal(object)
    """Id of the standing approval that is to be taken back."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = CallHistoryModel(self)
        self.view = TableView("Calls so far")
        self.view.setObjectName("console.history")
        self.view.setModel(self.model)
        self.view.setItemDelegate(HistoryDelegate(self.view))
        self.view.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.view.setTabKeyNavigation(False)
        header = self.view.horizontalHeader()
        header.setMinimumSectionSize(20)
        for column, width in (
            (callhistory.WHEN, 84),
            (callhistory.WHAT, 28),
            (callhistory.CALL, 130),
            (callhistory.AGENT, 92),
        ):
            self.view.setColumnWidth(column, width)
        self.view.selectionModel().currentChanged.connect(self._chosen)
        self.view.clicked.connect(self._clicked)
        self._session = QLabel()
        self._session.setObjectName("console.session")
        self._session.setProperty("kind", "muted")
        self.again_button = IconButton("rotate-ccw", "Run again")
        self.again_button.setObjectName("console.again")
        self.again_button.clicked.connect(self._again)
        self.edit_button = IconButton("pencil", "Edit this call again")
        self.edit_button.setObjectName("console.edit")
        self.edit_button.clicked.connect(self._edit)
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
        self.reset_button = QPushButton("Reset session")
        self.reset_button.setObjectName("console.resetsession")
        self.reset_button.setProperty("kind", "link")
        self.reset_button.setAutoDefault(False)
        self.reset_button.clicked.connect(self.reset_requested)
        self._lay_out()
        self._update_buttons()

    def set_records(self, records: tuple[CallRecord, ...]) -> None:
        """Show these calls; the newest becomes the chosen one."""
        self.model.set_records(records)
        self._show_part()
        if records:
            blocked = self.view.selectionModel().blockSignals(True)
            self.view.selectRow(0)
            self.view.selectionModel().blockSignals(blocked)
            self.view.viewport().update()
        self._header.set_note(f"{len(records)} calls" if len(records) != 1 else "1 call")
        self._update_buttons()

    def show_session(self, state: SessionState | None) -> None:
        """Say where the agent's conversation stands."""
        self.session.show_state(state)
        if state is None:
            self._session.clear()
            self._session.setToolTip("")
            return
        made = sum(count for _, count in state.calls)
        names = ", ".join(f"{name} {count}" for name, count in state.calls)
        goes_on = "may go on" if state.should_continue else "has ended"
        why = "" if state.should_continue else ": an exit tool succeeded"
        self._session.setText(f"session: {made} run, {goes_on}" if made else "session: nothing run yet")
        if state.standing:
            count = len(state.standing)
            stands = "1 approval stands" if count == 1 else f"{count} approvals stand"
            self._session.setText(f"{self._session.text()}, {stands}")
        counts = f"{made} run ({names})" if made else "nothing run yet"
        self._session.setToolTip(f"session of {state.agent_id}: {counts}; the agent's loop {goes_on}{why}")

    def _record(self) -> CallRecord | None:
        return self.model.record_at(self.view.currentIndex().row())

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
        if record is not None:
            self.again_requested.emit(record)

    def _edit(self) -> None:
        record = self._record()
        if record is not None:
            self.edit_requested.emit(record)

    def _update_buttons(self) -> None:
        for button in (self.again_button, self.edit_button):
            button.setEnabled(self._record() is not None)
        self.revoke_button.setEnabled(self.session.grant_id is not None)

    def _revoke(self) -> None:
        grant_id = self.session.grant_id
        if grant_id is not None:
            self.revoke_requested.emit(grant_id)

    def _show_part(self, _part: object = None) -> None:
        is_session = self.part.current == "session"
        if is_session:
            self._stack.setCurrentWidget(self.session)
        else:
            self._stack.setCurrentWidget(self.view if self.model.rowCount() else self._none)
        for button in (self.edit_button, self.again_button):
            button.setVisible(not is_session)
        self.revoke_button.setVisible(is_session)

    def _lay_out(self) -> None:
        tokens = current_look().tokens
        self._header = SectionHeader("History")
        for control in (self.edit_button, self.again_button, self.revoke_button, self.part):
            self._header.add_control(control)
        foot = QHBoxLayout()
        foot.setContentsMargins(tokens.space_2, 0, tokens.space_2, 0)
        foot.addWidget(self._session, 1)
        foot.addWidget(self.reset_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._header)
        self._none = EmptyState("history", "No calls yet", "Each call stays here: choose it to see it again")
        self._stack = QStackedWidget()
        self._stack.addWidget(self._none)
        self._stack.addWidget(self.view)
        self._stack.addWidget(self.session)
        self._show_part()
        column.addWidget(self._stack, 1)
        column.addLayout(foot)
