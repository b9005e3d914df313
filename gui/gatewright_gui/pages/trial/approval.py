"""A call that waits for an answer: who asks for what and why, until when, and the ways to answer, each with its reach.

The console shows one above its result, the page Approvals as large as there is room. The focus is never put on a button
that allows.
"""

import time
from functools import partial

from PySide6.QtCore import QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QHideEvent, QKeyEvent, QKeySequence, QPainter, QPaintEvent, QShortcut, QShowEvent
from PySide6.QtWidgets import QApplication, QGridLayout, QLineEdit, QMenu, QPushButton, QStackedWidget, QWidget

from gatewright.workspace.api import Address, JsonValue
from gatewright_gui.pages.trial.json_tree import JsonTreeView
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import Part, column_of, named, row_of, stack_of, stretch
from gatewright_gui.qt.look import current_look, tie_icon
from gatewright_gui.qt.menu import add_action, popup_menu
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget import Chip, CodeView, ElidedLabel, IconLabel, Segmented
from gatewright_gui.qt.widget.button import text_button
from gatewright_gui.qt.widget.flow_layout import FlowLayout
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.text_field import NumberField
from gatewright_gui.session.calls import change_words, cut, visible
from gatewright_gui.session.question import MAX_MINUTES, Lasting, PendingApproval, Reply, place_words, span

KEY = "F6"
"""Leads to the open question."""
WHILES = ((mark("5 minutes"), 300.0), (mark("15 minutes"), 900.0), (mark("1 hour"), 3_600.0))
_TICK_MS = 1000
_MAX_REASONS = 6
_MAX_PLACES = 4
_KEYS_FROM = 480
"""Pixels of width from which on the keys stand beside the answers; their tips say them anyway."""
_MOST_REASON = 500
_LEAST_SHOWN = 64
DENY, ONCE, WHILE, SCOPE = "Alt+1", "Alt+2", "Alt+3", "Alt+4"
"""The keys of the answers; no letter answers."""
CALM_MS = 400
"""So long a question that came up by itself cannot be allowed: the key or the click was meant for the one before."""


class ApprovalBar(QWidget):
    """Hidden until there is a question. `focus_question` leads to it; Deny comes first.

    `name` begins the object names, so that two can be told apart. With `tasks` it fills a page: arguments are a tree,
    and what their ids stand for is one too. `keys_for`: where the keys of the answers count, else in here.
    """

    keys_given_back = Signal()
    """The bar had the keys and is about to hide."""
    answered = Signal(object)
    """PendingApproval: it is being answered here."""
    place_requested = Signal(object)
    """Address of a part of the policy that asks: it is to be shown."""

    def __init__(
        self,
        parent: QWidget | None = None,
        *,
        name: str = "console",
        tasks: "TaskOwner | None" = None,
        keys_for: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName(f"{name}.approval")
        self._name = name
        self._question: PendingApproval | None = None
        self._is_edited = False
        self._title = named(Label(), kind="heading")
        self._title.setWordWrap(True)  # a long name takes another line and pushes no neighbour aside
        self._about = named(ElidedLabel(role="muted"), f"{name}.approval.about")
        self._why = named(Label(wraps=True), f"{name}.approval.why")
        self._place_buttons = [
            text_button("", f"{name}.approval.place.{at}", partial(self._go, at), kind="link")
            for at in range(_MAX_PLACES)
        ]
        for button in self._place_buttons:
            button.setProperty("in", "text")
            button.setMinimumWidth(40)  # long places give way before their neighbours do
        self._places: list[Address] = []
        self._lines: dict[Address, int | None] = {}
        self._change = ElidedLabel(path=True, mono=True, role="muted")
        self._is_live = False
        self._where = named(Chip("", role="neutral"), f"{name}.approval.where")
        self._code = CodeView(tr("What the call would do"))
        self.tree = JsonTreeView(tasks, name=f"{name}.approval.tree") if tasks is not None else None
        self._shown: QWidget = self._code if self.tree is None else stack_of(self._code, self.tree)
        self._parts = named(Segmented(tr("What is shown")), f"{name}.approval.part")
        self._parts.add_segment("arguments", tr("Arguments"))
        self._parts.add_segment("diff", tr("Diff"), tooltip=tr("The difference that would be written"))
        if self.tree is not None:
            self._parts.add_segment("records", tr("What ids stand for"))
        self._parts.current_changed.connect(self._show_part)
        self._make_answers()
        self.menu = self._make_menu()
        self._make_shortcuts(keys_for or self)
        self._lay_out()
        self._tick = QTimer(self, interval=_TICK_MS)
        self._tick.timeout.connect(self._tell_time)
        self._calm = QTimer(self, singleShot=True, interval=CALM_MS)
        self._calm.timeout.connect(self._tell_answers)
        current_look().changed.connect(self.update)
        self.hide()

    def _make_answers(self) -> None:
        name = self._name
        allow = partial(ApprovalBar._answer, self, approved=True)
        deny = partial(ApprovalBar._answer, self, approved=False)
        tip, spoken = tr("The call is not made ({key})", key=DENY), tr("Deny, {key}", key=DENY)
        self.refuse_button = text_button(tr("Deny"), f"{name}.refuse", deny, tip, spoken=spoken, kind="danger")
        self.approve_button = text_button(tr("Allow once"), f"{name}.approve", allow, ONCE)
        self.while_button = text_button(tr("Allow for a while..."), f"{name}.while", self._open_menu, WHILE)
        tie_icon(self.while_button, "clock")
        self.scope_button = text_button(
            tr("Allow in this session"), f"{name}.scope", partial(allow, lasting="scope"), SCOPE
        )
        self.reason = named(QLineEdit(), f"{name}.reason", spoken=tr("Reason for denying, told to the model"))
        self.reason.setPlaceholderText(tr("Reason, told to the model"))
        self.reason.setMaxLength(_MOST_REASON)
        self.reason.returnPressed.connect(self.refuse_button.click)
        self.minutes = named(NumberField(tr("Minutes"), 1, MAX_MINUTES, unit="min"), f"{name}.minutes")
        self.minutes.setValue(30)
        self.minutes_button = text_button(tr("Allow that long"), f"{name}.minutesallow", self._allow_minutes)
        self._keys = [named(Label(key), kind="small") for key in (DENY, ONCE, WHILE, SCOPE)]
        self.reach: dict[QPushButton, Label] = {}
        for button in (self.approve_button, self.while_button, self.scope_button):
            self.reach[button] = named(Label(wraps=True), f"{button.objectName()}.reach", kind="muted")

    @property
    def question(self) -> "PendingApproval | None":
        """The question that is open."""
        return self._question

    @property
    def about(self) -> str:
        """Tier, session, since when and until when."""
        return self._about.text

    def ask(self, question: "PendingApproval", *, calm: bool = False) -> None:
        """Show a question. The focus stays where it is; `calm`: nobody chose it, so it cannot be allowed at once."""
        is_new = self._question is None or self._question.request_id != question.request_id or not question.request_id
        self._question = question
        title = tr("{agent} asks to call {call}", agent=question.whose, call=question.called)
        self._title.setText(title)
        if not calm:
            self._calm.stop()
        if is_new:
            self._is_edited = False
            self._ask_minutes(shown=False)
            self.reason.clear()
            if calm:
                self._calm.start()
            if self.tree is not None:
                self._parts.button("records").setVisible(bool(question.records))
            self._parts.set_segment_enabled("diff", question.diff is not None)
            self._parts.set_current("diff" if question.diff is not None else "arguments")
            self._show_part(self._parts.current)
        self._tell_where()
        self._tell_why()
        self._tell_answers()
        self._tell_time()
        self.setAccessibleName(f"{self._title.text()}: {self._why.text()}")
        self.show()

    def set_live(self, live: bool) -> None:
        """Say whether what is allowed here is done in the real workspace."""
        self._is_live = live
        self._tell_where()
        self.update()

    def set_lines(self, lines: "dict[Address, int | None]") -> None:
        """In which lines of the policy the parts that ask stand."""
        self._lines = lines
        self._tell_why()

    def say_edited(self) -> None:
        """The policy changed under an open question."""
        self._is_edited = self._question is not None
        self._tell_why()

    def focus_question(self) -> None:
        """Bring the keys to the question; what denies comes first, what allows only by the next key."""
        if self._question is not None:
            self.refuse_button.setFocus(Qt.FocusReason.ShortcutFocusReason)

    @property
    def tab_parts(self) -> tuple[QWidget, ...]:
        """The widgets that Tab passes, in order."""
        return (
            *self._place_buttons,
            *(self._parts.button(key) for key in self._parts.keys),
            self._code.editor,
            self.refuse_button,
            self.reason,
            self.approve_button,
            self.while_button,
            self.minutes,
            self.minutes_button,
            self.scope_button,
        )

    def withdraw(self) -> None:
        """The question is answered or gone."""
        self._question = None
        self.menu.close()
        focus = QApplication.focusWidget()
        if focus is not None and self.isAncestorOf(focus):
            self.keys_given_back.emit()
        self.hide()

    # answers

    def _answer(self, *, approved: bool, lasting: "Lasting" = "once", seconds: float | None = None) -> None:
        question, reason = self._question, "" if approved else self.reason.text().strip()
        self.withdraw()
        if question is not None:
            self.answered.emit(question)
            question.answer(Reply(approved, lasting, seconds, reason))

    def _allow_minutes(self) -> None:
        self._answer(approved=True, lasting="duration", seconds=self.minutes.value() * 60.0)

    def _ask_minutes(self, *, shown: bool = True) -> None:
        for part in (self.minutes, self.minutes_button):
            part.setVisible(shown)
        if shown:
            self.minutes.setFocus(Qt.FocusReason.OtherFocusReason)
            self.minutes.selectAll()

    def _open_menu(self) -> None:
        if self._question is not None:
            self.menu.popup(self.while_button.mapToGlobal(QPoint(0, self.while_button.height())))

    def offer_allowing(self, below: QWidget) -> None:
        """Open a menu of the answers that allow, below a button elsewhere that shows the question here."""
        if self._question is None:
            return
        menu = popup_menu(self)
        for button, key in ((self.approve_button, ONCE), (self.scope_button, SCOPE)):
            add_action(menu, f"{button.text()}\t{key}", button.click, can=button.isEnabled())
        menu.addSeparator()
        self._add_whiles(menu, can=self.while_button.isEnabled())
        menu.popup(below.mapToGlobal(QPoint(0, below.height())))

    def _make_menu(self) -> QMenu:
        menu = QMenu(self)
        menu.setObjectName(f"{self._name}.whiles")
        self._add_whiles(menu)
        return menu

    def _add_whiles(self, menu: QMenu, *, can: bool = True) -> None:
        for words, seconds in WHILES:
            allow = partial(self._answer, approved=True, lasting="duration", seconds=seconds)
            add_action(menu, tr("Allow {time} in any session", time=tr(words)), allow, can=can)
        menu.addSeparator()
        add_action(menu, tr("Another time..."), self._ask_minutes, can=can)

    # what is said

    def _tell_where(self) -> None:
        """A question of the console is about its copy, or live; one of another process says which."""
        if self._name != "console":
            asker = self._question.asker if self._question is not None else ""
            self._where.set_chip(asker or tr("another process"), "plug", "neutral")
        elif self._is_live:
            self._where.set_chip(tr("LIVE: the real workspace"), "triangle-alert", "deny")
        else:
            self._where.set_chip(tr("in the copy"), "layers", "muted")

    def _tell_why(self) -> None:
        if self._question is None:
            return
        reasons = [reason.replace("`", "") for reason in self._question.reasons]
        more = len(reasons) - _MAX_REASONS
        lines = [*reasons[:_MAX_REASONS], *([tr("and {count} more", count=more)] if more > 0 else [])]
        self._places = list(dict.fromkeys(place for place in self._question.places if place))[:_MAX_PLACES]
        for at, button in enumerate(self._place_buttons):
            button.setVisible(at < len(self._places))
            if at < len(self._places):
                words = place_words(self._places[at], line := self._lines.get(self._places[at]))
                button.setText(tr("Go to line {line}", line=line) if line is not None else tr("Go to the rule"))
                tip = tr("Show {place} in the policy", place=words)
                named(button, spoken=tr("Show {place}", place=words), tip=tip)
        if self._is_edited:
            lines.append(tr("the policy was edited since: the call is decided again, by the policy as it is then"))
        self._why.setText("\n".join(f"\u2022 {line}" for line in lines))

    def _tell_answers(self) -> None:
        """Tell what each answer reaches, beside its button."""
        question = self._question
        if question is None:
            return
        is_calm = not self._calm.isActive()
        once = tr("The tool asks because of what would be lost: an answer counts for this call only")
        lasting = (once, once) if question.once_only else (question.duration_words, question.scope_words)
        reaches = tr("This one call, with exactly these arguments"), *lasting
        for button, words in zip(self.reach, reaches, strict=True):
            lasts = button is not self.approve_button
            button.setEnabled(is_calm and not (lasts and question.once_only))
            plain = words.replace("`", "")
            named(self.reach[button], tip=plain).setText(plain)
            button.setAccessibleDescription(plain)
        self.minutes_button.setEnabled(self.while_button.isEnabled())

    def _tell_time(self) -> None:
        question = self._question
        if question is None:
            return
        now_s = time.time()
        parts = [question.wait_words(now_s)]
        if question.asked_wall_s:
            ago_s = now_s - question.asked_wall_s
            parts.append(tr("asked {time} ago", time=span(ago_s)) if ago_s >= 1 else tr("asked just now"))
        parts += [tr("tier {tier}", tier=question.tier)] if question.tier else []
        if question.user_id and not question.process_id:
            parts.append(tr("user {user}", user=visible(question.user_id)))
        if question.session_id:
            parts.append(tr("session {session}", session=visible(question.session_id)))
        if question.waiting > 1:
            parts.append(tr("{count} identical calls", count=question.waiting))
        self._about.set_text(" \u00b7 ".join(parts))

    def _show_part(self, part: object) -> None:
        question = self._question
        if question is None:
            return
        is_change = part == "diff" and question.diff is not None
        self._change.setVisible(is_change)
        if isinstance(self._shown, QStackedWidget):
            self._shown.setCurrentIndex(0 if is_change else 1)
        if is_change and question.diff is not None:
            said, change = change_words(question.diff, question.operation)
            self._change.set_text(said)
            self._code.set_diff(cut(change))
        elif self.tree is None:
            self._code.set_json(question.arguments)
        elif part == "records":
            self.tree.set_value(_records_of(question), tr("ids"))
        else:
            self.tree.set_value(dict(question.values), tr("arguments"))
        if self.tree is None:
            lines = min(max(self._code.text.count("\n") + 1, 3), 6)
            self._code.setFixedHeight(lines * self._code.editor.fontMetrics().lineSpacing() + 24)

    def _go(self, at: int) -> None:
        if at < len(self._places):
            self.place_requested.emit(self._places[at])

    # the parts

    def _make_shortcuts(self, within: QWidget) -> None:
        """On a page of its own the keys count wherever the focus is, while the page is to be seen."""
        near, far = Qt.ShortcutContext.WidgetWithChildrenShortcut, Qt.ShortcutContext.WindowShortcut
        for key, button in (
            (DENY, self.refuse_button),
            (ONCE, self.approve_button),
            (WHILE, self.while_button),
            (SCOPE, self.scope_button),
        ):
            shortcut = QShortcut(QKeySequence(key), within, context=near if within is self else far)
            shortcut.setAutoRepeat(False)
            shortcut.activated.connect(partial(self._press, button))

    def _press(self, button: QPushButton) -> None:
        if self._question is not None and self.isVisible():  # nobody answers what is not to be seen
            button.click()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Escape closes the field for another time, and nothing else."""
        if event.key() == Qt.Key.Key_Escape and self.minutes.isVisible():
            self._ask_minutes(shown=False)
            self.focus_question()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: object) -> None:  # noqa: N802
        """Leave the keys out before the reach of an answer is cut."""
        del event
        for key in self._keys:
            key.setVisible(self.width() >= _KEYS_FROM)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        """Count down while one can see it."""
        super().showEvent(event)
        self._tell_time()
        self._tick.start()

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802
        """Nothing counts unseen."""
        super().hideEvent(event)
        self._tick.stop()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """The soft ground of a question beside other things; of one that fills a page only the stripe at its left."""
        del event
        palette = current_look().palette
        painter = QPainter(self)
        if self.tree is None:
            painter.fillRect(self.rect(), QColor(palette.verdict.ask.soft))
        stripe = palette.verdict.deny if self._is_live else palette.verdict.ask
        painter.fillRect(0, 0, 8 if self._is_live else 4, self.height(), QColor(stripe.fg))
        painter.fillRect(0, self.height() - 1, self.width(), 1, QColor(palette.border))

    def _lay_out(self) -> None:
        answers = QGridLayout()
        space = current_look().tokens.space_2
        answers.setHorizontalSpacing(space)
        answers.setVerticalSpacing(current_look().tokens.space_1)
        answers.setColumnStretch(1, 1)
        beside = {self.refuse_button: self.reason, **self.reach}
        for row, ((button, widget), key) in enumerate(zip(beside.items(), self._keys, strict=True)):
            for column, part in enumerate((button, widget, key)):
                answers.addWidget(part, row, column)
        answers.addLayout(row_of(self.minutes, self.minutes_button, stretch(), space=2), len(beside), 1)
        self._ask_minutes(shown=False)
        self.reason.setMinimumWidth(60)
        places = FlowLayout(spacing=current_look().tokens.space_1)
        for button in self._place_buttons:
            places.addWidget(button)
        head = [IconLabel("hand", "ask"), stretch(self._title)]
        shown: list[Part] = [self._change, self._shown]
        if self.tree is None:
            head = [*head, self._parts]
        else:
            self._shown.setMinimumHeight(_LEAST_SHOWN)
            shown = [row_of(self._parts, stretch(self._change), space=2), stretch(self._shown)]
        column_of(
            row_of(*head, space=2),
            row_of(self._where, stretch(self._about), space=2),
            *shown[:-2],
            self._why,
            places,
            *shown[-2:],
            answers,
            into=self,
            space=1,
            margins=(4, 2, 3, 2),
        )


def _records_of(question: "PendingApproval") -> dict[str, "JsonValue"]:
    """The records that ids stand for, each under its argument and value, and by which call that was told."""
    words = tr("{argument} (by {call})")
    return {
        words.format(argument=f"{one.argument} {one.value}", call=one.called): one.record for one in question.records
    }
