"""Live mode and the disposable copy: the question before, the bar that says it loudly, throwing the copy away."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from gatewright_gui.pages.console.button import text_button
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.dialog import Choice, ask
from gatewright_gui.qt.layout import named, row_of, stretch
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget.icon_label import IconLabel
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.console import Console

TITLE = "LIVE MODE"


_GO_LIVE = (
    "Runs will then change the real files and blocks of {name}, under the policy as edited now, saved or not. Nothing "
    "takes that back. The audit log of the workspace keeps every call."
)
_RESET = (
    "Reset copy throws it away, with the approvals that stand in it; the next run gets a fresh one, and the counts of "
    "the session stay (Ctrl+Shift+Del)"
)


class LiveBar(QWidget):
    """Shown while runs are real; solid in the colour of a refusal, with words and a way out."""

    changed = Signal()
    """Live mode was entered or left, or the copy was thrown away."""

    def __init__(self, context: PageContext, console: Console) -> None:
        super().__init__()
        self._context, self._console = context, console
        self.setObjectName("console.livebar")
        self._words = named(Label(), kind="live-words")
        self._words.setWordWrap(True)
        self._words.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        tip = "Runs happen in a disposable copy again (Ctrl+Shift+L)"
        self.leave_button = text_button("Leave live mode", "console.leavelive", self.toggle, tip)
        icon, title = IconLabel("triangle-alert", "on_accent"), named(Label(TITLE), kind="live")
        row_of(icon, title, stretch(self._words), self.leave_button, into=self, space=2, margins=(3, 1, 2, 1))
        self.setMinimumHeight(current_look().tokens.control_height + current_look().tokens.space_3)
        current_look().changed.connect(self.update)
        self.hide()
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
        answer = await ask(
            self.window(), "Run in the real workspace?", text, choices, icon="triangle-alert", role="deny"
        )
        if answer == "live" and document.is_open and document.workspace is workspace:
            document.live.enter()

    def _live_changed(self, is_live: bool) -> None:
        words = f"Runs change the real files and blocks of {self._context.document.name}, and its audit log keeps them."
        self._words.setText(words)
        self.setAccessibleName(f"{TITLE}: {words}")
        self.setVisible(is_live)
        self.changed.emit()

    def reset_copy(self) -> None:
        """Throw the copy away."""
        if not self._console.is_busy and self._console.has_copy:
            self._context.tasks.start(self._throw_away(), "console.resetcopy", replace=True)

    async def _throw_away(self) -> None:
        gone = await self._console.reset_copy()
        stood = f", and {gone} standing approval{'' if gone == 1 else 's'} with it" if gone else ""
        self._context.document.say("info", f"the copy was thrown away{stood}; the next run gets a fresh one")
        self.changed.emit()

    def copy_words(self) -> str:
        """What is to be known of the disposable copy."""
        copied = self._console.copied
        if copied is None:
            return "There is no copy yet: the first run makes one"
        told = [f"The copy of {copied.files:,} files holds what was run", _RESET]
        if copied.links_cut:
            told.append("links that lead out of the workspace lead nowhere in it: " + ", ".join(copied.links_cut))
        if copied.unread:
            told.append("could not be read, and stands empty in it: " + ", ".join(copied.unread))
        return "\n".join(told)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """A solid ground."""
        del event
        QPainter(self).fillRect(self.rect(), QColor(current_look().palette.verdict.deny.fg))
