"""What the self-check compared and found, agent by agent, with every note in full. It checks nothing itself.

It stays open beside the window, so that one can go from note to note.
"""

import time
from collections.abc import Callable

from PySide6.QtCore import QModelIndex, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QProgressBar,
    QPushButton,
    QWidget,
)

from gatewright_gui.models.selfcheck import (
    WHAT,
    AgentCheckModel,
    CheckNoteModel,
    agreement_words,
    report_text,
)
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, keep_room, named, row_of, stack_of, stretch
from gatewright_gui.qt.look import Role
from gatewright_gui.qt.table_model import ROW
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.qt.widget.label import IconLabel, Label, SectionHeader
from gatewright_gui.session.selfcheck import AgentCheck, CheckCount, CheckNote, CheckProgress
from gatewright_gui.window.status_bar import TICK_MS, ago, progress_words

SIZE = (720, 520)
EXPLAINED = mark(
    "For every agent, tool and operation three answers must be the same: whether the model is shown it, whether the "
    "schema accepts it, and whether the gate lets it through. Of what is shown, one whole call is tried as well."
)
COPIED_MS = 1500


class SelfCheckDialog(QDialog):
    """Click or Enter on a note goes to its tool; on an agent to the agent."""

    tool_requested = Signal(object, object, object)
    """Agent id, tool, operation or None; the tool is None for the agent alone."""
    check_requested = Signal()
    stop_requested = Signal()

    def __init__(self, parent: QWidget | None = None, clock: Callable[[], float] = time.time) -> None:
        super().__init__(parent)
        self._clock = clock
        self._found: CheckCount | None = None
        self._is_checking = False
        named(self, "selfcheck", spoken=tr("Self-check")).setWindowTitle(tr("Self-check"))
        self._icon = IconLabel("shield", "muted", size=20)
        self.summary = named(Label(), "selfcheck.summary", kind="heading")
        self.when = named(Label(), "selfcheck.when", kind="muted")
        self.progress = named(QProgressBar(), "selfcheck.progress", spoken=tr("Agents checked"))
        self.agents, self.notes = AgentCheckModel(self), CheckNoteModel(self)
        self.agent_view = named(TableView(tr("Agents that were checked")), "selfcheck.agents")
        self.note_view = named(TableView(tr("Notes of the self-check")), "selfcheck.notes")
        self.note_header = SectionHeader(tr("Notes"), flush=True)
        self.nothing = EmptyState("circle-check", tr("No difference"), "")
        self._stack = stack_of(self.note_view, self.nothing)
        self.copy_button = named(QPushButton(tr("&Copy")), "selfcheck.copy")
        self.again_button = named(QPushButton(tr("Check &again")), "selfcheck.again")
        self.close_button = named(QPushButton(tr("Close")), "selfcheck.close")
        self._lay_out()
        self._connect()
        self._tick = QTimer(self, interval=TICK_MS)
        self._tick.timeout.connect(self._tell_when)
        self._copied = QTimer(self, singleShot=True, interval=COPIED_MS)
        self._copied.timeout.connect(lambda: self.copy_button.setText(tr("&Copy")))
        self.resize(*SIZE)
        self.show_found(None)
        self.show_progress(None)

    def _lay_out(self) -> None:
        self.progress.setTextVisible(False)
        keep_room(self.progress)
        self.progress.setFixedHeight(4)
        for view, model, wide in ((self.agent_view, self.agents, 0), (self.note_view, self.notes, WHAT)):
            widths = {column: 88 for column in range(model.columnCount()) if column != wide}
            view.show_model(model, widths, wide=wide)
        for button in (self.copy_button, self.again_button):
            button.setAutoDefault(False)
        column_of(
            row_of(self._icon, self.summary, stretch(), self.when, space=2),
            named(Label(tr(EXPLAINED), wraps=True), kind="muted"),
            self.progress,
            stretch(self.agent_view, 2),
            self.note_header,
            stretch(self._stack, 2),
            row_of(self.copy_button, self.again_button, stretch(), self.close_button, space=2),
            into=self,
            space=2,
            margins=4,
        )

    def _connect(self) -> None:
        self.note_view.clicked.connect(self._go_to_note)
        self.note_view.activated.connect(self._go_to_note)
        self.agent_view.activated.connect(self._go_to_agent)
        self.copy_button.clicked.connect(self.copy)
        self.again_button.clicked.connect(self._again)
        self.close_button.clicked.connect(self.close)

    def show_dialog(self) -> None:
        """Show it, or bring it to the front."""
        self._tick.start()
        self.show()
        self.raise_()
        self.activateWindow()
        (self.note_view if self.notes.rowCount() else self.agent_view).setFocus(Qt.FocusReason.PopupFocusReason)

    def show_found(self, found: CheckCount | None) -> None:
        """Show what was found; None: nothing is open or known."""
        self._found = found
        self.copy_button.setEnabled(found is not None)
        self.agents.set_rows(found.agents if found is not None else ())
        self.notes.set_rows((*found.differences, *found.untried) if found is not None else ())
        self._show_words(found)
        self._tell_when()

    def show_progress(self, progress: CheckProgress | None) -> None:
        """Show how far the check is; None: none is under way."""
        self._is_checking = progress is not None
        self.progress.setVisible(self._is_checking)
        self.progress.setRange(0, progress.of if progress is not None else 1)
        self.progress.setValue(progress.done if progress is not None else 1)
        self.again_button.setText(tr("&Stop") if self._is_checking else tr("Check &again"))
        if progress is not None:
            self.when.setText(progress_words(progress))
        else:
            self._tell_when()

    def copy(self) -> None:
        """Put all of it on the clipboard."""
        if self._found is not None:
            QGuiApplication.clipboard().setText(report_text(self._found))
            self.copy_button.setText(tr("Copied"))
            self._copied.start()

    def hideEvent(self, event: object) -> None:  # noqa: N802
        """Nothing ticks while it is not seen."""
        del event
        self._tick.stop()

    def _show_words(self, found: CheckCount | None) -> None:
        is_wrong = found is not None and bool(found.differences)
        role: Role = "muted" if found is None else "deny" if is_wrong else "allow"
        self._icon.set_icon("shield" if found is None else "shield-x" if is_wrong else "shield-check", role)
        self.summary.setText(tr("Nothing is checked yet") if found is None else agreement_words(found))
        parts = [counted(len(found.differences), "difference", "differences")] if found is not None else []
        if found is not None and found.untried:
            parts.append(tr("{count:,} not tried", count=len(found.untried)))
        self.note_header.set_note(", ".join(parts))
        text = tr("What is ticked, shown and callable is the same everywhere.") if found is not None else ""
        self.nothing.set_state(
            "circle-check", tr("No difference") if found is not None else tr("Nothing checked"), text
        )
        self._stack.setCurrentWidget(self.note_view if self.notes.rowCount() else self.nothing)

    def _tell_when(self) -> None:
        if not self._is_checking:
            found = self._found
            self.when.setText("" if found is None else tr("checked {ago}", ago=ago(self._clock() - found.finished_at)))

    def _again(self) -> None:
        (self.stop_requested if self._is_checking else self.check_requested).emit()

    def _go_to_note(self, index: QModelIndex) -> None:
        note = index.data(ROW)
        if isinstance(note, CheckNote):
            self.tool_requested.emit(note.agent_id, note.tool, note.operation or None)

    def _go_to_agent(self, index: QModelIndex) -> None:
        agent = index.data(ROW)
        if isinstance(agent, AgentCheck):
            self.tool_requested.emit(agent.agent_id, None, None)
