"""Below the request: the calls so far, and the session of the agent."""

import asyncio
from collections.abc import Callable

from PySide6.QtCore import QModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QPushButton,
    QWidget,
)

from gatewright.workspace.api import GatewrightError
from gatewright_gui.pages.page import PageContext
from gatewright_gui.pages.trial.compare import CompareDialog, compare_calls
from gatewright_gui.pages.trial.conversation import SessionView
from gatewright_gui.pages.trial.history_filter import HistoryBar, HistoryFilter, HistoryFilterModel
from gatewright_gui.pages.trial.history_model import (
    AGENT,
    CALL,
    VERDICT,
    WHAT,
    WHEN,
    CallHistoryModel,
    HistoryDelegate,
)
from gatewright_gui.pages.trial.table import table_of, verdict_width
from gatewright_gui.qt.dialog import run_dialog
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, named, row_of, stack_of, stretch
from gatewright_gui.qt.menu import add_action, popup_menu
from gatewright_gui.qt.widget import ElidedLabel, EmptyState, SectionHeader, Segmented, TableView
from gatewright_gui.qt.widget.button import icon_button, text_button
from gatewright_gui.session.call_record import record_text
from gatewright_gui.session.calls import CallRecord
from gatewright_gui.session.console import MAX_KEPT, MAX_RECORDS, Console
from gatewright_gui.session.conversation import SessionState

_BOUND = mark(
    "The last {count} calls are remembered, with at most {size} million characters, until the app is closed or another "
    "workspace is opened"
)
_LEAST = 190
"""The same for both parts, so that choosing one moves nothing."""
_NONE = ("history", mark("No calls yet"), mark("Each call stays here: choose it to see it again"))
_NO_FIT = ("list-filter", mark("No call fits"), mark("Escape in the field, or Show all in the menu, brings them back"))


class HistoryPanel(QWidget):
    """Choosing a row shows it again. Enter runs it again, F2 edits it, two chosen rows are compared by Ctrl+D.

    `agent_id` tells whose session is shown.
    """

    record_chosen = Signal(object)
    """CallRecord."""
    again_requested = Signal(object)
    """CallRecord: the same request again."""
    edit_requested = Signal(object)
    """CallRecord: its request into the editor."""

    def __init__(self, context: PageContext, console: Console, agent_id: Callable[[], str | None]) -> None:
        super().__init__()
        self._context, self._console, self._agent_id = context, console, agent_id
        self.calls = CallHistoryModel(self)
        self.model = HistoryFilterModel(self.calls, self)
        self.bar = HistoryBar(self.calls)
        self.bar.changed.connect(self._narrow)
        self.bar.leave_requested.connect(self._to_calls)
        self.view = self._make_view()
        self._session = named(ElidedLabel(role="muted"), "console.session")
        self.compare_button = icon_button("diff", tr("Compare"), "console.compare", self._compare)
        self.edit_button = icon_button("pencil", tr("Edit this call again (F2)"), "console.edit", self._edit)
        self.again_button = icon_button("rotate-ccw", tr("Again"), "console.again", self._again)
        self.part = named(Segmented(tr("What is shown below")), "console.below")
        self.part.add_segment("calls", tr("Calls"), tooltip=tr("The calls so far, newest first"))
        self.part.add_segment(
            "session", tr("Session"), tooltip=tr("What limits the next calls, and which approvals stand")
        )
        self.part.current_changed.connect(self._show_part)
        self.session = SessionView()
        self.session.chosen.connect(self.update_buttons)
        tip = tr("Take the chosen approval back: the next call asks again")
        spoken = tr("Revoke the standing approval")
        self.revoke_button = text_button(tr("Revoke"), "console.revoke", self._revoke, tip, spoken=spoken)
        tip = tr("The agent begins a new conversation: counts, pauses and phase begin anew")
        self.reset_button = text_button(tr("Reset session"), "console.resetsession", self._reset, tip, kind="link")
        self.reset_copy_button = named(QPushButton(tr("Reset copy")), "console.resetcopy", kind="link")
        tip, spoken = tr("Forget all calls; the session and the copy stay"), tr("Clear the history")
        self.clear_button = text_button(
            tr("Clear"), "console.clearhistory", console.forget_calls, tip, spoken=spoken, kind="link"
        )
        console.records_changed.connect(self._show_records)
        console.session_changed.connect(self._session_changed)
        self._lay_out()
        self.update_buttons()

    def _show_records(self) -> None:
        """Show the calls so far; the newest becomes the chosen one."""
        records = self._console.records
        self.calls.set_rows(reversed(records))
        self._show_part()
        newest = self.model.mapFromSource(self.calls.index(0, 0))
        blocked = self.view.selectionModel().blockSignals(True)
        self.view.selectionModel().clear()
        if newest.isValid():
            self.view.selectRow(newest.row())
        self.view.selectionModel().blockSignals(blocked)
        self.view.viewport().update()
        self._header.set_note(counted(len(records), "call", "calls"))
        self._header.setToolTip(tr(_BOUND, count=MAX_RECORDS, size=MAX_KEPT // 1_000_000))
        self.update_buttons()

    def show_copy(self, tip: str) -> None:
        """Say what throwing the copy away means, and whether that can be done now."""
        console = self._console
        self.reset_copy_button.setToolTip(tip)
        self.reset_copy_button.setEnabled(console.has_copy and not console.is_busy)
        self.reset_copy_button.setVisible(not console.is_live)

    # the session

    def show_session(self) -> None:
        """Say where the conversation of the agent stands."""
        agent_id = self._agent_id()
        if agent_id is None:
            self._show_state(None)
        else:
            self._session_changed(self._console.session_state(agent_id))

    def _session_changed(self, state: SessionState) -> None:
        if state.agent_id != self._agent_id():
            return
        self._show_state(state)
        if not state.is_whole:
            look = self._console.look_at_session(state.agent_id)
            self._context.tasks.start(look, "console.session", replace=True)

    def _show_state(self, state: SessionState | None) -> None:
        """Say where the agent's conversation stands."""
        self.session.show_state(state)
        if state is None:
            self._session.set_text("")
            return
        made = sum(count for _, count in state.calls)
        names = ", ".join(f"{name} {count}" for name, count in state.calls)
        ran = tr("{calls} run in this session", calls=counted(made, "call", "calls")) if made else tr("No call run yet")
        if state.should_continue or not made:
            parts, loop = [ran], tr("its loop may go on")
        else:
            parts, loop = [ran, tr("it has ended")], tr("its loop has ended: an exit tool succeeded")
        if state.standing:
            parts.append(counted(len(state.standing), "approval stands", "approvals stand"))
        counts = tr("{count} run ({names})", count=made, names=names) if made else tr("nothing run yet")
        told = tr("session of {agent}: {counts}; {loop}", agent=state.agent_id, counts=counts, loop=loop)
        self._session.set_text(", ".join(parts), told)

    def _reset(self) -> None:
        agent_id = self._agent_id()
        if agent_id is not None:
            self._console.reset_session(agent_id)

    def _revoke(self) -> None:
        agent_id, grant_id = self._agent_id(), self.session.grant_id
        if agent_id is not None and grant_id is not None:
            self._context.tasks.start(self._take_back(agent_id, grant_id), "console.revoke", replace=True)

    async def _take_back(self, agent_id: str, grant_id: str) -> None:
        try:
            await self._console.revoke(agent_id, grant_id)
        except GatewrightError as error:
            self._context.document.say("error", tr("not revoked: {error}", error=error))

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
        self.update_buttons()

    def _to_calls(self) -> None:
        if self.model.rowCount():
            self.view.setFocus(Qt.FocusReason.OtherFocusReason)
            if not self.view.currentIndex().isValid():
                self.view.setCurrentIndex(self.model.index(0, 0))

    def _follow_current(self, _current: QModelIndex, _before: QModelIndex) -> None:
        self.update_buttons()
        self._show()

    def _show(self, *_what: object) -> None:
        record = self._record()
        if record is not None:
            self.record_chosen.emit(record)

    def _again(self) -> None:
        record = self._record()
        if record is not None and not self._console.is_busy:
            self.again_requested.emit(record)

    def _edit(self) -> None:
        record = self._record()
        if record is not None:
            self.edit_requested.emit(record)

    def _compare(self) -> None:
        chosen = self.chosen_records
        if len(chosen) == 2:
            self._context.tasks.start(self._show_comparison(*chosen), "console.compare", replace=True)

    async def _show_comparison(self, one: CallRecord, other: CallRecord) -> None:
        told = await asyncio.to_thread(compare_calls, one, other)
        await run_dialog(CompareDialog(self.window(), told))

    def _copy(self) -> None:
        """The chosen calls as JSON."""
        texts = [record_text(record) for record in self.chosen_records]
        if texts:
            QGuiApplication.clipboard().setText(texts[0] if len(texts) == 1 else f"[{','.join(texts)}]")

    def _open_menu(self, at: QPoint) -> None:
        menu = popup_menu(self, "console.historymenu")
        add_action(menu, self._again_words(self._record()), self._again, can=self.again_button.isEnabled())
        add_action(menu, tr("Edit again (F2)"), self._edit, can=self.edit_button.isEnabled())
        compare = tr("Compare the two chosen (Ctrl+D)")
        add_action(menu, compare, self._compare, can=self.compare_button.isEnabled())
        add_action(menu, tr("Copy as JSON (Ctrl+C)"), self._copy, can=bool(self.chosen_records))
        add_action(menu, tr("Clear the history"), self._console.forget_calls, can=self.calls.rowCount() > 0)
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
        if record is not None and not (self._console.is_live and record.kind == "run"):
            self._again()

    # what can be done

    def _again_words(self, record: CallRecord | None) -> str:
        if record is None or record.kind == "decide":
            return tr("Decide again")
        return tr("Run again LIVE, in the real workspace") if self._console.is_live else tr("Run again in the copy")

    def update_buttons(self, *_what: object) -> None:
        """Enable what can be done with the chosen calls now."""
        record = self._record()
        self.again_button.setEnabled(record is not None and not self._console.is_busy)
        live = record is not None and record.kind == "run" and self._console.is_live
        words = tr("{again}, under the policy as it is now", again=self._again_words(record))
        self.again_button.set_icon(
            "rotate-ccw",
            words if live else f"{words} (Enter)",
            "deny" if live else "muted",
        )
        self.edit_button.setEnabled(record is not None)
        two = len(self.chosen_records) == 2
        self.compare_button.setEnabled(two)
        self.compare_button.set_icon(
            "diff",
            tr("Compare the two chosen calls (Ctrl+D)") if two else tr("Choose two calls (Ctrl+click) to compare them"),
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
            icon, title, words = _NO_FIT if self.calls.rowCount() else _NONE
            self._none.set_state(icon, tr(title), tr(words))
            self._stack.setCurrentWidget(self._none)
        self.bar.tell_count(self.model.rowCount(), self.calls.rowCount())
        self.bar.setVisible(not is_session and self.calls.rowCount() > 0)
        for button in (self.compare_button, self.edit_button, self.again_button, self.clear_button):
            button.setVisible(not is_session)
        self.revoke_button.setVisible(is_session)

    # the parts

    def _make_view(self) -> TableView:
        view = table_of(self.model, HistoryDelegate, tr("Calls so far"), "console.history")
        view.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        view.customContextMenuRequested.connect(self._open_menu)
        view.installEventFilter(self)
        view.horizontalHeader().setMinimumSectionSize(20)
        for column, width in ((WHEN, 82), (WHAT, 26), (AGENT, 76), (VERDICT, verdict_width(view, 104))):
            view.setColumnWidth(column, width)
        header = view.horizontalHeader()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(CALL, header.ResizeMode.Stretch)
        view.selectionModel().currentChanged.connect(self._follow_current)
        view.selectionModel().selectionChanged.connect(self.update_buttons)
        view.clicked.connect(self._show)
        return view

    def _lay_out(self) -> None:
        self._header = SectionHeader(tr("History"))
        for control in (self.compare_button, self.edit_button, self.again_button, self.revoke_button, self.part):
            self._header.add_control(control)
        self._none = EmptyState("history", "", "")
        self._stack = stack_of(self._none, self.view, self.session)
        buttons = (self.clear_button, self.reset_button, self.reset_copy_button)
        foot = row_of(stretch(self._session), *buttons, space=1, margins=(2, 0))
        column_of(self._header, self.bar, stretch(self._stack), foot, into=self)
        self._show_part()
        self.setMinimumHeight(_LEAST)
