"""The stop of all agents of the open workspace, or of one: who pulled it anywhere, and pulling and ending it here.

Other processes pull it too, so the state folder is looked at each second; that writes nothing. A stop that somebody
pulled without the key is put under the seal here, as the operator has it.
"""

import asyncio
import contextlib
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal

from gatewright.workspace.api import Stop, Workspace, WorkspaceError
from gatewright_gui.qt.language import tr
from gatewright_gui.session.message import Message

WHO = "a person in the app"
TICK_MS = 1000


class Stops(QObject):
    """One for a document; ``workspace`` is the open one, None while nothing is open."""

    changed = Signal(object)
    """tuple[Stop, ...], oldest first."""
    said = Signal(object)
    """Message: why agents were not stopped, or are stopped still."""

    def __init__(self, workspace: Callable[[], Workspace | None], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._sealed: tuple[Stop, ...] = ()
        self.standing: tuple[Stop, ...] = ()
        """The present stops."""
        self._tick = QTimer(self, interval=TICK_MS)
        self._tick.timeout.connect(self.look)

    def of(self, agent_id: str) -> Stop | None:
        """The stop of that agent alone."""
        return next((one for one in self.standing if agent_id and one.agent_id == agent_id), None)

    def look(self) -> None:
        """Look what stands now."""
        workspace = self._workspace()
        found = () if workspace is None else workspace.stops.look()
        if workspace is None:
            self._tick.stop()
        elif not self._tick.isActive():
            self._tick.start()
        if workspace is not None and workspace.stops.is_loose and found != self._sealed:
            self._sealed = found  # tried once for each
            asyncio.get_running_loop().run_in_executor(None, _seal, workspace)
        if found != self.standing:
            self.standing = found
            self.changed.emit(found)

    async def stop(self, agent_id: str = "") -> None:
        """Stop all agents, or one."""
        if (workspace := self._workspace()) is not None:
            try:
                await asyncio.to_thread(workspace.stops.pull, WHO, "", agent_id)
            except WorkspaceError as error:
                self.said.emit(Message("error", tr("not stopped: {reason}", reason=error)))
            self.look()

    async def go(self, agent_id: str = "") -> None:
        """End the stop of all agents, or of one."""
        if (workspace := self._workspace()) is not None:
            try:
                await asyncio.to_thread(workspace.stops.lift, WHO, agent_id)
            except WorkspaceError as error:
                self.said.emit(Message("error", tr("still stopped: {reason}", reason=error)))
            self.look()


def _seal(workspace: Workspace) -> None:
    with contextlib.suppress(WorkspaceError):  # the gate that meets it tries too
        workspace.stops.seal()
