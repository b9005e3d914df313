"""The audit log: filters and a timeline above the calls, the chosen one at the right.

Over 450 lines, because every answer of the log and every button of its parts ends in a short method here.
"""

import asyncio

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtWidgets import QPushButton, QWidget
from shiboken6 import isValid

from gatewright.workspace.api import GatewrightError
from gatewright_gui.pages.activity.call_model import CLIENT, TOOK, CallModel, FilterBar, fit_reason, size_columns
from gatewright_gui.pages.activity.detail_pane import DetailPane, RuleDialog
from gatewright_gui.pages.page import Page, PageContext
from gatewright_gui.pages.timeline import TimelineBar
from gatewright_gui.qt.dialog import choose_save_file, shown
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.layout import column_of, named, stretch
from gatewright_gui.qt.listing import Listing
from gatewright_gui.qt.look import Role, current_look, tie_icon
from gatewright_gui.qt.widget.chip import Chip
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.message_bar import FootBars, MessageBar
from gatewright_gui.qt.widget.progress_strip import ProgressStrip
from gatewright_gui.qt.widget.section_header import SectionHeader
from gatewright_gui.qt.widget.splitter import split_of
from gatewright_gui.session.audit import (
    AuditChoices,
    AuditFilter,
    AuditReport,
    AuditTrail,
    Found,
    LoggedCall,
    Timeline,
    prove,
    write_out,
)
from gatewright_gui.session.audit_call import (
    CallDetail,
    RuleToday,
    decide_today,
    detail_of,
    mendings_of,
    rule_today,
    text_change,
)
from gatewright_gui.session.ruleplace import place_of

LOOK_MS = 500
"""How often it is looked what others wrote, while the page is there to be seen."""
_TELL_MS = 120
_WIDE = 760
"""Pixels from which on the table says of each call who sent it and how long it took."""


class CallsPage(Page):
    """Everything is read beside the window; rows of other processes come on top without moving what one reads."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self.setObjectName("audit")
        self._context, self._document = context, context.document
        self._report: AuditReport | None = None
        self._rule: RuleToday | None = None
        self._goal: int | None = None
        """The number of the call that is to be chosen as soon as it is there."""
        self._failure = ""
        self._has_clients = False
        self.trail = AuditTrail(context.document, context.tasks, self)
        self.header = SectionHeader(tr("Audit"))
        self.proof = named(Chip("", role="muted"), "audit.proof")
        self.proof.set_chip(*_proof_words(None))
        self.verify_button = _button(
            tr("Verify"), "shield-check", "audit.verify", tr("Prove that no row was changed, taken out, added or moved")
        )
        self.export_button = _button(
            tr("Export..."), "upload", "audit.export", tr("Write the calls that are shown as JSON Lines")
        )
        for control in (self.proof, self.verify_button, self.export_button):
            self.header.add_control(control)
        self.filters = FilterBar()
        self.timeline = named(TimelineBar(), "audit.timeline")
        self.message = named(MessageBar(), "audit.message")
        self.strip = ProgressStrip()
        self.model = CallModel()
        self.empty = named(EmptyState("scroll-text", "", ""), "audit.empty")
        self.list = Listing(self.model, "audit.calls", tr("Calls"), self.empty)
        self.view = self.list.view
        self.detail = DetailPane()
        self._filter_soon = QTimer(self, singleShot=True, interval=_TELL_MS)
        self._look = QTimer(self, interval=LOOK_MS)
        self._lay_out()
        self._connect()
        self._show_state()
        self._look.start()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """Where there is little room the rows say less."""
        if event.type() == QEvent.Type.Resize:
            self._fit_columns()
        return super().eventFilter(watched, event)

    def _fit_columns(self) -> None:
        """No clients in the log, no column for them."""
        is_narrow = self.list.width() < _WIDE
        self.view.setColumnHidden(TOOK, is_narrow)
        self.view.setColumnHidden(CLIENT, is_narrow or not self._has_clients)
        fit_reason(self.view)

    def _size(self, _why: object = None) -> None:
        size_columns(self.view)

    def _offer(self, choices: AuditChoices) -> None:
        self._has_clients = bool(choices.clients)
        self.filters.set_choices(choices)
        self._fit_columns()

    # the window's side

    def main_view(self) -> QWidget:
        """The calls."""
        return self.view if self.view.isVisibleTo(self) else self.filters.search

    def focus_search(self) -> None:
        """Ctrl+F: the words of the reason."""
        self.filters.search.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def page_shown(self) -> None:
        """Others may have written meanwhile."""
        self.trail.look()

    def end(self) -> None:
        """Let go of the log."""
        self._look.stop()
        self.trail.end()

    # what is found

    @property
    def current(self) -> LoggedCall | None:
        """The chosen call, once it is read."""
        return self.list.current

    def _began(self) -> None:
        self._failure, self._report, self._goal = "", None, None
        self._context.tasks.cancel("audit.verify")
        self.proof.set_chip(*_proof_words(None))
        self.message.dismiss()
        self.detail.show_detail(None)
        self.filters.clear()
        self.model.set_found(self.trail.now)
        self._show_counts(Timeline())

    def _show_found(self, found: Found) -> None:
        bar, row = self.view.verticalScrollBar(), self.view.rowAt(0)
        top, was_at = self.model.key_at(row), bar.value()
        chosen = self.model.key_at(self.view.currentIndex().row())
        self.model.set_found(found)
        if top is not None and was_at and (now := self.model.find(top)) >= 0:
            bar.setValue(was_at + (now - row) * self.view.rowHeight(now))
        self._failure = ""
        self._show_state()
        if self._goal is not None and self._select(self._goal):
            self._goal = None
        detail = self.detail.detail
        if (chosen is not None and found.changed and chosen >= found.changed) or (detail and detail.is_orphan):
            self._choose()

    def _act_on_empty(self) -> None:
        if self.trail.now.rows:
            self.filters.clear()
        else:
            self._context.navigator.ask_for_client()

    def _show_state(self) -> None:
        found = self.trail.now
        count = len(found.numbers)
        if self._failure:
            self.empty.set_state("circle-alert", tr("The log cannot be read"), self._failure)
        elif found.rows and not count and found.is_whole:
            words = tr("Try other filters or another time range.")
            self.empty.set_state("list-filter", tr("No call fits"), words, action=tr("Show all"))
        elif not found.is_whole:
            self.empty.set_unknown()
        else:
            words = tr(
                "Every call through the gate is kept here, whoever makes it: a program, a client, the Console while it "
                "is live. Calls in the copy of the Console are not recorded."
            )
            self.empty.set_state("scroll-text", tr("No calls yet"), words, action=tr("Connect a client..."))
        is_there = bool(count) and not self._failure
        takes_keys = is_there and self.filters.search.hasFocus() and self.filters.filter == AuditFilter()
        self.list.show_view(is_there)
        if takes_keys:
            self.view.setFocus(Qt.FocusReason.OtherFocusReason)
        self.timeline.setVisible(bool(self.timeline.timeline.stretches) and not self._failure)
        note = counted(count, "entry", "entries") if count else ""
        if note and not found.is_whole:
            note = tr("{entries}, {part} % of the log read", entries=note, part=100 * found.read // found.rows)
        self.header.set_note(note)
        self.verify_button.setEnabled(bool(found.rows) or bool(self._failure))
        self.export_button.setEnabled(is_there)

    def _show_counts(self, timeline: Timeline) -> None:
        self.timeline.set_timeline(timeline)
        self._show_state()

    def _fail(self, words: str) -> None:
        self._failure = words
        self.detail.show_detail(None)
        self._show_state()

    def _narrow(self) -> None:
        self.timeline.set_span(self.filters.span)
        self.trail.set_filter(self.filters.filter, self.filters.period)

    def _bring_soon(self, numbers: tuple[int, ...]) -> None:
        if not self._context.tasks.closed:
            self._context.tasks.start(self._bring(numbers), "audit.calls")

    async def _bring(self, numbers: tuple[int, ...]) -> None:
        calls = await self.trail.calls(numbers)
        if not isValid(self):
            return
        self.model.take(calls)
        if self.current is not None and (self.detail.detail is None or self.detail.detail.call != self.current):
            self._choose()

    # the chosen call

    def _choose(self, *_what: object) -> None:
        call = self.current
        if call is not None:
            self._context.tasks.start(self._show_call(call), "audit.detail", replace=True)

    async def _show_call(self, call: LoggedCall) -> None:
        rows, parent = await self.trail.rows_of(call), await self.trail.parent_of(call)
        if not isValid(self) or not rows:
            return
        detail = detail_of(call, rows, parent)
        self.detail.show_detail(detail)
        self._show_chain()
        self._rule = None
        await self._find_rule(detail)

    async def _find_rule(self, detail: CallDetail) -> None:
        """Say where the rule that decided stands today."""
        if detail.rule is None or not self._document.is_open:
            return
        rule = await asyncio.to_thread(rule_today, self._document.workspace, detail)
        if isValid(self) and self.detail.detail is detail:
            self._rule = rule
            self.detail.show_rule(rule)

    def _select(self, number: int) -> bool:
        """Choose the call with that number, where it is shown."""
        row = self.model.find(number)
        if row >= 0:
            self.view.setCurrentIndex(self.model.index(row, 0))
            self.view.setFocus(Qt.FocusReason.OtherFocusReason)
        return row >= 0

    def _go_to_parent(self) -> None:
        parent = self.detail.detail.parent if self.detail.detail is not None else None
        if parent is not None and not self._select(parent.seq):
            self._goal = parent.seq
            self.filters.set_within(parent.call_id, parent.called)

    def _show_steps(self) -> None:
        """Show the chosen call with its steps, or a step with the others, and nothing else."""
        detail = self.detail.detail
        if detail is None:
            return
        call, parent = detail.call, detail.parent
        self._goal = call.seq
        if call.steps or call.started or parent is None:
            self.filters.set_within(call.call_id if call.steps or call.started else call.within, call.called)
        else:
            self.filters.set_within(parent.call_id, parent.called)

    def _show_chain(self) -> None:
        """Say whether the rows of the chosen call are proved."""
        detail, report = self.detail.detail, self._report
        if detail is None:
            return
        if report is None:
            self.detail.show_chain(*_proof_words(None))
        elif detail.call.last <= report.proved_to:
            self.detail.show_chain(tr("proved"), "shield-check", "allow")
        elif report.is_sound:
            self.detail.show_chain(tr("newer than the proof"), "shield", "muted")
        else:
            self.detail.show_chain(tr("not proved"), "shield-x", "deny")

    def _go_to_rule(self) -> None:
        rule, detail = self._rule, self.detail.detail
        if rule is None or rule.line is None or detail is None:
            return
        call = detail.call
        called = (call.tool, call.operation or None) if call.agent in self._document.policy.agents else None
        place = place_of(self._document.policy, rule.address, rule.line, called)
        if place is not None:
            self._context.navigator.go_to_rule(place)

    def _decide_again(self) -> None:
        detail = self.detail.detail
        if detail is not None:
            self._context.tasks.start(self._again(detail), "audit.again", replace=True)

    async def _again(self, detail: CallDetail) -> None:
        try:
            again = await asyncio.to_thread(decide_today, self._document.workspace, detail)
        except GatewrightError as error:
            again = str(error)
        if isValid(self) and self.detail.detail is detail:
            self.detail.show_again(again)

    def _open_in_console(self) -> None:
        detail = self.detail.detail
        if detail is None:
            return
        call = detail.call
        if call.agent not in self._document.policy.agents:
            self._document.say(
                "info", tr("there is no agent `{agent}` in the policy as it is edited", agent=call.agent)
            )
            return
        go_to_call = self._context.navigator.go_to_call
        go_to_call(call.agent, call.tool, call.operation or None, detail.arguments, detail.folder)

    def _mend(self) -> None:
        detail = self.detail.detail
        if detail is not None:
            self._context.tasks.start(self._make_rule(detail), "audit.mend", replace=True)

    async def _make_rule(self, detail: CallDetail) -> None:
        mendings = await asyncio.to_thread(mendings_of, self._document.workspace, detail)
        if not mendings:
            words = tr(
                "no rule can be made of it: the policy has no agent `{agent}` with such a tool", agent=detail.call.agent
            )
            self._document.say("info", words)
            return
        dialog = RuleDialog(self, detail.call.called, mendings)
        tasks = self._context.tasks
        dialog.looked_at.connect(lambda: tasks.start(self._tell_change(dialog), "audit.change", replace=True))
        dialog.list.setCurrentRow(0)
        if await shown(dialog) and dialog.chosen is not None and self._document.push(dialog.chosen.make):
            await self._again(detail)
            await self._find_rule(detail)  # it stands elsewhere now

    async def _tell_change(self, dialog: RuleDialog) -> None:
        mending = dialog.chosen
        if mending is None:
            return
        edit = mending.make(self._document.policy, self._document.catalog)
        text = await self._context.deriver.derive(text_change, edit)
        if text is not None and isValid(dialog):
            dialog.show_change(mending, text)

    # the whole log

    def _verify(self) -> None:
        self._context.tasks.start(self._prove(), "audit.verify", replace=True)

    async def _prove(self) -> None:
        self.strip.start(tr("Going through the chain"))
        self.verify_button.setEnabled(False)
        try:
            self._report = await prove(self._document, self._context.deriver, self._tell_progress)
        finally:
            if isValid(self):
                self.strip.stop()
                self._show_state()
        report = self._report
        if report is None:
            return
        self.proof.set_chip(*_proof_words(report))
        if report.problems:
            self.message.show_message(
                "error", tr("The log failed verification: {problems}", problems="; ".join(report.problems[:3]))
            )
        else:
            self.message.dismiss()
        self._show_chain()

    def _tell_progress(self, row: int) -> None:
        rows = max(self.trail.now.rows, row, 1)
        self.strip.set_progress(row / rows, tr("Going through the chain: row {row:,} of {rows:,}", row=row, rows=rows))

    def _export(self) -> None:
        self._context.tasks.start(self._write(), "audit.export", replace=True)

    async def _write(self) -> None:
        wanted = self.filters.filter
        what = (
            tr("Export all rows of the log")
            if wanted == AuditFilter()
            else tr("Export the rows of the calls that are shown")
        )
        start = self._document.workspace.folder / "audit.jsonl"
        path = await choose_save_file(self, what, start, tr("JSON Lines (*.jsonl);;Any file (*)"))
        if path is None:
            return
        self.strip.start(tr("Writing {file}", file=path.name))
        try:
            count = await write_out(self.trail, wanted, path, self._tell_written)
        except (OSError, GatewrightError) as error:
            self._document.say("error", tr("not exported: {error}", error=error))
            return
        finally:
            if isValid(self):
                self.strip.stop()
        self._document.say("info", tr("wrote {rows} to {file}", rows=counted(count, "row", "rows"), file=path))

    def _tell_written(self, count: int) -> None:
        self.strip.set_progress(None, tr("Writing: {rows}", rows=counted(count, "row", "rows")))

    def _cancel(self) -> None:
        for name in ("audit.verify", "audit.export"):
            self._context.tasks.cancel(name)

    # the parts

    def _connect(self) -> None:
        current_look().changed.connect(self._size)
        self.trail.began.connect(self._began)
        self.trail.found.connect(self._show_found)
        self.trail.counted.connect(self._show_counts)
        self.trail.named.connect(self._offer)
        self.trail.failed.connect(self._fail)
        self.model.wanted.connect(self._bring_soon)
        self.filters.changed.connect(self._filter_soon.start)
        self._filter_soon.timeout.connect(self._narrow)
        self.filters.leave_requested.connect(lambda: self.view.setFocus(Qt.FocusReason.OtherFocusReason))
        self.timeline.span_chosen.connect(self.filters.set_span)
        self._context.navigator.span_requested.connect(self.filters.set_span)
        self.empty.action_requested.connect(self._act_on_empty)
        self.view.selectionModel().currentChanged.connect(self._choose)
        self.verify_button.clicked.connect(self._verify)
        self.export_button.clicked.connect(self._export)
        self.strip.cancel_requested.connect(self._cancel)
        self._look.timeout.connect(lambda: self.trail.look() if self.isVisible() else None)
        self.detail.rule_requested.connect(self._go_to_rule)
        self.detail.parent_requested.connect(self._go_to_parent)
        self.detail.steps_requested.connect(self._show_steps)
        self.detail.again_requested.connect(self._decide_again)
        self.detail.console_requested.connect(self._open_in_console)
        self.detail.mend_requested.connect(self._mend)

    def _lay_out(self) -> None:
        size_columns(self.view)
        panes, across = (self.list, self.detail), Qt.Orientation.Horizontal
        split = split_of(across, "audit.split", self._context.sizes, panes, (860, 340), 0)
        for at, share in enumerate((5, 1)):
            split.setStretchFactor(at, share)
        self.list.installEventFilter(self)
        column_of(self.header, self.filters, self.timeline, stretch(split), into=self)
        FootBars(self, self.strip, self.message)


def _button(words: str, icon: str, name: str, tip: str) -> QPushButton:
    button = named(QPushButton(words), name, spoken=words.rstrip("."), tip=tip)
    tie_icon(button, icon)
    return button


def _proof_words(report: AuditReport | None) -> tuple[str, str, Role]:
    if report is None:
        return tr("not verified"), "shield", "muted"
    if report.is_sound:
        return tr("proved: {rows}", rows=counted(report.rows, "row", "rows")), "shield-check", "allow"
    return counted(len(report.problems), "problem", "problems"), "shield-x", "deny"
