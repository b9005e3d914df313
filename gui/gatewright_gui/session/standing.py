"""The answers of the open workspace that still stand, with their uses today, and the questions that lapsed."""

import asyncio
from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal

from gatewright.workspace.api import GatewrightError
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.audit import AuditTrail
from gatewright_gui.session.document import Document
from gatewright_gui.session.question import PendingApproval, Stale, Standing, stale_of, standing_of
from gatewright_gui.session.waiting import WHO


class StandingAnswers(QObject):
    """Looks when it is told to, beside the window."""

    changed = Signal()

    def __init__(self, document: Document, trail: AuditTrail, tasks: TaskOwner, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._document, self._trail, self._tasks = document, trail, tasks
        self.standing: tuple[Standing, ...] = ()
        self.lapsed: tuple[Stale, ...] = ()
        """The latest first."""
        self.uses: dict[str, int] = {}
        """How often each standing answer was used today, by its id."""
        self.unreached = 0
        """The calls that asked today while nobody could be reached."""
        self.is_known = False
        """True once anything was found out about the open workspace."""
        document.closed.connect(self._forget)

    def look(self) -> None:
        """Look what stands, what lapsed, and what the log tells of today."""
        if self._document.is_open and "activity.standing" not in self._tasks.names:
            self._tasks.start(self._look(), "activity.standing")

    async def take_back(self, grant_ids: Sequence[str]) -> None:
        """Take answers back; what could not be taken back is said."""
        broker, count = self._document.workspace.broker, 0
        try:
            for grant_id in grant_ids:
                count += await asyncio.to_thread(broker.revoke, grant_id, WHO) is not None
        except GatewrightError as error:
            self._document.say("error", tr("not taken back: {reason}", reason=error))
        if count:
            answers = counted(count, "answer", "answers")
            self._document.say("info", tr("{answers} taken back: such calls ask again", answers=answers))
        await self._look()

    async def why_lapsed(self, question: PendingApproval) -> str:
        """The reason why a suspended question lapsed; empty where it did not."""
        stale = await asyncio.to_thread(self._document.workspace.broker.stale)
        return next((stale_of(one).why for one in stale if one.request.request_id == question.request_id), "")

    def _forget(self) -> None:
        self.standing, self.lapsed, self.uses, self.unreached, self.is_known = (), (), {}, 0, False
        self.changed.emit()

    async def _look(self) -> None:
        workspace = self._document.workspace
        grants = await asyncio.to_thread(workspace.broker.standing)
        stale = await asyncio.to_thread(workspace.broker.stale)
        uses, unreached = await self._trail.today()
        if self._document.is_open and workspace is self._document.workspace:
            self.standing = tuple(standing_of(grant) for grant in reversed(grants))
            self.lapsed = tuple(stale_of(question) for question in reversed(stale))
            self.uses, self.unreached, self.is_known = uses, unreached, True
            self.changed.emit()
