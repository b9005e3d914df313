"""The processes that serve the open workspace to MCP clients, and who is connected there."""

import asyncio
from contextlib import suppress

from PySide6.QtCore import QObject, Signal
from shiboken6 import isValid

from gatewright.workspace.api import ClientSession, GatewrightError, ServingProcess, Workspace
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.document import Document

__all__ = ["ClientSession", "Serving", "ServingProcess"]

_TASK = "catalogs.serving"


class Serving(QObject):
    """Looks when it is told to, beside the window."""

    changed = Signal()

    def __init__(self, document: Document, tasks: TaskOwner, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._document, self._tasks = document, tasks
        self._processes: tuple[ServingProcess, ...] = ()

    @property
    def processes(self) -> tuple[ServingProcess, ...]:
        """As they were when it was last looked, the oldest first."""
        return self._processes

    def look(self) -> None:
        """Look now, unless that is under way."""
        if self._document.is_open and not self._tasks.closed and _TASK not in self._tasks.names:
            self._tasks.start(self._look(self._document.workspace), _TASK)

    async def _look(self, workspace: Workspace) -> None:
        found: tuple[ServingProcess, ...] = ()
        with suppress(GatewrightError):  # what cannot be read serves nobody that one could show
            found = await asyncio.to_thread(workspace.serving.list, workspace.policy_path)
        if isValid(self) and found != self._processes:
            self._processes = found
            self.changed.emit()
