"""The buttons that send a call, and its way from the button to its end.

The keys stay where they were: what is disabled or hidden for a while would hand them to its neighbour.
"""

from collections.abc import Callable

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QApplication, QHBoxLayout, QPushButton, QWidget

from gatewright_gui.pages.console.outcome import OutcomePanel
from gatewright_gui.pages.console.request import RequestPanel
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.look import current_look, tie_icon
from gatewright_gui.session.calls import CallRecord, CallRequest, Kind, StageRow
from gatewright_gui.session.console import Console
from gatewright_gui.session.question import PendingApproval

RUN, RUN_TIP = (
    "Run in copy",
    "Send the call through the gate, in a disposable copy of the workspace (Ctrl+Shift+Return)",
)
LIVE, LIVE_TIP = (
    "Run LIVE",
    "Send the call through the gate, in the real workspace: what it changes stays changed (Ctrl+Shift+Return)",
)
ELSEWHERE, ELSEWHERE_TIP = (
    "Decide, not run",
    "The program that has this tool runs it: here the call is decided only (Ctrl+Shift+Return)",
)


class RunButton(QPushButton):
    """The page's main button."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("console.run")
        self.setAutoDefault(False)
        self.setProperty("kind", "primary")
        self.say(elsewhere=False)

    def say(self, *, elsewhere: bool, live: bool = False) -> None:
        """Say whether what is chosen is run here, and whether that is real."""
        words, tip = (ELSEWHERE, ELSEWHERE_TIP) if elsewhere else (LIVE, LIVE_TIP) if live else (RUN, RUN_TIP)
        self.setText(words)
        self.setAccessibleName(words)
        self.setToolTip(tip)
        self.setProperty("kind", "live" if live and not elsewhere else "primary")
        self.style().unpolish(self)
        self.style().polish(self)
        tie_icon(self, "shield-check" if elsewhere else "play", "on_accent")


class ActBar(QWidget):
    """Cancel has a place of its own, empty while no call is under way: an impatient click hits nothing else."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.decide = _button(
            "Decide", "console.decide", "Ask the gate, without any effect (Ctrl+Return)", "shield-check"
        )
        self.run = RunButton()
        self.cancel = _button("Cancel", "console.cancel", "Give the call up (Esc)", "circle-stop")
        self.live = _button("Go live", "console.live", "Run in the real workspace (Ctrl+Shift+L)", None)
        self.live.setProperty("kind", "danger")
        self._lay_out()

    def show_state(self, *, busy: bool, can_call: bool, is_live: bool, is_open: bool) -> None:
        """What can be done now."""
        for button in (self.decide, self.run):
            button.setEnabled(can_call and not busy)
        self.cancel.setVisible(busy)
        self.live.setHidden(is_live)
        self.live.setEnabled(not busy and is_open)

    def show_way(self, *, elsewhere: bool, live: bool) -> None:
        """Where a run is made: `elsewhere`: in the program that has the tool, so that it is decided only."""
        self.run.say(elsewhere=elsewhere, live=live)
        self.decide.setHidden(elsewhere)  # there would be two that do the same

    def _lay_out(self) -> None:
        tokens = current_look().tokens
        policy = self.cancel.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.cancel.setSizePolicy(policy)
        row = QHBoxLayout(self)
        row.setContentsMargins(tokens.space_2, tokens.space_2, tokens.space_2, tokens.space_2)
        row.setSpacing(tokens.space_2)
        row.addWidget(self.decide)
        row.addWidget(self.run)
        row.addWidget(self.cancel)
        row.addStretch(1)
        row.addWidget(self.live)


def _button(text: str, name: str, tip: str, icon: str | None) -> QPushButton:
    button = QPushButton(text)
    button.setObjectName(name)
    button.setAccessibleName(text)
    button.setToolTip(tip)
    button.setAutoDefault(False)
    if icon is not None:
        tie_icon(button, icon)
    return button


TASK = "console.call"


class CallControl(QObject):
    """One call at a time. `changed` is called when one begins and when it ended."""

    def __init__(
        self,
        context: PageContext,
        console: Console,
        request: RequestPanel,
        outcome: OutcomePanel,
        acts: ActBar,
        page: QWidget,
        changed: Callable[[], None],
    ) -> None:
        super().__init__(page)
        self._context, self._console, self._page, self._changed = context, console, page, changed
        self._request, self._outcome, self._acts = request, outcome, acts
        self._home: QWidget | None = None
        self._is_instead = False
        self._connect()

    def decide(self) -> None:
        """Ask the gate."""
        request = self._request.request()
        if request is not None:
            self._start("decide", request)

    def run(self) -> None:
        """Run in the copy; a tool that its own program runs is decided instead, which is said."""
        request = self._request.request()
        if request is not None:
            self._is_instead = self._request.runs_elsewhere
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
        make = self._console.decide if kind == "decide" else self._console.run
        self._context.tasks.start(make(request, earlier), TASK)

    # on its way

    def _began(self, kind: Kind) -> None:
        self._outcome.begin(kind)
        self._keep_home()
        self._changed()

    def _passed(self, row: StageRow) -> None:
        if self._console.is_busy:
            self._outcome.pass_stage(row)

    def _asked(self, question: PendingApproval) -> None:
        if self._console.is_busy:
            self._outcome.ask(question)
            self._context.navigator.tell_question(open_=True)

    def _answered(self) -> None:
        self._context.navigator.tell_question(open_=False)
        self._outcome.answered()

    def _copying(self, text: str) -> None:
        if self._console.is_busy:
            self._outcome.strip.start(text or self._outcome.running, can_cancel=True)

    def _finished(self, record: CallRecord) -> None:
        self._outcome.show_record(record)
        if self._is_instead:
            self._outcome.say_run_elsewhere()

    def _ended(self) -> None:
        self._is_instead = False
        self._context.navigator.tell_question(open_=False)
        self._outcome.end()
        for button in (self._acts.decide, self._acts.run):
            button.setEnabled(self._request.agent_id is not None)
        self._go_home()
        self._changed()

    # the keys

    def _keep_home(self) -> None:
        focus = QApplication.focusWidget()
        self._home = focus if focus is not None and self._page.isAncestorOf(focus) else None
        if focus in {self._acts.decide, self._acts.run}:
            self._lend_keys()

    def _lend_keys(self) -> None:
        self._outcome.stages.setFocus(Qt.FocusReason.OtherFocusReason)

    def _go_home(self) -> None:
        home, self._home = self._home, None
        focus = QApplication.focusWidget()
        borrowed = {self._outcome.stages, self._acts.cancel, self._outcome.strip.cancel_button}
        if home is not None and (focus is None or focus in borrowed):
            home.setFocus(Qt.FocusReason.OtherFocusReason)

    def _connect(self) -> None:
        console, outcome, acts = self._console, self._outcome, self._acts
        acts.decide.clicked.connect(self.decide)
        acts.run.clicked.connect(self.run)
        acts.cancel.clicked.connect(self.cancel)
        outcome.cancel_requested.connect(self.cancel)
        outcome.approval.keys_given_back.connect(self._lend_keys)
        for signal, slot in (
            (console.began, self._began),
            (console.stage_passed, self._passed),
            (console.finished, self._finished),
            (console.failed, outcome.say_failed),
            (console.ended, self._ended),
            (console.asked, self._asked),
            (console.answered, self._answered),
            (console.copying, self._copying),
        ):
            signal.connect(slot)
