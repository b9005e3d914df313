"""The Console page put together: a request at the left, what became of it at the right."""

from collections.abc import Mapping
from typing import cast

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QKeyEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QWidget

from gatewright.workspace.api import (
    Address,
    ChangeSet,
    GatewrightError,
    JsonRefused,
    JsonValue,
    Lineage,
    parse_object,
)
from gatewright_gui.pages.page import Page, PageContext
from gatewright_gui.pages.trial.approval import KEY
from gatewright_gui.pages.trial.blob import file_ending
from gatewright_gui.pages.trial.call_bar import CallBar
from gatewright_gui.pages.trial.history import HistoryPanel
from gatewright_gui.pages.trial.live import LiveBar
from gatewright_gui.pages.trial.outcome import OutcomePanel
from gatewright_gui.pages.trial.request import RequestPanel
from gatewright_gui.pages.trial.verdict import ExactDialog
from gatewright_gui.qt.dialog import choose_save_file, run_dialog
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.layout import column_of, holding, stretch
from gatewright_gui.qt.widget import Splitter
from gatewright_gui.session.calls import CallRecord, CallRequest, RuleLink, callable_tools, with_missing
from gatewright_gui.session.console import Console
from gatewright_gui.session.question import place_words

DELAY_MS = 150
MAX_COMPARED = 50_000
"""Characters of JSON that are compared by what they say; longer ones to the letter."""


class TrialPage(Page):
    """One call at a time."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self._context = context
        self._is_stale = True
        self._followed: tuple[str | None, ...] = ()
        self._asked_for: tuple[str, str | None] | None = None
        self._to_fill_in: CallRequest | None = None
        self._decides_next = False
        self._path = context.document.path
        self.console = Console(context.document, self)
        self.request = RequestPanel(context)
        self.history = HistoryPanel(context, self.console, lambda: self.request.agent_id)
        self.outcome = OutcomePanel(context.sizes, context.tasks)
        self.calls = CallBar(context, self.console, self.request, self.outcome)
        self.decide_button, self.run_button = self.calls.decide_button, self.calls.run_button
        self.cancel_button, self.live_button = self.calls.cancel_button, self.calls.live_button
        self.reset_copy_button = self.history.reset_copy_button
        self.live_bar = LiveBar(context, self.console)
        self._compare = QTimer(self, singleShot=True, interval=DELAY_MS)
        self._compare.timeout.connect(self._mark_stale)
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
        """The widget with the keys when one left the page, else what is to be filled in."""
        last = cast("QWidget | None", self.focusWidget())
        if last is not None and last.isVisibleTo(self) and last.isEnabledTo(self):
            return last
        return self.request.first_field

    def focus_search(self) -> None:
        """Ctrl+F: search the calls where the keys are among them, else the result."""
        if self.history.view.hasFocus():
            self.history.bar.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        else:
            self.outcome.result.open_find()

    # following the document

    def _let_go(self) -> None:
        """Nothing of a workspace that is gone; only what was filled in stays until another file is opened."""
        self.calls.cancel()
        self.outcome.clear()
        self._to_fill_in, self._asked_for, self._followed = None, None, ()
        self.request.set_agents((), None)
        self.request.set_tools(())
        self.history.show_session()
        self._show_busy()

    def _follow_document(self) -> None:
        if self._context.document.path != self._path:
            self._path = self._context.document.path
            self.request.forget()
        self._stale()

    def _follow_change(self, changes: ChangeSet) -> None:
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
        """The agent that was chosen on another page since; its tool too, as long as nobody touched the request."""
        selection = self._context.selection
        agent_id = selection.agent_id
        chosen = (agent_id, selection.tool, selection.operation)
        if chosen == self._followed:
            return
        self._followed = chosen
        if self.console.is_busy:
            return  # what is asked about stays in view
        if agent_id is not None and agent_id != self.request.agent_id:
            self.request.choose_agent(agent_id)
            self._load_tools()
        else:
            self.request.follow(selection.tool, selection.operation)

    def _try_call(
        self,
        agent_id: str,
        tool: str,
        operation: str | None,
        given: Mapping[str, JsonValue] | None,
        folder: str,
        lineage: Lineage | None,
    ) -> None:
        """Somebody asked on another page to try a tool here."""
        if self.console.is_busy:
            return
        self._to_fill_in = None if given is None else CallRequest(agent_id, tool, given, folder, lineage)
        self._decides_next = False
        self._asked_for = tool, operation
        self._context.selection.choose_agent(agent_id)
        self.request.choose_agent(agent_id)
        self._load_tools()

    def _decide_next(self) -> None:
        self._decides_next = self._to_fill_in is not None

    def _load_tools(self) -> None:
        self.history.show_session()
        self._show_busy()
        agent_id = self.request.agent_id
        if agent_id is None:
            self.request.set_tools(())
        else:
            self._context.tasks.start(self._ask_tools(agent_id), "console.tools", replace=True)

    async def _ask_tools(self, agent_id: str) -> None:
        try:
            tools = await self._context.deriver.derive(callable_tools, agent_id)
        except GatewrightError as error:
            self.request.set_tools(())
            self.request.message.show_message("error", str(error))
            return
        if tools is not None and agent_id == self.request.agent_id:
            selection = self._context.selection
            tools = with_missing(self._context.document.workspace, agent_id, tools)
            self.request.set_tools(tools, selection.tool, selection.operation)
            if self._asked_for is not None:
                self.request.choose_tool(*self._asked_for)
                self._asked_for = None
            if self._to_fill_in is not None:
                self.request.put(self._to_fill_in, in_form=True)
                self._to_fill_in = None
                if self._decides_next:
                    self._decides_next = False
                    self.decide()

    def _choose_agent(self, agent_id: str) -> None:
        self._context.selection.choose_agent(agent_id)
        self._load_tools()

    # calls

    def decide(self) -> None:
        """Ask the gate."""
        self.calls.decide()

    def run(self) -> None:
        """Send the call through the whole gate."""
        self.calls.run()

    def end(self) -> None:
        """End the thread of the calls and throw the copy away."""
        self.console.close()

    def cancel(self) -> None:
        """Give up the call that is under way."""
        self.calls.cancel()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Escape, where nothing nearer to the keys takes it, gives up the call that is under way."""
        if event.key() == Qt.Key.Key_Escape and self.console.is_busy:
            self.cancel()
        else:
            super().keyPressEvent(event)

    def _edit_again(self, record: CallRecord) -> None:
        self.request.choose_agent(record.request.agent_id)
        self._choose_agent(record.request.agent_id)
        self.request.put(record.request)

    def _show_again(self, record: CallRecord) -> None:
        if not self.console.is_busy:
            self.outcome.message.dismiss()
            self.outcome.show_record(record)

    def _save_result(self, record: CallRecord) -> None:
        self._context.tasks.start(self._write(record), "console.save", replace=True)

    async def _write(self, record: CallRecord) -> None:
        """Save a result to a file that is chosen; what went wrong is said."""
        is_json = (record.output or "").lstrip()[:1] in {"{", "["}
        name = f"result-{record.number}{file_ending(record.blob, is_json=is_json)}"
        start = self._context.document.workspace.folder / name
        path = await choose_save_file(self, tr("Save the result"), start)
        if path is None:
            return
        try:
            count = await self.console.save_result(record, path)
        except OSError as error:
            words = tr("not saved to {file}: {reason}", file=path, reason=error.strerror or error)
            self._context.document.say("error", words)
            return
        self._context.document.say(
            "info", tr("wrote {size} to {file}", size=counted(count, "byte", "bytes"), file=path)
        )

    def _show_exact(self, record: CallRecord) -> None:
        self._context.tasks.start(run_dialog(ExactDialog(self, record)), "console.exact", replace=True)

    # whether what is shown of a call is still of the call that is filled in

    def _compare_soon(self, *_what: object) -> None:
        if self.outcome.shown is not None:
            self._compare.start()

    def _mark_stale(self) -> None:
        record = self.outcome.shown
        if record is not None:
            self.outcome.verdict.set_stale(stale=not self._is_filled_in(record.request))
            self.calls.show_next()

    def _is_filled_in(self, request: CallRequest) -> bool:
        now = self.request
        if (now.agent_id, now.tool_name, now.lineage) != (request.agent_id, request.tool, request.lineage):
            return False
        given = now.raw.text if now.mode.current == "json" else now.form.values_as_far()
        return given == request.arguments or _value(given) == _value(request.arguments)

    # rules

    def _go_to_rule(self, rule: RuleLink) -> None:
        self._context.tasks.start(self._find_rule(rule, self.outcome.shown), "console.rule", replace=True)

    def _go_to_place(self, address: Address) -> None:
        self._go_to_rule(RuleLink(place_words(address), address, None))

    def _go_to_session_rule(self, rule: RuleLink) -> None:
        self._context.tasks.start(self._find_rule(rule, None), "console.rule", replace=True)

    def _show_line(self, rule: RuleLink) -> None:
        self._context.tasks.start(self._find_line(rule), "console.rule", replace=True)

    async def _find_rule(self, rule: RuleLink, record: CallRecord | None) -> None:
        place = await self.console.place_of(rule, record)
        if place is None:
            self._say_gone(rule)
        else:
            self._context.navigator.go_to_rule(place)

    async def _find_line(self, rule: RuleLink) -> None:
        line = await self.console.line_of(rule)
        if line is None:
            self._say_gone(rule)
        else:
            self._context.navigator.go_to_line(line)

    def _say_gone(self, rule: RuleLink) -> None:
        self._context.document.say("warning", tr("`{place}` is no longer in the policy", place=rule.rule_id))

    # what can be done

    def _live_changed(self) -> None:
        self.outcome.set_live(self.console.is_live)
        self._name_run()
        self._show_busy()

    def _name_run(self) -> None:
        why = self.request.why_not_run(live=self.console.is_live)
        self.calls.show_way(why_not=why, live=self.console.is_live)
        self.outcome.set_why_not(why)

    def _show_busy(self) -> None:
        self.calls.show_state()
        self.live_bar.leave_button.setEnabled(not self.console.is_busy)
        self.history.show_copy(self.live_bar.copy_words())
        self.history.update_buttons()

    # the parts

    def _connect(self) -> None:
        document = self._context.document
        document.closed.connect(self._let_go)
        document.opened.connect(self._follow_document)
        document.policy_changed.connect(self._follow_change)
        self._context.navigator.question_requested.connect(self.outcome.approval.focus_question)
        self._context.navigator.call_requested.connect(self._try_call)
        self._context.navigator.decision_requested.connect(self._decide_next)
        self.request.agent_chosen.connect(self._choose_agent)
        self.request.tool_shown.connect(self._name_run)
        for changed in (self.request.form.changed, self.request.raw.changed, self.request.tool_shown):
            changed.connect(self._compare_soon)
        self.request.agent_chosen.connect(self._compare_soon)
        self.outcome.record_shown.connect(self._compare_soon)
        self.calls.changed.connect(self._show_busy)
        self.live_bar.changed.connect(self._live_changed)
        self.reset_copy_button.clicked.connect(self.live_bar.reset_copy)
        self.live_button.clicked.connect(self.live_bar.toggle)
        self.outcome.result.save_requested.connect(self._save_result)
        self.outcome.verdict.exact_requested.connect(self._show_exact)
        self.outcome.rule_requested.connect(self._go_to_rule)
        self.outcome.line_requested.connect(self._show_line)
        self.outcome.blank.action_requested.connect(self.request.fill_example)
        self.history.session.rule_requested.connect(self._go_to_session_rule)
        self.outcome.approval.place_requested.connect(self._go_to_place)
        self.history.record_chosen.connect(self._show_again)
        self.history.again_requested.connect(self.calls.again)
        self.history.edit_requested.connect(self._edit_again)
        for keys, act in (
            ("Ctrl+Return", self.decide),
            ("Ctrl+Enter", self.decide),
            ("Ctrl+Shift+Return", self.run),
            ("Ctrl+Shift+Enter", self.run),
            ("Ctrl+Shift+L", self.live_bar.toggle),
            ("Ctrl+Shift+Del", self.live_bar.reset_copy),
            (KEY, self.outcome.approval.focus_question),
        ):
            shortcut = QShortcut(QKeySequence(keys), self, context=Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(act)

    def _lay_out(self) -> None:
        left = Splitter(Qt.Orientation.Vertical, "console.left", self._context.sizes)
        left.addWidget(holding(column_of(stretch(self.request), self.calls)))
        left.addWidget(self.history)
        left.restore((470, 230))
        split = Splitter(Qt.Orientation.Horizontal, "console.split", self._context.sizes)
        split.addWidget(left)
        split.addWidget(self.outcome)
        split.setStretchFactor(1, 1)
        split.restore((460, 760))
        column_of(self.live_bar, stretch(split), into=self)
        before: QWidget = self.run_button  # an open question comes right after what sends the call
        for part in (self.cancel_button, self.live_button, *self.outcome.approval.tab_parts):
            self.setTabOrder(before, part)
            before = part


def _value(arguments: str | Mapping[str, JsonValue]) -> object:
    if not isinstance(arguments, str):
        return dict(arguments)
    if len(arguments) > MAX_COMPARED:
        return arguments
    try:
        return parse_object(arguments)
    except JsonRefused:
        return arguments
