"""Keeps what the files count beside the verdicts of the agent that is shown: by the policy and the disk as they are."""

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from gatewright_gui.pages.agents.tool_tree import ToolTreeModel
from gatewright_gui.pages.page import PageContext
from gatewright_gui.session.path_share import path_shares

TASK = "agents.shares"


class ShareCounter(QObject):
    """Counts after each edit. The disk is looked at again when a source tells of a change, and when somebody comes back
    to the page or to the window.
    """

    def __init__(self, context: PageContext, model: ToolTreeModel, pane: QWidget) -> None:
        super().__init__(pane)
        self._context, self._model, self._pane = context, model, pane
        self._agent_id = ""
        self._is_old = True
        """Whether the disk may hold other files than were counted."""
        context.document.opened.connect(self._forget)
        context.document.policy_changed.connect(self._count)
        context.document.source_changed.connect(self.look_again)
        app = QGuiApplication.instance()
        if isinstance(app, QGuiApplication):
            app.applicationStateChanged.connect(self._come_back)

    def show_agent(self, agent_id: str) -> None:
        """Count for this agent; what was counted for another one is taken away."""
        if agent_id != self._agent_id:
            self._agent_id = agent_id
            self._model.set_shares({})
            self._count()

    def look_again(self, _why: object = None) -> None:
        """Count what is on the disk now."""
        self._is_old = True
        self._count()

    def _forget(self) -> None:
        self._agent_id = ""

    def _come_back(self, state: Qt.ApplicationState) -> None:
        if state is Qt.ApplicationState.ApplicationActive and self._pane.isVisible():
            self.look_again()

    def _count(self, _why: object = None) -> None:
        tasks = self._context.tasks
        if self._agent_id in self._context.document.policy.agents and not tasks.closed:
            tasks.start(self._ask(self._agent_id), TASK, replace=True)

    async def _ask(self, agent_id: str) -> None:
        found = await self._context.deriver.derive(path_shares, agent_id, afresh=self._is_old)
        if found is not None and isValid(self) and agent_id == self._agent_id:
            self._is_old = False
            self._model.set_shares(found)
