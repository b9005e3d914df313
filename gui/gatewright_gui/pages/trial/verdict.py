"""What became of a call, in short: verdict, stage, code, reason, the deciding rule, the words for the model."""

import json
from datetime import datetime

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QColor, QGuiApplication, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QDialog,
    QGridLayout,
    QLabel,
    QSizePolicy,
    QWidget,
)

from gatewright_gui.pages.trial.stages import add_rule_ways
from gatewright_gui.pages.trial.table import outcome_text
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.layout import column_of, named, row_of, stretch
from gatewright_gui.qt.look import Role, current_look, role_pair
from gatewright_gui.qt.menu import popup_menu
from gatewright_gui.qt.prose import ProseLabel, plain
from gatewright_gui.qt.widget import Chip, CodeView, ElidedLabel, Segmented, VerdictBadge
from gatewright_gui.qt.widget.button import icon_button, text_button
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.calls import MAX_SHOWN, CallRecord, RuleLink, laid_out, stage_words


class ExactDialog(QDialog):
    """Exactly what the model gets, as sent or as a JSON string; Copy takes all of it, however much is shown."""

    def __init__(self, parent: QWidget | None, record: CallRecord) -> None:
        super().__init__(parent)
        self._text = record.model_text or ""
        title = tr("Exactly what the model gets")
        named(self, "console.exact.dialog", spoken=title).setWindowTitle(title)
        self.parts = named(Segmented(tr("Shown as")), "console.exact.as")
        self.parts.add_segment("text", tr("As sent"), tooltip=tr("The text, nothing added and nothing indented"))
        self.parts.add_segment(
            "json", tr("JSON string"), tooltip=tr("The same text as it stands in a request, every sign to be seen")
        )
        self.parts.current_changed.connect(self._show)
        self.code = named(CodeView(tr("What the model gets")), "console.exact.text")
        self.code.set_wrapping(True)
        what = tr("an error") if record.is_error or record.output is None else tr("the result")
        size = len(self._text.encode("utf-8", "replace"))
        about = [what, counted(len(self._text), "character", "characters"), counted(size, "byte", "bytes")]
        if record.truncated:
            about.append(tr("cut from {size}", size=counted(record.output_bytes, "byte", "bytes")))
        self.about = named(Label(f"{record.called}: {', '.join(about)}"), kind="muted")
        self.close_button = text_button(tr("Close"), "console.exact.close", self.accept)
        self.close_button.setDefault(True)
        column_of(
            row_of(stretch(self.about), self.parts),
            stretch(self.code),
            row_of(stretch(), self.close_button),
            into=self,
            space=2,
            margins=3,
        )
        self._show()
        self.resize(720, 480)

    def _show(self, _part: object = None) -> None:
        shown = self._text[:MAX_SHOWN]
        self.code.set_plain(laid_out(shown if self.parts.current == "text" else json.dumps(shown, ensure_ascii=True)))


_MAX_WORDS = 4_000


def _words(label: QLabel, name: str) -> QLabel:
    label.setObjectName(name)
    label.setWordWrap(True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    label.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
    label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
    return label


class VerdictPanel(QWidget):
    """Shows one record, or that there is none yet."""

    rule_requested = Signal(object)
    """RuleLink: it is to be shown where it is edited."""
    line_requested = Signal(object)
    """RuleLink: it is to be shown in the file."""
    exact_requested = Signal(object)
    """CallRecord: exactly what the model gets of it is to be shown."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("console.verdict")
        self._rule: RuleLink | None = None
        self._record: CallRecord | None = None
        self.role: Role = "neutral"
        """The colour of the stripe, while the verdict is of what is filled in."""
        self._badge = VerdictBadge("deny")
        self._live = Chip(tr("LIVE"), icon="triangle-alert", role="deny")
        self._status = Chip("", role="neutral")
        self._at = ElidedLabel(role="muted")
        self._call = ElidedLabel(mono=True)
        self.rule_button = text_button("", "console.rule", self._ask_for_rule, kind="link")
        self.rule_button.setProperty("in", "text")
        self.rule_button.setCursor(Qt.CursorShape.PointingHandCursor)
        self.rule_button.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.rule_button.customContextMenuRequested.connect(self._open_menu)
        self._is_stale, self._told = False, ""
        self._stale = Chip(tr("of another call: Decide again"), icon="history", role="muted")
        tip = tr("The call was edited since, or another one was chosen: this is not its verdict")
        named(self._stale, "console.stale", tip=tip)
        self._then = named(Chip("", icon="history", role="ask"), "console.then")
        self.copy_reason_button = icon_button(
            "copy", tr("Copy what you are told"), "console.copyreason", self._copy_reason
        )
        self.copy_model_button = icon_button(
            "copy", tr("Copy exactly what the model gets"), "console.copymodel", self._copy_model
        )
        self.exact_button = icon_button("braces", tr("Exactly what the model gets"), "console.exact", self._ask_exact)
        for button in (self.copy_reason_button, self.copy_model_button, self.exact_button):
            button.setFixedSize(18, 18)
        self._reason = _words(ProseLabel(), "console.reason")
        self._model = _words(Label(), "console.modelmessage")
        self._lay_out()
        self._stale.hide()
        current_look().changed.connect(self.update)
        self.show_nothing()

    def set_stale(self, *, stale: bool) -> None:
        """Say whether what is filled in now is another call than the one that is told of."""
        if self._record is None or stale == self._is_stale:
            return
        self._is_stale = stale
        self._stale.setVisible(stale)
        self._at.setHidden(stale)  # there is room for one of them
        for part in (self._badge, self._status, self._live, self._then, self._reason, self._model):
            part.setEnabled(not stale)
        self.setAccessibleName(tr("of another call: {told}", told=self._told) if stale else self._told)
        self.update()

    @property
    def is_stale(self) -> bool:
        """Tell whether it is the verdict of another call than the one that is filled in."""
        return self._is_stale

    def show_nothing(self, text: str = "") -> None:
        """There is no record; without a text, no call was made yet."""
        text = text or tr("No call yet")
        self.set_stale(stale=False)
        self._rule, self.role, self._record = None, "neutral", None
        for part in (self._live, self._badge, self._status, self._then, self.rule_button, self._call):
            part.hide()
        self._at.set_text(text)
        self._names.hide()
        self._tell(text)

    def show_record(self, record: CallRecord) -> None:
        """Say what became of a call."""
        self.set_stale(stale=False)
        self._rule, self.role, self._record = record.rule, record.verdict.value, record
        word = record.outcome_word
        self._badge.set_verdict(record.verdict.value, outcome_text(record.verdict.value))
        failed = word not in {"allow", "ask", "deny"}
        if record.is_cancelled:
            self.role = "neutral"
        elif failed and record.verdict == "allow":
            self.role = "ask"
        self._status.set_chip(tr(word), "triangle-alert", "ask")
        self._status.setVisible(failed)
        at = tr("at \u201c{stage}\u201d", stage=stage_words(record.stage))
        passed = record.verdict == "allow" and not record.is_cancelled
        self._at.set_text("" if passed else at, record.code)
        self._live.setVisible(record.is_live)
        kind = tr("run") if record.kind == "run" else tr("decide")
        call = tr("{kind}  {call}  as {agent}", kind=kind, call=record.called, agent=record.request.agent_id)
        self._call.set_text(call)
        self._reason.setText((record.detail or record.reason)[:_MAX_WORDS])
        self._model.setText((record.model_message or _for_model(record))[:_MAX_WORDS])
        for button in (self.copy_model_button, self.exact_button):
            button.setEnabled(record.model_text is not None)
        self._tell_then(record)
        self._show_rule(record.rule)
        for part in (self._badge, self._call, self._names):
            part.show()
        self._badge.setVisible(not record.is_cancelled)
        self._tell(f"{tr(word)} {at}: {plain(record.reason)}")

    def _tell(self, told: str) -> None:
        """Set the name of the panel, until the call that is filled in is another one."""
        self._told = told
        self.setAccessibleName(told)
        self.update()

    def _show_rule(self, rule: RuleLink | None) -> None:
        if rule is not None:
            words = rule.rule_id
            if rule.line is not None:
                words = tr("{rule}, line {line}", rule=rule.rule_id, line=rule.line)
            line = tr("Go to line {line}", line=rule.line) if rule.line is not None else tr("Go to the rule")
            self.rule_button.setText(line)
            tip = tr("Show {rule} where it is edited; the menu also shows it in the file", rule=words)
            named(self.rule_button, spoken=tr("deciding rule {rule}", rule=words), tip=tip)
        self.rule_button.setVisible(rule is not None)

    def _tell_then(self, record: CallRecord) -> None:
        """A call that repeats another says whether it came out the same."""
        earlier = record.earlier
        self._then.setVisible(earlier is not None)
        if earlier is None:
            return
        before, now = outcome_text(earlier.verdict), outcome_text(record.verdict)
        when = datetime.fromtimestamp(earlier.wall_s).astimezone().strftime("%H:%M:%S")
        if earlier.verdict is record.verdict:
            self._then.set_chip(tr("{verdict} as before", verdict=now), "history", "muted")
        else:
            self._then.set_chip(tr("then {before}, now {now}", before=before, now=now), "history", "ask")
        words = tr(
            "The same call at {time}: {verdict} at {stage}", time=when, verdict=before, stage=stage_words(earlier.stage)
        )
        words = f"{words} ({earlier.code})"
        named(self._then, spoken=words, tip=words)

    def _ask_for_rule(self) -> None:
        if self._rule is not None:
            self.rule_requested.emit(self._rule)

    def _open_menu(self, at: QPoint) -> None:
        menu = popup_menu(self, "console.rulemenu")
        add_rule_ways(menu, self._rule, self.rule_requested.emit, self.line_requested.emit)
        menu.popup(self.rule_button.mapToGlobal(at))

    def _copy_reason(self) -> None:
        if self._record is not None:
            QGuiApplication.clipboard().setText(self._record.detail or self._record.reason)

    def _copy_model(self) -> None:
        if self._record is not None and self._record.model_text is not None:
            QGuiApplication.clipboard().setText(self._record.model_text)

    def _ask_exact(self) -> None:
        if self._record is not None:
            self.exact_requested.emit(self._record)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """A stripe in the colour of the verdict."""
        del event
        look = current_look()
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(look.palette.surface))
        role: Role = "disabled" if self._is_stale else self.role
        painter.fillRect(0, 0, 4, self.height(), QColor(role_pair(look.palette, role).fg))
        painter.fillRect(0, self.height() - 1, self.width(), 1, QColor(look.palette.border))

    def _lay_out(self) -> None:
        chips = (self._live, self._badge, self._status, self._then, self._stale)
        first = row_of(*chips, self._at, stretch(), self._call, space=2)
        self._names = QWidget()
        grid = QGridLayout(self._names)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(current_look().tokens.space_4)
        grid.setVerticalSpacing(2)
        operator = (tr("For you"), self._reason, (self.copy_reason_button,))
        model = (tr("For the model"), self._model, (self.copy_model_button, self.exact_button))
        for column, (title, label, buttons) in enumerate((operator, model)):
            grid.addLayout(row_of(named(Label(title), kind="small"), *buttons, stretch(), space=1), 0, column)
            grid.addWidget(label, 1, column, Qt.AlignmentFlag.AlignTop)
            grid.setColumnStretch(column, 1)
        link = row_of(self.rule_button, stretch())
        column_of(first, self._names, link, into=self, space=1, margins=(4, 2, 3, 2))


def _for_model(record: CallRecord) -> str:
    if record.is_cancelled:
        return tr("gets nothing: the call was cancelled")
    if record.output is not None:
        return tr("gets the error below") if record.is_error else tr("gets the result below")
    if record.verdict == "ask":
        return tr("waits until somebody answers")
    return tr("would get the result of the call")
