"""A call that waits for an answer, as a bar: who asks for what and why, until when, and the ways to answer.

The focus is never put on a button that allows.
"""

import time
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QHideEvent, QKeyEvent, QKeySequence, QPainter, QPaintEvent, QShortcut, QShowEvent
from PySide6.QtWidgets import QApplication, QMenu, QWidget

from gatewright_gui.pages.console.button import text_button
from gatewright_gui.qt.layout import column_of, named, row_of, stretch
from gatewright_gui.qt.look import current_look, tie_icon
from gatewright_gui.qt.plaintext import button_text, tip_text
from gatewright_gui.qt.widget import Chip, CodeView, ElidedLabel, IconLabel, Segmented
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.number_field import NumberField

if TYPE_CHECKING:
    from gatewright_gui.session.question import Lasting, PendingApproval


KEY = "F6"
"""Leads to the open question."""
WHILES = (("5 minutes", 300.0), ("15 minutes", 900.0), ("1 hour", 3_600.0))
_TICK_MS = 1000
_MAX_REASONS = 6
_DENY, _ONCE, _WHILE, _SCOPE = "D", "O", "W", "S"
"""Keys while the focus is in the bar."""


class ApprovalBar(QWidget):
    """Hidden until there is a question. `focus_question` leads to it; Deny comes first.

    `name` begins the object names, so that two bars can be told apart.
    """

    keys_given_back = Signal()
    """The bar had the keys and is about to hide."""

    def __init__(self, parent: QWidget | None = None, *, name: str = "console") -> None:
        from gatewright_gui.session.question import MAX_MINUTES

        super().__init__(parent)
        self.setObjectName(f"{name}.approval")
        self._name = name
        self._question: PendingApproval | None = None
        self._is_edited = False
        self._title = named(Label(), kind="heading")
        self._title.setWordWrap(True)  # a long name takes another line and pushes no neighbour aside
        self._about = named(ElidedLabel(role="muted"), f"{name}.approval.about")
        self._why = named(Label(), f"{name}.approval.why")
        self._why.setWordWrap(True)
        self._change = ElidedLabel(path=True, mono=True, role="muted")
        self._covers = named(Label(), f"{name}.approval.covers", kind="muted")
        self._covers.setWordWrap(True)
        self._is_live = False
        self._where = named(Chip("", role="blocked"), f"{name}.approval.where")
        self._code = CodeView("What the call would do")
        self._hint = ElidedLabel(role="muted")
        keys = f"{KEY}, then {_DENY}  {_ONCE}  {_WHILE}  {_SCOPE}"
        self._hint.set_text(keys, f"{KEY} leads to the question; there a letter answers it")
        self._parts = Segmented("What is shown")
        self._parts.add_segment("arguments", "Arguments")
        self._parts.add_segment("diff", "Change")
        self._parts.current_changed.connect(self._show_part)
        allow, deny = (
            partial(ApprovalBar._answer, self, approved=True),
            partial(ApprovalBar._answer, self, approved=False),
        )
        self.refuse_button = text_button(
            "Deny", f"{name}.refuse", deny, "The call is not made", spoken=f"Deny, key {_DENY}", kind="danger"
        )
        tip = "This one call, with these arguments"
        self.approve_button = text_button(
            "Allow once", f"{name}.approve", allow, tip, spoken=f"Allow once, key {_ONCE}"
        )
        self.while_button = text_button(
            "For a while", f"{name}.while", self._open_menu, spoken=f"Allow for a while, key {_WHILE}"
        )
        tie_icon(self.while_button, "clock")
        self.scope_button = text_button(
            "For this session", f"{name}.scope", partial(allow, lasting="scope"), spoken="Allow for this session"
        )
        self.minutes = named(NumberField("Minutes", 1, MAX_MINUTES, unit="min"), f"{name}.minutes")
        self.minutes.setValue(30)
        self.minutes_button = text_button("Allow that long", f"{name}.minutesallow", self._allow_minutes)
        self.menu = self._make_menu()
        self._make_shortcuts()
        self._lay_out()
        self._tick = QTimer(self, interval=_TICK_MS)
        self._tick.timeout.connect(self._tell_time)
        current_look().changed.connect(self.update)
        self.hide()

    @property
    def question(self) -> "PendingApproval | None":
        """The question that is open."""
        return self._question

    @property
    def about(self) -> str:
        """Tier, session, since when and until when."""
        return self._about.text

    def ask(self, question: "PendingApproval", note: str = "") -> None:
        """Show a question; `note` goes before its name. The focus stays where it is."""
        from gatewright_gui.session.calls import visible

        is_new = self._question is None or self._question.request_id != question.request_id or not question.request_id
        self._question = question
        self._title.setText(f"{note}{visible(question.agent_id)} asks to call {question.called}")
        if is_new:
            self._is_edited = False
            self._ask_minutes(shown=False)
            self._parts.set_segment_enabled("diff", question.diff is not None)
            self._parts.set_current("diff" if question.diff is not None else "arguments")
            self._show_part(self._parts.current)
        self._tell_where()
        self._tell_why()
        self._tell_answers(question)
        self._tell_time()
        self.setAccessibleName(f"{self._title.text()}: {self._why.text()}")
        self.show()

    def set_live(self, live: bool) -> None:
        """Whether what is allowed here is done in the real workspace."""
        self._is_live = live
        self._tell_where()
        self.update()

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
        """What Tab passes, in order."""
        return (
            self._parts.button("arguments"),
            self._parts.button("diff"),
            self._code.editor,
            self.refuse_button,
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
        from gatewright_gui.session.question import Reply

        question = self._question
        self.withdraw()
        if question is not None:
            question.answer(Reply(approved, lasting, seconds))

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

    def _make_menu(self) -> QMenu:
        menu = QMenu(self)
        menu.setObjectName(f"{self._name}.whiles")
        for words, seconds in WHILES:
            menu.addAction(words).triggered.connect(partial(self._allow_for, seconds))
        menu.addSeparator()
        menu.addAction("Another time...").triggered.connect(lambda _=False: self._ask_minutes())
        return menu

    def _allow_for(self, seconds: float, _checked: bool = False) -> None:
        self._answer(approved=True, lasting="duration", seconds=seconds)

    # what is said

    def _tell_where(self) -> None:
        """A question of the console is about its copy, or live; one of another process says no more than that."""
        if self._name != "console":
            self._where.set_chip("another process", "plug", "blocked")
        elif self._is_live:
            self._where.set_chip("LIVE: the real workspace", "triangle-alert", "deny")
        else:
            self._where.set_chip("in the copy", "layers", "blocked")

    def _tell_why(self) -> None:
        if self._question is None:
            return
        reasons = [reason.replace("`", "") for reason in self._question.reasons]
        more = len(reasons) - _MAX_REASONS
        lines = [*reasons[:_MAX_REASONS], *([f"and {more} more"] if more > 0 else [])]
        if self._is_edited:
            lines.append("the policy was edited since: the call is decided again, by the policy as it is then")
        self._why.setText("\n".join(f"\u2022 {line}" for line in lines))

    def _tell_answers(self, question: "PendingApproval") -> None:
        words = f"scope {_short(question.scope)}" if question.scope else "this session"
        self.scope_button.setText(button_text(f"For {words}"))
        self.scope_button.setAccessibleName(f"Allow for {words}, key {_SCOPE}")
        self._covers.setText(question.cover_words.replace("`", ""))
        once = "The tool itself asks because of what would be lost: an answer counts for this call only"
        for button, words in (
            (self.while_button, question.duration_words),
            (self.minutes_button, question.duration_words),
            (self.scope_button, question.scope_words),
        ):
            button.setEnabled(not question.once_only)
            button.setToolTip(once if question.once_only else tip_text(f"Allows {words}"))

    def _tell_time(self) -> None:
        from gatewright_gui.session.calls import visible
        from gatewright_gui.session.question import span

        question = self._question
        if question is None:
            return
        now_s = time.time()
        parts = [_until(question.expires_wall_s, now_s)]
        if question.asked_wall_s:
            ago_s = now_s - question.asked_wall_s
            parts.append(f"asked {span(ago_s)} ago" if ago_s >= 1 else "asked just now")
        parts += [f"tier {question.tier}"] if question.tier else []
        parts += [f"user {visible(question.user_id)}"] if question.user_id else []
        parts += [f"session {visible(question.session_id)}"] if question.session_id else []
        parts += [f"{question.waiting} identical calls"] if question.waiting > 1 else []
        self._about.set_text(" \u00b7 ".join(parts))

    def _show_part(self, part: object) -> None:
        from gatewright_gui.session.calls import change_words, cut

        question = self._question
        if question is None:
            return
        is_change = part == "diff" and question.diff is not None
        self._change.setVisible(is_change)
        if is_change and question.diff is not None:
            said, change = change_words(question.diff, question.operation)
            self._change.set_text(said)
            self._code.set_diff(cut(change))
        else:
            self._code.set_json(question.arguments)
        lines = min(max(self._code.text.count("\n") + 1, 3), 6)
        self._code.setFixedHeight(lines * self._code.editor.fontMetrics().lineSpacing() + 24)

    # the parts

    def _make_shortcuts(self) -> None:
        for key, button in (
            (_DENY, self.refuse_button),
            (_ONCE, self.approve_button),
            (_WHILE, self.while_button),
            (_SCOPE, self.scope_button),
        ):
            shortcut = QShortcut(QKeySequence(key), self, context=Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(button.click)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Escape closes the field for another time, and nothing else."""
        if event.key() == Qt.Key.Key_Escape and self.minutes.isVisible():
            self._ask_minutes(shown=False)
            self.focus_question()
        else:
            super().keyPressEvent(event)

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
        """The soft ground of a question."""
        del event
        palette = current_look().palette
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(palette.verdict.ask.soft))
        stripe = palette.verdict.deny if self._is_live else palette.verdict.ask
        painter.fillRect(0, 0, 8 if self._is_live else 4, self.height(), QColor(stripe.fg))
        painter.fillRect(0, self.height() - 1, self.width(), 1, QColor(palette.border))

    def _lay_out(self) -> None:
        self._hint.setMinimumWidth(1)  # the first to give way: the answers push no neighbour aside
        buttons = (self.refuse_button, self.approve_button, self.while_button)
        lasting = (self.minutes, self.minutes_button, self.scope_button)
        column_of(
            row_of(IconLabel("hand", "ask"), stretch(self._title), self._parts, space=2),
            row_of(self._where, stretch(self._about), space=2),
            self._why,
            self._change,
            self._code,
            self._covers,
            row_of(*buttons, *lasting, stretch(), stretch(self._hint, 2), space=2),
            into=self,
            space=1,
            margins=(4, 2, 3, 2),
        )


def _short(text: str) -> str:
    from gatewright_gui.session.calls import visible

    shown = visible(text)
    return shown if len(shown) <= 20 else f"{shown[:19]}\u2026"


def _until(expires_wall_s: float | None, now_s: float) -> str:
    from gatewright_gui.session.question import span

    if expires_wall_s is None:
        return "waits until it is answered"
    left_s = expires_wall_s - now_s
    return f"denied in {span(left_s)} if nobody answers" if left_s >= 1 else "its time is over"
