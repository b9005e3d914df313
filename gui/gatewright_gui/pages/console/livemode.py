"""Live mode and the disposable copy as the Console offers them: asked for, shown, thrown away. It makes no call."""

from collections.abc import Callable

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from gatewright_gui.pages.console.livebar import LiveBar
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.dialog import Choice, ask
from gatewright_gui.session.console import Console

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
