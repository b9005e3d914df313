"""What the preview asks beside the window, and the newest answers.

While an answer is under way the former one stays; when it takes long and was of another agent, tool or format, it goes.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from PySide6.QtCore import QObject, QTimer, Signal

from gatewright.workspace.api import frozen
from gatewright_gui.pages.page import PageContext
from gatewright_gui.session.context import ContextText, context_text, text_tokens
from gatewright_gui.session.preview import Base, Comparison, Preview, Reception, compare_agent, preview, reception
from gatewright_gui.session.tokens import TokenReport, token_report

AnswerT = TypeVar("AnswerT")
PATIENCE_MS = 200
"""How long a text of something else may stay while an answer is under way."""


@frozen
class Wanted:
    """The subject that is asked for; no tool: all of the agent."""

    agent_id: str
    tool: str | None
    provider: str

    def is_of(self, answer: Preview | Comparison | None) -> bool:
        """Tell whether an answer is one to this."""
        return answer is not None and self == Wanted(answer.agent_id, answer.tool, answer.provider)


class Answers(QObject):
    """Asks anew for what is wanted; the newest question of a kind wins."""

    changed = Signal()
    """Another text or difference, or none any more."""
    counted = Signal(object)
    """TokenReport of the agent; None when what was counted is out of date."""
    received = Signal(object)
    """How every provider takes it: Reception; None while it is not known."""

    def __init__(self, context: PageContext, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._wanted: Wanted | None = None
        self._received: Reception | None = None
        self.text: Preview | None = None
        self.comparison: Comparison | None = None
        self.report: TokenReport | None = None
        self.context: ContextText | None = None
        self.is_late = False
        """Whether what is wanted has been waited for too long to show something else."""
        self.is_under_way = False
        """Whether the text is one of before, and another is to come."""
        self._patience = QTimer(self, singleShot=True, interval=PATIENCE_MS)
        self._patience.timeout.connect(self._lose_patience)

    def ask_texts(self, wanted: Wanted | None) -> None:
        """The texts, and how the providers take them; None: there is nobody to ask about."""
        self._wanted, tasks = wanted, self._context.tasks
        if wanted is None:
            for name in ("preview", "preview.providers"):
                tasks.cancel(name)
            self.text, self._received, self.is_late, self.is_under_way = None, None, False, False
            self._patience.stop()
            self.changed.emit()
            self.received.emit(None)
            return
        self._patience.start()
        self.is_under_way = True
        agent_id, tool, provider = wanted.agent_id, wanted.tool, wanted.provider
        derive = self._context.deriver.derive
        self._ask("preview", lambda: derive(preview, agent_id, tool, provider), self._take_text)
        self._ask("preview.providers", lambda: derive(reception, agent_id, tool), self._take_reception)

    def ask_comparison(self, wanted: Wanted | None, base: Base) -> None:
        """Ask what differs; None while nobody looks at it: it is worked out for them alone."""
        if wanted is None:
            self._context.tasks.cancel("preview.difference")
            self.comparison = None
        else:
            agent_id, tool, provider = wanted.agent_id, wanted.tool, wanted.provider
            derive = self._context.deriver.derive
            self._ask(
                "preview.difference",
                lambda: derive(compare_agent, agent_id, tool, provider, base),
                self._take_comparison,
            )

    def ask_context(self, agent_id: str | None) -> None:
        """Ask what the agent has in context; None while nobody looks at it."""
        if self.context is not None and self.context.agent_id != agent_id:
            self.context = None
        if agent_id is None:
            self._context.tasks.cancel("preview.context")
        else:
            derive, workspace = self._context.deriver.derive, self._context.document.workspace
            self._ask(
                "preview.context",
                lambda: context_text(workspace, agent_id, lambda text: derive(text_tokens, text)),
                self._take_context,
            )

    def ask_count(self, wanted: Wanted | None) -> None:
        """The tokens of all tools of the agent; the former count stays if it was of the same agent and format."""
        report = self.report
        if report is not None and (
            wanted is None or (wanted.agent_id, wanted.provider) != (report.agent_id, report.provider)
        ):
            self._take_report(None)
        if wanted is None:
            self._context.tasks.cancel("preview.tokens")
        else:
            agent_id, provider = wanted.agent_id, wanted.provider
            derive = self._context.deriver.derive
            self._ask("preview.tokens", lambda: derive(token_report, agent_id, provider), self._take_report)

    def _ask(
        self, name: str, question: Callable[[], Awaitable[AnswerT | None]], take: Callable[[AnswerT], None]
    ) -> None:
        """Take the answer to a question; an older one of the same name is given up."""

        async def answer() -> None:
            found = await question()
            if found is not None:
                take(found)

        self._context.tasks.start(answer(), name, replace=True)

    def _take_text(self, answer: Preview) -> None:
        self.text, self.is_late, self.is_under_way = answer, False, False
        self.changed.emit()

    def _take_comparison(self, answer: Comparison) -> None:
        self.comparison = answer
        self.changed.emit()

    def _take_context(self, answer: ContextText) -> None:
        self.context = answer
        self.changed.emit()

    def _take_reception(self, answer: Reception) -> None:
        self._received = answer
        self.received.emit(answer)

    def _take_report(self, report: TokenReport | None) -> None:
        self.report = report
        self.counted.emit(report)

    def _lose_patience(self) -> None:
        """Drop what stands there of something else while the answer is still under way."""
        wanted, received = self._wanted, self._received
        if wanted is None:
            return
        if received is None or (received.agent_id, received.tool) != (wanted.agent_id, wanted.tool):
            self.received.emit(None)
        if not wanted.is_of(self.text):
            self.is_late = True
            self.changed.emit()
