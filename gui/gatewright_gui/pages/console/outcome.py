"""The right part of the Console: verdict, open question, stages as they pass, result. It does not call."""

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtWidgets import QAbstractItemView, QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from gatewright_gui.models import stages
from gatewright_gui.models.callhistory import result_note
from gatewright_gui.models.stages import StageModel
from gatewright_gui.pages.console.approval import ApprovalBar
from gatewright_gui.pages.console.delegate import StageDelegate
from gatewright_gui.pages.console.verdict import VerdictPanel
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget import CodeView, EmptyState, MessageBar, ProgressStrip, SectionHeader, TableView
from gatewright_gui.session.calls import CallRecord, Kind, StageRow, pretty
from gatewright_gui.session.question import PendingApproval

_ROW = 20
"""Height of a stage, so that all of them are seen at once."""
_NO_RESULT = "No result"
_WHAT_TO_DO = (
    "Ctrl+Return decides the call without any effect. Ctrl+Shift+Return runs it in a disposable copy and shows here "
    "what the model gets."
)
_ONLY_DECIDED = "Ctrl+Shift+Return runs the call in a disposable copy and shows here what the model gets."
_DECIDE_ONLY = "Ctrl+Return decides the call. The program that has this tool runs it; nothing is executed here."
_RUN_ELSEWHERE = "The program that has this tool runs it; here its calls are decided, and not executed."


_LIVE_WHAT_TO_DO = (
    "Ctrl+Return decides the call without any effect. Ctrl+Shift+Return runs it LIVE, in the real workspace, and shows "
    "here what the model gets."
)
_IN_COPY, _LIVE = "Running in the copy", "Running LIVE in the workspace"


class OutcomePanel(QWidget):
    """Shows one call: the one under way, or a record."""

    cancel_requested = Signal()
    rule_requested = Signal(object)
    """RuleLink: it is to be shown in the policy."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.shown: CallRecord | None = None
        self._is_elsewhere = False
        self._is_live = False
        self.model = StageModel(self)
        self.message = MessageBar()
        self.strip = ProgressStrip()
        self.strip.cancel_requested.connect(self.cancel_requested)
        self.approval = ApprovalBar()
        self.verdict = VerdictPanel()
        self.stages = self._make_stages()
        self.result = CodeView("Result")
        self.result.setObjectName("console.result")
        self._none = EmptyState("scroll-text", _NO_RESULT, _WHAT_TO_DO)
        self._stack = QStackedWidget()
        self._stack.addWidget(self._none)
        self._stack.addWidget(self.result)
        self._lay_out()

    def begin(self, kind: Kind) -> None:
        """A call is under way."""
        self.shown = None
        self.message.dismiss()
        self.model.start_over(running=True, to_the_end=kind == "run")
        self.verdict.show_nothing("Deciding ..." if kind == "decide" else f"{self.running} ...")
        self._stack.setCurrentWidget(self._none)
        self._none.set_state("scroll-text", "No result yet", "The call is under way")
        self._head.set_note("")
        self.strip.start("Deciding" if kind == "decide" else self.running)

    def pass_stage(self, row: StageRow) -> None:
        """A stage passed."""
        self.model.pass_stage(row)

    def ask(self, question: PendingApproval) -> None:
        """The call waits for an answer."""
        self.strip.stop()
        self.model.hold(held=True)
        self.verdict.show_nothing("Waiting for an answer ...")
        self._make_room(asking=True)
        self.approval.ask(question)

    def answered(self) -> None:
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
        self.model.stop()
        if self.shown is None:
            self.verdict.show_nothing("The call was given up.")
            self._none.set_state("scroll-text", "No result", "The call did not end")

    def _make_room(self, *, asking: bool) -> None:
        """While a question is open there is no verdict and no result: their room is its own."""
        self.verdict.setHidden(asking)
        self._below.setHidden(asking)
        self._spare.setVisible(asking)

    def set_elsewhere(self, elsewhere: bool) -> None:
        """Whether the tool that is to be called is run by another program: then nothing is promised here."""
        self._is_elsewhere = elsewhere
        if self.shown is None and not self.strip.isVisible():
            self._none.set_state("scroll-text", _NO_RESULT, self._what_to_do)

    def set_live(self, live: bool) -> None:
        """Whether runs are real."""
        self._is_live = live
        if self.shown is None and not self.strip.isVisible():
            self._none.set_state("scroll-text", _NO_RESULT, self._what_to_do)

    @property
    def running(self) -> str:
        """What is said while a call runs."""
        return _LIVE if self._is_live else _IN_COPY

    @property
    def _what_to_do(self) -> str:
        return _DECIDE_ONLY if self._is_elsewhere else _LIVE_WHAT_TO_DO if self._is_live else _WHAT_TO_DO

    def say_run_elsewhere(self) -> None:
        """The call that is shown was decided where a run was asked for."""
        self._none.set_state("plug", "Decided, not run", _RUN_ELSEWHERE)

    def say_failed(self, text: str) -> None:
        """The call could not be made."""
        self.message.show_message("error", text)

    def show_record(self, record: CallRecord) -> None:
        """Show what became of a call."""
        self.shown = record
        self.model.finish(record.stages, to_the_end=record.kind == "run", asks=record.verdict == "ask")
        self.verdict.show_record(record)
        self._show_result(record)

    def clear(self) -> None:
        """There is no call."""
        self.shown = None
        self.message.dismiss()
        self.model.start_over(running=False)
        self.verdict.show_nothing()
        self._stack.setCurrentWidget(self._none)
        self._none.set_state("scroll-text", _NO_RESULT, self._what_to_do)
        self._head.set_note("")

    def _show_result(self, record: CallRecord) -> None:
        if record.output is None:
            if self._is_elsewhere:
                self.say_run_elsewhere()
            else:
                self._none.set_state("scroll-text", "Only decided", _ONLY_DECIDED)
            self._stack.setCurrentWidget(self._none)
            self._head.set_note("")
            return
        text, is_json = pretty(record.output)
        if is_json:
            self.result.set_json(text)
        else:
            self.result.set_plain(text)
        self._stack.setCurrentWidget(self.result)
        self._head.set_note(result_note(record))
        self._head.setToolTip(f"SHA-256 {record.output_hash}" if record.output_hash else "")

    def _make_stages(self) -> TableView:
        view = TableView("Stages")
        view.setObjectName("console.stages")
        view.setModel(self.model)
        view.setItemDelegate(StageDelegate(view))
        view.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        view.setTabKeyNavigation(False)
        header = view.horizontalHeader()
        header.setStretchLastSection(False)
        for column, width in ((stages.STAGE, 98), (stages.VERDICT, 112), (stages.RULE, 66), (stages.TIME, 78)):
            view.setColumnWidth(column, width)
        header.setSectionResizeMode(stages.REASON, header.ResizeMode.Stretch)
        view.verticalHeader().setMinimumSectionSize(_ROW)
        view.verticalHeader().setDefaultSectionSize(_ROW)
        view.clicked.connect(self._clicked)
        view.activated.connect(self._go_to_rule)
        rows = self.model.rowCount() * view.verticalHeader().defaultSectionSize()
        view.setMaximumHeight(rows + header.sizeHint().height() + 4)
        view.setMinimumHeight(6 * _ROW + header.sizeHint().height())
        view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        return view

    def _clicked(self, index: QModelIndex) -> None:
        if index.column() == stages.RULE:
            self._go_to_rule(index)

    def _go_to_rule(self, index: QModelIndex) -> None:
        rule = self.model.rule_at(index.row())
        if rule is not None:
            self.rule_requested.emit(rule)

    def _lay_out(self) -> None:
        tokens = current_look().tokens
        self._head = SectionHeader("Result")
        inner = QVBoxLayout()
        inner.setContentsMargins(0, 0, 0, 0)
        inner.addWidget(self._stack, 1)
        title = QHBoxLayout()
        title.setContentsMargins(0, tokens.space_1, 0, 0)
        title.addWidget(self._head)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for part in (self.message, self.strip, self.approval, self.verdict):
            column.addWidget(part)
        column.addWidget(SectionHeader("Stages"))
        column.addWidget(self.stages, 20)
        self._below = QWidget()
        below = QVBoxLayout(self._below)
        below.setContentsMargins(0, 0, 0, 0)
        below.setSpacing(0)
        below.addLayout(title)
        below.addLayout(inner, 1)
        column.addWidget(self._below, 1)
        self._spare = QWidget()
        self._spare.hide()
        column.addWidget(self._spare, 1)
