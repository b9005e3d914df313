"""What can be done about one call of the log, and about the whole log."""

import asyncio
from collections.abc import Callable, Iterator

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QPushButton
from shiboken6 import isValid

from gatewright.workspace.api import GatewrightError
from gatewright_gui.pages.activity.detail_pane import DetailPane
from gatewright_gui.pages.activity.dialogs import RuleDialog
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.dialog import choose_save_file, run_dialog
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.layout import named
from gatewright_gui.qt.listing import Verb
from gatewright_gui.qt.look import Role, tie_icon
from gatewright_gui.qt.widget.chip import Chip
from gatewright_gui.qt.widget.message_bar import MessageBar, ProgressStrip
from gatewright_gui.session.audit import AuditFilter, AuditReport, AuditTrail, LoggedCall, prove, write_out
from gatewright_gui.session.audit_call import (
    CallDetail,
    RuleToday,
    decide_today,
    mendings_of,
    rule_today,
    text_change,
)
from gatewright_gui.session.place import place_of


class CallVerbs(QObject):
    """Decides the call again that a pane shows, opens it in Try, makes a rule of it, goes to the rule that decided."""

    def __init__(self, context: PageContext, pane: DetailPane) -> None:
        super().__init__(pane)
        self._context, self._document, self._pane = context, context.document, pane
        self._rule: RuleToday | None = None
        pane.rule_requested.connect(self._go_to_rule)

    def offer(self) -> Iterator[Verb]:
        """Offer what can be done about the call."""
        detail = self._pane.detail
        if detail is None or not detail.call.is_call:
            return
        can = detail.arguments is not None
        tip = tr("What the gate says to this call by the policy as it is now, without any effect")
        yield Verb("activity.again", tr("Decide again"), self._decide_again, tip, can=can)
        tip = tr("Open the call in Try, filled in")
        yield Verb("activity.try", tr("Try it"), self._try, tip, can=can)
        tip = tr("Change what the policy says of such calls; undo takes it back")
        yield Verb("activity.mend", tr("Make a rule..."), self._mend, tip, can=can)

    async def find_rule(self, detail: CallDetail) -> None:
        """Say where the rule that decided stands today."""
        if detail.rule is None or not self._document.is_open:
            return
        rule = await asyncio.to_thread(rule_today, self._document.workspace, detail)
        if isValid(self) and self._pane.detail is detail:
            self._rule = rule
            self._pane.show_rule(rule)

    def _go_to_rule(self) -> None:
        rule, detail = self._rule, self._pane.detail
        if rule is None or rule.line is None or detail is None:
            return
        call = detail.call
        called = (call.tool, call.operation or None) if call.agent in self._document.policy.agents else None
        place = place_of(self._document.policy, rule.address, rule.line, called)
        if place is not None:
            self._context.navigator.go_to_rule(place)

    def _decide_again(self) -> None:
        detail = self._pane.detail
        if detail is not None:
            self._context.tasks.start(self._again(detail), "activity.again", replace=True)

    async def _again(self, detail: CallDetail) -> None:
        try:
            again = await asyncio.to_thread(decide_today, self._document.workspace, detail)
        except GatewrightError as error:
            again = str(error)
        if isValid(self) and self._pane.detail is detail:
            self._pane.show_again(again)

    def _try(self) -> None:
        detail = self._pane.detail
        if detail is None:
            return
        call, policy = detail.call, self._document.policy
        try:
            lineage = detail.find_lineage()
        except GatewrightError as error:
            self._document.say("error", str(error))
            return
        agent_id = call.agent if lineage is None else lineage.sub_agent(policy).agent_id
        if agent_id not in policy.agents:
            self._document.say("info", tr("there is no agent `{agent}` in the policy as it is edited", agent=agent_id))
            return
        go_to_call = self._context.navigator.go_to_call
        go_to_call(agent_id, call.tool, call.operation or None, detail.arguments, detail.folder, lineage)

    def _mend(self) -> None:
        detail = self._pane.detail
        if detail is not None:
            self._context.tasks.start(self._make_rule(detail), "activity.mend", replace=True)

    async def _make_rule(self, detail: CallDetail) -> None:
        mendings = await asyncio.to_thread(mendings_of, self._document.workspace, detail)
        if not mendings:
            words = tr(
                "no rule can be made of it: the policy has no agent `{agent}` with such a tool", agent=detail.call.agent
            )
            self._document.say("info", words)
            return
        dialog = RuleDialog(self._pane, detail.call.called, mendings)
        tasks = self._context.tasks
        dialog.looked_at.connect(lambda: tasks.start(self._tell_change(dialog), "activity.change", replace=True))
        dialog.list.setCurrentRow(0)
        if await run_dialog(dialog) and dialog.chosen is not None and self._document.push(dialog.chosen.make):
            await self._again(detail)
            await self.find_rule(detail)  # it stands elsewhere now

    async def _tell_change(self, dialog: RuleDialog) -> None:
        mending = dialog.chosen
        if mending is None:
            return
        edit = mending.make(self._document.policy, self._document.catalog)
        text = await self._context.deriver.derive(text_change, edit)
        if text is not None and isValid(dialog):
            dialog.show_change(mending, text)


class LogVerbs(QObject):
    """Proves the log, and writes out the calls that are wanted; its parts have their places on the page."""

    told = Signal()
    """More is known of the proof, or nothing is under way any more."""

    def __init__(self, context: PageContext, trail: AuditTrail, wanted: Callable[[], AuditFilter]) -> None:
        super().__init__(trail)
        self._context, self._document, self.trail, self._wanted = context, context.document, trail, wanted
        self.report: AuditReport | None = None
        self.proof = named(Chip("", role="muted"), "activity.proof")
        self.proof.set_chip(*_proof_words(None))
        tip = tr("Prove that nobody changed, removed, added or moved a row of the log")
        self.verify_button = _button(tr("Check the log"), "shield-check", "activity.verify", tip)
        tip = tr("Write the calls that are shown as JSON Lines")
        self.export_button = _button(tr("Export..."), "upload", "activity.export", tip)
        self.message = named(MessageBar(), "activity.message")
        self.strip = ProgressStrip()
        self.verify_button.clicked.connect(self._verify)
        self.export_button.clicked.connect(self._export)
        self.strip.cancel_requested.connect(self.cancel)

    def forget(self) -> None:
        """Begin with another log."""
        self.report = None
        self._context.tasks.cancel("activity.verify")
        self.proof.set_chip(*_proof_words(None))
        self.message.dismiss()

    def proof_of(self, call: LoggedCall) -> tuple[str, str, Role]:
        """The words, icon and colour for whether the rows of a call are proved."""
        if self.report is None:
            return "", "shield", "muted"
        if call.last <= self.report.proved_to:
            return tr("proved"), "shield-check", "allow"
        if self.report.is_sound:
            return tr("newer than the check"), "shield", "muted"
        return tr("not proved"), "shield-x", "deny"

    def _verify(self) -> None:
        self._context.tasks.start(self._prove(), "activity.verify", replace=True)

    async def _prove(self) -> None:
        self.strip.start(tr("Checking the log"))
        self.verify_button.setEnabled(False)
        try:
            self.report = await prove(self._document, self._context.deriver, self._tell_progress)
        finally:
            if isValid(self):
                self.strip.stop()
                self.told.emit()
        report = self.report
        if report is None:
            return
        self.proof.set_chip(*_proof_words(report))
        if report.problems:
            self.message.show_message(
                "error",
                tr("The log was tampered with or is damaged: {problems}", problems="; ".join(report.problems[:3])),
            )
        else:
            self.message.dismiss()
        self.told.emit()

    def _tell_progress(self, row: int) -> None:
        rows = max(self.trail.now.rows, row, 1)
        self.strip.set_progress(row / rows, tr("Checking the log: row {row:,} of {rows:,}", row=row, rows=rows))

    def _export(self) -> None:
        self._context.tasks.start(self._write(), "activity.export", replace=True)

    async def _write(self) -> None:
        wanted = self._wanted()
        what = (
            tr("Export all rows of the log")
            if wanted == AuditFilter()
            else tr("Export the rows of the calls that are shown")
        )
        start = self._document.workspace.folder / "audit.jsonl"
        path = await choose_save_file(
            self.verify_button.window(), what, start, tr("JSON Lines (*.jsonl);;Any file (*)")
        )
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

    def cancel(self) -> None:
        """Stop what is under way."""
        for name in ("activity.verify", "activity.export"):
            self._context.tasks.cancel(name)


def _button(words: str, icon: str, name: str, tip: str) -> QPushButton:
    button = named(QPushButton(words), name, spoken=words.rstrip("."), tip=tip)
    tie_icon(button, icon)
    return button


def _proof_words(report: AuditReport | None) -> tuple[str, str, Role]:
    if report is None:
        return tr("not checked yet"), "shield", "muted"
    if report.is_sound:
        return tr("proved: {rows}", rows=counted(report.rows, "row", "rows")), "shield-check", "allow"
    return counted(len(report.problems), "problem", "problems"), "shield-x", "deny"
