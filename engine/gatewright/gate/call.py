"""One call on its way through the stages, the results of a stage, and the recorder of its audit rows.

While nobody else is writing, a row is committed in the calling thread: that takes about 60 us, and a detour through
another thread would add 60 to 100 us (measured on two cores), most of what a whole call may cost. Rows of concurrent
calls are committed together, after each had its turn of the loop. Only if another process or thread holds the log, so
that the commit would have to wait, does it go to the recorder's own thread; until that thread is idle, later rows
follow it there and keep their order.

More than 450 lines, since a call's state names all that any stage adds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from enum import StrEnum
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar

from gatewright.arguments.url import UrlTarget
from gatewright.base.amount import Clock
from gatewright.base.errors import Address, JsonRefused
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import MAX_VALUES, JsonValue, check_object, copy_value, parse_object
from gatewright.base.late import aio, unbroken
from gatewright.compile.agent import AgentSnapshot
from gatewright.compile.operation import OperationPlan
from gatewright.compile.plan import ToolPlan
from gatewright.compile.rule_test import Finding, RuleBook
from gatewright.gate.approval import Answer, ApprovalRequest, EarlierResults
from gatewright.gate.approvalstore import ApprovalStore, Grant
from gatewright.gate.chain import LogRows
from gatewright.gate.decision import NO_FACTS
from gatewright.gate.history import PureResults
from gatewright.gate.port import AuditEntry, AuditUnavailable, Log, Rates, RowBuilder
from gatewright.gate.scrub import scrub_text
from gatewright.gate.session import Reservation, Session, SessionFacts
from gatewright.gate.stop import Stop, StopSwitch
from gatewright.policy.delegation import Caller, Lineage
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
from gatewright.tools.parameter import Pointer

T = TypeVar("T")

Write = Callable[["RowBuilder", bool], bool]
"""Commits the rows; with False it never waits, and returns False if it would have to. Raises AuditUnavailable."""


class Recorder:
    """Passes the rows of one gate to its audit log. ``calls``: the ids of the running ones.

    Rows of a turn of the loop, and those that come while others are being committed, share the next commit.
    """

    def __init__(self, write: Write) -> None:
        self.calls: set[str] = set()
        self._write = write
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Forget the parent's thread and calls in a child."""
        self.calls.clear()
        self._writing: list[aio.AbstractEventLoop] = []
        """The loop of each commit that a thread makes."""
        self._thread: ThreadPoolExecutor | None = None
        self._batch: _Batch | None = None

    async def __call__(self, build: RowBuilder) -> None:
        """Commit the rows even if the caller is cancelled meanwhile; the cancellation is raised afterwards.

        Raises AuditUnavailable; the CancelledError of a cancelled caller has it as its cause.
        """
        if len(self.calls) > 1 or self._writing:
            loop, batch = aio.get_running_loop(), self._batch
            if batch is None or batch.loop is not loop or batch.is_full:
                made = self._batch = _Batch(loop)
                loop.call_soon(self._commit, made)
                if batch is not None and batch.loop is loop:
                    self._commit(batch)
                batch = made
            await unbroken(batch.add(build))
        elif not self._write(build, False):
            await unbroken(self._to_thread(build))

    def _commit(self, batch: _Batch) -> None:
        if batch.is_taken or (self._batch is batch and batch.loop in self._writing):
            return  # the end of the commit under way takes these, and what comes until then
        batch.is_taken = True
        if self._batch is batch:
            self._batch = None
        try:
            is_written = not self._writing and self._write(batch.rows, False)
        except Exception as error:  # noqa: BLE001 - the calls that wait for the commit get any error
            batch.end(error)
            return
        if is_written:
            batch.end(None)
        else:
            self._to_thread(batch.rows).add_done_callback(lambda done: batch.end(done.exception()))

    def _to_thread(self, build: RowBuilder) -> aio.Future[bool]:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="gatewright-audit")
        loop = aio.get_running_loop()
        self._writing.append(loop)
        future = loop.run_in_executor(self._thread, self._write, build, True)
        future.add_done_callback(lambda _: self._end(loop))
        return future

    def _end(self, loop: aio.AbstractEventLoop) -> None:
        self._writing.remove(loop)
        if self._batch is not None and self._batch.loop is loop:
            self._commit(self._batch)


_MOST_TOGETHER = 64
"""The most additions of rows in one commit."""


class _Batch:
    """Rows of several calls of one loop for one commit. If the rows of a call cannot be made, only that call fails."""

    def __init__(self, loop: aio.AbstractEventLoop) -> None:
        self.loop = loop
        self.is_taken = False
        """True once somebody commits it."""
        self._parts: list[tuple[RowBuilder, aio.Future[None]]] = []
        self._failed: dict[int, AuditUnavailable] = {}

    @property
    def is_full(self) -> bool:
        """True if no more rows may join."""
        return len(self._parts) >= _MOST_TOGETHER

    def add(self, build: RowBuilder) -> aio.Future[None]:
        """Add the rows; the future is done after their commit."""
        written = self.loop.create_future()
        self._parts.append((build, written))
        return written

    def rows(self, log: Log) -> list[AuditEntry]:
        """The rows of all calls."""
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
        """Report the result of the commit to every call."""
        for number, (_, written) in enumerate(self._parts):
            failure = error or self._failed.get(number)
            if failure is None:
                written.set_result(None)
            else:
                written.set_exception(failure)


MOST_AT_ONCE = 8
"""The most calls of one turn that run together."""

RawArguments = str | bytes | Mapping[str, JsonValue] | JsonRefused
"""The model's input; `JsonRefused` says why it could not even be assembled."""


class Status(StrEnum):
    """The end of a call. ``unanswered``: the decision is ask, and nobody was there to answer; nothing ran.

    ``waiting``: it, or a step of it, is suspended until an answer. ``unknown``: a call with this id was made, and its
    end or its outcome is unknown; it is not repeated.
    """

    ALLOWED = "allowed"
    DENIED = "denied"
    UNANSWERED = "unanswered"
    WAITING = "waiting"
    UNKNOWN = "unknown"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    ABANDONED = "abandoned"


@frozen
class Execution:
    """A recorded execution that began: its slot, and its start by the machine's clock."""

    taken: Reservation
    began_s: float


@frozen
class Services:
    """The gate's services for all of its calls. ``record`` writes audit rows without stopping the event loop, or raises
    AuditUnavailable. ``results``: of pure tools, for reuse; ``earlier``: for looking up the operator's ids. ``absent``:
    tools that are known but missing now, with the reason.

    ``in_copy``: calls run in a disposable copy, where an effect outside is decided but not executed. ``stops``: None
    for decisions about the policy alone, which no stop changes.
    """

    ports: Ports
    clock: Clock
    record: Recorder
    absent: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    rates: Rates | None = None
    grants: ApprovalStore | None = None
    results: PureResults | None = None
    in_copy: bool = False
    stops: StopSwitch | None = None
    earlier: EarlierResults = field(default_factory=EarlierResults, hash=False)


@frozen
class Within:
    """The composition's call that a step belongs to: its id, the number of the step, and its depth among nested
    compositions.
    """

    call_id: str
    step: int
    depth: int


@frozen
class Effect:
    """The work of a call that another program does in place of the tool: ``run`` returns its result.

    ``ends``: a cancellation of ``run`` ends the work.
    """

    run: Callable[[str, dict[str, JsonValue], ToolExecutionContext], Awaitable[JsonValue | bytes]]
    ends: bool = False


class NamedCall(Protocol):
    """A call by the id that its program gave it."""

    def said(self, state: CallState) -> dict[str, JsonValue]:
        """The fields of the row with which it begins."""
        ...

    def bound(self, state: CallState) -> dict[str, JsonValue]:
        """The parts that bind an answer to this very call and to the files as they are now."""
        ...

    def refusal(self, rows: LogRows) -> Finding | None:
        """The objection of the log, in the transaction that would begin it."""
        ...

    def keep(self, state: CallState) -> dict[str, JsonValue]:
        """Keep its outcome; the fields for the row of its end."""
        ...

    def step(self, number: int) -> NamedCall:
        """The call of a step of it, a composition."""
        ...


class CallState:
    """A call on its way: the request, and the additions of each stage. It belongs to one run, which alone changes it.

    Every stage decides by ``facts``, ``now_s`` and ``wall_s``: the session and both clocks at the start of the run. The
    defaults are class attributes: a call costs only what it fills in. ``plan``, ``chosen``, ``book`` and ``sources``
    have none: nothing may decide by them before the stage that fills them in.
    """

    answer: Answer | None = None
    unanswered: str = ""
    """The tool of an earlier call of the same turn that got no approval; then this call is not made."""
    facts: SessionFacts | None = None
    now_s: float = 0.0
    wall_s: float = 0.0
    grant: Grant | None = None
    """The standing approval that covers the asks."""
    tool: ToolPlan | None = None
    """The tool that the call has reached; stages after lookup take it as ``plan``."""
    plan: ToolPlan
    operation: OperationPlan | None = None
    """The operation that the call has reached, for a batch all combined; stages after operation take it as
    ``chosen``.
    """
    chosen: OperationPlan
    uses: Mapping[str, int] | None = None
    """The number of uses of each operation in a batch; None for a single call."""
    book: RuleBook
    """The rules of the called operation, or of each in a batch."""
    sources: frozenset[str]
    """The sources that the call goes to."""
    places: tuple[Located, ...] = ()
    urls: tuple[UrlTarget, ...] = ()
    onward: tuple[UrlTarget, ...] = ()
    """Addresses that the call found and no argument names."""
    files: tuple[FileTarget, ...] = ()
    names: tuple[NameTarget, ...] = ()
    named: tuple[NamedPlace, ...] = ()
    """The places that unmarked texts in the arguments name."""
    moved: Mapping[Pointer, str] = MappingProxyType({})
    """In a disposable copy, the copies of the paths on disk that the tool gets."""
    blocks: tuple[BlockTarget, ...] = ()
    checks: tuple[CapabilityCheck, ...] = ()
    assessment: Assessment | None = None
    asks: tuple[Finding, ...] = ()
    noted: tuple[Finding, ...] = ()
    """The asks that observe mode passes."""
    overtaken: Finding | None = None
    """The denial, passed by observe mode, of a call that others overtook since its decision."""
    passes_levels: bool = False
    """Observe mode passes a denial or an ask of a level."""
    counts: bool = True
    """It counts for the rules of its session; a call that enforcing would have denied does not."""
    pending: RowBuilder | None = None
    """The audit rows before execution."""
    slot: Reservation | None = None
    """The uses that these rows count for."""
    status: Status = Status.ALLOWED
    code: str = ""
    result: JsonValue | bytes = None
    """Valid if ``has_result``; ``normal`` is its bytes."""
    has_result: bool = False
    is_heavy: bool = False
    """True if work on the result would block the loop."""
    normal: bytes = b""
    output: str | None = None
    output_hash: str = ""
    output_bytes: int = 0
    truncated: bool = False
    secrets: int = 0
    misfit: str = ""
    """The part of an accepted result that misfits its schema."""
    execution: Execution | None = None
    """The recorded execution that began."""
    has_run: bool = False
    """True once the tool itself was called."""
    stopped: bool = True
    """True once the tool no longer runs."""
    stop: Stop | None = None
    """The stop that ends it while it runs."""
    reused: bool = False
    """True if an earlier result is used instead."""
    detail: str = ""
    """The failure of the execution, for the operator."""
    ran_under: str = ""
    """The confinement of the process."""
    again: Again | None = None
    """See `ToolExecutionContext`."""
    step: RunStep | None = None
    """Makes a call within this one, a composition."""
    claim: NamedCall | None = None
    """The id that its program gave the call, with what the ledger of such calls knows."""
    within: Within | None = None
    """The call that this one belongs to."""
    lineage: Lineage | None = None
    """The descent of the sub-agent that makes the call."""
    callers: tuple[Caller, ...] = ()
    """The callers of that sub-agent under the policy that decides."""
    effect: Effect | None = None
    """The work of another program in place of the tool's."""
    question: ApprovalRequest | None = None
    """The question for which a step of this call, a composition, waits."""
    held_s: Callable[[], float] | None = None
    """The seconds for which an observer has delayed its steps, which do not count."""
    trace_id: str = ""
    """The trace that it belongs to, for the log."""
    folder: str | None = None
    """The folder of the calling program, if it runs the tool itself."""
    led_to: tuple[str, ...] = ()
    """The hosts to which the call could continue."""

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
        """The seconds to wait for every rate, by its key."""
        self.arguments: dict[str, JsonValue] = {}
        """The arguments for the tool."""
        self.policy_arguments: dict[str, JsonValue] = {}
        """The arguments in the form for conditions: a path on disk is relative to its root, not absolute."""

    def afresh(self, agent: AgentSnapshot | None, services: Services) -> CallState:
        """The same call before its first stage, with its answer, for another run."""
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
        if self.trace_id:
            state.trace_id = self.trace_id
        if self.claim is not None:
            state.claim = self.claim
        if self.folder is not None:
            state.folder = self.folder
        if self.effect is not None:
            state.effect = self.effect
        if self.lineage is not None:
            state.lineage = self.lineage
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
        state.within, state.folder, state.lineage = within, self.folder, self.lineage
        if self.claim is not None:
            state.claim = self.claim.step(within.step)
        return state

    def instead(self, arguments: Mapping[str, JsonValue], reaching: tuple[UrlTarget, ...] = ()) -> CallState:
        """The same call with other arguments, at the same moment and without an answer.

        ``reaching``: addresses that it found.
        """
        state = self.afresh(self.agent, self.services)
        state.onward = reaching
        state.raw, state.answer, state.progress, state.on_piece = arguments, None, None, None
        state.facts, state.now_s, state.wall_s, state.rates = self.facts, self.now_s, self.wall_s, self.rates
        return state

    def end(self, status: Status, code: str, output: str, detail: str) -> None:
        """End the call without its result; ``output`` is for the model, ``detail`` for the operator.

        Secrets are removed from both here, before anybody reads them.
        """
        if self.tool is None or self.tool.scrub:
            (output, self.secrets), (detail, _) = scrub_text(output), scrub_text(detail)
        self.status, self.code, self.output, self.detail = status, code, output, detail


class StageResult(NamedTuple):
    """The objections of a stage, the most important first; without any the call passes.

    ``note`` is the trace's text for a call that passed. A tuple, because every stage of every call makes one.
    """

    findings: tuple[Finding, ...] = ()
    note: str = ""


@frozen
class Stage:
    """A stage that decides; it changes only the state."""

    name: str
    run: Callable[[CallState], StageResult]


@frozen
class EffectStage:
    """A stage that acts."""

    name: str
    run: Callable[[CallState], Awaitable[StageResult]]


def deny(
    code: str,
    reason: str,
    model: str,
    *,
    address: Address | None = None,
    rule_id: str | None = None,
    facts: Mapping[str, JsonValue] = NO_FACTS,
) -> StageResult:
    """The result of a stage that denies the call."""
    return StageResult((Finding(Verdict.DENY, code, reason, address, rule_id, model, facts),))


def read_arguments(raw: RawArguments) -> dict[str, JsonValue]:
    """The arguments as a new object. Raises JsonRefused, and any exception of a host's mapping."""
    if isinstance(raw, str):
        return parse_object(str.__str__(raw))
    if isinstance(raw, bytes):
        return parse_object(raw)
    if isinstance(raw, JsonRefused):
        raise raw
    if not isinstance(raw, dict) and isinstance(raw, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raw = dict(islice(raw.items(), MAX_VALUES))
    return copy_value(check_object(raw))  # which refuses any other type that a program passes
