"""The tab *Try*: a call of the current row, filled in with what is there, decided by the gate and answered in place."""

import asyncio

from PySide6.QtCore import QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QColor, QKeySequence, QPainter, QPaintEvent, QShortcut
from PySide6.QtWidgets import QFrame, QWidget
from shiboken6 import isValid

from gatewright.workspace.api import GatewrightError
from gatewright_gui.pages.page import PageContext
from gatewright_gui.pages.trial.call_form import FieldFault
from gatewright_gui.pages.trial.file_choice import FilePick
from gatewright_gui.pages.trial.form import FormPane
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, named, row_of, stretch
from gatewright_gui.qt.look import Role, VerdictName, current_look, role_pair, tie_icon
from gatewright_gui.qt.plaintext import button_text
from gatewright_gui.qt.prose import ProseLabel, plain
from gatewright_gui.qt.widget.button import text_button
from gatewright_gui.qt.widget.chip import VERDICT_ICONS
from gatewright_gui.qt.widget.label import IconLabel, Label
from gatewright_gui.session.call_record import try_call
from gatewright_gui.session.calls import CallRecord, CallRequest, ShownTool, stage_words, tool_to_try, with_missing
from gatewright_gui.session.place import place_of

TASK, TASK_TOOL = "inspector.decide", "inspector.tool"
TITLES: dict[VerdictName, str] = {"allow": mark("Allowed"), "ask": mark("Asks first"), "deny": mark("Denied")}
NOTHING = mark("Decide asks the gate. Nothing is run.")
NO_ROW = mark("Choose a tool or an operation: a call of it is tried here.")


class AnswerBox(QFrame):
    """The verdict on a call in its colour, with the reason and the place that decides."""

    def __init__(self) -> None:
        super().__init__()
        named(self, "inspector.answer")
        self.record: CallRecord | None = None
        self._role: Role = "neutral"
        self._icon = IconLabel("shield-check", "muted")
        self.title = named(Label(), "inspector.answer.title", kind="heading")
        self.reason = named(ProseLabel(), "inspector.answer.reason")
        self.reason.setWordWrap(True)
        self.reason.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.told = named(Label(wraps=True), "inspector.answer.told", kind="small")
        self.stage = named(Label(), "inspector.answer.stage", kind="small")
        self.rule_button = text_button("", "inspector.answer.rule", lambda: None, kind="link")
        head = row_of(self._icon, self.title, stretch(), self.stage, space=2)
        foot = row_of(stretch(self.told), self.rule_button, space=2)
        column_of(head, self.reason, foot, into=self, space=1, margins=(3, 2, 2, 2))
        current_look().changed.connect(self.update)
        self.say(tr(NOTHING))

    def say(self, text: str, role: Role = "neutral") -> None:
        """Say something that is no verdict."""
        self._show(role, "", text, "info" if role == "neutral" else "triangle-alert")
        self.record = None

    def show_record(self, record: CallRecord) -> None:
        """Say what the gate decided."""
        verdict: VerdictName = record.verdict.value
        self.record = record
        self._show(verdict, tr(TITLES[verdict]), record.reason, VERDICT_ICONS[verdict])
        self.stage.setText(tr("at \u201c{stage}\u201d", stage=stage_words(record.stage)))
        told = record.model_message
        self.told.setText(tr("The model is told: {message}", message=told) if told else "")
        rule = record.rule
        self.rule_button.setVisible(rule is not None)
        if rule is not None:
            words = tr("line {line}", line=rule.line) if rule.line else rule.rule_id
            self.rule_button.setText(button_text(words))
            named(self.rule_button, spoken=tr("deciding rule {rule}", rule=rule.rule_id), tip=rule.rule_id)

    def set_stale(self, stale: bool) -> None:
        """Grey while the call that is filled in is another one."""
        for part in (self._icon, self.title, self.reason, self.told, self.stage):
            part.setEnabled(not stale)
        self._role = "neutral" if stale or self.record is None else self.record.verdict.value
        self.update()

    def _show(self, role: Role, title: str, reason: str, icon: str) -> None:
        self._role = role
        self._icon.set_icon(icon, "muted" if role == "neutral" else role)
        self.title.setText(title)
        self.title.setVisible(bool(title))
        self.reason.setText(reason if reason.startswith("`") else f"{reason[:1].upper()}{reason[1:]}")
        for part in (self.stage, self.told):
            part.clear()
        self.rule_button.hide()
        self.setAccessibleName(": ".join(filter(None, (title, plain(reason)))))
        self.set_stale(False)
        self._role = role

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """The soft ground of the verdict in its frame."""
        del event
        pair, radius = role_pair(current_look().palette, self._role), current_look().tokens.radius
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QColor(pair.fg if self._role != "neutral" else current_look().palette.border))
        painter.setBrush(QColor(pair.soft))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)


class TryPane(QWidget):
    """Follows the current row; what somebody filled in stays as far as it fits."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self.setObjectName("inspector.try")
        self._context = context
        self._row: tuple[str | None, str | None, str | None] = (None, None, None)
        self._tool: ShownTool | None = None
        self._is_touched = False
        self.form = FormPane(context.tasks, "inspector.form", tr("Arguments of the call"))
        self._files = FilePick(context, self.form, lambda: (self._row[0], self._tool))
        tip = tr("Ask the gate, without any effect (Ctrl+Return)")
        self.decide_button = text_button(tr("Decide"), "inspector.decide", self.decide, tip, kind="primary")
        tie_icon(self.decide_button, "shield-check", "on_accent")
        tip = tr("The same call in the whole console, where it can be run in a copy")
        self.open_button = text_button(tr("Open in Try"), "inspector.opentry", self._open, tip, kind="link")
        self.answer = AnswerBox()
        self.answer.rule_button.clicked.connect(self._go_to_rule)
        buttons = row_of(self.decide_button, stretch(), self.open_button, space=2)
        below = column_of(buttons, self.answer, space=2, margins=(2, 0, 2, 2))
        column_of(stretch(self.form, 100), below, stretch(), into=self)
        self._fit = QTimer(self, singleShot=True, interval=0)
        self._fit.timeout.connect(self._fit_form)
        self.form.changed.connect(self._follow_edit)
        self.form.touched.connect(self._touch)
        for keys in ("Ctrl+Return", "Ctrl+Enter"):
            shortcut = QShortcut(QKeySequence(keys), self, context=Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(self.decide)
        self.show_row(None, None, None)

    def show_row(self, agent_id: str | None, tool: str | None, operation: str | None) -> None:
        """Begin a call of a row; the same row again is decided again, if it was: the policy may be another one."""
        again = (agent_id, tool, operation) == self._row and self.answer.record is not None
        if (agent_id, tool) != self._row[:2]:
            self._is_touched = False
            self.answer.say(tr(NOTHING))
        self._row = agent_id, tool, operation
        self._files.forget()
        if agent_id is None or tool is None:
            self._context.tasks.cancel(TASK_TOOL)
            self._take_tool(None)
            return
        self._context.tasks.start(self._ask_tool(agent_id, tool, operation, again=again), TASK_TOOL, replace=True)

    async def _ask_tool(self, agent_id: str, tool: str, operation: str | None, *, again: bool) -> None:
        try:
            found = await self._context.deriver.derive(tool_to_try, agent_id, tool, operation)
        except GatewrightError as error:
            self._take_tool(None)
            self.answer.say(str(error), "ask")
            return
        if found is None or not isValid(self):
            return
        self._take_tool(with_missing(self._context.document.workspace, agent_id, (found,))[0], operation)
        if self._tool is not None and not self._is_touched:
            known = await self._files.examples() if self._tool.files != "nothing" else {}
            if isValid(self) and self._row == (agent_id, tool, operation) and not self._is_touched:
                self.form.clear()
                self.form.fill_example(known)
        if again:
            self.decide()

    def _take_tool(self, tool: ShownTool | None, operation: str | None = None) -> None:
        self._tool = tool
        self.form.set_tool(tool, operation)
        if tool is not None and operation is not None:
            self.form.choose_operation(operation)
        self.form.setVisible(tool is not None and self.form.has_fields)
        for button in (self.decide_button, self.open_button):
            button.setEnabled(tool is not None)
        if self.answer.record is None or tool is None:
            self.answer.say(tr(NOTHING if tool is not None else NO_ROW))

    # deciding

    def decide(self) -> None:
        """Ask the gate."""
        request = self._request()
        if request is not None:
            self._context.tasks.start(self._decide(request), TASK, replace=True)

    async def _decide(self, request: CallRequest) -> None:
        workspace = self._context.document.workspace
        try:
            record = await asyncio.to_thread(try_call, workspace, request)
        except (GatewrightError, OSError) as error:
            self.answer.say(str(error), "ask")
            return
        if isValid(self) and request.tool == self._row[1]:
            self.answer.show_record(record)

    def _request(self) -> CallRequest | None:
        """The call that is filled in; None after a fault, which is shown."""
        agent_id, tool = self._row[0], self._tool
        if agent_id is None or tool is None:
            return None
        try:
            return CallRequest(agent_id, tool.name, self.form.values(), tool.work_folder)
        except FieldFault as fault:
            self.answer.say(str(fault), "ask")
            return None

    def _touch(self) -> None:
        self._is_touched = True

    def _follow_edit(self) -> None:
        self._fit.start()
        record = self.answer.record
        if record is not None:
            self.answer.set_stale(self.form.values_as_far() != record.request.arguments)

    def _fit_form(self) -> None:
        """Make the form as high as its fields, so that the button stands right below them."""
        self.form.setMaximumHeight(self.form.wanted_height)

    # where it leads

    def _open(self) -> None:
        agent_id, tool = self._row[0], self._tool
        if agent_id is not None and tool is not None:
            given = self.form.values_as_far()
            self._context.navigator.go_to_call(agent_id, tool.name, self.form.operation, given, tool.work_folder)

    def _go_to_rule(self, _checked: bool = False) -> None:
        record = self.answer.record
        if record is None or record.rule is None:
            return
        called = record.request.tool, record.operation or None
        place = place_of(self._context.document.policy, record.rule.address, record.rule.line, called)
        if place is not None:
            self._context.navigator.go_to_rule(place)

    def sizeHint(self) -> QSize:  # noqa: N802
        """Little: the inspector has the width that it is given."""
        return QSize(240, super().sizeHint().height())
