"""Live mode and the disposable copy: the question before, the bar that says it loudly, throwing the copy away."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.dialog import Choice, ask
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import named, row_of, stretch
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget.button import text_button
from gatewright_gui.qt.widget.label import IconLabel, Label
from gatewright_gui.session.console import Console

TITLE = mark("LIVE MODE")


_GO_LIVE = mark(
    "Runs will then change the real files and blocks of {name}, under the policy as edited now, saved or not. Nothing "
    "takes that back. The audit log of the workspace keeps every call."
)
_RESET = mark(
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
        self._words = named(Label(wraps=True), kind="live-words")
        self._words.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        tip = tr("Runs happen in a disposable copy again (Ctrl+Shift+L)")
        self.leave_button = text_button(tr("Leave live mode"), "console.leavelive", self.toggle, tip)
        icon, title = IconLabel("triangle-alert", "on_accent"), named(Label(tr(TITLE)), kind="live")
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
        choices = (Choice("stay", tr("Stay in the copy"), "primary"), Choice("live", tr("Go live"), "danger"))
        text = tr(_GO_LIVE, name=document.name)
        answer = await ask(
            self.window(), tr("Run in the real workspace?"), text, choices, icon="triangle-alert", role="deny"
        )
        if answer == "live" and document.is_open and document.workspace is workspace:
            document.live.enter()

    def _live_changed(self, is_live: bool) -> None:
        name = self._context.document.name
        words = tr("Runs change the real files and blocks of {name}, and its audit log keeps them.", name=name)
        self._words.setText(words)
        self.setAccessibleName(f"{tr(TITLE)}: {words}")
        self.setVisible(is_live)
        self.changed.emit()

    def reset_copy(self) -> None:
        """Throw the copy away."""
        if not self._console.is_busy and self._console.has_copy:
            self._context.tasks.start(self._throw_away(), "console.resetcopy", replace=True)

    async def _throw_away(self) -> None:
        gone = await self._console.reset_copy()
        words = tr("the copy was thrown away; the next run gets a fresh one")
        if gone:
            stood = counted(gone, "standing approval", "standing approvals")
            words = tr(
                "the copy was thrown away, and {approvals} with it; the next run gets a fresh one", approvals=stood
            )
        self._context.document.say("info", words)
        self.changed.emit()

    def copy_words(self) -> str:
        """The words for what is to be known of the disposable copy."""
        copied = self._console.copied
        if copied is None:
            return tr("There is no copy yet: the first run makes one")
        files = counted(copied.files, "file", "files")
        told = [tr("The copy of {files} holds what was run", files=files), tr(_RESET)]
        if copied.links_cut:
            names = ", ".join(copied.links_cut)
            told.append(tr("links that lead out of the workspace lead nowhere in it: {names}", names=names))
        if copied.unread:
            names = ", ".join(copied.unread)
            told.append(tr("could not be read, and stands empty in it: {names}", names=names))
        return "\n".join(told)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """A solid ground."""
        del event
        QPainter(self).fillRect(self.rect(), QColor(current_look().palette.verdict.deny.fg))
