"""One call from its decision to its outcome: it asks if needed, executes if allowed, and records always.

A call that cannot be recorded does not run. More than 450 lines, since an outcome names all that a call comes to.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field, replace
from functools import partial
from types import MappingProxyType
from typing import Protocol, TypeVar

from gatewright.base.amount import new_id
from gatewright.base.errors import NobodyAnswered, WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import aio, unbroken
from gatewright.compile.operation import EMPTY
from gatewright.gate import record
from gatewright.gate.approval import Answer, Approval, ApprovalRequest, Approver, AttendedApprover, Remember
from gatewright.gate.broker import PermissionBroker
from gatewright.gate.call import CallState, Status, Within
from gatewright.gate.chain import RowKind
from gatewright.gate.decision import NO_FACTS, Decision, Message, StageTrace, to_model
from gatewright.gate.pipeline import OnStage, Passage
from gatewright.gate.port import AuditEntry, AuditUnavailable, Log, RowBuilder
from gatewright.gate.stages.approval import approval_digest, asks_of, tool_digest
from gatewright.gate.stages.execute import EXECUTE, finish, give_up
from gatewright.gate.stages.result import read_error
from gatewright.gate.stop import CODE
from gatewright.policy.composition import MAX_DEPTH, MAX_STEPS
from gatewright.policy.verdict import Verdict
from gatewright.tools.context import StepDone, StepFailure
from gatewright.tools.declaration import SideEffect


@frozen
class Outcome:
    """The outcome of a call. ``output`` is the text for the model, also of a failure. ``data``: the whole result,
    normalised, for the host.

    ``output_hash``: SHA-256 of ``data``, or of a failure's text; ``output_bytes``: the size of the text before cutting,
    or of binary data. ``code`` is the decision's, or the failure's if the call ran and failed; ``detail`` then
    describes it for the operator. ``raw``: the tool's own result with its secrets, for the program that runs it and
    never in JSON; valid if ``data`` is not None. ``side_effects``: those that the tool declares; empty if it did not
    run. ``elapsed_ms`` includes everything, also waiting for an approval. ``reused``: a pure tool was not run again.
    ``should_continue``: the agent's loop goes on. ``secrets``: the number removed from the result. ``steps``: the calls
    of a composition. ``agent_id``, ``tool``: as called; ``operation``: the tool's, empty for a call that reached none.
    ``question``: the one that a suspended call waits for. ``replayed``: the recorded outcome of the call with this id,
    without secrets even in ``raw``.
    """

    decision: Decision
    status: Status
    code: str
    output: str
    call_id: str
    session_id: str
    truncated: bool
    output_hash: str | None
    output_bytes: int
    elapsed_ms: float
    data: bytes | None = field(repr=False)
    detail: str
    reused: bool
    should_continue: bool
    secrets: int
    raw: JsonValue | bytes = field(repr=False)
    side_effects: frozenset[SideEffect]
    steps: tuple[Outcome, ...] = ()
    agent_id: str = ""
    tool: str = ""
    operation: str = ""
    question: ApprovalRequest | None = None
    replayed: bool = False

    def __repr__(self) -> str:
        """Print it in short: `asyncio.run` prints the result of its task, though nobody reads that."""
        return f"Outcome({self.call_id}, {self.status.value}, {self.code})"

    def to_json(self) -> dict[str, JsonValue]:
        """The fields of the decision, and status, output, detail, truncated, reused, output_hash, bytes, call, ...

        Without ``data`` and ``raw``: JSON is printed and stored, and ``raw`` contains the secrets.
        """
        return {
            **self.decision.to_json(),
            "status": str(self.status),
            "code": self.code,
            "output": self.output,
            "detail": self.detail,
            "truncated": self.truncated,
            "reused": self.reused,
            "output_hash": self.output_hash,
            "output_bytes": self.output_bytes,
            "side_effects": [str(effect) for effect in sorted(self.side_effects)],
            "call": self.call_id,
            "session": self.session_id,
            "should_continue": self.should_continue,
            "elapsed_ms": round(self.elapsed_ms, 3),
            **({"steps": [step.to_json() for step in self.steps]} if self.steps else {}),
            **({"question": self.question.to_json()} if self.question is not None else {}),
            **({"replayed": True} if self.replayed else {}),
        }


_log = logging.getLogger(__name__)
_UNDECIDED = Decision(Verdict.DENY, "parse", "cancelled", "its caller gave up before it was decided")
_T = TypeVar("_T")
_R = TypeVar("_R")
Place = tuple[int, ...]
"""The number of a step within its composition, from 0; for nested steps the numbers from the outside in."""


class StepWatch(Protocol):
    """Observes the steps of a composition, and may delay them; its failure ends the composition.

    All methods but ``begin`` correspond to the callbacks of `Gate.call`, for a step.
    """

    async def begin(self, place: Place, tool: str, arguments: Mapping[str, JsonValue] | None) -> None:
        """Receive the next step, which runs once this returns. Without arguments the step does not apply."""

    def stage(self, place: Place, row: StageTrace) -> None:
        """Receive a stage that the step passed."""

    def piece(self, place: Place, text: str) -> None:
        """Receive a piece of the step's stream."""

    def end(self, place: Place, outcome: Outcome) -> None:
        """Receive the outcome of the step."""


class Watched:
    """An observer, and the time for which it has delayed steps."""

    def __init__(self, watch: StepWatch) -> None:
        self.watch = watch
        self._held_s = 0.0
        self._since_s: float | None = None

    def hold_s(self) -> float:
        """The seconds so far, including a present delay."""
        return self._held_s + (0.0 if self._since_s is None else time.monotonic() - self._since_s)

    async def begin(self, place: Place, tool: str, arguments: Mapping[str, JsonValue] | None) -> StepFailure | None:
        """Wait for the observer; returns the reason if it fails and the step must not run."""
        self._since_s = time.monotonic()
        try:
            await self.watch.begin(place, tool, arguments)
        except Exception as error:  # noqa: BLE001 - an observer is the host's code and may raise anything
            raised = await read_error(error)
            raised.log(_log, "the observer of the steps failed")
            return StepFailure("the observer of the steps failed", raised.in_words("watch"), "watch-failed")
        finally:
            self._held_s, self._since_s = self.hold_s(), None
        return None


OnCall = Callable[[CallState], Callable[[Outcome], None] | None]
"""Gets a call before its first stage, and returns the function for its outcome; None: nobody waits for that."""
PassageMaker = Callable[[CallState, "OnStage | None"], "Passage"]


class CallRun:
    """One call. ``passage`` starts a way through the stages under the present policy; ``followers`` get steps too."""

    def __init__(
        self,
        passage: PassageMaker,
        state: CallState,
        on_stage: OnStage | None,
        approver: Approver | None,
        watched: Watched | None = None,
        place: Place = (),
        followers: tuple[OnCall, ...] = (),
    ) -> None:
        self._passage = passage
        self._first = state
        self._on_stage = on_stage
        self._approver = approver
        self._watched, self._place = watched, place
        self._followers = followers
        self._began = time.monotonic()
        self._steps: list[Outcome] = []
        self._last: Passage | None = None

    async def run(self) -> Outcome:
        """Decide, then ask, execute or refuse."""
        passage = self._last = self._passage(self._first, self._on_stage)
        decision = passage.decide()
        state = passage.state
        if passage.effect is Verdict.ASK:
            return await self._ask(state, decision)
        return await self._settle(passage, decision, partial(record.invocation, state))

    def follow(self) -> Awaitable[Outcome]:
        """Tell the followers of the call, run it, tell its outcome to who wants it; their failure stops no call."""
        ends = [end for begin in self._followers if (end := _safely(begin, self._first)) is not None]
        return self._report(ends) if ends else self.run()

    async def _report(self, ends: list[Callable[[Outcome], None]]) -> Outcome:
        outcome: Outcome | None = None
        try:
            outcome = done = await self.run()
        finally:
            if outcome is None:  # nobody waits for it any more
                last = self._last
                state, decision = (self._first, _UNDECIDED) if last is None else (last.state, last.decision())
                state.code = state.code or "cancelled"
                outcome = self._outcome(state, decision, Status.ABANDONED, "")
            for end in reversed(ends):
                _safely(end, outcome)
        return done

    async def _ask(self, state: CallState, decision: Decision) -> Outcome:
        def opening(log: Log) -> tuple[AuditEntry, ...]:
            return record.invocation(state, log), *record.judgement(state, decision)

        approver = self._approver
        if approver is None or (isinstance(approver, AttendedApprover) and not await approver.is_attended()):
            await self._try_record(state, _then(opening, record.denial(state, "unanswered")))
            return self._outcome(state, decision, Status.UNANSWERED, to_model(Message.UNANSWERED))
        request = request_of(state)
        records = await aio.to_thread(state.services.earlier.of, state.session, request.arguments)
        request = replace(request, records=records)
        try:
            await state.services.record(_then(opening, record.approval_request(state, request)))
        except AuditUnavailable as error:
            unrecordable = replace(
                decision,
                verdict=Verdict.DENY,
                stage=EXECUTE.name,
                code="audit-unavailable",
                reason=str(error),
                rule=None,
                model_message=to_model(Message.UNRECORDED),
                facts=NO_FACTS,
            )
            return self._outcome(state, unrecordable, Status.DENIED)
        except aio.CancelledError as error:
            if error.__cause__ is None:  # the rows are in the log and need an end
                await self._give_up(state)
            raise
        approval = await self._answer(state, request, approver)
        if approval is None:
            await self._try_record(state, lambda _log: (record.denial(state, "unanswered"),))
            return self._outcome(state, decision, Status.UNANSWERED, to_model(Message.UNANSWERED))
        try:
            approval = await _keep(state, request, approval, approver)
        except aio.CancelledError:
            await self._give_up(state)
            raise
        asks = frozenset(ask.key for ask in request.asks)
        self._first.answer = Answer(approval, request.digest, asks)
        passage = self._last = self._passage(self._first, self._on_stage)
        again = passage.decide()
        return await self._settle(passage, again, lambda _log: record.approval_answer(passage.state, approval, request))

    async def _answer(self, state: CallState, request: ApprovalRequest, approver: Approver) -> Approval | None:
        """The answer, None if nobody gave one; an approver that fails counts as a refusal."""
        try:
            answer = await approver(request)
        except NobodyAnswered:
            return None
        except Exception as error:  # noqa: BLE001 - an approver is the host's code and may raise anything
            raised = await read_error(error)
            raised.log(_log, "the approver of `%s` failed", state.tool_name)
            return Approval(False, "the approver", code="approver-failed", reason=raised.in_words("approver"))
        except BaseException:
            await self._give_up(state)
            raise
        if isinstance(answer, Approval):  # pyright: ignore[reportUnnecessaryIsInstance]
            return answer
        return Approval(False, "the approver", reason="the approver returned no valid answer")

    async def _give_up(self, state: CallState) -> None:
        """Record the end of a call whose caller no longer waits for an answer."""
        end = record.entry(state, RowKind.TOOL_ABANDONED, {"code": "cancelled"})
        await self._try_record(state, lambda _log: (end,))

    async def _settle(self, passage: Passage, decision: Decision, first: record.EntryMaker) -> Outcome:
        """Execute an allowed call and record its end; record and refuse any other."""
        state = passage.state
        if passage.effect is Verdict.ALLOW:
            state.pending = partial(record.opening_rows, state, decision, first)
            state.step = partial(self._step, state)
            state.held_s = self._watched.hold_s if self._watched is not None else None
            try:
                decision = await passage.act()
            except aio.CancelledError:  # cancelled in a later stage: an execution gets its end too
                if state.execution is not None:
                    await give_up(state)
                raise
        if state.execution is None:
            end = record.denial(state, decision.code)
            opening = partial(record.opening_rows, state, decision, first)
            if decision.code == CODE and state.services.stops is not None:
                await state.services.stops.settle()
            await self._try_record(state, _then(opening, end))
            return self._outcome(state, decision, Status.DENIED)
        if passage.effect is not Verdict.ALLOW:  # a stage after execution refused (it raised)
            text = decision.model_message or to_model(EMPTY)
            state.end(Status.FAILED, decision.code, text, decision.reason)
        await finish(state)
        if state.status is Status.ALLOWED:
            called = f"{state.tool_name}.{state.chosen.name}" if state.chosen.name else state.tool_name
            state.services.earlier.keep(state.session, called, state.normal, state.wall_s)
        return self._outcome(state, decision, state.status, state.output or "")

    async def _step(
        self, state: CallState, number: int, tool: str, arguments: Mapping[str, JsonValue] | None
    ) -> StepDone:
        """Make the call of a step, with its own stages, rows and questions."""
        place, watched = (*self._place, number), self._watched
        failure = await watched.begin(place, tool, arguments) if watched is not None else None
        if failure is not None or arguments is None:
            return StepDone(failure=failure)
        depth = 1 if state.within is None else state.within.depth + 1
        if depth > MAX_DEPTH or len(self._steps) >= MAX_STEPS:  # the policy changed during the steps
            return StepDone(failure=StepFailure("too many steps", "", "too-many-steps"))
        below = state.beneath(new_id("call"), Within(state.call_id, number, depth), tool, arguments)
        on_stage: OnStage | None = None
        if watched is not None:
            on_stage = partial(watched.watch.stage, place)
            below.on_piece = partial(watched.watch.piece, place)
        calls, given_id = state.services.record.calls, below.call_id
        calls.add(given_id)
        try:
            run = type(self)(self._passage, below, on_stage, self._approver, watched, place, self._followers)
            outcome = await (run.follow() if self._followers else run.run())
        finally:
            calls.discard(given_id)
        self._steps.append(outcome)
        if watched is not None:
            watched.watch.end(place, outcome)
        if outcome.status is not Status.ALLOWED:
            said = outcome.output.removeprefix(to_model("")).strip()
            detail = f"`{tool}`: {outcome.detail or outcome.decision.reason}"
            began = outcome.status not in {Status.DENIED, Status.UNANSWERED}
            state.question = outcome.question
            return StepDone(failure=StepFailure(said, detail, outcome.code, began))
        if outcome.data is None:  # the recorded outcome of a replayed step was too large to keep
            return StepDone(failure=StepFailure(Message.OUTCOME_GONE, f"`{tool}`: not kept", "outcome-not-kept", True))
        return StepDone(result_of(outcome))

    async def _try_record(self, state: CallState, build: RowBuilder) -> None:
        """Record a call that does not run, even if recording fails."""
        try:
            await state.services.record(build)
        except AuditUnavailable:
            return

    def _outcome(self, state: CallState, decision: Decision, status: Status, output: str | None = None) -> Outcome:
        text = output if output is not None else decision.model_message or to_model(EMPTY)
        has_result = state.status is Status.ALLOWED and state.execution is not None
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
            state.normal if has_result else None,
            state.detail,
            state.reused,
            not state.session.facts().ended,
            state.secrets,
            state.result if has_result else None,
            state.plan.tool.side_effects if state.has_run else frozenset(),
            tuple(self._steps),
            agent_id=state.agent_id,
            tool=state.tool_name,
            operation=state.operation.name if state.operation is not None else "",
        )


def _safely(tell: Callable[[_T], _R], value: _T) -> _R | None:
    try:
        return tell(value)
    except Exception:  # noqa: BLE001 the follower is the host's code
        _log.exception("a follower of calls failed")


def result_of(outcome: Outcome) -> JsonValue:
    """The result as the agent would get it, without secrets; if it is not JSON, the text for the model."""
    if outcome.data is None or isinstance(outcome.raw, bytes):
        return outcome.output
    try:
        return json.loads(outcome.data)
    except ValueError:
        return outcome.output


def _then(opening: RowBuilder, *rest: AuditEntry) -> RowBuilder:
    """Rows that follow the opening rows."""

    def build(log: Log) -> tuple[AuditEntry, ...]:
        return (*opening(log), *rest)

    return build


def request_of(state: CallState) -> ApprovalRequest:
    """The question to the operator about a call that asks."""
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
        user_id=state.user_id,
        tool_digest=tool_digest(state),
        asked_wall_s=state.wall_s,
        safety_tier=str(state.chosen.right.tier),
        asks=asks_of(state, state.asks),
        client=state.client,
        places=tuple(finding.address or () for finding in state.asks),
        callers=tuple(caller.agent_id for caller in state.callers),
    )


async def _keep(state: CallState, request: ApprovalRequest, approval: Approval, approver: Approver) -> Approval:
    """Store a lasting answer as a grant, unless a broker has; if that fails, the answer counts once.

    A gate without a book of grants would never use up a grant that the broker stored for one call, so it is used up
    here. A thread writes, since writing may have to wait for other processes.
    """
    grants = state.services.grants
    if grants is None and approval.grant_id and isinstance(approver, PermissionBroker):
        return await unbroken(aio.ensure_future(aio.to_thread(approver.spend, approval)))
    if grants is None or approval.grant_id or not approval.lasts:
        return approval
    try:
        grant = await unbroken(aio.ensure_future(aio.to_thread(grants.remember, request, approval)))
    except WorkspaceError:
        return replace(approval, remember=Remember.ONCE, seconds=None)
    return replace(approval, grant_id=grant.grant_id)
