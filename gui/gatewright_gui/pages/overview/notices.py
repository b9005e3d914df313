"""What waits for the operator, each a line that leads there: calls, tools to accept, problems, unsaved changes."""

from collections.abc import Callable

from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from gatewright_gui.pages.overview.agent_cards import today_words
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, named, stretch
from gatewright_gui.qt.look import Role, tie_icon
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.calls_today import Tally
from gatewright_gui.session.coding_agents import HostLevel, HostStatus

NOTHING = mark("Nothing waits.")


class Notices(QWidget):
    """Lines that say nothing are not there."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self._context = context
        self._calls: Tally = {}
        self._coding_agents: tuple[HostStatus, ...] = ()
        go = context.navigator
        self._nothing = named(Label(tr(NOTHING)), "overview.nothing", kind="muted")
        self._lines = QVBoxLayout()
        self.waiting = self._line("waiting", "hand", "ask", lambda: go.go_to_waiting(()))
        self.held = self._line("held", "plug", "ask", lambda: go.go_to_page("catalogs"))
        self.errors = self._line("errors", "circle-alert", "deny", lambda: go.go_to_page("problems"))
        self.warnings = self._line("warnings", "triangle-alert", "ask", lambda: go.go_to_page("problems"))
        self.unsafe = self._line("unsafe", "shield-x", "deny", lambda: go.go_to_page("catalogs"))
        self.ungated = self._line("ungated", "shield-alert", "ask", lambda: go.go_to_page("catalogs"))
        self.unsaved = self._line("unsaved", "circle-dot", "ask", go.go_to_difference)
        self.calls = self._line("calls", "history", "muted", lambda: go.go_to_page("audit"))
        column_of(self._nothing, self._lines, stretch(), into=self, margins=(3, 1, 3, 2))

    def _line(self, key: str, icon: str, role: Role, run: Callable[[], None]) -> QPushButton:
        button = named(QPushButton(), f"overview.{key}", kind="link")
        tie_icon(button, icon, role)
        button.clicked.connect(lambda _=False: run())
        self._lines.addWidget(button)
        button.hide()  # until it is known what there is to say: all at once would take the room of the agents
        button.setSizePolicy(button.sizePolicy().Policy.Maximum, button.sizePolicy().Policy.Fixed)
        return button

    def set_calls(self, calls: Tally) -> None:
        """What was called today."""
        self._calls = calls
        self.refresh()

    def set_coding_agents(self, found: tuple[HostStatus, ...]) -> None:
        """Say which coding agents on this machine ask no gate, and which gates do not hold."""
        self._coding_agents = found
        self.refresh()

    def refresh(self, _why: object = None) -> None:
        """Say what is so now."""
        document, waiting = self._context.document, len(self._context.waiting.questions)
        errors = sum(problem.is_error for problem in document.problems)
        warnings = len(document.problems) - errors
        held = sum(bool(facts.held) for facts in document.catalog)
        counts = [count for verdicts in self._calls.values() for count in verdicts.items()]
        made, denied = sum(count for _, count in counts), sum(count for verdict, count in counts if verdict == "deny")
        ungated = [one.title for one in self._coding_agents if one.file is None]
        unsafe = [one.title for one in self._coding_agents if one.file is not None and one.level is HostLevel.RED]
        for line, count, words in (
            (self.unsafe, len(unsafe), tr("The gate before {agents} does not hold", agents=", ".join(unsafe))),
            (self.ungated, len(ungated), tr("Not gated: {agents}", agents=", ".join(ungated))),
            (self.waiting, waiting, tr("{calls} for you to answer", calls=counted(waiting, "call", "calls"))),
            (self.held, held, tr("{tools} to accept", tools=counted(held, "tool", "tools"))),
            (self.errors, errors, counted(errors, "error", "errors")),
            (self.warnings, warnings, counted(warnings, "warning", "warnings")),
            (self.unsaved, document.is_dirty, tr("Unsaved changes")),
            (self.calls, made, today_words(made, denied)),
        ):
            line.setText(words)
            line.setVisible(bool(count))
        is_known = self._context.waiting.is_known
        told = (waiting, held, errors, warnings, document.is_dirty, ungated, unsafe)
        self._nothing.setVisible(is_known and not any(told))
