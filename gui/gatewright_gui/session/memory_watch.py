"""Notices that memory changed, whoever changed it: a live run, this window, another process."""

import asyncio
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal
from shiboken6 import isValid

from gatewright.workspace.api import GatewrightError, Workspace
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.document import Document

LOOK_MS = 500
"""How often it is looked, while there is somebody who wants to know."""


class MemoryWatch(QObject):
    """Looks beside the window as long as ``is_wanted``; ``mark``: at what.

    The first look tells too: what was read before may be older than what it saw.
    """

    changed = Signal()

    def __init__(
        self,
        document: Document,
        tasks: TaskOwner,
        is_wanted: Callable[[], bool],
        mark: Callable[[Workspace], object] = Workspace.memory_mark,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._document, self._tasks, self._is_wanted, self._mark = document, tasks, is_wanted, mark
        self._name = f"memory.look.{id(self)}"
        self._seen: object = None
        self._timer = QTimer(self, interval=LOOK_MS)
        self._timer.timeout.connect(self._look)
        self._timer.start()
        document.opened.connect(self._look)

    def _look(self) -> None:
        can = self._document.is_open and self._name not in self._tasks.names
        if can and self._is_wanted():
            self._tasks.start(self._compare(self._document.workspace), self._name)

    async def _compare(self, workspace: Workspace) -> None:
        try:
            mark = await asyncio.to_thread(self._mark, workspace)
        except GatewrightError as error:  # whoever reads says so
            mark = str(error)
        seen, self._seen = self._seen, (id(workspace), mark)
        if isValid(self) and seen != self._seen:
            self.changed.emit()
