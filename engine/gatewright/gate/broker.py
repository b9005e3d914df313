"""The broker between calls and the operator: a question waits here while operators see it elsewhere, and ends with an
answer or without.

Displays of questions subscribe, in this process or, through the store, in others.

* Identical calls (one digest) that wait together are one question. A refusal and a lasting approval answer all of them.
  *Once* permits one execution, by the first call to arrive; the others end as ``approval-withdrawn`` and the model
  reads that it should call again: one approval is not five.
* Too many waiting calls or questions in a minute of one agent with one user: refused at once, with the reason.
* Without an operator anywhere nobody is asked: the call is unanswered at once, unless ``waits_alone``.
* When the time is over the call is refused; a question ends with its time, its call and its process.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from gatewright.base.amount import Clock, SystemClock, new_id
from gatewright.base.errors import NobodyAnswered, WorkspaceError
from gatewright.base.late import aio
from gatewright.gate.approval import Approval, ApprovalLimits, ApprovalRequest, Remember
from gatewright.gate.approvalstore import ApprovalStore, Grant, QuestionTooLarge, StaleQuestion, Version
from gatewright.gate.chain import RowKind
from gatewright.gate.port import AuditEntry, Log
from gatewright.record.process import fork_safe_lock, renew_after_fork

TICK_S = 0.1
"""The pause between looks at the store, for other processes' changes, and at the clock."""
_LOOK_TICKS = 10
_MINUTE_S = 60.0
_log = logging.getLogger(__name__)


class _Waiter:
    """A waiting call. Any thread may settle ``answer``; only the first settlement counts."""

    def __init__(self, loop: aio.AbstractEventLoop, deadline_s: float) -> None:
        self.deadline_s = deadline_s
        self.answer: aio.Future[Approval | None] = loop.create_future()
        self._loop = loop

    def settle(self, approval: Approval | None) -> None:
        """Settle the answer; ``approval`` None means that the time is over."""
        with suppress(RuntimeError):  # the loop is closed, so nobody waits
            self._loop.call_soon_threadsafe(self._settle, approval)

    def _settle(self, approval: Approval | None) -> None:
        if not self.answer.done():
            self.answer.set_result(approval)


class PermissionBroker:
    """Asks operators through a store; ``store`` None means in this process only.

    ``audit``: the log of revocations; it closes with the broker. Any thread may call every method, any event loop may
    make a call.
    """

    def __init__(
        self,
        store: ApprovalStore | None = None,
        clock: Clock | None = None,
        *,
        limits: ApprovalLimits | None = None,
        audit: Log | None = None,
        waits_alone: bool = False,
    ) -> None:
        self._clock = clock or SystemClock()
        self._store = store or ApprovalStore(clock=self._clock)
        self._limits = limits or ApprovalLimits()
        self._audit = audit
        self._waits_alone = waits_alone
        self._closed = False
        self._lock = fork_safe_lock()
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Forget the parent's waiting calls, operators and watching thread in a forked child."""
        self._asked: list[tuple[tuple[str, str | None], float]] = []
        self._waiters: dict[str, _Waiter] = {}
        self._listeners: dict[object, Callable[[tuple[ApprovalRequest, ...]], None]] = {}
        self._watch: threading.Thread | None = None
        self._news = threading.Event()

    @property
    def wait_s(self) -> float:
        """The time that a question waits for an answer."""
        return self._limits.timeout_s

    @property
    def grants(self) -> ApprovalStore:
        """The standing approvals, for a gate."""
        return self._store

    @property
    def notes(self) -> tuple[str, ...]:
        """The faults found in the store so far."""
        return self._store.notes

    async def __call__(self, request: ApprovalRequest) -> Approval:
        """The operator's answer, or a refusal with the reason.

        Raises NobodyAnswered if no operator is attached.
        """
        if not await self.is_attended():
            raise NobodyAnswered("no operator is attached")
        if not self._may_ask((request.agent_id, request.user_id)):
            return _refusal("approval-rate", f"more than {self._limits.per_minute} questions of the agent in a minute")
        now_s = self._clock.wall_s()
        asked = replace(
            request,
            request_id=new_id("ask"),
            asked_wall_s=now_s,
            expires_wall_s=now_s + self._limits.timeout_s,
            process_id=os.getpid(),
            waiting=1,
        )
        waiter = _Waiter(aio.get_running_loop(), self._clock.monotonic_s() + self._limits.timeout_s)
        posting = _Posting(self._store, asked, self._limits.waiting)
        answer: Approval | None = None
        try:
            refusal = await aio.to_thread(posting.post)
            if refusal is not None:
                return refusal
            self._wait(asked.request_id, waiter)
            answer = await waiter.answer
        except aio.CancelledError:
            await self._give_up(asked.request_id, posting)
            raise
        return await self._take_answer(asked, posting, answer)

    async def is_attended(self) -> bool:
        """Tell whether an operator is attached, here or in another process (or calls wait without one)."""
        if self._waits_alone or self._listeners:
            return True
        return await aio.to_thread(self._store.has_listener)

    def subscribe(
        self, callback: Callable[[tuple[ApprovalRequest, ...]], None], *, announce: bool = True
    ) -> Callable[[], None]:
        """Call back with the open questions now and at every change, from a thread of the broker; returns the function
        to leave.

        A subscriber counts as an operator: calls wait from now on. ``announce``: calls of other processes too.
        """
        key, listener = object(), ""
        if announce:
            try:
                listener = self._store.attach()
            except WorkspaceError as error:
                _log.warning("other processes cannot see the operator here: %s", error)
        with self._lock:
            if self._closed:  # another thread closed it meanwhile
                self._store.detach(listener)
                return lambda: None
            self._listeners[key] = callback
            self._start_watch()

        def leave() -> None:
            with self._lock:
                self._listeners.pop(key, None)
            if listener:
                self._store.detach(listener)

        return leave

    def spend(self, approval: Approval) -> Approval:
        """The answer after spending its grant, for a gate that does not know these grants; a refusal if the grant is
        gone.
        """
        grant = self._store.get(approval.grant_id)
        if grant is None or not self._store.spend(grant):
            return _refusal("approval-withdrawn", "the approval was revoked, or used by an identical call")
        return replace(approval, grant_id="")

    def pending(self) -> tuple[ApprovalRequest, ...]:
        """The open questions of every process, oldest first; identical calls are one question."""
        return self._store.pending()

    def answer(self, request_id: str, approval: Approval) -> Approval | None:
        """Answer a question of any process; None if it is not open. Raises WorkspaceError.

        The log gets the answer to a suspended call at once: without the row there is no answer. Returns the answer with
        the id of the grant that it made.
        """
        answered = self._store.answer(request_id, approval, self._record_answer)
        self._news.set()
        return answered

    def _record_answer(self, request: ApprovalRequest, approval: Approval) -> None:
        """Record the answer to a suspended call, which no process waits for."""
        if self._audit is not None:
            from gatewright.gate.record import given_answer

            self._audit.append([given_answer(request, approval)])

    def stale(self) -> tuple[StaleQuestion, ...]:
        """The suspended questions that came to nothing in the last days, with the reason, oldest first."""
        return self._store.stale()

    def standing(self) -> tuple[Grant, ...]:
        """Every standing approval and refusal, oldest first."""
        return self._store.standing()

    def revoke(self, grant_id: str, who: str) -> Grant | None:
        """Take a standing approval back and record it; None for an unknown id.

        Raises WorkspaceError, and AuditUnavailable if it was taken back but not recorded.
        """
        grant = self._store.revoke(grant_id)
        if grant is not None and self._audit is not None:
            from gatewright.gate.record import clean

            body = {
                "grant": grant.grant_id,
                "kind": str(grant.kind),
                "approved": grant.approved,
                "scope": grant.scope,
                "given_by": clean(grant.who),
                "who": clean(who),
            }
            names = clean(grant.agent_id), clean(grant.session_id), clean(grant.tool), clean(grant.operation)
            self._audit.append([AuditEntry(RowKind.GRANT_REVOKED, "", *names, body)])
        return grant

    def close(self) -> None:
        """Refuse every waiting call, and close the store."""
        with self._lock:
            self._closed = True
            waiters, self._waiters = tuple(self._waiters.values()), {}
            self._listeners.clear()
            watch = self._watch
        self._news.set()
        for waiter in waiters:
            waiter.settle(_refusal("approval-unavailable", "the broker has closed"))
        if watch is not None and watch is not threading.current_thread():
            watch.join()
        self._store.close()
        if self._audit is not None:
            self._audit.close()

    def _may_ask(self, who: tuple[str, str | None]) -> bool:
        now_s = self._clock.monotonic_s()
        with self._lock:
            self._asked = [(one, time_s) for one, time_s in self._asked if now_s - time_s < _MINUTE_S]
            if [one for one, _ in self._asked].count(who) >= self._limits.per_minute:
                return False
            self._asked.append((who, now_s))
            return True

    async def _take_answer(self, asked: ApprovalRequest, posting: _Posting, answer: Approval | None) -> Approval:
        """The final answer; one that arrived just as the time ended counts."""
        with self._lock:
            self._waiters.pop(asked.request_id, None)
        last = await aio.shield(aio.to_thread(posting.withdraw))
        return answer or last or _refusal("approval-timed-out", f"nobody answered within {self._limits.timeout_s:g} s")

    async def _give_up(self, request_id: str, posting: _Posting) -> None:
        with self._lock:
            self._waiters.pop(request_id, None)
        await aio.shield(aio.to_thread(posting.give_up))

    def _wait(self, request_id: str, waiter: _Waiter) -> None:
        with self._lock:
            if self._closed:
                waiter.settle(_refusal("approval-unavailable", "the broker has closed"))
                return
            self._waiters[request_id] = waiter
            self._start_watch()

    def _start_watch(self) -> None:
        """Under the lock, start the watching thread unless it runs."""
        self._news.set()
        if self._watch is None:
            self._watch = threading.Thread(target=self._look, name="approvals", daemon=True)
            self._watch.start()

    def _look(self) -> None:
        """Watch store and clock; it ends when nobody waits or listens."""
        seen: Version | None = None
        told: tuple[ApprovalRequest, ...] | None = None
        tick = 0
        while True:
            fresh = self._news.is_set()
            self._news.clear()
            with self._lock:
                if self._closed or not (self._waiters or self._listeners):
                    self._watch = None
                    return
                waiters, listeners = dict(self._waiters), tuple(self._listeners.values())
            version = self._version()
            self._settle(waiters)
            if listeners and (fresh or version != seen or tick % _LOOK_TICKS == 0):
                told = self._tell(listeners, told, fresh=fresh)
            seen, tick = version, tick + 1
            self._news.wait(TICK_S)

    def _version(self) -> Version | None:
        try:
            return self._store.version()
        except WorkspaceError:
            return None

    def _settle(self, waiters: dict[str, _Waiter]) -> None:
        answers: dict[str, Approval] = {}
        with suppress(WorkspaceError):
            answers = self._store.answers()
        now_s = self._clock.monotonic_s()
        for request_id, waiter in waiters.items():
            if request_id in answers:
                waiter.settle(answers[request_id])
            elif now_s >= waiter.deadline_s:
                waiter.settle(None)

    def _tell(
        self,
        listeners: tuple[Callable[[tuple[ApprovalRequest, ...]], None], ...],
        told: tuple[ApprovalRequest, ...] | None,
        *,
        fresh: bool,
    ) -> tuple[ApprovalRequest, ...]:
        pending = self._store.pending()
        if pending != told or fresh:
            for listener in listeners:
                try:
                    listener(pending)
                except Exception:  # noqa: BLE001 a listener is the host's code
                    _log.exception("a listener of approvals failed")
        return pending


class _Posting:
    """One question on its way into the store and back, in threads; if given up early, it never enters the store."""

    def __init__(self, store: ApprovalStore, request: ApprovalRequest, most: int) -> None:
        self._store = store
        self._request = request
        self._most = most
        self._lock = fork_safe_lock()
        self._over = False

    def post(self) -> Approval | None:
        """Post the question; returns a refusal on failure."""
        with self._lock:
            if self._over:
                return None
            try:
                if self._store.post(self._request, self._most):
                    return None
            except QuestionTooLarge as error:
                return _refusal("approval-too-large", str(error))
            except WorkspaceError as error:
                return _refusal("approval-unavailable", str(error))
        return _refusal("approval-rate", f"{self._most} calls of the agent wait for an answer already")

    def withdraw(self) -> Approval | None:
        """Remove the question, and return the answer if one came."""
        with self._lock:
            self._over = True
            try:
                return self._store.withdraw(self._request.request_id)
            except WorkspaceError:
                return None

    def give_up(self) -> None:
        """Remove the question, and with it the approval that nobody needs any more."""
        answer = self.withdraw()
        if answer is None or answer.remember is not Remember.ONCE:
            return
        grant = self._store.get(answer.grant_id)
        if grant is not None:
            self._store.spend(grant)


def _refusal(code: str, reason: str) -> Approval:
    return Approval(False, "nobody", code=code, reason=reason)
