"""The buttons that send a call, and its way from the button to its end.

The keys stay where they were: what is disabled or hidden for a while would hand them to its neighbour.
"""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QApplication, QCheckBox, QPushButton, QWidget
from shiboken6 import isValid

from gatewright_gui.pages.page import PageContext
from gatewright_gui.pages.trial.outcome import OutcomePanel
from gatewright_gui.pages.trial.request import RequestPanel
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import keep_room, named, row_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.widget.button import text_button
from gatewright_gui.qt.widget.tight_row import TightRow
from gatewright_gui.session.call_record import find_lines
from gatewright_gui.session.calls import CallRecord, CallRequest, Kind, StageRow, StepRow
from gatewright_gui.session.console import Console
from gatewright_gui.session.question import PendingApproval

RUN, RUN_TIP = (
    mark("Run in copy"),
    mark("Send the call through the gate, in a disposable copy of the workspace (Ctrl+Shift+Return)"),
)
LIVE, LIVE_TIP = (
    mark("Run LIVE"),
    mark("Send the call through the gate, in the real workspace: what it changes stays changed (Ctrl+Shift+Return)"),
)
ELSEWHERE, ELSEWHERE_TIP = (
    mark("Decide, not run"),
    mark("{why}: here the call is decided only (Ctrl+Shift+Return)"),
)


TASK = "console.call"


class CallBar(TightRow):
    """One call at a time; `changed` is told when one begins and when it ended.

    Cancel has a place of its own, empty while no call is under way: an impatient click hits nothing else.
    """

    changed = Signal()

    def __init__(self, context: PageContext, console: Console, request: RequestPanel, outcome: OutcomePanel) -> None:
        super().__init__()
        self._context, self._console, self._request, self._outcome = context, console, request, outcome
        self._home: QWidget | None = None
        self._is_instead, self._called = False, ""
        self._run_kind = ""
        tip = tr("Ask the gate, without any effect (Ctrl+Return)")
        self.decide_button = text_button(tr("Decide"), "console.decide", self.decide, tip)
        self.run_button = text_button(tr(RUN), "console.run", self.run)
        self.cancel_button = text_button(tr("Cancel"), "console.cancel", self.cancel, tr("Give the call up (Esc)"))
        tie_icon(self.cancel_button, "circle-stop")
        keep_room(self.cancel_button)
        self.live_button = named(QPushButton(tr("Go live")), "console.live", spoken=tr("Go live"), kind="danger")
        self.live_button.setToolTip(tr("Run in the real workspace (Ctrl+Shift+L)"))
        self.step_box = named(QCheckBox(tr("Step by step")), "console.onebyone")
        self.step_box.setToolTip(tr("Stop before each step of the composition"))
        self.step_box.hide()
        buttons = (self.decide_button, self.run_button, self.cancel_button, self.step_box)
        row_of(*buttons, stretch(), self.live_button, into=self, space=2, margins=2)
        self.give_way(self.cancel_button.set_brief, self.decide_button.set_brief, self.run_button.set_brief)
        self.show_way(why_not="", live=False)
        outcome.cancel_requested.connect(self.cancel)
        outcome.steps.go_requested.connect(console.go_on)
        outcome.approval.keys_given_back.connect(self._lend_keys)
        for signal, slot in (
            (console.began, self._began),
            (console.stage_passed, self._pass_stage),
            (console.streamed, self._show_stream),
            (console.finished, self._show_record),
            (console.failed, outcome.say_failed),
            (console.ended, self._end),
            (console.asked, self._show_question),
            (console.answered, self._resume),
            (console.copying, self._copying),
            (console.steps_told, self._show_steps),
            (request.tool_shown, self.show_state),
        ):
            signal.connect(slot)

    def show_state(self) -> None:
        """Enable what can be done now."""
        busy, is_live = self._console.is_busy, self._console.is_live
        for button in (self.decide_button, self.run_button):
            button.setEnabled(self._request.agent_id is not None and bool(self._request.tool_name) and not busy)
        self.cancel_button.setVisible(busy)
        self.step_box.setVisible(self._request.has_steps)
        self.step_box.setEnabled(not busy)
        self.live_button.setHidden(is_live)
        self.live_button.setEnabled(not busy and self._context.document.is_open)
        if not busy:
            self.show_next()

    def show_way(self, *, why_not: str, live: bool) -> None:
        """Say where a run is made; `why_not`: why the call is decided only, empty where it is run."""
        words, tip = map(tr, (ELSEWHERE, ELSEWHERE_TIP) if why_not else (LIVE, LIVE_TIP) if live else (RUN, RUN_TIP))
        self.run_button.setText(words)
        named(self.run_button, spoken=words, tip=tip.format(why=why_not))
        self._run_kind = "live" if live and not why_not else ""
        self.decide_button.setHidden(bool(why_not))  # there would be two that do the same
        self.show_next()
        self.refit()

    def show_next(self) -> None:
        """Let *Decide* stand out until there is a verdict on the call that is filled in, then the run."""
        outcome, is_instead = self._outcome, self.decide_button.isHidden()
        is_run_next = is_instead or (outcome.shown is not None and not outcome.verdict.is_stale)
        _set_kind(self.decide_button, "shield-check", "" if is_run_next else "primary")
        kind = self._run_kind or ("primary" if is_run_next else "")
        _set_kind(self.run_button, "shield-check" if is_instead else "play", kind)

    # a call on its way

    def decide(self) -> None:
        """Ask the gate."""
        request = self._request.request()
        if request is not None:
            self._start("decide", request)

    def run(self) -> None:
        """Run in the copy; a tool that is not run there is decided instead, which is said."""
        request = self._request.request()
        if request is not None:
            self._is_instead = bool(self._request.why_not_run(live=self._console.is_live))
            self._start("decide" if self._is_instead else "run", request)

    def again(self, record: CallRecord) -> None:
        """Make the same call under the policy as it is now; one that was decided is decided."""
        self._start(record.kind, record.request, record)

    def cancel(self) -> None:
        """Give up the call that is under way."""
        self._context.tasks.cancel(TASK)

    def _start(self, kind: Kind, request: CallRequest, earlier: CallRecord | None = None) -> None:
        if self._console.is_busy:
            return
        self._console.is_one_by_one = self.step_box.isChecked() and earlier is None
        self._called = request.tool
        make = self._console.decide if kind == "decide" else self._console.run
        self._context.tasks.start(make(request, earlier), TASK)

    def _began(self, kind: Kind) -> None:
        self._outcome.begin(kind)
        focus = QApplication.focusWidget()  # has the keys again when the call has ended
        self._home = focus if focus is not None and focus.window() is self.window() else None
        if focus in {self.decide_button, self.run_button}:
            self._lend_keys()
        self.changed.emit()

    def _pass_stage(self, row: StageRow) -> None:
        if self._console.is_busy:
            self._outcome.pass_stage(row)

    def _show_stream(self, text: str) -> None:
        if self._console.is_busy:
            self._outcome.show_stream(text)

    def _show_steps(self, rows: tuple[StepRow, ...]) -> None:
        if self._console.is_busy:
            self._outcome.show_steps(self._called, rows)
            if self._outcome.steps.held is not None and QApplication.focusWidget() in self._borrowed:
                self._outcome.steps.next_button.setFocus(Qt.FocusReason.OtherFocusReason)

    @property
    def _borrowed(self) -> set[QWidget]:
        """The widgets that have the keys of the buttons while a call is under way."""
        outcome = self._outcome
        steps = outcome.steps.view, outcome.steps.next_button, outcome.steps.rest_button
        return {outcome.stages, self.cancel_button, outcome.strip.cancel_button, *steps}

    def _show_question(self, question: PendingApproval) -> None:
        if self._console.is_busy:
            self._outcome.ask(question)
            self._context.navigator.tell_question(open_=True)
            self._context.tasks.start(self._find_lines(question), "console.lines", replace=True)

    async def _find_lines(self, question: PendingApproval) -> None:
        """Find where the rules stand that ask."""
        lines = await find_lines(self._context.document, filter(None, question.places))
        if isValid(self) and self._outcome.approval.question is question:
            self._outcome.approval.set_lines(lines)

    def _resume(self) -> None:
        self._context.navigator.tell_question(open_=False)
        self._outcome.resume()

    def _copying(self, text: str) -> None:
        if self._console.is_busy:
            self._outcome.strip.start(text or self._outcome.running, can_cancel=True)

    def _show_record(self, record: CallRecord) -> None:
        self._outcome.show_record(record)
        if self._is_instead:
            self._outcome.say_run_elsewhere()

    def _end(self) -> None:
        self._is_instead = False
        self._context.navigator.tell_question(open_=False)
        self._outcome.end()
        for button in (self.decide_button, self.run_button):
            button.setEnabled(self._request.agent_id is not None)
        home, self._home = self._home, None
        focus = QApplication.focusWidget()
        if home is not None and (focus is None or focus in self._borrowed):
            home.setFocus(Qt.FocusReason.OtherFocusReason)
        self.changed.emit()

    # the keys

    def _lend_keys(self) -> None:
        self._outcome.stages.setFocus(Qt.FocusReason.OtherFocusReason)


def _set_kind(button: QPushButton, icon: str, kind: str) -> None:
    if button.property("kind") != kind:
        button.setProperty("kind", kind)
        button.style().unpolish(button)
        button.style().polish(button)
    tie_icon(button, icon, "on_accent" if kind else "text")
