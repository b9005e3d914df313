"""One call on its way through the stages, as an immutable value, and what a stage may say of it. No stage is here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from gatewright.base.errors import JsonRefused
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.problem import Address
from gatewright.compile.finding import Finding
from gatewright.gate.decision import NO_FACTS
from gatewright.policy.verdict import Verdict

if TYPE_CHECKING:
    from gatewright.arguments.url import UrlTarget
    from gatewright.base.clock import Clock
    from gatewright.compile.agent import AgentSnapshot
    from gatewright.compile.plan import OperationPlan, ToolPlan
    from gatewright.gate.approval import Answer
    from gatewright.gate.audit import AuditEntry, AuditLog
    from gatewright.gate.grant import Grant, GrantBook
    from gatewright.gate.rates import RateBook
    from gatewright.gate.recorder import Recorder
    from gatewright.gate.reuse import PureResults
    from gatewright.gate.session import Session, SessionFacts
    from gatewright.gate.stages.execute import Execution
    from gatewright.policy.target import Assessment, BlockTarget, CapabilityCheck, FileTarget, Located, NameTarget
    from gatewright.tools.blockport import BlockPort
    from gatewright.tools.port import RootPort, SourcePort

MOST_AT_ONCE = 8
"""Calls of one turn that may be carried out together."""

RawArguments = str | bytes | Mapping[str, JsonValue] | JsonRefused
"""What a model sent; `JsonRefused`: it could not even be put together, and why."""

RowBuilder = Callable[["AuditLog"], "Sequence[AuditEntry]"]
"""Makes audit rows once the log is known to be there (digests are keyed by the log)."""


class Status(StrEnum):
    """How a call ended. ``unanswered``: the decision is ask, and there was nobody to ask; nothing was executed."""

    ALLOWED = "allowed"
    DENIED = "denied"
    UNANSWERED = "unanswered"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    ABANDONED = "abandoned"


@dataclass(frozen=True, slots=True)
class CallPorts:
    """What the stages reach outside themselves. ``commit`` writes audit rows, or raises AuditUnavailable;
    ``record`` does the same without stopping the event loop. ``results``: what pure tools gave.

    ``absent``: tools that are known and not there now, and why. ``folder``: where relative paths of arguments and
    prefixes of capabilities begin (the policy's folder); None: there is none, so no such path is accepted.
    """

    sources: SourcePort | None
    clock: Clock
    commit: Callable[[RowBuilder], None]
    record: Recorder
    absent: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    rates: RateBook | None = None
    grants: GrantBook | None = None
    folder: str | None = None
    results: PureResults | None = None
    roots: RootPort | None = None
    blocks: BlockPort | None = None


@dataclass(frozen=True)
class CallState:
    """A call between two stages; each stage fills in what it found.

    ``agent`` None: there is no such agent now. ``pending``: the audit rows to be written before execution.
    ``facts``, ``now_s`` and ``wall_s`` are the session and the clocks as they were when the passage began: every stage
    decides by them and by nothing newer. ``rates``: the seconds that the call had to wait for every rate, by its
    key.
    ``arguments`` are what the tool is given, ``policy_arguments`` (from the arguments stage on) the same as conditions
    and constraints see them: a path on disk relative to its root instead of absolute.
    ``uses``: how often a batch uses each operation; None: it calls one, once.
    ``grant``: the standing approval that covers what would be asked. ``result`` counts once ``has_result``; ``normal``
    are the bytes that stand for it. ``execution``: the call was recorded and began. ``reused``: an earlier result
    stands for it. ``detail``: what went wrong in the execution, for the operator.
    Without slots, because copying a dictionary makes the next state in a tenth of the time (see ``having``), and what
    no stage has filled in yet need not be in it.
    """

    call_id: str
    agent_id: str
    tool_name: str
    raw: RawArguments
    agent: AgentSnapshot | None
    session: Session
    ports: CallPorts
    user_id: str | None = None
    answer: Answer | None = None
    facts: SessionFacts | None = None
    now_s: float = 0.0
    wall_s: float = 0.0
    rates: Mapping[str, float] = field(default_factory=dict[str, float], hash=False)
    grant: Grant | None = None
    arguments: dict[str, JsonValue] = field(default_factory=dict, hash=False)
    policy_arguments: dict[str, JsonValue] = field(default_factory=dict, hash=False)
    tool: ToolPlan | None = None
    operation: OperationPlan | None = None
    uses: Mapping[str, int] | None = field(default=None, hash=False)
    places: tuple[Located, ...] = ()
    urls: tuple[UrlTarget, ...] = ()
    files: tuple[FileTarget, ...] = ()
    names: tuple[NameTarget, ...] = ()
    blocks: tuple[BlockTarget, ...] = ()
    checks: tuple[CapabilityCheck, ...] = ()
    assessment: Assessment | None = None
    asks: tuple[Finding, ...] = ()
    pending: RowBuilder | None = None
    status: Status = Status.ALLOWED
    code: str = ""
    result: JsonValue | bytes = None
    has_result: bool = False
    normal: bytes = b""
    output: str | None = None
    output_hash: str = ""
    output_bytes: int = 0
    truncated: bool = False
    secrets: int = 0
    execution: Execution | None = None
    reused: bool = False
    detail: str = ""

    def having(self, **changes: object) -> CallState:
        """The state with some fields changed."""
        return _state_of({**self.__dict__, **changes})

    @staticmethod
    def begun(
        call_id: str,
        agent_id: str,
        tool_name: str,
        raw: RawArguments,
        agent: AgentSnapshot | None,
        session: Session,
        ports: CallPorts,
        user_id: str | None,
    ) -> CallState:
        """The state before the first stage; like the constructor, without writing every default down."""
        return _state_of(
            {
                "call_id": call_id,
                "agent_id": agent_id,
                "tool_name": tool_name,
                "raw": raw,
                "agent": agent,
                "session": session,
                "ports": ports,
                "user_id": user_id,
                "rates": {},
                "arguments": {},
                "policy_arguments": {},
            }
        )

    @property
    def plan(self) -> ToolPlan:
        """The tool; only stages after lookup may ask."""
        if self.tool is None:
            raise LookupError("a stage asked for the tool before lookup")
        return self.tool

    @property
    def chosen(self) -> OperationPlan:
        """The operation, of a batch all of them as one; only stages after operation may ask."""
        if self.operation is None:
            raise LookupError("a stage asked for the operation before it was known")
        return self.operation


def _state_of(fields: dict[str, object]) -> CallState:
    """A state with these fields; the others are the class's defaults."""
    new = object.__new__(CallState)
    object.__setattr__(new, "__dict__", fields)
    return new


class StageResult(NamedTuple):
    """The state for the next stage and the objections, most important first; none means that the call passes.

    ``note`` is what the trace says of a call that passed. A tuple, because every stage of every call makes one.
    """

    state: CallState
    findings: tuple[Finding, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage that decides; it changes nothing outside the state."""

    name: str
    run: Callable[[CallState], StageResult]


@dataclass(frozen=True, slots=True)
class EffectStage:
    """A stage that acts."""

    name: str
    run: Callable[[CallState], Awaitable[StageResult]]


def denied(
    state: CallState,
    code: str,
    reason: str,
    model: str,
    *,
    address: Address | None = None,
    rule_id: str | None = None,
    facts: Mapping[str, JsonValue] = NO_FACTS,
) -> StageResult:
    """The result of a stage that refuses."""
    return StageResult(state, (Finding(Verdict.DENY, code, reason, address, rule_id, model, facts),))
