"""The Console page put together: a request at the left, what became of it at the right.

It decides and runs nothing: the session does, beside the window. Over 400 lines, because every signal of the parts ends
in a short method here.
"""

from typing import cast

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QApplication,
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from gatewright.base.errors import GatewrightError
from gatewright.policy.edit import ChangeSet
from gatewright_gui.pages.console.approval import KEY
from gatewright_gui.pages.console.history import HistoryPanel
from gatewright_gui.pages.console.livebar import LiveBar
from gatewright_gui.pages.console.outcome import OutcomePanel
from gatewright_gui.pages.console.request import RequestPanel
from gatewright_gui.pages.console.runbutton import RunButton
from gatewright_gui.pages.page import Page, PageContext
from gatewright_gui.qt.dialog import Choice, ask
from gatewright_gui.qt.look import current_look, tie_icon
from gatewright_gui.qt.widget import ElidedLabel, Splitter
from gatewright_gui.session.calls import (
    CallRecord,
    CallRequest,
    Kind,
    RuleLink,
    StageRow,
    shown_tools,
)
from gatewright_gui.session.console import Console
from gatewright_gui.session.conversation import SessionState
from gatewright_gui.session.question import PendingApproval

_CALL = "console.call"
_GO_LIVE = (
    "Runs will then change the real files and blocks of {name}, under the policy as edited now, saved or not. Nothing "
    "takes that back. The audit log of the workspace keeps every call."
)


class ConsolePage(Page):
    """One call at a time."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self._context = context
        self._is_stale = True
        self._followed: tuple[str | None, ...] = ()
        self._is_following = False
        self._home: QWidget | None = None
        self._is_instead = False
        self.console = Console(context.document, self)
        self.request = RequestPanel(context.tasks)
        self.history = HistoryPanel()
        self.outcome = OutcomePanel()
        self.decide_button = self._button(
            "Decide", "console.decide", "Ask the gate, without any effect (Ctrl+Return)", "shield-check"
        )
        self.run_button = RunButton()
        self.cancel_button = self._button("Cancel", "console.cancel", "Give the call up", "circle-stop")
        self.reset_copy_button = self._button(
            "Reset copy", "console.resetcopy", "The next run gets a fresh copy (Ctrl+Shift+Del)", None
        )
        self.reset_copy_button.setProperty("kind", "link")
        self.live_button = self._button("Go live", "console.live", "Run in the real workspace (Ctrl+Shift+L)", None)
        self.live_button.setProperty("kind", "danger")
        self.live_bar = LiveBar()
        self._copy_state = ElidedLabel(role="muted")
        self._lay_out()
        self._connect()
        self._show_busy()

    # the window's side

    def page_shown(self) -> None:
        """Bring up to date what was put off while the page was hidden."""
        if self._is_stale:
            self._refresh()
        self._follow_selection()

    def main_view(self) -> QWidget | None:
        """Where the keys were when one left the page, else what is to be filled in."""
        last = cast("QWidget | None", self.focusWidget())
        if last is not None and last.isVisibleTo(self) and last.isEnabledTo(self):
            return last
        return self.request.first_field

    def focus_search(self) -> None:
        """Ctrl+F: search the result."""
        self.outcome.result.open_find()

    # following the document

    def _opened(self) -> None:
        self._context.tasks.cancel(_CALL)
        self.outcome.clear()
        self._stale()

    def _changed(self, changes: ChangeSet) -> None:
        del changes
        self.outcome.approval.say_edited()
        self._stale()

    def _stale(self) -> None:
        self._is_stale = True
        if self.isVisible():
            self._refresh()

    def _refresh(self) -> None:
        self._is_stale = False
        chosen = self.request.agent_id or self._context.selection.agent_id
        self.request.set_agents(self._context.document.agents, chosen)
        self._load_tools()

    def _follow_selection(self) -> None:
        """What was chosen on another page since; a tool that was typed here is left alone otherwise."""
        selection = self._context.selection
        agent_id = selection.agent_id
        chosen = (agent_id, selection.tool, selection.operation)
        if chosen == self._followed:
            return
        self._followed = chosen
        if agent_id is not None and agent_id != self.request.agent_id:
            self.request.choose_agent(agent_id)
            self._is_following = True
            self._load_tools()
        else:
            self.request.choose_tool(selection.tool, selection.operation)

    def _load_tools(self) -> None:
        agent_id = self.request.agent_id
        if agent_id is None:
            self.history.show_session(None)
        else:
            self._show_session(self.console.session_state(agent_id))
        self._show_busy()
        if agent_id is None:
            self.request.set_tools(())
        else:
            self._context.tasks.start(self._ask_tools(agent_id), "console.tools", replace=True)

    async def _ask_tools(self, agent_id: str) -> None:
        try:
            tools = await self._context.deriver.derive(lambda workspace: shown_tools(workspace, agent_id))
        except GatewrightError as error:
            self.request.set_tools(())
            self.request.message.show_message("error", str(error))
            return
        if tools is not None and agent_id == self.request.agent_id:
            selection = self._context.selection
            self.request.set_tools(tools, selection.tool, selection.operation)
            if self._is_following:
                self._is_following = False
                self.request.choose_tool(selection.tool, selection.operation)

    def _choose_agent(self, agent_id: str) -> None:
        self._context.selection.choose_agent(agent_id)
        self._load_tools()

    # calls

    def decide(self) -> None:
        """Ask the gate."""
        request = self.request.request()
        if request is not None:
            self._start("decide", request)

    def run(self) -> None:
        """Run in the copy; a tool that its own program runs is decided instead, which is said."""
        request = self.request.request()
        if request is not None:
            self._is_instead = self.request.runs_elsewhere
            self._start("decide" if self._is_instead else "run", request)

    def cancel(self) -> None:
        """Give up the call that is under way."""
        self._context.tasks.cancel(_CALL)

    def _again(self, record: CallRecord) -> None:
        self._start(record.kind, record.request)

    def _edit_again(self, record: CallRecord) -> None:
        self.request.choose_agent(record.request.agent_id)
        self._choose_agent(record.request.agent_id)
        self.request.put(record.request)

    def _start(self, kind: Kind, request: CallRequest) -> None:
        if self.console.is_busy:
            return
        call = self.console.decide(request) if kind == "decide" else self.console.run(request)
        self._context.tasks.start(call, _CALL)

    def _began(self, kind: Kind) -> None:
        self.outcome.begin(kind)
        self._keep_home()
        self._show_busy()

    def _passed(self, row: StageRow) -> None:
        if self.console.is_busy:
            self.outcome.pass_stage(row)

    def _finished(self, record: CallRecord) -> None:
        self.outcome.show_record(record)
        if self._is_instead:
            self.outcome.say_run_elsewhere()

    def _ended(self) -> None:
        self._is_instead = False
        self.outcome.end()
        self.decide_button.setEnabled(self.request.agent_id is not None)
        self.run_button.setEnabled(self.request.agent_id is not None)
        self._go_home()
        self._show_busy()

    # the keys stay where they were: what is disabled or hidden for a while would hand them to its neighbour

    def _keep_home(self) -> None:
        focus = QApplication.focusWidget()
        self._home = focus if focus is not None and self.isAncestorOf(focus) else None
        if focus in {self.decide_button, self.run_button}:
            self._lend_keys()

    def _lend_keys(self) -> None:
        self.outcome.stages.setFocus(Qt.FocusReason.OtherFocusReason)

    def _go_home(self) -> None:
        home, self._home = self._home, None
        focus = QApplication.focusWidget()
        borrowed = {self.outcome.stages, self.cancel_button, self.outcome.strip.cancel_button}
        if home is not None and (focus is None or focus in borrowed):
            home.setFocus(Qt.FocusReason.OtherFocusReason)

    def _asked(self, question: PendingApproval) -> None:
        if self.console.is_busy:
            self.outcome.ask(question)

    def _copying(self, text: str) -> None:
        if self.console.is_busy:
            self.outcome.strip.start(text or self.outcome.running, can_cancel=True)

    def _show_session(self, state: SessionState) -> None:
        if state.agent_id != self.request.agent_id:
            return
        self.history.show_session(state)
        if not state.is_whole:
            look = self.console.look_at_session(state.agent_id)
            self._context.tasks.start(look, "console.session", replace=True)

    def _revoke(self, grant_id: str) -> None:
        agent_id = self.request.agent_id
        if agent_id is not None:
            self._context.tasks.start(self._take_back(agent_id, grant_id), "console.revoke", replace=True)

    async def _take_back(self, agent_id: str, grant_id: str) -> None:
        try:
            await self.console.revoke(agent_id, grant_id)
        except GatewrightError as error:
            self._context.document.say("error", f"not revoked: {error}")

    def _reset_session(self) -> None:
        if self.request.agent_id is not None:
            self.console.reset_session(self.request.agent_id)

    def _toggle_live(self) -> None:
        live = self._context.document.live
        if self.console.is_busy:
            return
        if live.is_on:
            live.leave()
        elif self._context.document.is_open:
            self._context.tasks.start(self._go_live(), "console.live", replace=True)

    async def _go_live(self) -> None:
        """Only after a question whose harmless answer is the default."""
        document = self._context.document
        workspace = document.workspace
        choices = (Choice("stay", "Stay in the copy", "primary"), Choice("live", "Go live", "danger"))
        text = _GO_LIVE.format(name=document.name)
        answer = await ask(self, "Run in the real workspace?", text, choices, icon="triangle-alert", role="deny")
        if answer == "live" and document.is_open and document.workspace is workspace:
            document.live.enter()

    def _live_changed(self, is_live: bool) -> None:
        if is_live:
            self.live_bar.show_live(self._context.document.name)
        else:
            self.live_bar.hide()
        self.outcome.set_live(is_live)
        self._name_run()
        self._show_busy()

    def _reset_copy(self) -> None:
        if self.console.is_busy or not self.console.has_copy:
            return
        self._context.tasks.start(self._throw_away(), "console.resetcopy", replace=True)

    async def _throw_away(self) -> None:
        await self.console.reset_copy()
        self._show_busy()

    def _go_to_rule(self, rule: RuleLink) -> None:
        self._context.tasks.start(self._find_rule(rule), "console.rule", replace=True)

    async def _find_rule(self, rule: RuleLink) -> None:
        line = await self.console.line_of(rule)
        if line is None:
            self._context.document.say("warning", f"`{rule.rule_id}` is no longer in the policy")
        else:
            self._context.navigator.go_to_line(line)

    def _show_records(self) -> None:
        self.history.set_records(self.console.records)

    def _name_run(self) -> None:
        elsewhere = self.request.runs_elsewhere
        self.run_button.say(elsewhere=elsewhere, live=self.console.is_live)
        self.decide_button.setHidden(elsewhere)  # there would be two that do the same
        self._copy_state.setHidden(elsewhere)
        self.outcome.set_elsewhere(elsewhere)

    def _show_busy(self) -> None:
        busy = self.console.is_busy
        can_call = not busy and self.request.agent_id is not None
        self.decide_button.setEnabled(can_call)
        self.run_button.setEnabled(can_call)
        self._ending.setCurrentWidget(self.cancel_button if busy else self.reset_copy_button)
        has_copy, is_live = self.console.has_copy, self.console.is_live
        self.reset_copy_button.setEnabled(has_copy and not busy)
        self.reset_copy_button.setHidden(is_live)
        self.live_button.setHidden(is_live)
        self.live_button.setEnabled(not busy and self._context.document.is_open)
        self.live_bar.leave_button.setEnabled(not busy)
        self._copy_state.set_text("in the real workspace" if is_live else "")
        self.reset_copy_button.setToolTip(self._about_copy())

    def _about_copy(self) -> str:
        copied = self.console.copied
        if copied is None:
            return "There is no copy yet: the first run makes one"
        told = [
            f"The copy of {copied.files:,} files holds what was run; the next run gets a fresh one (Ctrl+Shift+Del)"
        ]
        if copied.links_cut:
            told.append("links that lead out of the workspace lead nowhere in it: " + ", ".join(copied.links_cut))
        if copied.unread:
            told.append("could not be read, and stands empty in it: " + ", ".join(copied.unread))
        return "\n".join(told)

    # the parts

    def _button(self, text: str, name: str, tip: str, icon: str | None) -> QPushButton:
        button = QPushButton(text)
        button.setObjectName(name)
        button.setAccessibleName(text)
        button.setToolTip(tip)
        button.setAutoDefault(False)
        if icon is not None:
            tie_icon(button, icon)
        return button

    def _connect(self) -> None:
        document, console = self._context.document, self.console
        document.opened.connect(self._opened)
        document.policy_changed.connect(self._changed)
        self.request.agent_chosen.connect(self._choose_agent)
        self.request.tool_shown.connect(self._name_run)
        self.decide_button.clicked.connect(self.decide)
        self.run_button.clicked.connect(self.run)
        self.cancel_button.clicked.connect(self.cancel)
        self.reset_copy_button.clicked.connect(self._reset_copy)
        self.live_button.clicked.connect(self._toggle_live)
        self.live_bar.leave_requested.connect(self._toggle_live)
        document.live.changed.connect(self._live_changed)
        self.outcome.cancel_requested.connect(self.cancel)
        self.outcome.approval.keys_given_back.connect(self._lend_keys)
        self.outcome.verdict.rule_requested.connect(self._go_to_rule)
        self.outcome.rule_requested.connect(self._go_to_rule)
        self.history.session.rule_requested.connect(self._go_to_rule)
        self.history.revoke_requested.connect(self._revoke)
        self.history.record_chosen.connect(self._show_again)
        self.history.again_requested.connect(self._again)
        self.history.edit_requested.connect(self._edit_again)
        self.history.reset_requested.connect(self._reset_session)
        for signal, slot in (
            (console.began, self._began),
            (console.stage_passed, self._passed),
            (console.finished, self._finished),
            (console.failed, self.outcome.say_failed),
            (console.ended, self._ended),
            (console.asked, self._asked),
            (console.answered, self.outcome.answered),
            (console.copying, self._copying),
            (console.records_changed, self._show_records),
            (console.session_changed, self._show_session),
        ):
            signal.connect(slot)
        for keys, act in (
            ("Ctrl+Return", self.decide),
            ("Ctrl+Enter", self.decide),
            ("Ctrl+Shift+Return", self.run),
            ("Ctrl+Shift+Enter", self.run),
            ("Ctrl+Shift+L", self._toggle_live),
            ("Ctrl+Shift+Del", self._reset_copy),
            (KEY, self.outcome.approval.focus_question),
        ):
            shortcut = QShortcut(QKeySequence(keys), self, context=Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(act)

    def _show_again(self, record: CallRecord) -> None:
        if not self.console.is_busy:
            self.outcome.message.dismiss()
            self.outcome.show_record(record)

    def _lay_out(self) -> None:
        tokens = current_look().tokens
        acts = QHBoxLayout()
        acts.setContentsMargins(tokens.space_2, tokens.space_2, tokens.space_2, tokens.space_2)
        acts.setSpacing(tokens.space_2)
        self._ending = QStackedWidget()
        for part in (self.cancel_button, self.reset_copy_button):
            self._ending.addWidget(part)
        self._ending.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        for part in (self.decide_button, self.run_button):
            acts.addWidget(part)
        acts.addWidget(self._copy_state, 1)
        acts.addWidget(self.live_button)
        acts.addWidget(self._ending)
        asking = QWidget()
        column = QVBoxLayout(asking)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.request, 1)
        column.addLayout(acts)
        left = Splitter(Qt.Orientation.Vertical, "console.left", self._context.sizes)
        left.addWidget(asking)
        left.addWidget(self.history)
        left.restore((470, 230))
        split = Splitter(Qt.Orientation.Horizontal, "console.split", self._context.sizes)
        split.addWidget(left)
        split.addWidget(self.outcome)
        split.setStretchFactor(1, 1)
        split.restore((460, 760))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.live_bar)
        column.addWidget(split, 1)
        self._order_tabs()

    def _order_tabs(self) -> None:
        """An open question comes right after what sends the call."""
        before: QWidget = self.run_button
        for part in (self.live_button, self.cancel_button, self.reset_copy_button, *self.outcome.approval.tab_parts):
            self.setTabOrder(before, part)
            before = part
