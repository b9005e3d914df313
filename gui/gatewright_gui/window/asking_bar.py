"""The bar over every page that says which call waits for the operator, and how long it still does; it denies it too."""

import time

from PySide6.QtCore import QTimer

from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.widget.message_bar import MessageBar
from gatewright_gui.session.question import PendingApproval, Reply

TICK_MS = 1000
CALM_MS = 400
"""So long a call that took the place of another one is not denied: the click was meant for the one before."""


class AskingBar(MessageBar):
    """Says the question that is over first; closed, it stays away until another one comes."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("window.asking")
        self.action_button.setObjectName("window.asking.show")
        self.more_button.setObjectName("window.asking.deny")
        self._questions: tuple[PendingApproval, ...] = ()
        self._first: PendingApproval | None = None
        """The question that is said."""
        self._seen: set[str] = set()
        self._is_away = False
        self._tick = QTimer(self, interval=TICK_MS)
        self._tick.timeout.connect(self._tell)
        self._calm = QTimer(self, singleShot=True, interval=CALM_MS)
        self.more_requested.connect(self._deny)
        self.closed.connect(self._keep_seen)

    def set_questions(self, questions: "tuple[PendingApproval, ...]") -> None:
        """Say what waits now."""
        self._questions = questions
        self._seen &= {one.request_id for one in questions}
        self._tell()

    def set_away(self, *, is_away: bool) -> None:
        """Stay away while the page that is open shows the questions itself."""
        self._is_away = is_away
        if is_away:
            self._keep_seen()
        self._tell()

    def _keep_seen(self) -> None:
        self._seen = {one.request_id for one in self._questions}

    def _tell(self) -> None:
        if self._is_away or all(one.request_id in self._seen for one in self._questions):
            self._tick.stop()
            self._first = None
            self.hide()
            return
        if not self._tick.isActive():
            self._tick.start()
        first = min(self._questions, key=lambda one: one.expires_wall_s or float("inf"))
        if self._first is not None and self._first.request_id != first.request_id:
            self._calm.start()
        self._first = first
        more = len(self._questions) - 1
        others = f", {tr('and')} {counted(more, 'more waits', 'more wait')}" if more else ""
        asks = tr("{agent} asks to call {call}", agent=first.whose, call=first.called)
        asks = ": ".join(filter(None, (asks, first.touches.replace("`", "'"))))
        see = tr("See the change") if first.diff is not None else tr("See the call")
        self.show_message("warning", f"{asks}, {first.left_words(time.time())}{others}", action=see, more=tr("Deny"))

    def _deny(self) -> None:
        if self._first is not None and not self._calm.isActive():
            self._first.answer(Reply(approved=False))
