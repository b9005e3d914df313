"""Calls of other processes on the open workspace that wait for an operator.

Other processes see outside the workspace that an operator is there, and the engine's own thread tells what waits:
nothing is written into a workspace that nobody enforces yet.
"""

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, Signal
from shiboken6 import isValid

from gatewright.workspace.api import ApprovalRequest, GatewrightError, Workspace
from gatewright_gui.qt.language import tr
from gatewright_gui.session.document import Document
from gatewright_gui.session.question import PendingApproval, Reply, question_of

WHO = "the operator in the app"


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
