"""One call on its way through the stages, what a stage may say of it, and the recorder of its audit rows.

A row is committed where the call runs as long as nobody else is writing: that takes about 60 us, and going to a thread
and back would add 60 to 100 us more (measured on two cores), most of what a whole call may cost. Rows of calls that are
under way at the same time are committed together, once all of them had their turn of the loop. Only when another
process or thread holds the log, so that the commit would have to wait, does it go to the one thread of the recorder;
until that thread is idle again later rows follow it there, which keeps their order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from gatewright.arguments.url import UrlTarget
from gatewright.base import aio
from gatewright.base.clock import Clock
from gatewright.base.errors import JsonRefused
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.problem import Address
from gatewright.base.thread import unbroken
from gatewright.compile.agent import AgentSnapshot
from gatewright.compile.operation import OperationPlan
from gatewright.compile.plan import ToolPlan
from gatewright.compile.rule_test import Finding, RuleBook
from gatewright.gate.approval import Answer, EarlierResults
from gatewright.gate.approvalstore import ApprovalStore, Grant
from gatewright.gate.audit import AuditEntry, AuditLog, AuditUnavailable, RowBuilder
from gatewright.gate.decision import NO_FACTS
from gatewright.gate.history import PureResults, RateBook
from gatewright.gate.scrub import scrub_text
from gatewright.gate.session import Reservation, Session, SessionFacts
from gatewright.policy.target import (
    Assessment,
    BlockTarget,
    CapabilityCheck,
    FileTarget,
    Located,
    NamedPlace,
    NameTarget,
)
from gatewright.policy.verdict import Verdict
from gatewright.record.process import renew_after_fork
from gatewright.tools.context import Again, OnPiece, Ports, Progress, RunStep, ToolExecutionContext
from gatewright.tools.mark import Pointer

T = TypeVar("T")

Write = Callable[["RowBuilder", bool], bool]
"""Commits the rows; with False it does not wait, and answers False when it would have to. Raises AuditUnavailable."""


class Recorder:
    """The way of one gate to its audit log. ``calls``: the ids of those that are under way."""

    def __init__(self, write: Write) -> None:
        self.calls: set[str] = set()
        self._write = write
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """The thread of a parent is not in its child, nor are its calls."""
        self.calls.clear()
        self._waiting = 0
        self._thread: ThreadPoolExecutor | None = None
        self._batch: _Batch | None = None

    async def __call__(self, build: RowBuilder) -> None:
        """Commit the rows, also when the caller is cancelled meanwhile; the cancellation is raised afterwards.

        Raises AuditUnavailable; the CancelledError of a cancelled caller has it as its cause.
        """
        if len(self.calls) > 1:
            loop, batch = aio.get_running_loop(), self._batch
            if batch is None or batch.loop is not loop:  # else these go along with what others write in this turn
                batch = self._batch = _Batch(loop)
                loop.call_soon(self._commit, batch)
            await unbroken(batch.add(build))
        elif self._waiting or not self._write(build, False):
            await unbroken(self._to_thread(build))

    def _commit(self, batch: _Batch) -> None:
        if self._batch is batch:
            self._batch = None
        try:
            is_written = not self._waiting and self._write(batch.rows, False)
        except Exception as error:  # noqa: BLE001 - whatever it is, the calls that wait for the commit get it
            batch.end(error)
            return
        if is_written:
            batch.end(None)
        else:
            self._to_thread(batch.rows).add_done_callback(lambda done: batch.end(done.exception()))

    def _to_thread(self, build: RowBuilder) -> aio.Future[bool]:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="gatewright-audit")
        self._waiting += 1
        future = aio.get_running_loop().run_in_executor(self._thread, self._write, build, True)
        future.add_done_callback(self._is_back)
        return future

    def _is_back(self, _: object) -> None:
        self._waiting -= 1


class _Batch:
    """Rows of several calls of one loop for one commit. Those of a call that cannot be made are that call's failure."""

    def __init__(self, loop: aio.AbstractEventLoop) -> None:
        self.loop = loop
        self._parts: list[tuple[RowBuilder, aio.Future[None]]] = []
        self._failed: dict[int, AuditUnavailable] = {}

    def add(self, build: RowBuilder) -> aio.Future[None]:
        """Take the rows in; the answer is done when they are committed."""
        written = self.loop.create_future()
        self._parts.append((build, written))
        return written

    def rows(self, log: AuditLog) -> list[AuditEntry]:
        """The rows of all of them."""
        rows: list[AuditEntry] = []
        self._failed = {}
        for number, (build, _) in enumerate(self._parts):
            try:
                rows += build(log)
            except (ValueError, TypeError, RecursionError) as error:
                self._failed[number] = AuditUnavailable(f"a row for the audit log cannot be made: {error}")
            except AuditUnavailable as error:
                self._failed[number] = error
        return rows

    def end(self, error: BaseException | None) -> None:
        """Tell every call what became of its rows."""
        for number, (_, written) in enumerate(self._parts):
            failure = error or self._failed.get(number)
            if failure is None:
                written.set_result(None)
            else:
                written.set_exception(failure)


MOST_AT_ONCE = 8
"""Calls of one turn that may be carried out together."""

RawArguments = str | bytes | Mapping[str, JsonValue] | JsonRefused
"""What a model sent; `JsonRefused`: it could not even be put together, and why."""


class Status(StrEnum):
    """How a call ended. ``unanswered``: the decision is ask, and there was nobody to ask; nothing was executed."""

    ALLOWED = "allowed"
    DENIED = "denied"
    UNANSWERED = "unanswered"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    ABANDONED = "abandoned"


@frozen
class Execution:
    """An execution that was recorded and began: the slot it holds, and when, by the clock of the machine."""

    taken: Reservation
    began_s: float


@frozen
class Services:
    """What the gate has for all of its calls. ``record`` writes audit rows without stopping the event loop, or raises
    AuditUnavailable. ``results``: what pure tools gave; ``earlier``: those in which ids are looked up for the operator.

    ``absent``: tools that are known and not there now, and why.
    ``in_copy``: calls are made in a disposable copy, where what leaves it is decided and not executed.
    """

    ports: Ports
    clock: Clock
    record: Recorder
    absent: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    rates: RateBook | None = None
    grants: ApprovalStore | None = None
    results: PureResults | None = None
    in_copy: bool = False
    earlier: EarlierResults = field(default_factory=EarlierResults, hash=False)


@frozen
class Within:
    """The call of a composition that another call is a step of: its id, the number of the step, and how many
    compositions stand above it.
    """

    call_id: str
    step: int
    depth: int


class CallState:
    """A call on its way: what was asked, and what each stage filled in. It belongs to one run, which alone changes it.

    ``agent`` None: there is no such agent now. ``pending``: the audit rows to be written before execution;
    ``slot``: what the call takes of its session.
    ``facts``, ``now_s`` and ``wall_s`` are the session and the clocks as they were when the run began: every stage
    decides by them and by nothing newer. ``rates``: the seconds that the call had to wait for every rate, by its
    key.
    ``arguments`` are what the tool is given, ``policy_arguments`` (from the arguments stage on) the same as conditions
    and constraints see them: a path on disk relative to its root instead of absolute.
    ``book``: the rules of the called operation, of a batch those of each; ``sources``: those that the call goes to.
    ``named``: where texts of the arguments lead that no marker speaks of. ``moved``: in a disposable copy, what stands
    in the place of the paths on disk that the tool itself is given.
    ``tool`` and ``operation``: what the call reached so far, of a batch all operations as one. The stages that come
    after lookup and operation take them as ``plan`` and ``chosen``.
    ``uses``: how often a batch uses each operation; None: it calls one, once.
    ``unanswered``: the tool of an earlier call of the same turn that got no yes; then this one is not made.
    ``grant``: the standing approval that covers what would be asked. ``result`` counts once ``has_result``; it
    ``is_heavy`` where working through it would hold up the loop; ``normal`` are the bytes that stand for it.
    ``execution``: the call was recorded and began; ``has_run``: the
    tool itself was called; ``stopped``: it does not run any more. ``reused``: an earlier result
    stands for it. ``detail``: what went wrong in the execution, for the operator; ``ran_under``: what held for
    whatever ran; ``misfit``: what of a result that was
    taken does not fit its schema. ``again``: see `ToolExecutionContext`; ``led_to``: the hosts that it let the call go
    on to; ``onward``: addresses that no argument names and that the call came upon. ``step``: makes a call that belongs
    to this one, a composition's; ``within``: what this one belongs to; ``held_s``: how long
    whoever watches its steps held them up so far, which takes nothing of its time.
    The defaults stand in the class: a call costs only what it fills in. ``plan``, ``chosen``, ``book`` and ``sources``
    have none: where the stage that fills them in did not run nothing may be decided by them.
    """

    answer: Answer | None = None
    unanswered: str = ""
    facts: SessionFacts | None = None
    now_s: float = 0.0
    wall_s: float = 0.0
    grant: Grant | None = None
    tool: ToolPlan | None = None
    plan: ToolPlan
    operation: OperationPlan | None = None
    chosen: OperationPlan
    uses: Mapping[str, int] | None = None
    book: RuleBook
    sources: frozenset[str]
    places: tuple[Located, ...] = ()
    urls: tuple[UrlTarget, ...] = ()
    onward: tuple[UrlTarget, ...] = ()
    files: tuple[FileTarget, ...] = ()
    names: tuple[NameTarget, ...] = ()
    named: tuple[NamedPlace, ...] = ()
    moved: Mapping[Pointer, str] = MappingProxyType({})
    blocks: tuple[BlockTarget, ...] = ()
    checks: tuple[CapabilityCheck, ...] = ()
    assessment: Assessment | None = None
    asks: tuple[Finding, ...] = ()
    pending: RowBuilder | None = None
    slot: Reservation | None = None
    status: Status = Status.ALLOWED
    code: str = ""
    result: JsonValue | bytes = None
    has_result: bool = False
    is_heavy: bool = False
    normal: bytes = b""
    output: str | None = None
    output_hash: str = ""
    output_bytes: int = 0
    truncated: bool = False
    secrets: int = 0
    misfit: str = ""
    execution: Execution | None = None
    has_run: bool = False
    stopped: bool = True
    reused: bool = False
    detail: str = ""
    ran_under: str = ""
    again: Again | None = None
    step: RunStep | None = None
    within: Within | None = None
    held_s: Callable[[], float] | None = None
    led_to: tuple[str, ...] = ()

    def __init__(
        self,
        call_id: str,
        agent_id: str,
        tool_name: str,
        raw: RawArguments,
        agent: AgentSnapshot | None,
        session: Session,
        services: Services,
        user_id: str | None = None,
        client: str = "",
    ) -> None:
        self.call_id = call_id
        self.agent_id = agent_id
        self.tool_name = tool_name
        self.raw = raw
        self.agent = agent
        self.session = session
        self.services = services
        self.ports = services.ports
        self.user_id = user_id
        self.client = client
        self.progress: Progress | None = None
        self.on_piece: OnPiece | None = None
        self.rates: Mapping[str, float] = {}
        self.arguments: dict[str, JsonValue] = {}
        self.policy_arguments: dict[str, JsonValue] = {}

    def afresh(self, agent: AgentSnapshot | None, services: Services) -> CallState:
        """The same call before its first stage, with the answer that it brings, for a run of its own."""
        state = CallState(
            self.call_id,
            self.agent_id,
            self.tool_name,
            self.raw,
            agent,
            self.session,
            services,
            self.user_id,
            self.client,
        )
        state.answer, state.progress, state.on_piece = self.answer, self.progress, self.on_piece
        if self.unanswered:
            state.unanswered = self.unanswered
        if self.within is not None:
            state.within = self.within
        return state

    def context(self, **more: Any) -> ToolExecutionContext:
        """The snapshot for the tool; ``granted`` is the action that the permission stage allowed.

        ``more``: further fields, for a tool that begins now.
        """
        return ToolExecutionContext(
            agent_id=self.agent_id,
            session_id=self.session.session_id,
            operation=self.operation.name if self.operation is not None else "",
            call_id=self.call_id,
            user_id=self.user_id,
            source_ids=self.agent.source_ids if self.agent else (),
            own_source_ids=self.agent.own_source_ids if self.agent else (),
            granted=self.assessment.action if self.assessment else None,
            ports=self.ports,
            client=self.client,
            **more,
        )

    def beneath(self, call_id: str, within: Within, tool: str, arguments: Mapping[str, JsonValue]) -> CallState:
        """The call of a step of this one: by the same agent, in the same session, for the same user and client."""
        who = self.agent, self.session, self.services, self.user_id, self.client
        state = CallState(call_id, self.agent_id, tool, arguments, *who)
        state.within = within
        return state

    def instead(self, arguments: Mapping[str, JsonValue], reaching: tuple[UrlTarget, ...] = ()) -> CallState:
        """The call with other arguments in the place of this one, at its moment; nobody was asked about it.

        ``reaching``: addresses that it came upon.
        """
        state = self.afresh(self.agent, self.services)
        state.onward = reaching
        state.raw, state.answer, state.progress, state.on_piece = arguments, None, None, None
        state.facts, state.now_s, state.wall_s, state.rates = self.facts, self.now_s, self.wall_s, self.rates
        return state

    def end(self, status: Status, code: str, output: str, detail: str) -> None:
        """End the call otherwise than with its result; ``output`` is for the model, ``detail`` for the operator.

        Both lose their secrets here, before anybody is told.
        """
        if self.tool is None or self.tool.scrub:
            (output, self.secrets), (detail, _) = scrub_text(output), scrub_text(detail)
        self.status, self.code, self.output, self.detail = status, code, output, detail


class StageResult(NamedTuple):
    """The objections of a stage, most important first; none means that the call passes.

    ``note`` is what the trace says of a call that passed. A tuple, because every stage of every call makes one.
    """

    findings: tuple[Finding, ...] = ()
    note: str = ""


@frozen
class Stage:
    """A stage that decides; it changes nothing but the state."""

    name: str
    run: Callable[[CallState], StageResult]


@frozen
class EffectStage:
    """A stage that acts."""

    name: str
    run: Callable[[CallState], Awaitable[StageResult]]


def denied(
    code: str,
    reason: str,
    model: str,
    *,
    address: Address | None = None,
    rule_id: str | None = None,
    facts: Mapping[str, JsonValue] = NO_FACTS,
) -> StageResult:
    """The result of a stage that refuses."""
    return StageResult((Finding(Verdict.DENY, code, reason, address, rule_id, model, facts),))
