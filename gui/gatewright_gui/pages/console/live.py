"""Live mode and the disposable copy: the question before, the bar that says it loudly, throwing the copy away."""

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QWidget

from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.dialog import Choice, ask
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget.icon_label import IconLabel
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.console import Console

TITLE = "LIVE MODE"


class LiveBar(QWidget):
    """Hidden until `show_live`; solid in the colour of a refusal, with words and a way out."""

    leave_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        tokens = current_look().tokens
        self.setObjectName("console.livebar")
        self._icon = IconLabel("triangle-alert", "on_accent", parent=self)
        self._title = Label(TITLE)
        self._title.setProperty("kind", "live")
        self._words = Label()
        self._words.setProperty("kind", "live-words")
        self._words.setWordWrap(True)
        self._words.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.leave_button = QPushButton("Leave live mode")
        self.leave_button.setObjectName("console.leavelive")
        self.leave_button.setAccessibleName("Leave live mode")
        self.leave_button.setToolTip("Runs happen in a disposable copy again (Ctrl+Shift+L)")
        self.leave_button.setAutoDefault(False)
        self.leave_button.clicked.connect(self.leave_requested)
        row = QHBoxLayout(self)
        row.setContentsMargins(tokens.space_3, tokens.space_1, tokens.space_2, tokens.space_1)
        row.setSpacing(tokens.space_2)
        row.addWidget(self._icon)
        row.addWidget(self._title)
        row.addWidget(self._words, 1)
        row.addWidget(self.leave_button)
        self.setMinimumHeight(tokens.control_height + tokens.space_3)
        current_look().changed.connect(self.update)
        self.hide()

    def show_live(self, name: str) -> None:
        """Runs are real, in the workspace of that name."""
        words = f"Runs change the real files and blocks of {name}, and its audit log keeps them."
        self._words.setText(words)
        self.setAccessibleName(f"{TITLE}: {words}")
        self.show()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """A solid ground."""
        del event
        QPainter(self).fillRect(self.rect(), QColor(current_look().palette.verdict.deny.fg))


_GO_LIVE = (
    "Runs will then change the real files and blocks of {name}, under the policy as edited now, saved or not. Nothing "
    "takes that back. The audit log of the workspace keeps every call."
)
_RESET = (
    "Reset copy throws it away, with the approvals that stand in it; the next run gets a fresh one, and the counts of "
    "the session stay (Ctrl+Shift+Del)"
)


class LiveControl(QObject):
    """Follows the document; `changed` is called after everything that the page has to show anew."""

    def __init__(
        self, context: PageContext, console: Console, bar: LiveBar, page: QWidget, changed: Callable[[], None]
    ) -> None:
        super().__init__(page)
        self._context, self._console, self._bar, self._page, self._changed = context, console, bar, page, changed
        bar.leave_requested.connect(self.toggle)
        context.document.live.changed.connect(self._live_changed)

    def toggle(self) -> None:
        """Leave live mode, or ask whether it is meant."""
        live = self._context.document.live
        if self._console.is_busy:
            return
        if live.is_on:
            live.leave()
        elif self._context.document.is_open:
            self._context.tasks.start(self._go_live(), "console.live", replace=True)

    async def _go_live(self) -> None:
        """Only after a question whose harmless answer is the default."""
        document = self._context.document
        workspace = document.workspace
        choices = (Choice("stay", "Stay in the copy", "primary"), Choice("live", "Go live", "danger"))
        text = _GO_LIVE.format(name=document.name)
        answer = await ask(self._page, "Run in the real workspace?", text, choices, icon="triangle-alert", role="deny")
        if answer == "live" and document.is_open and document.workspace is workspace:
            document.live.enter()

    def _live_changed(self, is_live: bool) -> None:
        if is_live:
            self._bar.show_live(self._context.document.name)
        else:
            self._bar.hide()
        self._changed()

    def reset_copy(self) -> None:
        """Throw the copy away."""
        if not self._console.is_busy and self._console.has_copy:
            self._context.tasks.start(self._throw_away(), "console.resetcopy", replace=True)

    async def _throw_away(self) -> None:
        gone = await self._console.reset_copy()
        stood = f", and {gone} standing approval{'' if gone == 1 else 's'} with it" if gone else ""
        self._context.document.say("info", f"the copy was thrown away{stood}; the next run gets a fresh one")
        self._changed()

    @property
    def about_copy(self) -> str:
        """What is to be known of the copy."""
        copied = self._console.copied
        if copied is None:
            return "There is no copy yet: the first run makes one"
        told = [f"The copy of {copied.files:,} files holds what was run", _RESET]
        if copied.links_cut:
            told.append("links that lead out of the workspace lead nowhere in it: " + ", ".join(copied.links_cut))
        if copied.unread:
            told.append("could not be read, and stands empty in it: " + ", ".join(copied.unread))
        return "\n".join(told)
