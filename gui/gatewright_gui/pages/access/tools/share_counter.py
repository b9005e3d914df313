"""Keeps what the files count beside the verdicts that are seen, by the policy and the disk as they are; draws it."""

from collections.abc import Callable, Iterable

from PySide6.QtCore import QObject, QRect, Qt
from PySide6.QtGui import QGuiApplication, QPainter
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget.chip import paint_bar
from gatewright_gui.session.path_share import Share, Shares, path_shares

Take = Callable[[str, frozenset[str] | None, Shares], None]
"""An agent, the tools that were counted for (None: all), and the shares there."""


class ShareCounter(QObject):
    """Counts for what is wanted, and again after each edit. The disk is looked at again when a source tells of a
    change, and when somebody comes back to the page or to the window. `task`: under which name it counts.
    """

    def __init__(self, context: PageContext, take: Take, pane: QWidget, task: str) -> None:
        super().__init__(pane)
        self._context, self._take, self._pane, self._task = context, take, pane, task
        self._agents: tuple[str, ...] = ()
        self._tools: frozenset[str] | None = None
        self._known: dict[str, frozenset[str]] = {}
        """By agent the tools that were counted for since the last edit."""
        self._is_old = True
        """Whether the disk may hold other files than were counted."""
        context.document.closed.connect(self._forget)
        context.document.policy_changed.connect(self._count_again)
        context.document.source_changed.connect(self.look_again)
        app = QGuiApplication.instance()
        if isinstance(app, QGuiApplication):
            app.applicationStateChanged.connect(self._come_back)

    def want(self, agent_ids: Iterable[str], tools: frozenset[str] | None = None) -> None:
        """Count for these agents, the first ones first, and for these tools (None: all); what was counted for others
        is taken away.
        """
        wanted = (tuple(agent_ids), tools)
        if wanted != (self._agents, self._tools):
            self._drop(agent_id for agent_id in self._agents if agent_id not in wanted[0])
            self._agents, self._tools = wanted
            self._count()

    def look_again(self, _why: object = None) -> None:
        """Count what is on the disk now."""
        self._is_old = True
        self._count_again()

    def _drop(self, agent_ids: Iterable[str]) -> None:
        for agent_id in agent_ids:
            self._known.pop(agent_id, None)
            self._take(agent_id, None, {})

    def _forget(self) -> None:
        self._drop(self._agents)
        self._agents = ()

    def _come_back(self, state: Qt.ApplicationState) -> None:
        if state is Qt.ApplicationState.ApplicationActive and self._pane.isVisible():
            self.look_again()

    def _count_again(self, _why: object = None) -> None:
        self._known.clear()
        self._count()

    def _count(self) -> None:
        if self._agents:
            self._context.tasks.start(self._ask(), self._task, replace=True)

    async def _ask(self) -> None:
        for agent_id in self._agents:
            known = self._known.get(agent_id, frozenset())
            tools = self._tools if self._tools is None else self._tools - known
            if tools == frozenset() or agent_id not in self._context.document.policy.agents:
                continue
            found = await self._context.deriver.derive(path_shares, agent_id, tools, afresh=self._is_old)
            if not isValid(self) or agent_id not in self._agents:
                return
            if found is not None:
                self._is_old = False
                self._known[agent_id] = known | (tools or frozenset())
                self._take(agent_id, tools, found)


def paint_share(painter: QPainter, room: QRect, share: Share) -> None:
    """The bar of what is denied, asked for and allowed; none where it would tell less than there is."""
    if not share.tells:
        return
    verdict = current_look().palette.verdict
    parts = ((share.deny, verdict.deny), (share.ask, verdict.ask), (share.allow, verdict.allow))
    paint_bar(painter, room, share.files, ((count, pair.fg, Qt.BrushStyle.SolidPattern) for count, pair in parts))
