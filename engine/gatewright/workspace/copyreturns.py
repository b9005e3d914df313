"""Changes that come back from the private copies of one workspace: recorded, and asked about while it is open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine
from contextlib import suppress
from pathlib import Path

from gatewright.adapters.loop_thread import loop_thread
from gatewright.base.errors import NobodyAnswered, ToolFailure, WorkspaceError
from gatewright.base.ids import new_id
from gatewright.base.printable import printable
from gatewright.gate import Approval, ApprovalRequest, AuditEntry, AuditLog, AuditUnavailable, PermissionBroker, RowKind
from gatewright.gate.approval import REFUSED_CODE, Ask
from gatewright.gate.stages.approval import MOST_REASON
from gatewright.policy.target import Confinement
from gatewright.policy.verdict import Action
from gatewright.record.process import renew_after_fork
from gatewright.sources.writeback import Change, GivenBack, WriteBack

_CLOSE_S = 5.0
_UNANSWERED = frozenset({"approval-timed-out", "approval-unavailable"})
"""Codes of answers after which nobody is asked any more."""
_DONE = {Action.APPEND: "wrote", Action.OVERWRITE: "overwrote", Action.DELETE: "deleted"}


class CopyReturns:
    """Makes a `WriteBack` for each room with copies. ``kept``: the folder for what is not written back.

    ``now`` says what holds for the server of a catalog that serves an agent; it may raise WorkspaceError.
    """

    def __init__(
        self,
        kept: Path,
        broker: PermissionBroker,
        audit: AuditLog,
        now: Callable[[str, str], Confinement | None],
    ) -> None:
        self._kept, self._broker, self._audit, self._now = kept, broker, audit, now
        self._is_closed = False
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """A child of a fork asks nothing that its parent asks."""
        self._working: set[asyncio.Task[None]] = set()
        self._asking: set[asyncio.Task[Approval]] = set()

    def of_server(self, confinement: Confinement, served: Collection[str]) -> WriteBack:
        """For the process of a server: nobody waits for what is asked, and edits count that were made meanwhile.

        ``served``: the agents whose calls it served, once it ended.
        """

        def now() -> tuple[Confinement, ...]:
            agents = _agents(confinement, served)
            with suppress(WorkspaceError):
                found = [self._now(one, confinement.subject) for one in agents]
                return tuple(one for one in found if one is not None) if None not in found else ()
            return ()

        def told(what: GivenBack) -> None:
            self._record(_agents(confinement, served)[0], confinement.subject, what)

        return WriteBack(confinement, self._kept, _Operator(self, confinement, served), told=told, now=now)

    def of_program(self, confinement: Confinement, heard: Callable[[GivenBack], None]) -> WriteBack:
        """For a program that ends with this process, so that nobody is asked; ``heard`` is told what became of it."""

        def told(what: GivenBack) -> None:
            self._record(confinement.agent_id, confinement.subject, what)
            heard(what)

        return WriteBack(confinement, self._kept, told=told)

    def begin(self, work: Coroutine[None, None, None]) -> None:
        """Carry out what asks in the loop thread."""
        loop_thread().begin(self._carried_out(work))

    async def _carried_out(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._working.add(task)
        try:
            await task
        finally:
            self._working.discard(task)

    async def is_attended(self) -> bool:
        """Tell whether an operator is there and the workspace open."""
        return not self._is_closed and await self._broker.is_attended()

    async def answer(self, request: ApprovalRequest) -> Approval:
        """The operator's answer. Raises NobodyAnswered."""
        if self._is_closed:
            raise NobodyAnswered("the workspace is closed")
        task = asyncio.ensure_future(self._broker(request))
        self._asking.add(task)
        try:
            approval = await task
        except asyncio.CancelledError:
            raise NobodyAnswered("the workspace is closed") from None
        finally:
            self._asking.discard(task)
        return await asyncio.to_thread(self._broker.used, approval) if approval.grant_id else approval

    def close(self) -> None:
        """Withdraw what is asked; it waits for a file that is being written, for a few seconds at most."""
        self._is_closed = True
        if self._working:
            with suppress(TimeoutError):
                loop_thread().wait(self._end(), _CLOSE_S)

    async def _end(self) -> None:
        for one in [*self._asking]:
            one.cancel()
        if working := {*self._working}:
            await asyncio.wait(working)

    def _record(self, agent_id: str, subject: str, what: GivenBack) -> None:
        with suppress(AuditUnavailable):  # it is done, and no call is made before the log can be written again
            self._audit.append([AuditEntry(RowKind.COPY_RETURNED, "", agent_id, "", subject, body=what.to_json())])


def _agents(confinement: Confinement, served: Collection[str]) -> list[str]:
    """The agents whose calls a process served, else whom it was started for; at least one name, which may be empty."""
    return sorted(served) or [confinement.agent_id]


class _Operator:
    """Asks about what the processes of one room changed."""

    def __init__(self, returns: CopyReturns, confinement: Confinement, served: Collection[str]) -> None:
        self._confinement, self._served = confinement, served
        self._answer, self.is_attended, self.begin = returns.answer, returns.is_attended, returns.begin

    async def __call__(self, change: Change) -> str:
        agents, subject = _agents(self._confinement, self._served), self._confinement.subject
        did, key = _DONE[change.action], new_id("copy")
        others = f", where it served {', '.join(f'`{one}`' for one in agents)}" if len(agents) > 1 else ""
        reason = f"`{subject}` {did} `{printable(change.path)}` in its private copy{others}, and the level there asks"
        approval = await self._answer(
            ApprovalRequest(
                agent_id=agents[0],
                tool=subject,
                operation=str(change.action),
                arguments={"path": printable(change.path)},
                reasons=(reason,),
                diff=change.diff,
                scope=None,
                digest=key,
                asks=(Ask(key, once_only=True, about=printable(change.path)),),
            )
        )
        who = approval.who or "the operator"
        if approval.approved is True:
            return who
        if approval.code in _UNANSWERED:
            raise NobodyAnswered(approval.reason)
        said = f": {approval.reason[:MOST_REASON]}" if approval.reason else ""
        raise ToolFailure(
            f"its level asks, and {who} refused it{said}"
            if approval.code == REFUSED_CODE
            else f"its level asks, and it could not be asked{said}"
        )
