"""The amber bar over every page while something is only observed: what, and until when."""

import time

from PySide6.QtCore import QTimer, Signal

from gatewright.workspace.api import Observed, observed_parts
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.plaintext import label_text
from gatewright_gui.qt.widget.message_bar import MessageBar
from gatewright_gui.session.document import Document
from gatewright_gui.session.observed import part_words
from gatewright_gui.session.verbs.policy import set_observed

_LOOK_MS = 30_000


class ObserveBar(MessageBar):
    """Stays while anything is observed; *Enforce* ends that in one edit."""

    compare_requested = Signal()

    def __init__(self, document: Document) -> None:
        super().__init__()
        self.setObjectName("window.observe")
        self.action_button.setObjectName("window.observe.enforce")
        self.more_button.setObjectName("window.observe.compare")
        self.close_button.hide()
        self._document = document
        self._observed: tuple[Observed, ...] = ()
        self._tick = QTimer(self, interval=_LOOK_MS)
        self._tick.timeout.connect(self._tell)
        self.action_requested.connect(lambda: set_observed(document, self._observed, None))
        self.more_requested.connect(self.compare_requested)
        for signal in (document.opened, document.closed, document.policy_changed):
            signal.connect(self._tell)
        self._tell()

    def _tell(self, _what: object = None) -> None:
        policy = self._document.policy if self._document.is_open else None
        self._observed = () if policy is None else observed_parts(policy, time.time())
        if not self._observed:
            self._tick.stop()
            self.hide()
            return
        self._tick.start()
        until = time.strftime("%Y-%m-%d %H:%M", time.localtime(min(one.until_s for one in self._observed)))
        named_parts = ", ".join(label_text(part_words(one), 60, keep="") for one in self._observed[:3])
        more = len(self._observed) - 3
        what = f"{named_parts}, {counted(more, 'more', 'more')}" if more > 0 else named_parts
        text = tr("Observed until {until}, not enforced: {what}", until=until, what=what)
        self.show_message("warning", text, action=tr("Enforce"), more=tr("Compare..."))

    def dismiss(self) -> None:
        """It stays: only enforcing ends it."""
