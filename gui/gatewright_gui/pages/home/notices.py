"""Calls for the operator: one call to answer, and links to gates, tools to accept, problems, unsaved changes."""

import time
from collections.abc import Callable, Sequence

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QFrame, QPushButton, QWidget

from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.layout import named, row_of, stretch
from gatewright_gui.qt.look import Role, tie_icon
from gatewright_gui.qt.widget.flow_layout import FlowLayout
from gatewright_gui.qt.widget.label import ElidedLabel, Label
from gatewright_gui.session.calls import visible
from gatewright_gui.session.coding_agents import HostLevel, HostStatus
from gatewright_gui.session.question import PendingApproval, Reply


class WaitingBand(QFrame):
    """The oldest call that waits: denied here, allowed where all of it is seen."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        named(self, "home.waiting", kind="waits")
        self._context = context
        self._question: PendingApproval | None = None
        self.words = named(ElidedLabel(), "home.waiting.words")
        self.left = named(Label(), "home.waiting.left", kind="muted")
        self.deny_button = named(QPushButton(tr("Deny")), "home.deny", tip=tr("Deny this call, once"))
        self.see_button = named(QPushButton(tr("See the call")), "home.see", kind="primary")
        self.deny_button.clicked.connect(self._deny)
        self.see_button.clicked.connect(self._see)
        row_of(stretch(self.words), self.left, self.deny_button, self.see_button, into=self, space=3, margins=(3, 2))
        self._tick = QTimer(self, interval=1_000)
        self._tick.timeout.connect(self._say_left)
        self._tick.start()
        context.waiting.changed.connect(self.refresh)
        self.refresh()

    def refresh(self, _why: object = None) -> None:
        """Show the call that has waited longest; none: nothing."""
        questions = self._context.waiting.questions
        question = self._question = questions[0] if questions else None
        self.setVisible(question is not None)
        if question is None:
            return
        about = visible(", ".join(question.about))
        words = tr("{agent} wants to call {called}", agent=visible(question.agent_id), called=question.called)
        words = f"{words}: {about}" if about else words
        if more := len(questions) - 1:
            words = tr("{call}, and {more} more", call=words, more=f"{more:,}")
        self.words.set_text(words)
        self._say_left()

    def _say_left(self) -> None:
        if self._question is not None and self.isVisible():
            self.left.setText(self._question.wait_words(time.time()))

    def _deny(self) -> None:
        if self._question is not None:
            self._question.answer(Reply(approved=False))

    def _see(self) -> None:
        if self._question is not None:
            self._context.navigator.go_to_waiting((self._question.digest,))


class Notices(QWidget):
    """Links to what needs a look; one that has nothing to say is not there."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self._context = context
        self._coding_agents: tuple[HostStatus, ...] = ()
        go = context.navigator
        self._lines = FlowLayout(self, spacing=8)
        self._lines.setContentsMargins(0, 0, 0, 0)
        self.unsafe = self._line("unsafe", "shield-x", "deny", lambda: go.go_to_page("servers"))
        self.ungated = self._line("ungated", "shield-alert", "ask", lambda: go.go_to_page("servers"))
        self.held = self._line("held", "plug", "ask", lambda: go.go_to_page("servers"))
        self.errors = self._line("errors", "circle-alert", "deny", lambda: go.go_to_page("problems"))
        self.warnings = self._line("warnings", "triangle-alert", "ask", lambda: go.go_to_page("problems"))
        self.unsaved = self._line("unsaved", "circle-dot", "ask", go.go_to_difference)

    def _line(self, key: str, icon: str, role: Role, run: Callable[[], None]) -> QPushButton:
        button = named(QPushButton(), f"home.{key}", kind="link")
        tie_icon(button, icon, role)
        button.clicked.connect(lambda _=False: run())
        self._lines.addWidget(button)
        button.hide()
        return button

    def set_coding_agents(self, found: tuple[HostStatus, ...]) -> None:
        """Say which coding agents on this machine ask no gate, and which gates do not hold."""
        self._coding_agents = found
        self.refresh()

    @property
    def ungated_names(self) -> list[str]:
        """The coding agents that ask no gate, or whose gate does not hold."""
        return [one.title for one in self._coding_agents if one.file is None or one.level is HostLevel.RED]

    def refresh(self, _why: object = None) -> None:
        """Say what is so now."""
        document = self._context.document
        errors = sum(problem.is_error for problem in document.problems)
        warnings = len(document.problems) - errors
        held = sum(bool(facts.held) for facts in document.catalog)
        ungated = [one.title for one in self._coding_agents if one.file is None]
        unsafe = [one.title for one in self._coding_agents if one.file is not None and one.level is HostLevel.RED]
        for line, count, words in (
            (self.unsafe, len(unsafe), tr("The gate before {agents} does not hold", agents=", ".join(unsafe))),
            (self.ungated, len(ungated), gate_words(ungated)),
            (self.held, held, tr("{tools} to accept", tools=counted(held, "tool", "tools"))),
            (self.errors, errors, counted(errors, "error", "errors")),
            (self.warnings, warnings, counted(warnings, "warning", "warnings")),
            (self.unsaved, document.is_dirty, tr("Unsaved changes")),
        ):
            line.setText(words)
            line.setVisible(bool(count))
        self.setVisible(any(line.isVisibleTo(self) for line in self.findChildren(QPushButton)))


def gate_words(names: Sequence[str]) -> str:
    """`Put a gate before Claude Code`; of several, which the sentence above names, their number."""
    if len(names) < 2:
        return tr("Put a gate before {agent}", agent="".join(names))
    return tr("Put a gate before these {count}", count=len(names))
