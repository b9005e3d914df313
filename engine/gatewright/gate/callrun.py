"""One call from its decision to its outcome: asked if need be, executed if allowed, recorded in any case.

It does not know policies or tools; the stages do. What cannot be recorded is not made.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from gatewright.base.errors import NobodyAnswered
from gatewright.gate import message, record
from gatewright.gate.approval import Answer, Approval, ApprovalRequest
from gatewright.gate.audit import AuditUnavailable, RowKind
from gatewright.gate.call import CallState, RowBuilder, Status
from gatewright.gate.decision import NO_FACTS, Decision
from gatewright.gate.outcome import Outcome
from gatewright.gate.stages.approval import approval_digest
from gatewright.gate.stages.execute import EXECUTE
from gatewright.policy.verdict import Verdict

if TYPE_CHECKING:
    from gatewright.gate.approval import Approver
    from gatewright.gate.audit import AuditEntry, AuditLog
    from gatewright.gate.pipeline import OnStage, Passage

PassageMaker = Callable[[CallState, "OnStage | None"], "Passage"]


class CallRun:
    """One call. ``passage`` starts a way through the stages under the policy as it is at that moment."""

    def __init__(
        self, passage: PassageMaker, state: CallState, on_stage: OnStage | None, approver: Approver | None
    ) -> None:
        self._passage = passage
        self._first = state
        self._on_stage = on_stage
        self._approver = approver
        self._began = time.monotonic()

    async def run(self) -> Outcome:
        """Decide, then ask, execute or refuse."""
        passage = self._passage(self._first, self._on_stage)
        decision = passage.decide()
        state = passage.state
        if decision.verdict is Verdict.ASK:
            return await self._asked(state, decision)
        return await self._settled(passage, decision, lambda log: (record.invoked(state, log),))

    async def _asked(self, state: CallState, decision: Decision) -> Outcome:
        def opening(log: AuditLog) -> tuple[AuditEntry, ...]:
            return record.invoked(state, log), record.decided(state, decision)

        if self._approver is None:
            self._try_commit(state, _then(opening, record.refused(state, "unanswered")))
            return self._outcome(state, decision, Status.UNANSWERED, message.to_model(message.UNANSWERED))
        request = request_of(state)
        try:
            state.ports.commit(_then(opening, record.requested(state, request)))
        except AuditUnavailable as error:
            return self._outcome(state, _unrecordable(decision, error), Status.DENIED)
        approval = await self._answer(state, request, self._approver)
        if approval is None:
            self._try_commit(state, lambda _log: (record.refused(state, "unanswered"),))
            return self._outcome(state, decision, Status.UNANSWERED, message.to_model(message.UNANSWERED))
        answered = self._first.having(answer=Answer(approval, request.digest))
        passage = self._passage(answered, self._on_stage)
        again = passage.decide()
        return await self._settled(passage, again, lambda _log: (record.resolved(state, approval, request),))

    async def _answer(self, state: CallState, request: ApprovalRequest, approver: Approver) -> Approval | None:
        """The answer, None when nobody gave one; an approver that fails has not approved."""
        try:
            answer = await approver(request)
        except NobodyAnswered:
            return None
        except Exception as error:  # noqa: BLE001 an approver is the host's code and may raise anything
            return Approval(False, f"the approver ({type(error).__name__})")
        except BaseException:
            self._try_commit(state, lambda _log: (record.entry(state, RowKind.TOOL_ABANDONED, {"code": "cancelled"}),))
            raise
        if isinstance(answer, Approval):  # pyright: ignore[reportUnnecessaryIsInstance]
            return answer
        return Approval(False, "the approver, with an answer that is none")

    async def _settled(self, passage: Passage, decision: Decision, opening: RowBuilder) -> Outcome:
        """Execute what is allowed; record and refuse the rest."""
        if decision.verdict is Verdict.ALLOW:
            passage.state = passage.state.having(pending=_then(opening, record.decided(passage.state, decision)))
            decision = await passage.act()
            if passage.state.output is not None:
                return self._executed(passage.state, decision)
        state = passage.state
        self._try_commit(state, _then(opening, record.decided(state, decision), record.refused(state, decision.code)))
        return self._outcome(state, decision, Status.DENIED)

    def _executed(self, state: CallState, decision: Decision) -> Outcome:
        if decision.verdict is Verdict.ALLOW:
            return self._outcome(state, decision, state.status, state.output or "")
        return self._outcome(state, decision, Status.FAILED)

    def _try_commit(self, state: CallState, build: RowBuilder) -> None:
        """Record a call that is not made in any case."""
        try:
            state.ports.commit(build)
        except AuditUnavailable:
            return

    def _outcome(self, state: CallState, decision: Decision, status: Status, output: str | None = None) -> Outcome:
        text = output if output is not None else decision.model_message or message.to_model(message.EMPTY)
        return Outcome(
            decision,
            status,
            state.code or decision.code,
            text,
            state.call_id,
            state.session.session_id,
            state.truncated,
            state.output_hash or None,
            state.output_bytes,
            (time.monotonic() - self._began) * 1000,
        )


def _then(opening: RowBuilder, *rest: AuditEntry) -> RowBuilder:
    """The opening rows and those after them."""

    def build(log: AuditLog) -> tuple[AuditEntry, ...]:
        return (*opening(log), *rest)

    return build


def request_of(state: CallState) -> ApprovalRequest:
    """The question for the operator about a call that asks."""
    return ApprovalRequest(
        agent_id=state.agent_id,
        tool=state.tool_name,
        operation=state.chosen.name,
        arguments=MappingProxyType(dict(state.arguments)),
        reasons=tuple(finding.reason for finding in state.asks),
        diff=state.assessment.change() if state.assessment else None,
        scope=next((finding.scope for finding in state.asks if finding.scope), None),
        digest=approval_digest(state),
        call_id=state.call_id,
        session_id=state.session.session_id,
    )


def _unrecordable(decision: Decision, error: AuditUnavailable) -> Decision:
    return replace(
        decision,
        verdict=Verdict.DENY,
        stage=EXECUTE.name,
        code="audit-unavailable",
        reason=str(error),
        rule=None,
        model_message=message.to_model(message.UNRECORDED),
        facts=NO_FACTS,
    )
