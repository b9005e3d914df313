"""The right part of the Console: verdict, open question, stages as they pass, result."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from gatewright_gui.pages.trial.approval import ApprovalBar
from gatewright_gui.pages.trial.result import ResultPanel
from gatewright_gui.pages.trial.stages import StagePane
from gatewright_gui.pages.trial.steps_pane import StepsPane
from gatewright_gui.pages.trial.verdict import VerdictPanel
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import column_of, named, stretch
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget import EmptyState, MessageBar, ProgressStrip, Splitter, TableView
from gatewright_gui.qt.widget.message_bar import FootBars
from gatewright_gui.qt.widget.splitter import SizeStore
from gatewright_gui.session.calls import CallRecord, Kind, StageRow, StepRow, cut
from gatewright_gui.session.question import PendingApproval


class OutcomePanel(QWidget):
    """Shows one call: the one under way, or a record."""

    cancel_requested = Signal()
    record_shown = Signal()
    """Another call is told of."""
    rule_requested = Signal(object)
    """RuleLink: it is to be shown where it is edited."""
    line_requested = Signal(object)
    """RuleLink: it is to be shown in the file."""

    def __init__(self, sizes: SizeStore, tasks: TaskOwner, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.shown: CallRecord | None = None
        self._why_not = ""
        self._is_live = False
        self.message = MessageBar()
        self.strip = ProgressStrip()
        self.strip.cancel_requested.connect(self.cancel_requested)
        self.approval = ApprovalBar()
        self.verdict = VerdictPanel()
        self.stage_pane = StagePane()
        self.model = self.stage_pane.model
        self.result = ResultPanel(tasks)
        self.steps = StepsPane()
        self.steps.chosen.connect(self._show_step)
        self._own_stages: list[StageRow] = []
        self._step: StepRow | None = None
        for part in (self.verdict, self.stage_pane):
            part.rule_requested.connect(self.rule_requested)
            part.line_requested.connect(self.line_requested)
        self.blank = named(EmptyState("terminal", tr("What would the gate say?"), ""), "console.blank")
        self._lay_out(sizes)
        self._say_what_to_do()

    @property
    def stages(self) -> TableView:
        """The table of stages."""
        return self.stage_pane.view

    def begin(self, kind: Kind) -> None:
        """A call is under way."""
        self._show_blank(is_blank=False)
        self.shown = self._step = None
        self._own_stages.clear()
        self.steps.forget()
        self.message.dismiss()
        self.stage_pane.forget_choice()
        self.model.start_over(running=True, to_the_end=kind == "run")
        self.stage_pane.count_time(on=True)
        self.verdict.show_nothing(f"{tr('Deciding') if kind == 'decide' else self.running} ...")
        self.result.show_nothing("scroll-text", tr("No result yet"), tr("The call is under way"))
        self.strip.start(tr("Deciding") if kind == "decide" else self.running)

    def pass_stage(self, row: StageRow) -> None:
        """A stage of the call passed."""
        self._own_stages.append(row)
        if self._step is None:
            self.model.pass_stage(row)

    def show_steps(self, called: str, rows: Sequence[StepRow]) -> None:
        """The steps of the call that is under way, so far."""
        if self.shown is None:
            self.steps.set_steps(called, None, rows)
            if self.steps.held is not None:
                self.strip.stop()
            elif self.verdict.isVisibleTo(self) and not self.strip.isVisibleTo(self):
                self.strip.start(self.running)

    def _show_step(self, row: StepRow | None) -> None:
        """Show one step of the call with all it has, or the call itself again."""
        self._step = row
        record = self.shown if row is None else row.record
        if row is None and record is None:
            self.model.start_over(running=True)
            for stage in self._own_stages:
                self.model.pass_stage(stage)
            self.verdict.show_nothing(f"{self.running} ...")
            self.result.show_nothing("scroll-text", tr("No result yet"), tr("The call is under way"))
        elif record is not None and (row is None or (row.state == "done" and record.stages)):
            self._show_parts(record)
        elif row is not None:
            self._show_unmade(row)

    def _show_unmade(self, row: StepRow) -> None:
        """A step that is under way, or comes, or does not."""
        said = {
            "held": tr("Step {number} comes next: {call}"),
            "working": tr("Step {number} is under way: {call}"),
            "skipped": tr("Step {number} is skipped: {call}"),
            "unknown": tr("Step {number} is not known yet: {call}"),
            "done": tr("Step {number} would be denied: {call}"),
        }.get(row.state, tr("Step {number} was not reached: {call}"))
        words = said.format(number=row.number, call=row.record.called)
        self.model.start_over(running=row.state == "working")
        for stage in row.record.stages:
            self.model.pass_stage(stage)
        more = "; ".join(filter(None, (row.note, row.record.reason)))
        self.verdict.show_nothing(f"{words} ({more})" if more else words)
        self.result.show_arguments(row.record)

    def show_stream(self, text: str) -> None:
        """The call gives its result piece by piece: the last of it so far."""
        if self.shown is None:
            self.result.show_stream(cut(text))

    def ask(self, question: PendingApproval) -> None:
        """The call waits for an answer, or its step that is shown."""
        self.strip.stop()
        self.model.hold(held=True)
        self.verdict.show_nothing(tr("Waiting for an answer ..."))
        self._make_room(asking=True)
        self.approval.ask(question)

    def resume(self) -> None:
        """The question was answered, or is gone; the call goes on."""
        self.approval.withdraw()
        self._make_room(asking=False)
        self.model.hold(held=False)
        self.strip.start(self.running)
        if self.shown is None:
            self.verdict.show_nothing(f"{self.running} ...")

    def end(self) -> None:
        """No call is under way."""
        self.strip.stop()
        self.approval.withdraw()
        self._make_room(asking=False)
        self.stage_pane.count_time(on=False)
        self.model.stop()
        if self.shown is None:
            self.verdict.show_nothing(tr("The call was given up."))
            self.result.show_nothing("scroll-text", tr("No result"), tr("The call did not end"))

    def _make_room(self, *, asking: bool) -> None:
        """While a question is open there is no verdict and no result: their room is its own."""
        self.verdict.setHidden(asking)
        self.result.setHidden(asking)
        self._spare.setVisible(asking)
        self._split.refresh()  # else it asks for the room of both panes until its next event, and the window grows

    def set_why_not(self, why_not: str) -> None:
        """Why the tool that is to be called is not run here; empty where it is."""
        self._why_not = why_not
        if self.shown is None and not self.strip.isVisible():
            self._say_what_to_do()

    def set_live(self, live: bool) -> None:
        """Say whether runs are real."""
        self._is_live = live
        self.approval.set_live(live)
        if self.shown is not None and not self.strip.isVisible() and self.result.record is None:
            self.result.show_nothing(*self._none_of(self.shown))
        if self.shown is None and not self.strip.isVisible():
            self._say_what_to_do()

    @property
    def running(self) -> str:
        """The words that are said while a call runs."""
        return tr("Running LIVE in the workspace") if self._is_live else tr("Running in the copy")

    @property
    def _not_run(self) -> tuple[str, str, str]:
        return (
            "plug",
            tr("Decided, not run"),
            tr("{why}; here its calls are decided, and not executed.", why=self._why_not),
        )

    @property
    def _how_to_run(self) -> str:
        if self._is_live:
            return tr(
                "Run LIVE (Ctrl+Shift+Return) makes the call in the real workspace, and shows here what the model gets."
            )
        return tr(
            "Run in copy (Ctrl+Shift+Return) makes the call in a disposable copy, and shows here what the model gets."
        )

    def say_run_elsewhere(self) -> None:
        """The call that is shown was decided where a run was asked for."""
        if self.shown is not None and self.shown.change is None:
            self.result.show_nothing(*self._not_run)

    def say_failed(self, text: str) -> None:
        """The call could not be made."""
        self.message.show_message("error", text)

    def show_record(self, record: CallRecord) -> None:
        """Show what became of a call, and of its steps."""
        self._show_blank(is_blank=False)
        self.shown, self._step = record, None
        self.steps.set_steps(record.called, record, record.steps)
        self._show_parts(record)
        self.record_shown.emit()

    def _show_parts(self, record: CallRecord) -> None:
        self.model.finish(
            record.stages,
            to_the_end=record.kind == "run",
            asks=record.verdict == "ask" and not record.is_cancelled,
            cut_at=record.stage if record.is_cancelled else "",
            failed=tr(record.outcome_word) if record.is_error and record.verdict == "allow" else "",
        )
        self.verdict.show_record(record)
        self.result.show_record(record, self._none_of(record), is_step=self._step is not None)

    def _none_of(self, record: CallRecord) -> tuple[str, str, str]:
        """The icon and words in place of a result that a call does not have."""
        if record.is_cancelled:
            return "circle-stop", tr("Cancelled"), f"{record.reason[:1].upper()}{record.reason[1:]}"
        if self._why_not:
            return self._not_run
        if record.verdict == "deny":
            return "scroll-text", tr("No result"), tr("The gate lets no tool run for this call.")
        return "scroll-text", tr("Only decided"), self._how_to_run

    def clear(self) -> None:
        """There is no call."""
        self.shown = self._step = None
        self.steps.forget()
        self.message.dismiss()
        self.stage_pane.forget_choice()
        self.model.start_over(running=False)
        self.verdict.show_nothing()
        self._say_what_to_do()

    def _say_what_to_do(self) -> None:
        if self._why_not:
            words = tr("Decide says what the gate would do. {why}; nothing is executed here.", why=self._why_not)
        elif self._is_live:
            words = tr(
                "Decide (Ctrl+Return) says what the gate would do. Run LIVE makes the call in the real workspace."
            )
        else:
            words = tr(
                "Fill in a call as an agent would make it, or begin with an example. "
                "Decide (Ctrl+Return) says what the gate would do. "
                "Run in copy (Ctrl+Shift+Return) makes it in a copy of the workspace, and your files stay as they are."
            )
        title, example = tr("What would the gate say?"), tr("Example")
        self.blank.set_state("terminal", title, words, action=example)
        self._show_blank(is_blank=True)

    def _show_blank(self, *, is_blank: bool) -> None:
        """Until the first call there is nothing to say of one: no stages, no result."""
        self.blank.setVisible(is_blank)
        for part in (self.verdict, self._split):
            part.setHidden(is_blank)

    def _lay_out(self, sizes: SizeStore) -> None:
        split = self._split = Splitter(Qt.Orientation.Vertical, "console.outcome", sizes)
        split.addWidget(self.stage_pane)
        split.addWidget(self.result)
        split.setStretchFactor(0, 1)
        split.setStretchFactor(1, 1)
        split.setCollapsible(0, False)
        split.setCollapsible(1, False)
        split.restore((348, 300))
        self._spare = QWidget()
        self._spare.hide()
        parts = self.verdict, stretch(self.blank, 20), stretch(split, 20), stretch(self._spare)
        column_of(self.approval, self.steps, *parts, into=self)
        FootBars(self, self.strip, self.message)
