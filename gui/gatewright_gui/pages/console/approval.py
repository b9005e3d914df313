"""A question that a call waits for, as a bar in the page: what, why, with which arguments and which change.

It blocks nothing and answers nothing by itself: the focus is never put on a button that allows.
"""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget import CodeView, ElidedLabel, IconLabel, Segmented
from gatewright_gui.session.calls import PendingApproval, change_words, cut

KEY = "F6"
"""Leads to the open question."""


class ApprovalBar(QWidget):
    """Hidden until there is a question. `focus_question` leads to it; Deny comes before Allow."""

    keys_given_back = Signal()
    """The bar had the keys and is about to hide."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("console.approval")
        self._question: PendingApproval | None = None
        self._title = QLabel()
        self._title.setProperty("kind", "heading")
        self._title.setTextFormat(Qt.TextFormat.PlainText)
        self._why = QLabel()
        self._why.setWordWrap(True)
        self._why.setTextFormat(Qt.TextFormat.PlainText)
        self._change = ElidedLabel(path=True, mono=True, role="muted")
        self._code = CodeView("What the call would do")
        self._hint = QLabel(f"{KEY}: to the question")
        self._hint.setProperty("kind", "small")
        self._parts = Segmented("What is shown")
        self._parts.add_segment("arguments", "Arguments")
        self._parts.add_segment("diff", "Change")
        self._parts.current_changed.connect(self._show_part)
        self.approve_button = self._button("Allow once", "console.approve")
        self.refuse_button = self._button("Deny", "console.refuse")
        self.refuse_button.setProperty("kind", "danger")
        self.approve_button.clicked.connect(self._allow)
        self.refuse_button.clicked.connect(self._refuse)
        self._lay_out()
        current_look().changed.connect(self.update)
        self.hide()

    @property
    def question(self) -> PendingApproval | None:
        """The question that is open."""
        return self._question

    def ask(self, question: PendingApproval) -> None:
        """Show a question. The focus stays where it is."""
        self._question = question
        what = f"{question.tool}.{question.operation}" if question.operation else question.tool
        self._title.setText(f"{question.agent_id} asks to call {what}")
        self._why.setText("\n".join(question.reasons))
        self._parts.set_segment_enabled("diff", question.diff is not None)
        self._parts.set_current("diff" if question.diff is not None else "arguments")
        self._show_part(self._parts.current)
        self.setAccessibleName(f"{self._title.text()}: {self._why.text()}")
        self.show()

    def say_edited(self) -> None:
        """The policy changed under an open question."""
        question = self._question
        if question is not None:
            edited = "The policy was edited since: the call goes by the policy as it was when it began"
            self._why.setText("\n".join((*question.reasons, edited)))

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
            self.refuse_button,
            self.approve_button,
            self._code.editor,
        )

    def withdraw(self) -> None:
        """The question is answered or gone."""
        self._question = None
        focus = QApplication.focusWidget()
        if focus is not None and self.isAncestorOf(focus):
            self.keys_given_back.emit()
        self.hide()

    def _allow(self) -> None:
        self._answer(approved=True)

    def _refuse(self) -> None:
        self._answer(approved=False)

    def _answer(self, *, approved: bool) -> None:
        question = self._question
        self.withdraw()
        if question is not None:
            question.answer(approved)

    def _show_part(self, part: object) -> None:
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
        lines = min(max(self._code.text.count("\n") + 1, 3), 8)
        self._code.setFixedHeight(lines * self._code.editor.fontMetrics().lineSpacing() + 24)

    @staticmethod
    def _button(text: str, name: str) -> QPushButton:
        button = QPushButton(text)
        button.setObjectName(name)
        button.setAccessibleName(text)
        button.setAutoDefault(False)
        button.setDefault(False)
        return button

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """The soft ground of a question."""
        del event
        palette = current_look().palette
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(palette.verdict.ask.soft))
        painter.fillRect(0, 0, 4, self.height(), QColor(palette.verdict.ask.fg))

    def _lay_out(self) -> None:
        tokens = current_look().tokens
        first = QHBoxLayout()
        first.setSpacing(tokens.space_2)
        first.addWidget(IconLabel("hand", "ask"))
        first.addWidget(self._title)
        first.addStretch(1)
        first.addWidget(self._hint)
        first.addWidget(self._parts)
        first.addWidget(self.refuse_button)
        first.addWidget(self.approve_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(tokens.space_4, tokens.space_2, tokens.space_3, tokens.space_2)
        column.setSpacing(tokens.space_1)
        column.addLayout(first)
        column.addWidget(self._why)
        column.addWidget(self._change)
        column.addWidget(self._code)
