"""A message on the desktop when a call begins to wait while somebody looks at another program."""

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QSystemTrayIcon, QWidget

from gatewright_gui.qt.language import counted, tr
from gatewright_gui.session.calls import visible
from gatewright_gui.session.question import PendingApproval


class Notifier(QObject):
    """`is_wanted`: whether messages are; `put`: shows title and text, else the tray of the desktop where it has one.

    A message names agents and tools, and no argument.
    """

    clicked = Signal()
    """The message was clicked."""

    def __init__(
        self, window: QWidget, is_wanted: Callable[[], bool], put: Callable[[str, str], object] | None = None
    ) -> None:
        super().__init__(window)
        self._window, self._is_wanted = window, is_wanted
        self.put: Callable[[str, str], object] = put or self._put_in_tray
        self._told: set[str] = set()
        self._tray: QSystemTrayIcon | None = None

    def tell(self, questions: "tuple[PendingApproval, ...]") -> None:
        """Tell what waits now; only what is new is told, and only to who looks elsewhere."""
        new = [one for one in questions if one.request_id not in self._told]
        self._told = {one.request_id for one in questions}
        if not questions and self._tray is not None:
            self._tray.hide()
        if not new or self._window.isActiveWindow() or not self._is_wanted():
            return
        text = tr("{agent} asks to call {call}", agent=visible(new[0].agent_id), call=new[0].called)
        if len(new) > 1:
            text += f"; {counted(len(new) - 1, 'other call waits too', 'other calls wait too')}"
        self.put(tr("A call waits for your answer"), text)

    def _put_in_tray(self, title: str, text: str) -> None:
        if not (QSystemTrayIcon.isSystemTrayAvailable() and QSystemTrayIcon.supportsMessages()):
            return
        if self._tray is None:
            self._tray = QSystemTrayIcon(self._window.windowIcon(), self)
            self._tray.messageClicked.connect(self.clicked)
            self._tray.activated.connect(self.clicked)
        self._tray.show()
        self._tray.showMessage(title, text, QSystemTrayIcon.MessageIcon.Warning)
