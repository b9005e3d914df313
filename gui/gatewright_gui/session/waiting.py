"""Questions of other processes that wait for an operator, and the answers that stand."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, Signal
from shiboken6 import isValid

from gatewright.workspace.api import ApprovalRequest, GatewrightError, Workspace
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.audit import AuditTrail
from gatewright_gui.session.document import Document
from gatewright_gui.session.question import PendingApproval, Reply, Stale, Standing, question_of, stale_of, standing_of

WHO = "a person in the app"
"""Who answers in a window, as the audit log keeps it: no name that an agent could have."""


class Waiting(QObject):
    """Follows the document. `close` it with the window."""

    changed = Signal(object)
    """tuple[PendingApproval, ...], oldest first."""

    def __init__(self, document: Document, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self._workspace: Workspace | None = None
        self._open: tuple[PendingApproval, ...] = ()
        self.is_known = False
        """Whether it was looked what waits in the open workspace."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._answered: set[str] = set()
        self._known: dict[str, tuple[ApprovalRequest, PendingApproval]] = {}
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="gatewright-waiting")
        document.closed.connect(self._follow)
        document.opened.connect(self._follow)

    @property
    def questions(self) -> "tuple[PendingApproval, ...]":
        """The questions that wait now, oldest first."""
        return self._open

    def close(self) -> None:
        """Follow nothing any more; an answer that is being written is written."""
        self._workspace = None
        self._worker.shutdown(wait=True)

    def _follow(self) -> None:
        self._workspace = self._document.workspace if self._document.is_open else None
        self.is_known = False
        self._put(())
        if self._workspace is not None:
            self._loop = asyncio.get_running_loop()
            self._send(self._subscribe, self._workspace)

    def _send(self, work: Callable[..., object], *values: object) -> None:
        with contextlib.suppress(RuntimeError):  # the worker has ended
            self._worker.submit(work, *values)

    # beside the window

    def _subscribe(self, workspace: Workspace) -> None:
        if self._workspace is workspace:
            workspace.broker.subscribe(partial(self._heard, workspace))

    def _heard(self, workspace: Workspace, requests: "tuple[ApprovalRequest, ...]") -> None:
        known, self._known = self._known, {}
        for one in requests:
            kept = known.get(one.request_id)
            if kept is None or kept[0] != one:
                kept = one, question_of(one, partial(self._reply, workspace, one.request_id))
            self._known[one.request_id] = kept
        self._tell(self._take, workspace, tuple(question for _, question in self._known.values()))

    def _write(self, workspace: Workspace, request_id: str, reply: "Reply") -> None:
        try:
            answered = workspace.broker.answer(request_id, reply.approval(WHO))
        except GatewrightError as error:
            self._answered.discard(request_id)
            self._tell(self._document.say, "error", tr("not answered: {reason}", reason=error))
            return
        if answered is None:
            self._tell(self._document.say, "info", tr("the call does not wait any more"))

    def _tell(self, tell: Callable[..., Any], *values: object) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the window is gone
                self._loop.call_soon_threadsafe(self._say, tell, *values)

    def _say(self, tell: Callable[..., Any], *values: object) -> None:
        if isValid(self):  # else the window went while this was on its way
            tell(*values)

    # in the window's thread

    def _reply(self, workspace: Workspace, request_id: str, reply: "Reply") -> None:
        self._answered.add(request_id)
        self._take(workspace, self._open)
        self._send(self._write, workspace, request_id, reply)

    def _take(self, workspace: Workspace, questions: "tuple[PendingApproval, ...]") -> None:
        if workspace is self._workspace:
            is_first, self.is_known = not self.is_known, True
            if is_first and not questions:
                self.changed.emit(())
            self._put(tuple(question for question in questions if question.request_id not in self._answered))

    def _put(self, questions: "tuple[PendingApproval, ...]") -> None:
        if questions != self._open:
            self._open = questions
            self.changed.emit(questions)


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
        """Return the uses of each standing answer today, by its id."""
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
