"""The answers of the open workspace that still stand, the questions gone stale, and what became of today's calls."""

import asyncio
import time
from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal

from gatewright.workspace.api import GatewrightError
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.answered import Answered, Answers, answers_since
from gatewright_gui.session.derive import Deriver
from gatewright_gui.session.document import Document
from gatewright_gui.session.question import PendingApproval, Stale, Standing, stale_of, standing_of
from gatewright_gui.session.waiting import WHO

_TRIES, _PAUSE_S = 8, 0.25
"""How often the log is looked at for the end of a call, which its process may still be writing."""


class StandingAnswers(QObject):
    """Looks when it is told to, beside the window."""

    changed = Signal()
    is_known: bool
    """Whether anything was found out about the open workspace."""

    def __init__(self, document: Document, deriver: Deriver, tasks: TaskOwner, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._document, self._deriver, self._tasks = document, deriver, tasks
        self.standing: tuple[Standing, ...] = ()
        self.stale: tuple[Stale, ...] = ()
        """The latest first."""
        self.today = Answers()
        self.is_known = False
        document.closed.connect(self._forget)

    def look(self) -> None:
        """Look what stands, what went stale, and what was answered today."""
        if self._document.is_open and "approvals.look" not in self._tasks.names:
            self._tasks.start(self._look(), "approvals.look")

    async def revoke(self, grant_ids: Sequence[str]) -> None:
        """Take answers back; what could not be taken back is said."""
        broker, count = self._document.workspace.broker, 0
        try:
            for grant_id in grant_ids:
                count += await asyncio.to_thread(broker.revoke, grant_id, WHO) is not None
        except GatewrightError as error:
            self._document.say("error", tr("not revoked: {reason}", reason=error))
        if count:
            answers = counted(count, "answer", "answers")
            self._document.say("info", tr("{answers} revoked: such calls ask again", answers=answers))
        await self._look()

    async def why_stale(self, question: PendingApproval) -> str:
        """The reason why a suspended question came to nothing; empty where it did not."""
        stale = await asyncio.to_thread(self._document.workspace.broker.stale)
        return next((stale_of(one).why for one in stale if one.request.request_id == question.request_id), "")

    async def fate_of(self, question: PendingApproval) -> Answered | None:
        """What became of a call that waits no more; None where its process ended without a word."""
        for _ in range(_TRIES):
            found = await self._answers(question.asked_wall_s - 60.0)
            for one in found.answered:
                if one.call_id == question.call_id:
                    return one
            await asyncio.sleep(_PAUSE_S)
        return None

    def _forget(self) -> None:
        self.standing, self.stale, self.today, self.is_known = (), (), Answers(), False
        self.changed.emit()

    async def _look(self) -> None:
        workspace = self._document.workspace
        grants = await asyncio.to_thread(workspace.broker.standing)
        stale = await asyncio.to_thread(workspace.broker.stale)
        today = await self._answers(time.mktime((*time.localtime()[:3], 0, 0, 0, 0, 0, -1)))
        if self._document.is_open and workspace is self._document.workspace:
            self.standing, self.today = tuple(standing_of(grant) for grant in reversed(grants)), today
            self.stale = tuple(stale_of(question) for question in reversed(stale))
            self.is_known = True
            self.changed.emit()

    async def _answers(self, since_s: float) -> Answers:
        """None are known where the log cannot be read, and it is said why."""
        try:
            return await self._deriver.derive(answers_since, since_s) or Answers()
        except GatewrightError as error:
            return Answers(problem=str(error))
